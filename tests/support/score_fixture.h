/* SPDX-License-Identifier: Apache-2.0 */
/* score_fixture.h - a graph of payments, accounts and shops that grows event by event, and models of random weights. */
#ifndef SCORE_FIXTURE_H
#define SCORE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/score/score.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>

#include "submit.h"
#include "trees_fixture.h"
#include "weir_test.h"

#define SCORE_SHARDS     2u
#define SCORE_EVENT_MAX  16u /* mutations */
#define SCORE_STEPS      6u
#define SCORE_START_US   1700000000000000ll
#define SCORE_EDGES_MAX  4u
#define SCORE_VERTEX_KEY 24u

/* The types and relations by their ids, which are their places in the text. */
enum { SCORE_PAYMENT, SCORE_ACCOUNT, SCORE_SHOP, SCORE_TYPES };
enum { SCORE_PAID_BY, SCORE_PAID_AT, SCORE_KNOWS, SCORE_RELATIONS };

/* %s: nothing, or when a payment expires. */
static const char score_schema_text[] =
    "version: 1\n"
    "name: scored\n"
    "vertices:\n"
    "  payment: {%sfeatures: {amount: {kind: number, normalise: log-standard}, channel: {kind: category, buckets: 8},\n"
    "    opened: {kind: time}}}\n"
    "  account: {}\n"
    "  shop: {features: {mcc: {kind: category, buckets: 16}}}\n"
    "relations:\n"
    "  paid_by: {from: payment, to: account, features: {amount: {kind: number}}}\n"
    "  paid_at: {from: payment, to: shop}\n"
    "  knows: {from: account, to: shop, expire: 1d, features: {kind: {kind: category, buckets: 4}}}\n"
    "aggregates:\n"
    "  spent: {vertex: account, relation: paid_by, function: sum, of: amount, window: 1h, normalise: log-standard}\n"
    "  payers: {vertex: shop, relation: knows, function: distinct, window: 1h, normalise: log-standard}\n"
    "  spread: {vertex: account, relation: paid_by, function: deviation, of: amount, window: 2h}\n"
    "  least: {vertex: account, relation: paid_by, function: min, of: amount, window: 30m}\n"
    "  last: {vertex: shop, relation: paid_at, function: since_last, window: 1h, normalise: log-standard}\n"
    "  first: {vertex: account, relation: paid_by, function: since_first, window: 1h, resolution: 10m}\n"
    "  met: {vertex: payment, between: [paid_by, paid_at], relation: knows, function: since_first, window: 1d}\n"
    "  ways: {vertex: payment, between: [paid_at, paid_by], relation: knows, function: distinct, of: kind,\n"
    "    window: 1d}\n"
    "  near: {vertex: payment, end: paid_by, through: [paid_by, paid_at, paid_at], relation: paid_by,\n"
    "    function: distinct, window: 1d}\n"
    "  passed: {vertex: payment, end: paid_by, ratio: amount, relation: paid_by, function: newest, of: amount,\n"
    "    window: 6h}\n"
    "  usual: {vertex: payment, end: paid_by, ratio: amount, through: [paid_by, paid_at, paid_at],\n"
    "    relation: paid_by, function: mean, of: amount, window: 1d}\n"
    "  near_there: {vertex: payment, between: [paid_by, paid_at], through: [knows, knows], relation: knows,\n"
    "    function: count, window: 1d}\n"
    "  turns: {vertex: payment, end: paid_at, through: [knows, knows, knows, knows], crowd: 48, ordered: true,\n"
    "    relation: knows, function: depth, window: 2h}\n"
    "  handed: {vertex: payment, end: paid_by, through: [paid_by, paid_at, paid_at, paid_by], crowd: 48,\n"
    "    ordered: true, share: {of: amount, least: 0.3, most: 1.5}, relation: paid_by, function: depth, window: 2h}\n"
    "  charged: {vertex: account, relation: paid_by, function: count, label: bad, is: yes, window: 1d}\n"
    "  judged: {vertex: account, relation: paid_by, function: mean, of: amount, label: bad, is: [no, yes], window: "
    "6h}\n"
    "  quiet: {vertex: shop, relation: paid_at, function: since_last, label: bad, is: yes, window: 1d}\n"
    "labels: {bad: {vertex: payment, values: [no, yes], absent: no}}\n"
    "tasks: {fraud: {kind: classify, label: bad, positive: yes}}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: paid_at, from: a, to: b}]}\n";

