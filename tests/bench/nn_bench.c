/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn_bench.c - the network on batches of 1,024 targets with fan-outs 10 and 10, against the machine's own GEMM rate.
 *
 * The limit is a square product that BLAS likes. A line's rate counts the flops of its GEMMs over the whole time, so
 * its ratio is the share of the machine that arithmetic gets. The table below the lines says where the rest went: the
 * kernels are called through a table that takes the time of each.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/inference/nn/nn.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/nn/nn.h>

#include "bench.h"

#define BATCH       1024u
#define QUICK_BATCH 16u
#define FANOUT      10u
#define DEGREE      16u
#define SQUARE      512u
#define LAST_US     ((int64_t)1 << 40)

static const char schema_text[] = "version: 1\nname: bench\nvertices:\n  v:\n    features:\n"
                                  "      a: {kind: number}\n      b: {kind: number}\n      c: {kind: number}\n"
                                  "      d: {kind: number}\n      born: {kind: time}\n"
                                  "      e: {kind: category, buckets: 64}\n      f: {kind: category, buckets: 512}\n"
                                  "relations:\n  r: {from: v, to: v, features: {amount: {kind: number}}}\n"
                                  "labels:\n  l: {vertex: v, values: [no, yes], lag: 1d}\n"
                                  "tasks:\n  t: {kind: classify, label: l, positive: yes}\n";

/* --- kernels that take their time -------------------------------------------------------------------------------- */

typedef enum part { GEMM, MEANS, ROWS, TIME, EMBED, RELU, NORM, OPTIMISER, ZERO, PARTS } part;

static const char *const part_names[PARTS] = {"GEMM",
                                              "means and their way back",
                                              "gather, scatter, look up",
                                              "time code",
                                              "embeddings",
                                              "bias, relu",
                                              "layer norm",
                                              "AdamW, norm of gradients",
                                              "zeros"};
static const weir_kernels *inner;
static int64_t part_ns[PARTS];
static double flops;

static int64_t now_ns(void) {
    return weir_clock_mono_ns(weir_clock_system());
}

#define TIMED(name, which, parameters, arguments) \
    static void timed_##name parameters {         \
        int64_t begin = now_ns();                 \
        inner->name arguments;                    \
        part_ns[which] += now_ns() - begin;       \
    }

TIMED(gather_rows, ROWS,
      (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *x, const uint32_t *i, weir_real *o, uint32_t l),
      (k, n, c, x, i, o, l))
TIMED(scatter_add_rows, ROWS,
      (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *d, const uint32_t *i, weir_real *x),
      (k, n, c, d, i, x))
TIMED(compose, ROWS, (const weir_kernels *k, size_t n, const uint32_t *a, const uint32_t *b, uint32_t *o),
      (k, n, a, b, o))
TIMED(segment_mean, MEANS,
      (const weir_kernels *k, const weir_segments *s, uint32_t c, const weir_real *x, uint32_t l, weir_real *o,
       uint32_t m),
      (k, s, c, x, l, o, m))
TIMED(segment_mean_back, MEANS,
      (const weir_kernels *k, const weir_segments *s, uint32_t c, const weir_real *d, uint32_t l, weir_real *x,
       uint32_t m),
      (k, s, c, d, l, x, m))
TIMED(segment_mean_back_first, MEANS,
      (const weir_kernels *k, const weir_segments *s, uint32_t c, const weir_real *d, uint32_t l, weir_real *x,
       uint32_t from, uint32_t end),
      (k, s, c, d, l, x, from, end))
TIMED(segment_sum, MEANS,
      (const weir_kernels *k, const weir_segments *s, const weir_real *w, uint32_t c, const weir_real *x, uint32_t l,
       weir_real *o, uint32_t m),
      (k, s, w, c, x, l, o, m))
TIMED(segment_log_count, MEANS, (const weir_kernels *k, const weir_segments *s, weir_real *o, uint32_t l), (k, s, o, l))
TIMED(segment_zero_empty, TIME, (const weir_kernels *k, const weir_segments *s, uint32_t c, weir_real *x, uint32_t l),
      (k, s, c, x, l))
TIMED(time_code, TIME, (const weir_kernels *k, uint32_t n, const weir_ages *a, weir_real *o, uint32_t l),
      (k, n, a, o, l))
