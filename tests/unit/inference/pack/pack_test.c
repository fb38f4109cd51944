/* SPDX-License-Identifier: Apache-2.0 */
/* pack_test.c - networks and trees into a model folder and out again; and folders that are whole but wrong. */
#include "model_register.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/inference/inputs/columns.h>
#include <weir/store/base/alloc.h>

#include "trees_fixture.h"

static const weir_model_opts unsigned_too = {.accept_unsigned = true};

typedef struct packing {
    weir_schema *schema;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params;
    weir_pack_draft *draft;
    weir_trees *trees; /* of those with trees; else NULL */
} packing;

/* Of merchants with embeddings of their own. */
static const uint64_t known_ids[] = {2, 3, 5000000000, UINT64_MAX};
#define KNOWN (sizeof known_ids / sizeof *known_ids)

static void packing_open(packing *p) {
    *p = (packing){0};
    weir_sample_step steps[16];
    void *memory;
    p->schema = register_schema();
    const weir_nn_known known = {weir_schema_vertex_find(p->schema, "merchant"), known_ids, KNOWN};
    const weir_nn_opts opts = {
        .hidden = 8, .steps = steps, .step_count = register_steps(p->schema, steps), .known = &known, .known_count = 1};
    assert_ok(weir_nn_shape_open(p->schema, &opts, &p->shape));
    assert_ok(weir_nn_open(p->shape, weir_kernels_cpu(), &p->nn));
    assert_ok(
        weir_kernels_cpu()->alloc(weir_kernels_cpu(), weir_nn_parameter_count(p->nn) * sizeof(weir_real), &memory));
    p->params = memory;
    weir_nn_init(p->nn, weir_test_seed(), p->params);
    const weir_pack_opts pack = {.nn = p->nn,
                                 .params = p->params,
                                 .sample_seed = INT64_MAX,
                                 .slope = 0.1,
                                 .offset = -1e-9,
                                 .schema_hash = weir_schema_hash(p->schema)};
    assert_ok(weir_pack_draft_open(&pack, &p->draft));
}

static void packing_close(packing *p) {
    weir_pack_draft_close(p->draft);
    weir_trees_close(p->trees);
    weir_kernels_cpu()->release(weir_kernels_cpu(), p->params);
    weir_nn_close(p->nn);
    weir_nn_shape_free(p->shape);
    weir_schema_free(p->schema);
}

/* What the folder gives that these options make. */
static weir_err through(const weir_model_write_opts *opts, const char *name, weir_pack **packp) {
    weir_model *model;
    assert_ok(weir_model_write(weir_test_path(name), opts));
    assert_ok(weir_model_open(weir_test_path(name), &unsigned_too, &model));
    weir_err err = weir_pack_open(model, weir_kernels_cpu(), packp);
    weir_model_close(model);
    return err;
}

static void v1_what_comes_out_is_what_went_in(void **state) {
    (void)state;
    packing p;
    weir_pack *pack;
    weir_buf before = {0}, after = {0};
    packing_open(&p);
    assert_ok(through(weir_pack_draft_opts(p.draft), "model", &pack));
    uint64_t count = weir_nn_parameter_count(p.nn);
    assert_int_equal(weir_nn_parameter_count(weir_pack_look(pack).nn), count);
    assert_memory_equal(weir_pack_look(pack).params, p.params, count * sizeof(weir_real));
    weir_json json = weir_json_begin(&before);
    weir_nn_shape_print(p.shape, &json);
    json = weir_json_begin(&after);
    weir_nn_shape_print(weir_nn_shape_of(weir_pack_look(pack).nn), &json);
    assert_string_equal(before.bytes, after.bytes);
    assert_true(weir_pack_look(pack).sample_seed == INT64_MAX);
    assert_true(weir_pack_look(pack).slope == 0.1 && weir_pack_look(pack).offset == -1e-9);
    assert_ok(weir_nn_shape_fits(weir_nn_shape_of(weir_pack_look(pack).nn), p.schema));
    assert_ok(weir_nn_shape_serves(weir_nn_shape_of(weir_pack_look(pack).nn)));
    const weir_nn_inputs *merchant =
        weir_nn_vertex(weir_nn_shape_of(weir_pack_look(pack).nn), weir_schema_vertex_find(p.schema, "merchant"));
    assert_int_equal(merchant->known_count, KNOWN);
    assert_memory_equal(merchant->known, known_ids, sizeof known_ids);
    for (uint32_t i = 0; i < KNOWN; i++)
        assert_int_equal(weir_nn_slot_of(merchant, known_ids[i]), i);
    assert_int_equal(weir_nn_slot_of(merchant, 4), WEIR_NO_SLOT);
    weir_buf_free(&before);
    weir_buf_free(&after);
    weir_pack_close(pack);
    packing_close(&p);
}

