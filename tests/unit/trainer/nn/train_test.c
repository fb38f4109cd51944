/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_test.c - losses by hand, and a graph of two communities whose members can be told apart by their neighbours
 * alone: the network has to learn it.
 */
#include <weir/store/base/hash.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/nn/nn.h>

#include "nn_fixture.h"

/* --- losses ------------------------------------------------------------------------------------------------------ */

static void binary_loss_by_hand(void **state) {
    (void)state;
    const weir_real logits[] = {0, 2, -3, 700, -700, 5};
    const uint32_t labels[] = {1, 0, 1, 1, 1, WEIR_LOSS_NO_LABEL};
    const double weights[] = {1, 4};
    weir_real d[6];
    weir_loss loss = {.logits = logits, .labels = labels, .weights = weights, .count = 6, .classes = 2};
    loss.divisor = 17; /* a target without a label has no weight */
    double expected = (4 * log(2) + log(1 + exp(2)) + 4 * log(1 + exp(3)) + 0 + 4 * 700) / 17;
    nn_near(nn_loss(1, &loss, d), expected, 1e-9);
    nn_near((double)d[0], 4 * -0.5 / 17, 1e-7);
    nn_near((double)d[1], 1 / (1 + exp(-2)) / 17, 1e-7);
    nn_near((double)d[3], 0, 1e-7);
    nn_near((double)d[4], -4.0 / 17, 1e-7);
    nn_near((double)d[5], 0, 0);
}

static void softmax_loss_by_hand(void **state) {
    (void)state;
    const weir_real logits[] = {0, 0, 0, 500, -500, 0, 1, 2, 3};
    const uint32_t labels[] = {2, 0, WEIR_LOSS_NO_LABEL};
    weir_real d[9];
    weir_loss loss = {.logits = logits, .labels = labels, .count = 3, .classes = 3, .divisor = 2};
    nn_near(nn_loss(3, &loss, d), log(3) / 2, 1e-9);
    const double expected[] = {1.0 / 6, 1.0 / 6, -1.0 / 3, 0, 0, 0, 0, 0, 0};
    for (unsigned i = 0; i < 9; i++)
        nn_near((double)d[i], expected[i], 1e-7);
}

/* Each slope is the loss's own difference; the weights of a class and the divisor are in it. */
static void slopes_of(double focal, uint64_t stream) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), stream, 0);
    const double weights[] = {0.5, 2, 1};
    for (uint32_t outputs = 1; outputs <= 3; outputs += 2) {
        weir_real logits[12], d[12];
        uint32_t labels[4];
        weir_loss loss = {.logits = logits, .labels = labels, .weights = weights, .count = 4, .divisor = 1};
        loss.classes = outputs == 1 ? 2 : 3;
        loss.focal = focal;
        for (uint32_t i = 0; i < 4 * outputs; i++)
            logits[i] = (weir_real)weir_rng_normal(&rng);
        for (uint32_t i = 0; i < 4; i++)
            labels[i] = (uint32_t)weir_rng_below(&rng, loss.classes);
        nn_loss(outputs, &loss, d);
        for (uint32_t i = 0; i < 4 * outputs; i++) {
            weir_real kept = logits[i], up = kept + (weir_real)1e-3, down = kept - (weir_real)1e-3;
            logits[i] = up;
            double above = nn_loss(outputs, &loss, NULL);
            logits[i] = down;
            double below = nn_loss(outputs, &loss, NULL);
            logits[i] = kept;
            nn_near((double)d[i], (above - below) / (double)(up - down), 1e-3 * fabs((double)d[i]) + 1e-6);
        }
    }
}

static void slopes_are_differences(void **state) {
    (void)state;
    static const double focals[] = {0, 0.5, 1, 2, 5};
    for (size_t i = 0; i < sizeof focals / sizeof *focals; i++)
        slopes_of(focals[i], i);
}

/* (1 - p)^g · -log p, from p itself; what is certain has neither a loss nor a slope, and what is hopeless all of its
 * cross-entropy. */
