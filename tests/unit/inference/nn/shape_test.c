/* SPDX-License-Identifier: Apache-2.0 */
/* shape_test.c - shapes from schemas and from text, floats from rows and values, scales from both. */
#include "nn_fixture.h"

#include <weir/store/base/buf.h>

static void print(const weir_nn_shape *shape, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_nn_shape_print(shape, &json);
    assert_ok(weir_buf_err(out));
}

/* --- encoding ---------------------------------------------------------------------------------------------------- */

typedef struct sample_row {
    weir_value values[5]; /* x, c, y, born, d of the fixture's type a */
    uint8_t row[WEIR_ROW_BYTES_MAX];
    size_t length;
    double aggregate;
    int64_t before_us;
} sample_row;

static const char *const letters[] = {"p", "q", "r", "other"};

static void random_row(weir_rng *rng, const weir_nn_inputs *inputs, sample_row *r) {
    *r = (sample_row){.aggregate = (double)weir_rng_below(rng, 100), .before_us = (int64_t)1 << 50};
    for (unsigned i = 0; i < 5; i++)
        r->values[i] = (weir_value){.present = weir_rng_below(rng, 4) > 0};
    r->values[0].number = weir_rng_normal(rng) * 10 + 3;
    r->values[2].number = exp(weir_rng_normal(rng) * 3);
    r->values[3].time_us = r->before_us - (int64_t)weir_rng_below(rng, (uint64_t)1 << 45);
    r->values[1].text = r->values[4].text = letters[weir_rng_below(rng, 4)];
    r->values[1].text_length = r->values[4].text_length = (uint8_t)strlen(r->values[1].text);
    r->length = weir_row_write(inputs->kinds, r->values, 5, r->row);
    assert_ok(weir_row_check(inputs->kinds, 5, r->row, r->length));
}

static void n2_row_and_values_are_the_same_floats(void **state) {
    (void)state;
    nn_fixture f;
    nn_open(&f, weir_test_seed(), "find", 8);
    const weir_nn_inputs *a = weir_nn_vertex(f.shape, 0);
    const weir_schema_feature *features = weir_schema_vertex_at(f.schema, 0)->features;
    assert_int_equal(a->width, 7); /* two of each of x, y, born; one aggregate */
    for (unsigned round = 0; round < 200; round++) {
        sample_row r;
        weir_real numbers[2][7];
        uint32_t slots[2][2];
        random_row(&f.rng, a, &r);
        weir_nn_encode(a, features, r.values, &r.aggregate, r.before_us, numbers[0], slots[0]);
        weir_nn_encode_row(a, features, r.row, r.length, &r.aggregate, r.before_us, numbers[1], slots[1]);
        assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
        assert_memory_equal(slots[0], slots[1], sizeof slots[0]);
        for (unsigned i = 0; i < 3; i++)
            assert_true(numbers[0][2 * i + 1] == (r.values[(const unsigned[]){0, 2, 3}[i]].present ? 0 : 1));
        if (!r.values[1].present) assert_int_equal(slots[0][0], 0);
    }
    nn_close(&f);
}

static void encoding_by_hand(void **state) {
    (void)state;
    nn_fixture f;
    nn_open(&f, 1, "find", 8);
    const weir_nn_inputs *a = weir_nn_vertex(f.shape, 0);
    const weir_schema_feature *features = weir_schema_vertex_at(f.schema, 0)->features;
    weir_value values[5] = {{.present = true, .number = 2.5},
                            {.present = true, .text = "q", .text_length = 1},
                            {.present = true, .number = -(exp(2) - 1)},
                            {.present = true, .time_us = 0}};
    double aggregate = exp(3) - 1;
    weir_real n[7];
    uint32_t slots[2];
    weir_nn_encode(a, features, values, &aggregate, 9 * WEIR_US, n, slots);
    const double expected[7] = {2.5, 0, -2, 0, log(10), 0, 3};
    for (unsigned i = 0; i < 7; i++)
        assert_true(fabs((double)n[i] - expected[i]) < 1e-6);
    assert_int_equal(slots[0], 2);
    assert_int_equal(slots[1], 0);
    values[0].number = 1e300; /* absurd, and still no infinity */
    values[3].time_us = 20 * WEIR_US;
    aggregate = NAN;
    weir_nn_encode(a, features, values, &aggregate, 9 * WEIR_US, n, slots);
    assert_true(n[0] == 10000 && n[4] == 0 && n[6] == 0);
    weir_nn_encode_row(a, features, NULL, 0, NULL, 0, n, slots);
    assert_true(n[0] == 0 && n[1] == 1 && n[3] == 1 && n[5] == 1 && slots[0] == 0);
    nn_close(&f);
}

