/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares_test.c - embeddings of vertices and of large categories, of which each rank has its own rows: R4. First rows
 * that several ranks name, bring and give back at random: each rank knows by itself what all of them do, which is the
 * oracle. Then whole trainings, beside one rank that has all rows.
 */
#include <math.h>
#include <string.h>

#include <weir/inference/nn/tape.h>
#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/snapshot/npy.h>
#include <weir/trainer/train/train.h>

#include "rank_fixture.h"
#include "ranks.h"
#include "shares.h"
#include "shell.h"

#define PAYS     300u
#define PEOPLE   40u
#define HIDDEN   8u
#define ROUNDS   40u
#define ROWS_MAX 60u /* of a type in a batch */
#define TYPES    2u
#define TABLES   4u
#define COLUMNS  3u /* of slots, of a type at most */

/* As that of learn_fixture.h, with categories: one of them has a bucket too few, and one is a relation's, which the
 * network does not see. */
#define SHOP_BUCKETS 140000u
#define TOWN_BUCKETS 131071u /* with the slot of what has none, as few as are shared out */
static const char wide_schema_text[] =
    "version: 1\n"
    "name: learnt\n"
    "vertices:\n"
    "  pay: {features: {x: {kind: number, normalise: standard}, shop: {kind: category, buckets: 140000},\n"
    "    day: {kind: category, buckets: 131070}}}\n"
    "  who: {features: {hint: {kind: number, normalise: standard}, town: {kind: category, buckets: 131071}}}\n"
    "relations:\n"
    "  by: {from: pay, to: who, features: {w: {kind: number, normalise: standard},\n"
    "    card: {kind: category, buckets: 200000}}}\n"
    "labels:\n"
    "  bad: {vertex: pay, values: [no, yes], absent: no, lag: 1h}\n"
    "tasks:\n"
    "  bad: {kind: classify, label: bad, positive: yes}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}\n";

/* What is shared out of it, where all vertices are known. */
static const struct {
    uint32_t type, category, slots;
} expected[TABLES] = {
    {LEARN_PAY, 0, SHOP_BUCKETS + 1}, {LEARN_PAY, 2, PAYS}, {LEARN_WHO, 0, TOWN_BUCKETS + 1}, {LEARN_WHO, 1, PEOPLE}};
static const uint32_t columns[TYPES] = {3, 2};

static struct {
    weir_comm *comm;
    weir_snapshot *snapshot;
    weir_part *part; /* NULL: each rank has the whole snapshot */
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_train_shares *shares;
    weir_real *params, *gradients;
    uint64_t seed;
} world;

/* --- a snapshot --------------------------------------------------------------------------------------------------- */

static uint32_t wide_row(double number, const char *const *texts, size_t count, uint8_t *row) {
    weir_value_kind kinds[COLUMNS] = {WEIR_VALUE_NUMBER};
    weir_value values[COLUMNS] = {{.present = true, .number = number}};
    for (size_t i = 0; i < count; i++) {
        kinds[i + 1] = WEIR_VALUE_CATEGORY;
        values[i + 1] = (weir_value){.present = true, .text = texts[i], .text_length = (uint8_t)strlen(texts[i])};
    }
    return (uint32_t)weir_row_write(kinds, values, count + 1, row);
}

static void wide_put(learn_world *w, uint32_t type, uint64_t n, int64_t time_us, double number,
                     const char *const *texts, size_t count) {
    uint8_t row[128];
    uint32_t length = wide_row(number, texts, count, row);
    learn_put_row(w, type, n, time_us, row, length);
}

