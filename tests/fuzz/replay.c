/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target once over every file of a folder: what a build without libFuzzer does with a corpus.
 * Prints how many, so that an empty corpus cannot pass unseen. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The block is exactly as long as the file, so that the address sanitizer sees a read past its end. */
static int replay_file(const char *path) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0) {
        perror(path);
        exit(1);
    }
    int regular = S_ISREG(status.st_mode);
    if (regular) {
        size_t size = (size_t)status.st_size;
        uint8_t *bytes = malloc(size ? size : 1);
        if (!bytes || fread(bytes, 1, size, file) != size) {
            perror(path);
            exit(1);
        }
        LLVMFuzzerTestOneInput(bytes, size);
        free(bytes);
    }
    fclose(file);
    return regular;
}

int main(int argc, char **argv) {
    int files = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER (of inputs to replay)\n", argv[0]);
        return 64;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof path) files += replay_file(path);
    }
    closedir(folder);
    printf("%d inputs replayed\n", files);
    return files > 0 ? 0 : 1;
}
