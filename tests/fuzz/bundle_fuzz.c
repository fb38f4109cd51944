/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become records whose rows lie within them, or are damaged. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <weir/store/base/hash.h>
#include <weir/store/format/bundle.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const uint8_t *value = data + 1;
    weir_bundle_key key = {.part = data[0] & 3 ? WEIR_BUNDLE_PART(data[0] >> 2) : WEIR_BUNDLE_NAMED,
                           .newest_us = 1700000000000000,
                           .hash = weir_xxh3(value, size - 1, 0)};
    weir_bundle_reader reader;
    weir_entry e;
    uint64_t sum = 0, count = 0;
    (void)weir_bundle_check(&key, value, size - 1);
    if (!weir_bundle_open(&reader, &key, value, size - 1)) return 0;
    while (weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY) {
        if (e.row_length && (e.row < value || e.row + e.row_length > data + size)) abort();
        sum += e.row_length ? weir_xxh3(e.row, e.row_length, 0) : e.event;
        if (++count > size) abort(); /* each takes a byte at least */
    }
    return sum == 1 ? -1 : 0;
}
