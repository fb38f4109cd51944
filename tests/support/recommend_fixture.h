/* SPDX-License-Identifier: Apache-2.0 */
/* recommend_fixture.h - users and what they buy and view, in a graph and in the list of all that an oracle looks at. */
#ifndef RECOMMEND_FIXTURE_H
#define RECOMMEND_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/snapshot/snapshot.h>

#include "naive_graph.h"
#include "submit.h"
#include "weir_test.h"

#define SHOP_START_US  1700000000000000ll
#define SHOP_SECOND    1000000ll
#define SHOP_HOUR      (3600 * SHOP_SECOND)
#define SHOP_EXPIRE_US (6 * SHOP_HOUR)

/* Types, relations and tasks by their ids, which are their places in the text. */
enum { SHOP_USER, SHOP_ITEM };
enum { SHOP_BOUGHT, SHOP_VIEWED, SHOP_SOLD };
enum { SHOP_TASK_BUY, SHOP_TASK_AGAIN, SHOP_TASK_BAD };

/* bought: ", expire: 6h" or ""; viewed: its ends; buy: what the task asks. */
#define SHOP_SCHEMA_WITH(bought, viewed, buy)                                   \
    "version: 1\n"                                                              \
    "name: shop\n"                                                              \
    "vertices:\n"                                                               \
    "  user: {}\n"                                                              \
    "  item: {}\n"                                                              \
    "relations:\n"                                                              \
    "  bought: {from: user, to: item" bought "}\n"                              \
    "  " viewed "\n"                                                            \
    "  sold: {from: item, to: user}\n"                                          \
    "labels:\n"                                                                 \
    "  bad: {vertex: user, values: [no, yes], absent: no, lag: 1h}\n"           \
    "tasks:\n"                                                                  \
    "  buy: {" buy "}\n"                                                        \
    "  again: {kind: recommend, relation: bought, horizon: 1h, repeat: true}\n" \
    "  bad: {kind: classify, label: bad, positive: yes}\n"                      \
    "sources:\n"                                                                \
    "  s: {id: id, time: t, mutations: [{put_edge: bought, from: a, to: b}]}\n"

#define SHOP_VIEWED_TEXT "viewed: {from: user, to: item}"
#define SHOP_BUY_TEXT    "kind: recommend, relation: bought, horizon: 1h"

static const char shop_schema_text[] = SHOP_SCHEMA_WITH("", SHOP_VIEWED_TEXT, SHOP_BUY_TEXT);

typedef struct shop_world {
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    naive_graph *naive;
    uint32_t source;
    uint64_t offset;
    char store[4096], snapshot[4096]; /* the latter: that was built last */
} shop_world;

/* In the case's folder, another one each time. */
static inline const char *shop_path(const char *name) {
    static unsigned paths;
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s%u", name, paths++);
    return weir_test_path(numbered);
}

static inline uint64_t shop_below(shop_world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static inline weir_schema *shop_schema(const char *text) {
    weir_schema *schema;
    assert_ok(weir_schema_parse("shop", text, strlen(text), &schema));
    return schema;
}

static inline void shop_open(shop_world *w, const char *schema_text, uint64_t seed) {
    const weir_graph_opts opts = {
        .shards = 2, .memory_bytes = 64u << 20, .create = true, .id_key = &weir_id_key_public};
    *w = (shop_world){.rng = weir_rng_stream(seed, 7, 0), .schema = shop_schema(schema_text)};
    w->naive = naive_graph_open();
    snprintf(w->store, sizeof w->store, "%s", shop_path("store"));
    assert_ok(weir_graph_open(w->store, w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "s", 1, &w->source));
}

static inline void shop_close(shop_world *w) {
    assert_ok(weir_graph_close(w->graph));
    naive_graph_close(w->naive);
    weir_schema_free(w->schema);
}

static inline void shop_submit(shop_world *w, weir_mutation *mutations, size_t count) {
    assert_ok(submit_event(w->graph, w->source, w->offset++, mutations, count));
    for (size_t i = 0; i < count; i++)
        naive_graph_apply(w->naive, &mutations[i]);
}

static inline weir_vertex shop_vertex(uint32_t type, uint64_t n) {
    char key[24];
    int length = snprintf(key, sizeof key, "%llu", (unsigned long long)n);
    return weir_vertex_id(&weir_id_key_public, type == SHOP_USER ? "user" : "item", key, (size_t)length);
}

static inline void shop_put(shop_world *w, uint32_t type, uint64_t n, int64_t time_us) {
    char key[24];
    weir_mutation m = {.kind = WEIR_PUT_VERTEX, .type = (uint16_t)type, .vertex = shop_vertex(type, n), .key = key};
    m.key_length = (uint16_t)snprintf(key, sizeof key, "%llu", (unsigned long long)n);
    m.time_us = time_us;
    m.event = w->offset + 1;
    shop_submit(w, &m, 1);
}

static inline void shop_put_all(shop_world *w, uint64_t users, uint64_t items) {
    for (uint64_t n = 0; n < users; n++)
        shop_put(w, SHOP_USER, n, SHOP_START_US);
    for (uint64_t n = 0; n < items; n++)
        shop_put(w, SHOP_ITEM, n, SHOP_START_US);
}

/* A put of an edge by an event of its own, or a deletion of all edges between the two. */
static inline void shop_tell(shop_world *w, weir_mutation_kind kind, uint32_t relation, uint64_t user, uint64_t item,
                             int64_t time_us) {
    weir_mutation m[2] = {{.kind = kind, .type = (uint16_t)relation, .vertex = shop_vertex(SHOP_USER, user)}};
    m[0].neighbor = shop_vertex(SHOP_ITEM, item);
    m[0].time_us = time_us;
    m[0].event = kind == WEIR_PUT_EDGE ? w->offset + 1 : 0;
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    shop_submit(w, m, 2);
}

static inline void shop_edge(shop_world *w, uint32_t relation, uint64_t user, uint64_t item, int64_t time_us) {
    shop_tell(w, WEIR_PUT_EDGE, relation, user, item, time_us);
}

/* Builds a snapshot of what a history reaches, 0: of all, and opens it; the graph can be read from then on, and no
 * more. */
static inline weir_snapshot *shop_snapshot_of(shop_world *w, int64_t as_of_us, int64_t history_us) {
    const weir_graph_opts read_only = {.read_only = true};
    weir_snapshot_build_opts build = {.as_of_us = as_of_us, .history_us = history_us};
    weir_snapshot_stats stats;
    weir_snapshot *snapshot;
    snprintf(w->snapshot, sizeof w->snapshot, "%s", shop_path("snapshot"));
    build.out = w->snapshot;
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_close(w->graph));
    assert_ok(weir_graph_open(w->store, w->schema, &read_only, &w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_ok(weir_snapshot_open(w->snapshot, &(weir_snapshot_opts){.load = false}, &snapshot));
    return snapshot;
}

static inline weir_snapshot *shop_snapshot(shop_world *w, int64_t as_of_us) {
    return shop_snapshot_of(w, as_of_us, 0);
}

#endif /* RECOMMEND_FIXTURE_H */
