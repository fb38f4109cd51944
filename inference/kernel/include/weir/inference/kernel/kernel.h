/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - the back end: one table of kernels, and the memory that they work on.
 *
 * Everything above asks a table for its arithmetic and its memory, and knows no device. Matrices are row-major; `ld` is
 * the distance from one row to the next, in elements. Arrays that a kernel reads or writes lie in the table's memory,
 * which is the host's where `unified` says so.
 *
 * A table is one context: behind its functions, which are given it, may stand a device, an order of work on that, and
 * scratch memory. Contexts that were opened from each other share a device and its memory.
 *
 * INVARIANTS
 *   KERNEL-K1  A kernel gives the same bits for the same arguments, whatever ran before it: sums have a fixed order.
 *   KERNEL-K2  Zero rows, columns or segments are fine and write nothing; a product over k = 0 writes beta · C. But
 *              layer_norm writes the stats of rows without columns, which mean nothing.
 *   KERNEL-K3  Only `alloc`, `open` and `finish` can fail: a context keeps the first error of its kernels for `finish`.
 *   KERNEL-K4  What is called on one context runs as if it came one after the other. What it has written, others may
 *              read once it has finished, or copied something to the host.
 *
 * THREADS: a context belongs to one thread at a time, which hands it over finished; memory may be taken and given back
 * by any. That of the host's processor keeps nothing, and is [any].
 */
#ifndef WEIR_INFERENCE_KERNEL_KERNEL_H
#define WEIR_INFERENCE_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* float, except in the gradient tests, which build the same sources in double. */
#ifdef WEIR_REAL_DOUBLE
typedef double weir_real;
#else
typedef float weir_real;
#endif

#define WEIR_NO_SLOT UINT32_MAX /* of a table: no row of it */

#define WEIR_TIME_CODE_COUNT 8u /* bumps of the time code, from 1 s to 400 days, even in log(1 + seconds) */

/* C (m x n) = op(A) (m x k) · op(B) (k x n) + beta · C. A plain value. */
typedef struct weir_gemm {
    uint32_t m, n, k;
    bool a_transposed, b_transposed;
    const weir_real *a;
    uint32_t lda;
    const weir_real *b;
    uint32_t ldb;
    weir_real beta; /* 0: C is not read */
    weir_real *c;
    uint32_t ldc;
} weir_gemm;

/* Segment i has entries offsets[i] up to offsets[i + 1]; entry e is row index[e] of x, or row e where index is NULL.
 * Where some entries were left out, each of the others stands for more than one in counts and in sums without weights.
 * A plain value. */
typedef struct weir_segments {
    uint32_t count;
    const uint32_t *offsets; /* count + 1 */
    const uint32_t *index;
    uint32_t entries; /* offsets[count], for whoever cannot look there */
    double each;      /* how many an entry stands for; 0: 1            */
} weir_segments;

/* How well each entry of a segment goes with the segment, by each of some heads. A head has cols / heads columns, one
 * head's behind the other's, and its score is the sum over these of weight * leaky(key + query + edge), where leaky
 * takes a fifth of what is below 0. A plain value. */
typedef struct weir_attention {
    uint32_t heads, cols;     /* a multiple of the heads                  */
    const weir_real *keys;    /* rows that the segments' entries name     */
    const weir_real *queries; /* one a segment                            */
    const weir_real *edges;   /* one an entry                             */
    const weir_real *weights; /* cols                                     */
} weir_attention;

/* Where the gradients of the same go: edges' are written, all others are added to. A plain value. */
typedef struct weir_attention_back {
    weir_real *keys, *queries, *edges, *weights;
} weir_attention_back;

/* The age of edge i is before_us[groups[parents[i]]] - times[i] microseconds, kept between 0 and 127 years. Without
 * parents it is before_us[groups[i]] - times[0]. A plain value. */
typedef struct weir_ages {
    const int64_t *before_us;
    const uint32_t *groups, *parents; /* parents may be NULL */
    const int64_t *times;
} weir_ages;

#define WEIR_LOSS_NO_LABEL UINT32_MAX /* a target that counts for nothing */

