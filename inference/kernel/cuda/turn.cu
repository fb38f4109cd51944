/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.cu - lists turned around: which entries lead to each row, so that what many entries add to a row is added by one
 * thread a column, in the order of the entries. So there are no atomic additions, and the same bits each time
 * (KERNEL-K1), which are also those of a loop over the entries.
 *
 * Entries are sorted by their rows, eight bits at a time, and what was in order stays so: blocks count the digits of
 * their pieces, the counts become places, and each block puts its piece there.
 */
#include "context.h"

#define TURN_DIGITS   256u /* as many as a block has threads */
#define TURN_BLOCKS   128u
#define TURN_WARPS    (CUDA_BLOCK / 32u)
#define TURN_PASSES   4u /* of a number of 32 bits; even, so that it ends where it began */
#define TURN_NO_ENTRY WEIR_NO_SLOT
#define TURN_MAX      (1u << 31) /* entries: tiles are counted in 32 bits */
#define TURN_LEAK     0.2f

static_assert(TURN_DIGITS == CUDA_BLOCK, "a thread a digit");

/* Entries in the order of the rows that they lead to. */
typedef struct turn_list {
    uint32_t count;
    uint32_t *rows, *entries; /* of row TURN_NO_ENTRY: lead nowhere; they are the last ones */
    uint32_t *parents;        /* of each entry its segment; NULL: it has none               */
} turn_list;

/* --- sorting ------------------------------------------------------------------------------------------------------ */

/* A block's piece: whole tiles of a block's threads. */
static __host__ __device__ __forceinline__ uint32_t turn_piece(uint32_t count, uint32_t blocks) {
    const uint32_t tiles = (count + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return (tiles + blocks - 1) / blocks * CUDA_BLOCK;
}

static __global__ void turn_count(uint32_t count, const uint32_t *rows, unsigned shift, uint32_t *counts) {
    WEIR_SHARED(uint32_t, found, TURN_DIGITS);
    const uint32_t piece = turn_piece(count, gridDim.x);
    const uint64_t begin = static_cast<uint64_t>(blockIdx.x) * piece;
    const uint64_t end = begin + piece < count ? begin + piece : count;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t i = begin + threadIdx.x; i < end; i += CUDA_BLOCK)
        atomicAdd(&found[rows[i] >> shift & (TURN_DIGITS - 1)], 1u);
    __syncthreads();
    counts[threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
}

/* Each count becomes the sum of those before it: by digit, then by block. */
static __global__ void turn_scan(uint32_t blocks, uint32_t *counts) {
    WEIR_SHARED(uint32_t, sums, TURN_DIGITS);
    uint32_t *own = counts + threadIdx.x * blocks, all = 0;
    for (uint32_t i = 0; i < blocks; i++)
        all += own[i];
    sums[threadIdx.x] = all;
    __syncthreads();
    for (unsigned step = 1; step < TURN_DIGITS; step *= 2) {
        const uint32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    uint32_t at = sums[threadIdx.x] - all;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t here = own[i];
        own[i] = at;
        at += here;
    }
}

/* The lanes of the warp whose digits are this one's. */
static __device__ uint32_t turn_peers(uint32_t digit) {
    uint32_t peers = ~0u;
    for (unsigned bit = 0; bit < 8; bit++) {
        const bool set = digit >> bit & 1;
        const uint32_t votes = __ballot_sync(~0u, set);
        peers &= set ? votes : ~votes;
    }
    return peers;
}

/* A tile after the other. Of a tile each warp says how many of a digit it has, a thread a digit makes places of that,
 * and an entry comes behind the lanes before it that have its digit. Threads behind the last entry are counted with
 * digit 0, which changes nothing: no entry comes after them. */
static __global__ void turn_place(uint32_t count, const uint32_t *rows, const uint32_t *entries, unsigned shift,
                                  const uint32_t *places, uint32_t *rows_out, uint32_t *entries_out) {
    WEIR_SHARED(uint32_t, of_warp, TURN_WARPS * TURN_DIGITS);
    const uint32_t piece = turn_piece(count, gridDim.x), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t begin = static_cast<uint64_t>(blockIdx.x) * piece;
    const uint64_t end = begin + piece < count ? begin + piece : count;
    uint32_t next = places[threadIdx.x * gridDim.x + blockIdx.x]; /* of the digit that is this thread's number */
    for (uint64_t tile = begin; tile < end; tile += CUDA_BLOCK) {
        const uint64_t i = tile + threadIdx.x;
        const uint32_t row = i < end ? rows[i] : 0, digit = row >> shift & (TURN_DIGITS - 1);
        const uint32_t peers = turn_peers(digit), before = __popc(peers & ((1u << lane) - 1));
        for (unsigned w = 0; w < TURN_WARPS; w++)
            of_warp[w * TURN_DIGITS + threadIdx.x] = 0;
        __syncthreads();
        if (before == 0 && i < end) of_warp[warp * TURN_DIGITS + digit] = __popc(peers);
        __syncthreads();
        for (unsigned w = 0; w < TURN_WARPS; w++) {
            const uint32_t here = of_warp[w * TURN_DIGITS + threadIdx.x];
            of_warp[w * TURN_DIGITS + threadIdx.x] = next;
            next += here;
        }
        __syncthreads();
        if (i < end) {
            const uint32_t place = of_warp[warp * TURN_DIGITS + digit] + before;
            rows_out[place] = row;
            entries_out[place] = entries[i];
        }
        __syncthreads();
    }
}

/* No more entries than a block has threads: each counts those that come before its own. */
static __global__ void turn_few(uint32_t count, uint32_t *rows, uint32_t *entries) {
    WEIR_SHARED(uint32_t, all, CUDA_BLOCK);
    const uint32_t i = threadIdx.x, row = i < count ? rows[i] : 0, entry = i < count ? entries[i] : 0;
    uint32_t place = 0;
    all[i] = row;
    __syncthreads();
    for (uint32_t other = 0; i < count && other < count; other++)
        place += all[other] < row || (all[other] == row && other < i);
    if (i >= count) return;
    rows[place] = row;
    entries[place] = entry;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static __global__ void turn_begin_slots(uint32_t count, const uint32_t *slots, uint32_t stride, uint32_t *rows,
                                        uint32_t *entries) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride()) {
        rows[i] = slots[i * stride];
        entries[i] = static_cast<uint32_t>(i);
    }
}

