/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_bench.c - the best 20 of all items for one user, and for 32 at once, against reading the items' vectors: an
 * exact answer looks at each number once. And those that an index names, with how many of the best 20 these are.
 *
 * Vectors are as a model's: around a few hundred directions, all equally long, and a trend beside each.
 */
#include <math.h>
#include <stdio.h>

#include <near.h>

#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "bench.h"

#define WIDTH        64u
#define QUERIES      1000u
#define AT_ONCE      32u
#define CENTRES      300u
#define TREND_WEIGHT 0.5F
#define BEST         20u

typedef struct recommend_context {
    uint64_t items, repeats;
    float *vectors, *trends, *queries, *scores;
    weir_recommend_best best[AT_ONCE * BEST];
    weir_near *near;
    weir_near_searcher *searcher;
    uint64_t sum; /* so that the reading is not left out */
} recommend_context;

static weir_err run_reading(void *context, uint64_t round, weir_bench_sample *samplep) {
    recommend_context *c = context;
    (void)round;
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++) {
        const uint64_t *words = (const uint64_t *)(const void *)c->vectors;
        uint64_t sums[4] = {0};
        for (uint64_t at = 0; at < c->items * WIDTH / 2; at += 4) {
            sums[0] ^= words[at];
            sums[1] ^= words[at + 1];
            sums[2] ^= words[at + 2];
            sums[3] ^= words[at + 3];
        }
        c->sum ^= sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    }
    weir_bench_stop(samplep, (double)c->repeats);
    return WEIR_OK;
}

static void find_best(recommend_context *c, const float *queries, uint32_t users) {
    const uint64_t *skipped[AT_ONCE] = {NULL};
    uint32_t none[AT_ONCE] = {0}, counts[AT_ONCE];
    float trend_weights[AT_ONCE];
    for (uint32_t i = 0; i < AT_ONCE; i++)
        trend_weights[i] = TREND_WEIGHT;
    const weir_recommend_search search = {.items = c->vectors,
                                          .trends = c->trends,
                                          .item_count = c->items,
                                          .width = WIDTH,
                                          .trend_weights = trend_weights,
                                          .queries = queries,
                                          .count = users,
                                          .limit = BEST,
                                          .skipped = skipped,
                                          .skipped_counts = none,
                                          .scores = c->scores};
    weir_recommend_top(&search, c->best, counts);
}

static weir_err run_one(void *context, uint64_t round, weir_bench_sample *samplep) {
    recommend_context *c = context;
    (void)round;
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->repeats; i++)
        find_best(c, c->queries + i % QUERIES * WIDTH, 1);
    weir_bench_stop(samplep, (double)c->repeats);
    return WEIR_OK;
}

static weir_err run_together(void *context, uint64_t round, weir_bench_sample *samplep) {
    recommend_context *c = context;
    (void)round;
    weir_bench_start(samplep);
    find_best(c, c->queries, AT_ONCE);
    weir_bench_stop(samplep, AT_ONCE);
    return WEIR_OK;
}

static weir_err run_index(void *context, uint64_t round, weir_bench_sample *samplep) {
    recommend_context *c = context;
    uint64_t rows[BEST];
    (void)round;
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < QUERIES; i++)
        c->sum += weir_near_search(c->near, c->searcher, c->queries + i * WIDTH, BEST, rows);
    weir_bench_stop(samplep, QUERIES);
    return WEIR_OK;
}

/* --- what is measured -------------------------------------------------------------------------------------------- */

/* Near one of the centres, and 1 / 0.15 long, as items of a temperature of 0.15 are; of users 1. */
static void make_row(const float *centres, weir_rng *rng, float length, float *row) {
    const float *centre = centres + weir_rng_below(rng, CENTRES) * WIDTH;
    double square = 0;
    for (uint32_t c = 0; c < WIDTH; c++) {
        row[c] = centre[c] + (float)weir_rng_normal(rng);
        square += (double)row[c] * (double)row[c];
    }
    for (uint32_t c = 0; c < WIDTH; c++)
        row[c] *= length / (float)sqrt(square);
}