static void folders_that_are_whole_but_wrong(void **state) {
    (void)state;
    packing p;
    weir_pack *pack;
    packing_open(&p);
    const weir_model_write_opts *good = weir_pack_draft_opts(p.draft);
    weir_model_tensor tensors[512];
    weir_model_write_opts bad = *good;
    assert_in_range(good->tensor_count, 2, 511);
    bad.tensor_count = good->tensor_count - 1;
    assert_err(through(&bad, "fewer", &pack), WEIR_EDATA, "tensors");
    assert_null(pack);
    memcpy(tensors, good->tensors, good->tensor_count * sizeof tensors[0]);
    assert_non_null(tensors[1].data); /* behind the list of known vertices */
    tensors[1].name = "somebody.else";
    bad = *good;
    bad.tensors = tensors;
    assert_err(through(&bad, "renamed", &pack), WEIR_EDATA, "lack");
    memcpy(tensors, good->tensors, good->tensor_count * sizeof tensors[0]);
    uint64_t rows = tensors[1].rows;
    tensors[1].rows = tensors[1].cols;
    tensors[1].cols = rows;
    if (rows != tensors[1].rows) assert_err(through(&bad, "turned", &pack), WEIR_EDATA, "its network needs");
    bad = *good;
    bad.calibration = "{\"slope\": 1}";
    assert_err(through(&bad, "uncalibrated", &pack), WEIR_EDATA, "'offset' is missing");
    bad.calibration = "{\"slope\": \"x\", \"offset\": 0}";
    assert_err(through(&bad, "misspelt", &pack), WEIR_EDATA, "train the model again");
    bad = *good;
    bad.architecture = "{\"network\": {}}";
    assert_err(through(&bad, "seedless", &pack), WEIR_EDATA, "'sample_seed' is missing");
    bad.architecture = "{\"sample_seed\": 1, \"network\": {}}";
    assert_err(through(&bad, "shapeless", &pack), WEIR_EDATA, NULL);
    packing_close(&p);
}

/* The list of known vertices is as untrusted as the weights, and one row of the table each. */
static void known_vertices_that_are_wrong(void **state) {
    (void)state;
    static const float four_floats[KNOWN] = {0};
    static const uint64_t falling[KNOWN] = {2, 5, 3, 9}, twice[KNOWN] = {2, 3, 3, 9};
    packing p;
    weir_pack *pack;
    weir_model_tensor tensors[512];
    packing_open(&p);
    const weir_model_write_opts *good = weir_pack_draft_opts(p.draft);
    weir_model_write_opts bad = *good;
    memcpy(tensors, good->tensors, good->tensor_count * sizeof tensors[0]);
    bad.tensors = tensors;
    assert_string_equal(tensors[0].name, "encode.merchant.known");
    tensors[0].words = falling;
    assert_err(through(&bad, "falling", &pack), WEIR_EDATA, "ascending");
    tensors[0].words = twice;
    assert_err(through(&bad, "twice", &pack), WEIR_EDATA, "ascending");
    tensors[0].words = known_ids;
    tensors[0].rows--;
    assert_err(through(&bad, "short", &pack), WEIR_EDATA, "ascending");
    tensors[0].rows++;
    tensors[0].words = NULL;
    tensors[0].data = four_floats;
    assert_err(through(&bad, "floats", &pack), WEIR_EDATA, "lack the list 'encode.merchant.known'");
    bad.tensors = good->tensors + 1;
    bad.tensor_count = good->tensor_count - 1;
    assert_err(through(&bad, "without", &pack), WEIR_EDATA, "lack the list 'encode.merchant.known'");
    assert_null(pack);
    packing_close(&p);
}