/* A pay of somebody, at a shop, by a card: shops and towns that come again, and some that do not. */
static void wide_pay(learn_world *w, uint64_t n, uint64_t people) {
    int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
    uint64_t who = n < people ? n : weir_rng_below(&w->rng, people);
    char shop[32], day[32], town[32], card[32];
    snprintf(shop, sizeof shop, "shop %llu", (unsigned long long)weir_rng_below(&w->rng, n % 3 ? 20 : 100000));
    snprintf(day, sizeof day, "day %llu", (unsigned long long)(n % 7));
    snprintf(town, sizeof town, "town %llu", (unsigned long long)(who * who));
    snprintf(card, sizeof card, "card %llu", (unsigned long long)(who * 7));
    bool bad = who * 10 < people * 3, yes = weir_rng_double(&w->rng) < (bad ? 0.8 : 0.05);
    double x = weir_rng_normal(&w->rng);
    if (n < people) wide_put(w, LEARN_WHO, who, t - LEARN_SECOND, x, (const char *const[]){town}, 1);
    wide_put(w, LEARN_PAY, n, t, x, (const char *const[]){shop, day}, 2);
    uint8_t row[64];
    weir_mutation m[2] = {{.kind = WEIR_PUT_EDGE, .type = LEARN_BY, .vertex = learn_vertex(LEARN_PAY, n)}};
    m[0].neighbor = learn_vertex(LEARN_WHO, who);
    m[0].time_us = t;
    m[0].event = w->offset;
    m[0].row = row;
    m[0].row_length = wide_row(bad ? x + 2 : x, (const char *const[]){card}, 1, row);
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    learn_submit(w, m, 2);
    learn_label(w, LEARN_BAD, n, yes ? "yes" : "no", t + 30 * LEARN_SECOND);
}

static void wide_snapshot(uint64_t seed, uint64_t pays, uint64_t people) {
    learn_world w;
    learn_open(&w, wide_schema_text, seed);
    for (uint64_t n = 0; n < pays; n++)
        wide_pay(&w, n, people);
    learn_build(&w, weir_test_path("snapshot"), LEARN_START_US + (int64_t)pays * 60 * LEARN_SECOND + LEARN_RIPE_US / 2);
}

/* --- rows at random ----------------------------------------------------------------------------------------------- */

/* What a rank's batch reads: of each table a slot for every row of its type. */
typedef struct reading {
    uint32_t rows[TYPES];
    uint32_t slots[TABLES][ROWS_MAX];
} reading;

static weir_real value_of(uint64_t what, uint64_t a, uint64_t b, uint32_t c) {
    weir_rng rng = weir_rng_stream(what, a << 32 | b, c);
    return (weir_real)weir_rng_normal(&rng);
}

static weir_real row_value(uint32_t table, uint32_t slot, uint32_t col) {
    return value_of(1, table, slot, col);
}

static weir_real gradient_value(uint32_t rank, unsigned round, uint32_t table, uint32_t slot, uint32_t col) {
    return value_of(100 + rank * ROUNDS + round, table, slot, col);
}

/* Some read little, or nothing. Half of the slots are few, so that ranks meet. */
static reading read_of(uint32_t rank, unsigned round) {
    reading r = {{0}, {{0}}};
    weir_rng rng = weir_rng_stream(world.seed, rank, round);
    for (uint32_t type = 0; type < TYPES; type++)
        r.rows[type] = (uint32_t)weir_rng_below(&rng, weir_rng_below(&rng, 4) ? ROWS_MAX : 2);
    for (uint32_t n = 0; n < TABLES; n++) {
        bool of_vertices = expected[n].category == columns[expected[n].type] - 1;
        for (uint32_t i = 0; i < r.rows[expected[n].type]; i++) {
            uint32_t range = weir_rng_below(&rng, 2) ? expected[n].slots : PEOPLE;
            r.slots[n][i] = (uint32_t)weir_rng_below(&rng, range);
            if (of_vertices && weir_rng_below(&rng, 5) == 0) r.slots[n][i] = WEIR_NO_SLOT;
        }
    }
    return r;
}

/* Of each slot of a table whether the rank reads it; freed by the caller. */
static bool *slots_read(uint32_t rank, unsigned round, uint32_t table) {
    bool *read = calloc(expected[table].slots, sizeof *read);
    reading r = read_of(rank, round);
    assert_non_null(read);
    for (uint32_t i = 0; i < r.rows[expected[table].type]; i++)
        if (r.slots[table][i] != WEIR_NO_SLOT) read[r.slots[table][i]] = true;
    return read;
}

static uint64_t offset_of(uint32_t table) {
    return weir_nn_plan_of(world.nn)->encode[expected[table].type].categories[expected[table].category];
}