/* --- scales ------------------------------------------------------------------------------------------------------ */

static void n3_scales_are_those_of_two_passes(void **state) {
    (void)state;
    enum { ROWS = 500 };
    nn_fixture f;
    weir_nn_learner *learner = NULL;
    double x[ROWS], sum = 0, squares = 0;
    nn_open(&f, weir_test_seed(), "find", 8);
    const weir_nn_inputs *a = weir_nn_vertex(f.shape, 0), *b = weir_nn_vertex(f.shape, 1);
    assert_ok(weir_nn_learner_open(f.shape, &learner));
    for (unsigned i = 0; i < ROWS; i++) {
        weir_value values[5] = {{.present = true, .number = x[i] = 1e6 + weir_rng_normal(&f.rng)}};
        weir_nn_learn(learner, a, values, NULL, 0);
        values[0].number = 7;
        weir_nn_learn(learner, b, values, NULL, 0);
        sum += x[i];
    }
    weir_nn_learn(learner, a, NULL, NULL, 0); /* all missing: passed over */
    weir_nn_learner_finish(learner);
    for (unsigned i = 0; i < ROWS; i++)
        squares += (x[i] - sum / ROWS) * (x[i] - sum / ROWS);
    const weir_nn_scale *s = &a->numbers[0].scale;
    assert_true(fabs(s->mean - sum / ROWS) < 1e-8);
    assert_true(fabs(s->deviation - sqrt(squares / ROWS)) < 1e-9);
    assert_true(a->numbers[1].scale.deviation == 1 && a->numbers[1].scale.mean == 0); /* never there */
    assert_true(b->numbers[0].scale.deviation == 1 && b->numbers[0].scale.min == 7 && b->numbers[0].scale.max == 7);
    weir_nn_learner_close(learner);
    nn_close(&f);
}

static void moments_merge_as_if_seen_at_once(void **state) {
    (void)state;
    nn_fixture f;
    weir_nn_learner *parts[3] = {NULL};
    weir_nn_moments *m[3];
    uint32_t count;
    nn_open(&f, weir_test_seed(), "find", 8);
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(weir_nn_learner_open(f.shape, &parts[i]));
        m[i] = weir_nn_learner_moments(parts[i], &count);
    }
    for (unsigned i = 0; i < 300; i++) {
        weir_value values[5] = {{.present = true, .number = weir_rng_normal(&f.rng) * 5 + 2}};
        weir_nn_learn(parts[i % 2], weir_nn_vertex(f.shape, 0), values, NULL, 0);
        weir_nn_learn(parts[2], weir_nn_vertex(f.shape, 0), values, NULL, 0);
    }
    weir_nn_moments_merge(&m[0][1], &m[1][1]); /* of nothing */
    assert_true(m[0][1].count == 0);
    weir_nn_moments_merge(&m[0][0], &m[1][0]);
    assert_true(m[0][0].count == 300 && m[0][0].min == m[2][0].min && m[0][0].max == m[2][0].max);
    assert_true(fabs(m[0][0].mean - m[2][0].mean) < 1e-12);
    assert_true(fabs(m[0][0].squares / m[2][0].squares - 1) < 1e-12);
    for (unsigned i = 0; i < 3; i++)
        weir_nn_learner_close(parts[i]);
    nn_close(&f);
}

/* --- text -------------------------------------------------------------------------------------------------------- */

static void learn_something(nn_fixture *f) {
    weir_nn_learner *learner = NULL;
    assert_ok(weir_nn_learner_open(f->shape, &learner));
    for (unsigned i = 0; i < 50; i++) {
        sample_row r;
        random_row(&f->rng, weir_nn_vertex(f->shape, 0), &r);
        weir_nn_learn(learner, weir_nn_vertex(f->shape, 0), r.values, &r.aggregate, r.before_us);
    }
    weir_nn_learner_finish(learner);
    weir_nn_learner_close(learner);
}

