/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as manifest.json of an otherwise empty folder: one sentence, and nothing outside the folder is opened. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/snapshot/snapshot.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void folder_of(const uint8_t *data, size_t size, char folder[64]) {
    char path[96];
    snprintf(folder, 64, "/dev/shm/weir-manifest-fuzz.%d", (int)getpid());
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    mkdir(folder, 0700);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const weir_snapshot_opts opts = {.verify = false};
    char folder[64], path[96];
    weir_snapshot *snapshot;
    folder_of(data, size, folder);
    weir_err err = weir_snapshot_open(folder, &opts, &snapshot);
    if (!err) weir_snapshot_close(snapshot); /* a schema without anything in it has no file */
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    unlink(path);
    rmdir(folder);
    return 0;
}