TIMED(embed, EMBED,
      (const weir_kernels *k, uint32_t n, uint32_t c, const uint32_t *s, uint32_t stride, const weir_real *t,
       weir_real *o),
      (k, n, c, s, stride, t, o))
TIMED(embed_back, EMBED,
      (const weir_kernels *k, uint32_t n, uint32_t c, const uint32_t *s, uint32_t stride, const weir_real *d,
       weir_real *t),
      (k, n, c, s, stride, d, t))
TIMED(bias_back, RELU, (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *d, weir_real *b),
      (k, n, c, d, b))
TIMED(bias_relu, RELU, (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *b, weir_real *x),
      (k, n, c, b, x))
TIMED(relu_back, RELU, (const weir_kernels *k, size_t n, const weir_real *x, weir_real *d), (k, n, x, d))
TIMED(layer_norm, NORM,
      (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *x, const weir_real *g, const weir_real *s,
       size_t b, weir_real *o, weir_real *t),
      (k, n, c, x, g, s, b, o, t))
TIMED(layer_norm_back, NORM,
      (const weir_kernels *k, uint32_t n, uint32_t c, const weir_real *x, const weir_real *t, const weir_real *g,
       bool r, weir_real *d, weir_real *dg, weir_real *ds),
      (k, n, c, x, t, g, r, d, dg, ds))
TIMED(adamw, OPTIMISER,
      (const weir_kernels *k, size_t n, const weir_adamw_step *s, const weir_real *g, weir_real *m, weir_real *v,
       weir_real *p),
      (k, n, s, g, m, v, p))

TIMED(zero, ZERO, (const weir_kernels *k, void *memory, size_t bytes), (k, memory, bytes))

static void timed_gemm(const weir_kernels *k, const weir_gemm *g) {
    int64_t begin = now_ns();
    inner->gemm(k, g);
    part_ns[GEMM] += now_ns() - begin;
    flops += 2.0 * g->m * g->n * g->k;
}

static void timed_square_sum(const weir_kernels *k, size_t count, const weir_real *x, double *sum) {
    int64_t begin = now_ns();
    inner->square_sum(k, count, x, sum);
    part_ns[OPTIMISER] += now_ns() - begin;
}

