/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far_kernels.h - the processor's kernels over memory that is not the host's: what lies there can be read and written
 * by a kernel, and by the copies of the table, and faults for everybody else. A kernel refuses an array that lies
 * elsewhere. So what runs on this table runs on a device that has a memory of its own.
 */
#ifndef FAR_KERNELS_H
#define FAR_KERNELS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/err.h>

#include "weir_test.h"

#define FAR_BYTES     ((size_t)1 << 30)
#define FAR_PAGE      ((size_t)4096)
#define FAR_ALIGNMENT ((size_t)64)

typedef struct far_memory {
    pthread_mutex_t mutex;
    uint8_t *begin;
    size_t used; /* never given out twice: what was released stays closed */
    uint64_t calls, copied_in, copied_out;
    uint64_t waits; /* of first contexts, for kernels that had not finished */
} far_memory;

static far_memory far = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const weir_kernels *far_cpu(void) {
    return weir_kernels_cpu();
}

static void far_close(void) {
    if (far.used) assert_int_equal(mprotect(far.begin, (far.used + FAR_PAGE - 1) / FAR_PAGE * FAR_PAGE, PROT_NONE), 0);
    pthread_mutex_unlock(&far.mutex);
}

static void far_open(void) {
    pthread_mutex_lock(&far.mutex);
    const size_t bytes = (far.used + FAR_PAGE - 1) / FAR_PAGE * FAR_PAGE;
    if (bytes) assert_int_equal(mprotect(far.begin, bytes, PROT_READ | PROT_WRITE), 0);
    far.calls++;
}

typedef struct far_context {
    weir_kernels kernels;
    bool unfinished, closed, first;
    pthread_t of; /* who called what has not finished */
    struct far_context *next;
} far_context;

static far_context *far_contexts;

static weir_err far_finish(const weir_kernels *k);

/* Under the mutex. A kernel is given a context of its own table, which is open, and is nobody else's (KERNEL-K4). */
static far_context *far_context_of(const weir_kernels *k, const char *kernel) {
    far_context *c = far_contexts;
    while (c && &c->kernels != k)
        c = c->next;
    if (!c || c->closed) fail_msg("kernel %s is given a context that there is not", kernel);
    if (c->unfinished && !pthread_equal(c->of, pthread_self()))
        fail_msg("kernel %s comes between kernels of another thread", kernel);
    return c;
}

/* Under the mutex. */
static bool far_has(const void *memory) {
    const uint8_t *at = memory;
    return at >= far.begin && at < far.begin + far.used;
}

static void far_open_for(const weir_kernels *k, const char *kernel, const void *const *arrays, size_t count) {
    far_open();
    far_context *c = far_context_of(k, kernel);
    c->unfinished = true;
    c->of = pthread_self();
    for (size_t i = 0; i < count; i++)
        if (arrays[i] && !far_has(arrays[i])) fail_msg("kernel %s is given array %zu in the host's memory", kernel, i);
}

