/* SPDX-License-Identifier: Apache-2.0 */
/* stored.c - the only code that knows the bytes of stored names. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/stored.h>

size_t weir_stored_name_write(uint16_t vertex_type, int64_t time_us, const char *key, size_t key_length,
                              uint8_t value[WEIR_STORED_NAME_MAX]) {
    WEIR_ASSERT(key_length <= WEIR_KEY_MAX);
    weir_put_u16(value, vertex_type);
    weir_put_u64(value + 2, (uint64_t)time_us);
    memcpy(value + WEIR_STORED_NAME_PREFIX, key, key_length);
    return WEIR_STORED_NAME_PREFIX + key_length;
}

bool weir_stored_name_read(const void *value, size_t length, uint16_t *vertex_typep, int64_t *time_usp,
                           const char **keyp, size_t *key_lengthp) {
    const uint8_t *bytes = value;
    if (length < WEIR_STORED_NAME_PREFIX || length > WEIR_STORED_NAME_MAX) return false;
    *vertex_typep = weir_get_u16(bytes);
    *time_usp = (int64_t)weir_get_u64(bytes + 2);
    *keyp = (const char *)bytes + WEIR_STORED_NAME_PREFIX;
    *key_lengthp = length - WEIR_STORED_NAME_PREFIX;
    return true;
}