static void world_open(void) {
    static const uint32_t fanouts[] = {4, 3};
    static uint64_t ids[TYPES][PAYS];
    weir_sample_step steps[8];
    weir_nn_known known[TYPES];
    weir_nn_opts opts = {
        .task = LEARN_TASK_BAD, .hidden = HIDDEN, .steps = steps, .known = known, .known_count = TYPES};
    assert_ok(weir_comm_start(NULL, NULL, &world.comm));
    uint32_t rank = weir_comm_rank(world.comm), ranks = weir_comm_ranks(world.comm);
    world.seed = rank_seed();
    world.snapshot = rank_snapshot();
    world.part = rank_part(rank);
    const weir_schema *schema = weir_snapshot_schema(world.snapshot);
    const weir_train_reach reach = {.fanouts = fanouts, .layers = 2};
    opts.step_count = weir_train_steps(schema, LEARN_TASK_BAD, &reach, NULL, steps, 8);
    for (uint32_t type = 0; type < TYPES; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(world.snapshot, type);
        assert_true(v->count <= PAYS);
        for (uint64_t i = 0; i < v->count; i++) /* few: by insertion */
            for (uint64_t at = i, id = ids[type][i] = v->ids[i].low; at > 0 && ids[type][at - 1] > id; at--) {
                ids[type][at] = ids[type][at - 1];
                ids[type][at - 1] = id;
            }
        known[type] = (weir_nn_known){type, ids[type], v->count};
    }
    assert_ok(weir_nn_shape_open(schema, &opts, &world.shape));
    const weir_train_owners owners = {world.part ? weir_part_snapshot(world.part) : world.snapshot, world.part, rank,
                                      ranks};
    assert_ok(weir_train_shares_open(&owners, world.shape, world.comm, &world.shares));
    assert_ok(weir_train_shares_network(world.shares, weir_kernels_cpu(), &world.nn));
    uint64_t count = weir_nn_parameter_count(world.nn);
    world.params = calloc(count, sizeof *world.params);
    world.gradients = calloc(count, sizeof *world.gradients);
    assert_true(world.params && world.gradients);
}

static void world_close(void) {
    free(world.params);
    free(world.gradients);
    weir_nn_close(world.nn);
    weir_train_shares_close(world.shares);
    weir_nn_shape_free(world.shape);
    weir_part_close(world.part);
    weir_snapshot_close(world.snapshot);
    weir_comm_stop(world.comm);
}

/* All ranks say the same of a table's rows, and each has those that are its own. */
static void rows_have_one_owner(const weir_train_shares_table *table) {
    double *counts = calloc(table->slots, sizeof *counts), *owners = calloc(table->slots, sizeof *owners);
    assert_true(counts && owners);
    for (uint32_t slot = 0; slot < table->slots; slot++)
        owners[slot] = table->owner_of[slot];
    for (uint32_t row = 0; row < table->own_count; row++)
        counts[table->own[row]]++;
    assert_int_equal(table->own_count, weir_train_shares_count(table, world.shares->rank));
    weir_comm_sum_doubles(world.comm, counts, table->slots);
    weir_comm_sum_doubles(world.comm, owners, table->slots);
    for (uint32_t slot = 0; slot < table->slots; slot++) {
        assert_true(counts[slot] == 1);
        assert_true(owners[slot] == (double)table->owner_of[slot] * world.shares->ranks);
    }
    free(counts);
    free(owners);
}

/* A vertex's row is with the rank that has the vertex. */
static void vertices_have_their_rows(const weir_train_shares_table *table) {
    const weir_nn_inputs *inputs = weir_nn_vertex(world.shape, table->type);
    const weir_snapshot *here = world.part ? weir_part_snapshot(world.part) : world.snapshot;
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(here, table->type);
    for (uint64_t i = 0; i < v->own; i++) {
        uint32_t rank = table->owner_of[weir_nn_slot_of(inputs, v->ids[i].low)];
        assert_int_equal(rank, world.part ? world.shares->rank : v->ids[i].low % world.shares->ranks);
    }
}

/* Large tables alone are shared out, and a rank has its part of their parameters, and so of moments and gradients,
 * which are laid out as these: of categories as even a part as there is. */
