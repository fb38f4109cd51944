/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soonest_test.c - what stays for coming batches: against a naive look at all lists that have been told, and, where all
 * have been, against every possible choice.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "soonest.h"
#include "weir_test.h"

#define ROWS      40u
#define BATCHES   30u
#define FEW_ROWS  6u
#define FEW_MASKS (1u << FEW_ROWS)
#define NEVER     BATCHES

/* Which rows each batch reads. */
typedef struct world {
    uint32_t rows, places, horizon, batches;
    bool reads[BATCHES][ROWS];
    uint32_t order[ROWS]; /* in which a list names them */
} world;

/* Low rows are read more often. */
static void world_draw(world *w, weir_rng *rng, uint32_t rows_max, uint32_t batches_max) {
    *w = (world){.rows = 1 + (uint32_t)weir_rng_below(rng, rows_max),
                 .batches = 1 + (uint32_t)weir_rng_below(rng, batches_max)};
    w->places = (uint32_t)weir_rng_below(rng, w->rows + 2);
    w->horizon = (uint32_t)weir_rng_below(rng, w->batches + 2);
    for (uint32_t b = 0; b < w->batches; b++)
        for (uint32_t row = 0; row < w->rows; row++)
            w->reads[b][row] = weir_rng_below(rng, 2 + row) == 0;
    for (uint32_t i = 0; i < w->rows; i++) {
        uint32_t other = (uint32_t)weir_rng_below(rng, i + 1);
        w->order[i] = w->order[other];
        w->order[other] = i;
    }
}

static void world_list(const world *w, weir_train_soonest *s, uint32_t b) {
    uint32_t rows[ROWS], count = 0;
    for (uint32_t i = 0; b < w->batches && i < w->rows; i++)
        if (w->reads[b][w->order[i]]) rows[count++] = w->order[i];
    assert_ok(weir_train_soonest_list(s, rows, count));
}

/* reads[]: of the batch, in the order of its list. Returns how many. */
static uint32_t world_take(const world *w, weir_train_soonest *s, uint32_t b, weir_train_read reads[ROWS]) {
    weir_buf buf = {0};
    uint32_t count = 0;
    assert_ok(weir_train_soonest_take(s, &buf));
    assert_int_equal(buf.length % sizeof *reads, 0);
    if (buf.length) memcpy(reads, buf.bytes, buf.length);
    for (uint32_t i = 0; i < w->rows; i++)
        if (w->reads[b][w->order[i]]) assert_int_equal(reads[count++].row, w->order[i]);
    assert_int_equal(count, buf.length / sizeof *reads);
    weir_buf_free(&buf);
    return count;
}

/* The next batch that reads the row behind b, of those that have been told. */
static uint32_t next_use(const world *w, uint32_t b, uint32_t row) {
    uint32_t next = b + 1;
    while (next < w->batches && next <= b + w->horizon && !w->reads[next][row])
        next++;
    return next < w->batches && next <= b + w->horizon ? next : NEVER;
}

/* What each place has. */
typedef struct kept {
    uint32_t row_of[ROWS];
    bool has[ROWS];
    uint32_t count;
} kept;

static bool keeps(const kept *k, uint32_t row) {
    for (uint32_t place = 0; place < ROWS; place++)
        if (k->has[place] && k->row_of[place] == row) return true;
    return false;
}

/* As a training does with the rows themselves: out first, then in, in the order of the list. */
static void move_rows(const world *w, kept *k, const weir_train_read *reads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(reads[i].there, keeps(k, reads[i].row));
        if (reads[i].there) assert_true(k->has[reads[i].place] && k->row_of[reads[i].place] == reads[i].row);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (reads[i].there || reads[i].place == WEIR_TRAIN_NO_PLACE) continue;
        assert_true(reads[i].place < w->places);
        k->has[reads[i].place] = true;
        k->row_of[reads[i].place] = reads[i].row;
    }
    k->count = 0;
    for (uint32_t place = 0; place < ROWS; place++)
        k->count += k->has[place];
}

