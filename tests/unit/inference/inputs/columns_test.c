/* SPDX-License-Identifier: Apache-2.0 */
/* columns_test.c - rows of targets of a random graph: living and in a snapshot, and as they are described. */
#include "score_fixture.h"

#include <math.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/inputs/inputs.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/snapshot/snapshot.h>

#define EVENTS  900u
#define LATER   200u
#define BATCH   16u
#define ROUNDS  40u
#define WINDOW  12u
#define WIDEST  400u
#define MET_MAX 8192u

/* A source, and all that reads rows from it. */
typedef struct side {
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_tree_columns *columns;
    weir_real numbers[SCORE_TYPES][MET_MAX];
    uint32_t slots[SCORE_TYPES][MET_MAX];
    const weir_block_view *view;
    const uint32_t *const *edges;
    float rows[BATCH][WIDEST];
} side;

typedef struct columns_world {
    score_world world;
    score_net net;
    weir_snapshot *snapshot;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    uint32_t step_count, hops;
    size_t width;
    side live, still;
} columns_world;

static void side_open(const columns_world *w, side *s, const weir_schema *schema) {
    const weir_sample_opts opts = {.steps = w->steps,
                                   .step_count = w->step_count,
                                   .window = WINDOW,
                                   .targets_max = BATCH,
                                   .seed = 1,
                                   .own_rows = true};
    assert_ok(weir_sampler_open(&opts, s->source, &s->sampler));
    assert_ok(weir_block_open(s->sampler, &s->block));
    assert_ok(weir_inputs_open(w->net.shape, schema, s->source, &s->inputs));
    assert_ok(weir_tree_columns_open(w->net.shape, w->hops, s->source, &s->columns));
}

static void side_close(side *s) {
    weir_tree_columns_close(s->columns);
    weir_inputs_close(s->inputs);
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->source);
}

static void side_read(const columns_world *w, side *s, const weir_target *targets) {
    const weir_real *numbers[SCORE_TYPES];
    const uint32_t *slots[SCORE_TYPES];
    assert_ok(weir_sample(s->sampler, targets, BATCH, s->block));
    weir_block_inputs(s->sampler, s->block, true);
    s->view = weir_block_look(s->block);
    for (uint32_t type = 0; type < SCORE_TYPES; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(w->net.shape, type);
        const size_t rows = s->view->input_ranges[type].end - s->view->input_ranges[type].begin;
        assert_true(rows * inputs->width <= MET_MAX && rows * inputs->category_count <= MET_MAX);
        assert_ok(weir_inputs_block(s->inputs, s->view, type, NULL, 0, s->numbers[type], s->slots[type]));
        numbers[type] = s->numbers[type];
        slots[type] = s->slots[type];
    }
    assert_ok(weir_tree_columns_edges(s->columns, s->view, &s->edges));
    const weir_tree_columns_block block = {s->view, numbers, slots, s->edges};
    float *rows = calloc(BATCH * w->width, sizeof *rows);
    assert_non_null(rows);
    weir_tree_columns_write(s->columns, &block, rows);
    for (uint32_t i = 0; i < BATCH; i++)
        memcpy(s->rows[i], rows + i * w->width, w->width * sizeof *rows);
    free(rows);
}