typedef struct score_world {
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t events; /* so far; the last one's number */
    uint64_t later;  /* so far: events that speak of others */
    int64_t now_us;
    uint64_t accounts, shops;
} score_world;

/* An event with what its mutations point to. */
typedef struct score_event {
    weir_mutation mutations[SCORE_EVENT_MAX];
    size_t count;
    char keys[SCORE_EVENT_MAX][SCORE_VERTEX_KEY];
    uint8_t rows[SCORE_EVENT_MAX][512];
    weir_vertex payment;
    int64_t time_us;
    uint64_t id;
} score_event;

static inline uint64_t score_below(score_world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static inline weir_vertex score_vertex(const score_world *w, uint32_t type, uint64_t n, char key[SCORE_VERTEX_KEY]) {
    int length = snprintf(key, SCORE_VERTEX_KEY, "%llu", (unsigned long long)n);
    return weir_vertex_id(&weir_id_key_public, weir_schema_vertex_at(w->schema, type)->name, key, (size_t)length);
}

static inline weir_schema *score_schema(const char *expire) {
    char text[2 * sizeof score_schema_text];
    weir_schema *schema;
    int length = snprintf(text, sizeof text, score_schema_text, expire);
    assert_ok(weir_schema_parse("scored", text, (size_t)length, &schema));
    return schema;
}

/* expire: "", or "expire: DURATION, " of payments. */
static inline void score_world_open_expiring(score_world *w, uint64_t seed, const char *folder, const char *expire) {
    weir_graph_opts opts = {
        .shards = SCORE_SHARDS, .memory_bytes = 64u << 20, .create = true, .id_key = &weir_id_key_public};
    *w = (score_world){.rng = weir_rng_stream(seed, 1, 0), .now_us = SCORE_START_US, .accounts = 30, .shops = 8};
    w->schema = score_schema(expire);
    assert_ok(weir_graph_open(folder, w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "s", 1, &w->source));
}

static inline void score_world_open(score_world *w, uint64_t seed, const char *folder) {
    score_world_open_expiring(w, seed, folder, "");
}

static inline void score_world_close(score_world *w) {
    assert_ok(weir_graph_close(w->graph));
    weir_schema_free(w->schema);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static inline weir_mutation *score_add(score_event *e, weir_mutation_kind kind, uint32_t type, weir_vertex vertex) {
    assert_true(e->count < SCORE_EVENT_MAX);
    weir_mutation *m = &e->mutations[e->count++];
    *m = (weir_mutation){.kind = kind, .type = (uint16_t)type, .vertex = vertex, .time_us = e->time_us, .event = e->id};
    return m;
}

static inline void score_row(score_event *e, weir_mutation *m, const weir_value_kind *kinds, const weir_value *values,
                             size_t count) {
    uint8_t *row = e->rows[m - e->mutations];
    m->row_length = (uint32_t)weir_row_write(kinds, values, count, row);
    m->row = row;
}

static inline weir_vertex score_put(score_world *w, score_event *e, uint32_t type, uint64_t n, weir_mutation **mp) {
    char *key = e->keys[e->count];
    weir_vertex vertex = score_vertex(w, type, n, key);
    *mp = score_add(e, WEIR_PUT_VERTEX, type, vertex);
    (*mp)->key = key;
    (*mp)->key_length = (uint16_t)strlen(key);
    return vertex;
}

static inline weir_mutation *score_edge(score_event *e, uint32_t relation, weir_vertex from, weir_vertex to) {
    weir_mutation *out = score_add(e, WEIR_PUT_EDGE, relation, from);
    out->neighbor = to;
    return out;
}

/* The other half of the edge that was added last, with its row. */
static inline void score_other_half(score_event *e) {
    const weir_mutation *out = &e->mutations[e->count - 1];
    weir_mutation *in = score_add(e, WEIR_PUT_EDGE, out->type, out->neighbor);
    in->direction = WEIR_IN;
    in->neighbor = out->vertex;
    in->row = out->row;
    in->row_length = out->row_length;
}

static inline weir_value score_text(const char *text) {
    return (weir_value){.present = true, .text = text, .text_length = (uint8_t)strlen(text)};
}

static inline void score_payment_row(score_world *w, score_event *e, weir_mutation *m) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    static const char *const channels[] = {"web", "pos", "app"};
    weir_value values[] = {{.present = score_below(w, 5) > 0, .number = (double)score_below(w, 100000) / 7},
                           score_text(channels[score_below(w, 3)]),
                           {.present = score_below(w, 2), .time_us = e->time_us - (int64_t)score_below(w, 1000000000)}};
    if (score_below(w, 8)) score_row(e, m, kinds, values, 3);
}

/* A shop's row is the same at each of its puts: then it is in force since the first. */
static inline void score_shop_row(score_event *e, weir_mutation *m, uint64_t shop) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    char text[8];
    snprintf(text, sizeof text, "m%u", (unsigned)(shop % 5));
    weir_value value = score_text(text);
    score_row(e, m, &kind, &value, 1);
}