static void what_stays_is_read_before_what_goes(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 11, 0);
    for (unsigned round = 0; round < weir_test_rounds(300); round++) {
        static world w;
        weir_train_soonest *s;
        kept k = {.count = 0};
        uint32_t last_read[ROWS] = {0};
        world_draw(&w, &rng, ROWS, BATCHES);
        assert_ok(weir_train_soonest_open(w.rows, w.places, w.horizon, &s));
        for (uint32_t b = 0; b < w.horizon; b++)
            world_list(&w, s, b);
        for (uint32_t b = 0; b < w.batches; b++) {
            weir_train_read reads[ROWS];
            const kept before = k;
            world_list(&w, s, b + w.horizon);
            move_rows(&w, &k, reads, world_take(&w, s, b, reads));
            for (uint32_t row = 0; row < w.rows; row++)
                if (w.reads[b][row]) last_read[row] = b + 1;
            for (uint32_t gone = 0; gone < w.rows; gone++) {
                if (keeps(&k, gone) || !(w.reads[b][gone] || keeps(&before, gone))) continue;
                assert_int_equal(k.count, w.places < w.rows ? w.places : w.rows); /* there was no room */
                for (uint32_t row = 0; row < w.rows; row++) {
                    if (!keeps(&k, row)) continue;
                    assert_true(next_use(&w, b, row) <= next_use(&w, b, gone));
                    if (keeps(&before, gone) && keeps(&before, row) && next_use(&w, b, row) == NEVER)
                        assert_true(last_read[gone] <= last_read[row]);
                }
            }
        }
        weir_train_soonest_close(s);
    }
}

static uint32_t rows_in(uint32_t mask) {
    return (uint32_t)__builtin_popcount(mask);
}

/* The fewest rows that any choice of what to keep asks for: over all sets that may be kept after each batch. */
static uint32_t fewest(const world *w) {
    uint32_t best[FEW_MASKS], next[FEW_MASKS], least = UINT32_MAX;
    memset(best, 0xff, sizeof best);
    best[0] = 0;
    for (uint32_t b = 0; b < w->batches; b++) {
        uint32_t reads = 0;
        for (uint32_t row = 0; row < w->rows; row++)
            reads |= (uint32_t)w->reads[b][row] << row;
        memset(next, 0xff, sizeof next);
        for (uint32_t had = 0; had < FEW_MASKS; had++) {
            if (best[had] == UINT32_MAX) continue;
            uint32_t asked = best[had] + rows_in(reads & ~had);
            for (uint32_t keep = 0; keep < FEW_MASKS; keep++)
                if (!(keep & ~(had | reads)) && rows_in(keep) <= w->places && asked < next[keep]) next[keep] = asked;
        }
        memcpy(best, next, sizeof best);
    }
    for (uint32_t mask = 0; mask < FEW_MASKS; mask++)
        if (best[mask] < least) least = best[mask];
    return least;
}

static void with_all_lists_no_choice_asks_for_fewer(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 12, 0);
    for (unsigned round = 0; round < weir_test_rounds(200); round++) {
        static world w;
        weir_train_soonest *s;
        uint32_t asked = 0;
        world_draw(&w, &rng, FEW_ROWS, 10);
        w.horizon = w.batches;
        assert_ok(weir_train_soonest_open(w.rows, w.places, w.horizon, &s));
        for (uint32_t b = 0; b < w.batches; b++)
            world_list(&w, s, b);
        for (uint32_t b = 0; b < w.batches; b++) {
            weir_train_read reads[ROWS];
            uint32_t count = world_take(&w, s, b, reads);
            for (uint32_t i = 0; i < count; i++)
                asked += !reads[i].there;
        }
        assert_int_equal(asked, fewest(&w));
        weir_train_soonest_close(s);
    }
}

static weir_err run_once(void *context) {
    (void)context;
    static const uint32_t rows[] = {3, 1, 2};
    weir_train_soonest *s = NULL;
    weir_buf reads = {0};
    weir_err err = weir_train_soonest_open(5, 2, 1, &s);
    for (unsigned b = 0; !err && b < 4; b++) {
        err = weir_train_soonest_list(s, rows + b % 2, 2);
        if (!err && b > 0) err = weir_train_soonest_take(s, &reads);
    }
    weir_train_soonest_close(s);
    weir_buf_free(&reads);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_test_every_allocation(run_once, NULL);
}

WEIR_TESTS(WEIR_CASE(what_stays_is_read_before_what_goes), WEIR_CASE(with_all_lists_no_choice_asks_for_fewer),
           WEIR_CASE(every_allocation_may_fail))