/* Of learnt scales, but for what a float loses. */
static void what_is_scaled_comes_back(void **state) {
    (void)state;
    static const uint32_t sources[] = {0, 2, 3};
    nn_fixture f;
    nn_open(&f, weir_test_seed(), "find", 8);
    const weir_nn_inputs *a = weir_nn_vertex(f.shape, 0);
    const weir_schema_feature *features = weir_schema_vertex_at(f.schema, 0)->features;
    for (unsigned round = 0; round < 200; round++) {
        sample_row r;
        weir_real numbers[7];
        if (round == 100) learn_something(&f);
        random_row(&f.rng, a, &r);
        weir_nn_encode(a, features, r.values, &r.aggregate, r.before_us, numbers, NULL);
        for (unsigned i = 0; i < 4; i++) {
            const weir_value *value = &r.values[i < 3 ? sources[i] : 0];
            double raw = i == 2 ? (double)(r.before_us - value->time_us) / 1e6 : i == 3 ? r.aggregate : value->number;
            if (i < 3 && !value->present) continue;
            const double back = weir_nn_decode(&a->numbers[i], (double)numbers[a->numbers[i].column]);
            if (fabs(back - raw) > 1e-4 * (1 + fabs(raw))) fail_msg("%u: %.9g and not %.9g", i, back, raw);
        }
    }
    nn_close(&f);
}

static void n1_of(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    weir_buf once = {0}, twice = {0};
    weir_nn_shape *back = NULL;
    weir_nn *nn = NULL;
    nn_open_network(&f, weir_test_seed(), "sort", 24, encoders, network, 0);
    learn_something(&f);
    print(f.shape, &once);
    assert_ok(weir_nn_shape_read("model.json", once.bytes, once.length, &back));
    print(back, &twice);
    assert_string_equal(once.bytes, twice.bytes);
    assert_ok(weir_nn_shape_fits(back, f.schema));
    assert_ok(weir_nn_open(back, weir_kernels_cpu(), &nn));
    assert_int_equal(weir_nn_parameter_count(nn), weir_nn_parameter_count(f.nn));
    sample_row r;
    weir_real numbers[2][7];
    uint32_t slots[2][2];
    const weir_schema_feature *features = weir_schema_vertex_at(f.schema, 0)->features;
    for (unsigned i = 0; i < 50; i++) {
        random_row(&f.rng, weir_nn_vertex(back, 0), &r);
        const weir_nn_shape *shapes[] = {f.shape, back};
        for (unsigned s = 0; s < 2; s++)
            weir_nn_encode_row(weir_nn_vertex(shapes[s], 0), features, r.row, r.length, &r.aggregate, r.before_us,
                               numbers[s], slots[s]);
        assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
    }
    weir_nn_close(nn);
    weir_nn_shape_free(back);
    weir_buf_free(&once);
    weir_buf_free(&twice);
    nn_close(&f);
}

static void n1_text_and_back_are_the_same(void **state) {
    (void)state;
    n1_of(NN_ALL, WEIR_NN_MEAN);
    n1_of(NN_OF_CATEGORIES, WEIR_NN_MEAN);
    n1_of(NN_RESIDUAL, WEIR_NN_MEAN);
    n1_of(NN_CONCAT, WEIR_NN_MEAN);
    n1_of(NN_MOST, WEIR_NN_MEAN);
    n1_of(NN_HEADLESS, WEIR_NN_GAT);
    n1_of(NN_PLAIN, WEIR_NN_MEAN);
    n1_of(NN_DENSE, WEIR_NN_MEAN);
    n1_of(NN_STREAM, WEIR_NN_MEAN);
    for (weir_nn_network network = 1; network < WEIR_NN_NETWORKS; network++)
        n1_of(NN_ALL, network);
}

/* Text with `from` replaced by `to`, once. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!at) fail_msg("no '%s' in %s", from, text);
    char *copy = calloc(strlen(text) + strlen(to) + 1, 1);
    if (!copy) abort();
    memcpy(copy, text, (size_t)(at - text));
    strcat(strcat(copy, to), at + strlen(from));
    return copy;
}

/* --- matrices of imports ------------------------------------------------------------------------------------------ */

