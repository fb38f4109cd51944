/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masks.c - which masks of an import split the vertices.
 *
 * By itself, because programs that train read it: the files around it write snapshots out of a store, and whoever takes
 * one of those takes RocksDB along.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/snapshot/snapshot.h>

weir_err weir_snapshot_read_masks(const char *given, char text[WEIR_SNAPSHOT_MASKS_BYTES], const char *masks[3]) {
    const bool three = strchr(given, ',') != NULL;
    const int length = three
                           ? snprintf(text, WEIR_SNAPSHOT_MASKS_BYTES, "%s", given)
                           : snprintf(text, WEIR_SNAPSHOT_MASKS_BYTES, "%s_train,%s_val,%s_test", given, given, given);
    bool named = *given && length < WEIR_SNAPSHOT_MASKS_BYTES;
    char *rest = text;
    for (int i = 0; named && i < 3; i++) {
        masks[i] = strsep(&rest, ",");
        named = masks[i] && *masks[i];
    }
    if (named && !rest) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "--masks is the name of a split, or three names, of training, validation and test, "
                                 "separated by commas");
}
