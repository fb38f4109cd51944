/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parity_test.c - what serving sees and says is what training would have: block by block and score by score.
 *
 * A random graph goes through the real store; a snapshot is made of it; then it grows on. The snapshot's side is
 * sampled over arrays and encoded from columns here, by code that shares nothing with the scorer's but the network.
 */
#include "score_fixture.h"

#include <math.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/snapshot/snapshot.h>

#define DECISIONS    1000u
#define BATCH        16u
#define EVENTS       1500u
#define EVENTS_LATER 300u
#define LATER        40u /* of a hundred events: followed by one that says more of a vertex, or deletes it */
#define BLOCK_FLOATS 65536u

typedef struct parity {
    score_world world;
    score_net net;
    weir_score_model *model;
    weir_scorer *scorer;
    weir_arena *arena;
    weir_snapshot *snapshot;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_aggregates *aggregates;
    weir_nn_workspace *workspace;
    weir_tree_columns *columns; /* NULL: no trees */
    weir_sample_step steps[SCORE_STEPS];
    score_family family;
    bool expires, telling;
    int64_t as_of_us;
    uint64_t forgotten; /* rows of vertices that had expired */
    uint64_t known, unknown;
    uint64_t met;      /* targets whose account knew the shop */
    uint64_t charged;  /* accounts of which a payment was told to be bad */
    uint64_t embedded; /* vertices that are no targets */
    weir_real *floats; /* as read here, one by one */
    uint32_t *slots;
    weir_inputs *inputs;
    weir_real *trained; /* as training reads them */
    uint32_t *trained_slots;
} parity;

static void snapshot_make(parity *p) {
    const weir_graph_opts read_only = {.read_only = true};
    const weir_snapshot_build_opts build = {.out = weir_test_path("snapshot"), .as_of_us = p->world.now_us + 1};
    const weir_snapshot_opts opts = {.load = true};
    weir_snapshot_stats stats;
    weir_graph *still;
    assert_ok(weir_graph_checkpoint(p->world.graph, weir_test_path("checkpoint")));
    assert_ok(weir_graph_restore(weir_test_path("checkpoint"), weir_test_path("still")));
    assert_ok(weir_graph_open(weir_test_path("still"), p->world.schema, &read_only, &still));
    assert_ok(weir_snapshot_build(still, &build, &stats));
    assert_ok(weir_graph_close(still));
    assert_ok(weir_snapshot_open(weir_test_path("snapshot"), &opts, &p->snapshot));
    p->as_of_us = build.as_of_us;
}

static void parity_open(parity *p, const char *expire) {
    uint64_t seed = weir_test_seed();
    score_world_open_expiring(&p->world, seed, weir_test_path("store"), expire);
    score_world_grow_telling(&p->world, EVENTS, p->telling ? LATER : 0);
    score_net_open_family(&p->net, p->world.schema, seed, p->family, WEIR_TREE_COLUMNS_HOPS_MAX);
    uint32_t steps;
    memcpy(p->steps, weir_nn_steps(p->net.shape, &steps), sizeof p->steps);
    assert_int_equal(steps, SCORE_STEPS);
    p->model = score_model_of(&p->net, p->world.schema, "1");
    assert_ok(weir_scorer_open(p->world.graph, &p->scorer));
    assert_ok(weir_arena_open(1u << 20, &p->arena));
    snapshot_make(p);
    const weir_sample_opts opts = {
        .steps = p->steps, .step_count = SCORE_STEPS, .window = 12, .targets_max = BATCH, .seed = 77, .own_rows = true};
    assert_ok(weir_sample_over_snapshot(p->snapshot, &p->source));
    assert_ok(weir_sampler_open(&opts, p->source, &p->sampler));
    assert_ok(weir_block_open(p->sampler, &p->block));
    assert_ok(weir_aggregates_open(weir_snapshot_schema(p->snapshot), p->source, &p->aggregates));
    assert_ok(weir_nn_workspace_open(p->net.nn, false, &p->workspace));
    p->floats = calloc(BLOCK_FLOATS, sizeof *p->floats);
    p->slots = calloc(BLOCK_FLOATS, sizeof *p->slots);
    p->trained = calloc(BLOCK_FLOATS, sizeof *p->trained);
    p->trained_slots = calloc(BLOCK_FLOATS, sizeof *p->trained_slots);
    assert_true(p->floats && p->slots && p->trained && p->trained_slots);
    assert_ok(weir_inputs_open(p->net.shape, weir_snapshot_schema(p->snapshot), p->source, &p->inputs));
    if (p->net.trees)
        assert_ok(weir_tree_columns_open(p->net.shape, WEIR_TREE_COLUMNS_HOPS_MAX, p->source, &p->columns));
    score_world_grow_telling(&p->world, EVENTS_LATER, p->telling ? LATER : 0);
}