static weir_kernels timed_kernels(void) {
    inner = weir_kernels_cpu();
    weir_kernels k = *inner;
    k.gemm = timed_gemm;
    k.zero = timed_zero;
    k.gather_rows = timed_gather_rows;
    k.scatter_add_rows = timed_scatter_add_rows;
    k.compose = timed_compose;
    k.segment_mean = timed_segment_mean;
    k.segment_mean_back = timed_segment_mean_back;
    k.segment_mean_back_first = timed_segment_mean_back_first;
    k.segment_sum = timed_segment_sum;
    k.segment_log_count = timed_segment_log_count;
    k.segment_zero_empty = timed_segment_zero_empty;
    k.time_code = timed_time_code;
    k.embed = timed_embed;
    k.embed_back = timed_embed_back;
    k.bias_back = timed_bias_back;
    k.bias_relu = timed_bias_relu;
    k.relu_back = timed_relu_back;
    k.layer_norm = timed_layer_norm;
    k.layer_norm_back = timed_layer_norm_back;
    k.adamw = timed_adamw;
    k.square_sum = timed_square_sum;
    return k;
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

static const weir_sample_step steps[] = {
    {.hop = 1, .fanout = FANOUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = FANOUT, .strategy = WEIR_SAMPLE_UNIFORM},
};

typedef struct world {
    uint64_t vertices, edges;
    int64_t *indptr, *neighbors, *times;
    uint64_t *ids;
    weir_schema *schema;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_real *numbers, *amounts[2];
    uint32_t *slots, *labels;
    const weir_real *numbers_of[1], *edges_of[2];
    const uint32_t *slots_of[1];
    weir_nn_batch batch;
    weir_kernels kernels;
    uint32_t targets;
} world;

/* One network on it. */
typedef struct subject {
    world *w;
    uint32_t hidden;
    bool back;
    uint64_t repeats;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_nn_workspace *workspace;
    weir_adamw *adamw;
    weir_real *params, *gradients, *logits, *dlogits;
    int64_t part_ns[PARTS], whole_ns;
    uint64_t batches;
    double flops;
} subject;

static weir_err graph_open(world *w, bool quick) {
    weir_rng rng = weir_rng_stream(1, 2, 3);
    w->vertices = quick ? 1000 : 1 << 18;
    w->edges = w->vertices * DEGREE;
    w->indptr = weir_calloc(w->vertices + 1, sizeof *w->indptr);
    w->ids = weir_calloc(w->vertices, sizeof *w->ids);
    w->neighbors = weir_calloc(w->edges, sizeof *w->neighbors);
    w->times = weir_calloc(w->edges, sizeof *w->times);
    if (!w->indptr || !w->ids || !w->neighbors || !w->times) return WEIR_NOMEM("for the bench's network");
    for (uint64_t v = 0; v < w->vertices; v++) {
        w->indptr[v + 1] = (int64_t)((v + 1) * DEGREE);
        w->ids[v] = v + 1;
    }
    for (uint64_t e = 0; e < w->edges; e++) {
        w->neighbors[e] = (int64_t)weir_rng_below(&rng, w->vertices);
        w->times[e] = LAST_US - (int64_t)(e % DEGREE * (LAST_US / DEGREE)) - 1;
    }
    return WEIR_OK;
}

static weir_err sampler_open(world *w) {
    static const weir_sample_ends ends = {0, 0};
    const uint64_t *ids[] = {w->ids};
    weir_sample_csr csrs[2] = {{.indptr = w->indptr,
                                .ids = w->ids,
                                .neighbors = w->neighbors,
                                .times = w->times,
                                .vertices = w->vertices,
                                .edges = w->edges,
                                .newest_us = INT64_MAX}};
    weir_sample_arrays arrays = {1, 1, &ends, csrs, ids, &w->vertices, 0};
    weir_sample_opts opts = {.steps = steps, .step_count = 2, .targets_max = BATCH, .seed = 1};
    weir_err err = weir_sample_over_arrays(&arrays, &w->source);
    if (!err) err = weir_sampler_open(&opts, w->source, &w->sampler);
    if (!err) err = weir_block_open(w->sampler, &w->block);
    if (err) return err;
    weir_target targets[BATCH];
    weir_rng rng = weir_rng_stream(4, 5, 6);
    for (uint32_t i = 0; i < w->targets; i++)
        targets[i] = (weir_target){.vertex = weir_rng_below(&rng, w->vertices), .before_us = LAST_US};
    err = weir_sample(w->sampler, targets, w->targets, w->block);
    if (!err) weir_block_inputs(w->sampler, w->block, false);
    return err;
}

static weir_real *random_reals(size_t count) {
    weir_rng rng = weir_rng_stream(7, count, 0);
    weir_real *x = weir_calloc(count + 1, sizeof *x);
    for (size_t i = 0; x && i < count; i++)
        x[i] = (weir_real)(weir_rng_double(&rng) - 0.5);
    return x;
}

/* Widths are those that the schema gives: four numbers and an age with their flags, two categories; one number of an
 * edge with its flag. */
static weir_err batch_open(world *w) {
    const weir_block_view *view = weir_block_look(w->block);
    weir_rng rng = weir_rng_stream(8, 0, 0);
    w->numbers = random_reals((size_t)view->inputs * 10);
    w->amounts[0] = random_reals((size_t)view->edges[0].count * 2);
    w->amounts[1] = random_reals((size_t)view->edges[1].count * 2);
    w->slots = weir_calloc((size_t)view->inputs * 2, sizeof *w->slots);
    w->labels = weir_calloc(w->targets, sizeof *w->labels);
    if (!w->numbers || !w->amounts[0] || !w->amounts[1] || !w->slots || !w->labels)
        return WEIR_NOMEM("for the bench's network");
    for (uint32_t i = 0; i < view->inputs * 2; i++)
        w->slots[i] = (uint32_t)weir_rng_below(&rng, i % 2 ? 513 : 65);
    for (uint32_t i = 0; i < w->targets; i++)
        w->labels[i] = i % 2;
    w->numbers_of[0] = w->numbers;
    w->slots_of[0] = w->slots;
    w->edges_of[0] = w->amounts[0];
    w->edges_of[1] = w->amounts[1];
    w->batch = (weir_nn_batch){view, w->numbers_of, w->slots_of, w->edges_of, NULL, NULL, NULL};
    return WEIR_OK;
}

static weir_err world_open(world *w, bool quick) {
    w->kernels = timed_kernels();
    w->targets = quick ? QUICK_BATCH : BATCH;
    weir_err err = weir_schema_parse("bench.yaml", schema_text, sizeof schema_text - 1, &w->schema);
    if (!err) err = graph_open(w, quick);
    if (!err) err = sampler_open(w);
    if (!err) err = batch_open(w);
    return err;
}

static void world_close(world *w) {
    weir_block_close(w->block);
    weir_sampler_close(w->sampler);
    weir_sample_source_close(w->source);
    weir_schema_free(w->schema);
    void *const arrays[] = {w->indptr,     w->ids,        w->neighbors, w->times, w->numbers,
                            w->amounts[0], w->amounts[1], w->slots,     w->labels};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        weir_free(arrays[i]);
}

static weir_err subject_open(subject *s) {
    weir_nn_opts opts = {.hidden = s->hidden, .steps = steps, .step_count = 2};
    weir_err err = weir_nn_shape_open(s->w->schema, &opts, &s->shape);
    if (!err) err = weir_nn_open(s->shape, &s->w->kernels, &s->nn);
    if (!err) err = weir_nn_workspace_open(s->nn, s->back, &s->workspace);
    if (!err) err = weir_adamw_open(s->nn, &(weir_adamw_opts){.decay = 0.01, .norm_max = 1}, &s->adamw);
    if (err) return err;
    size_t count = weir_nn_parameter_count(s->nn);
    s->params = weir_calloc(count, sizeof *s->params);
    s->gradients = weir_calloc(count, sizeof *s->gradients);
    s->logits = weir_calloc(BATCH, sizeof *s->logits);
    s->dlogits = weir_calloc(BATCH, sizeof *s->dlogits);
    if (!s->params || !s->gradients || !s->logits || !s->dlogits) return WEIR_NOMEM("for the bench's network");
    weir_nn_init(s->nn, 1, s->params);
    return WEIR_OK;
}

static void subject_close(subject *s) {
    weir_adamw_close(s->adamw);
    weir_nn_workspace_close(s->workspace);
    weir_nn_close(s->nn);
    weir_nn_shape_free(s->shape);
    weir_free(s->params);
    weir_free(s->gradients);
    weir_free(s->logits);
    weir_free(s->dlogits);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static weir_err run_batch(subject *s) {
    world *w = s->w;
    weir_loss loss = {.logits = s->logits, .labels = w->labels, .count = w->targets, .classes = 2};
    loss.divisor = w->targets;
    weir_err err = weir_nn_forward(s->nn, s->params, &w->batch, NULL, s->workspace, s->logits, NULL);
    if (err || !s->back) return err;
    double value = 0;
    inner->loss(inner, 1, &loss, s->dlogits, &value);
    memset(s->gradients, 0, weir_nn_parameter_count(s->nn) * sizeof *s->gradients);
    err = weir_nn_backward(s->nn, s->params, s->workspace, s->dlogits, s->gradients, NULL);
    if (!err) err = weir_adamw_step_take(s->adamw, 1e-4, s->gradients, NULL, s->params, NULL);
    return err;
}

static weir_err run_subject(void *context, uint64_t round, weir_bench_sample *samplep) {
    subject *s = context;
    (void)round;
    weir_err err = run_batch(s); /* its memory is there from then on */
    if (!err) err = run_batch(s);
    memset(part_ns, 0, sizeof part_ns);
    flops = 0;
    int64_t begin = now_ns();
    weir_bench_start(samplep);
    for (uint64_t i = 0; !err && i < s->repeats; i++)
        err = run_batch(s);
    weir_bench_stop(samplep, flops);
    s->whole_ns += now_ns() - begin;
    s->batches += s->repeats;
    s->flops += flops;
    for (unsigned p = 0; p < PARTS; p++)
        s->part_ns[p] += part_ns[p];
    return err;
}

static weir_err run_square(void *context, uint64_t round, weir_bench_sample *samplep) {
    size_t size = (size_t)SQUARE * SQUARE;
    weir_real *a = random_reals(size), *b = random_reals(size), *c = random_reals(size);
    uint64_t repeats = *(const uint64_t *)context;
    (void)round;
    weir_gemm g = {.m = SQUARE, .n = SQUARE, .k = SQUARE, .a = a, .lda = SQUARE, .b = b, .ldb = SQUARE};
    g.c = c;
    g.ldc = SQUARE;
    bool there = a && b && c;
    if (there) weir_kernels_cpu()->gemm(weir_kernels_cpu(), &g);
    weir_bench_start(samplep);
    for (uint64_t i = 0; there && i < repeats; i++)
        weir_kernels_cpu()->gemm(weir_kernels_cpu(), &g);
    weir_bench_stop(samplep, 2.0 * SQUARE * SQUARE * SQUARE * (double)repeats);
    weir_free(a);
    weir_free(b);
    weir_free(c);
    return there ? WEIR_OK : WEIR_NOMEM("for the bench's network");
}

/* --- where the time went ----------------------------------------------------------------------------------------- */

static void print_part(const weir_cli *cli, weir_buf *out, const subject *s, const char *name, int64_t ns) {
    double ms = (double)ns * 1e-6 / (double)s->batches, share = (double)ns / (double)s->whole_ns;
    const char *pass = s->back ? "training" : "forward";
    if (!weir_cli_given(cli, "json")) {
        weir_buf_printf(out, "nn         %-8s hidden %3u  %-28s %9.3f ms a batch  %5.1f %%\n", pass, s->hidden, name,
                        ms, 100 * share);
        return;
    }
    weir_buf_printf(out,
                    "{\"bench\":\"nn\",\"pass\":\"%s\",\"hidden\":%u,\"part\":\"%s\",\"ms\":%.6g,\"share\":%.6g}\n",
                    pass, s->hidden, name, ms, share);
}

static void print_parts(const weir_cli *cli, weir_buf *out, const subject *s) {
    int64_t rest = s->whole_ns;
    for (unsigned p = 0; p < PARTS; p++) {
        rest -= s->part_ns[p];
        if (s->part_ns[p] > 0) print_part(cli, out, s, part_names[p], s->part_ns[p]);
    }
    print_part(cli, out, s, "all else", rest);
    print_part(cli, out, s, "in all", s->whole_ns);
}

static weir_err run(weir_cli *cli) {
    bool quick = weir_bench_quick(cli);
    uint64_t squares = quick ? 1 : 40;
    static world w;
    static subject subjects[4];
    weir_buf out = {0};
    weir_err err = world_open(&w, quick);
    for (unsigned i = 0; i < 4; i++) {
        subjects[i] = (subject){.w = &w, .hidden = i < 2 ? 64 : 128, .back = i % 2, .repeats = quick ? 1 : 5};
        if (!err) err = subject_open(&subjects[i]);
    }
    const char *limit = "GEMM of 512 x 512 x 512";
    const weir_bench_line lines[] = {
        {limit, "GFLOP/s", 1e-9, NULL, run_square, &squares},
        {"forward, hidden 64", "GFLOP/s", 1e-9, limit, run_subject, &subjects[0]},
        {"forward, back and AdamW, hidden 64", "GFLOP/s", 1e-9, limit, run_subject, &subjects[1]},
        {"forward, hidden 128", "GFLOP/s", 1e-9, limit, run_subject, &subjects[2]},
        {"forward, back and AdamW, hidden 128", "GFLOP/s", 1e-9, limit, run_subject, &subjects[3]},
    };
    if (!err) err = weir_bench_run(cli, "nn", lines, sizeof lines / sizeof lines[0]);
    for (unsigned i = 0; i < 4; i++) {
        if (!err) print_parts(cli, &out, &subjects[i]);
        subject_close(&subjects[i]);
    }
    if (!err) err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    world_close(&w);
    return err;
}

extern const weir_command weir_bench_nn;
const weir_command weir_bench_nn = {
    .name = "nn",
    .summary = "the network, forward and back: share of GEMM, and milliseconds by part",
    .example = "weir bench nn --rounds 5",
    .options = weir_bench_options,
    .run = run,
};