/* Entries before the first segment lead nowhere. */
static __global__ void turn_begin_segments(weir_segments s, uint32_t *rows, uint32_t *entries) {
    for (size_t i = cuda_first(); i < s.entries; i += cuda_stride()) {
        rows[i] = i < s.offsets[0] ? TURN_NO_ENTRY : s.index ? s.index[i] : static_cast<uint32_t>(i);
        entries[i] = static_cast<uint32_t>(i);
    }
}

static __global__ void turn_parents(weir_segments s, uint32_t *parents) {
    for (size_t i = cuda_first(); i < s.count; i += cuda_stride())
        for (uint32_t e = s.offsets[i]; e < s.offsets[i + 1]; e++)
            parents[e] = static_cast<uint32_t>(i);
}

/* Room for the list, for what it is sorted in and for the counts. false: there is none, which is noted. */
static bool turn_open(weir_cuda_context *c, uint64_t entries, bool parents, turn_list *list, uint32_t **spare) {
    if (entries > TURN_MAX) cuda_note(c, cudaErrorInvalidValue, "turning a list of more than 2^31 entries around");
    if (entries > TURN_MAX) return false;
    const uint32_t count = static_cast<uint32_t>(entries);
    const size_t arrays = 4 + parents, cells = arrays * count + static_cast<size_t>(TURN_DIGITS) * TURN_BLOCKS;
    uint32_t *memory = static_cast<uint32_t *>(weir_cuda_scratch(c, cells * sizeof *memory));
    if (!memory) return false;
    list->count = count;
    list->rows = memory;
    list->entries = memory + count;
    *spare = memory + static_cast<size_t>(2) * count;
    list->parents = parents ? memory + static_cast<size_t>(4) * count : NULL;
    return true;
}