static weir_err far_alloc(const weir_kernels *k, size_t bytes, void **memoryp) {
    (void)k;
    pthread_mutex_lock(&far.mutex);
    if (!far.begin) {
        void *all = mmap(NULL, FAR_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_true(all != MAP_FAILED);
        far.begin = all;
    }
    *memoryp = far.begin + far.used;
    far.used += (bytes + FAR_ALIGNMENT) / FAR_ALIGNMENT * FAR_ALIGNMENT;
    assert_true(far.used <= FAR_BYTES);
    pthread_mutex_unlock(&far.mutex);
    return WEIR_OK;
}

static void far_release(const weir_kernels *k, void *memory) {
    (void)k;
    pthread_mutex_lock(&far.mutex);
    assert_true(!memory || far_has(memory));
    pthread_mutex_unlock(&far.mutex);
}

/* Under the mutex: the caller goes on when all that the context was given has ended. */
static void far_wait(const weir_kernels *k, const char *kernel) {
    far_context *c = far_context_of(k, kernel);
    far.waits += c->unfinished && c->first;
    c->unfinished = false;
}

static void far_to_device(const weir_kernels *k, void *to, const void *host, size_t bytes) {
    if (!bytes) return;
    far_open_for(k, "to_device", (const void *const[]){to}, 1);
    assert_true(!far_has(host));
    memcpy(to, host, bytes);
    far.copied_in += bytes;
    far_close();
}

static void far_to_host(const weir_kernels *k, void *host, const void *from, size_t bytes) {
    if (!bytes) return;
    far_open();
    far_wait(k, "to_host");
    assert_true(far_has(from) && !far_has(host));
    memcpy(host, from, bytes);
    far.copied_out += bytes;
    far_close();
}

static void far_zero(const weir_kernels *k, void *memory, size_t bytes) {
    if (!bytes) return;
    far_open_for(k, "zero", (const void *const[]){memory}, 1);
    memset(memory, 0, bytes);
    far_close();
}

static weir_err far_finish(const weir_kernels *k) {
    pthread_mutex_lock(&far.mutex);
    far_wait(k, "finish");
    pthread_mutex_unlock(&far.mutex);
    return WEIR_OK;
}

static weir_err far_another(const weir_kernels *k, const weir_kernels **otherp) {
    far_context *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->kernels = *k;
    pthread_mutex_lock(&far.mutex);
    c->next = far_contexts;
    far_contexts = c;
    pthread_mutex_unlock(&far.mutex);
    *otherp = &c->kernels;
    return WEIR_OK;
}

static void far_end(const weir_kernels *k) {
    pthread_mutex_lock(&far.mutex);
    far_context *c = far_context_of(k, "close");
    assert_false(c->unfinished);
    c->closed = true;
    pthread_mutex_unlock(&far.mutex);
}

#define FAR(name, params, args, ...)                                      \
    static void far_##name params {                                       \
        const void *const arrays[] = {__VA_ARGS__};                       \
        far_open_for(k, #name, arrays, sizeof arrays / sizeof arrays[0]); \
        far_cpu()->name args;                                             \
        far_close();                                                      \
    }                                                                     \
    _Static_assert(true, "takes the semicolon")

#define FAR_OF_SEGMENTS(name, params, args, ...)                                 \
    static void far_##name params {                                              \
        const void *const arrays[] = {__VA_ARGS__};                              \
        far_open_for(k, #name, arrays, sizeof arrays / sizeof arrays[0]);        \
        assert_int_equal(segments->entries, segments->offsets[segments->count]); \
        far_cpu()->name args;                                                    \
        far_close();                                                             \
    }                                                                            \
    _Static_assert(true, "takes the semicolon")

/* Of each kernel: what it is given, and which of that are arrays. */
FAR(gemm, (const weir_kernels *k, const weir_gemm *gemm), (far_cpu(), gemm), gemm->a, gemm->b, gemm->c);
FAR(row_products,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *y, weir_real *out),
    (far_cpu(), rows, cols, x, y, out), x, y, out);
FAR(gather_rows,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const uint32_t *index, weir_real *out,
     uint32_t ldout),
    (far_cpu(), rows, cols, x, index, out, ldout), x, index, out);
FAR(scatter_add_rows,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dout, const uint32_t *index, weir_real *dx),
    (far_cpu(), rows, cols, dout, index, dx), dout, index, dx);
FAR_OF_SEGMENTS(segment_mean,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x, uint32_t ldx,
                 weir_real *out, uint32_t ldout),
                (far_cpu(), segments, cols, x, ldx, out, ldout), segments->offsets, segments->index, x, out);
FAR_OF_SEGMENTS(segment_mean_back,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *dout,
                 uint32_t lddout, weir_real *dx, uint32_t lddx),
                (far_cpu(), segments, cols, dout, lddout, dx, lddx), segments->offsets, segments->index, dout, dx);
