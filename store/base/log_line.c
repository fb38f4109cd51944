/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_line.c - composes a line in place.
 *
 * The line is a weir_buf over the caller's array whose limit is below the array's size, so that it never allocates and
 * keeps room for the end. What does not fit is taken back as a whole, fields before their names: a cut line is valid.
 */
#include "log_line.h"

#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/thread.h>
#include <weir/store/base/utf8.h>

#define JSON_CUT_END  ",\"cut\":true}\n"
#define HUMAN_CUT_END " …\n"
#define END_MAX       32u /* bytes kept free for the end of a line */
#define TEXT_SHARE    16u /* a text that is cut keeps at least this much, or is left out */

typedef struct line_writer {
    weir_buf buf;
    weir_json json;
    bool human;
    bool cut;
} line_writer;

/* --- text for people ------------------------------------------------------------------------------------------ */

static void line_write_visible(weir_buf *buf, const char *text, size_t length, bool quoted) {
    bool valid;
    for (size_t taken = 0; length > 0; text += taken, length -= taken) {
        uint8_t byte = (uint8_t)text[0];
        taken = weir_utf8_take(text, length, &valid);
        /* It could move the cursor or worse: it is shown as its code.  C1 controls are U+0080 to U+009F. */
        bool control = byte < 0x20 || byte == 0x7F || (taken == 2 && byte == 0xC2 && (uint8_t)text[1] < 0xA0);
        if (!valid) {
            weir_buf_text(buf, WEIR_UTF8_REPLACEMENT);
        } else if (*text == '\n') {
            weir_buf_text(buf, "\\n");
        } else if (quoted && *text == '"') {
            weir_buf_text(buf, "\\\"");
        } else if (control) {
            weir_buf_printf(buf, "\\x%02x", (unsigned)(uint8_t)text[taken - 1]);
        } else {
            weir_buf_append(buf, text, taken);
        }
    }
}

/* --- pieces that fit or are taken back ------------------------------------------------------------------------- */

/* text NULL: the field's own value. */
static void line_write_value(line_writer *line, const weir_log_field *field, const char *text, size_t text_bytes) {
    weir_json plain = weir_json_begin(&line->buf);
    weir_json *json = line->human ? &plain : &line->json;
    switch (field->type) {
    case WEIR_FIELD_I64:
        weir_json_i64(json, field->value.i64);
        return;
    case WEIR_FIELD_U64:
        weir_json_u64(json, field->value.u64);
        return;
    case WEIR_FIELD_F64:
        weir_json_f64(json, field->value.f64);
        return;
    case WEIR_FIELD_TEXT:
        break;
    }
    if (!text) {
        weir_json_null(json);
    } else if (line->human) {
        bool quoted = text_bytes == 0 || memchr(text, ' ', text_bytes) || memchr(text, '"', text_bytes) ||
                      memchr(text, '=', text_bytes);
        if (quoted) weir_buf_byte(&line->buf, '"');
        line_write_visible(&line->buf, text, text_bytes, quoted);
        if (quoted) weir_buf_byte(&line->buf, '"');
    } else {
        weir_json_text(json, text, text_bytes);
    }
}

/* True if it fitted; otherwise the line is as it was. */
static bool line_try_field(line_writer *line, const weir_log_field *field, const char *text, size_t text_bytes) {
    weir_json json = line->json;
    size_t length = line->buf.length;
    if (line->human) {
        weir_buf_byte(&line->buf, ' ');
        weir_buf_text(&line->buf, field->name);
        weir_buf_byte(&line->buf, '=');
    } else {
        weir_json_key(&line->json, field->name);
    }
    line_write_value(line, field, text, text_bytes);
    if (!line->buf.failed) return true;
    line->json = json;
    line->buf.length = length;
    line->buf.failed = WEIR_CODE_OK;
    return false;
}

static void line_write_field(line_writer *line, const weir_log_field *field) {
    const char *text = field->type == WEIR_FIELD_TEXT ? field->value.text : NULL;
    size_t length = text ? strlen(text) : 0;
    if (line_try_field(line, field, text, length)) return;
    line->cut = true;
    if (length > line->buf.length_max) length = line->buf.length_max;
    while (length >= TEXT_SHARE) {
        length /= 2;
        while (length > 0 && ((uint8_t)text[length] & 0xC0) == 0x80) /* no half of a character at the end */
            length--;
        if (line_try_field(line, field, text, length)) return;
    }
}

static void line_write_text(line_writer *line, const char *name, const char *text) {
    weir_log_field field = WEIR_TEXT(name, text);
    line_write_field(line, &field);
}

/* --- the line --------------------------------------------------------------------------------------------------- */

size_t weir_log_line(const weir_log_entry *entry, weir_log_look look, char line[WEIR_LOG_LINE_MAX]) {
    line_writer writer = {
        .buf = {.bytes = line, .capacity = WEIR_LOG_LINE_MAX - END_MAX + 1, .length_max = WEIR_LOG_LINE_MAX - END_MAX},
        .human = look != WEIR_LOOK_JSON,
    };
    static const char *const level_names[] = {"debug", "info", "warn", "error"};
    static const char *const labels[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};
    static const char *const colours[] = {"\033[2m", "\033[32m", "\033[33m", "\033[1;31m"};
    bool coloured = look == WEIR_LOOK_COLOURED;
    char time[WEIR_TIME_TEXT_MAX];
    weir_time_format(entry->wall_us, time);
    writer.json = weir_json_begin(&writer.buf);
    if (writer.human) { /* 10:00:00.123Z WARN  cut a torn tail bytes=12 [eventlog.tail_cut] */
        weir_buf_printf(&writer.buf, "%.12sZ %s%s%s ", time + strlen("2026-11-21T"),
                        coloured ? colours[entry->level] : "", labels[entry->level], coloured ? "\033[0m" : "");
        line_write_visible(&writer.buf, entry->message, strlen(entry->message), false);
    } else {
        weir_json_object(&writer.json);
        line_write_text(&writer, "ts", time);
        line_write_text(&writer, "level", level_names[entry->level]);
        line_write_text(&writer, "event", entry->event);
        line_write_text(&writer, "msg", entry->message);
        line_write_text(&writer, "thread", weir_thread_name());
    }
    for (size_t i = 0; i < entry->field_count; i++)
        line_write_field(&writer, &entry->fields[i]);
    if (writer.human) weir_buf_printf(&writer.buf, coloured ? " \033[2m[%s]\033[0m" : " [%s]", entry->event);

    WEIR_ASSERT(writer.buf.bytes == line && writer.buf.length <= WEIR_LOG_LINE_MAX - END_MAX);
    const char *end = writer.human ? "\n" : "}\n";
    if (writer.cut) end = writer.human ? HUMAN_CUT_END : JSON_CUT_END;
    memcpy(line + writer.buf.length, end, strlen(end));
    return writer.buf.length + strlen(end);
}
