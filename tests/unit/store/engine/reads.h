/* SPDX-License-Identifier: Apache-2.0 */
/* reads.h - one value of an engine, and all of its keys. */
#ifndef WEIR_ENGINE_READS_H
#define WEIR_ENGINE_READS_H

#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/engine/engine.h>

/* Replaces what value holds; *foundp says whether there was one. */
static inline weir_err engine_value(weir_engine *engine, const void *key, size_t length, weir_buf *value,
                                    bool *foundp) {
    weir_engine_cursor *cursor;
    size_t key_length, value_length;
    *foundp = false;
    weir_buf_clear(value);
    weir_err err = weir_engine_cursor_open(engine, WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    weir_engine_cursor_seek(cursor, key, length);
    if (weir_engine_cursor_valid(cursor)) {
        const void *at = weir_engine_cursor_key(cursor, &key_length);
        *foundp = key_length == length && memcmp(at, key, length) == 0;
        const void *bytes = weir_engine_cursor_value(cursor, &value_length);
        if (*foundp) weir_buf_append(value, bytes, value_length);
    }
    err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err ? err : weir_buf_err(value);
}

/* Reads every block with its checksum. */
static inline weir_err count_keys(weir_engine *engine, uint64_t *keysp) {
    weir_engine_cursor *cursor;
    *keysp = 0;
    weir_err err = weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    for (weir_engine_cursor_seek(cursor, "", 0); weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor))
        ++*keysp;
    err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err;
}

#endif /* WEIR_ENGINE_READS_H */
