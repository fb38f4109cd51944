/* SPDX-License-Identifier: Apache-2.0 */
/*
 * still_test.c - a graph that stands still, as an import of a CSV: which targets are in which part, what a matrix's row
 * becomes, and what a batch hides of it. The CSV is drawn here, and what it says is remembered beside it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/base/rng.h>
#include <weir/trainer/train/train.h>

#include "batch.h"
#include "weir_test.h"

#define NODES   300u
#define CLASSES 3u
#define COLUMNS 4u
#define NONE    9u
#define LATE_S  50u /* node 1 came then; all others before everything */

typedef struct node {
    unsigned class_of; /* NONE: nobody says */
    unsigned part;     /* WEIR_TARGETS_PARTS: in no mask */
    float row[COLUMNS];
} node;

typedef struct world {
    node nodes[NODES];
    weir_snapshot *snapshot;
    char folder[4096];
} world;

static void write_node(FILE *file, const node *n, uint64_t id) {
    fprintf(file, "%llu,", (unsigned long long)id);
    if (n->class_of != NONE) fprintf(file, "%c", (char)('a' + n->class_of));
    fprintf(file, ",%g %g %g %g", (double)n->row[0], (double)n->row[1], (double)n->row[2], (double)n->row[3]);
    for (unsigned part = 0; part < WEIR_TARGETS_PARTS; part++)
        fprintf(file, ",%d", n->part == part);
    fprintf(file, ",%u\n", id == 1 ? LATE_S : 0);
}

static void write_files(const world *w, const char *nodes, const char *edges) {
    FILE *file = fopen(nodes, "w");
    assert_non_null(file);
    fprintf(file, "id,label,matrix.words.4,mask.learn,mask.look,mask.judge,timestamp\n");
    for (uint64_t i = 0; i < NODES; i++)
        write_node(file, &w->nodes[i], i);
    assert_int_equal(fclose(file), 0);
    file = fopen(edges, "w");
    assert_non_null(file);
    fprintf(file, "src,dst,timestamp\n");
    for (uint64_t i = 0; i + 1 < NODES; i++)
        fprintf(file, "%llu,%llu,%u\n", (unsigned long long)i, (unsigned long long)i + 1, LATE_S + 10);
    assert_int_equal(fclose(file), 0);
}

static void world_draw(world *w, uint64_t seed) {
    weir_rng rng = weir_rng_stream(seed, 1, 2);
    for (uint64_t i = 0; i < NODES; i++) {
        node *n = &w->nodes[i];
        n->class_of = weir_rng_below(&rng, 10) ? (unsigned)weir_rng_below(&rng, CLASSES) : NONE;
        n->part = (unsigned)weir_rng_below(&rng, WEIR_TARGETS_PARTS + 1);
        for (unsigned c = 0; c < COLUMNS; c++)
            n->row[c] = (float)weir_rng_below(&rng, 3);
    }
}

static void world_import(world *w) {
    char nodes[4096], edges[4096];
    weir_snapshot_stats stats;
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    write_files(w, nodes, edges);
    snprintf(w->folder, sizeof w->folder, "%s", weir_test_path("snapshot"));
    assert_ok(
        weir_snapshot_import(&(weir_snapshot_import_opts){.out = w->folder, .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(w->folder, &(weir_snapshot_opts){0}, &w->snapshot));
}

static void world_open(world *w, uint64_t seed) {
    world_draw(w, seed);
    world_import(w);
}

static world *world_new(void) {
    world *w = calloc(1, sizeof *w);
    if (!w) abort();
    return w;
}

static void world_free(world *w) {
    weir_snapshot_close(w->snapshot);
    free(w);
}

static uint64_t id_of(const world *w, uint64_t vertex) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, 0);
    char key[24] = {0};
    assert_true(v->key_offsets[vertex + 1] - v->key_offsets[vertex] < (int64_t)sizeof key);
    memcpy(key, v->key_bytes + v->key_offsets[vertex], (size_t)(v->key_offsets[vertex + 1] - v->key_offsets[vertex]));
    return strtoull(key, NULL, 10);
}

static weir_targets_opts by_masks(void) {
    return (weir_targets_opts){.cut = {.split = WEIR_TARGETS_BY_MASKS, .masks = {"learn", "look", "judge"}}};
}