/* Two matrices of a, one of b, behind what the schema says of them. */
static weir_nn_shape *with_matrices(const nn_fixture *f) {
    static const weir_nn_matrix_of matrices[] = {
        {0, {"words", 5, true, 0}}, {0, {"2points", 2, false, 0}}, {1, {"words", 3, false, 0}}};
    const weir_sample_step step = {.hop = 1, .fanout = 4, .relation = 0, .direction = WEIR_OUT};
    const weir_nn_opts opts = {.task = weir_schema_task_find(f->schema, "find"),
                               .hidden = 8,
                               .steps = &step,
                               .step_count = 1,
                               .matrices = matrices,
                               .matrix_count = 3};
    weir_nn_shape *shape = NULL;
    assert_ok(weir_nn_shape_open(f->schema, &opts, &shape));
    return shape;
}

static void matrices_stand_behind_the_numbers(void **state) {
    (void)state;
    nn_fixture f;
    weir_buf once = {0}, twice = {0};
    weir_nn_shape *back = NULL;
    nn_open(&f, 1, "find", 8);
    weir_nn_shape *shape = with_matrices(&f);
    const weir_nn_inputs *a = weir_nn_vertex(shape, 0), *plain = weir_nn_vertex(f.shape, 0);
    assert_int_equal(a->width, plain->width + 7);
    assert_int_equal(a->matrices[0].column, plain->width);
    assert_int_equal(a->matrices[1].column, plain->width + 5);
    assert_int_equal(weir_nn_vertex(shape, 1)->width, weir_nn_vertex(f.shape, 1)->width + 3);
    print(shape, &once);
    assert_ok(weir_nn_shape_read("model.json", once.bytes, once.length, &back));
    print(back, &twice);
    assert_string_equal(once.bytes, twice.bytes); /* NN-N1 */
    assert_int_equal(weir_nn_vertex(back, 0)->matrices[1].column, plain->width + 5);
    assert_ok(weir_nn_shape_fits(back, f.schema));
    assert_err(weir_nn_shape_serves(back), WEIR_EVERSION, "'words'");
    assert_ok(weir_nn_shape_serves(f.shape));
    weir_nn_shape_free(back);
    weir_nn_shape_free(shape);
    weir_buf_free(&once);
    weir_buf_free(&twice);
    nn_close(&f);
}

/* --- known vertices ----------------------------------------------------------------------------------------------- */

static void known_vertices_stand_behind_the_categories(void **state) {
    (void)state;
    nn_fixture f;
    weir_buf once = {0}, twice = {0};
    weir_nn_shape *back = NULL;
    nn_open(&f, 1, "find", 8);
    const weir_nn_inputs *b = weir_nn_vertex(f.shape, 1);
    uint32_t slot = 0;
    assert_int_equal(b->category_count, 1);
    assert_int_equal(b->categories[0].feature, WEIR_SCHEMA_NONE);
    assert_int_equal(b->categories[0].slots, NN_KNOWN);
    for (uint32_t i = 0; i < NN_KNOWN; i++)
        assert_int_equal(weir_nn_slot_of(b, nn_known_ids[i]), i);
    static const uint64_t others[] = {0, 2, 4, 19, 5000000001, UINT64_MAX - 2};
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(weir_nn_slot_of(b, others[i]), WEIR_NO_SLOT);
    weir_real numbers[8];
    weir_nn_encode(b, weir_schema_vertex_at(f.schema, 1)->features, NULL, NULL, 0, numbers, &slot);
    assert_int_equal(slot, WEIR_NO_SLOT);

    print(f.shape, &once); /* NN-N1; the ids come by another way */
    assert_ok(weir_nn_shape_read("model.json", once.bytes, once.length, &back));
    print(back, &twice);
    assert_string_equal(once.bytes, twice.bytes);
    assert_ok(weir_nn_shape_fits(back, f.schema));
    assert_err(weir_nn_shape_know(back, &(weir_nn_known){1, nn_known_ids, NN_KNOWN - 1}), WEIR_EDATA, "'b'");
    assert_err(weir_nn_shape_know(back, &(weir_nn_known){0, nn_known_ids, NN_KNOWN}), WEIR_EDATA, "'a'");
    assert_ok(weir_nn_shape_know(back, &(weir_nn_known){1, nn_known_ids, NN_KNOWN}));
    assert_int_equal(weir_nn_slot_of(weir_nn_vertex(back, 1), 1000), 3);
    char *text = replaced(once.bytes, "\"known\":7", "\"known\":0");
    weir_nn_shape *none = NULL;
    assert_err(weir_nn_shape_read("model.json", text, strlen(text), &none), WEIR_EDATA, "known");
    free(text);
    text = replaced(once.bytes, "\"known\":7", "\"known\":1000000000");
    assert_err(weir_nn_shape_read("model.json", text, strlen(text), &none), WEIR_EDATA, "parameters");
    free(text);
    weir_nn_shape_free(back);
    weir_buf_free(&once);
    weir_buf_free(&twice);
    nn_close(&f);
}