/* spare: two arrays, and the counts behind all others. */
static void turn_sort(weir_cuda_context *c, turn_list *list, uint32_t *spare) {
    const uint32_t count = list->count, tiles = (count + CUDA_BLOCK - 1) / CUDA_BLOCK;
    const uint32_t blocks = tiles < TURN_BLOCKS ? tiles : TURN_BLOCKS;
    uint32_t *rows[2] = {list->rows, spare}, *entries[2] = {list->entries, spare + count};
    uint32_t *counts = list->parents ? list->parents + count : spare + static_cast<size_t>(2) * count;
    if (count <= CUDA_BLOCK) {
        WEIR_LAUNCH(turn_few, 1, CUDA_BLOCK, 0, c->stream, count, list->rows, list->entries);
        cuda_note(c, cudaGetLastError(), "turning a list around");
        return;
    }
    for (unsigned pass = 0; pass < TURN_PASSES; pass++) {
        const unsigned shift = 8 * pass, from = pass % 2;
        WEIR_LAUNCH(turn_count, blocks, CUDA_BLOCK, 0, c->stream, count, rows[from], shift, counts);
        WEIR_LAUNCH(turn_scan, 1, TURN_DIGITS, 0, c->stream, blocks, counts);
        WEIR_LAUNCH(turn_place, blocks, CUDA_BLOCK, 0, c->stream, count, rows[from], entries[from], shift, counts,
                    rows[1 - from], entries[1 - from]);
        cuda_note(c, cudaGetLastError(), "turning a list around");
    }
}

static bool turn_slots(weir_cuda_context *c, uint64_t entries, const uint32_t *slots, uint32_t stride,
                       turn_list *list) {
    uint32_t *spare;
    if (entries == 0 || !turn_open(c, entries, false, list, &spare)) return false;
    const uint32_t count = list->count;
    WEIR_LAUNCH(turn_begin_slots, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, slots, stride, list->rows,
                list->entries);
    turn_sort(c, list, spare);
    return true;
}

static bool turn_segments(weir_cuda_context *c, const weir_segments *s, turn_list *list) {
    uint32_t *spare;
    if (s->count == 0 || s->entries == 0 || !turn_open(c, s->entries, true, list, &spare)) return false;
    WEIR_LAUNCH(turn_begin_segments, cuda_blocks_of(s->entries), CUDA_BLOCK, 0, c->stream, *s, list->rows,
                list->entries);
    WEIR_LAUNCH(turn_parents, cuda_blocks_of(s->count), CUDA_BLOCK, 0, c->stream, *s, list->parents);
    turn_sort(c, list, spare);
    return true;
}

/* --- what entries add to rows ------------------------------------------------------------------------------------- */

/* The thread of a row's first entry adds all of them up, each column by itself. */
template <typename Part>
static __global__ void turn_add(turn_list list, uint32_t cols, Part part, weir_real *dx, uint32_t lddx) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(list.count) * cols; i += cuda_stride()) {
        const uint32_t at = static_cast<uint32_t>(i / cols), col = static_cast<uint32_t>(i % cols);
        const uint32_t row = list.rows[at];
        if (row == TURN_NO_ENTRY || (at > 0 && list.rows[at - 1] == row)) continue;
        weir_real sum = dx[static_cast<size_t>(row) * lddx + col];
        for (uint32_t n = at; n < list.count && list.rows[n] == row; n++)
            sum += part.of(list.entries[n], col);
        dx[static_cast<size_t>(row) * lddx + col] = sum;
    }
}

template <typename Part>
static void turn_add_all(weir_cuda_context *c, const turn_list *list, uint32_t cols, const Part &part, weir_real *dx,
                         uint32_t lddx, const char *what) {
    const size_t cells = static_cast<size_t>(list->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH((turn_add<Part>), cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *list, cols, part, dx, lddx);
    cuda_note(c, cudaGetLastError(), what);
}

struct turn_of_rows {
    const weir_real *dout;
    uint32_t cols;
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        return dout[static_cast<size_t>(entry) * cols + col];
    }
};