/* The graph goes on growing after the snapshot. */
static columns_world *world_make(uint32_t hops, const char *expire, uint64_t telling) {
    const weir_graph_opts read_only = {.read_only = true};
    const weir_snapshot_opts opts = {.load = true};
    weir_snapshot_stats stats;
    weir_graph *still;
    columns_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    score_world_open_expiring(&w->world, weir_test_seed(), weir_test_path("store"), expire);
    w->world.accounts = 6; /* of many payments each: more than a window, and than a fan-out */
    score_world_grow_telling(&w->world, EVENTS, telling);
    score_net_open(&w->net, w->world.schema, score_steps, SCORE_STEPS, 1);
    const weir_snapshot_build_opts build = {.out = weir_test_path("snapshot"), .as_of_us = w->world.now_us + 1};
    assert_ok(weir_graph_checkpoint(w->world.graph, weir_test_path("checkpoint")));
    assert_ok(weir_graph_restore(weir_test_path("checkpoint"), weir_test_path("still")));
    assert_ok(weir_graph_open(weir_test_path("still"), w->world.schema, &read_only, &still));
    assert_ok(weir_snapshot_build(still, &build, &stats));
    assert_ok(weir_graph_close(still));
    assert_ok(weir_snapshot_open(weir_test_path("snapshot"), &opts, &w->snapshot));
    score_world_grow_telling(&w->world, LATER, telling);
    w->hops = hops;
    w->step_count = weir_tree_columns_steps(w->net.shape, hops, w->steps);
    w->width = weir_tree_columns_count(w->net.shape, hops);
    assert_true(w->width <= WIDEST);
    assert_ok(weir_sample_over_graph(w->world.graph, 64u << 20, &w->live.source));
    assert_ok(weir_sample_over_snapshot(w->snapshot, &w->still.source));
    side_open(w, &w->live, w->world.schema);
    side_open(w, &w->still, weir_snapshot_schema(w->snapshot));
    return w;
}

static void world_close(columns_world *w) {
    side_close(&w->live);
    side_close(&w->still);
    weir_snapshot_close(w->snapshot);
    score_net_close(&w->net);
    score_world_close(&w->world);
    free(w);
}

/* The same payment for both, as of its time, with its own event. */
static void draw_targets(columns_world *w, weir_target live[BATCH], weir_target still[BATCH]) {
    char key[SCORE_VERTEX_KEY];
    for (uint32_t i = 0; i < BATCH; i++) {
        uint64_t index = 0;
        const weir_vertex payment = score_vertex(&w->world, SCORE_PAYMENT, 1 + score_below(&w->world, EVENTS), key);
        assert_true(weir_snapshot_find(w->snapshot, SCORE_PAYMENT, payment, &index));
        const weir_snapshot_spans *lives = &weir_snapshot_vertices_of(w->snapshot, SCORE_PAYMENT)->lives;
        still[i] = (weir_target){
            .vertex = index, .type = SCORE_PAYMENT, .before_us = lives->times[lives->indptr[index + 1] - 1]};
        for (uint32_t r = SCORE_PAID_BY; !still[i].event && r <= SCORE_PAID_AT; r++) {
            const weir_snapshot_edges *e = weir_snapshot_edges_of(w->snapshot, r, WEIR_OUT);
            for (int64_t at = e->indptr[index]; !still[i].event && at < e->indptr[index + 1]; at++)
                if (e->times[at] == still[i].before_us) still[i].event = e->events[at];
        }
        live[i] = still[i];
        live[i].vertex = payment;
    }
}

/* --- as they are described ---------------------------------------------------------------------------------------- */

static size_t naive_vertex(const columns_world *w, const side *s, uint32_t type, uint32_t node, float *at) {
    const weir_nn_inputs *inputs = weir_nn_vertex(w->net.shape, type);
    const size_t row = s->view->input_of[node] - s->view->input_ranges[type].begin;
    for (uint32_t c = 0; c < inputs->width; c++)
        at[c] = (float)s->numbers[type][row * inputs->width + c];
    for (uint32_t c = 0; c + 1 < inputs->category_count; c++) /* the last one is the vertex itself */
        at[inputs->width + c] = (float)s->slots[type][row * inputs->category_count + c];
    return inputs->width + inputs->category_count - 1;
}

static uint32_t naive_children(const side *s, uint32_t step, uint32_t node, uint32_t *children) {
    const weir_block_edges *e = &s->view->edges[step];
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count; i++)
        if (e->parents[i] == node) children[count++] = e->children[i];
    return count;
}

