/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_test.c - AdamW by hand, and rows of embeddings that wait for the batch that reads them: NN-B3. */
#include <weir/store/base/hash.h>
#include <weir/trainer/nn/nn.h>

#include "nn_fixture.h"

/* A penalty alone: each weight goes towards 0 by the rate, and embeddings, biases and gains stay. */
static void an_l2_penalty_is_of_weights(void **state) {
    (void)state;
    nn_fixture f;
    weir_adamw *adamw = NULL;
    double norm;
    uint32_t tensors, weights = 0;
    nn_open(&f, weir_test_seed(), "find", 8);
    const uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *g = fixture_array(count, sizeof *g), *before = fixture_array(count, sizeof *before);
    memcpy(before, f.params, count * sizeof *before);
    assert_ok(weir_adamw_open(f.nn, &(weir_adamw_opts){.l2 = 0.1, .norm_max = 1e-3}, &adamw));
    assert_ok(weir_adamw_step_take(adamw, 0.01, g, NULL, f.params, &norm));
    assert_true(norm == 0);
    const weir_nn_tensor *t = weir_nn_tensors(f.nn, &tensors);
    for (uint32_t n = 0; n < tensors; n++) {
        const bool moves = t[n].decays && !t[n].looked_up;
        weights += moves;
        for (uint64_t i = t[n].offset; i < t[n].offset + (uint64_t)t[n].rows * t[n].cols; i++) {
            const double slope = moves ? 0.1 * (double)before[i] : 0;
            nn_near((double)weir_adamw_moments(adamw, 0)[i], 0.1 * slope, 1e-7); /* what is shortened is without it */
            nn_near((double)f.params[i], (double)before[i] - 0.01 * slope / (fabs(slope) + 1e-8), 1e-6);
        }
    }
    assert_true(weights > 0 && weights < tensors);
    weir_adamw_close(adamw);
    free(before);
    free(g);
    nn_close(&f);
}

/* After one step from zero moments, each parameter has moved by the rate against the sign of its gradient. */
static void adamw_first_step_is_the_rate(void **state) {
    (void)state;
    nn_fixture f;
    weir_adamw *adamw = NULL;
    double norm = 0, squares = 0;
    nn_open(&f, weir_test_seed(), "find", 8);
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *g = fixture_array(count, sizeof *g), *before = fixture_array(count, sizeof *before);
    for (uint64_t i = 0; i < count; i++) {
        g[i] = (weir_real)(i % 2 ? 3 : -5);
        before[i] = f.params[i];
        squares += (double)g[i] * (double)g[i];
    }
    assert_ok(weir_adamw_open(f.nn, &(weir_adamw_opts){.decay = 0.1, .norm_max = 1}, &adamw));
    assert_ok(weir_adamw_step_take(adamw, 0.01, g, NULL, f.params, &norm));
    nn_near(norm, sqrt(squares), 1e-9 * norm);
    uint32_t tensors;
    const weir_nn_tensor *t = weir_nn_tensors(f.nn, &tensors);
    for (uint32_t n = 0; n < tensors; n++) {
        for (uint64_t i = t[n].offset; i < t[n].offset + (uint64_t)t[n].rows * t[n].cols; i++) {
            double decayed = (double)before[i] * (t[n].decays ? 1 - 0.01 * 0.1 : 1);
            nn_near((double)f.params[i], decayed + (i % 2 ? -0.01 : 0.01), 2e-6);
        }
    }
    assert_int_equal(weir_adamw_steps(adamw), 1);
    nn_near((double)weir_adamw_moments(adamw, 0)[1], 0.1 * 3 / norm, 1e-7); /* shortened to a length of 1 */
    g[7] = (weir_real)NAN;
    memcpy(before, f.params, count * sizeof *before);
    assert_err(weir_adamw_step_take(adamw, 0.01, g, NULL, f.params, NULL), WEIR_EDATA, "learning rate");
    assert_memory_equal(before, f.params, count * sizeof *before);
    assert_int_equal(weir_adamw_steps(adamw), 1);
    weir_adamw_close(adamw);
    assert_err(weir_adamw_open(f.nn, &(weir_adamw_opts){.beta1 = 1}, &adamw), WEIR_EINVAL, "[0, 1)");
    assert_err(weir_adamw_open(f.nn, &(weir_adamw_opts){.beta2 = 0.5}, &adamw), WEIR_EINVAL, "the square of the first");
    free(g);
    free(before);
    nn_close(&f);
}
/* Gradients of everything but embeddings, and of those rows of embeddings that a random batch names. */
static void some_gradients(nn_fixture *f, const weir_nn_rows *rows, weir_real *g) {
    uint32_t tensors, count;
    const weir_nn_tensor *t = weir_nn_tensors(f->nn, &tensors), *of;
    memset(g, 0, weir_nn_parameter_count(f->nn) * sizeof *g);
    for (uint32_t n = 0; n < tensors; n++)
        for (uint64_t i = 0; !t[n].looked_up && i < (uint64_t)t[n].rows * t[n].cols; i++)
            g[t[n].offset + i] = (weir_real)nn_normal(f);
    for (uint32_t n = 0;; n++) {
        const uint32_t *ids = weir_nn_rows_look(rows, n, &of, &count);
        if (!of) break;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t c = 0; c < of->cols; c++)
                g[of->offset + (uint64_t)ids[i] * of->cols + c] = (weir_real)nn_normal(f);
    }
}