FAR_OF_SEGMENTS(segment_mean_back_first,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *dout,
                 uint32_t lddout, weir_real *dx, uint32_t begin, uint32_t end),
                (far_cpu(), segments, cols, dout, lddout, dx, begin, end), segments->offsets, segments->index, dout,
                dx);
FAR_OF_SEGMENTS(segment_sum,
                (const weir_kernels *k, const weir_segments *segments, const weir_real *weights, uint32_t cols,
                 const weir_real *x, uint32_t ldx, weir_real *out, uint32_t ldout),
                (far_cpu(), segments, weights, cols, x, ldx, out, ldout), segments->offsets, segments->index, weights,
                x, out);
FAR_OF_SEGMENTS(segment_sum_back,
                (const weir_kernels *k, const weir_segments *segments, const weir_real *weights, uint32_t cols,
                 const weir_real *dout, weir_real *dx),
                (far_cpu(), segments, weights, cols, dout, dx), segments->offsets, segments->index, weights, dout, dx);
FAR_OF_SEGMENTS(segment_degrees,
                (const weir_kernels *k, const weir_segments *segments, const uint32_t *of, uint32_t first,
                 weir_real *weights, weir_real *own),
                (far_cpu(), segments, of, first, weights, own), segments->offsets, segments->index, of, weights, own);
FAR_OF_SEGMENTS(segment_join,
                (const weir_kernels *k, const weir_segments *segments, uint32_t first, uint32_t *offsets,
                 uint32_t *index, uint32_t *origin),
                (far_cpu(), segments, first, offsets, index, origin), segments->offsets, segments->index, offsets,
                index, origin);
FAR_OF_SEGMENTS(segment_max,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x, uint32_t ldx,
                 weir_real *out, uint32_t ldout, uint32_t *chosen),
                (far_cpu(), segments, cols, x, ldx, out, ldout, chosen), segments->offsets, segments->index, x, out,
                chosen);
FAR(segment_max_back,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *chosen, const weir_real *dout,
     uint32_t lddout, weir_real *dx, uint32_t lddx),
    (far_cpu(), rows, cols, chosen, dout, lddout, dx, lddx), chosen, dout, dx);
FAR(take_most,
    (const weir_kernels *k, size_t count, uint32_t number, const weir_real *x, weir_real *out, uint32_t *chosen),
    (far_cpu(), count, number, x, out, chosen), x, out, chosen);
FAR(take_most_back,
    (const weir_kernels *k, size_t count, uint32_t number, const uint32_t *chosen, const weir_real *dout,
     weir_real *dx),
    (far_cpu(), count, number, chosen, dout, dx), chosen, dout, dx);
FAR_OF_SEGMENTS(segment_deviation,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x, uint32_t ldx,
                 const weir_real *means, weir_real *out, uint32_t ldout),
                (far_cpu(), segments, cols, x, ldx, means, out, ldout), segments->offsets, segments->index, x, means,
                out);
FAR_OF_SEGMENTS(segment_deviation_back,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x, uint32_t ldx,
                 const weir_real *means, const weir_real *deviations, const weir_real *dout, uint32_t lddout,
                 weir_real *dx, uint32_t lddx),
                (far_cpu(), segments, cols, x, ldx, means, deviations, dout, lddout, dx, lddx), segments->offsets,
                segments->index, x, means, deviations, dout, dx);
FAR_OF_SEGMENTS(segment_amplify, (const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *x),
                (far_cpu(), segments, cols, x), segments->offsets, segments->index, x);
FAR_OF_SEGMENTS(segment_amplify_back,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *dx),
                (far_cpu(), segments, cols, dx), segments->offsets, segments->index, dx);
FAR(add_more, (const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x, weir_real *out),
    (far_cpu(), count, more, x, out), more, x, out);
FAR(add_more_back,
    (const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x, const weir_real *dout,
     weir_real *dmore, weir_real *dx),
    (far_cpu(), count, more, x, dout, dmore, dx), more, x, dout, dmore, dx);
