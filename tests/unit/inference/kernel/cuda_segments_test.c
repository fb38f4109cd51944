/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_segments_test.c - kernels for CUDA of segments, there and back, each against the one of the host's table on the
 * emulated device. What many entries add to a row has the bits of a loop over them where the arithmetic is the same.
 */
#include "cuda_twins.h"

/* Segments of random lengths, of which some are nothing, over rows of x that repeat. Some entries may stand before the
 * first of them. */
typedef struct lists {
    uint32_t offsets, index; /* arrays of the twins */
    uint32_t count, entries, rows;
    bool indexed; /* else entry e is row e */
    double each;
} lists;

static lists twins_lists(twins *t, uint32_t count) {
    lists l = {.count = count, .rows = 1 + below(12), .indexed = below(5) > 0, .each = below(3) ? 0 : 1.5};
    uint32_t *offsets = array(count + 1, sizeof *offsets);
    offsets[0] = below(4) ? 0 : below(5);
    for (uint32_t i = 0; i < count; i++)
        offsets[i + 1] = offsets[i] + (below(4) ? below(6) : 0);
    l.entries = offsets[count];
    if (!l.indexed) l.rows = l.entries;
    l.offsets = twins_add(t, offsets, (count + 1) * sizeof *offsets, READ);
    l.index = twins_add(t, random_index(l.entries, l.rows ? l.rows : 1), l.entries * sizeof(uint32_t), READ);
    return l;
}

static weir_segments segments_at(void *const *at, const lists *l) {
    return (weir_segments){l->count, at[l->offsets], l->indexed ? at[l->index] : NULL, l->entries, l->each};
}

static void check_sums(twins *t, uint32_t count, uint32_t cols) {
    const lists l = twins_lists(t, count);
    const uint32_t ldx = cols + below(3), ldout = cols + below(3);
    const uint32_t x = twins_reals(t, (size_t)l.rows * ldx, READ), w = twins_reals(t, l.entries, READ),
                   mean = twins_reals(t, (size_t)count * ldout, REALS),
                   sum = twins_reals(t, (size_t)count * ldout, REALS), logs = twins_reals(t, count * 2, REALS);
    const bool weighted = below(2);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        k->segment_mean(k, &s, cols, at[x], ldx, at[mean], ldout);
        k->segment_sum(k, &s, weighted ? at[w] : NULL, cols, at[x], ldx, at[sum], ldout);
        k->segment_log_count(k, &s, at[logs], 2);
    }
}

static void sums_of_segments(void **state) {
    (void)state;
    each_shape(check_sums);
}

static void check_sums_back(twins *t, uint32_t count, uint32_t cols) {
    const lists l = twins_lists(t, count);
    const uint32_t ldx = cols + below(3), ldout = cols + below(3);
    const uint32_t dout = twins_reals(t, (size_t)count * ldout, READ), w = twins_reals(t, l.entries, READ),
                   dmean = twins_reals(t, (size_t)l.rows * ldx, REALS),
                   dsum = twins_reals(t, (size_t)l.rows * cols, REALS);
    const bool weighted = below(2);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        k->segment_mean_back(k, &s, cols, at[dout], ldout, at[dmean], ldx);
        k->segment_sum_back(k, &s, weighted ? at[w] : NULL, cols, at[dout], at[dsum]);
    }
}

static void check_empty_and_first(twins *t, uint32_t count, uint32_t cols) {
    const lists l = twins_lists(t, count);
    const uint32_t ldx = cols + below(3), begin = below(3), behind = below(3);
    uint32_t *rows = random_index(l.entries, l.rows);
    for (uint32_t e = 0; e < l.entries; e++)
        rows[e] += begin;
    const uint32_t x = twins_reals(t, (size_t)count * ldx, REALS), dout = twins_reals(t, (size_t)count * ldx, READ),
                   dx = twins_reals(t, (size_t)(begin + l.rows + behind) * cols, REALS),
                   index = twins_add(t, rows, l.entries * sizeof *rows, READ);
    BOTH(t, k, at) {
        weir_segments s = segments_at(at, &l);
        k->segment_zero_empty(k, &s, cols, at[x], ldx);
        s.index = at[index];
        k->segment_mean_back_first(k, &s, cols, at[dout], ldx, at[dx], begin, begin + l.rows);
    }
}

static void empty_segments_and_first_gradients(void **state) {
    (void)state;
    each_shape(check_empty_and_first);
}

static void sums_of_segments_back(void **state) {
    (void)state;
    each_shape(check_sums_back);
}

