/* SPDX-License-Identifier: Apache-2.0 */
/* dlq_list.c - `weir ingest dlq list` and `show`. */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/clock.h>

#include "dlq_private.h"

#define OUTPUT_BYTES 65536u

typedef struct dlq_listing {
    bool json, all;
    uint64_t left;
    weir_buf out;
} dlq_listing;

/* Bytes as RFC 4648 writes them: a payload need not be text. */
static void dlq_base64(weir_buf *out, const uint8_t *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                         (uint32_t)(left > 2 ? bytes[i + 2] : 0);
        const char text[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                              left > 2 ? digits[group & 63] : '='};
        weir_buf_append(out, text, sizeof text);
    }
}

static void dlq_key_time(weir_json *json, const char *name, int64_t time_us) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_json_key(json, name);
    if (time_us) weir_time_format(time_us, text);
    weir_json_string(json, time_us ? text : NULL);
}

static void dlq_key_bytes(weir_json *json, const char *name, const void *bytes, size_t length) {
    weir_json_key(json, name);
    if (!bytes) {
        weir_json_null(json);
        return;
    }
    weir_buf text = {0};
    dlq_base64(&text, bytes, length);
    weir_json_text(json, text.bytes ? text.bytes : "", text.length);
    if (text.failed) json->buf->failed = text.failed;
    weir_buf_free(&text);
}

/* The payload only where it is asked for: a list may be seen by others. */
static void dlq_print_json(weir_buf *out, const weir_cmd_letter *l, bool payload) {
    static const char *const streams[] = {"eventlog", "kafka", "file"};
    const weir_dead_letter *d = &l->letter;
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_u64(&json, "number", l->number);
    dlq_key_time(&json, "set_aside", l->put_us);
    dlq_key_time(&json, "replayed", l->replayed_us);
    weir_json_key_text(&json, "source", d->source, d->source_length);
    weir_json_key_text(&json, "topic", d->topic, d->topic_length);
    weir_json_key_string(&json, "stream", streams[d->stream]);
    weir_json_key_u64(&json, "partition", d->partition);
    weir_json_key_u64(&json, "offset", d->offset);
    dlq_key_time(&json, "time", d->time_us);
    weir_json_key_text(&json, "reason", d->reason, d->reason_length);
    weir_json_key_u64(&json, "length", d->value_length);
    weir_json_key_bool(&json, "cut", d->cut);
    if (payload) dlq_key_bytes(&json, "key_base64", d->key, d->key_length);
    if (payload) dlq_key_bytes(&json, "value_base64", d->bytes, d->length);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

static void dlq_print_line(weir_buf *out, const weir_cmd_letter *l) {
    char text[WEIR_TIME_TEXT_MAX];
    const weir_dead_letter *d = &l->letter;
    weir_time_format(l->put_us, text);
    weir_buf_printf(out, "%8" PRIu64 "  %.19sZ  %-16.*s  %9" PRIu32 "  %10" PRIu64 "  %8" PRIu64 "  %-8s  %.*s\n",
                    l->number, text, (int)d->source_length, d->source, d->partition, d->offset, d->value_length,
                    l->replayed_us ? "yes" : "no", (int)d->reason_length, d->reason);
}

static weir_err dlq_flush(dlq_listing *list, size_t above) {
    weir_err err = weir_buf_err(&list->out);
    if (err || list->out.length <= above) return err;
    err = weir_cli_output(list->out.bytes, list->out.length);
    weir_buf_clear(&list->out);
    return err;
}

static weir_err dlq_list_letter(void *context, const weir_cmd_letter *letter) {
    dlq_listing *list = context;
    if (list->left == 0 || (letter->replayed_us && !list->all)) return WEIR_OK;
    list->left--;
    if (list->json) {
        dlq_print_json(&list->out, letter, false);
    } else {
        dlq_print_line(&list->out, letter);
    }
    return dlq_flush(list, OUTPUT_BYTES);
}

static weir_err dlq_list(weir_cli *cli) {
    dlq_listing list = {.json = weir_cli_given(cli, "json"), .all = weir_cli_given(cli, "all"), .left = UINT64_MAX};
    weir_cmd_letters letters;
    weir_err err = weir_cmd_letters_open(cli, &letters);
    if (err) return err;
    if (!list.json) {
        weir_buf_printf(&list.out, "%8s  %-20s  %-16s  %9s  %10s  %8s  %-8s  %s\n", "NUMBER", "SET ASIDE", "SOURCE",
                        "PARTITION", "OFFSET", "BYTES", "REPLAYED", "REASON");
    }
    err = weir_cmd_letters_filter(cli, &letters);
    if (!err) err = weir_cli_u64(cli, "limit", 1, UINT64_MAX, &list.left);
    if (!err) err = weir_cmd_letters_walk(&letters, dlq_list_letter, &list);
    if (!err) err = dlq_flush(&list, 0);
    weir_cmd_letters_close(&letters);
    weir_buf_free(&list.out);
    return err;
}

static const weir_option list_options[] = {
    WEIR_CMD_DLQ_PATH,
    WEIR_CMD_DLQ_FILTERS,
    {"all", 'a', NULL, "those that were replayed too", NULL},
    {"limit", 'n', "N", "at most so many (default: all)", NULL},
    {"json", 'j', NULL, "one JSON object a line", NULL},
    {0},
};

const weir_command weir_cmd_dlq_list = {
    .name = "list",
    .summary = "which messages were set aside, where they stand and why",
    .description = "Prints no payload: that is what `weir ingest dlq show` is for.",
    .example = "weir ingest dlq list --source payments --reason amount\nweir ingest dlq list --all --json",
    .options = list_options,
    .run = dlq_list,
};

/* --- show -------------------------------------------------------------------------------------------------------- */

static weir_err dlq_show_letter(void *context, const weir_cmd_letter *letter) {
    dlq_listing *list = context;
    if (!list->json)
        return letter->letter.length ? weir_cli_output(letter->letter.bytes, letter->letter.length) : WEIR_OK;
    dlq_print_json(&list->out, letter, true);
    return dlq_flush(list, 0);
}

static weir_err dlq_show(weir_cli *cli) {
    dlq_listing list = {.json = weir_cli_given(cli, "json")};
    weir_cmd_letters letters;
    uint64_t number;
    weir_err err = weir_cmd_letter_number(cli, 0, &number);
    if (err) return err;
    err = weir_cmd_letters_open(cli, &letters);
    if (err) return err;
    err = weir_cmd_letters_one(&letters, number, dlq_show_letter, &list);
    weir_cmd_letters_close(&letters);
    weir_buf_free(&list.out);
    return err;
}

static const weir_option show_options[] = {
    WEIR_CMD_DLQ_PATH,
    {"json", 'j', NULL, "all that is known of it as one JSON object, the bytes in base64", NULL},
    {0},
};

const weir_command weir_cmd_dlq_show = {
    .name = "show",
    .summary = "the original bytes of one message",
    .positional = "NUMBER",
    .positional_min = 1,
    .positional_max = 1,
    .description = "Writes exactly the bytes that came, without a newline of its own.",
    .example = "weir ingest dlq show 12 > message.json\nweir ingest dlq show 12 --json",
    .options = show_options,
    .run = dlq_show,
};