/* By chance, the later rows of each tensor ever less often: some wait for hundreds of steps, some for ever. */
static void some_rows(nn_fixture *f, weir_nn_rows *rows) {
    const weir_nn_tensor *of;
    weir_buf bytes = {0};
    uint32_t none;
    assert_ok(weir_nn_rows_of_batch(rows, NULL));
    for (uint32_t n = 0; (void)weir_nn_rows_look(rows, n, &of, &none), of; n++) {
        uint32_t ids[64], count = 0;
        for (uint32_t row = 0; row + 1 < of->rows; row++)
            if (weir_rng_below(&f->rng, (uint64_t)1 << 2 * row) == 0) ids[count++] = row;
        weir_buf_append(&bytes, &count, sizeof count);
        weir_buf_append(&bytes, ids, count * sizeof *ids);
    }
    assert_ok(weir_nn_rows_add(rows, bytes.bytes, bytes.length));
    weir_buf_free(&bytes);
}

/* Rows that wait until they are read end where a step over all of them takes them. */
static void rows_wait(const weir_adamw_opts *opts, double error) {
    nn_fixture f;
    weir_adamw *dense = NULL, *sparse = NULL;
    weir_nn_rows *rows = NULL;
    nn_open(&f, weir_test_seed(), "find", 8);
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *g = fixture_array(count, sizeof *g), *waits = fixture_array(count, sizeof *waits);
    memcpy(waits, f.params, count * sizeof *waits);
    assert_ok(weir_adamw_open(f.nn, opts, &dense));
    assert_ok(weir_adamw_open(f.nn, opts, &sparse));
    assert_ok(weir_nn_rows_open(f.nn, &rows));
    for (unsigned step = 0; step < 900; step++) {
        double rate = step < 600 ? 0.01 : 0.002, norms[2];
        some_rows(&f, rows);
        some_gradients(&f, rows, g);
        assert_ok(weir_adamw_bring(sparse, rows, waits));
        assert_ok(weir_adamw_step_take(dense, rate, g, NULL, f.params, &norms[0]));
        assert_ok(weir_adamw_step_take(sparse, rate, g, rows, waits, &norms[1]));
        nn_near(norms[0], norms[1], 1e-12 * norms[0]);
        if (step % 100 == 99) assert_ok(weir_adamw_bring(sparse, NULL, waits));
        if (step == 149) assert_memory_equal(f.params + count - 9, waits + count - 9, 9 * sizeof *g);
    }
    assert_ok(weir_adamw_bring(sparse, NULL, waits));
    for (uint64_t i = 0; i < count; i++)
        nn_near((double)waits[i], (double)f.params[i], error);
    weir_nn_rows_close(rows);
    weir_adamw_close(dense);
    weir_adamw_close(sparse);
    free(g);
    free(waits);
    nn_close(&f);
}