static weir_targets_opts by_class(uint32_t learn, uint32_t validate, uint64_t seed) {
    return (weir_targets_opts){.cut = {.split = WEIR_TARGETS_BY_CLASS, .each = {learn, validate}, .seed = seed}};
}

/* Each target once, as of the snapshot's time, of its own class; parts[id] is WEIR_TARGETS_PARTS if there is none. */
static void parts_of(const world *w, const weir_targets *t, unsigned parts[NODES]) {
    for (uint64_t i = 0; i < NODES; i++)
        parts[i] = WEIR_TARGETS_PARTS;
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        for (uint64_t i = weir_targets_begin(t, part); i < t->ends[part]; i++) {
            uint64_t id = id_of(w, (uint64_t)t->targets[i].vertex);
            assert_true(parts[id] == WEIR_TARGETS_PARTS); /* in one only */
            assert_true(t->targets[i].before_us == weir_snapshot_as_of_us(w->snapshot));
            assert_int_equal(t->classes_of[i], w->nodes[id].class_of);
            parts[id] = part;
        }
    }
}

/* --- TRAIN-T3 ----------------------------------------------------------------------------------------------------- */

static void t3_masks_say_who_is_where(void **state) {
    (void)state;
    world *w = world_new();
    unsigned parts[NODES];
    weir_targets *t = NULL;
    world_open(w, weir_test_seed());
    const weir_targets_opts opts = by_masks();
    assert_ok(weir_targets_open(w->snapshot, &opts, &t));
    parts_of(w, t, parts);
    for (uint64_t i = 0; i < NODES; i++)
        assert_int_equal(parts[i], w->nodes[i].class_of == NONE ? WEIR_TARGETS_PARTS : w->nodes[i].part);
    weir_targets_close(t);
    world_free(w);
}

static void t3_so_many_of_each_class_are_drawn(void **state) {
    (void)state;
    world *w = world_new();
    unsigned parts[NODES];
    weir_targets *t = NULL;
    world_open(w, weir_test_seed());
    const weir_targets_opts opts = by_class(10, 15, 3);
    assert_ok(weir_targets_open(w->snapshot, &opts, &t));
    for (unsigned c = 0; c < CLASSES; c++) {
        assert_int_equal(t->class_counts[WEIR_TARGETS_TRAIN * CLASSES + c], 10);
        assert_int_equal(t->class_counts[WEIR_TARGETS_VALIDATION * CLASSES + c], 15);
    }
    parts_of(w, t, parts);
    for (uint64_t i = 0; i < NODES; i++)
        assert_true((parts[i] == WEIR_TARGETS_PARTS) == (w->nodes[i].class_of == NONE));
    weir_targets_close(t);
    world_free(w);
}

/* Over many seeds each node of a class learns as often as any other: chi-square, 8 standard deviations. */
static void a_draw_is_fair_and_its_seed_s_own(void **state) {
    (void)state;
    enum { DRAWS = 400, LEARN = 20 };
    world *w = world_new();
    unsigned parts[NODES], counts[NODES] = {0}, sizes[CLASSES] = {0};
    double chi = 0;
    world_open(w, weir_test_seed());
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        weir_targets *t = NULL;
        const weir_targets_opts opts = by_class(LEARN, 10, seed);
        assert_ok(weir_targets_open(w->snapshot, &opts, &t));
        parts_of(w, t, parts);
        for (uint64_t i = 0; i < NODES; i++)
            counts[i] += parts[i] == WEIR_TARGETS_TRAIN;
        weir_targets_close(t);
    }
    for (uint64_t i = 0; i < NODES; i++)
        if (w->nodes[i].class_of != NONE) sizes[w->nodes[i].class_of]++;
    unsigned freedom = 0;
    for (uint64_t i = 0; i < NODES; i++) {
        if (w->nodes[i].class_of == NONE) continue;
        double share = (double)LEARN / sizes[w->nodes[i].class_of], expected = DRAWS * share;
        chi += (counts[i] - expected) * (counts[i] - expected) / (expected * (1 - share));
        freedom++;
    }
    if (!(chi < freedom + 8 * sqrt(2.0 * freedom))) fail_msg("chi-square %g with %u", chi, freedom);
    world_free(w);
}