/* By the snapshot's arrays: edges that are older than the target, and those of its own event. */
static uint32_t naive_edges(const columns_world *w, const side *s, uint32_t step, uint32_t node) {
    const weir_snapshot_edges *e =
        weir_snapshot_edges_of(w->snapshot, w->steps[step].relation, w->steps[step].direction);
    const uint64_t vertex = s->view->vertices[node], event = node < BATCH ? s->view->events[node] : 0;
    const int64_t before_us = s->view->before_us[s->view->groups[node]];
    uint32_t count = 0;
    for (int64_t i = e->indptr[vertex]; i < e->indptr[vertex + 1]; i++)
        count += e->times[i] < before_us || (event && e->events[i] == event);
    return count;
}

/* Means of the children of parents along a step, and of their edges. */
static size_t naive_means(const columns_world *w, const side *s, uint32_t step, const uint32_t *parents, uint32_t count,
                          float *at) {
    const uint32_t type = weir_nn_child_of(w->net.shape, step), width = weir_nn_vertex(w->net.shape, type)->width;
    double edges = 0, sums[64] = {0};
    uint32_t with = 0, children[256];
    float one[64];
    for (uint32_t p = 0; p < count; p++) {
        const uint32_t here = naive_children(s, step, parents[p], children);
        edges += log1p(naive_edges(w, s, step, parents[p]));
        with += here > 0;
        for (uint32_t i = 0; i < here; i++) {
            naive_vertex(w, s, type, children[i], one);
            for (uint32_t c = 0; c < width; c++)
                sums[c] += (double)one[c] / here;
        }
    }
    at[0] = count ? (float)(edges / count) : NAN;
    for (uint32_t c = 0; c < width; c++)
        at[1 + c] = with ? (float)(sums[c] / with) : NAN;
    return 1 + width;
}

static size_t naive_row(const columns_world *w, const side *s, uint32_t target, float *row) {
    size_t at = naive_vertex(w, s, SCORE_PAYMENT, target, row);
    for (uint32_t first = 0; first < w->step_count && w->steps[first].hop == 1; first++) {
        const uint32_t type = weir_nn_child_of(w->net.shape, first);
        uint32_t children[256];
        const uint32_t count = naive_children(s, first, target, children);
        at += naive_means(w, s, first, &target, 1, row + at);
        const weir_nn_inputs *inputs = weir_nn_vertex(w->net.shape, type);
        for (uint32_t c = 0; !count && c < inputs->width + inputs->category_count - 1; c++)
            row[at++] = NAN;
        if (count) at += naive_vertex(w, s, type, children[0], row + at);
        for (uint32_t step = first; step < w->step_count; step++)
            if (w->steps[step].hop == 2 && weir_nn_parent_of(w->net.shape, step) == type)
                at += naive_means(w, s, step, children, count, row + at);
    }
    return at;
}

/* --- what they are called ----------------------------------------------------------------------------------------- */

#define NAME_MAX_HERE 96u

/* The name of each column, as it is described; and of each the number whose scale it has. */
typedef struct naming {
    char names[WIDEST][NAME_MAX_HERE];
    const weir_nn_number *numbers[WIDEST];
    size_t count;
} naming;

static void naive_name(naming *n, const char *prefix, const char *name, const weir_nn_number *number) {
    assert_true(n->count < WIDEST);
    n->numbers[n->count] = number;
    snprintf(n->names[n->count++], NAME_MAX_HERE, "%s%s", prefix, name);
}

static void naive_name_numbers(naming *n, const weir_nn_inputs *inputs, const char *prefix) {
    for (uint32_t c = 0; c < inputs->width; c++)
        for (uint32_t i = inputs->number_count; i > 0; i--)
            if (inputs->numbers[i - 1].column <= c) { /* the last one that begins here or before */
                naive_name(n, prefix, inputs->numbers[i - 1].name, &inputs->numbers[i - 1]);
                break;
            }
}