static void parity_close(parity *p) {
    free(p->floats);
    free(p->slots);
    free(p->trained);
    free(p->trained_slots);
    weir_tree_columns_close(p->columns);
    weir_inputs_close(p->inputs);
    weir_nn_workspace_close(p->workspace);
    weir_aggregates_close(p->aggregates);
    weir_block_close(p->block);
    weir_sampler_close(p->sampler);
    weir_sample_source_close(p->source);
    weir_snapshot_close(p->snapshot);
    weir_arena_close(p->arena);
    weir_scorer_close(p->scorer);
    weir_score_model_drop(p->model);
    score_net_close(&p->net);
    score_world_close(&p->world);
}

/* --- the snapshot's side ---------------------------------------------------------------------------------------- */

static weir_target target_of(parity *p, weir_vertex payment) {
    weir_target target = {.type = SCORE_PAYMENT};
    uint64_t index;
    assert_true(weir_snapshot_find(p->snapshot, SCORE_PAYMENT, payment, &index));
    target.vertex = index;
    const weir_snapshot_spans *lives = &weir_snapshot_vertices_of(p->snapshot, SCORE_PAYMENT)->lives;
    assert_true(lives->indptr[index] < lives->indptr[index + 1]);
    target.before_us = lives->times[lives->indptr[index + 1] - 1];
    if (p->telling && score_below(&p->world, 2)) { /* at any time: of updated, deleted, put again, or not there yet */
        target.before_us = SCORE_START_US + (int64_t)score_below(&p->world, (uint64_t)(p->as_of_us - SCORE_START_US));
        return target;
    }
    for (uint32_t r = SCORE_PAID_BY; !target.event && r <= SCORE_PAID_AT; r++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(p->snapshot, r, WEIR_OUT);
        for (int64_t at = e->indptr[index]; !target.event && at < e->indptr[index + 1]; at++)
            if (e->times[at] == target.before_us) target.event = e->events[at];
    }
    uint64_t event; /* as training asks for it */
    assert_ok(weir_snapshot_event_of_put(p->snapshot, SCORE_PAYMENT, index, target.before_us, &event));
    assert_true(event == target.event);
    return target;
}

static weir_value value_at(const weir_snapshot_column *c, uint64_t row) {
    weir_value v = {0};
    if (c->kind == WEIR_VALUE_NUMBER) {
        v.number = (double)c->numbers[row];
        v.present = !isnan(c->numbers[row]);
    } else if (c->kind == WEIR_VALUE_TIME) {
        v.time_us = c->times[row];
        v.present = v.time_us != WEIR_SNAPSHOT_NEVER;
    } else if (c->codes[row] >= 0) {
        int64_t begin = c->text_offsets[c->codes[row]];
        v.text = (const char *)c->text_bytes + begin;
        v.text_length = (uint8_t)(c->text_offsets[c->codes[row] + 1] - begin);
        v.present = true;
    }
    return v;
}

/* By the vertex's key: how many of the known ones have a smaller id. */
static uint32_t known_slot(parity *p, uint32_t type, uint64_t row) {
    static uint64_t ids[SCORE_KNOWN_MAX];
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(p->snapshot, type);
    char key[SCORE_VERTEX_KEY] = {0};
    size_t length = (size_t)(v->key_offsets[row + 1] - v->key_offsets[row]);
    uint32_t count = score_known_ids(p->world.schema, type, ids), slot = 0;
    assert_true(length < sizeof key);
    memcpy(key, v->key_bytes + v->key_offsets[row], length);
    if (!score_knows(type, strtoull(key, NULL, 10))) {
        p->unknown++;
        return WEIR_NO_SLOT;
    }
    p->known++;
    while (slot < count && ids[slot] < v->ids[row].low)
        slot++;
    return slot;
}