static void rows_of_a_matrix_become_floats(void **state) {
    (void)state;
    const weir_nn_matrix unit = {"m", 4, true, 1}, as_is = {"m", 4, false, 1};
    weir_real numbers[6] = {7, 7, 7, 7, 7, 7};
    weir_nn_encode_matrix(&unit, (const float[]){3, 0, NAN, 4}, numbers);
    const weir_real of_unit[6] = {7, (weir_real)0.6, 0, 0, (weir_real)0.8, 7};
    for (unsigned i = 0; i < 6; i++)
        assert_true(fabs((double)(numbers[i] - of_unit[i])) < 1e-7);
    weir_nn_encode_matrix(&as_is, (const float[]){3, INFINITY, -1e30f, 4}, numbers);
    const weir_real plain[6] = {7, 3, 0, -10000, 4, 7}; /* bounded, as numbers are */
    assert_memory_equal(numbers, plain, sizeof plain);
    weir_nn_encode_matrix(&as_is, (const float[]){3, -1, 10000, -10000}, numbers);
    const weir_real within[6] = {7, 3, -1, 10000, -10000, 7};
    assert_memory_equal(numbers, within, sizeof within);
    weir_nn_encode_matrix(&unit, (const float[]){0, 0, 0, 0}, numbers);
    const weir_real zeros[6] = {7, 0, 0, 0, 0, 7};
    assert_memory_equal(numbers, zeros, sizeof zeros);
    weir_nn_encode_matrix(&as_is, NULL, numbers);
    assert_memory_equal(numbers, zeros, sizeof zeros);
}

static void wrong_matrices_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *sentence;
    } wrong[] = {
        {"\"columns\":5", "\"columns\":0", "columns"},
        {"\"columns\":5", "\"columns\":1048577", "columns"},
        {"\"rows\":\"unit\"", "\"rows\":\"long\"", "newer"},
        {"\"name\":\"2points\"", "\"name\":\"words\"", "twice"},
        {"\"name\":\"2points\",", "", "name"},
        {"\"name\":\"2points\"", "\"name\":\"\"", "1 to 64 letters"},
        {"\"name\":\"2points\"", "\"name\":\"../points\"", "1 to 64 letters"},
        {"\"matrices\":[{\"name\":\"words\",\"columns\":3,\"rows\":\"as-is\"}]", "\"matrices\":[]", "empty"},
    };
    nn_fixture f;
    weir_buf text = {0};
    nn_open(&f, 1, "find", 8);
    weir_nn_shape *made = with_matrices(&f);
    print(made, &text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_nn_shape *shape = NULL;
        char *changed = replaced(text.bytes, wrong[i].from, wrong[i].to);
        assert_err(weir_nn_shape_read("model.json", changed, strlen(changed), &shape), WEIR_EDATA, wrong[i].sentence);
        free(changed);
    }
    weir_nn_shape_free(made);
    weir_buf_free(&text);
    nn_close(&f);
}

static void shipped_schemas_have_a_shape(void **state) {
    (void)state;
    for (size_t i = 0; i < weir_schema_shipped_count(); i++) {
        const weir_schema_shipped *shipped = weir_schema_shipped_at(i);
        weir_schema *schema = NULL;
        assert_ok(weir_schema_parse(shipped->name, shipped->text, shipped->length, &schema));
        if (weir_schema_task_at(schema, 0)->kind == WEIR_SCHEMA_CLASSIFY) {
            weir_nn_shape *shape = NULL;
            weir_sample_step step = {.hop = 1, .fanout = 10, .relation = 0, .strategy = WEIR_SAMPLE_RECENT};
            assert_ok(weir_nn_shape_open(schema, &(weir_nn_opts){.steps = &step, .step_count = 1}, &shape));
            assert_ok(weir_nn_shape_fits(shape, schema));
            weir_nn_shape_free(shape);
        }
        weir_schema_free(schema);
    }
}

typedef struct wrong_text {
    const char *from, *to, *sentence;
} wrong_text;

