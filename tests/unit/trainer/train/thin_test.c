/* SPDX-License-Identifier: Apache-2.0 */
/* thin_test.c - which edges of a batch are seen: the same whoever asks, as many as were asked for, each as it was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/hash.h>

#include "thin.h"
#include "weir_test.h"

#define PARENTS 300u
#define WIDTH   3u

typedef struct thin_block {
    uint32_t offsets[PARENTS + 1], *parents, *children;
    int64_t *times;
    weir_real *numbers;
    uint64_t keys[PARENTS + 10];
    weir_block_edges edges;
} thin_block;

/* Everything that an edge has follows from its parent's key and its place. */
static void fill(thin_block *b, uint32_t begin, uint64_t first_key) {
    memset(b, 0, sizeof *b);
    for (uint32_t p = 0; p < PARENTS; p++) {
        b->keys[begin + p] = weir_xxh3(&(uint64_t){first_key + p}, 8, 0);
        b->offsets[p + 1] = b->offsets[p] + (uint32_t)((first_key + p) % 7);
    }
    const uint32_t count = b->offsets[PARENTS];
    b->parents = calloc(count, sizeof *b->parents);
    b->children = calloc(count, sizeof *b->children);
    b->times = calloc(count, sizeof *b->times);
    b->numbers = calloc((size_t)count * WIDTH, sizeof *b->numbers);
    for (uint32_t p = 0; p < PARENTS; p++) {
        for (uint32_t e = b->offsets[p]; e < b->offsets[p + 1]; e++) {
            b->parents[e] = begin + p;
            b->children[e] = (uint32_t)(b->keys[begin + p] >> 40) + (e - b->offsets[p]);
            b->times[e] = (int64_t)b->children[e] * 10;
            for (uint32_t c = 0; c < WIDTH; c++)
                b->numbers[e * WIDTH + c] = (weir_real)(b->children[e] % 1000 * WIDTH + c);
        }
    }
    b->edges = (weir_block_edges){.parent_begin = begin,
                                  .parent_end = begin + PARENTS,
                                  .count = count,
                                  .offsets = b->offsets,
                                  .parents = b->parents,
                                  .children = b->children,
                                  .times = b->times,
                                  .alike = true};
}

static void empty(thin_block *b) {
    free(b->parents), free(b->children), free(b->times), free(b->numbers);
}

static weir_block_edges thinned(weir_train_thinned *t, thin_block *b, double rate, uint64_t batch) {
    const weir_train_thinning by = {rate, 9, batch, b->keys};
    weir_block_edges out;
    assert_ok(weir_train_thin(t, &b->edges, 2, &by, WIDTH, b->numbers, &out));
    return out;
}

/* What is left keeps its order, its parent, its child, its time and its numbers. */
static void edges_that_are_seen_are_as_they_were(void **state) {
    (void)state;
    weir_train_thinned t = {0};
    thin_block b;
    fill(&b, 5, 1000);
    const weir_block_edges out = thinned(&t, &b, 0.5, 1);
    assert_true(out.count > 0 && out.count < b.edges.count && !out.refs && !out.rows && out.alike);
    assert_int_equal(out.offsets[0], 0);
    assert_int_equal(out.offsets[PARENTS], out.count);
    for (uint32_t p = 0; p < PARENTS; p++) {
        uint32_t from = b.offsets[p];
        for (uint32_t e = out.offsets[p]; e < out.offsets[p + 1]; e++, from++) {
            assert_int_equal(out.parents[e], 5 + p);
            while (from < b.offsets[p + 1] && b.children[from] != out.children[e])
                from++;
            assert_true(from < b.offsets[p + 1]);
            assert_true(out.times[e] == b.times[from]);
            for (uint32_t c = 0; c < WIDTH; c++)
                assert_true(b.numbers[e * WIDTH + c] == (weir_real)(out.children[e] % 1000 * WIDTH + c));
        }
    }
    assert_false(thinned(&t, &b, 1 - 1e-9, 1).alike); /* nothing is left to be alike */
    weir_train_thinned_free(&t);
    empty(&b);
}

/* A parent loses the same edges wherever it stands in a batch, and other ones in the next batch. */
static void a_parent_loses_the_same_wherever_it_stands(void **state) {
    (void)state;
    weir_train_thinned t = {0}, u = {0};
    thin_block a, b;
    fill(&a, 0, 1000);
    fill(&b, 10, 1100);
    const weir_block_edges x = thinned(&t, &a, 0.4, 1), y = thinned(&u, &b, 0.4, 1);
    for (uint32_t p = 100; p < PARENTS; p++) {
        const uint32_t count = x.offsets[p + 1] - x.offsets[p];
        assert_int_equal(y.offsets[p - 99] - y.offsets[p - 100], count);
        for (uint32_t e = 0; e < count; e++)
            assert_int_equal(x.children[x.offsets[p] + e], y.children[y.offsets[p - 100] + e]);
    }
    uint32_t others = 0;
    thin_block c;
    fill(&c, 0, 1000);
    const weir_block_edges z = thinned(&u, &c, 0.4, 2);
    for (uint32_t p = 0; p < PARENTS; p++)
        others += z.offsets[p + 1] - z.offsets[p] != x.offsets[p + 1] - x.offsets[p];
    assert_true(others > PARENTS / 4);
    weir_train_thinned_free(&t);
    weir_train_thinned_free(&u);
    empty(&a), empty(&b), empty(&c);
}

/* Six deviations of a count of throws. */
static void as_many_are_seen_as_were_asked_for(void **state) {
    (void)state;
    weir_train_thinned t = {0};
    for (int tenths = 0; tenths < 10; tenths++) {
        const double rate = tenths * 0.1;
        double seen = 0, all = 0;
        for (uint64_t batch = 0; batch < 20; batch++) {
            thin_block b;
            fill(&b, 0, 1000);
            seen += thinned(&t, &b, rate, batch).count;
            all += b.edges.count;
            empty(&b);
        }
        if (rate == 0) assert_true(seen == all);
        assert_true(fabs(seen - all * (1 - rate)) <= 6 * sqrt(all * rate * (1 - rate)) + 1e-6 * all);
    }
    weir_train_thinned_free(&t);
}

static weir_err attempt(void *context) {
    weir_train_thinned t = {0};
    thin_block b;
    weir_block_edges out;
    (void)context;
    fill(&b, 0, 1000);
    const weir_train_thinning by = {0.5, 9, 1, b.keys};
    weir_err err = weir_train_thin(&t, &b.edges, 0, &by, WIDTH, b.numbers, &out);
    weir_train_thinned_free(&t);
    empty(&b);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_test_every_allocation(attempt, NULL);
}

WEIR_TESTS(WEIR_CASE(edges_that_are_seen_are_as_they_were), WEIR_CASE(a_parent_loses_the_same_wherever_it_stands),
           WEIR_CASE(as_many_are_seen_as_were_asked_for), WEIR_CASE(every_allocation_may_fail))