static void check_lists(twins *t, uint32_t count, uint32_t cols) {
    const lists l = twins_lists(t, count);
    const uint32_t first = below(3), joined = l.entries + count;
    uint32_t *of = array(l.rows + 2, sizeof *of);
    for (uint32_t i = 0; i <= l.rows; i++)
        of[i + 1] = of[i] + below(4);
    (void)cols;
    const uint32_t degrees = twins_add(t, of, (l.rows + 2) * sizeof *of, READ),
                   weights = twins_reals(t, l.entries, REALS), own = twins_reals(t, count, REALS),
                   offsets = twins_add(t, array(count + 1, sizeof *of), (count + 1) * sizeof *of, BYTES),
                   index = twins_add(t, array(joined, sizeof *of), joined * sizeof *of, BYTES),
                   origin = twins_add(t, array(joined, sizeof *of), joined * sizeof *of, BYTES);
    const bool known = below(2);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        k->segment_degrees(k, &s, known ? at[degrees] : NULL, 0, at[weights], at[own]);
        k->segment_join(k, &s, first, at[offsets], at[index], at[origin]);
    }
}

static void degrees_and_joined_lists(void **state) {
    (void)state;
    each_shape(check_lists);
}

/* Of three parts side by side, as PNA has them. */
static void check_differences(twins *t, uint32_t count, uint32_t cols) {
    const lists l = twins_lists(t, count);
    weir_real *values = random_reals((size_t)l.rows * cols);
    for (size_t i = 0; i < (size_t)l.rows * cols; i++)
        if (below(60) == 0) values[i] = (weir_real)below(3); /* so that some are equal */
    const uint32_t x = twins_add(t, values, (size_t)l.rows * cols * sizeof *values, READ),
                   m = twins_reals(t, (size_t)count * 3 * cols, REALS),
                   chosen = twins_add(t, array((size_t)count * cols, sizeof(uint32_t)),
                                      (size_t)count * cols * sizeof(uint32_t), BYTES),
                   wide = twins_reals(t, (size_t)count * 3 * cols, REALS),
                   dx = twins_reals(t, (size_t)l.rows * cols, REALS);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        weir_real *means = at[m], *most = means + cols, *deviations = means + 2 * cols;
        k->segment_mean(k, &s, cols, at[x], cols, means, 3 * cols);
        k->segment_max(k, &s, cols, at[x], cols, most, 3 * cols, at[chosen]);
        k->segment_deviation(k, &s, cols, at[x], cols, means, deviations, 3 * cols);
        k->segment_deviation_back(k, &s, cols, at[x], cols, means, deviations, most, 3 * cols, at[dx], cols);
        k->segment_max_back(k, count, cols, at[chosen], deviations, 3 * cols, at[dx], cols);
        k->segment_amplify(k, &s, cols, at[wide]);
        k->segment_amplify_back(k, &s, cols, at[wide]);
    }
}

static void the_most_and_differences(void **state) {
    (void)state;
    each_shape(check_differences);
}

static void check_attention(twins *t, uint32_t count, uint32_t cols) {
    const uint32_t heads = 1 + cols % 3, all = (1 + cols % 5) * heads;
    const lists l = twins_lists(t, count);
    const uint32_t keys = twins_reals(t, (size_t)l.rows * all, READ),
                   queries = twins_reals(t, (size_t)count * all, READ),
                   edges = twins_reals(t, (size_t)l.entries * all, READ), weights = twins_reals(t, all, READ),
                   shares = twins_reals(t, (size_t)l.entries * heads, REALS),
                   out = twins_reals(t, (size_t)count * all, REALS);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        const weir_attention p = {heads, all, at[keys], at[queries], at[edges], at[weights]};
        k->segment_scores(k, &s, &p, at[shares]);
        k->segment_softmax(k, &s, heads, at[shares]);
        k->segment_mix(k, &s, heads, at[shares], all, at[keys], at[out]);
    }
}

static void attention(void **state) {
    (void)state;
    each_shape(check_attention);
}

static void check_attention_back(twins *t, uint32_t count, uint32_t cols) {
    const uint32_t heads = 1 + cols % 3, all = (1 + cols % 5) * heads;
    const lists l = twins_lists(t, count);
    const uint32_t x = twins_reals(t, (size_t)l.rows * all, READ),
                   shares = twins_reals(t, (size_t)l.entries * heads, READ),
                   dout = twins_reals(t, (size_t)count * all, READ),
                   dshares = twins_reals(t, (size_t)l.entries * heads, REALS),
                   dx = twins_reals(t, (size_t)l.rows * all, REALS);
    weir_dropout drop = {.rate = 0.3, .seed = below(1000), .stream = below(9)};
    const uint32_t key = twins_add(t, array(count, sizeof(uint64_t)), count * sizeof(uint64_t), READ),
                   dropped = twins_reals(t, (size_t)l.entries * heads, REALS);
    const bool keyed = below(2);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        drop.keys = keyed ? at[key] : NULL;
        k->segment_dropout(k, &s, heads, &drop, at[dropped]);
        k->segment_mix_back(k, &s, heads, at[shares], all, at[x], at[dout], at[dshares], at[dx]);
        k->segment_softmax_back(k, &s, heads, at[shares], at[dshares]);
    }
}

