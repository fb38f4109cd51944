/* SPDX-License-Identifier: Apache-2.0 */
/* positions.h - what a running server has written down of how it would know a log again: its file of positions. */
#ifndef WEIR_TEST_KAFKA_POSITIONS_H
#define WEIR_TEST_KAFKA_POSITIONS_H

#include <stdint.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>

#include "weir_test.h"

#define POSITIONS_WAIT_MS 60000

/* How many partitions are there up to their ends, with a record to know them by; the file is as positions.h of the
 * pipeline has it. */
static inline int positions_known(const char *path, const uint64_t *ends, int partitions) {
    enum { HEADER = 32, ROW = 96 };
    char *bytes;
    size_t length;
    int known = 0;
    if (weir_file_load(path, 1u << 20, &bytes, &length)) return 0; /* it is written a moment after the start */
    for (size_t at = HEADER; at + ROW <= length; at += ROW) {
        const uint8_t *row = (const uint8_t *)bytes + at;
        uint32_t partition = weir_get_u32(row + 4);
        bool has_check = weir_get_u64(row + 24) != 0;
        known += has_check && partition < (uint32_t)partitions && weir_get_u64(row + 16) >= ends[partition];
    }
    weir_free(bytes);
    return known;
}

/* Until all of a topic's partitions are; no other topic of the server has a record. */
static inline void positions_await(const uint64_t *ends, int partitions) {
    const char *path = weir_test_path("data/store/positions");
    for (int waited_ms = 0; positions_known(path, ends, partitions) < partitions; waited_ms += 10) {
        if (waited_ms >= POSITIONS_WAIT_MS)
            fail_msg("the last records of %d partitions are not in %s", partitions, path);
        usleep(10000);
    }
}

#endif /* WEIR_TEST_KAFKA_POSITIONS_H */