/* Such weights are numbers, each by itself, and were served: every score was null. */
static void v2_weights_that_overflow_are_refused_by_name(void **state) {
    (void)state;
    packing p;
    weir_pack *pack;
    weir_model_tensor tensors[512];
    char name[32];
    packing_open(&p);
    const weir_model_write_opts *good = weir_pack_draft_opts(p.draft);
    weir_model_write_opts bad = *good;
    bad.tensors = tensors;
    for (size_t i = 1; i < good->tensor_count; i += 7) {
        size_t count = good->tensors[i].rows * good->tensors[i].cols;
        float *data = malloc(count * sizeof *data);
        assert_non_null(data);
        for (size_t at = 0; at < count; at++)
            data[at] = 3e38f;
        memcpy(tensors, good->tensors, good->tensor_count * sizeof tensors[0]);
        tensors[i].data = data;
        snprintf(name, sizeof name, "large%zu", i);
        assert_err(through(&bad, name, &pack), WEIR_EDATA, tensors[i].name);
        assert_null(pack);
        free(data);
    }
    bad = *good;
    bad.calibration = "{\"slope\": 1e308, \"offset\": 0}";
    assert_err(through(&bad, "steep", &pack), WEIR_EDATA, "calibration");
    packing_close(&p);
}

/* --- trees ------------------------------------------------------------------------------------------------------- */

#define HOPS 2u

/* The same with trees: alone, or beside the network. */
static void packing_open_trees(packing *p, bool blend) {
    packing_open(p);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    weir_pack_draft_close(p->draft);
    p->trees = forest_random(&rng, 20, (uint32_t)weir_tree_columns_count(p->shape, HOPS));
    const weir_pack_opts pack = {.nn = blend ? p->nn : NULL,
                                 .params = blend ? p->params : NULL,
                                 .shape = p->shape,
                                 .trees = p->trees,
                                 .hops = HOPS,
                                 .blend = {0.1, 0.2, 0.3, -0.4},
                                 .sample_seed = 5,
                                 .slope = 0.7,
                                 .offset = 1e-9,
                                 .schema_hash = weir_schema_hash(p->schema)};
    assert_ok(weir_pack_draft_open(&pack, &p->draft));
}

static void same_trees(const weir_trees *a, const weir_trees *b) {
    const weir_trees_view x = weir_trees_look(a), y = weir_trees_look(b);
    assert_true(x.trees == y.trees && x.columns == y.columns && x.base == y.base);
    assert_memory_equal(x.begins, y.begins, (x.trees + 1u) * sizeof *x.begins);
    assert_true(x.covers && y.covers);
    assert_memory_equal(x.covers, y.covers, x.begins[x.trees] * sizeof *x.covers);
    for (uint32_t i = 0; i < x.begins[x.trees]; i++)
        assert_true(x.nodes[i].left == y.nodes[i].left && x.nodes[i].column == y.nodes[i].column &&
                    x.nodes[i].value == y.nodes[i].value && x.nodes[i].missing_right == y.nodes[i].missing_right);
}

