/* SPDX-License-Identifier: Apache-2.0 */
/* learn_fixture.h - small snapshots to learn from: pays of people, some of them bad, with leaks planted on demand. */
#ifndef LEARN_FIXTURE_H
#define LEARN_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>
#include <weir/store/snapshot/snapshot.h>

#include "submit.h"
#include "weir_test.h"

#define LEARN_START_US 1700000000000000ll
#define LEARN_SECOND   1000000ll
#define LEARN_RIPE_US  (3600 * LEARN_SECOND)
#define LEARN_SHARDS   2u

/* Types, relations, labels and tasks by their ids, which are their places in the text. */
enum { LEARN_PAY, LEARN_WHO };
enum { LEARN_BY, LEARN_AT, LEARN_KNOWS }; /* the last two with pairs */
enum { LEARN_BAD, LEARN_RANK };
enum { LEARN_TASK_BAD, LEARN_TASK_RANK, LEARN_TASK_SAID };

#define LEARN_SCHEMA_WITH(relations, aggregates)                                                                 \
    "version: 1\n"                                                                                               \
    "name: learnt\n"                                                                                             \
    "vertices:\n"                                                                                                \
    "  pay: {features: {x: {kind: number, normalise: standard}}}\n"                                              \
    "  who: {features: {hint: {kind: number, normalise: standard}}}\n"                                           \
    "relations:\n"                                                                                               \
    "  by: {from: pay, to: who, features: {w: {kind: number, normalise: standard}}}\n" relations "aggregates:\n" \
    "  pays_1d: {vertex: who, relation: by, function: count, window: 1d, normalise: log-standard}\n" aggregates  \
    "labels:\n"                                                                                                  \
    "  bad: {vertex: pay, values: [no, yes], absent: no, lag: 1h}\n"                                             \
    "  rank: {vertex: pay, values: [low, mid, high], lag: 1h}\n"                                                 \
    "tasks:\n"                                                                                                   \
    "  bad: {kind: classify, label: bad, positive: yes}\n"                                                       \
    "  rank: {kind: classify, label: rank, maturity: 1h, horizon: 30m}\n"                                        \
    "  said: {kind: classify, label: bad, positive: yes, at: label}\n"                                           \
    "sources:\n"                                                                                                 \
    "  s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}\n"

static const char learn_schema_text[] = LEARN_SCHEMA_WITH("", "");

/* A pay is at another one, too, and these two have met before or not. */
static const char learn_pair_schema_text[] =
    LEARN_SCHEMA_WITH("  at: {from: pay, to: who}\n"
                      "  knows: {from: who, to: who}\n",
                      "  met: {vertex: pay, between: [by, at], relation: knows, function: count, window: 1d}\n"
                      "  since: {vertex: pay, between: [by, at], relation: knows, function: since_first, window: 1d}\n"
                      "  near: {vertex: pay, end: at, through: [{relation: knows, direction: in}], relation: knows,\n"
                      "         direction: out, function: count, window: 1d, normalise: log-standard}\n");

/* Of the pays of somebody, how many were said to be bad, and when one was last judged. */
static const char learn_told_schema_text[] = LEARN_SCHEMA_WITH(
    "", "  bad_1d: {vertex: who, relation: by, function: count, label: bad, is: yes, window: 1d}\n"
        "  judged: {vertex: who, relation: by, function: since_last, label: bad, is: [no, yes], window: 2h}\n");

typedef struct learn_world {
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t offset;
    char store[4096];
} learn_world;

/* In the case's folder, another one each time. */
static inline const char *learn_path(const char *name) {
    static unsigned worlds;
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s%u", name, worlds++);
    return weir_test_path(numbered);
}

static inline void learn_open(learn_world *w, const char *schema_text, uint64_t seed) {
    const weir_graph_opts opts = {
        .shards = LEARN_SHARDS, .memory_bytes = 64u << 20, .create = true, .id_key = &weir_id_key_public};
    *w = (learn_world){.rng = weir_rng_stream(seed, 5, 0)};
    assert_ok(weir_schema_parse("learnt", schema_text, strlen(schema_text), &w->schema));
    snprintf(w->store, sizeof w->store, "%s", learn_path("store"));
    assert_ok(weir_graph_open(w->store, w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "s", 1, &w->source));
}

