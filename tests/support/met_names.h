/* SPDX-License-Identifier: Apache-2.0 */
/*
 * met_names.h - two keys of one type whose names have the same XXH3 of 64 bits, which ids once were.
 *
 * The second was computed for the first in six seconds on one core: its last four lanes were drawn from four lists of
 * 2^22 until their products added up to what the first one's hash wants (Wagner's generalised birthday). It is plain
 * text, so it can stand in any message.
 */
#ifndef WEIR_TESTS_MET_NAMES_H
#define WEIR_TESTS_MET_NAMES_H

#include <string.h>

#include <weir/store/base/hash.h>

#define MET_TYPE "account"
#define MET_KEY  "victim"
#define MET_X40  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define MET_TWIN                                               \
    MET_X40 MET_X40 MET_X40 "6206e33d00051945f8d97ef50027268c" \
                            "04ece0810035b7db58677dd6000b1abdxxxxxxxxxxxxxxxx"

/* As ids were made: the type, a 0 byte, the key. */
static inline uint64_t met_hash(const char *key) {
    char bytes[256] = MET_TYPE;
    memcpy(bytes + sizeof MET_TYPE, key, strlen(key));
    return weir_xxh3(bytes, sizeof MET_TYPE + strlen(key), 0);
}

#endif /* WEIR_TESTS_MET_NAMES_H */
