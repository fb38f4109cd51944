/* SPDX-License-Identifier: Apache-2.0 */
/* dead_letter.c - the bytes of a letter's header: the only file that knows them. */
#include <string.h>

#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

#define VERSION      1u
#define HEADER_BYTES 56u

enum { FLAG_CUT = 1, FLAG_NO_KEY = 2, FLAG_NO_VALUE = 4, FLAGS = 7 };

static size_t dead_letter_least(size_t a, size_t b) {
    return a < b ? a : b;
}

weir_err weir_dead_letter_write(const weir_dead_letter *letter, weir_buf *key, weir_record *recordp) {
    size_t length = dead_letter_least(letter->length, WEIR_DEAD_LETTER_BYTES_MAX);
    size_t key_length = dead_letter_least(letter->key_length, WEIR_DEAD_LETTER_BYTES_MAX / 2);
    size_t reason_length = dead_letter_least(letter->reason_length, UINT16_MAX);
    bool cut = letter->cut || length < letter->length || key_length < letter->key_length;
    WEIR_ASSERT(letter->source_length <= UINT16_MAX && letter->topic_length <= UINT16_MAX);
    uint8_t header[HEADER_BYTES] = {VERSION};
    header[1] = (uint8_t)((cut ? FLAG_CUT : 0) | (letter->key ? 0 : FLAG_NO_KEY) | (letter->bytes ? 0 : FLAG_NO_VALUE));
    header[2] = (uint8_t)letter->stream;
    weir_put_u32(header + 4, letter->partition);
    weir_put_u64(header + 8, letter->identity);
    weir_put_u64(header + 16, (uint64_t)letter->time_us);
    weir_put_u64(header + 24, letter->value_length);
    weir_put_u64(header + 32, letter->offset);
    weir_put_u16(header + 40, (uint16_t)letter->source_length);
    weir_put_u16(header + 42, (uint16_t)letter->topic_length);
    weir_put_u16(header + 44, (uint16_t)reason_length);
    weir_put_u32(header + 48, (uint32_t)key_length);
    weir_buf_clear(key);
    weir_buf_append(key, header, sizeof header);
    weir_buf_append(key, letter->source, letter->source_length);
    weir_buf_append(key, letter->topic, letter->topic_length);
    weir_buf_append(key, letter->reason, reason_length);
    if (key_length) weir_buf_append(key, letter->key, key_length);
    WEIR_ASSERT(key->failed || key->length == HEADER_BYTES + letter->source_length + letter->topic_length +
                                                  reason_length + key_length);
    *recordp = (weir_record){.key = key->bytes,
                             .key_length = key->length,
                             .value = letter->bytes ? letter->bytes : "",
                             .value_length = length};
    return weir_buf_err(key);
}

static weir_err dead_letter_damaged(const weir_record *record) {
    return WEIR_ERR(WEIR_ECORRUPT, "dead letter %llu cannot be read: its header is damaged",
                    (unsigned long long)record->offset);
}

weir_err weir_dead_letter_read(const weir_record *record, weir_dead_letter *letterp) {
    const uint8_t *header = record->key;
    *letterp = (weir_dead_letter){0};
    if (!header || record->key_length < HEADER_BYTES) return dead_letter_damaged(record);
    if (header[0] != VERSION) {
        return WEIR_ERR(WEIR_EVERSION, "dead letter %llu has version %u; this program reads version %u",
                        (unsigned long long)record->offset, header[0], VERSION);
    }
    size_t source_length = weir_get_u16(header + 40), topic_length = weir_get_u16(header + 42);
    size_t reason_length = weir_get_u16(header + 44), key_length = weir_get_u32(header + 48);
    size_t length = HEADER_BYTES + source_length + topic_length + reason_length + key_length;
    unsigned flags = header[1];
    if (flags > FLAGS || header[2] > WEIR_DEAD_LETTER_FILE || length != record->key_length)
        return dead_letter_damaged(record);
    const char *texts = (const char *)header + HEADER_BYTES, *reason = texts + source_length + topic_length;
    *letterp = (weir_dead_letter){
        .source = texts,
        .source_length = source_length,
        .topic = texts + source_length,
        .topic_length = topic_length,
        .reason = reason,
        .reason_length = reason_length,
        .stream = (weir_dead_letter_stream)header[2],
        .identity = weir_get_u64(header + 8),
        .offset = weir_get_u64(header + 32),
        .partition = weir_get_u32(header + 4),
        .cut = flags & FLAG_CUT,
        .time_us = (int64_t)weir_get_u64(header + 16),
        .key = flags & FLAG_NO_KEY ? NULL : reason + reason_length,
        .key_length = key_length,
        .bytes = flags & FLAG_NO_VALUE ? NULL : record->value,
        .length = record->value_length,
        .value_length = weir_get_u64(header + 24),
    };
    return WEIR_OK;
}
