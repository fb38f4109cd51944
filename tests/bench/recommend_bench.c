/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_bench.c - the best 20 of all items for one user, and for 32 at once, against reading the items' vectors: an
 * answer looks at each number once.
 */
#include <stdio.h>

#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "bench.h"

#define WIDTH 64u
#define MANY  32u
#define BEST  20u

typedef struct recommend_context {
    uint64_t items, repeats;
    float *vectors, *trends, *queries, *scores;
    weir_recommend_best best[MANY * BEST];
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

static void find_best(recommend_context *c, uint32_t users) {
    const uint64_t *skipped[MANY] = {NULL};
    uint32_t none[MANY] = {0}, counts[MANY];
    const weir_recommend_search search = {.items = c->vectors,
                                          .trends = c->trends,
                                          .item_count = c->items,
                                          .width = WIDTH,
                                          .trend_weight = 0.5F,
                                          .queries = c->queries,
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
        find_best(c, 1);
    weir_bench_stop(samplep, (double)c->repeats);
    return WEIR_OK;
}

static weir_err run_many(void *context, uint64_t round, weir_bench_sample *samplep) {
    recommend_context *c = context;
    (void)round;
    weir_bench_start(samplep);
    find_best(c, MANY);
    weir_bench_stop(samplep, MANY);
    return WEIR_OK;
}

static weir_err run(weir_cli *cli) {
    recommend_context c = {.items = weir_bench_quick(cli) ? 1000 : 1000000, .repeats = weir_bench_quick(cli) ? 1 : 10};
    weir_err err = weir_cli_u64(cli, "items", 1, 100000000, &c.items);
    if (err) return err;
    c.vectors = weir_calloc(c.items, WIDTH * sizeof *c.vectors);
    c.trends = weir_calloc(c.items, sizeof *c.trends);
    c.queries = weir_calloc(MANY, WIDTH * sizeof *c.queries);
    c.scores = weir_calloc(MANY, WEIR_RECOMMEND_PIECE * sizeof *c.scores);
    if (!c.vectors || !c.trends || !c.queries || !c.scores) err = WEIR_NOMEM("for items to recommend");
    weir_rng rng = weir_rng_stream(1, 0, 0);
    for (uint64_t i = 0; !err && i < c.items * WIDTH; i++)
        c.vectors[i] = (float)weir_rng_double(&rng) - 0.5F;
    for (uint64_t i = 0; !err && i < c.items; i++)
        c.trends[i] = (float)weir_rng_double(&rng);
    for (uint32_t i = 0; !err && i < MANY * WIDTH; i++)
        c.queries[i] = (float)weir_rng_double(&rng) - 0.5F;
    const weir_bench_line lines[] = {
        {"vectors read", "a second", 1, NULL, run_reading, &c},
        {"the best 20 for one user", "a second", 1, "vectors read", run_one, &c},
        {"the best 20 for 32 users at once", "a second", 1, "vectors read", run_many, &c},
    };
    if (!err) err = weir_bench_run(cli, "recommend", lines, sizeof lines / sizeof lines[0]);
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