FAR(add_scaled_rows,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *factors, const weir_real *x, weir_real *out),
    (far_cpu(), rows, cols, factors, x, out), factors, x, out);
FAR_OF_SEGMENTS(segment_scores,
                (const weir_kernels *k, const weir_segments *segments, const weir_attention *attention,
                 weir_real *scores),
                (far_cpu(), segments, attention, scores), segments->offsets, segments->index, attention->keys,
                attention->queries, attention->edges, attention->weights, scores);
FAR_OF_SEGMENTS(segment_scores_back,
                (const weir_kernels *k, const weir_segments *segments, const weir_attention *attention,
                 const weir_real *dscores, const weir_attention_back *back),
                (far_cpu(), segments, attention, dscores, back), segments->offsets, segments->index, attention->keys,
                attention->queries, attention->edges, attention->weights, dscores, back->keys, back->queries,
                back->edges, back->weights);
FAR_OF_SEGMENTS(segment_softmax,
                (const weir_kernels *k, const weir_segments *segments, uint32_t heads, weir_real *scores),
                (far_cpu(), segments, heads, scores), segments->offsets, segments->index, scores);
FAR_OF_SEGMENTS(segment_softmax_back,
                (const weir_kernels *k, const weir_segments *segments, uint32_t heads, const weir_real *shares,
                 weir_real *dshares),
                (far_cpu(), segments, heads, shares, dshares), segments->offsets, segments->index, shares, dshares);
FAR_OF_SEGMENTS(segment_mix,
                (const weir_kernels *k, const weir_segments *segments, uint32_t heads, const weir_real *shares,
                 uint32_t cols, const weir_real *x, weir_real *out),
                (far_cpu(), segments, heads, shares, cols, x, out), segments->offsets, segments->index, shares, x, out);
FAR_OF_SEGMENTS(segment_mix_back,
                (const weir_kernels *k, const weir_segments *segments, uint32_t heads, const weir_real *shares,
                 uint32_t cols, const weir_real *x, const weir_real *dout, weir_real *dshares, weir_real *dx),
                (far_cpu(), segments, heads, shares, cols, x, dout, dshares, dx), segments->offsets, segments->index,
                shares, x, dout, dshares, dx);
FAR(head_products,
    (const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols, const weir_real *x, const weir_real *weights,
     weir_real *out),
    (far_cpu(), rows, heads, cols, x, weights, out), x, weights, out);
FAR(head_products_back,
    (const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols, const weir_real *x, const weir_real *weights,
     const weir_real *dout, weir_real *dx, weir_real *dweights),
    (far_cpu(), rows, heads, cols, x, weights, dout, dx, dweights), x, weights, dout, dx, dweights);
FAR_OF_SEGMENTS(segment_log_count,
                (const weir_kernels *k, const weir_segments *segments, weir_real *out, uint32_t ldout),
                (far_cpu(), segments, out, ldout), segments->offsets, segments->index, out);
FAR_OF_SEGMENTS(segment_zero_empty,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *x, uint32_t ldx),
                (far_cpu(), segments, cols, x, ldx), segments->offsets, segments->index, x);
FAR(time_code, (const weir_kernels *k, uint32_t rows, const weir_ages *ages, weir_real *out, uint32_t ldout),
    (far_cpu(), rows, ages, out, ldout), ages->before_us, ages->groups, ages->parents, ages->times, out);
FAR(compose, (const weir_kernels *k, size_t count, const uint32_t *outer, const uint32_t *inner, uint32_t *out),
    (far_cpu(), count, outer, inner, out), outer, inner, out);
FAR(rebase, (const weir_kernels *k, size_t count, const uint32_t *index, uint32_t first, uint32_t *out),
    (far_cpu(), count, index, first, out), index, out);
FAR(embed,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
     const weir_real *table, weir_real *out),
    (far_cpu(), rows, cols, slots, stride, table, out), slots, table, out);
FAR(embed_back,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride, const weir_real *dout,
     weir_real *dtable),
    (far_cpu(), rows, cols, slots, stride, dout, dtable), slots, dout, dtable);