static void shares_are_parts(void) {
    weir_nn *whole;
    uint32_t ranks = world.shares->ranks;
    assert_ok(weir_nn_open(world.shape, weir_kernels_cpu(), &whole));
    uint64_t here = weir_nn_parameter_count(world.nn), all = weir_nn_parameter_count(whole), large = 0;
    assert_int_equal(world.shares->table_count, TABLES);
    for (uint32_t n = 0; n < TABLES; n++) {
        const weir_train_shares_table *table = &world.shares->tables[n];
        assert_int_equal(table->type, expected[n].type);
        assert_int_equal(table->category, expected[n].category);
        assert_int_equal(table->slots, expected[n].slots);
        rows_have_one_owner(table);
        if (table->category == columns[table->type] - 1)
            vertices_have_their_rows(table);
        else
            assert_true(table->own_count >= table->slots / ranks && table->own_count <= table->slots / ranks + 1);
        large += (uint64_t)table->slots * HIDDEN;
    }
    /* Of the vertices, a rank may have more than its part: they are few. */
    assert_true(here <= all - large + large / ranks + (PAYS + PEOPLE + TABLES) * HIDDEN);
    weir_nn_close(whole);
}

/* A share begins with the rows that the whole network begins with. */
static void shares_begin_as_the_whole(void) {
    weir_nn *whole;
    assert_ok(weir_nn_open(world.shape, weir_kernels_cpu(), &whole));
    uint64_t here = weir_nn_parameter_count(world.nn);
    weir_real *all = calloc(weir_nn_parameter_count(whole), sizeof *all), *taken = calloc(here, sizeof *taken);
    weir_real *begun = calloc(here, sizeof *begun);
    assert_true(all && taken && begun);
    weir_nn_init(whole, world.seed, all);
    weir_nn_init(world.nn, world.seed, begun);
    weir_train_shares_take(world.shares, world.nn, all, taken);
    assert_memory_equal(begun, taken, here * sizeof *begun);
    free(all);
    free(taken);
    free(begun);
    weir_nn_close(whole);
}

/* Of rows that are read, the gradients of all ranks, added in their order; of others none. */
static void gradients_are_sums(unsigned round) {
    uint64_t touched = 0;
    for (uint32_t n = 0; n < TABLES; n++) {
        const weir_train_shares_table *table = &world.shares->tables[n];
        weir_real *sums = calloc((size_t)table->slots * HIDDEN, sizeof *sums);
        assert_non_null(sums);
        for (uint32_t rank = 0; rank < world.shares->ranks; rank++) {
            bool *read = slots_read(rank, round, n);
            for (uint32_t slot = 0; slot < table->slots; slot++)
                for (uint32_t c = 0; read[slot] && c < HIDDEN; c++)
                    sums[(size_t)slot * HIDDEN + c] += gradient_value(rank, round, n, slot, c);
            free(read);
        }
        for (uint64_t i = 0; i < (uint64_t)table->own_count * HIDDEN; i++) {
            weir_real sum = sums[(uint64_t)table->own[i / HIDDEN] * HIDDEN + i % HIDDEN];
            assert_true(world.gradients[offset_of(n) + i] == sum);
            touched += sum != 0;
        }
        free(sums);
    }
    for (uint64_t i = 0; i < weir_nn_parameter_count(world.nn); i++)
        touched -= world.gradients[i] != 0;
    assert_int_equal(touched, 0); /* and nothing else has been */
}

static void marks_are_what_is_read(const weir_train_wants *wants, unsigned round) {
    weir_nn_rows *rows;
    assert_ok(weir_nn_rows_open(world.nn, &rows));
    assert_ok(weir_train_shares_mark(world.shares, wants, rows));
    const weir_nn_tensor *tensor;
    uint32_t count, table = 0;
    for (uint32_t n = 0; (void)weir_nn_rows_look(rows, n, &tensor, &count), tensor; n++) {
        const uint32_t *ids = weir_nn_rows_look(rows, n, &tensor, &count);
        if (!tensor->held) continue;
        const weir_train_shares_table *of = &world.shares->tables[table];
        bool *any = calloc(of->slots, sizeof *any);
        assert_non_null(any);
        for (uint32_t rank = 0; rank < world.shares->ranks; rank++) {
            bool *read = slots_read(rank, round, table);
            for (uint32_t slot = 0; slot < of->slots; slot++)
                any[slot] |= read[slot];
            free(read);
        }
        uint32_t at = 0;
        for (uint32_t row = 0; row < of->own_count; row++)
            if (any[of->own[row]]) assert_true(at < count && ids[at++] == row);
        assert_int_equal(at, count);
        free(any);
        table++;
    }
    assert_int_equal(table, TABLES);
    assert_int_equal(weir_nn_rows_size(rows), 0); /* ranks sum none of them */
    weir_nn_rows_close(rows);
}