static void naive_name_step(const columns_world *w, naming *n, const char *before, uint32_t step, bool newest) {
    const weir_schema_relation *relation = weir_schema_relation_at(w->world.schema, w->steps[step].relation);
    const char *direction = w->steps[step].direction == WEIR_OUT ? "out" : "in";
    const weir_nn_inputs *inputs = weir_nn_vertex(w->net.shape, weir_nn_child_of(w->net.shape, step));
    char prefix[NAME_MAX_HERE];
    snprintf(prefix, sizeof prefix, "%s%s.%s.", before, relation->name, direction);
    naive_name(n, prefix, "edges", NULL);
    snprintf(prefix, sizeof prefix, "%s%s.%s.mean.", before, relation->name, direction);
    naive_name_numbers(n, inputs, prefix);
    if (!newest) return;
    snprintf(prefix, sizeof prefix, "%s.%s.newest.", relation->name, direction);
    naive_name_numbers(n, inputs, prefix);
    for (uint32_t i = 0; i + 1 < inputs->category_count; i++)
        naive_name(n, prefix, inputs->categories[i].name, NULL);
    snprintf(prefix, sizeof prefix, "%s.%s.", relation->name, direction);
    for (uint32_t second = step; second < w->step_count; second++)
        if (w->steps[second].hop == 2 &&
            weir_nn_parent_of(w->net.shape, second) == weir_nn_child_of(w->net.shape, step))
            naive_name_step(w, n, prefix, second, false);
}

static void naive_names(const columns_world *w, naming *n) {
    const weir_nn_inputs *inputs = weir_nn_vertex(w->net.shape, SCORE_PAYMENT);
    n->count = 0;
    naive_name_numbers(n, inputs, "");
    for (uint32_t i = 0; i + 1 < inputs->category_count; i++)
        naive_name(n, "", inputs->categories[i].name, NULL);
    for (uint32_t step = 0; step < w->step_count && w->steps[step].hop == 1; step++)
        naive_name_step(w, n, "", step, true);
}

static double value_of(const weir_tree_column *columns, uint32_t count, const char *name, const float *row) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(columns[i].name, name)) return weir_tree_column_value(&columns[i], row);
    fail_msg("no column is called %s", name);
    return NAN;
}

/* How many edges, and what the newest shop is, by the snapshot. */
static void same_values(const columns_world *w, const weir_tree_column *columns, uint32_t count) {
    const side *s = &w->still;
    for (uint32_t i = 0; i < BATCH; i++) {
        const float *row = s->rows[i];
        uint32_t children[256];
        assert_true(value_of(columns, count, "paid_by.out.edges", row) == naive_edges(w, s, 0, i));
        const double mcc = value_of(columns, count, "paid_at.out.newest.mcc", row);
        if (!naive_children(s, 1, i, children)) {
            assert_true(isnan(mcc) && isnan(value_of(columns, count, "paid_at.out.mean.last", row)));
            continue;
        }
        const size_t shop = s->view->input_of[children[0]] - s->view->input_ranges[SCORE_SHOP].begin;
        assert_true(mcc == s->slots[SCORE_SHOP][2 * shop]); /* the other one is the shop itself */
    }
}

static void names_of(uint32_t hops) {
    static naming n;
    weir_arena *arena;
    const weir_tree_column *columns;
    weir_target live[BATCH], still[BATCH];
    uint32_t count, at = 0;
    columns_world *w = world_make(hops, "", 0);
    naive_names(w, &n);
    assert_int_equal(n.count, w->width);
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_tree_columns_name(w->net.shape, hops, arena, &columns, &count));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(columns[i].begin, at);
        for (; at < columns[i].begin + columns[i].count; at++) {
            assert_string_equal(columns[i].name, n.names[at]);
            assert_ptr_equal(columns[i].number, n.numbers[at]);
        }
    }
    assert_int_equal(at, w->width);
    for (uint64_t round = weir_test_rounds(10); round > 0; round--) {
        draw_targets(w, live, still);
        side_read(w, &w->still, still);
        same_values(w, columns, count);
    }
    weir_arena_close(arena);
    world_close(w);
}

static void i3_each_column_has_its_name(void **state) {
    (void)state;
    names_of(2);
}

static void i3_of_one_hop(void **state) {
    (void)state;
    names_of(1);
}