static void b3_rows_that_wait_lose_nothing(void **state) {
    (void)state;
    rows_wait(&(weir_adamw_opts){.decay = 0.1, .norm_max = 3}, 2e-6);
    rows_wait(&(weir_adamw_opts){.l2 = 0.1, .norm_max = 3}, 2e-6);
    rows_wait(&(weir_adamw_opts){.decay = 0.1, .norm_max = 3, .row_rate = 0.03}, 4e-6);
    rows_wait(&(weir_adamw_opts){.decay = 0.1, .norm_max = 3, .row_rate = 0.03, .adagrad = true}, 0); /* none waits */
}

/* Two steps by hand: of a weight AdamW, of an embedding Adagrad with a rate of its own and no decay. */
static void adagrad_is_of_embeddings_alone(void **state) {
    (void)state;
    nn_fixture f;
    weir_adamw *adamw = NULL;
    nn_open(&f, weir_test_seed(), "find", 8);
    const weir_nn_tensor *own = weir_nn_tensor_find(f.nn, "encode.b.embedding"),
                         *weight = weir_nn_tensor_find(f.nn, "encode.b.weight");
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *g = fixture_array(count, sizeof *g);
    double p = (double)f.params[own->offset + 3], still = (double)f.params[own->offset + own->cols],
           w = (double)f.params[weight->offset];
    assert_true(own && weight && own->looked_up && own->rows == NN_KNOWN);
    assert_ok(weir_adamw_open(f.nn, &(weir_adamw_opts){.decay = 0.5, .adagrad = true, .row_rate = 0.1}, &adamw));
    for (unsigned step = 0; step < 2; step++) {
        g[own->offset + 3] = step ? -4 : 3;
        g[weight->offset] = 3;
        assert_ok(weir_adamw_step_take(adamw, 0.01, g, NULL, f.params, NULL));
    }
    nn_near((double)f.params[own->offset + 3], p - 0.1 * 3 / 3 + 0.1 * 4 / 5, 1e-6);
    nn_near((double)f.params[own->offset + own->cols], still, 0);
    w -= 0.01 * (1 + 0.5 * w);
    nn_near((double)f.params[weight->offset], w - 0.01 * (1 + 0.5 * w), 1e-6);
    nn_near((double)weir_adamw_moments(adamw, 1)[own->offset + 3], 25, 1e-5);
    weir_adamw_close(adamw);
    free(g);
    nn_close(&f);
}

#define MANY        1000000u /* vertices of type b */
#define MANY_HIDDEN 8u
#define MANY_STEPS  12u

/* One network whose rows wait, and one of which every step goes over all. */
typedef struct many_learner {
    weir_nn *nn;
    weir_adamw *adamw;
    weir_nn_workspace *workspace;
    weir_real *params, *gradients;
} many_learner;

static void many_open(many_learner *m, const weir_nn_shape *shape) {
    assert_ok(weir_nn_open(shape, weir_kernels_cpu(), &m->nn));
    m->params = fixture_array(weir_nn_parameter_count(m->nn), sizeof *m->params);
    m->gradients = fixture_array(weir_nn_parameter_count(m->nn), sizeof *m->gradients);
    weir_nn_init(m->nn, 1, m->params);
    assert_ok(weir_adamw_open(m->nn, &(weir_adamw_opts){.decay = 0.05, .norm_max = 5}, &m->adamw));
    assert_ok(weir_nn_workspace_open(m->nn, true, &m->workspace));
}

static void many_close(many_learner *m) {
    weir_nn_workspace_close(m->workspace);
    weir_adamw_close(m->adamw);
    weir_nn_close(m->nn);
    free(m->params);
    free(m->gradients);
}

/* rows: NULL: all. Returns the loss. */
static double many_step(many_learner *m, const weir_nn_batch *batch, weir_nn_rows *rows, const uint32_t *labels) {
    weir_real logits[NN_TARGETS], dlogits[NN_TARGETS];
    if (rows) assert_ok(weir_adamw_bring(m->adamw, rows, m->params));
    assert_ok(weir_nn_forward(m->nn, m->params, batch, NULL, m->workspace, logits, NULL));
    const weir_loss of = {.logits = logits, .labels = labels, .count = NN_TARGETS, .classes = 2, .divisor = NN_TARGETS};
    double loss = nn_loss(1, &of, dlogits);
    memset(m->gradients, 0, weir_nn_parameter_count(m->nn) * sizeof *m->gradients);
    assert_ok(weir_nn_backward(m->nn, m->params, m->workspace, dlogits, m->gradients, NULL));
    assert_ok(weir_adamw_step_take(m->adamw, 0.01, m->gradients, rows, m->params, NULL));
    return loss;
}