/* Each row that other ranks have comes once, and its gradient goes back: nothing else does. */
static void one_round(weir_train_wants *wants, unsigned round) {
    uint32_t rank = world.shares->rank, distinct = 0, remote = 0;
    reading r = read_of(rank, round);
    weir_block_range ranges[TYPES] = {{0, r.rows[0]}, {r.rows[0], r.rows[0] + r.rows[1]}};
    const weir_block_view view = {.types = TYPES, .input_ranges = ranges};
    uint32_t own[TYPES][ROWS_MAX * COLUMNS], *slots[TYPES] = {own[0], own[1]};
    for (uint32_t i = 0; i < TYPES * ROWS_MAX * COLUMNS; i++)
        own[i / (ROWS_MAX * COLUMNS)][i % (ROWS_MAX * COLUMNS)] = 1000000 + i; /* what is not shared out stays */
    for (uint32_t n = 0; n < TABLES; n++) {
        uint32_t type = expected[n].type;
        assert_int_equal(columns[type], weir_nn_vertex(world.shape, type)->category_count);
        for (uint32_t i = 0; i < r.rows[type]; i++)
            own[type][i * columns[type] + expected[n].category] = r.slots[n][i];
        bool *read = slots_read(rank, round, n);
        for (uint32_t slot = 0; slot < expected[n].slots; slot++) {
            distinct += read[slot];
            remote += read[slot] && world.shares->tables[n].owner_of[slot] != rank;
        }
        free(read);
    }
    weir_nn_brought brought;
    assert_ok(weir_train_wants_list(wants, world.shares, rank, &view, (const uint32_t *const *)slots));
    weir_train_wants_place(wants, world.shares, &view, slots);
    assert_ok(weir_train_wants_tell(wants, world.shares, world.comm));
    weir_comm_traffic before = weir_comm_traffic_of(world.comm);
    assert_ok(weir_train_shares_pull(world.shares, world.nn, world.params, wants, world.comm, &brought));
    weir_comm_traffic after = weir_comm_traffic_of(world.comm);
    assert_int_equal(brought.count, distinct);
    assert_int_equal(after.received - before.received, remote * HIDDEN * sizeof(weir_real));
    for (uint32_t i = 0; i < r.rows[LEARN_PAY]; i++)
        assert_int_equal(own[LEARN_PAY][i * COLUMNS + 1], 1000000 + i * COLUMNS + 1);
    for (uint32_t n = 0; n < TABLES; n++) {
        for (uint32_t i = 0; i < r.rows[expected[n].type]; i++) {
            uint32_t slot = r.slots[n][i];
            uint32_t at = own[expected[n].type][i * columns[expected[n].type] + expected[n].category];
            if (slot == WEIR_NO_SLOT) {
                assert_int_equal(at, WEIR_NO_SLOT);
                continue;
            }
            assert_true(at < brought.count);
            for (uint32_t c = 0; c < HIDDEN; c++) {
                assert_true(brought.rows[at * HIDDEN + c] == row_value(n, slot, c));
                brought.gradients[at * HIDDEN + c] = gradient_value(rank, round, n, slot, c);
            }
        }
    }
    memset(world.gradients, 0, weir_nn_parameter_count(world.nn) * sizeof *world.gradients);
    before = weir_comm_traffic_of(world.comm);
    assert_ok(weir_train_shares_push(world.shares, world.nn, wants, world.comm, world.gradients));
    after = weir_comm_traffic_of(world.comm);
    assert_int_equal(after.sent - before.sent, remote * HIDDEN * sizeof(weir_real));
    gradients_are_sums(round);
    marks_are_what_is_read(wants, round);
}

static weir_err keep(void *context, const weir_real *numbers, uint64_t count) {
    weir_real **at = context;
    memcpy(*at, numbers, count * sizeof *numbers);
    *at += count;
    return WEIR_OK;
}