static void all_are_refused(const char *text, const wrong_text *wrong, size_t count) {
    for (size_t i = 0; i < count; i++) {
        weir_nn_shape *shape = NULL;
        char *changed = replaced(text, wrong[i].from, wrong[i].to);
        assert_err(weir_nn_shape_read("model.json", changed, strlen(changed), &shape), WEIR_EDATA, wrong[i].sentence);
        assert_null(shape);
        free(changed);
    }
}

static void wrong_texts_are_refused_with_a_sentence(void **state) {
    (void)state;
    static const wrong_text wrong[] = {
        {"\"version\":1", "\"version\":2", "version"},
        {"\"hidden\":8", "\"hidden\":0", "hidden"},
        {"\"hidden\":8", "\"hidden\":99999", "1024"},
        {"\"hidden\":8", "\"hidden\":8,\"hidden\":9", "hidden"},
        {"\"hidden\":8", "\"hidden\":8,\"extra\":9", "extra"},
        {"\"hidden\":8", "\"hidden\":\"eight\"", "hidden"},
        {"\"target\":\"a\"", "\"target\":\"nobody\"", "nobody"},
        {"\"hop\":1", "\"hop\":2", "hops begin at 1"},
        {"\"hop\":1", "\"hop\":9", "hop"},
        {"\"fanout\":4", "\"fanout\":0", "fanout"},
        {"\"slots\":6", "\"slots\":16777218", "slots"},
        {"\"slots\":6", "\"slots\":-1", "slots"},
        {"[0,1,0,1]", "[0,0,0,1]", "deviation"},
        {"[0,1,0,1]", "[0,1,0]", "four numbers"},
        {"[0,1,0,1]", "[0,1,0,1e999]", "number"},
        {"[0,1,0,1]", "[null,1,0,1]", "number"},
        {"\"name\":\"b\"", "\"name\":\"a\"", "twice"},
        {"\"name\":\"b\"", "\"name\":\"../b\"", "letters"},
        {"\"kind\":\"time\"", "\"kind\":\"colour\"", "newer"},
        {"\"relation\":\"ab\"", "\"relation\":\"ba\"", "nowhere"},
        {"\"relation\":\"aa\",\"direction\":\"in\"", "\"relation\":\"aa\",\"direction\":\"out\"", "join them"},
        {"\"strategy\":\"uniform\"", "\"strategy\":\"weighted\"", "weighs by"},
        {"\"steps\":", "\"strides\":", "strides"},
    };
    nn_fixture f;
    weir_buf text = {0};
    nn_open(&f, 1, "find", 8);
    print(f.shape, &text);
    all_are_refused(text.bytes, wrong, sizeof wrong / sizeof *wrong);
    for (size_t length = 0; length < text.length; length += 7) { /* torn anywhere */
        weir_nn_shape *shape = NULL;
        assert_err(weir_nn_shape_read("model.json", text.bytes, length, &shape), WEIR_EDATA, "model.json");
    }
    weir_buf_free(&text);
    nn_close(&f);
}

/* What a network is beyond means: words that a plain one does not have, as it was before there were others. */
static void wrong_words_of_a_network_are_refused(void **state) {
    (void)state;
    static const wrong_text wrong[] = {
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"transformer\"", "newer"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":1", "network"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"attention\"", "heads"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"attention\",\"heads\":0", "heads"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"attention\",\"heads\":3", "do not divide"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"gat\",\"heads\":16,\"loops\":true", "do not divide"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"gat\",\"heads\":2", "train it again"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"gat\",\"heads\":2,\"loops\":false", "loops"},
        {"\"hidden\":8", "\"hidden\":8,\"network\":\"gat\",\"heads\":2,\"loops\":1", "loops"},
        {"\"hidden\":8", "\"hidden\":8,\"loops\":true", "loops"},
        {"\"hidden\":8", "\"hidden\":8,\"heads\":2", "has no heads"},
        {"\"hidden\":8", "\"hidden\":8,\"jump\":\"lstm\"", "newer"},
        {"\"hidden\":8", "\"hidden\":8,\"jump\":true", "jump"},
        {"\"hidden\":8", "\"hidden\":8,\"head\":\"deep\"", "newer"},
        {"\"hidden\":8", "\"hidden\":8,\"head\":false", "head"},
        {"\"hidden\":8", "\"hidden\":8,\"norm\":\"batch\"", "newer"},
        {"\"hidden\":8", "\"hidden\":8,\"norm\":1", "norm"},
        {"\"hidden\":8", "\"hidden\":8,\"feed_forward\":1", "feed_forward"},
        {"\"hidden\":8", "\"hidden\":8,\"head\":\"none\",\"jump\":\"max\"", "jump"},
    };
    static const char *const words[] = {"network", "heads", "jump", "head", "\"norm\"", "feed_forward"};
    nn_fixture f;
    weir_buf text = {0};
    nn_open(&f, 1, "find", 8);
    print(f.shape, &text);
    all_are_refused(text.bytes, wrong, sizeof wrong / sizeof *wrong);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_null(strstr(text.bytes, words[i]));
    weir_buf_free(&text);
    nn_close(&f);
}