/* A payment of an account at a shop, seldom of two accounts or at none; the account then knows the shop. */
static inline void score_event_make(score_world *w, score_event *e) {
    static const weir_value_kind number = WEIR_VALUE_NUMBER, category = WEIR_VALUE_CATEGORY;
    weir_mutation *m;
    weir_vertex shop = 0, account = 0;
    uint64_t shop_number = score_below(w, w->shops);
    w->now_us += 1 + (int64_t)score_below(w, 60000000);
    *e = (score_event){.time_us = w->now_us, .id = ++w->events * 0x9e3779b97f4a7c15ull};
    e->payment = score_put(w, e, SCORE_PAYMENT, w->events, &m);
    score_payment_row(w, e, m);
    for (uint64_t i = score_below(w, 10) == 0 ? 2 : 1; i > 0; i--) {
        account = score_put(w, e, SCORE_ACCOUNT, score_below(w, w->accounts), &m);
        weir_value amount = {.present = score_below(w, 6) > 0, .number = (double)score_below(w, 1000) / 3};
        score_row(e, score_edge(e, SCORE_PAID_BY, e->payment, account), &number, &amount, 1);
        score_other_half(e);
    }
    if (score_below(w, 8) == 0) return;
    shop = score_put(w, e, SCORE_SHOP, shop_number, &m);
    score_shop_row(e, m, shop_number);
    score_edge(e, SCORE_PAID_AT, e->payment, shop);
    score_other_half(e);
    weir_value kind = score_text(score_below(w, 2) ? "old" : "new");
    score_row(e, score_edge(e, SCORE_KNOWS, account, shop), &category, &kind, 1);
    score_other_half(e);
}

static inline void score_event_store(score_world *w, score_event *e, uint64_t offset) {
    assert_ok(submit_event(w->graph, w->source, offset, e->mutations, e->count));
}

/* What a later message says of a payment, an account or a shop: an update, a deletion, a second put. That of a shop
 * is another category. */
static inline void score_later_make(score_world *w, score_event *e) {
    weir_mutation *m;
    uint32_t type = (uint32_t)score_below(w, SCORE_TYPES);
    uint64_t of = type == SCORE_PAYMENT ? 1 + score_below(w, w->events)
                                        : score_below(w, type == SCORE_SHOP ? w->shops : w->accounts);
    w->now_us += 1 + (int64_t)score_below(w, 60000000);
    *e = (score_event){.time_us = w->now_us, .id = ++w->later * 0xc2b2ae3d27d4eb4full | 1};
    weir_vertex vertex = score_put(w, e, type, of, &m);
    if (score_below(w, 4) == 0) m->kind = WEIR_DELETE_VERTEX, m->key_length = 0;
    if (m->kind == WEIR_DELETE_VERTEX || type == SCORE_ACCOUNT) return;
    if (type == SCORE_PAYMENT) score_payment_row(w, e, m);
    if (type == SCORE_SHOP) score_shop_row(e, m, score_below(w, 5));
    if (type != SCORE_PAYMENT || score_below(w, 2)) return;
    char key[SCORE_VERTEX_KEY];
    score_edge(e, SCORE_PAID_AT, vertex, score_vertex(w, SCORE_SHOP, score_below(w, w->shops), key));
    score_other_half(e);
}