/* On rank 0 all rows stand in the order of their slots; each rank finds its own there again. */
static void gathered_and_taken(void) {
    weir_nn *whole;
    assert_ok(weir_nn_open(world.shape, weir_kernels_cpu(), &whole));
    uint64_t count = weir_nn_parameter_count(whole), share = weir_nn_parameter_count(world.nn);
    weir_real *all = calloc(count, sizeof *all), *at = all, *back = calloc(share, sizeof *back);
    assert_true(all && back);
    const weir_train_sink sink = {keep, &at};
    assert_ok(weir_train_shares_gather(world.shares, world.nn, world.params, world.comm, &sink));
    assert_true(at == all + (world.shares->rank == 0 ? count : 0));
    weir_comm_broadcast(world.comm, all, count * sizeof *all);
    for (uint32_t n = 0; n < TABLES; n++) {
        static const char *const names[TABLES] = {"encode.pay.shop.embedding", "encode.pay.embedding",
                                                  "encode.who.town.embedding", "encode.who.embedding"};
        const weir_nn_tensor *tensor = weir_nn_tensor_find(whole, names[n]);
        assert_true(tensor && tensor->rows == expected[n].slots);
        for (uint64_t i = 0; i < (uint64_t)tensor->rows * HIDDEN; i++)
            assert_true(all[tensor->offset + i] == row_value(n, (uint32_t)(i / HIDDEN), (uint32_t)(i % HIDDEN)));
    }
    weir_train_shares_take(world.shares, world.nn, all, back);
    assert_memory_equal(back, world.params, share * sizeof *back);
    free(all);
    free(back);
    weir_nn_close(whole);
}

static void rank_main(void) {
    weir_train_wants wants;
    world_open();
    shares_are_parts();
    shares_begin_as_the_whole();
    for (uint32_t n = 0; n < TABLES; n++)
        for (uint32_t row = 0; row < world.shares->tables[n].own_count; row++)
            for (uint32_t c = 0; c < HIDDEN; c++)
                world.params[offset_of(n) + (uint64_t)row * HIDDEN + c] =
                    row_value(n, world.shares->tables[n].own[row], c);
    assert_ok(weir_train_wants_open(world.shares->ranks, &wants));
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(&wants, round);
    gathered_and_taken();
    weir_train_wants_close(&wants);
    world_close();
}

/* What the cases below start; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    rank_or_skip();
    rank_main();
}

/* parts: each rank has one; else the whole snapshot. */
static void prepare(unsigned ranks, bool parts) {
    const weir_parts_opts opts = {.parts = ranks, .method = WEIR_PARTS_RANDOM, .seed = weir_test_seed()};
    wide_snapshot(weir_test_seed(), PAYS, PEOPLE);
    rank_hand_out(parts ? &opts : NULL);
}

static void r4_rows_of_two_ranks(void **state) {
    (void)state;
    prepare(2, false);
    ranks_again(2);
}

static void r4_rows_of_four_parts(void **state) {
    (void)state;
    prepare(4, true);
    ranks_again(4);
}

/* Names of rows that there are not, or that others have: one rank alone hears itself. */
static void wants_that_cannot_be(void **state) {
    (void)state;
    weir_train_wants wants;
    uint32_t slots[TYPES][COLUMNS] = {{0}}, *of[TYPES] = {slots[0], slots[1]};
    weir_block_range ranges[TYPES] = {{0, 0}, {0, 1}};
    const weir_block_view view = {.types = TYPES, .input_ranges = ranges};
    prepare(1, false);
    world_open();
    assert_ok(weir_train_wants_open(1, &wants));
    for (uint32_t n = 2; n < TABLES; n++) {
        uint32_t *slot = &slots[expected[n].type][expected[n].category];
        *slot = expected[n].slots;
        assert_err(weir_train_wants_list(&wants, world.shares, 0, &view, (const uint32_t *const *)of), WEIR_ECORRUPT,
                   "a batch names row");
        *slot = expected[n].slots - 1;
    }
    slots[LEARN_WHO][0] = WEIR_NO_SLOT; /* which a vertex may have, and a category not */
    assert_err(weir_train_wants_list(&wants, world.shares, 0, &view, (const uint32_t *const *)of), WEIR_ECORRUPT,
               "a batch names row");
    slots[LEARN_WHO][0] = expected[2].slots - 1;
    const uint64_t good[] = {(uint64_t)1 << 48 | (uint64_t)2 << 32 | (expected[2].slots - 1),
                             (uint64_t)1 << 48 | (uint64_t)3 << 32 | (expected[3].slots - 1)};
    const uint64_t bad[] = {good[1] + 1, good[1] + ((uint64_t)1 << 32), good[1] + ((uint64_t)1 << 48)};
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        assert_ok(weir_train_wants_list(&wants, world.shares, 0, &view, (const uint32_t *const *)of));
        assert_int_equal(wants.keys.length, sizeof good);
        assert_memory_equal(wants.keys.bytes, good, sizeof good);
        if (i == sizeof bad / sizeof *bad) {
            assert_ok(weir_train_wants_tell(&wants, world.shares, world.comm));
            break;
        }
        memcpy(wants.keys.bytes + sizeof *good, &bad[i], sizeof bad[i]);
        assert_err(weir_train_wants_tell(&wants, world.shares, world.comm), WEIR_ECORRUPT, "wants the embedding");
    }
    weir_train_wants_close(&wants);
    world_close();
}