static void focal_loss_by_hand(void **state) {
    (void)state;
    const weir_real logits[] = {1, -2, 800, -800}, three[] = {1, 0, -1, 900, 0, 0};
    const uint32_t labels[] = {1, 0, 1, 1}, classes[] = {1, 0};
    weir_real d[6];
    weir_loss loss = {.logits = logits, .labels = labels, .count = 4, .classes = 2, .divisor = 1};
    const double p = 1 / (1 + exp(-1)), q = 1 / (1 + exp(-2)), e = exp(1), r = 1 / (e + 1 + 1 / e);
    for (int halves = 0; halves < 6; halves++) {
        const double g = halves * 0.5;
        loss.focal = g;
        const double expected = pow(1 - p, g) * -log(p) + pow(1 - q, g) * -log(q);
        nn_near(nn_loss(1, &loss, d), expected + 800, 1e-9);
        nn_near((double)d[2], 0, 0);
        nn_near((double)d[3], -1, 0);
        const weir_loss of = {.logits = three, .labels = classes, .count = 2, .classes = 3, .divisor = 1, .focal = g};
        nn_near(nn_loss(3, &of, d), pow(1 - r, g) * -log(r), 1e-7);
        for (unsigned c = 3; c < 6; c++)
            nn_near((double)d[c], 0, 0);
    }
}

/* --- NN-B2: parts of a batch ------------------------------------------------------------------------------------- */

static void add_part(nn_fixture *f, weir_nn_workspace *w, const weir_target *targets, uint32_t count, double divisor,
                     double *lossp, weir_real *gradients) {
    weir_real logits[NN_TARGETS], dlogits[NN_TARGETS];
    uint32_t labels[NN_TARGETS];
    nn_sample(f, targets, count);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = targets[i].vertex % 2;
    weir_loss loss = {.logits = logits, .labels = labels, .count = count, .classes = 2, .divisor = divisor};
    assert_ok(weir_nn_forward(f->nn, f->params, &f->batch, NULL, w, logits, NULL));
    *lossp += nn_loss(1, &loss, dlogits);
    assert_ok(weir_nn_backward(f->nn, f->params, w, dlogits, gradients, NULL));
}

static void b2_parts_add_up_to_the_whole(void **state) {
    (void)state;
    nn_fixture f;
    weir_target targets[NN_TARGETS];
    weir_nn_workspace *w = NULL;
    double whole = 0, parts = 0, largest = 0;
    nn_open(&f, weir_test_seed(), "find", 16);
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *one = fixture_array(count, sizeof *one), *sum = fixture_array(count, sizeof *sum);
    assert_ok(weir_nn_workspace_open(f.nn, true, &w));
    nn_targets(&f, targets, NN_TARGETS);
    add_part(&f, w, targets, NN_TARGETS, NN_TARGETS, &whole, one);
    for (uint32_t i = 0; i < NN_TARGETS; i += 4)
        add_part(&f, w, targets + i, 4, NN_TARGETS, &parts, sum);
    nn_near(parts, whole, 1e-6 * fabs(whole));
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)one[i]));
    for (uint64_t i = 0; i < count; i++)
        nn_near((double)sum[i], (double)one[i], 1e-5 * largest);
    weir_nn_workspace_close(w);
    free(one);
    free(sum);
    nn_close(&f);
}

typedef struct listening {
    const weir_real *gradients;
    weir_real *heard; /* each as it was when it was said to be finished */
    uint64_t from;
    uint32_t calls;
} listening;

static void listen(void *context, uint64_t from) {
    listening *l = context;
    assert_true(from < l->from);
    memcpy(l->heard + from, l->gradients + from, (l->from - from) * sizeof *l->heard);
    l->from = from;
    l->calls++;
}

