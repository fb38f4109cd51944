/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become an archive whose members are arrays or errors, or one sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/store/snapshot/npy.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *file_of(const uint8_t *data, size_t size) {
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/weir-npz-fuzz.%d", (int)getpid());
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = file_of(data, size);
    weir_npz *npz;
    weir_err err = weir_npz_open(path, "/dev/shm", &npz);
    unlink(path);
    if (err) return 0;
    for (uint32_t i = 0; i < weir_npz_count(npz); i++) {
        weir_npy_array array;
        if (weir_npz_array(npz, weir_npz_name(npz, i), &array)) continue;
        if (array.count && weir_npy_f64(&array, array.count - 1) > 1e308) continue;
    }
    weir_npz_close(npz);
    return 0;
}
