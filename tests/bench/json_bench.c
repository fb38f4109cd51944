/* SPDX-License-Identifier: Apache-2.0 */
/* json_bench.c - writing JSON, against copying bytes into the same buffer. */
#include <string.h>

#include <weir/store/base/buf.h>

#include "bench.h"

typedef struct json_context {
    weir_buf out;
    uint64_t repeats;
    const char *text; /* what is written, so many times */
    size_t text_bytes;
} json_context;

static weir_err run_copy(void *context, uint64_t round, weir_bench_sample *samplep) {
    json_context *c = context;
    (void)round;
    weir_buf_clear(&c->out);
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++)
        weir_buf_append(&c->out, c->text, c->text_bytes);
    weir_bench_stop(samplep, (double)c->out.length);
    return weir_buf_err(&c->out);
}

static weir_err run_text(void *context, uint64_t round, weir_bench_sample *samplep) {
    json_context *c = context;
    weir_json json = weir_json_begin(&c->out);
    (void)round;
    weir_buf_clear(&c->out);
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++)
        weir_json_text(&json, c->text, c->text_bytes);
    weir_bench_stop(samplep, (double)c->out.length);
    return weir_buf_err(&c->out);
}

static void write_payment(weir_buf *out, uint64_t i) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "id");
    weir_json_u64(&json, 123456789012 + i);
    weir_json_key(&json, "time");
    weir_json_string(&json, "2026-11-21T10:00:00.123456Z");
    weir_json_key(&json, "card");
    weir_json_string(&json, "c-0012345678");
    weir_json_key(&json, "merchant");
    weir_json_string(&json, "m-000123");
    weir_json_key(&json, "device");
    weir_json_string(&json, "d-1234567890ab");
    weir_json_key(&json, "amount");
    weir_json_f64(&json, (double)(i % 100000) / 100);
    weir_json_key(&json, "currency");
    weir_json_string(&json, "EUR");
    weir_json_key(&json, "country");
    weir_json_string(&json, "DE");
    weir_json_key(&json, "channel");
    weir_json_string(&json, "web");
    weir_json_key(&json, "accepted");
    weir_json_bool(&json, true);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

static weir_err run_lines(void *context, uint64_t round, weir_bench_sample *samplep) {
    json_context *c = context;
    weir_buf_clear(&c->out);
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++)
        write_payment(&c->out, i + round);
    weir_bench_stop(samplep, (double)c->repeats);
    return weir_buf_err(&c->out);
}

static weir_err run_numbers(void *context, uint64_t round, weir_bench_sample *samplep) {
    json_context *c = context;
    weir_json json = weir_json_begin(&c->out);
    weir_buf_clear(&c->out);
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++)
        weir_json_f64(&json, 1 / (double)(i + round + 3));
    weir_bench_stop(samplep, (double)c->repeats);
    return weir_buf_err(&c->out);
}

/* 4096 bytes of each kind of text. */
static const char *make_text(const char *pattern) {
    static char texts[3][4096 + 1];
    static unsigned used;
    char *text = texts[used++];
    size_t length = strlen(pattern);
    for (size_t i = 0; i < 4096; i++)
        text[i] = pattern[i % length];
    return text;
}

static weir_err run(weir_cli *cli) {
    uint64_t n = weir_bench_quick(cli) ? 10 : 10000;
    json_context copy = {.repeats = n, .text = make_text("a"), .text_bytes = 4096};
    json_context plain = {.repeats = n, .text = copy.text, .text_bytes = 4096};
    json_context quotes = {.repeats = n, .text = make_text("nineteen letters...\""), .text_bytes = 4096};
    json_context cyrillic = {.repeats = n, .text = make_text("\xD0\xB0"), .text_bytes = 4096};
    json_context words = {.repeats = n * 100, .text = copy.text, .text_bytes = 20};
    json_context lines = {.repeats = n * 10};
    json_context numbers = {.repeats = n * 10};
    json_context *const contexts[] = {&copy, &plain, &quotes, &cyrillic, &words, &lines, &numbers};
    const weir_bench_line table[] = {
        {"copy", "MB/s", 1e-6, NULL, run_copy, &copy},
        {"plain text", "MB/s", 1e-6, "copy", run_text, &plain},
        {"words of 20 letters", "MB/s", 1e-6, "copy", run_text, &words},
        {"text with a quote in 20 letters", "MB/s", 1e-6, "copy", run_text, &quotes},
        {"Cyrillic text", "MB/s", 1e-6, "copy", run_text, &cyrillic},
        {"payments of 207 bytes", "k lines/s", 1e-3, NULL, run_lines, &lines},
        {"numbers of 17 digits", "k/s", 1e-3, NULL, run_numbers, &numbers},
    };
    weir_err err = weir_bench_run(cli, "json", table, sizeof table / sizeof table[0]);
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++)
        weir_buf_free(&contexts[i]->out);
    return err;
}

const weir_command weir_bench_json = {
    .name = "json",
    .summary = "the JSON writer: text, lines and numbers",
    .example = "weir bench json --rounds 5",
    .options = weir_bench_options,
    .run = run,
};