/* What was said to be finished stays as it was, and all but the encoders' gradients are told of on the way. */
static void listeners_hear_of(nn_encoders encoders) {
    nn_fixture f;
    weir_nn_workspace *w = NULL;
    weir_real logits[NN_TARGETS], dlogits[NN_TARGETS];
    nn_open_as(&f, weir_test_seed(), "find", 16, encoders);
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *gradients = fixture_array(count, sizeof *gradients), *heard = fixture_array(count, sizeof *heard);
    listening l = {gradients, heard, count, 0};
    const weir_nn_listener listener = {listen, &l};
    assert_ok(weir_nn_workspace_open(f.nn, true, &w));
    nn_random_batch(&f);
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, w, logits, NULL));
    for (uint32_t i = 0; i < NN_TARGETS; i++)
        dlogits[i] = (weir_real)(i % 3) - 1;
    assert_ok(weir_nn_backward(f.nn, f.params, w, dlogits, gradients, &listener));
    assert_int_equal(l.calls, (encoders == NN_HEADLESS ? 0 : 1) + weir_nn_layers(weir_nn_shape_of(f.nn)));
    assert_memory_equal(heard + l.from, gradients + l.from, (count - l.from) * sizeof *heard);
    uint32_t tensors;
    const weir_nn_tensor *t = weir_nn_tensors(f.nn, &tensors);
    for (uint32_t i = 0; i < tensors; i++)
        assert_int_equal(strncmp(t[i].name, "encode.", 7) == 0, t[i].offset < l.from);
    weir_nn_workspace_close(w);
    free(gradients);
    free(heard);
    nn_close(&f);
}

static void who_listens_hears_of_finished_gradients(void **state) {
    (void)state;
    listeners_hear_of(NN_ALL);
    listeners_hear_of(NN_HEADLESS);
}

static void there_is_no_way_back_without_a_tape(void **state) {
    (void)state;
    nn_fixture f;
    weir_nn_workspace *w = NULL;
    weir_real logits[NN_TARGETS] = {0};
    nn_open(&f, 1, "find", 8);
    nn_random_batch(&f);
    assert_ok(weir_nn_workspace_open(f.nn, false, &w));
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, w, logits, NULL));
    assert_err(weir_nn_backward(f.nn, f.params, w, logits, f.params, NULL), WEIR_EINVAL, "no tape");
    weir_nn_workspace_close(w);
    nn_close(&f);
}

/* --- two communities --------------------------------------------------------------------------------------------- */

#define PEOPLE 600u
#define DEGREE 8u

/* Edges of relation 1 stay within a half of the vertices nineteen times of twenty. */
static void two_communities(nn_fixture *f, uint64_t seed) {
    nn_open(f, seed, "find", 16);
    weir_block_close(f->block);
    weir_sampler_close(f->sampler);
    weir_sample_source_close(f->source);
    fixture_close(&f->graph);
    f->graph = (arrays_fixture){.vertices = {PEOPLE, 1}};
    f->graph.plain[0] = fixture_array(0, sizeof(plain_edge));
    f->graph.plain[1] = fixture_array(PEOPLE * DEGREE, sizeof(plain_edge));
    f->graph.plain_count[1] = PEOPLE * DEGREE;
    for (uint32_t i = 0; i < PEOPLE * DEGREE; i++) {
        uint64_t from = i / DEGREE, half = (from % 2) ^ (weir_rng_below(&f->rng, 20) == 0);
        f->graph.plain[1][i] = (plain_edge){.from = from,
                                            .to = weir_rng_below(&f->rng, PEOPLE / 2) * 2 + half,
                                            .time_us = 1 + (int64_t)i,
                                            .event = i + 1};
    }
    fixture_close_lists(&f->graph);
    f->arrays = f->graph.arrays;
    f->arrays.types = 3;
    for (unsigned t = 0; t < 2; t++) {
        f->vertices[t] = f->graph.vertices[t];
        f->ids[t] = f->graph.ids[t];
    }
    f->arrays.vertices = f->vertices;
    f->arrays.ids = f->ids;
    weir_sample_opts sample = {.steps = nn_steps, .step_count = NN_STEP_COUNT, .seed = seed};
    sample.targets_max = PEOPLE;
    assert_ok(weir_sample_over_arrays(&f->arrays, &f->source));
    assert_ok(weir_sampler_open(&sample, f->source, &f->sampler));
    assert_ok(weir_block_open(f->sampler, &f->block));
}

