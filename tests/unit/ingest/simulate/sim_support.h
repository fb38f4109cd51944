/* SPDX-License-Identifier: Apache-2.0 */
/* sim_support.h - messages of a generator, read as a stranger would read them. */
#ifndef WEIR_TESTS_SIM_SUPPORT_H
#define WEIR_TESTS_SIM_SUPPORT_H

#include "weir_test.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#define SIM_FIELDS_MAX 16

/* One field of a flat JSON object: text without its quotes. */
typedef struct sim_field {
    char name[24];
    char text[40];
    bool quoted;
} sim_field;

typedef struct sim_object {
    sim_field fields[SIM_FIELDS_MAX];
    size_t count;
} sim_object;

static inline const char *sim_copy_until(const char *p, const char *end, const char *stop, char *out, size_t size) {
    size_t length = 0;
    for (; p < end && !strchr(stop, *p); p++) {
        assert_true(length + 1 < size);
        assert_true(*p >= ' ' && *p < 127 && *p != '\\');
        out[length++] = *p;
    }
    out[length] = '\0';
    assert_true(length > 0 && p < end);
    return p;
}

static inline const char *sim_expect(const char *p, const char *end, char c) {
    assert_true(p < end);
    assert_int_equal(*p, c);
    return p + 1;
}

/* Fails unless the bytes are one flat JSON object of texts and plain numbers, without blanks, no field twice. */
static inline void sim_parse(const char *value, size_t length, sim_object *object) {
    const char *p = value;
    const char *end = value + length;
    object->count = 0;
    p = sim_expect(p, end, '{');
    do {
        assert_true(object->count < SIM_FIELDS_MAX);
        sim_field *field = &object->fields[object->count++];
        p = sim_copy_until(sim_expect(p, end, '"'), end, "\"", field->name, sizeof field->name);
        p = sim_expect(sim_expect(p, end, '"'), end, ':');
        field->quoted = *p == '"';
        p = sim_copy_until(p + field->quoted, end, field->quoted ? "\"" : ",}", field->text, sizeof field->text);
        if (field->quoted) p = sim_expect(p, end, '"');
        char *rest = NULL;
        if (!field->quoted) assert_true(strtod(field->text, &rest) > 0 && *rest == '\0');
        for (size_t i = 0; i + 1 < object->count; i++)
            assert_string_not_equal(object->fields[i].name, field->name);
    } while (p < end && *p++ == ',');
    assert_ptr_equal(p, end);
    assert_int_equal(p[-1], '}');
}

/* NULL if there is none. */
static inline const char *sim_field_of(const sim_object *object, const char *name) {
    for (size_t i = 0; i < object->count; i++)
        if (strcmp(object->fields[i].name, name) == 0) return object->fields[i].text;
    return NULL;
}

static inline void sim_read(const weir_simulate_message *message, sim_object *object) {
    sim_parse(message->value, message->value_length, object);
}

/* The number behind the letter of an id. */
static inline uint64_t sim_number(const char *id) {
    assert_non_null(id);
    return strtoull(id + 1, NULL, 10);
}

static inline weir_simulate *sim_payments(uint32_t accounts, uint64_t seed) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = accounts;
    opts.seed = seed;
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    return sim;
}

static inline weir_simulate *sim_clicks(uint32_t people, uint32_t items, uint64_t seed) {
    weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
    opts.people = people;
    opts.items = items;
    opts.seed = seed;
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_clicks_open(&opts, &sim));
    return sim;
}

/* The largest distance between two cumulated histograms. */
static inline double sim_distance(const double *a, const double *b, size_t bins) {
    double total_a = 0, total_b = 0, sum_a = 0, sum_b = 0, most = 0;
    for (size_t i = 0; i < bins; i++) {
        total_a += a[i];
        total_b += b[i];
    }
    for (size_t i = 0; i < bins; i++) {
        sum_a += a[i] / total_a;
        sum_b += b[i] / total_b;
        most = fmax(most, fabs(sum_a - sum_b));
    }
    return most;
}

/* Its next messages never go back in time, nor before first_us. */
static inline void sim_check_order(weir_simulate *sim, int64_t first_us, int count) {
    for (int i = 0; i < count; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        assert_true(m.time_us >= first_us);
        first_us = m.time_us;
    }
}

/* A hash over the topics, keys and bytes of the next count messages. */
static inline uint64_t sim_hash(weir_simulate *sim, uint64_t count) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < count; i++) {
        weir_simulate_message message;
        weir_simulate_next(sim, &message);
        hash = weir_xxh3(message.value, message.value_length, hash + (uint64_t)message.topic);
        hash = weir_xxh3(message.key, message.key_length, hash);
    }
    return hash;
}

/* Compares the next messages with the lines of tests/golden/simulate/NAME.jsonl, then a hash of many more with the last
 * line of the file, "COUNT HASH". WEIR_TEST_GOLDEN_WRITE=1 writes the file instead. */
static inline void sim_golden(weir_simulate *sim, const char *name, uint64_t lines, uint64_t count) {
    char path[4096], last[64];
    snprintf(path, sizeof path, "%s/tests/golden/simulate/%s.jsonl", getenv("WEIR_SOURCE_DIR"), name);
    char *text = weir_calloc(lines + 1, 512);
    assert_non_null(text);
    size_t length = 0;
    for (uint64_t i = 0; i < lines; i++) {
        weir_simulate_message message;
        weir_simulate_next(sim, &message);
        length += (size_t)sprintf(text + length, "%.*s\n", (int)message.value_length, message.value);
    }
    snprintf(last, sizeof last, "%" PRIu64 " %016" PRIx64 "\n", count, sim_hash(sim, count));
    memcpy(text + length, last, strlen(last) + 1);
    length += strlen(last);
    if (getenv("WEIR_TEST_GOLDEN_WRITE")) assert_ok(weir_file_replace(path, text, length));
    char *golden = NULL;
    size_t golden_length = 0;
    assert_ok(weir_file_load(path, 1u << 20, &golden, &golden_length));
    assert_string_equal(text, golden);
    assert_int_equal(length, golden_length);
    weir_free(golden);
    weir_free(text);
}

#endif /* WEIR_TESTS_SIM_SUPPORT_H */