static void cuda_scatter_add_rows(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dout,
                                  const uint32_t *index, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    turn_list list;
    if (cols > 0 && turn_slots(c, rows, index, 1, &list))
        turn_add_all(c, &list, cols, turn_of_rows{dout, cols}, dx, cols, "scatter_add_rows");
}

static void cuda_embed_back(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
                            const weir_real *dout, weir_real *dtable) {
    weir_cuda_context *c = cuda_context_of(k);
    turn_list list;
    if (cols > 0 && turn_slots(c, rows, slots, stride, &list))
        turn_add_all(c, &list, cols, turn_of_rows{dout, cols}, dtable, cols, "embed_back");
}

struct turn_of_means {
    const weir_real *dout;
    uint32_t lddout;
    const uint32_t *parents, *offsets;
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        const uint32_t segment = parents[entry];
        const weir_real share = 1 / static_cast<weir_real>(offsets[segment + 1] - offsets[segment]);
        return share * dout[static_cast<size_t>(segment) * lddout + col];
    }
};

static void cuda_segment_mean_back(const weir_kernels *k, const weir_segments *s, uint32_t cols, const weir_real *dout,
                                   uint32_t lddout, weir_real *dx, uint32_t lddx) {
    weir_cuda_context *c = cuda_context_of(k);
    turn_list list;
    if (cols > 0 && turn_segments(c, s, &list))
        turn_add_all(c, &list, cols, turn_of_means{dout, lddout, list.parents, s->offsets}, dx, lddx,
                     "segment_mean_back");
}

static void cuda_segment_mean_back_first(const weir_kernels *k, const weir_segments *s, uint32_t cols,
                                         const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t begin,
                                         uint32_t end) {
    const size_t first = static_cast<size_t>(begin) * cols, cells = static_cast<size_t>(end - begin) * cols;
    if (cells > 0) k->zero(k, dx + first, cells * sizeof *dx);
    cuda_segment_mean_back(k, s, cols, dout, lddout, dx, cols);
}

struct turn_of_sums {
    const weir_real *dout, *weights;
    weir_real each;
    uint32_t cols;
    const uint32_t *parents;
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        return (weights ? weights[entry] : each) * dout[static_cast<size_t>(parents[entry]) * cols + col];
    }
};

static void cuda_segment_sum_back(const weir_kernels *k, const weir_segments *s, const weir_real *weights,
                                  uint32_t cols, const weir_real *dout, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    const weir_real each = s->each > 0 ? static_cast<weir_real>(s->each) : 1;
    turn_list list;
    if (cols > 0 && turn_segments(c, s, &list))
        turn_add_all(c, &list, cols, turn_of_sums{dout, weights, each, cols, list.parents}, dx, cols,
                     "segment_sum_back");
}

struct turn_of_deviations {
    const weir_real *x, *means, *deviations, *dout;
    uint32_t ldx, lddout;
    const uint32_t *parents, *offsets, *index;
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        const uint32_t segment = parents[entry];
        const size_t at = static_cast<size_t>(segment) * lddout + col;
        const weir_real value = x[static_cast<size_t>(index ? index[entry] : entry) * ldx + col];
        const weir_real entries = static_cast<weir_real>(offsets[segment + 1] - offsets[segment]);
        return dout[at] * (value - means[at]) / (entries * deviations[at]);
    }
};

static void cuda_segment_deviation_back(const weir_kernels *k, const weir_segments *s, uint32_t cols,
                                        const weir_real *x, uint32_t ldx, const weir_real *means,
                                        const weir_real *deviations, const weir_real *dout, uint32_t lddout,
                                        weir_real *dx, uint32_t lddx) {
    weir_cuda_context *c = cuda_context_of(k);
    turn_list list;
    if (cols == 0 || !turn_segments(c, s, &list)) return;
    const turn_of_deviations part = {x, means, deviations, dout, ldx, lddout, list.parents, s->offsets, s->index};
    turn_add_all(c, &list, cols, part, dx, lddx, "segment_deviation_back");
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

struct turn_of_mixtures {
    const weir_real *shares, *dout;
    uint32_t heads, cols;
    const uint32_t *parents;
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        return shares[static_cast<size_t>(entry) * heads + col / (cols / heads)] *
               dout[static_cast<size_t>(parents[entry]) * cols + col];
    }
};