/* A person's own number says little: the half, drowned in noise. Means over neighbours say more. */
static void two_communities_batch(nn_fixture *f, uint32_t first, uint32_t count) {
    weir_target targets[PEOPLE];
    for (uint32_t i = 0; i < count; i++)
        targets[i] = (weir_target){.vertex = first + i, .before_us = NN_LAST_US};
    nn_sample(f, targets, count);
    const weir_block_view *v = f->batch.block;
    uint32_t width = weir_nn_vertex(f->shape, 0)->width;
    for (uint32_t row = v->input_ranges[0].begin; row < v->input_ranges[0].end; row++) {
        uint64_t vertex = v->vertices[v->input_nodes[row]];
        weir_real *numbers = f->numbers[0] + (row - v->input_ranges[0].begin) * width;
        weir_rng rng = weir_rng_stream(99, vertex, 0);
        memset(numbers, 0, width * sizeof *numbers);
        numbers[0] = (weir_real)((vertex % 2 ? 1 : -1) + 1.2 * weir_rng_normal(&rng));
        memset(f->slots[0] + (row - v->input_ranges[0].begin) * 2, 0, 2 * sizeof(uint32_t));
    }
}

/* The rows that a batch's slots name, each once and in order; packed and put back. */
static void rows_are_those_of_the_slots(void **state) {
    (void)state;
    nn_fixture f;
    weir_nn_rows *rows = NULL;
    weir_buf told = {0};
    nn_open(&f, weir_test_seed(), "find", 8);
    nn_random_batch(&f);
    assert_ok(weir_nn_rows_open(f.nn, &rows));
    assert_ok(weir_nn_rows_of_batch(rows, &f.batch));
    size_t size = 0;
    for (uint32_t type = 0, n = 0; type < 2; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(f.shape, type);
        weir_block_range range = f.batch.block->input_ranges[type];
        for (uint32_t c = 0; c < inputs->category_count; c++, n++) {
            const weir_nn_tensor *of;
            bool seen[64] = {false};
            uint32_t count, at = 0;
            const uint32_t *ids = weir_nn_rows_look(rows, n, &of, &count);
            assert_int_equal(of->rows, inputs->categories[c].slots);
            for (uint32_t row = 0; row < range.end - range.begin; row++) {
                uint32_t slot = f.slots[type][row * inputs->category_count + c];
                if (slot != WEIR_NO_SLOT) seen[slot] = true; /* of an unknown vertex nothing is read */
            }
            for (uint32_t row = 0; row < of->rows; row++)
                if (seen[row]) assert_int_equal(ids[at++], row);
            assert_int_equal(at, count);
            size += (size_t)count * of->cols;
        }
    }
    assert_int_equal(weir_nn_rows_size(rows), size);
    uint64_t count = weir_nn_parameter_count(f.nn);
    weir_real *packed = fixture_array(size, sizeof *packed), *back = fixture_array(count, sizeof *back);
    assert_ok(weir_nn_rows_pack(rows, f.params, packed));
    assert_ok(weir_nn_rows_unpack(rows, packed, back));
    for (uint64_t i = 0, same = 0; i < count; i++) {
        same += back[i] == f.params[i];
        if (i + 1 == count) assert_int_equal(same, size);
    }
    weir_nn_rows_write(rows, &told);
    told.bytes[4] = 99; /* a row that there is not */
    assert_err(weir_nn_rows_add(rows, told.bytes, told.length), WEIR_ECORRUPT, "another rank names rows");
    assert_err(weir_nn_rows_add(rows, told.bytes, 3), WEIR_ECORRUPT, "another rank names rows");
    weir_buf_free(&told);
    weir_nn_rows_close(rows);
    free(packed);
    free(back);
    nn_close(&f);
}

/* What a batch brings to a share without a category of one type and most vertices of the other: slot s of the category
 * is row BUCKETS - 1 - s, and slot s of the vertices row BROUGHT - 1 - s. */
enum { BUCKETS = 6, BROUGHT = BUCKETS + NN_KNOWN };