/* Writes the snapshot and lets go of the graph. */
static inline void learn_build_with(learn_world *w, const char *out, int64_t as_of_us, int64_t history_us) {
    const weir_snapshot_build_opts build = {.out = out, .as_of_us = as_of_us, .history_us = history_us};
    const weir_graph_opts read_only = {.read_only = true};
    weir_snapshot_stats stats;
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_close(w->graph));
    assert_ok(weir_graph_open(w->store, w->schema, &read_only, &w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_ok(weir_graph_close(w->graph));
    weir_schema_free(w->schema);
}

static inline void learn_build(learn_world *w, const char *out, int64_t as_of_us) {
    learn_build_with(w, out, as_of_us, 0);
}

static inline void learn_submit(learn_world *w, weir_mutation *mutations, size_t count) {
    assert_ok(submit_event(w->graph, w->source, w->offset++, mutations, count));
}

static inline weir_vertex learn_vertex(uint32_t type, uint64_t n) {
    char key[24];
    int length = snprintf(key, sizeof key, "%llu", (unsigned long long)n);
    return weir_vertex_id(&weir_id_key_public, type == LEARN_PAY ? "pay" : "who", key, (size_t)length);
}

static inline uint32_t learn_number_row(double number, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_NUMBER;
    const weir_value value = {.present = true, .number = number};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

/* row NULL: without one. */
static inline void learn_put_row(learn_world *w, uint32_t type, uint64_t n, int64_t time_us, const uint8_t *row,
                                 uint32_t row_length) {
    char key[24];
    snprintf(key, sizeof key, "%llu", (unsigned long long)n);
    weir_mutation m = {.kind = WEIR_PUT_VERTEX, .type = (uint16_t)type, .vertex = learn_vertex(type, n)};
    m.time_us = time_us;
    m.event = w->offset + 1;
    m.key = key;
    m.key_length = (uint16_t)strlen(key);
    m.row = row;
    m.row_length = row_length;
    learn_submit(w, &m, 1);
}

/* number NULL: without a row. */
static inline void learn_put(learn_world *w, uint32_t type, uint64_t n, int64_t time_us, const double *number) {
    uint8_t row[64];
    uint32_t length = number ? learn_number_row(*number, row) : 0;
    learn_put_row(w, type, n, time_us, number ? row : NULL, length);
}

/* Between any two. number NULL: without a row. */
static inline void learn_edge_with(learn_world *w, uint16_t relation, weir_vertex from, weir_vertex to, int64_t time_us,
                                   uint64_t event, const double *number) {
    uint8_t row[64];
    weir_mutation m[2] = {{.kind = WEIR_PUT_EDGE, .type = relation, .vertex = from, .time_us = time_us}};
    m[0].neighbor = to;
    m[0].event = event;
    m[0].row = number ? row : NULL;
    m[0].row_length = number ? learn_number_row(*number, row) : 0;
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = to;
    m[1].neighbor = from;
    learn_submit(w, m, 2);
}

static inline void learn_edge_of(learn_world *w, uint64_t pay, uint64_t who, int64_t time_us, double number,
                                 uint64_t event) {
    learn_edge_with(w, LEARN_BY, learn_vertex(LEARN_PAY, pay), learn_vertex(LEARN_WHO, who), time_us, event, &number);
}

/* Of a relation without features. */
static inline void learn_bare_edge(learn_world *w, uint64_t pay, uint64_t who, int64_t time_us) {
    learn_edge_with(w, LEARN_BY, learn_vertex(LEARN_PAY, pay), learn_vertex(LEARN_WHO, who), time_us, w->offset + 1,
                    NULL);
}

static inline void learn_edge_between(learn_world *w, uint16_t relation, weir_vertex from, weir_vertex to,
                                      int64_t time_us, uint64_t event) {
    learn_edge_with(w, relation, from, to, time_us, event, NULL);
}

/* By an event of its own. */
static inline void learn_edge(learn_world *w, uint64_t pay, uint64_t who, int64_t time_us, double number) {
    learn_edge_of(w, pay, who, time_us, number, w->offset + 1);
}

static inline void learn_label(learn_world *w, uint32_t label, uint64_t pay, const char *text, int64_t time_us) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    uint8_t row[64];
    const weir_value value = {.present = true, .text = text, .text_length = (uint8_t)strlen(text)};
    weir_mutation m = {.kind = WEIR_PUT_LABEL, .type = (uint16_t)label, .vertex = learn_vertex(LEARN_PAY, pay)};
    m.time_us = time_us;
    m.event = w->offset + 1;
    m.row = row;
    m.row_length = (uint32_t)weir_row_write(&kind, &value, 1, row);
    learn_submit(w, &m, 1);
}

/* --- worlds ------------------------------------------------------------------------------------------------------- */

typedef enum learn_leak { LEARN_NO_LEAK, LEARN_LEAK_EDGE, LEARN_LEAK_ROW } learn_leak;

typedef struct learn_plan {
    uint64_t seed, pays, people;
    bool coin;        /* labels are thrown, and tell nothing */
    learn_leak leak;  /* what spells the label …             */
    int64_t leak_us;  /* … so long after the pay              */
    double bad;       /* share of bad people                   */
    bool pairs;       /* and at whom each pay is               */
    bool told;        /* and what was said of others before    */
    uint64_t at_once; /* so many pays have one time; 0: 1      */
} learn_plan;

/* One pay: its own row and edge at t; an hour's label half a minute later. */
static inline void learn_pay(learn_world *w, const learn_plan *p, uint64_t n) {
    int64_t t = LEARN_START_US + (int64_t)(p->at_once ? n - n % p->at_once : n) * 60 * LEARN_SECOND;
    uint64_t who = p->coin ? n : weir_rng_below(&w->rng, p->people);
    bool bad = p->coin ? weir_rng_below(&w->rng, 2) : (double)who < p->bad * (double)p->people;
    bool yes = p->coin ? bad : weir_rng_double(&w->rng) < (bad ? 0.8 : 0.05);
    double x = weir_rng_normal(&w->rng), spell = yes ? 5 : -5, mark = bad && !p->coin ? x + 2 : x;
    learn_put(w, LEARN_PAY, n, t, &x);
    const uint64_t event = w->offset; /* that put it */
    learn_edge_of(w, n, who, t, mark, event);
    if (p->pairs) {
        const weir_vertex by = learn_vertex(LEARN_WHO, who),
                          at = learn_vertex(LEARN_WHO, weir_rng_below(&w->rng, p->people));
        learn_edge_between(w, LEARN_AT, learn_vertex(LEARN_PAY, n), at, t, event);
        learn_edge_between(w, LEARN_KNOWS, by, at, t, event);
    }
    if (p->leak == LEARN_LEAK_EDGE) learn_edge(w, n, who, t + p->leak_us, spell);
    if (p->leak == LEARN_LEAK_ROW) learn_put(w, LEARN_WHO, who, t + p->leak_us, &spell);
    learn_label(w, LEARN_BAD, n, yes ? "yes" : "no", t + 30 * LEARN_SECOND);
}

static inline void learn_snapshot(const learn_plan *p, const char *out) {
    learn_world w;
    const char *alone = p->told ? learn_told_schema_text : learn_schema_text;
    learn_open(&w, p->pairs ? learn_pair_schema_text : alone, p->seed);
    for (uint64_t n = 0; n < p->pays; n++)
        learn_pay(&w, p, n);
    learn_build(&w, out, LEARN_START_US + (int64_t)p->pays * 60 * LEARN_SECOND + LEARN_RIPE_US / 2);
}

static inline weir_snapshot *learn_snapshot_open(const learn_plan *p) {
    const weir_snapshot_opts opts = {.load = false};
    weir_snapshot *snapshot;
    char out[4096];
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    learn_snapshot(p, out);
    assert_ok(weir_snapshot_open(out, &opts, &snapshot));
    return snapshot;
}

/* Writes a number of 8 bytes into an array of the snapshot that was made first, open or not: as somebody does who also
 * corrects the sums of its files. */
static inline void learn_spoil(const char *array, uint64_t index, int64_t value) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", weir_test_path("snapshot0"), array);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 128 + 8 * (long)index, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

#endif /* LEARN_FIXTURE_H */