static weir_err make_world(recommend_context *c) {
    float centres[CENTRES * WIDTH];
    weir_rng rng = weir_rng_stream(1, 0, 0);
    c->vectors = weir_calloc(c->items, WIDTH * sizeof *c->vectors);
    c->trends = weir_calloc(c->items, sizeof *c->trends);
    c->queries = weir_calloc(QUERIES, WIDTH * sizeof *c->queries);
    c->scores = weir_calloc(AT_ONCE, WEIR_RECOMMEND_PIECE * sizeof *c->scores);
    if (!c->vectors || !c->trends || !c->queries || !c->scores) return WEIR_NOMEM("for items to recommend");
    for (uint32_t i = 0; i < CENTRES * WIDTH; i++)
        centres[i] = (float)weir_rng_normal(&rng);
    for (uint64_t i = 0; i < c->items; i++) {
        make_row(centres, &rng, 1 / 0.15F, c->vectors + i * WIDTH);
        c->trends[i] = (float)log(weir_rng_exponential(&rng, 3) + 0.1);
    }
    for (uint32_t i = 0; i < QUERIES; i++)
        make_row(centres, &rng, 1, c->queries + (size_t)i * WIDTH);
    return WEIR_OK;
}

static bool go_on(void *context) {
    (void)context;
    return false;
}

/* How many of the best 20 the index names, of a hundred users. */
static double measure_recall(recommend_context *c) {
    uint64_t rows[BEST], found = 0;
    const uint32_t users = QUERIES / 10;
    for (uint32_t i = 0; i < users; i++) {
        const float *query = c->queries + (size_t)i * WIDTH;
        find_best(c, query, 1);
        const uint32_t named = weir_near_search(c->near, c->searcher, query, BEST, rows);
        for (uint32_t b = 0; b < BEST; b++)
            for (uint32_t r = 0; r < named; r++)
                found += rows[r] == c->best[b].item;
    }
    return (double)found / (users * BEST);
}

static weir_err make_index(recommend_context *c) {
    const weir_near_items items = {c->vectors, c->trends, (uint32_t)c->items, WIDTH, TREND_WEIGHT};
    weir_bench_sample sample = {0};
    char line[256];
    weir_bench_start(&sample);
    weir_err err = weir_near_build(&items, go_on, NULL, &c->near);
    weir_bench_stop(&sample, (double)c->items);
    if (!err) err = weir_near_searcher_open((uint32_t)c->items, BEST, &c->searcher);
    if (err) return err;
    const int length =
        snprintf(line, sizeof line, "recommend  index of %llu items in %.1f s; it names %.4f of the best 20\n",
                 (unsigned long long)c->items, (double)sample.elapsed_ns * 1e-9, measure_recall(c));
    return weir_cli_output(line, (size_t)length);
}

static weir_err run(weir_cli *cli) {
    recommend_context c = {.items = weir_bench_quick(cli) ? 1000 : 1000000, .repeats = weir_bench_quick(cli) ? 1 : 10};
    weir_err err = weir_cli_u64(cli, "items", BEST, 100000000, &c.items);
    if (!err) err = make_world(&c);
    if (!err) err = make_index(&c);
    const weir_bench_line lines[] = {
        {"vectors read", "a second", 1, NULL, run_reading, &c},
        {"the best 20 for one user", "a second", 1, "vectors read", run_one, &c},
        {"the best 20 for 32 users at once", "a second", 1, "vectors read", run_together, &c},
        {"about the best 20, by an index", "a second", 1, "vectors read", run_index, &c},
    };
    if (!err) err = weir_bench_run(cli, "recommend", lines, sizeof lines / sizeof lines[0]);
    weir_near_searcher_close(c.searcher);
    weir_near_free(c.near);
    weir_free(c.vectors);
    weir_free(c.trends);
    weir_free(c.queries);
    weir_free(c.scores);
    return err;
}

static const weir_option options[] = {
    {"items", 0, "N", "items with vectors of 64 numbers (default: 1000000; quick: 1000)", NULL},
    WEIR_BENCH_OPTIONS,
    {0}};

const weir_command weir_bench_recommend = {
    .name = "recommend",
    .summary = "the best items for a user, against reading the vectors of all",
    .options = options,
    .run = run,
};