static void rows_in_another_order(const nn_fixture *f, const weir_nn_tensor *category, const weir_nn_tensor *vertices,
                                  weir_real rows[BROUGHT * 8]) {
    for (uint32_t i = 0; i < BROUGHT * 8; i++) {
        uint32_t row = i / 8;
        uint64_t from =
            row < BUCKETS ? category->offset + (BUCKETS - 1 - row) * 8 : vertices->offset + (BROUGHT - 1 - row) * 8;
        rows[i] = f->params[from + i % 8];
    }
}

static void slots_in_another_order(nn_fixture *f) {
    for (uint32_t type = 0; type < 2; type++) {
        weir_block_range range = f->batch.block->input_ranges[type];
        uint32_t categories = weir_nn_vertex(f->shape, type)->category_count;
        for (uint32_t row = 0; row < range.end - range.begin; row++) {
            uint32_t *slot = &f->slots[type][row * categories + (type == 0)];
            if (*slot != WEIR_NO_SLOT) *slot = (type == 0 ? BUCKETS : BROUGHT) - 1 - *slot;
        }
    }
}

/* A network that holds two of the rows of one type's vertices, and none of a category of the other; and a batch that
 * brings what it reads of both, in another order: the same logits, and the gradients of the whole network, of rows
 * where they were brought from. */
static void a_share_with_brought_rows_is_the_whole(void **state) {
    (void)state;
    static const uint32_t own_slots[] = {1, 4};
    const weir_nn_held held[] = {{0, 1, NULL, 0}, {1, 0, own_slots, 2}};
    nn_fixture f;
    weir_nn *share = NULL;
    weir_nn_workspace *whole_space = NULL, *share_space = NULL;
    weir_real logits[2][NN_TARGETS], dlogits[NN_TARGETS], rows[BROUGHT * 8], back[BROUGHT * 8] = {0};
    nn_open(&f, weir_test_seed(), "find", 8);
    nn_random_batch(&f);
    assert_ok(weir_nn_open_share(f.shape, weir_kernels_cpu(), held, 2, &share));
    uint32_t tensors, same;
    const weir_nn_tensor *all = weir_nn_tensors(f.nn, &tensors), *own = weir_nn_tensors(share, &same);
    const weir_nn_tensor *vertices = weir_nn_tensor_find(f.nn, "encode.b.embedding");
    const weir_nn_tensor *category = weir_nn_tensor_find(f.nn, "encode.a.d.embedding");
    assert_true(tensors == same && vertices->rows == NN_KNOWN && category->rows == BUCKETS);
    uint64_t count = weir_nn_parameter_count(f.nn), fewer = (NN_KNOWN - 2 + BUCKETS - 1) * 8;
    assert_int_equal(weir_nn_parameter_count(share), count - fewer);
    weir_real *params = fixture_array(count, sizeof *params), *whole_g = fixture_array(count, sizeof *whole_g),
              *share_g = fixture_array(count, sizeof *share_g);
    for (uint32_t i = 0; i < tensors; i++) {
        bool shared = &all[i] == vertices || &all[i] == category;
        assert_string_equal(own[i].name, all[i].name);
        assert_true(own[i].held == shared && !all[i].held);
        assert_int_equal(own[i].rows, &all[i] == vertices ? 2 : &all[i] == category ? 1 : all[i].rows);
        if (!shared)
            memcpy(params + own[i].offset, f.params + all[i].offset,
                   (size_t)all[i].rows * all[i].cols * sizeof *params);
    }

    rows_in_another_order(&f, category, vertices, rows);
    assert_ok(weir_nn_workspace_open(f.nn, true, &whole_space));
    assert_ok(weir_nn_workspace_open(share, true, &share_space));
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, whole_space, logits[0], NULL));
    for (uint32_t i = 0; i < NN_TARGETS; i++)
        dlogits[i] = (weir_real)nn_normal(&f);
    assert_ok(weir_nn_backward(f.nn, f.params, whole_space, dlogits, whole_g, NULL));
    assert_err(weir_nn_forward(share, params, &f.batch, NULL, share_space, logits[1], NULL), WEIR_EINVAL,
               "come with the batch");
    slots_in_another_order(&f);
    const weir_nn_brought brought = {rows, back, BROUGHT};
    f.batch.brought = &brought;
    assert_ok(weir_nn_forward(share, params, &f.batch, NULL, share_space, logits[1], NULL));
    assert_ok(weir_nn_backward(share, params, share_space, dlogits, share_g, NULL));
    assert_err(weir_nn_forward(f.nn, f.params, &f.batch, NULL, whole_space, logits[1], NULL), WEIR_EINVAL,
               "come with the batch");
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    for (uint32_t i = 0; i < tensors; i++) {
        for (uint32_t n = 0; n < all[i].rows * all[i].cols; n++) {
            uint32_t slot = n / 8;
            weir_real here = &all[i] == vertices   ? back[(BROUGHT - 1 - slot) * 8 + n % 8]
                             : &all[i] == category ? back[(BUCKETS - 1 - slot) * 8 + n % 8]
                                                   : share_g[own[i].offset + n];
            assert_true(here == whole_g[all[i].offset + n]);
        }
        for (uint32_t n = 0; own[i].held && n < own[i].rows * own[i].cols; n++)
            assert_true(share_g[own[i].offset + n] == 0);
    }
    weir_nn_workspace_close(whole_space);
    weir_nn_workspace_close(share_space);
    weir_nn_close(share);
    free(params);
    free(whole_g);
    free(share_g);
    nn_close(&f);
}