static void encode_vertex(parity *p, uint32_t type, const weir_block_view *view, uint32_t node, weir_real *numbers,
                          uint32_t *slots) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(p->snapshot, type);
    const uint64_t row = view->vertices[node];
    const int64_t before_us = view->before_us[view->groups[node]];
    const uint64_t event = node < view->targets ? view->events[node] : WEIR_SAMPLE_NO_TARGET;
    int64_t look_us = before_us + (type == SCORE_PAYMENT);
    uint64_t place;
    bool counts = weir_snapshot_span(&v->rows, row, look_us, &place);
    weir_value values[8] = {{0}};
    double aggregates[8];
    int64_t first = v->rows.indptr[row];
    p->forgotten += !counts && first < v->rows.indptr[row + 1] && v->rows.times[first] < look_us;
    for (uint32_t i = 0; counts && i < v->column_count; i++)
        values[i] = value_at(&v->columns[i], place);
    const weir_sample_vertices of = {
        .vertices = &row, .before_us = &before_us, .events = &event, .count = 1, .type = (uint16_t)type};
    assert_ok(weir_aggregates_read(p->aggregates, &of, aggregates));
    p->met += type == SCORE_PAYMENT && aggregates[0] > 0;
    p->charged += type == SCORE_ACCOUNT && aggregates[4] > 0;
    const weir_nn_inputs *inputs = weir_nn_vertex(p->net.shape, type);
    weir_nn_encode(inputs, weir_schema_vertex_at(p->world.schema, type)->features, values, aggregates, before_us,
                   numbers, slots);
    slots[inputs->category_count - 1] = known_slot(p, type, row);
}

static void encode_edge(const parity *p, const weir_block_view *view, uint32_t step, uint32_t edge,
                        weir_real *numbers) {
    const weir_sample_step *s = &score_steps[step];
    const weir_snapshot_edges *e = weir_snapshot_edges_of(p->snapshot, s->relation, s->direction);
    const weir_block_edges *edges = &view->edges[step];
    weir_value values[8] = {{0}};
    for (uint32_t i = 0; i < e->column_count; i++)
        values[i] = value_at(&e->columns[i], edges->refs[edge]);
    weir_nn_encode(weir_nn_edge(p->net.shape, s->relation),
                   weir_schema_relation_at(p->world.schema, s->relation)->features, values, NULL,
                   view->before_us[view->groups[edges->parents[edge]]], numbers, NULL);
}

/* Each third row, and no other, as a rank encodes what it owns. */
static void some_rows(parity *p, const weir_block_view *view, uint32_t type, uint32_t rows, const weir_real *expected,
                      const uint32_t *expected_slots) {
    const weir_nn_inputs *inputs = weir_nn_vertex(p->net.shape, type);
    uint32_t width = inputs->width, words = inputs->category_count;
    uint32_t count = 0, *places = calloc(rows + 1u, sizeof *places);
    assert_non_null(places);
    for (uint32_t row = type % 3; row < rows; row += 3)
        places[count++] = row;
    for (size_t i = 0; i < (size_t)rows * width; i++)
        p->trained[i] = -77;
    for (size_t i = 0; i < (size_t)rows * words; i++)
        p->trained_slots[i] = 77777;
    assert_ok(weir_inputs_block(p->inputs, view, type, places, count, p->trained, p->trained_slots));
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t c = 0; c < width; c++) {
            size_t at = (size_t)row * width + c;
            assert_true(p->trained[at] == (row % 3 == type % 3 ? expected[at] : -77));
        }
    for (size_t at = 0; at < (size_t)rows * words; at++)
        assert_int_equal(p->trained_slots[at], at / words % 3 == type % 3 ? expected_slots[at] : 77777);
    free(places);
}