/* A thread an entry and head. */
static __global__ void turn_mix_shares(turn_list list, const uint32_t *index, uint32_t heads, uint32_t cols,
                                       const weir_real *x, const weir_real *dout, weir_real *dshares) {
    const uint32_t width = cols / heads;
    for (size_t i = cuda_first(); i < static_cast<size_t>(list.count) * heads; i += cuda_stride()) {
        const uint32_t at = static_cast<uint32_t>(i / heads), head = static_cast<uint32_t>(i % heads);
        if (list.rows[at] == TURN_NO_ENTRY) continue;
        const uint32_t entry = list.entries[at];
        const weir_real *row = x + static_cast<size_t>(index ? index[entry] : entry) * cols + head * width;
        const weir_real *of = dout + static_cast<size_t>(list.parents[entry]) * cols + head * width;
        weir_real sum = 0;
        for (uint32_t col = 0; col < width; col++)
            sum += of[col] * row[col];
        dshares[static_cast<size_t>(entry) * heads + head] = sum;
    }
}

static void cuda_segment_mix_back(const weir_kernels *k, const weir_segments *s, uint32_t heads,
                                  const weir_real *shares, uint32_t cols, const weir_real *x, const weir_real *dout,
                                  weir_real *dshares, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    turn_list list;
    if (cols == 0 || !turn_segments(c, s, &list)) return;
    WEIR_LAUNCH(turn_mix_shares, cuda_blocks_of(static_cast<size_t>(list.count) * heads), CUDA_BLOCK, 0, c->stream,
                list, s->index, heads, cols, x, dout, dshares);
    turn_add_all(c, &list, cols, turn_of_mixtures{shares, dout, heads, cols, list.parents}, dx, cols,
                 "segment_mix_back");
}

/* What the gradient of an entry's score is to each column that it is made of. */
struct turn_score {
    weir_attention p;
    const weir_real *dscores;
    const uint32_t *parents, *index;
    __device__ weir_real sum_at(uint32_t entry, uint32_t col) const {
        return p.keys[static_cast<size_t>(index ? index[entry] : entry) * p.cols + col] +
               p.queries[static_cast<size_t>(parents[entry]) * p.cols + col] +
               p.edges[static_cast<size_t>(entry) * p.cols + col];
    }
    __device__ weir_real slope_at(uint32_t entry, uint32_t col, weir_real z) const {
        return dscores[static_cast<size_t>(entry) * p.heads + col / (p.cols / p.heads)] * (z > 0 ? 1 : TURN_LEAK);
    }
    __device__ weir_real of(uint32_t entry, uint32_t col) const {
        return slope_at(entry, col, sum_at(entry, col)) * p.weights[col];
    }
};

static __global__ void turn_score_edges(turn_list list, turn_score score, weir_real *dedges) {
    const uint32_t cols = score.p.cols;
    for (size_t i = cuda_first(); i < static_cast<size_t>(list.count) * cols; i += cuda_stride()) {
        const uint32_t at = static_cast<uint32_t>(i / cols), col = static_cast<uint32_t>(i % cols);
        if (list.rows[at] == TURN_NO_ENTRY) continue;
        const uint32_t entry = list.entries[at];
        dedges[static_cast<size_t>(entry) * cols + col] = score.of(entry, col);
    }
}

static __global__ void turn_score_queries(weir_segments s, turn_score score, weir_real *dqueries) {
    const uint32_t cols = score.p.cols;
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols;
        weir_real sum = dqueries[i];
        for (uint32_t e = s.offsets[segment]; e < s.offsets[segment + 1]; e++)
            sum += score.of(e, static_cast<uint32_t>(i % cols));
        dqueries[i] = sum;
    }
}