/* Its rows begin as those of the whole network, whichever they are; all else begins as it does there. */
static void a_share_begins_as_the_whole(void **state) {
    (void)state;
    static const uint32_t some[] = {0, 3, 5};
    nn_fixture f;
    weir_nn *share = NULL;
    nn_open(&f, weir_test_seed(), "find", 8);
    const weir_nn_held held = {0, 1, some, 3};
    assert_ok(weir_nn_open_share(f.shape, weir_kernels_cpu(), &held, 1, &share));
    weir_real *params = fixture_array(weir_nn_parameter_count(share), sizeof *params);
    weir_nn_init(f.nn, weir_test_seed(), f.params);
    weir_nn_init(share, weir_test_seed(), params);
    uint32_t tensors;
    const weir_nn_tensor *all = weir_nn_tensors(f.nn, &tensors), *own = weir_nn_tensors(share, &tensors);
    for (uint32_t i = 0; i < tensors; i++)
        for (uint32_t n = 0; n < own[i].rows * own[i].cols; n++) {
            uint32_t row = n / own[i].cols, of_all = own[i].held ? some[row] : row;
            assert_true(params[own[i].offset + n] == f.params[all[i].offset + of_all * own[i].cols + n % own[i].cols]);
        }
    free(params);
    weir_nn_close(share);
    nn_close(&f);
}

static double accuracy(nn_fixture *f, weir_nn_workspace *w, uint32_t first, uint32_t count) {
    weir_real logits[PEOPLE];
    uint32_t right = 0;
    two_communities_batch(f, first, count);
    assert_ok(weir_nn_forward(f->nn, f->params, &f->batch, NULL, w, logits, NULL));
    for (uint32_t i = 0; i < count; i++)
        right += (logits[i] > 0) == ((first + i) % 2 == 1);
    return (double)right / count;
}

static double train_step(nn_fixture *f, weir_nn_workspace *w, weir_adamw *adamw, uint64_t step, weir_real *gradients) {
    enum { TRAINED = PEOPLE / 2 };
    weir_real logits[TRAINED], dlogits[TRAINED];
    uint32_t labels[TRAINED];
    weir_nn_drop drop = {.rate = 0.1, .seed = 1, .step = step};
    for (uint32_t i = 0; i < TRAINED; i++)
        labels[i] = i % 2;
    weir_loss loss = {.logits = logits, .labels = labels, .count = TRAINED, .classes = 2, .divisor = TRAINED};
    two_communities_batch(f, 0, TRAINED);
    assert_ok(weir_nn_forward(f->nn, f->params, &f->batch, &drop, w, logits, NULL));
    double value = nn_loss(1, &loss, dlogits);
    memset(gradients, 0, weir_nn_parameter_count(f->nn) * sizeof *gradients);
    assert_ok(weir_nn_backward(f->nn, f->params, w, dlogits, gradients, NULL));
    assert_ok(weir_adamw_step_take(adamw, 0.01, gradients, NULL, f->params, NULL));
    return value;
}