/* The inputs of a block into p->floats and p->slots, read one by one. */
static void encode_block(parity *p, const weir_block_view *view, const weir_real *numbers[SCORE_TYPES],
                         const uint32_t *slots[SCORE_TYPES], const weir_real *edges[SCORE_STEPS]) {
    size_t floats = 0, words = 0;
    for (uint32_t type = 0; type < SCORE_TYPES; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(p->net.shape, type);
        numbers[type] = p->floats + floats;
        slots[type] = p->slots + words;
        for (uint32_t i = view->input_ranges[type].begin; i < view->input_ranges[type].end; i++) {
            assert_true(floats + 64 < BLOCK_FLOATS && words + 64 < BLOCK_FLOATS);
            encode_vertex(p, type, view, view->input_nodes[i], p->floats + floats, p->slots + words);
            floats += inputs->width;
            words += inputs->category_count;
        }
    }
    for (uint32_t step = 0; step < SCORE_STEPS; step++) {
        edges[step] = p->floats + floats;
        for (uint32_t i = 0; i < view->edges[step].count; i++) {
            assert_true(floats + 64 < BLOCK_FLOATS);
            encode_edge(p, view, step, i, p->floats + floats);
            floats += weir_nn_edge(p->net.shape, score_steps[step].relation)->width;
        }
    }
}

/* What trees say, instead of what the network says or together with it. */
static void judge_trees(parity *p, const weir_tree_columns_block *of, weir_real *logits) {
    weir_tree_columns_block block = *of;
    const uint32_t targets = block.view->targets;
    float *rows = calloc(targets * weir_tree_columns_count(p->net.shape, WEIR_TREE_COLUMNS_HOPS_MAX), sizeof *rows);
    float margins[BATCH];
    assert_true(rows && targets <= BATCH);
    assert_ok(weir_tree_columns_edges(p->columns, block.view, &block.edges));
    weir_tree_columns_write(p->columns, &block, rows);
    weir_trees_walk(p->net.trees, rows, targets, margins);
    for (uint32_t i = 0; i < targets; i++)
        logits[i] = p->family == SCORE_TREES
                        ? margins[i]
                        : (weir_real)((score_blend.network_slope * (double)logits[i] + score_blend.network_offset +
                                       score_blend.trees_slope * (double)margins[i] + score_blend.trees_offset) /
                                      2);
    free(rows);
}

static void judge(parity *p, const weir_block_view *view, weir_real *logits) {
    const weir_real *numbers[SCORE_TYPES], *edges[SCORE_STEPS];
    const uint32_t *slots[SCORE_TYPES];
    encode_block(p, view, numbers, slots, edges);
    /* The way that training takes gives the same bits as reading the arrays one by one. */
    for (uint32_t type = 0; type < SCORE_TYPES; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(p->net.shape, type);
        size_t rows = view->input_ranges[type].end - view->input_ranges[type].begin;
        assert_ok(weir_inputs_block(p->inputs, view, type, NULL, 0, p->trained, p->trained_slots));
        assert_memory_equal(p->trained, numbers[type], rows * inputs->width * sizeof *p->trained);
        assert_memory_equal(p->trained_slots, slots[type], rows * inputs->category_count * sizeof *p->trained_slots);
        some_rows(p, view, type, (uint32_t)rows, numbers[type], slots[type]);
    }
    for (uint32_t step = 0; step < SCORE_STEPS; step++) {
        uint32_t width = weir_nn_edge(p->net.shape, score_steps[step].relation)->width;
        assert_ok(weir_inputs_edges(p->inputs, view, step, 0, view->edges[step].count, p->trained));
        assert_memory_equal(p->trained, edges[step], (size_t)view->edges[step].count * width * sizeof *p->trained);
    }
    const weir_nn_batch batch = {.block = view, .numbers = numbers, .slots = slots, .edges = edges};
    assert_ok(weir_nn_forward(p->net.nn, p->net.params, &batch, NULL, p->workspace, logits, NULL));
    if (p->columns) judge_trees(p, &(weir_tree_columns_block){view, numbers, slots, NULL}, logits);
}

/* --- comparing -------------------------------------------------------------------------------------------------- */

