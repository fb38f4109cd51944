/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - the only code that knows the bytes of a row. */
#include <math.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/row.h>

#define FORMAT       1u
#define HEADER_BYTES 3u

static size_t row_presence_bytes(size_t count) {
    return (count + 7) / 8;
}

size_t weir_row_size(const weir_value_kind *kinds, const weir_value *values, size_t count) {
    size_t size = HEADER_BYTES + row_presence_bytes(count);
    WEIR_ASSERT(count <= WEIR_ROW_FEATURES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (values[i].present) size += kinds[i] == WEIR_VALUE_CATEGORY ? 1u + values[i].text_length : 8u;
    }
    return size;
}

size_t weir_row_write(const weir_value_kind *kinds, const weir_value *values, size_t count, uint8_t *row) {
    uint8_t *presence = row + HEADER_BYTES, *at = presence + row_presence_bytes(count);
    WEIR_ASSERT(count <= WEIR_ROW_FEATURES_MAX);
    row[0] = FORMAT;
    weir_put_u16(row + 1, (uint16_t)count);
    memset(presence, 0, row_presence_bytes(count));
    for (size_t i = 0; i < count; i++) {
        if (!values[i].present) continue;
        presence[i / 8] = (uint8_t)(presence[i / 8] | 1u << i % 8);
        const weir_value *value = &values[i];
        if (kinds[i] == WEIR_VALUE_CATEGORY) {
            *at = value->text_length;
            memcpy(at + 1, value->text, value->text_length);
            at += 1 + value->text_length;
            continue;
        }
        uint64_t bits = (uint64_t)value->time_us;
        if (kinds[i] == WEIR_VALUE_NUMBER) {
            WEIR_ASSERT(isfinite(value->number));
            memcpy(&bits, &value->number, 8);
        }
        weir_put_u64(at, bits);
        at += 8;
    }
    WEIR_ASSERT((size_t)(at - row) <= WEIR_ROW_BYTES_MAX);
    return (size_t)(at - row);
}

/* Walks the row as read does, but trusts nothing. */
weir_err weir_row_check(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length) {
    if (length < HEADER_BYTES || row[0] != FORMAT) {
        return WEIR_ERR(WEIR_ECORRUPT, "a row of %zu bytes does not begin as one of format %u", length, FORMAT);
    }
    size_t stored = weir_get_u16(row + 1), at = HEADER_BYTES + row_presence_bytes(stored);
    if (stored > count || at > length) {
        return WEIR_ERR(WEIR_ECORRUPT, "a row of %zu bytes holds %zu features, its type has %zu", length, stored,
                        count);
    }
    for (size_t i = 0; i < row_presence_bytes(stored) * 8; i++) {
        if (!(row[HEADER_BYTES + i / 8] >> i % 8 & 1)) continue;
        size_t size = 8;
        if (i >= stored) return WEIR_ERR(WEIR_ECORRUPT, "a row has feature %zu of %zu", i, stored);
        if (kinds[i] == WEIR_VALUE_CATEGORY) size = at < length ? 1u + row[at] : 1u;
        if (size > length - at) return WEIR_ERR(WEIR_ECORRUPT, "a row ends inside feature %zu", i);
        if (kinds[i] == WEIR_VALUE_NUMBER) {
            double number;
            uint64_t bits = weir_get_u64(row + at);
            memcpy(&number, &bits, 8);
            if (!isfinite(number)) return WEIR_ERR(WEIR_ECORRUPT, "feature %zu of a row is not finite", i);
        }
        at += size;
    }
    if (at != length) return WEIR_ERR(WEIR_ECORRUPT, "a row has %zu bytes behind its end", length - at);
    return WEIR_OK;
}

size_t weir_row_fill(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length,
                     weir_value *values) {
    size_t stored = weir_get_u16(row + 1), present = 0;
    const uint8_t *at = row + HEADER_BYTES + row_presence_bytes(stored);
    WEIR_ASSERT(stored <= count && at <= row + length);
    for (size_t i = 0; i < count; i++) {
        bool here = i < stored && (row[HEADER_BYTES + i / 8] >> i % 8 & 1);
        if (here) {
            weir_value value = {.present = true};
            if (kinds[i] == WEIR_VALUE_CATEGORY) {
                value.text_length = *at;
                value.text = (const char *)at + 1;
                at += 1 + value.text_length;
            } else {
                uint64_t bits = weir_get_u64(at);
                if (kinds[i] == WEIR_VALUE_NUMBER) memcpy(&value.number, &bits, 8);
                if (kinds[i] == WEIR_VALUE_TIME) value.time_us = (int64_t)bits;
                at += 8;
            }
            if (!values[i].present) values[i] = value;
        }
        present += values[i].present;
    }
    WEIR_ASSERT(at == row + length);
    return present;
}

void weir_row_read(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length, weir_value *values) {
    memset(values, 0, count * sizeof *values);
    weir_row_fill(kinds, count, row, length, values);
}