FAR(bias, (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x),
    (far_cpu(), rows, cols, bias, x), bias, x);
FAR(bias_back, (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dx, weir_real *dbias),
    (far_cpu(), rows, cols, dx, dbias), dx, dbias);
FAR(bias_relu, (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x),
    (far_cpu(), rows, cols, bias, x), bias, x);
FAR(relu_back, (const weir_kernels *k, size_t count, const weir_real *x, weir_real *dx), (far_cpu(), count, x, dx), x,
    dx);
FAR(layer_norm,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *gain,
     const weir_real *shift, size_t bytes, weir_real *out, weir_real *stats),
    (far_cpu(), rows, cols, x, gain, shift, bytes, out, stats), x, gain, shift, out, stats);
FAR(layer_norm_back,
    (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *stats,
     const weir_real *gain, bool relu, weir_real *d, weir_real *dgain, weir_real *dshift),
    (far_cpu(), rows, cols, x, stats, gain, relu, d, dgain, dshift), x, stats, gain, d, dgain, dshift);
FAR(dropout, (const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_dropout *dropout, weir_real *x),
    (far_cpu(), rows, cols, dropout, x), dropout->keys, x);
FAR_OF_SEGMENTS(segment_dropout,
                (const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_dropout *dropout,
                 weir_real *x),
                (far_cpu(), segments, cols, dropout, x), segments->offsets, segments->index, dropout->keys, x);
FAR(copy, (const weir_kernels *k, void *to, const void *from, size_t bytes), (far_cpu(), to, from, bytes), to, from);
FAR(add, (const weir_kernels *k, size_t count, const weir_real *x, weir_real *y), (far_cpu(), count, x, y), x, y);
FAR(approach, (const weir_kernels *k, size_t count, weir_real share, const weir_real *x, weir_real *y),
    (far_cpu(), count, share, x, y), x, y);
FAR(loss, (const weir_kernels *k, uint32_t outputs, const weir_loss *loss, weir_real *dlogits, double *sum),
    (far_cpu(), outputs, loss, dlogits, sum), loss->logits, loss->labels, loss->weights, dlogits, sum);
FAR(square_sum, (const weir_kernels *k, size_t count, const weir_real *x, double *sum), (far_cpu(), count, x, sum), x,
    sum);
FAR(adamw,
    (const weir_kernels *k, size_t count, const weir_adamw_step *step, const weir_real *gradients, weir_real *moment1,
     weir_real *moment2, weir_real *parameters),
    (far_cpu(), count, step, gradients, moment1, moment2, parameters), step->shortening.squares, gradients, moment1,
    moment2, parameters);
FAR(adagrad,
    (const weir_kernels *k, size_t count, const weir_adagrad_step *step, const weir_real *gradients, weir_real *squares,
     weir_real *parameters),
    (far_cpu(), count, step, gradients, squares, parameters), step->shortening.squares, gradients, squares, parameters);
FAR(zero_rows, (const weir_kernels *k, const weir_row_list *rows, weir_real *x), (far_cpu(), rows, x), rows->ids, x);
FAR(square_sum_rows, (const weir_kernels *k, const weir_row_list *rows, const weir_real *x, double *sum),
    (far_cpu(), rows, x, sum), rows->ids, x, sum);
FAR(adamw_rows,
    (const weir_kernels *k, const weir_row_list *rows, const weir_adamw_step *step, uint64_t steps,
     const weir_real *gradients, uint64_t *moved, weir_real *moment1, weir_real *moment2, weir_real *parameters),
    (far_cpu(), rows, step, steps, gradients, moved, moment1, moment2, parameters), rows->ids, step->shortening.squares,
    gradients, moved, moment1, moment2, parameters);
FAR(adagrad_rows,
    (const weir_kernels *k, const weir_row_list *rows, const weir_adagrad_step *step, const weir_real *gradients,
     weir_real *squares, weir_real *parameters),
    (far_cpu(), rows, step, gradients, squares, parameters), rows->ids, step->shortening.squares, gradients, squares,
    parameters);