/* --- TRAIN-T8 ----------------------------------------------------------------------------------------------------- */

static void t8_each_target_is_in_the_test_of_one_fold(void **state) {
    (void)state;
    enum { FOLDS = 5 };
    world *w = world_new();
    unsigned parts[NODES], tested[NODES] = {0}, least[CLASSES], most[CLASSES] = {0};
    uint64_t fewest, largest;
    world_open(w, weir_test_seed());
    for (unsigned stratified = 0; stratified < 2; stratified++) {
        memset(tested, 0, sizeof tested);
        memset(least, 0xff, sizeof least);
        memset(most, 0, sizeof most);
        fewest = UINT64_MAX;
        largest = 0;
        for (uint32_t fold = 0; fold < FOLDS; fold++) {
            weir_targets *t = NULL;
            const weir_targets_opts opts = {.cut = {.split = WEIR_TARGETS_BY_DRAW,
                                                    .stratified = stratified,
                                                    .validation = 0.25,
                                                    .fold = fold,
                                                    .folds = FOLDS,
                                                    .seed = 7}};
            assert_ok(weir_targets_open(w->snapshot, &opts, &t));
            parts_of(w, t, parts);
            const uint64_t rest = t->ends[WEIR_TARGETS_VALIDATION];
            const double validated = (double)(rest - t->ends[WEIR_TARGETS_TRAIN]) / (double)rest;
            fewest = t->count - rest < fewest ? t->count - rest : fewest;
            largest = t->count - rest > largest ? t->count - rest : largest;
            assert_true(fabs(validated - 0.25) < (double)CLASSES / (double)rest);
            for (uint64_t i = 0; i < NODES; i++)
                tested[i] += parts[i] == WEIR_TARGETS_TEST;
            for (unsigned c = 0; stratified && c < CLASSES; c++) {
                const unsigned count = (unsigned)t->class_counts[WEIR_TARGETS_TEST * CLASSES + c];
                least[c] = count < least[c] ? count : least[c];
                most[c] = count > most[c] ? count : most[c];
            }
            weir_targets_close(t);
        }
        assert_true(largest - fewest <= 1);
        for (uint64_t i = 0; i < NODES; i++)
            assert_int_equal(tested[i], w->nodes[i].class_of != NONE);
        for (unsigned c = 0; stratified && c < CLASSES; c++)
            assert_true(most[c] - least[c] <= 1);
    }
    world_free(w);
}

/* Over many seeds each target is tested as often as any other: chi-square, 8 standard deviations. */
static void t8_a_drawn_test_is_fair(void **state) {
    (void)state;
    enum { DRAWS = 400 };
    world *w = world_new();
    unsigned parts[NODES], counts[NODES] = {0}, freedom = 0;
    double chi = 0, share = 0;
    world_open(w, weir_test_seed());
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        weir_targets *t = NULL;
        const weir_targets_opts opts = {
            .cut = {.split = WEIR_TARGETS_BY_DRAW, .validation = 0.2, .test = 0.3, .seed = seed}};
        assert_ok(weir_targets_open(w->snapshot, &opts, &t));
        parts_of(w, t, parts);
        for (uint64_t i = 0; i < NODES; i++)
            counts[i] += parts[i] == WEIR_TARGETS_TEST;
        share = (double)(t->count - t->ends[WEIR_TARGETS_VALIDATION]) / (double)t->count;
        assert_true(fabs(share - 0.3) <= 0.5 / (double)t->count + 1e-9);
        weir_targets_close(t);
    }
    for (uint64_t i = 0; i < NODES; i++) {
        if (w->nodes[i].class_of == NONE) continue;
        const double expected = DRAWS * share;
        chi += (counts[i] - expected) * (counts[i] - expected) / (expected * (1 - share));
        freedom++;
    }
    if (!(chi < freedom + 8 * sqrt(2.0 * freedom))) fail_msg("chi-square %g with %u", chi, freedom);
    world_free(w);
}

static void refused(const world *w, const weir_targets_opts *opts, const char *text) {
    weir_targets *t = NULL;
    assert_err(weir_targets_open(w->snapshot, opts, &t), WEIR_EDATA, text);
    assert_null(t);
}