/* --- schemas ----------------------------------------------------------------------------------------------------- */

static void another_schema_does_not_fit(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        const char *sentence; /* NULL: fits all the same */
    } changes[] = {
        {"values: [p, q, r]", "values: [p, q, r, s]", NULL},
        {"normalise: standard", "normalise: min-max", NULL},
        {"      d: {kind: category, buckets: 5}\n", "      d: {kind: category, buckets: 5}\n      e: {kind: number}\n",
         NULL},
        {"buckets: 5", "buckets: 6", "'d'"},
        {"      x: {kind: number, normalise: standard}\n", "", "'"},
        {"born: {kind: time}", "born: {kind: number}", "'born'"},
        {"  lonely: {}\n", "", "vertex types"},
        {"aa: {from: a, to: a}", "aa: {from: a, to: b}", "'aa'"},
        {"out_1d:", "out_2d:", "'out_1d'"},
        {"positive: yes", "positive: no", NULL},
        {", positive: yes", "", "'find'"},
        {"find:", "seek:", "'find'"},
    };
    nn_fixture f;
    nn_open(&f, 1, "find", 8);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        weir_schema *schema = NULL;
        char *text = replaced(nn_schema_text, changes[i].from, changes[i].to);
        assert_ok(weir_schema_parse("tiny.yaml", text, strlen(text), &schema));
        weir_err err = weir_nn_shape_fits(f.shape, schema);
        if (changes[i].sentence)
            assert_err(err, WEIR_EVERSION, changes[i].sentence);
        else
            assert_ok(err);
        weir_schema_free(schema);
        free(text);
    }
    nn_close(&f);
}

static void tasks_that_cannot_be_learnt_are_refused(void **state) {
    (void)state;
    static const char text[] = "version: 1\nname: t\nvertices:\n  a: {}\nrelations:\n  aa: {from: a, to: a}\n"
                               "labels:\n  l: {relation: aa, values: [no, yes], lag: 1d}\n"
                               "tasks:\n  edge: {kind: classify, label: l, positive: yes}\n"
                               "  more: {kind: recommend, relation: aa, horizon: 1d}\n";
    weir_schema *schema = NULL;
    weir_nn_shape *shape = NULL;
    weir_sample_step step = {.hop = 1, .fanout = 10};
    weir_nn_opts opts = {.steps = &step, .step_count = 1};
    assert_ok(weir_schema_parse("t.yaml", text, sizeof text - 1, &schema));
    assert_err(weir_nn_shape_open(schema, &opts, &shape), WEIR_ECONFIG, "make what is labelled a vertex");
    opts.task = 1;
    assert_err(weir_nn_shape_open(schema, &opts, &shape), WEIR_ECONFIG, "recommends");
    opts.task = 2;
    assert_err(weir_nn_shape_open(schema, &opts, &shape), WEIR_EINVAL, "no task");
    weir_schema_free(schema);
}

static weir_err attempt_read(void *context) {
    const weir_buf *text = context;
    weir_nn_shape *shape = NULL;
    weir_err err = weir_nn_shape_read("model.json", text->bytes, text->length, &shape);
    weir_nn_shape_free(shape);
    return err;
}

static void every_allocation_of_reading_may_fail(void **state) {
    (void)state;
    nn_fixture f;
    weir_buf text = {0};
    nn_open(&f, 1, "find", 8);
    print(f.shape, &text);
    weir_test_every_allocation(attempt_read, &text);
    weir_buf_free(&text);
    nn_close(&f);
}