/* Of a batch. labels: 0 or 1, or a class below `classes`; weights: one a class, NULL: all 1. divisor: the weights of
 * all labelled targets of the global batch, summed over the ranks; above 0. A plain value. */
typedef struct weir_loss {
    const weir_real *logits;
    const uint32_t *labels;
    const double *weights;
    uint32_t count, classes; /* binary: classes is 2, with one logit a target */
    double divisor;
    double focal; /* what is nearly certain counts less, the more the larger this is (losses.c); 0: all alike */
} weir_loss;

/* Some rows of a table. A plain value. */
typedef struct weir_row_list {
    uint32_t count, cols;
    const uint32_t *ids; /* NULL: the first ones */
} weir_row_list;

/* How long all gradients together are: longer ones are shortened to norm_max, and where they are no finite numbers, a
 * step changes nothing. A plain value. */
typedef struct weir_shortening {
    const double *squares; /* their sum; NULL: gradients stay as they are */
    double norm_max;       /* 0: they are never too long                  */
} weir_shortening;

/* AdamW with decoupled decay. The corrections are 1 - beta^step. A plain value. */
typedef struct weir_adamw_step {
    double rate, beta1, beta2, epsilon, decay;
    double l2; /* of each parameter, so much of it is added to its gradient once that is shortened */
    double correction1, correction2;
    weir_shortening shortening;
} weir_adamw_step;

/* Adagrad: the larger the squares that an element's gradients have come to, the less it moves. A plain value. */
typedef struct weir_adagrad_step {
    double rate, epsilon;
    weir_shortening shortening;
} weir_adagrad_step;

/* Steps of AdamW in which rows had no gradient. A plain value. */
typedef struct weir_adamw_wait {
    uint64_t steps;          /* they are brought up to this one                                            */
    uint64_t one_by_one_max; /* so many at most: nothing is left of the first moment then; the rest at once */
    double rate, beta1, beta2, epsilon, decay;
} weir_adamw_wait;

/* Of a row the step that it is as of, and whether its first moment is all 0. */
#define WEIR_ROW_STILL ((uint64_t)1 << 63)

/* What a dropped element depends on: nothing but these, the row's key and the column. A plain value. */
typedef struct weir_dropout {
    double rate; /* in [0, 1), taken to the nearest 1/65536; what stays is divided by 1 - rate */
    uint64_t seed;
    uint32_t stream;      /* of the layer, or of a step of it */
    const uint64_t *keys; /* one a row; NULL: its number */
} weir_dropout;

typedef struct weir_kernels weir_kernels;
struct weir_kernels {
    const char *name; /* "cpu" */
    bool unified;     /* its memory is the host's, and nothing needs copying */
    /* Rows are best worked on in pieces of about so many bytes, which then stay in a cache from one kernel to the next;
     * 0: all at once. */
    size_t piece_bytes;

    /* Another context on the same device, for another thread.  WEIR_ENOMEM, what the device reports.  [any] */
    weir_err (*open)(const weir_kernels *k, const weir_kernels **otherp);
    void (*close)(const weir_kernels *k); /* of what was opened; it has finished */

    /* Memory.  WEIR_ENOMEM; `finish` waits, and returns the first error since the last `finish` (KERNEL-K3). A copy
     * comes after all that the context was given before it; on return one to the host has ended, and of one to the
     * device the host's bytes may change again. One that fails may leave anything where it copies to, until `finish`
     * says so. */
    weir_err (*alloc)(const weir_kernels *k, size_t bytes, void **memoryp);
    void (*release)(const weir_kernels *k, void *memory); /* NULL is allowed */
    void (*to_device)(const weir_kernels *k, void *to, const void *host, size_t bytes);
    void (*to_host)(const weir_kernels *k, void *host, const void *from, size_t bytes);
    void (*zero)(const weir_kernels *k, void *memory, size_t bytes);
    void (*copy)(const weir_kernels *k, void *to, const void *from, size_t bytes); /* both in the kernels' memory */
    weir_err (*finish)(const weir_kernels *k);