/* A random batch of vertices anywhere in the table, some again and again, some unknown. Returns how many it knows. */
static uint32_t many_batch(nn_fixture *f) {
    nn_random_batch(f);
    weir_block_range range = f->batch.block->input_ranges[1];
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < range.end - range.begin; i++) {
        uint64_t vertex = f->batch.block->vertices[f->batch.block->input_nodes[range.begin + i]];
        uint32_t before = 0;
        f->slots[1][i] = vertex % 5 ? (uint32_t)(weir_xxh3(&vertex, sizeof vertex, 1) % MANY) : WEIR_NO_SLOT;
        while (before < i && f->slots[1][before] != f->slots[1][i])
            before++;
        distinct += before == i && f->slots[1][i] != WEIR_NO_SLOT;
    }
    return distinct;
}

/* A million vertices with embeddings of their own: a step sums as many numbers as the rows have that it has read, and
 * its loss is that of a network of which all rows are stepped. */
static void b3_of_a_million_rows_those_of_a_batch_move(void **state) {
    (void)state;
    nn_fixture f;
    many_learner waits, all;
    weir_nn_shape *shape = NULL;
    weir_nn_rows *rows = NULL;
    uint64_t *ids = fixture_array(MANY, sizeof *ids);
    for (uint32_t i = 0; i < MANY; i++)
        ids[i] = (uint64_t)i * 7;
    nn_open(&f, weir_test_seed(), "find", MANY_HIDDEN);
    const weir_nn_known known = {1, ids, MANY};
    weir_nn_opts opts = {.task = weir_schema_task_find(f.schema, "find"), .hidden = MANY_HIDDEN, .window = 20};
    opts.steps = nn_steps;
    opts.step_count = NN_STEP_COUNT;
    opts.known = &known;
    opts.known_count = 1;
    assert_ok(weir_nn_shape_open(f.schema, &opts, &shape));
    many_open(&waits, shape);
    many_open(&all, shape);
    assert_ok(weir_nn_rows_open(waits.nn, &rows));
    for (uint64_t step = 0; step < MANY_STEPS; step++) {
        uint32_t labels[NN_TARGETS], distinct = many_batch(&f), counts[3], expected = 0;
        const weir_nn_tensor *of;
        for (uint32_t i = 0; i < NN_TARGETS; i++)
            labels[i] = (uint32_t)weir_rng_below(&f.rng, 2);
        assert_ok(weir_nn_rows_of_batch(rows, &f.batch));
        for (uint32_t n = 0; n < 3; n++) { /* a's two categories stand before */
            (void)weir_nn_rows_look(rows, n, &of, &counts[n]);
            expected += counts[n] * MANY_HIDDEN;
        }
        assert_true(of->rows == MANY && counts[2] == distinct && distinct > 0);
        assert_int_equal(weir_nn_rows_size(rows), expected);
        nn_near(many_step(&waits, &f.batch, rows, labels), many_step(&all, &f.batch, NULL, labels), 1e-6);
    }
    assert_ok(weir_adamw_bring(waits.adamw, NULL, waits.params));
    for (uint64_t i = 0; i < weir_nn_parameter_count(all.nn); i++)
        nn_near((double)waits.params[i], (double)all.params[i], 2e-6);
    weir_nn_rows_close(rows);
    many_close(&waits);
    many_close(&all);
    weir_nn_shape_free(shape);
    free(ids);
    nn_close(&f);
}

WEIR_TESTS(WEIR_CASE(an_l2_penalty_is_of_weights), WEIR_CASE(adamw_first_step_is_the_rate),
           WEIR_CASE(b3_rows_that_wait_lose_nothing), WEIR_CASE(adagrad_is_of_embeddings_alone),
           WEIR_CASE(b3_of_a_million_rows_those_of_a_batch_move))