static void same_step(const parity *p, const weir_block_view *live, const weir_block_view *still, uint32_t step) {
    const weir_sample_step *s = &score_steps[step];
    const weir_schema_relation *r = weir_schema_relation_at(p->world.schema, s->relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(p->snapshot, s->relation, s->direction);
    const weir_vertex_pair *ids =
        weir_snapshot_vertices_of(p->snapshot, s->direction == WEIR_OUT ? r->to : r->from)->ids;
    const weir_block_edges *a = &live->edges[step], *b = &still->edges[step];
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->parent_begin, b->parent_begin);
    assert_int_equal(a->parent_end, b->parent_end);
    assert_memory_equal(a->offsets, b->offsets, (a->parent_end - a->parent_begin + 1) * sizeof *a->offsets);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->parents[i], b->parents[i]);
        assert_int_equal(a->children[i], b->children[i]);
        assert_int_equal(a->times[i], b->times[i]);
        assert_true(a->refs[i] == e->events[b->refs[i]]);
        assert_true(live->ids[a->children[i]] == weir_vertex_of(ids[still->vertices[b->children[i]]]));
    }
}

static uint32_t same_batch(parity *p) {
    weir_score_ask asks[BATCH];
    weir_score scores[BATCH];
    weir_target targets[BATCH];
    weir_real logits[BATCH];
    uint32_t edges = 0;
    char key[SCORE_VERTEX_KEY];
    for (uint32_t i = 0; i < BATCH; i++) {
        weir_vertex payment = score_vertex(&p->world, SCORE_PAYMENT, 1 + score_below(&p->world, EVENTS), key);
        weir_arena_reset(p->arena);
        targets[i] = target_of(p, payment);
        asks[i] = (weir_score_ask){.vertex = payment, .time_us = targets[i].before_us, .event = targets[i].event};
        if (!p->expires && !p->telling) /* else the store of now has forgotten, deleted or changed some of them */
            assert_ok(weir_score_ask_vertex(p->world.graph, p->model, payment, 0, p->arena, &asks[i]));
        assert_int_equal(asks[i].time_us, targets[i].before_us);
        assert_true(asks[i].event == targets[i].event);
    }
    assert_ok(weir_scorer_run(p->scorer, p->model, asks, BATCH, scores));
    assert_ok(weir_sample(p->sampler, targets, BATCH, p->block));
    weir_block_inputs(p->sampler, p->block, true);
    const weir_block_view *live = weir_scorer_block(p->scorer), *still = weir_block_look(p->block);
    assert_int_equal(live->nodes, still->nodes);
    for (uint32_t step = 0; step < SCORE_STEPS; step++) {
        same_step(p, live, still, step);
        edges += live->edges[step].count;
    }
    judge(p, still, logits);
    for (uint32_t i = 0; i < BATCH; i++) {
        assert_true(fabs(scores[i].logit - (double)logits[i]) <= 1e-5);
        assert_true(p->family != SCORE_TREES || scores[i].logit == (double)logits[i]); /* no GEMM: to the last bit */
        assert_true(fabs(scores[i].score - 1 / (1 + exp(-(double)logits[i]))) <= 1e-5);
    }
    return edges;
}