static void too_many_parameters_are_refused(void **state) {
    (void)state;
    weir_schema *schema = NULL;
    weir_nn_shape *shape = NULL;
    char *text = replaced(nn_schema_text, "buckets: 5", "buckets: 1100000");
    weir_nn_opts opts = {.hidden = 1024, .steps = nn_steps, .step_count = 1};
    assert_ok(weir_schema_parse("tiny.yaml", text, strlen(text), &schema));
    assert_err(weir_nn_shape_open(schema, &opts, &shape), WEIR_ELIMIT, "lower hidden");
    opts.hidden = 512;
    assert_ok(weir_nn_shape_open(schema, &opts, &shape));
    weir_nn_shape_free(shape);
    opts.hidden = 1025;
    assert_err(weir_nn_shape_open(schema, &opts, &shape), WEIR_EINVAL, "1024");
    weir_schema_free(schema);
    free(text);
}

/* Everything of this network is in reach, so that the bound has no room left: what it lets pass must be possible. */
static weir_err open_with_buckets(uint32_t buckets, weir_nn_network network, bool headless) {
    static const weir_sample_step steps[] = {{.hop = 1, .fanout = 1, .strategy = WEIR_SAMPLE_RECENT},
                                             {.hop = 2, .fanout = 1, .strategy = WEIR_SAMPLE_RECENT}};
    const weir_nn_opts opts = {.hidden = 1024,
                               .steps = steps,
                               .step_count = headless ? 2 : 1,
                               .network = network,
                               .headless = headless,
                               .feed_forward = headless};
    char text[512];
    weir_schema *schema = NULL;
    weir_nn_shape *shape = NULL;
    weir_nn *nn = NULL;
    int length = snprintf(text, sizeof text,
                          "version: 1\nname: one\nvertices:\n  a:\n    features:\n"
                          "      d: {kind: category, buckets: %u}\nrelations:\n  aa: {from: a, to: a}\n"
                          "labels:\n  mark: {vertex: a, values: [no, yes], lag: 1d}\n"
                          "tasks:\n  find: {kind: classify, label: mark, positive: yes}\n",
                          buckets);
    assert_ok(weir_schema_parse("one.yaml", text, (size_t)length, &schema));
    weir_err err = weir_nn_shape_open(schema, &opts, &shape);
    if (!err) {
        assert_ok(weir_nn_open(shape, weir_kernels_cpu(), &nn));
        assert_true(weir_nn_parameter_count(nn) <= WEIR_NN_PARAMETERS_MAX);
    }
    weir_nn_close(nn);
    weir_nn_shape_free(shape);
    weir_schema_free(schema);
    return err;
}

static void the_largest_network_that_is_taken_can_be_made(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < 2 * WEIR_NN_NETWORKS; kind++) {
        const weir_nn_network network = kind / 2;
        const bool headless = kind % 2;
        uint32_t taken = 1, refused = (uint32_t)(WEIR_NN_PARAMETERS_MAX / 1024);
        assert_ok(open_with_buckets(taken, network, headless));
        assert_err(open_with_buckets(refused, network, headless), WEIR_ELIMIT, "lower hidden");
        while (refused - taken > 1) {
            uint32_t middle = taken + (refused - taken) / 2;
            *(open_with_buckets(middle, network, headless) ? &refused : &taken) = middle;
        }
        assert_true(taken > 1000000);
    }
}

WEIR_TESTS(WEIR_CASE(n1_text_and_back_are_the_same), WEIR_CASE(n2_row_and_values_are_the_same_floats),
           WEIR_CASE(n3_scales_are_those_of_two_passes), WEIR_CASE(moments_merge_as_if_seen_at_once),
           WEIR_CASE(encoding_by_hand), WEIR_CASE(what_is_scaled_comes_back),
           WEIR_CASE(matrices_stand_behind_the_numbers), WEIR_CASE(known_vertices_stand_behind_the_categories),
           WEIR_CASE(rows_of_a_matrix_become_floats), WEIR_CASE(wrong_matrices_are_refused),
           WEIR_CASE(shipped_schemas_have_a_shape), WEIR_CASE(wrong_texts_are_refused_with_a_sentence),
           WEIR_CASE(wrong_words_of_a_network_are_refused), WEIR_CASE(another_schema_does_not_fit),
           WEIR_CASE(too_many_parameters_are_refused), WEIR_CASE(the_largest_network_that_is_taken_can_be_made),
           WEIR_CASE(every_allocation_of_reading_may_fail), WEIR_CASE(tasks_that_cannot_be_learnt_are_refused))