/* --- trainings ---------------------------------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 48u

/* more ends with NULL. first: the snapshot, or NULL. */
static void trains(unsigned ranks, const char *program, const char *first, const char *folder, const char *epochs,
                   const char *const *more) {
    const char *const fixed[] = {"--task",        "bad",  "--folder",         folder, "--epochs",  epochs,
                                 "--batch",       "64",   "--hidden",         "8",    "--fanouts", "6,6",
                                 "--patience",    "0",    "--warm-up",        "0.05", "--test",    "0.25",
                                 "--validation",  "0.25", "--embed-vertices", "who",  "--decay",   "0.1",
                                 "--no-baselines"};
    const char *arguments[ARGUMENTS_MAX];
    size_t count = 0;
    weir_test_output output;
    if (first) arguments[count++] = first;
    memcpy(arguments + count, fixed, sizeof fixed);
    count += sizeof fixed / sizeof *fixed;
    while (more && *more)
        arguments[count++] = *more++;
    arguments[count] = NULL;
    ranks_run(ranks, program, arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
}

static void make_snapshot(void) {
    wide_snapshot(3, 600, 30);
}

/* Two checkpoints whose numbers are the same but for the order of sums. */
static void same_checkpoints(const char *one, const char *many) {
    static const char *const names[] = {"params", "best", "moment1", "moment2"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        weir_npy_map *maps[2];
        weir_npy_array of[2];
        double apart = 0, norm = 0;
        for (unsigned i = 0; i < 2; i++) {
            char path[4300];
            snprintf(path, sizeof path, "%s/checkpoint/%s.npy", i ? many : one, names[n]);
            assert_ok(weir_npy_map_open(path, &maps[i], &of[i]));
        }
        assert_int_equal(of[0].count, of[1].count);
        for (uint64_t i = 0; i < of[0].count; i++) {
            apart += pow(weir_npy_f64(&of[0], i) - weir_npy_f64(&of[1], i), 2);
            norm += pow(weir_npy_f64(&of[0], i), 2);
        }
        print_message("%s: %g of %g apart\n", names[n], sqrt(apart), sqrt(norm));
        if (!(norm > 0 && sqrt(apart) <= 2e-4 * sqrt(norm)))
            fail_msg("%s of %s and %s: norm %g, %g apart", names[n], one, many, sqrt(norm), sqrt(apart));
        weir_npy_map_close(maps[0]);
        weir_npy_map_close(maps[1]);
    }
}

static size_t losses_of(const char *folder, double *losses, size_t room) {
    char path[4300], *text = NULL;
    size_t length, count = 0;
    snprintf(path, sizeof path, "%s/epochs.jsonl", folder);
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    for (const char *at = text; count < room && (at = strstr(at, "\"loss\":")); at += 7)
        losses[count++] = strtod(at + 7, NULL);
    weir_free(text);
    return count;
}

static void same_losses(const char *one, const char *many, size_t epochs) {
    double a[8], b[8];
    assert_int_equal(losses_of(one, a, 8), epochs);
    assert_int_equal(losses_of(many, b, 8), epochs);
    for (size_t i = 0; i < epochs; i++) {
        print_message("epoch %zu: losses %.9g and %.9g\n", i + 1, a[i], b[i]);
        if (!(a[i] > 0 && fabs(a[i] - b[i]) <= 1e-5 * a[i]))
            fail_msg("epoch %zu: losses %.9g of %s and %.9g of %s", i + 1, a[i], one, b[i], many);
    }
}

static const char *const adamw[] = {NULL};
static const char *const adagrad[] = {"--embedding-optimizer", "adagrad", "--embedding-rate", "0.05", NULL};

static void r4_as_one_rank_with_all_rows(void **state) {
    (void)state;
    char alone[4096], together[4096], snapshot[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    make_snapshot();
    for (unsigned i = 0; i < 2; i++) {
        const char *const *optimizer = i ? adagrad : adamw;
        trains(1, ranks_train_program(), snapshot, alone, "3", optimizer);
        for (unsigned ranks = 2; ranks <= 4; ranks += 2) {
            trains(ranks, ranks_train_program(), snapshot, together, "3", optimizer);
            same_checkpoints(alone, together);
            same_losses(alone, together, 3);
            shell("cd $folder && mv together before");
            trains(ranks, ranks_train_program(), snapshot, together, "3", optimizer);
            shell("cd $folder; for f in params best moment1 moment2; do cmp before/checkpoint/$f.npy "
                  "together/checkpoint/$f.npy; done; rm -r before together");
        }
        shell("cd $folder && rm -r alone");
    }
}

static void r4_of_a_network_with_attention(void **state) {
    (void)state;
    static const char *const attention[] = {"--network", "attention", "--heads", "2", NULL};
    char alone[4096], together[4096], snapshot[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    make_snapshot();
    trains(1, ranks_train_program(), snapshot, alone, "3", attention);
    trains(2, ranks_train_program(), snapshot, together, "3", attention);
    same_checkpoints(alone, together);
    same_losses(alone, together, 3);
}

/* Four ranks with parts, then two with the snapshot, then one, and the other way: each takes its share of what was
 * saved. */
static void r4_resumed_by_other_ranks(void **state) {
    (void)state;
    static const char *const resume[] = {"--resume", NULL};
    char alone[4096], together[4096], snapshot[4096], program[4096], line[8192];
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    snprintf(program, sizeof program, "%s", weir_test_path("on-parts"));
    make_snapshot();
    snprintf(line, sizeof line,
             "cd $folder && $weir partition snapshot --parts 4 --method random --out parts >/dev/null && "
             "printf '#!/bin/bash\\nexec %s --parts %s/parts \"$@\"\\n' >on-parts && chmod +x on-parts",
             ranks_train_program(), weir_test_folder());
    shell(line);
    trains(1, ranks_train_program(), snapshot, alone, "4", NULL);
    trains(4, program, NULL, together, "2", NULL);
    trains(2, ranks_train_program(), snapshot, together, "3", resume);
    trains(1, ranks_train_program(), snapshot, together, "4", resume);
    same_checkpoints(alone, together);
    same_losses(alone, together, 4);
    shell("cd $folder && rm -r together");
    trains(1, ranks_train_program(), snapshot, together, "1", NULL);
    trains(2, ranks_train_program(), snapshot, together, "2", resume);
    trains(4, program, NULL, together, "4", resume);
    same_checkpoints(alone, together);
    same_losses(alone, together, 4);
}

/* What rank 0 writes has the rows of all: one rank alone scores with it as all of them did together. */
static void r4_a_model_has_all_rows(void **state) {
    (void)state;
    char models[4096], run[4096], snapshot[4096], line[4096];
    snprintf(models, sizeof models, "%s", weir_test_path("models"));
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    make_snapshot();
    trains(3, ranks_train_program(), snapshot, run, "3", (const char *const[]){"--models", models, NULL});
    snprintf(
        line, sizeof line,
        "cd $folder && '%s' snapshot --judge models/*-* --set models.require_signature=false --warm-up 0.05 "
        "--validation 0.25 --test 0.25 >judged.json && value=$(sed 's/.*\"value\":\\([^,]*\\),.*/\\1/' judged.json) "
        "&& grep '\"test\":.*\"average_precision\":'$value, run/report.json",
        ranks_train_program());
    shell(line);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(r4_rows_of_two_ranks), WEIR_CASE(r4_rows_of_four_parts),
           WEIR_CASE(wants_that_cannot_be), WEIR_CASE(r4_as_one_rank_with_all_rows),
           WEIR_CASE(r4_of_a_network_with_attention), WEIR_CASE(r4_resumed_by_other_ranks),
           WEIR_CASE(r4_a_model_has_all_rows))