/* Half of the people are trained on; the other half is asked. Twice: the same bits. */
static void two_communities_are_learnt(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    weir_real *last = NULL;
    for (unsigned run = 0; run < 2; run++) {
        nn_fixture f;
        weir_nn_workspace *w = NULL;
        weir_adamw *adamw = NULL;
        two_communities(&f, seed);
        uint64_t count = weir_nn_parameter_count(f.nn);
        weir_real *gradients = fixture_array(count, sizeof *gradients);
        weir_nn_init(f.nn, seed, f.params);
        assert_ok(weir_nn_workspace_open(f.nn, true, &w));
        assert_ok(weir_adamw_open(f.nn, &(weir_adamw_opts){.decay = 0.05, .norm_max = 5}, &adamw));
        double first = 0, value = 0;
        for (uint64_t step = 0; step < 40; step++) {
            value = train_step(&f, w, adamw, step, gradients);
            if (step == 0) first = value;
        }
        double right = accuracy(&f, w, PEOPLE / 2, PEOPLE / 2);
        print_message("loss %.3f to %.3f, %.3f right\n", first, value, right);
        assert_true(value < first / 3 && right > 0.95);
        if (last) assert_memory_equal(last, f.params, count * sizeof *last);
        free(last);
        last = fixture_array(count, sizeof *last);
        memcpy(last, f.params, count * sizeof *last);
        free(gradients);
        weir_adamw_close(adamw);
        weir_nn_workspace_close(w);
        nn_close(&f);
    }
    free(last);
}

static weir_err attempt_back(void *context) {
    nn_fixture *f = context;
    weir_nn_workspace *workspace = NULL;
    weir_real logits[NN_TARGETS], dlogits[NN_TARGETS] = {0};
    weir_real *gradients = fixture_array(weir_nn_parameter_count(f->nn), sizeof *gradients);
    weir_err err = weir_nn_workspace_open(f->nn, true, &workspace);
    if (!err) err = weir_nn_forward(f->nn, f->params, &f->batch, NULL, workspace, logits, NULL);
    if (!err) err = weir_nn_backward(f->nn, f->params, workspace, dlogits, gradients, NULL);
    weir_nn_workspace_close(workspace);
    free(gradients);
    return err;
}

static void every_allocation_of_the_way_back_may_fail(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        nn_fixture f;
        nn_open_network(&f, 1, "find", 8, NN_OF_CATEGORIES, network, 0);
        nn_random_batch(&f);
        weir_test_every_allocation(attempt_back, &f);
        nn_close(&f);
    }
    static const nn_encoders others[] = {NN_HEADLESS, NN_DENSE, NN_STREAM, NN_FLAT};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        nn_fixture f;
        nn_open_as(&f, 1, "find", 8, others[i]);
        nn_random_batch(&f);
        weir_test_every_allocation(attempt_back, &f);
        nn_close(&f);
    }
}

WEIR_TESTS(WEIR_CASE(every_allocation_of_the_way_back_may_fail), WEIR_CASE(binary_loss_by_hand),
           WEIR_CASE(softmax_loss_by_hand), WEIR_CASE(slopes_are_differences), WEIR_CASE(focal_loss_by_hand),
           WEIR_CASE(b2_parts_add_up_to_the_whole), WEIR_CASE(who_listens_hears_of_finished_gradients),
           WEIR_CASE(there_is_no_way_back_without_a_tape), WEIR_CASE(rows_are_those_of_the_slots),
           WEIR_CASE(a_share_with_brought_rows_is_the_whole), WEIR_CASE(a_share_begins_as_the_whole),
           WEIR_CASE(two_communities_are_learnt))
