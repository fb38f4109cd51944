/* SPDX-License-Identifier: Apache-2.0 */
/* train_world.c - events go through the real store, so that the snapshot is one that Weir makes. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>
#include <weir/store/snapshot/snapshot.h>

#include "bench.h"
#include "train_world.h"

#define START_US  1700000000000000ll
#define SECOND_US 1000000ll
#define RELATIONS 3u
#define MUTATIONS (2u + 2u * RELATIONS)
#define PATH_MAX_ 4096

static const char schema_text[] =
    "version: 1\n"
    "name: bench\n"
    "vertices:\n"
    "  pay: {features: {x: {kind: number}, channel: {kind: category, buckets: 8}}}\n"
    "  person: {}\n"
    "  shop: {}\n"
    "  device: {}\n"
    "relations:\n"
    "  by: {from: pay, to: person, features: {amount: {kind: number}}}\n"
    "  at: {from: pay, to: shop, features: {amount: {kind: number}}}\n"
    "  with: {from: pay, to: device, features: {amount: {kind: number}}}\n"
    "aggregates:\n"
    "  pays_1d: {vertex: person, relation: by, function: count, window: 1d, normalise: log-standard}\n"
    "  spent_1d: {vertex: person, relation: by, function: sum, of: amount, window: 1d, normalise: log-standard}\n"
    "labels: {bad: {vertex: pay, values: [no, yes], absent: no, lag: 1h}}\n"
    "tasks: {bad: {kind: classify, label: bad, positive: yes}}\n"
    "sources: {s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}}\n";

typedef struct world {
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t people;
} world;

typedef struct event {
    weir_mutation mutations[MUTATIONS];
    size_t count;
    uint8_t pay_row[64], edge_row[64], label_row[64];
    char key[24];
} event;

static weir_vertex vertex_of(const char *type, uint64_t n) {
    char key[24];
    int length = snprintf(key, sizeof key, "%llu", (unsigned long long)n);
    return weir_vertex_id(&weir_id_key_public, type, key, (size_t)length);
}

static void add_edge(event *e, uint32_t relation, weir_vertex to, uint32_t row_length) {
    weir_mutation *m = &e->mutations[e->count];
    m[0] = e->mutations[0];
    m[0].kind = WEIR_PUT_EDGE;
    m[0].type = (uint16_t)relation;
    m[0].neighbor = to;
    m[0].key = NULL;
    m[0].key_length = 0;
    m[0].row = e->edge_row;
    m[0].row_length = row_length;
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = to;
    m[1].neighbor = m[0].vertex;
    e->count += 2;
}

static void add_label(event *e, bool bad) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    const weir_value value = {.present = true, .text = bad ? "yes" : "no", .text_length = bad ? 3 : 2};
    weir_mutation *m = &e->mutations[e->count++];
    *m = e->mutations[0];
    m->kind = WEIR_PUT_LABEL;
    m->type = 0;
    m->time_us += SECOND_US;
    m->key = NULL;
    m->key_length = 0;
    m->row = e->label_row;
    m->row_length = (uint32_t)weir_row_write(&kind, &value, 1, e->label_row);
}

static void make_pay(world *w, uint64_t n, event *e) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    static const char *const channels[] = {"web", "pos", "app"};
    uint64_t person = weir_rng_below(&w->rng, w->people);
    bool bad = person % 8 == 0 && weir_rng_below(&w->rng, 2);
    const char *channel = channels[weir_rng_below(&w->rng, 3)];
    const weir_value values[] = {{.present = true, .number = weir_rng_normal(&w->rng)},
                                 {.present = true, .text = channel, .text_length = 3}};
    const weir_value amount = {.present = true, .number = weir_rng_normal(&w->rng) + (double)(person % 8 == 0)};
    *e = (event){.count = 1};
    int length = snprintf(e->key, sizeof e->key, "%llu", (unsigned long long)n);
    e->mutations[0] = (weir_mutation){.kind = WEIR_PUT_VERTEX, .vertex = vertex_of("pay", n), .event = n + 1};
    e->mutations[0].time_us = START_US + (int64_t)n * SECOND_US;
    e->mutations[0].key = e->key;
    e->mutations[0].key_length = (uint16_t)length;
    e->mutations[0].row = e->pay_row;
    e->mutations[0].row_length = (uint32_t)weir_row_write(kinds, values, 2, e->pay_row);
    uint32_t edge_length = (uint32_t)weir_row_write(kinds, &amount, 1, e->edge_row);
    add_edge(e, 0, vertex_of("person", person), edge_length);
    add_edge(e, 1, vertex_of("shop", weir_rng_below(&w->rng, w->people / 4 + 1)), edge_length);
    add_edge(e, 2, vertex_of("device", person + weir_rng_below(&w->rng, 2)), edge_length);
    add_label(e, bad);
}

static weir_err submit(world *w, event *e, uint64_t offset) {
    weir_buf batch = {0};
    const weir_batch_span span = {w->source, 0, offset, offset + 1};
    weir_batch_begin(&batch);
    for (size_t i = 0; i < e->count; i++) {
        e->mutations[i].offset = offset;
        weir_batch_add(&batch, &e->mutations[i], offset);
    }
    weir_batch_end(&batch, &span, (uint32_t)e->count);
    weir_err err = weir_buf_err(&batch);
    if (!err) err = weir_graph_submit(w->graph, &batch);
    weir_buf_free(&batch);
    return err;
}

static weir_err fill(const char *store, uint64_t pays) {
    const weir_graph_opts opts = {
        .shards = 1, .memory_bytes = 256u << 20, .create = true, .id_key = &weir_id_key_public};
    world w = {.rng = weir_rng_stream(3, 0, 0), .people = pays / 40 + 1};
    event e;
    weir_err err = weir_schema_parse("bench", schema_text, strlen(schema_text), &w.schema);
    if (!err) err = weir_graph_open(store, w.schema, &opts, &w.graph);
    if (!err) err = weir_graph_source(w.graph, "s", 1, &w.source);
    for (uint64_t n = 0; !err && n < pays; n++) {
        make_pay(&w, n, &e);
        err = submit(&w, &e, n);
    }
    if (!err) err = weir_graph_drain(w.graph);
    if (w.graph) weir_err_keep(&err, weir_graph_close(w.graph));
    weir_schema_free(w.schema);
    return err;
}

static weir_err build(const char *store, const char *out, uint64_t pays) {
    const weir_graph_opts opts = {.read_only = true};
    const weir_snapshot_build_opts build_opts = {
        .out = out, .as_of_us = START_US + ((int64_t)pays + 7200) * SECOND_US, .history_us = INT64_MAX / 4};
    weir_snapshot_stats stats;
    weir_schema *schema = NULL;
    weir_graph *graph = NULL;
    weir_err err = weir_schema_parse("bench", schema_text, strlen(schema_text), &schema);
    if (!err) err = weir_graph_open(store, schema, &opts, &graph);
    if (!err) err = weir_snapshot_build(graph, &build_opts, &stats);
    if (graph) weir_err_keep(&err, weir_graph_close(graph));
    weir_schema_free(schema);
    return err;
}

weir_err weir_train_world_make(const char *folder, uint64_t pays) {
    char store[PATH_MAX_], out[PATH_MAX_];
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(out, sizeof out, "%s/snapshot", folder);
    weir_err err = fill(store, pays);
    return err ? err : build(store, out, pays);
}

weir_err weir_train_world_open(uint64_t pays, weir_comm **commp, weir_snapshot **snapshotp) {
    const weir_snapshot_opts opts = {.load = true};
    const char *folder;
    char path[PATH_MAX_];
    weir_err err = weir_comm_start(NULL, NULL, commp);
    if (err) return err;
    if (weir_comm_rank(*commp) != 0 && !freopen("/dev/null", "w", stdout))
        err = WEIR_ERR(WEIR_EIO, "/dev/null cannot be written to");
    if (!err) err = weir_bench_folder(&folder);
    if (!err) err = weir_train_world_make(folder, pays);
    if (err) return err;
    snprintf(path, sizeof path, "%s/snapshot", folder);
    return weir_snapshot_open(path, &opts, snapshotp);
}