/* A block a column, over all entries. */
static __global__ void turn_score_weights(weir_segments s, turn_score score, weir_real *dweights) {
    const uint32_t begin = s.offsets[0];
    for (uint32_t col = blockIdx.x; col < score.p.cols; col += gridDim.x) {
        double own = 0;
        for (uint32_t e = begin + threadIdx.x; e < s.entries; e += CUDA_BLOCK) {
            const weir_real z = score.sum_at(e, col);
            own += static_cast<double>(score.slope_at(e, col, z) * z);
        }
        const double all = cuda_block_sum(own);
        if (threadIdx.x == 0) dweights[col] += static_cast<weir_real>(all);
    }
}

static void cuda_segment_scores_back(const weir_kernels *k, const weir_segments *s, const weir_attention *p,
                                     const weir_real *dscores, const weir_attention_back *back) {
    weir_cuda_context *c = cuda_context_of(k);
    const uint32_t cols = p->cols;
    turn_list list;
    if (cols == 0 || !turn_segments(c, s, &list)) return;
    const turn_score score = {*p, dscores, list.parents, s->index};
    WEIR_LAUNCH(turn_score_edges, cuda_blocks_of(static_cast<size_t>(list.count) * cols), CUDA_BLOCK, 0, c->stream,
                list, score, back->edges);
    WEIR_LAUNCH(turn_score_queries, cuda_blocks_of(static_cast<size_t>(s->count) * cols), CUDA_BLOCK, 0, c->stream, *s,
                score, back->queries);
    WEIR_LAUNCH(turn_score_weights, cols < CUDA_BLOCKS_MAX ? cols : CUDA_BLOCKS_MAX, CUDA_BLOCK, 0, c->stream, *s,
                score, back->weights);
    turn_add_all(c, &list, cols, score, back->keys, cols, "segment_scores_back");
}

/* --- the most ----------------------------------------------------------------------------------------------------- */

/* Cells of all columns have chosen a row: each column takes its own. That goes over a row's cells once a column. */
static __global__ void turn_add_chosen(turn_list list, uint32_t cols, const weir_real *dout, uint32_t lddout,
                                       weir_real *dx, uint32_t lddx) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(list.count) * cols; i += cuda_stride()) {
        const uint32_t at = static_cast<uint32_t>(i / cols), col = static_cast<uint32_t>(i % cols);
        const uint32_t row = list.rows[at];
        if (row == TURN_NO_ENTRY || (at > 0 && list.rows[at - 1] == row)) continue;
        weir_real sum = dx[static_cast<size_t>(row) * lddx + col];
        for (uint32_t n = at; n < list.count && list.rows[n] == row; n++) {
            const uint32_t cell = list.entries[n];
            if (cell % cols == col) sum += dout[static_cast<size_t>(cell / cols) * lddout + col];
        }
        dx[static_cast<size_t>(row) * lddx + col] = sum;
    }
}

static void cuda_segment_max_back(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *chosen,
                                  const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t lddx) {
    weir_cuda_context *c = cuda_context_of(k);
    const uint64_t cells = static_cast<uint64_t>(rows) * cols;
    turn_list list;
    if (turn_slots(c, cells, chosen, 1, &list))
        WEIR_LAUNCH(turn_add_chosen, cuda_blocks_of(cells * cols), CUDA_BLOCK, 0, c->stream, list, cols, dout, lddout,
                    dx, lddx);
    cuda_note(c, cudaGetLastError(), "segment_max_back");
}

void weir_cuda_turned(weir_kernels *kernels) {
    kernels->scatter_add_rows = cuda_scatter_add_rows;
    kernels->embed_back = cuda_embed_back;
    kernels->segment_mean_back = cuda_segment_mean_back;
    kernels->segment_mean_back_first = cuda_segment_mean_back_first;
    kernels->segment_sum_back = cuda_segment_sum_back;
    kernels->segment_deviation_back = cuda_segment_deviation_back;
    kernels->segment_mix_back = cuda_segment_mix_back;
    kernels->segment_scores_back = cuda_segment_scores_back;
    kernels->segment_max_back = cuda_segment_max_back;
}
