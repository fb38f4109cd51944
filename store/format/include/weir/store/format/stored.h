/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.h - the values behind the keys of key.h, little-endian.
 *
 *   'E' edge      row of the relation's features; empty for none or a deletion
 *   'F' features  vertex type 2, row of its features
 *   'I' event     empty
 *   'K' put       empty
 *   'L' label     row with the label's one value
 *   'N' name      vertex type 2, time of a put that carried it 8, key
 *   'O' offset    first offset that is not in the store yet 8, then the clock of the partition there (event_clock.h)
 *   'P' newest    of the shard: newest event time 8 | watermark 8 | its turn 8 | of the last trim: watermark 8 | time
 *                 from which all is kept 8
 *   'T' deleted   empty
 *   'V' bundle    records, see bundle.h
 *
 * Every function is [any].
 */
#ifndef WEIR_STORE_FORMAT_STORED_H
#define WEIR_STORE_FORMAT_STORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/format/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_STORED_FEATURES_PREFIX 2u
#define WEIR_STORED_NAME_PREFIX     10u
#define WEIR_STORED_NAME_MAX        (WEIR_STORED_NAME_PREFIX + WEIR_KEY_MAX)

size_t weir_stored_name_write(uint16_t vertex_type, int64_t time_us, const char *key, size_t key_length,
                              uint8_t value[WEIR_STORED_NAME_MAX]);
/* *keyp is borrowed from value; false: damaged. */
bool weir_stored_name_read(const void *value, size_t length, uint16_t *vertex_typep, int64_t *time_usp,
                           const char **keyp, size_t *key_lengthp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_STORED_H */