/* What the network says of an account or a shop, live as of the snapshot's time, and of the snapshot's arrays. */
static void same_embedding(parity *p, uint32_t type, uint64_t n) {
    char key[SCORE_VERTEX_KEY];
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    const uint32_t hop = weir_nn_hop_of(p->net.shape, type), hidden = weir_nn_hidden(p->net.shape);
    const weir_vertex vertex = score_vertex(&p->world, type, n, key);
    const weir_score_ask ask = {
        .vertex = vertex, .time_us = p->as_of_us, .embedding = true, .inner = true, .type = (uint16_t)type};
    const weir_real *numbers[SCORE_TYPES], *edges[SCORE_STEPS];
    const uint32_t *slots[SCORE_TYPES];
    weir_target target = {.before_us = p->as_of_us, .type = (uint16_t)type};
    weir_block_view lifted;
    weir_sampler *sampler;
    weir_block *block;
    weir_score score;
    uint64_t index;
    if (!weir_snapshot_find(p->snapshot, type, vertex, &index)) return;
    target.vertex = index;
    weir_sample_opts opts = {.steps = steps, .window = 12, .targets_max = 1, .seed = 77};
    opts.step_count = weir_nn_steps_from(p->net.shape, hop, steps);
    assert_ok(weir_scorer_run(p->scorer, p->model, &ask, 1, &score));
    assert_int_equal(score.embedding_width, hidden);
    weir_arena_reset(p->arena);
    assert_ok(weir_sampler_open(&opts, p->source, &sampler));
    assert_ok(weir_block_open(sampler, &block));
    assert_ok(weir_sample(sampler, &target, 1, block));
    weir_block_inputs(sampler, block, true);
    assert_ok(weir_nn_lift(p->net.shape, weir_block_look(block), hop, p->arena, &lifted));
    assert_int_equal(score.nodes, lifted.nodes);
    encode_block(p, &lifted, numbers, slots, edges);
    const weir_nn_batch batch = {.block = &lifted, .numbers = numbers, .slots = slots, .edges = edges};
    weir_real *embedding = calloc(hidden, sizeof *embedding);
    assert_ok(weir_nn_embed(p->net.nn, p->net.params, &batch, hop, p->workspace, embedding));
    for (uint32_t i = 0; i < hidden; i++)
        assert_true(fabs((double)embedding[i] - (double)score.embedding[i]) <= 1e-5);
    free(embedding);
    weir_block_close(block);
    weir_sampler_close(sampler);
    p->embedded++;
}

static void run_decisions(const char *expire, bool telling, score_family family) {
    parity p = {.expires = *expire != 0, .telling = telling, .family = family};
    uint64_t decisions = weir_test_rounds(DECISIONS) / weir_test_part(4, 1), edges = 0;
    parity_open(&p, expire);
    for (uint64_t i = 0; i < decisions; i += BATCH)
        edges += same_batch(&p);
    for (uint64_t n = 0; !p.expires && !telling && family == SCORE_NETWORK && n < p.world.accounts + p.world.shops; n++)
        same_embedding(&p, n < p.world.accounts ? SCORE_ACCOUNT : SCORE_SHOP,
                       n < p.world.accounts ? n : n - p.world.accounts);
    assert_true(p.embedded > 20 || p.expires || telling || family != SCORE_NETWORK);
    assert_true(edges > decisions); /* there was something to compare */
    assert_true((p.forgotten > 0) == (p.expires || p.telling));
    assert_true(p.known > decisions && p.unknown > decisions && p.met > decisions / 10);
    assert_true(p.charged > decisions / 10 || p.expires); /* what has expired was never told of */
    parity_close(&p);
}

static void c2_live_and_snapshot_agree(void **state) {
    (void)state;
    run_decisions("", false, SCORE_NETWORK);
}

/* The payments of a neighbourhood are up to hours old. */
static void c2_what_has_expired_is_seen_by_neither(void **state) {
    (void)state;
    run_decisions("expire: 10m, ", false, SCORE_NETWORK);
}

static void c2_what_later_messages_say_is_seen_by_neither(void **state) {
    (void)state;
    run_decisions("", true, SCORE_NETWORK);
}

static void c2_nor_where_vertices_expire(void **state) {
    (void)state;
    run_decisions("expire: 2h, ", true, SCORE_NETWORK);
}

static void c2_trees_agree(void **state) {
    (void)state;
    run_decisions("", false, SCORE_TREES);
}

static void c2_trees_agree_on_what_came_later(void **state) {
    (void)state;
    run_decisions("expire: 2h, ", true, SCORE_TREES);
}

static void c2_blends_agree(void **state) {
    (void)state;
    run_decisions("", false, SCORE_BLEND);
}

static void c2_blends_agree_on_what_came_later(void **state) {
    (void)state;
    run_decisions("expire: 2h, ", true, SCORE_BLEND);
}

WEIR_TESTS(WEIR_CASE(c2_trees_agree), WEIR_CASE(c2_trees_agree_on_what_came_later), WEIR_CASE(c2_blends_agree),
           WEIR_CASE(c2_blends_agree_on_what_came_later), WEIR_CASE(c2_live_and_snapshot_agree),
           WEIR_CASE(c2_what_has_expired_is_seen_by_neither), WEIR_CASE(c2_what_later_messages_say_is_seen_by_neither),
           WEIR_CASE(c2_nor_where_vertices_expire))