/* A payment is judged, seldom for the first time; half of the time in the moment of the event before. */
static inline void score_label_make(score_world *w, score_event *e) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    char key[SCORE_VERTEX_KEY];
    if (score_below(w, 2)) w->now_us += 1 + (int64_t)score_below(w, 60000000);
    *e = (score_event){.time_us = w->now_us, .id = ++w->later * 0xc2b2ae3d27d4eb4full | 1};
    weir_vertex payment = score_vertex(w, SCORE_PAYMENT, 1 + score_below(w, w->events), key);
    const weir_value value = score_text(score_below(w, 3) ? "yes" : "no");
    score_row(e, score_add(e, WEIR_PUT_LABEL, 0, payment), &kind, &value, 1);
}

/* later: of a hundred events, how many are followed by one that speaks of what was. */
static inline void score_world_grow_telling(score_world *w, uint64_t events, uint64_t later) {
    score_event e;
    for (uint64_t i = 0; i < events; i++) {
        score_event_make(w, &e);
        score_event_store(w, &e, w->events + w->later - 1);
        if (score_below(w, 3) == 0) {
            score_label_make(w, &e);
            score_event_store(w, &e, w->events + w->later - 1);
        }
        if (score_below(w, 100) >= later) continue;
        score_later_make(w, &e);
        score_event_store(w, &e, w->events + w->later - 1);
    }
    assert_ok(weir_graph_drain(w->graph));
}

static inline void score_world_grow(score_world *w, uint64_t events) {
    score_event e;
    for (uint64_t i = 0; i < events; i++) {
        score_event_make(w, &e);
        score_event_store(w, &e, w->events + w->later - 1);
    }
    assert_ok(weir_graph_drain(w->graph));
}

/* --- models ----------------------------------------------------------------------------------------------------- */

typedef enum score_family { SCORE_NETWORK, SCORE_TREES, SCORE_BLEND } score_family;

static const weir_blend score_blend = {0.5, 0.1, 2, -0.3};

typedef struct score_net {
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params;
    score_family family;
    weir_trees *trees; /* NULL: a network alone */
    uint32_t hops;     /* of their columns */
} score_net;