static void v1_trees_come_out_as_they_went_in(void **state) {
    (void)state;
    for (int blend = 0; blend < 2; blend++) {
        packing p;
        weir_pack *pack;
        weir_model *model;
        weir_pack_family family;
        packing_open_trees(&p, blend);
        const char *name = blend ? "blend" : "trees";
        assert_ok(through(weir_pack_draft_opts(p.draft), name, &pack));
        const weir_pack_contents of = weir_pack_look(pack);
        assert_int_equal(of.family, blend ? WEIR_PACK_BLEND : WEIR_PACK_TREES);
        same_trees(of.trees, p.trees);
        assert_true(of.hops == HOPS && of.sample_seed == 5 && of.slope == 0.7 && of.offset == 1e-9);
        assert_true((of.nn != NULL) == blend && (of.params != NULL) == blend);
        assert_ok(weir_nn_shape_fits(of.shape, p.schema));
        if (blend) {
            const uint64_t count = weir_nn_parameter_count(p.nn);
            assert_memory_equal(of.params, p.params, count * sizeof(weir_real));
            assert_true(of.blend.network_slope == 0.1 && of.blend.network_offset == 0.2 &&
                        of.blend.trees_slope == 0.3 && of.blend.trees_offset == -0.4);
        }
        assert_ok(weir_model_open(weir_test_path(name), &unsigned_too, &model));
        assert_ok(weir_pack_family_of(model, &family));
        assert_string_equal(weir_pack_family_name(family), name);
        weir_model_close(model);
        weir_pack_close(pack);
        packing_close(&p);
    }
}

static void trees_that_are_whole_but_wrong(void **state) {
    (void)state;
    static const float others[8] = {0};
    packing p;
    weir_pack *pack;
    weir_model_tensor tensors[512];
    packing_open_trees(&p, false);
    const weir_model_write_opts *good = weir_pack_draft_opts(p.draft);
    const size_t count = good->tensor_count;
    char name[32];
    for (size_t i = 1; i < count; i++) { /* the first one are known vertices */
        weir_model_write_opts bad = *good;
        bad.tensors = tensors;
        memcpy(tensors, good->tensors, count * sizeof tensors[0]);
        tensors[i].rows--;
        snprintf(name, sizeof name, "short%zu", i);
        assert_err(through(&bad, name, &pack), WEIR_EDATA, NULL);
        memcpy(tensors + i, good->tensors + i + 1, (count - i - 1) * sizeof tensors[0]);
        bad.tensor_count = count - 1;
        snprintf(name, sizeof name, "without%zu", i);
        if (!strcmp(good->tensors[i].name, "trees.covers")) continue; /* as a model of before: it serves */
        assert_err(through(&bad, name, &pack), WEIR_EDATA, good->tensors[i].name);
        assert_null(pack);
    }
    weir_model_write_opts bad = *good;
    memcpy(tensors, good->tensors, count * sizeof tensors[0]);
    tensors[count] = (weir_model_tensor){.name = "others", .rows = 8, .cols = 1, .data = others};
    bad.tensors = tensors;
    bad.tensor_count = count + 1;
    assert_err(through(&bad, "more", &pack), WEIR_EDATA, "its trees 6");
    bad = *good;
    bad.architecture = "{\"family\": \"forest\", \"sample_seed\": 1, \"network\": {}}";
    assert_err(through(&bad, "other", &pack), WEIR_EDATA, "none of network, trees and blend");
    bad.architecture = "{\"family\": \"trees\", \"sample_seed\": 1, \"trees\": {\"hops\": 3}, \"network\": {}}";
    assert_err(through(&bad, "far", &pack), WEIR_EDATA, "1 to 2");
    bad.architecture = "{\"family\": \"trees\", \"sample_seed\": 1, \"network\": {}}";
    assert_err(through(&bad, "hopless", &pack), WEIR_EDATA, "'trees' is missing");
    packing_close(&p);
    packing_open_trees(&p, true);
    bad = *weir_pack_draft_opts(p.draft);
    bad.calibration = "{\"slope\": 1, \"offset\": 0, \"network\": {\"slope\": 1, \"offset\": 0}}";
    assert_err(through(&bad, "half", &pack), WEIR_EDATA, "'trees' is missing");
    bad.calibration = "{\"slope\": 1, \"offset\": 0, \"network\": {\"slope\": 1e39, \"offset\": 0}, \"trees\": "
                      "{\"slope\": 1, \"offset\": 0}}";
    assert_err(through(&bad, "steep", &pack), WEIR_EDATA, "calibration");
    packing_close(&p);
}