    void (*gemm)(const weir_kernels *k, const weir_gemm *gemm);
    /* out[i] = x[i] · y: a product with one row reads x once, and copies none of it */
    void (*row_products)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *y,
                         weir_real *out);

    /* out[i] = x[index[i]], or x[i] without an index; of WEIR_NO_SLOT nothing;   dx[index[i]] += dout[i] */
    void (*gather_rows)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const uint32_t *index,
                        weir_real *out, uint32_t ldout);
    void (*scatter_add_rows)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dout,
                             const uint32_t *index, weir_real *dx);
    /* Row i of out is the mean of segment i's entries, zeros when it has none;   back: adds to dx. */
    void (*segment_mean)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x,
                         uint32_t ldx, weir_real *out, uint32_t ldout);
    void (*segment_mean_back)(const weir_kernels *k, const weir_segments *segments, uint32_t cols,
                              const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t lddx);
    /* The same to rows [begin, end) of dx, which have all entries and hold nothing yet: all of them are written. */
    void (*segment_mean_back_first)(const weir_kernels *k, const weir_segments *segments, uint32_t cols,
                                    const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t begin,
                                    uint32_t end);
    /* Row i of out is the sum of segment i's entries, each times its weight, NULL: `each`;   back: adds to dx. */
    void (*segment_sum)(const weir_kernels *k, const weir_segments *segments, const weir_real *weights, uint32_t cols,
                        const weir_real *x, uint32_t ldx, weir_real *out, uint32_t ldout);
    void (*segment_sum_back)(const weir_kernels *k, const weir_segments *segments, const weir_real *weights,
                             uint32_t cols, const weir_real *dout, weir_real *dx);
    /* Where segment i has n entries, and n + 1 is its degree d_i:  own[i] = 1 / d_i, and the weight of an entry of row
     * j is 1 / sqrt(d_i * d_j).  of: offsets of segments whose degrees are those of the rows, from row `first` on;
     * NULL: nobody knows them, and d_j is taken to be d_i. */
    void (*segment_degrees)(const weir_kernels *k, const weir_segments *segments, const uint32_t *of, uint32_t first,
                            weir_real *weights, weir_real *own);
    /* Segments of one more entry each: those of segment i, and behind them row `first` + i. origin: of each entry where
     * it stood before, WEIR_NO_SLOT of the one that is new.  offsets: segments + 1; index and origin: entries +
     * segments. */
    void (*segment_join)(const weir_kernels *k, const weir_segments *segments, uint32_t first, uint32_t *offsets,
                         uint32_t *index, uint32_t *origin);
    /* Row i of out has the most of segment i's entries in each column, and chosen the row of x that has it, of equals
     * the first; 0 and WEIR_NO_SLOT where there are none. A NaN is the most.   back: adds to dx. */
    void (*segment_max)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x,
                        uint32_t ldx, weir_real *out, uint32_t ldout, uint32_t *chosen);
    void (*segment_max_back)(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *chosen,
                             const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t lddx);
    /* The most of several arrays, one call for each: of number 0, which comes first, everything, of another what is
     * above what was there; a NaN is. chosen: whose each is.   back: dx += dout where it is this one's. */
    void (*take_most)(const weir_kernels *k, size_t count, uint32_t number, const weir_real *x, weir_real *out,
                      uint32_t *chosen);
    void (*take_most_back)(const weir_kernels *k, size_t count, uint32_t number, const uint32_t *chosen,
                           const weir_real *dout, weir_real *dx);
    /* Row i of out is sqrt(variance + 1e-5) of segment i's entries, and 0 where there are none.   back: adds to dx.
     * Both read the means. */
    void (*segment_deviation)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, const weir_real *x,
                              uint32_t ldx, const weir_real *means, weir_real *out, uint32_t ldout);
    void (*segment_deviation_back)(const weir_kernels *k, const weir_segments *segments, uint32_t cols,
                                   const weir_real *x, uint32_t ldx, const weir_real *means,
                                   const weir_real *deviations, const weir_real *dout, uint32_t lddout, weir_real *dx,
                                   uint32_t lddx);
    /* With n entries of segment i and s = log(1 + n), row i, of 3 * cols, becomes [row | row * s | row / s] of what its
     * first cols are; without entries zeros.   back: its first cols become the gradient of these. */
    void (*segment_amplify)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *x);
    void (*segment_amplify_back)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *dx);
    /* out[i] += (1 + *more) * x[i];   back: dx and *dmore are added to. */
    void (*add_more)(const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x, weir_real *out);
    void (*add_more_back)(const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x,
                          const weir_real *dout, weir_real *dmore, weir_real *dx);
    /* out[i] += factors[i] * x[i] */
    void (*add_scaled_rows)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *factors,
                            const weir_real *x, weir_real *out);
    /* scores: entries x heads.   back: of the scores' gradient, to that of all that they are made of */
    void (*segment_scores)(const weir_kernels *k, const weir_segments *segments, const weir_attention *attention,
                           weir_real *scores);
    void (*segment_scores_back)(const weir_kernels *k, const weir_segments *segments, const weir_attention *attention,
                                const weir_real *dscores, const weir_attention_back *back);
    /* In place, of each head by itself: shares above 0 that add up to 1 in each segment. An entry whose score is 87
     * below the best one, or more, has a share of exp(-87).   back: dshares becomes the scores' gradient. */
    void (*segment_softmax)(const weir_kernels *k, const weir_segments *segments, uint32_t heads, weir_real *scores);
    void (*segment_softmax_back)(const weir_kernels *k, const weir_segments *segments, uint32_t heads,
                                 const weir_real *shares, weir_real *dshares);
    /* out[i] += the entries of segment i, each head's columns times its share.   back: dshares is written, dx is added
     * to. Rows of x, out and dout follow each other. */
    void (*segment_mix)(const weir_kernels *k, const weir_segments *segments, uint32_t heads, const weir_real *shares,
                        uint32_t cols, const weir_real *x, weir_real *out);
    void (*segment_mix_back)(const weir_kernels *k, const weir_segments *segments, uint32_t heads,
                             const weir_real *shares, uint32_t cols, const weir_real *x, const weir_real *dout,
                             weir_real *dshares, weir_real *dx);
    /* out[i][h] = x[i] · weights, over the columns of head h alone.   back: dx and dweights are added to. */
    void (*head_products)(const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols, const weir_real *x,
                          const weir_real *weights, weir_real *out);
    void (*head_products_back)(const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols, const weir_real *x,
                               const weir_real *weights, const weir_real *dout, weir_real *dx, weir_real *dweights);
    /* out[i] = log(1 + entries of segment i) */
    void (*segment_log_count)(const weir_kernels *k, const weir_segments *segments, weir_real *out, uint32_t ldout);
    /* x[i] = 0 where segment i has no entries */
    void (*segment_zero_empty)(const weir_kernels *k, const weir_segments *segments, uint32_t cols, weir_real *x,
                               uint32_t ldx);
    /* out[i][k]: the bumps of the age of edge i. */
    void (*time_code)(const weir_kernels *k, uint32_t rows, const weir_ages *ages, weir_real *out, uint32_t ldout);
    /* out[i] = outer[inner[i]] */
    void (*compose)(const weir_kernels *k, size_t count, const uint32_t *outer, const uint32_t *inner, uint32_t *out);
    /* out[i] = index[i] - first; in place, too */
    void (*rebase)(const weir_kernels *k, size_t count, const uint32_t *index, uint32_t first, uint32_t *out);
    /* out[i] += table[slots[i * stride]];   dtable[slots[i * stride]] += dout[i];   of WEIR_NO_SLOT: nothing */
    void (*embed)(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
                  const weir_real *table, weir_real *out);
    void (*embed_back)(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
                       const weir_real *dout, weir_real *dtable);
    /* x[i] += bias;   dbias += the sum of the rows of dx */
    void (*bias)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x);
    void (*bias_back)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dx, weir_real *dbias);
    /* x[i] = max(0, x[i] + bias);   back: dx = 0 where x is 0 */
    void (*bias_relu)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x);
    void (*relu_back)(const weir_kernels *k, size_t count, const weir_real *x, weir_real *dx);
    /* out = (x - mean) / sqrt(variance + 1e-5) * gain + shift, row by row; stats: mean and 1 / sqrt(…) of each row.
     * bytes: how many this call and others write to out's array before any of it is read; a hint, of which the
     * result does not depend (uncached.h). back: d is the gradient of out and becomes that of x, in place; dgain and
     * dshift are added to. relu: x is the output of a relu, and d becomes the gradient of its input, as relu_back would
     * make it. */
    void (*layer_norm)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *gain,
                       const weir_real *shift, size_t bytes, weir_real *out, weir_real *stats);
    void (*layer_norm_back)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x,
                            const weir_real *stats, const weir_real *gain, bool relu, weir_real *d, weir_real *dgain,
                            weir_real *dshift);
    /* In place; the same call on the gradient is the way back. Of segments: a segment's entries, cols each, are one row
     * of it. */
    void (*dropout)(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_dropout *dropout, weir_real *x);
    void (*segment_dropout)(const weir_kernels *k, const weir_segments *segments, uint32_t cols,
                            const weir_dropout *dropout, weir_real *x);

    /* Cross-entropy, or the focal loss, of logistic(logit) where there is one output, else of softmax(logits): is added
     * to *sum. dlogits: as many as logits, NULL: not wanted. */
    void (*loss)(const weir_kernels *k, uint32_t outputs, const weir_loss *loss, weir_real *dlogits, double *sum);

    /* Of flat arrays: y += x;   y += share * (x - y);   *sum += the sum of squares;   one step of AdamW, or Adagrad. */
    void (*add)(const weir_kernels *k, size_t count, const weir_real *x, weir_real *y);
    void (*approach)(const weir_kernels *k, size_t count, weir_real share, const weir_real *x, weir_real *y);
    void (*square_sum)(const weir_kernels *k, size_t count, const weir_real *x, double *sum);
    void (*adamw)(const weir_kernels *k, size_t count, const weir_adamw_step *step, const weir_real *gradients,
                  weir_real *moment1, weir_real *moment2, weir_real *parameters);
    void (*adagrad)(const weir_kernels *k, size_t count, const weir_adagrad_step *step, const weir_real *gradients,
                    weir_real *squares, weir_real *parameters);

    /* The same of rows of tables. Of each, moved becomes `steps`, with WEIR_ROW_STILL where its first moment is all
     * 0. */
    void (*zero_rows)(const weir_kernels *k, const weir_row_list *rows, weir_real *x);
    void (*square_sum_rows)(const weir_kernels *k, const weir_row_list *rows, const weir_real *x, double *sum);
    void (*adamw_rows)(const weir_kernels *k, const weir_row_list *rows, const weir_adamw_step *step, uint64_t steps,
                       const weir_real *gradients, uint64_t *moved, weir_real *moment1, weir_real *moment2,
                       weir_real *parameters);
    void (*adagrad_rows)(const weir_kernels *k, const weir_row_list *rows, const weir_adagrad_step *step,
                         const weir_real *gradients, weir_real *squares, weir_real *parameters);
    /* What the steps since moved[row] make of a row without a gradient. */
    void (*adamw_bring)(const weir_kernels *k, const weir_row_list *rows, const weir_adamw_wait *wait, uint64_t *moved,
                        weir_real *moment1, weir_real *moment2, weir_real *parameters);
    /* moved becomes `steps`, with WEIR_ROW_STILL where the first moment is all 0. */
    void (*adamw_moved)(const weir_kernels *k, const weir_row_list *rows, uint64_t steps, const weir_real *moment1,
                        uint64_t *moved);
};

/* OpenBLAS and loops, with AVX2 and FMA where the processor has both; large products in float are by a kernel of our
 * own where it has AVX-512. OpenBLAS works on one thread, unless OPENBLAS_NUM_THREADS is set.  [any] */
const weir_kernels *weir_kernels_cpu(void);

/* How many rows of so many columns make a piece; at least 1. */
static inline uint32_t weir_kernels_piece(const weir_kernels *kernels, uint32_t cols) {
    size_t rows = kernels->piece_bytes / ((cols + 1) * sizeof(weir_real));
    return kernels->piece_bytes == 0 || rows > UINT32_MAX ? UINT32_MAX : rows == 0 ? 1 : (uint32_t)rows;
}

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_KERNEL_KERNEL_H */