static const weir_sample_step score_steps[SCORE_STEPS] = {
    {.hop = 1, .fanout = 3, .relation = SCORE_PAID_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 2, .relation = SCORE_PAID_AT, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 2, .fanout = 5, .relation = SCORE_PAID_BY, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = 3, .relation = SCORE_KNOWS, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 2,
     .fanout = 4,
     .relation = SCORE_PAID_AT,
     .direction = WEIR_IN,
     .strategy = WEIR_SAMPLE_WEIGHTED,
     .weight = WEIR_SCHEMA_NONE,
     .half_life_us = 600000000},
    {.hop = 2, .fanout = 4, .relation = SCORE_KNOWS, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
};

/* Some accounts, shops and payments have embeddings of their own: those with these numbers. */
#define SCORE_KNOWN_MAX 1200u

static inline bool score_knows(uint32_t type, uint64_t n) {
    return n < SCORE_KNOWN_MAX && (type == SCORE_PAYMENT ? n % 5 == 0 : n % 3 > 0);
}

static inline int score_by_id(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Returns how many. */
static inline uint32_t score_known_ids(const weir_schema *schema, uint32_t type, uint64_t ids[SCORE_KNOWN_MAX]) {
    uint32_t count = 0;
    for (uint64_t n = 0; n < SCORE_KNOWN_MAX; n++) {
        char key[SCORE_VERTEX_KEY];
        int length = snprintf(key, sizeof key, "%llu", (unsigned long long)n);
        const char *name = weir_schema_vertex_at(schema, type)->name;
        if (score_knows(type, n))
            ids[count++] = weir_vertex_low(weir_vertex_id(&weir_id_key_public, name, key, (size_t)length));
    }
    qsort(ids, count, sizeof *ids, score_by_id);
    return count;
}

/* Random weights, biases and gains too: nothing is 0 that could hide a mistake. And any network, by the seed. */
static inline void score_net_open_wide(score_net *net, const weir_schema *schema, const weir_sample_step *steps,
                                       uint32_t count, uint64_t seed, uint32_t window) {
    static uint64_t ids[SCORE_TYPES][SCORE_KNOWN_MAX];
    weir_nn_known known[SCORE_TYPES];
    for (uint32_t type = 0; type < SCORE_TYPES; type++)
        known[type] = (weir_nn_known){type, ids[type], score_known_ids(schema, type, ids[type])};
    const weir_nn_opts opts = {.task = 0,
                               .hidden = 16,
                               .steps = steps,
                               .step_count = count,
                               .window = window,
                               .known = known,
                               .known_count = SCORE_TYPES,
                               .network = (weir_nn_network)(seed % WEIR_NN_NETWORKS)};
    weir_rng rng = weir_rng_stream(seed, 2, 0);
    void *memory;
    *net = (score_net){.family = SCORE_NETWORK};
    assert_ok(weir_nn_shape_open(schema, &opts, &net->shape));
    assert_ok(weir_nn_open(net->shape, weir_kernels_cpu(), &net->nn));
    uint64_t parameters = weir_nn_parameter_count(net->nn);
    assert_ok(weir_kernels_cpu()->alloc(weir_kernels_cpu(), parameters * sizeof *net->params, &memory));
    net->params = memory;
    weir_nn_init(net->nn, seed, net->params);
    for (uint64_t i = 0; i < parameters; i++)
        net->params[i] += (weir_real)(0.1 * weir_rng_normal(&rng));
}

static inline void score_net_open(score_net *net, const weir_schema *schema, const weir_sample_step *steps,
                                  uint32_t count, uint64_t seed) {
    score_net_open_wide(net, schema, steps, count, seed, 12);
}

/* The same steps, each of the newest edges, as trees read them. */
static inline void score_net_open_family(score_net *net, const weir_schema *schema, uint64_t seed, score_family family,
                                         uint32_t hops) {
    weir_sample_step steps[SCORE_STEPS];
    weir_rng rng = weir_rng_stream(seed, 5, 0);
    memcpy(steps, score_steps, sizeof steps);
    for (uint32_t i = 0; family != SCORE_NETWORK && i < SCORE_STEPS; i++)
        steps[i].strategy = WEIR_SAMPLE_RECENT;
    score_net_open(net, schema, steps, SCORE_STEPS, seed);
    net->family = family;
    net->hops = hops;
    if (family != SCORE_NETWORK)
        net->trees = forest_random(&rng, 400, (uint32_t)weir_tree_columns_count(net->shape, hops));
}

static inline void score_net_close(score_net *net) {
    weir_trees_close(net->trees);
    weir_kernels_cpu()->release(weir_kernels_cpu(), net->params);
    weir_nn_close(net->nn);
    weir_nn_shape_free(net->shape);
}

static inline weir_score_model *score_model_of(const score_net *net, const weir_schema *schema, const char *version) {
    const weir_score_model_opts opts = {.name = "random",
                                        .version = version,
                                        .nn = net->family == SCORE_TREES ? NULL : net->nn,
                                        .params = net->params,
                                        .shape = net->shape,
                                        .trees = net->trees,
                                        .hops = net->hops,
                                        .blend = score_blend,
                                        .seed = 77,
                                        .slope = 2,
                                        .offset = -1};
    weir_score_model *model;
    assert_ok(weir_score_model_open(&opts, schema, &model));
    return model;
}

#endif /* SCORE_FIXTURE_H */