/* Of a model that was written before covers were: what it says, without why; so it is with a network beside. */
static void trees_of_an_older_model(void **state) {
    (void)state;
    for (int blend = 0; blend < 2; blend++) {
        packing p;
        weir_pack *pack;
        packing_open_trees(&p, blend);
        weir_model_write_opts older = *weir_pack_draft_opts(p.draft);
        assert_string_equal(older.tensors[older.tensor_count - 1].name, "trees.covers");
        older.tensor_count--;
        assert_ok(through(&older, blend ? "older blend" : "older trees", &pack));
        const weir_trees_view of = weir_trees_look(weir_pack_look(pack).trees), was = weir_trees_look(p.trees);
        assert_true(was.covers && !of.covers && of.trees == was.trees);
        weir_pack_close(pack);
        packing_close(&p);
    }
}

/* Steps of other strategies show the network what trees were not learnt from. */
static void trees_of_other_steps(void **state) {
    (void)state;
    packing p;
    weir_pack *pack;
    weir_buf text = {0};
    packing_open_trees(&p, false);
    weir_model_write_opts bad = *weir_pack_draft_opts(p.draft);
    weir_buf_text(&text, bad.architecture);
    char *at = strstr(text.bytes, "\"strategy\":\"recent\"");
    assert_non_null(at);
    memcpy(at, "\"strategy\":\"full\"  ", strlen("\"strategy\":\"recent\""));
    bad.architecture = text.bytes;
    assert_err(through(&bad, "full", &pack), WEIR_EDATA, "newest edges");
    weir_buf_free(&text);
    packing_close(&p);
}

/* One bit of the arrays, or one whole word: refused, or trees that are walked to a finite end. */
static void trees_with_a_flipped_bit(void **state) {
    (void)state;
    packing p;
    weir_pack *pack;
    weir_model_tensor tensors[8];
    packing_open_trees(&p, false);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    const weir_model_write_opts *good = weir_pack_draft_opts(p.draft);
    const uint32_t columns = weir_trees_look(p.trees).columns;
    uint64_t rounds = weir_test_rounds(150), refused = 0;
    float *row = calloc(columns, sizeof *row);
    double *contributions = calloc(columns, sizeof *contributions);
    assert_true(row && contributions && good->tensor_count < 8);
    for (uint64_t round = 0; round < rounds; round++) {
        const size_t which = 1 + weir_rng_below(&rng, good->tensor_count - 1);
        memcpy(tensors, good->tensors, good->tensor_count * sizeof tensors[0]);
        weir_model_tensor *t = &tensors[which];
        const size_t size = t->words ? sizeof *t->words : sizeof *t->data, count = t->rows * t->cols;
        const size_t at = weir_rng_below(&rng, count);
        uint8_t *copy = malloc(count * size);
        assert_non_null(copy);
        memcpy(copy, t->words ? (const void *)t->words : t->data, count * size);
        if (weir_rng_below(&rng, 2))
            copy[at * size + weir_rng_below(&rng, size)] ^= (uint8_t)(1u << weir_rng_below(&rng, 8));
        else
            for (size_t i = 0; i < size; i++)
                copy[at * size + i] = (uint8_t)weir_rng_below(&rng, 256);
        if (t->words)
            t->words = (const uint64_t *)(const void *)copy;
        else
            t->data = (const float *)(const void *)copy;
        weir_model_write_opts bad = *good;
        bad.tensors = tensors;
        char name[32];
        snprintf(name, sizeof name, "flip%llu", (unsigned long long)round);
        if (!t->words && !isfinite(t->data[at])) { /* is not even written */
            assert_err(weir_model_write(weir_test_path(name), &bad), WEIR_EINVAL, "not finite");
            free(copy);
            continue;
        }
        weir_err err = through(&bad, name, &pack);
        refused += err != WEIR_OK;
        if (err) assert_true(weir_err_is(err, WEIR_EDATA) || weir_err_is(err, WEIR_ELIMIT));
        for (int i = 0; !err && i < 20; i++) {
            float margin;
            for (uint32_t c = 0; c < columns; c++)
                row[c] = weir_rng_below(&rng, 3) ? (float)weir_rng_normal(&rng) : NAN;
            weir_trees_walk(weir_pack_look(pack).trees, row, 1, &margin);
            weir_trees_contribute(weir_pack_look(pack).trees, row, contributions);
            double sum = weir_trees_expected(weir_pack_look(pack).trees);
            for (uint32_t c = 0; c < columns; c++)
                sum += contributions[c];
            assert_true(isfinite(margin) &&
                        fabs(sum - (double)margin) <= 1e-5 * (1 + weir_trees_bound(weir_pack_look(pack).trees)));
        }
        weir_pack_close(pack);
        free(copy);
    }
    assert_true(refused > rounds / 10);
    free(contributions);
    free(row);
    packing_close(&p);
}