static void attention_back(void **state) {
    (void)state;
    each_shape(check_attention_back);
}

static void check_scores_back(twins *t, uint32_t count, uint32_t cols) {
    const uint32_t heads = 1 + cols % 3, all = (1 + cols % 5) * heads;
    const lists l = twins_lists(t, count);
    const size_t rows = (size_t)l.rows * all, segments = (size_t)count * all, entries = (size_t)l.entries * all;
    const uint32_t keys = twins_reals(t, rows, READ), queries = twins_reals(t, segments, READ),
                   edges = twins_reals(t, entries, READ), weights = twins_reals(t, all, READ),
                   dscores = twins_reals(t, (size_t)l.entries * heads, READ), dkeys = twins_reals(t, rows, REALS),
                   dqueries = twins_reals(t, segments, REALS), dedges = twins_reals(t, entries, REALS),
                   dweights = twins_reals(t, all, REALS);
    BOTH(t, k, at) {
        const weir_segments s = segments_at(at, &l);
        const weir_attention p = {heads, all, at[keys], at[queries], at[edges], at[weights]};
        const weir_attention_back back = {at[dkeys], at[dqueries], at[dedges], at[dweights]};
        k->segment_scores_back(k, &s, &p, at[dscores], &back);
    }
}

static void scores_back(void **state) {
    (void)state;
    each_shape(check_scores_back);
}

/* Slots of a table with a stride, of which some are none; and rows that many add to. */
static void check_scatter(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t table = 1 + below(9), stride = 1 + below(3);
    uint32_t *slots = random_index((size_t)rows * stride, table);
    for (size_t i = 0; i < (size_t)rows * stride; i++)
        if (below(6) == 0) slots[i] = WEIR_NO_SLOT;
    const uint32_t s = twins_add(t, slots, (size_t)rows * stride * sizeof *slots, READ),
                   index = twins_add(t, random_index(rows, table), rows * sizeof *slots, READ),
                   dout = twins_reals(t, (size_t)rows * cols, READ),
                   dtable = twins_reals(t, (size_t)table * cols, REALS),
                   dx = twins_reals(t, (size_t)table * cols, REALS);
    BOTH(t, k, at) {
        k->embed_back(k, rows, cols, at[s], stride, at[dout], at[dtable]);
        k->scatter_add_rows(k, rows, cols, at[dout], at[index], at[dx]);
    }
}

static void rows_that_many_add_to(void **state) {
    (void)state;
    each_shape(check_scatter);
}

/* As many entries as one block sorts, and more, with rows of every digit: the same bits as on the processor, which adds
 * entry after entry. */
static void k1_long_lists_have_the_bits_of_a_loop(void **state) {
    (void)state;
    enum { ROWS = 70000, LONGEST = 40000 };
    const uint64_t seed = weir_test_seed(), rounds = weir_test_rounds(40);
    rng = weir_rng_stream(seed, 2, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        const uint32_t entries = round == 0 ? LONGEST : round < 4 ? 255 + (uint32_t)round : 1 + below(1500);
        twins t;
        emu_reset(seed + round);
        twins_open(&t);
        uint32_t *index = random_index(entries, round % 2 ? 40 : ROWS);
        for (uint32_t i = 0; i < entries; i += 3)
            index[i] = 7;
        const uint32_t i = twins_add(&t, index, entries * sizeof *index, READ), dout = twins_reals(&t, entries, READ),
                       dx = twins_add(&t, array(ROWS, sizeof(weir_real)), ROWS * sizeof(weir_real), BYTES);
        BOTH(&t, k, at) {
            k->scatter_add_rows(k, entries, 1, at[dout], at[i], at[dx]);
        }
        twins_close(&t);
    }
}

WEIR_TESTS(WEIR_CASE(sums_of_segments), WEIR_CASE(empty_segments_and_first_gradients), WEIR_CASE(sums_of_segments_back),
           WEIR_CASE(degrees_and_joined_lists), WEIR_CASE(the_most_and_differences), WEIR_CASE(attention),
           WEIR_CASE(attention_back), WEIR_CASE(scores_back), WEIR_CASE(rows_that_many_add_to),
           WEIR_CASE(k1_long_lists_have_the_bits_of_a_loop))