static void what_parts_nothing_is_refused(void **state) {
    (void)state;
    world *w = world_new();
    world_open(w, 1);
    weir_targets_opts opts = by_masks();
    opts.cut.masks[1] = "lok";
    refused(w, &opts, "no mask 'lok'");
    opts.cut.masks[1] = "learn";
    refused(w, &opts, "in mask 'learn' and in mask 'learn'");
    opts = by_class(60, 60, 1);
    refused(w, &opts, "leave none for the test");
    opts = by_class(2, 2, 1);
    refused(w, &opts, "only 6 targets to learn from");
    opts = (weir_targets_opts){.cut = {.warm_up = 0, .validation = 0.2, .test = 0.2}};
    refused(w, &opts, "0 targets for validation"); /* all but one node came at once */
    world_free(w);
}

static weir_err open_and_close(void *context) {
    weir_targets *targets = NULL;
    const weir_targets_opts masks = by_masks(), each = by_class(10, 10, 1);
    weir_err err = weir_targets_open(context, &masks, &targets);
    weir_targets_close(targets);
    targets = NULL;
    if (!err) err = weir_targets_open(context, &each, &targets);
    weir_targets_close(targets);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world *w = world_new();
    world_open(w, 2);
    weir_test_every_allocation(open_and_close, w->snapshot);
    world_free(w);
}

/* --- rows of a matrix --------------------------------------------------------------------------------------------- */

static weir_nn_shape *shape_open(const world *w, uint32_t columns) {
    static const uint32_t fanouts[] = {4};
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    const weir_nn_matrix_of matrix = {0, {"words", columns, false, 0}};
    weir_sample_step steps[4];
    weir_nn_opts opts = {.hidden = 8, .steps = steps, .matrices = &matrix, .matrix_count = 1};
    weir_nn_shape *shape = NULL;
    opts.step_count = weir_train_steps(
        schema, 0, &(weir_train_reach){.fanouts = fanouts, .layers = 1, .out_only = true}, NULL, steps, 4);
    assert_int_equal(opts.step_count, 1); /* out only */
    assert_ok(weir_nn_shape_open(schema, &opts, &shape));
    return shape;
}

static void i1_a_matrix_s_row_is_the_file_s(void **state) {
    (void)state;
    world *w = world_new();
    weir_inputs *inputs = NULL;
    world_open(w, weir_test_seed());
    weir_nn_shape *shape = shape_open(w, COLUMNS);
    const weir_nn_inputs *of = weir_nn_vertex(shape, 0);
    assert_int_equal(of->width, COLUMNS);
    weir_sample_source *source;
    assert_ok(weir_sample_over_snapshot(w->snapshot, &source));
    assert_ok(weir_inputs_open(shape, weir_snapshot_schema(w->snapshot), source, &inputs));
    int64_t end_us = weir_snapshot_as_of_us(w->snapshot), late_us = LATE_S * 1000000ll;
    for (uint64_t v = 0; v < NODES; v++) {
        weir_real numbers[COLUMNS], early[COLUMNS];
        uint64_t id = id_of(w, v);
        int64_t before_us = late_us - 1; /* node 1 was not there yet */
        weir_sample_vertices rows_of = {.vertices = &v, .before_us = &end_us, .count = 1};
        assert_ok(weir_inputs_rows(inputs, &rows_of, numbers, NULL));
        rows_of.before_us = &before_us;
        assert_ok(weir_inputs_rows(inputs, &rows_of, early, NULL));
        for (unsigned c = 0; c < COLUMNS; c++) {
            assert_true(numbers[c] == (weir_real)w->nodes[id].row[c]);
            assert_true(early[c] == (id == 1 ? 0 : numbers[c]));
        }
    }
    weir_inputs_close(inputs);
    weir_sample_source_close(source);
    weir_nn_shape_free(shape);
    world_free(w);
}

