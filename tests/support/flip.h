/* SPDX-License-Identifier: Apache-2.0 */
/* flip.h - bits that are flipped in the files of a store, for the tests of what is done about it. */
#ifndef WEIR_TEST_FLIP_H
#define WEIR_TEST_FLIP_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "weir_test.h"

/* false: the store is through with the file, or has not begun it. */
static inline bool flip_middle(const char *path) {
    FILE *file = fopen(path, "r+be");
    if (!file) return false;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long middle = ftell(file) / 2;
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    if (byte != EOF) assert_int_equal(fputc(byte ^ 4, file), byte ^ 4);
    assert_int_equal(fclose(file), 0);
    return byte != EOF;
}

/* One bit in the middle of each sorted file of a shard; how many files. */
static inline unsigned flip_shard(const char *store, unsigned shard) {
    char folder[1024], path[2048];
    unsigned count = 0;
    snprintf(folder, sizeof folder, "%s/shard-%03u", store, shard);
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count += strstr(entry->d_name, ".sst") && flip_middle(path);
    }
    if (open) closedir(open);
    return count;
}

#endif /* WEIR_TEST_FLIP_H */