static void names_need_room(void **state) {
    (void)state;
    weir_schema *schema = score_schema("");
    weir_arena *arena;
    const weir_tree_column *columns;
    uint32_t count;
    score_net net;
    bool room = false;
    score_net_open(&net, schema, score_steps, SCORE_STEPS, 1);
    for (size_t bytes = 1; !room; bytes += 400) {
        assert_ok(weir_arena_open(bytes, &arena));
        weir_err err = weir_tree_columns_name(net.shape, 2, arena, &columns, &count);
        room = err == WEIR_OK;
        if (!room) assert_err(err, WEIR_ELIMIT, "too many to be named");
        assert_true(room ? bytes > 4000 : bytes < 65536);
        weir_arena_close(arena);
    }
    score_net_close(&net);
    weir_schema_free(schema);
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void rows_of(uint32_t hops, const char *expire, uint64_t telling, bool describe) {
    columns_world *w = world_make(hops, expire, telling);
    uint64_t rounds = weir_test_rounds(ROUNDS), many = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        weir_target live[BATCH], still[BATCH];
        float row[WIDEST];
        draw_targets(w, live, still);
        side_read(w, &w->live, live);
        side_read(w, &w->still, still);
        for (uint32_t i = 0; i < BATCH; i++) {
            assert_memory_equal(w->live.rows[i], w->still.rows[i], w->width * sizeof *row);
            if (!describe) continue;
            assert_int_equal(naive_row(w, &w->still, i, row), w->width);
            for (size_t c = 0; c < w->width; c++) {
                const float found = w->still.rows[i][c];
                assert_true(isnan(row[c]) ? isnan(found) : fabsf(row[c] - found) <= 1e-5f * (1 + fabsf(row[c])));
            }
            for (uint32_t step = 0; step < w->step_count; step++)
                many += w->steps[step].hop == 2 && w->still.edges[step][0] > WINDOW;
        }
    }
    assert_true(many > rounds || !describe || hops < 2); /* counted, though no window shows them */
    world_close(w);
}

static void i2_living_and_snapshot_say_the_same(void **state) {
    (void)state;
    rows_of(2, "", 0, true);
}

static void i2_nor_what_expires_or_came_later(void **state) {
    (void)state;
    rows_of(2, "", 40, false);
}

static void i2_of_one_hop(void **state) {
    (void)state;
    rows_of(1, "", 0, true);
}

static void i2_where_payments_expire(void **state) {
    (void)state;
    rows_of(2, "expire: 2h, ", 40, false);
}

static void steps_are_those_of_the_shape_and_the_newest(void **state) {
    (void)state;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    weir_schema *schema = score_schema("");
    score_net net, recent;
    score_net_open(&net, schema, score_steps, SCORE_STEPS, 1);
    assert_int_equal(weir_tree_columns_steps(net.shape, 0, steps), 0);
    assert_int_equal(weir_tree_columns_steps(net.shape, 1, steps), 2);
    assert_int_equal(weir_tree_columns_steps(net.shape, 2, steps), SCORE_STEPS);
    for (uint32_t i = 0; i < SCORE_STEPS; i++) {
        assert_int_equal(steps[i].strategy, WEIR_SAMPLE_RECENT);
        assert_int_equal(steps[i].fanout, score_steps[i].fanout);
    }
    assert_true(weir_tree_columns_share(net.shape, 0) && !weir_tree_columns_share(net.shape, 1));
    score_net_open(&recent, schema, steps, SCORE_STEPS, 1);
    assert_true(weir_tree_columns_share(recent.shape, 2));
    score_net_close(&recent);
    score_net_close(&net);
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(i2_living_and_snapshot_say_the_same), WEIR_CASE(i2_nor_what_expires_or_came_later),
           WEIR_CASE(i2_of_one_hop), WEIR_CASE(i2_where_payments_expire), WEIR_CASE(i3_each_column_has_its_name),
           WEIR_CASE(i3_of_one_hop), WEIR_CASE(names_need_room), WEIR_CASE(steps_are_those_of_the_shape_and_the_newest))