static void every_allocation_of_trees_may_fail(void **state) {
    (void)state;
    packing p;
    weir_pack *pack = NULL;
    weir_model *model;
    weir_err err = WEIR_OK;
    bool failed = true;
    packing_open_trees(&p, true);
    assert_ok(weir_model_write(weir_test_path("model"), weir_pack_draft_opts(p.draft)));
    assert_ok(weir_model_open(weir_test_path("model"), &unsigned_too, &model));
    for (uint64_t nth = 1; failed; nth++) {
        weir_alloc_stats before, after;
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        err = weir_pack_open(model, weir_kernels_cpu(), &pack);
        failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        weir_pack_close(pack);
        weir_alloc_stats_get(&after);
        assert_int_equal(before.live_blocks, after.live_blocks);
        if (failed && err) assert_true(weir_err_is(err, WEIR_ENOMEM) || weir_err_is(err, WEIR_ELIMIT));
    }
    assert_ok(err);
    weir_model_close(model);
    packing_close(&p);
}

static void drafts_that_are_refused(void **state) {
    (void)state;
    packing p;
    weir_pack_draft *draft;
    packing_open(&p);
    weir_pack_opts opts = {.nn = p.nn, .params = p.params, .sample_seed = (uint64_t)INT64_MAX + 1};
    assert_err(weir_pack_draft_open(&opts, &draft), WEIR_EINVAL, "63 bits");
    opts.sample_seed = 1;
    opts.slope = (double)NAN;
    assert_err(weir_pack_draft_open(&opts, &draft), WEIR_EINVAL, "finite");
    assert_null(draft);
    packing_close(&p);
}

WEIR_TESTS(WEIR_CASE(v1_what_comes_out_is_what_went_in), WEIR_CASE(folders_that_are_whole_but_wrong),
           WEIR_CASE(known_vertices_that_are_wrong), WEIR_CASE(v2_weights_that_overflow_are_refused_by_name),
           WEIR_CASE(v1_trees_come_out_as_they_went_in), WEIR_CASE(trees_that_are_whole_but_wrong),
           WEIR_CASE(trees_of_an_older_model), WEIR_CASE(trees_of_other_steps),
           WEIR_CASE(every_allocation_of_trees_may_fail), WEIR_CASE(trees_with_a_flipped_bit),
           WEIR_CASE(drafts_that_are_refused))