FAR(adamw_bring,
    (const weir_kernels *k, const weir_row_list *rows, const weir_adamw_wait *wait, uint64_t *moved, weir_real *moment1,
     weir_real *moment2, weir_real *parameters),
    (far_cpu(), rows, wait, moved, moment1, moment2, parameters), rows->ids, moved, moment1, moment2, parameters);
FAR(adamw_moved,
    (const weir_kernels *k, const weir_row_list *rows, uint64_t steps, const weir_real *moment1, uint64_t *moved),
    (far_cpu(), rows, steps, moment1, moved), rows->ids, moment1, moved);

static const weir_kernels far_table = {
    .name = "far",
    .open = far_another,
    .close = far_end,
    .alloc = far_alloc,
    .release = far_release,
    .to_device = far_to_device,
    .to_host = far_to_host,
    .zero = far_zero,
    .copy = far_copy,
    .finish = far_finish,
    .gemm = far_gemm,
    .row_products = far_row_products,
    .gather_rows = far_gather_rows,
    .scatter_add_rows = far_scatter_add_rows,
    .segment_mean = far_segment_mean,
    .segment_mean_back = far_segment_mean_back,
    .segment_mean_back_first = far_segment_mean_back_first,
    .segment_sum = far_segment_sum,
    .segment_sum_back = far_segment_sum_back,
    .segment_degrees = far_segment_degrees,
    .segment_join = far_segment_join,
    .segment_max = far_segment_max,
    .segment_max_back = far_segment_max_back,
    .take_most = far_take_most,
    .take_most_back = far_take_most_back,
    .segment_deviation = far_segment_deviation,
    .segment_deviation_back = far_segment_deviation_back,
    .segment_amplify = far_segment_amplify,
    .segment_amplify_back = far_segment_amplify_back,
    .add_more = far_add_more,
    .add_more_back = far_add_more_back,
    .add_scaled_rows = far_add_scaled_rows,
    .segment_scores = far_segment_scores,
    .segment_scores_back = far_segment_scores_back,
    .segment_softmax = far_segment_softmax,
    .segment_softmax_back = far_segment_softmax_back,
    .segment_mix = far_segment_mix,
    .segment_mix_back = far_segment_mix_back,
    .head_products = far_head_products,
    .head_products_back = far_head_products_back,
    .segment_log_count = far_segment_log_count,
    .segment_zero_empty = far_segment_zero_empty,
    .time_code = far_time_code,
    .compose = far_compose,
    .rebase = far_rebase,
    .embed = far_embed,
    .embed_back = far_embed_back,
    .bias = far_bias,
    .bias_back = far_bias_back,
    .bias_relu = far_bias_relu,
    .relu_back = far_relu_back,
    .layer_norm = far_layer_norm,
    .layer_norm_back = far_layer_norm_back,
    .dropout = far_dropout,
    .segment_dropout = far_segment_dropout,
    .add = far_add,
    .approach = far_approach,
    .square_sum = far_square_sum,
    .adamw = far_adamw,
    .adagrad = far_adagrad,
    .loss = far_loss,
    .zero_rows = far_zero_rows,
    .square_sum_rows = far_square_sum_rows,
    .adamw_rows = far_adamw_rows,
    .adagrad_rows = far_adagrad_rows,
    .adamw_bring = far_adamw_bring,
    .adamw_moved = far_adamw_moved,
};

/* A context of its own, which stays as long as the process. */
static inline const weir_kernels *far_kernels(void) {
    const weir_kernels *first;
    weir_kernels table = far_table;
    table.piece_bytes = far_cpu()->piece_bytes;
    assert_ok(far_another(&table, &first));
    pthread_mutex_lock(&far.mutex);
    far_contexts->first = true;
    pthread_mutex_unlock(&far.mutex);
    return first;
}

#endif /* FAR_KERNELS_H */