static void a_snapshot_without_the_matrix_is_refused(void **state) {
    (void)state;
    world *w = world_new();
    weir_inputs *inputs = NULL;
    world_open(w, 1);
    weir_nn_shape *shape = shape_open(w, COLUMNS + 1);
    weir_sample_source *source;
    assert_ok(weir_sample_over_snapshot(w->snapshot, &source));
    assert_err(weir_inputs_open(shape, weir_snapshot_schema(w->snapshot), source, &inputs), WEIR_EVERSION,
               "no matrix 'words' of 5 columns");
    weir_sample_source_close(source);
    weir_nn_shape_free(shape);
    world_free(w);
}

/* --- what a batch hides ------------------------------------------------------------------------------------------- */

/* A share `rate` is 0, the rest has grown; the same row in the same batch always, in another batch otherwise. */
static void entries_are_hidden_by_row_and_batch(void **state) {
    (void)state;
    enum { WIDE = 20000 };
    const weir_nn_matrix matrix = {"m", WIDE, false, 1};
    const weir_nn_inputs inputs = {.matrices = &matrix, .matrix_count = 1, .width = WIDE + 1};
    weir_train_entries e = {0.25, weir_test_seed(), 3, 77, 1000};
    static weir_real one[WIDE + 1], again[WIDE + 1], other[WIDE + 1];
    unsigned hidden = 0, both = 0;
    for (unsigned i = 0; i <= WIDE; i++)
        one[i] = again[i] = other[i] = i % 2 == 0 ? 3 : 0;
    weir_train_entries_hide(&inputs, &e, one);
    weir_train_entries_hide(&inputs, &e, again);
    e.batch++;
    weir_train_entries_hide(&inputs, &e, other);
    assert_memory_equal(one, again, sizeof one);
    assert_true(one[0] == 3); /* no entry of the matrix */
    for (unsigned i = 2; i <= WIDE; i += 2) {
        assert_true(one[i] == 0 || fabs((double)one[i] - 4) < 1e-6);
        assert_true(one[i - 1] == 0);
        hidden += one[i] == 0;
        both += one[i] == 0 && other[i] == 0;
    }
    /* 10,000 draws: 2,500 and 625, each within 8 standard deviations (43 and 24) */
    assert_in_range(hidden, 2500 - 346, 2500 + 346);
    assert_in_range(both, 625 - 194, 625 + 194);
}

/* --- resuming ----------------------------------------------------------------------------------------------------- */

static weir_err run(const weir_train_opts *opts) {
    weir_comm *comm = NULL;
    weir_trained *trained = NULL;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    weir_err err = weir_train_run(comm, opts, &trained);
    weir_trained_close(trained);
    weir_comm_stop(comm);
    return err;
}

/* As the splits of a published data set are: what one tests, the other has learnt. */
static void resume_with_other_masks_of_one_size(void **state) {
    (void)state;
    world *w = world_new();
    world_draw(w, 1);
    for (unsigned i = 0; i < NODES; i++) {
        w->nodes[i].class_of = i % 4 % CLASSES;
        w->nodes[i].part = i % WEIR_TARGETS_PARTS;
    }
    world_import(w);
    weir_train_opts opts = weir_train_defaults();
    opts.snapshot = w->snapshot;
    opts.cut = by_masks().cut;
    opts.folder = weir_test_path("run");
    opts.hidden = 4;
    opts.epochs = 1;
    assert_ok(run(&opts));
    opts.resume = true;
    assert_ok(run(&opts));
    opts.cut.masks[WEIR_TARGETS_TRAIN] = "judge";
    opts.cut.masks[WEIR_TARGETS_TEST] = "learn";
    assert_err(run(&opts), WEIR_EVERSION, "of other options");
    world_free(w);
}

WEIR_TESTS(WEIR_CASE(t3_masks_say_who_is_where), WEIR_CASE(t3_so_many_of_each_class_are_drawn),
           WEIR_CASE(a_draw_is_fair_and_its_seed_s_own), WEIR_CASE(t8_each_target_is_in_the_test_of_one_fold),
           WEIR_CASE(t8_a_drawn_test_is_fair), WEIR_CASE(what_parts_nothing_is_refused),
           WEIR_CASE(every_allocation_may_fail), WEIR_CASE(i1_a_matrix_s_row_is_the_file_s),
           WEIR_CASE(a_snapshot_without_the_matrix_is_refused), WEIR_CASE(entries_are_hidden_by_row_and_batch),
           WEIR_CASE(resume_with_other_masks_of_one_size))
