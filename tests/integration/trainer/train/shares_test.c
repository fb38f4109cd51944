/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares_test.c - embeddings of vertices, of which each rank has its own: R4. First rows that several ranks name, bring
 * and give back at random: each rank knows by itself what all of them do, which is the oracle. Then whole trainings,
 * beside one rank that has all rows.
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
#define BOTH     (PAYS + PEOPLE)

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

/* What a rank's batch reads. */
typedef struct reading {
    uint32_t rows[TYPES];
    uint32_t slots[TYPES][ROWS_MAX];
} reading;

static weir_real value_of(uint64_t what, uint64_t a, uint64_t b, uint32_t c) {
    weir_rng rng = weir_rng_stream(what, a << 32 | b, c);
    return (weir_real)weir_rng_normal(&rng);
}

static weir_real row_value(uint32_t type, uint32_t slot, uint32_t col) {
    return value_of(1, type, slot, col);
}

static weir_real gradient_value(uint32_t rank, unsigned round, uint32_t type, uint32_t slot, uint32_t col) {
    return value_of(100 + rank * ROUNDS + round, type, slot, col);
}

/* Some read little, or nothing. */
static reading read_of(uint32_t rank, unsigned round) {
    reading r = {{0}, {{0}}};
    weir_rng rng = weir_rng_stream(world.seed, rank, round);
    for (uint32_t type = 0; type < TYPES; type++) {
        uint32_t known = weir_nn_vertex(world.shape, type)->known_count;
        r.rows[type] = (uint32_t)weir_rng_below(&rng, weir_rng_below(&rng, 4) ? ROWS_MAX : 2);
        for (uint32_t i = 0; i < r.rows[type]; i++)
            r.slots[type][i] = weir_rng_below(&rng, 5) ? (uint32_t)weir_rng_below(&rng, known) : WEIR_NO_SLOT;
    }
    return r;
}

static bool reads(const reading *r, uint32_t type, uint32_t slot) {
    for (uint32_t i = 0; i < r->rows[type]; i++)
        if (r->slots[type][i] == slot) return true;
    return false;
}

static uint64_t offset_of(uint32_t type) {
    return weir_nn_plan_of(world.nn)->encode[type].categories[weir_nn_vertex(world.shape, type)->category_count - 1];
}

static void world_open(void) {
    static const uint32_t fanouts[] = {4, 3};
    static uint64_t ids[TYPES][BOTH];
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
        assert_true(v->count <= BOTH);
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

/* Each row is with one rank, which is its vertex's, and all ranks say the same of it. */
static void rows_have_one_owner(void) {
    for (uint32_t type = 0; type < TYPES; type++) {
        const weir_train_shares_type *of = &world.shares->types[type];
        const weir_nn_inputs *inputs = weir_nn_vertex(world.shape, type);
        const weir_snapshot *here = world.part ? weir_part_snapshot(world.part) : world.snapshot;
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(here, type);
        double counts[BOTH] = {0}, owners[BOTH] = {0};
        for (uint32_t slot = 0; slot < inputs->known_count; slot++)
            owners[slot] = of->owner_of[slot];
        for (uint64_t i = 0; i < v->own; i++) {
            uint32_t slot = weir_nn_slot_of(inputs, v->ids[i].low), rank = of->owner_of[slot];
            assert_int_equal(rank, world.part ? world.shares->rank : v->ids[i].low % world.shares->ranks);
        }
        for (uint32_t row = 0; row < of->own_count; row++)
            counts[of->own[row]]++;
        assert_int_equal(of->own_count, weir_train_shares_count(world.shares, world.shares->rank, type));
        weir_comm_sum_doubles(world.comm, counts, inputs->known_count);
        weir_comm_sum_doubles(world.comm, owners, inputs->known_count);
        for (uint32_t slot = 0; slot < inputs->known_count; slot++) {
            assert_true(counts[slot] == 1);
            assert_true(owners[slot] == (double)of->owner_of[slot] * world.shares->ranks);
        }
    }
}

/* Of rows that are read, the gradients of all ranks, added in their order; of others none. */
static void gradients_are_sums(unsigned round) {
    uint64_t touched = 0;
    for (uint32_t type = 0; type < TYPES; type++) {
        const weir_train_shares_type *of = &world.shares->types[type];
        for (uint32_t row = 0; row < of->own_count; row++) {
            for (uint32_t c = 0; c < HIDDEN; c++) {
                weir_real sum = 0;
                for (uint32_t rank = 0; rank < world.shares->ranks; rank++) {
                    reading r = read_of(rank, round);
                    if (reads(&r, type, of->own[row])) sum += gradient_value(rank, round, type, of->own[row], c);
                }
                assert_true(world.gradients[offset_of(type) + (uint64_t)row * HIDDEN + c] == sum);
                touched += sum != 0;
            }
        }
    }
    for (uint64_t i = 0; i < weir_nn_parameter_count(world.nn); i++)
        touched -= world.gradients[i] != 0;
    assert_int_equal(touched, 0); /* and nothing else has been */
}

static void marks_are_what_is_read(const weir_train_wants *wants, unsigned round) {
    weir_nn_rows *rows;
    assert_ok(weir_nn_rows_open(world.nn, &rows));
    assert_ok(weir_train_shares_mark(wants, rows));
    const weir_nn_tensor *tensor;
    uint32_t count;
    for (uint32_t n = 0, type = 0; (void)weir_nn_rows_look(rows, n, &tensor, &count), tensor; n++) {
        const uint32_t *ids = weir_nn_rows_look(rows, n, &tensor, &count);
        if (!tensor->held) continue;
        uint32_t at = 0;
        for (uint32_t row = 0; row < world.shares->types[type].own_count; row++) {
            bool read = false;
            for (uint32_t rank = 0; rank < world.shares->ranks; rank++) {
                reading r = read_of(rank, round);
                read |= reads(&r, type, world.shares->types[type].own[row]);
            }
            if (read) assert_true(at < count && ids[at++] == row);
        }
        assert_int_equal(at, count);
        type++;
    }
    assert_int_equal(weir_nn_rows_size(rows), 0); /* ranks sum none of them */
    weir_nn_rows_close(rows);
}

static void one_round(weir_train_wants *wants, unsigned round) {
    uint32_t rank = world.shares->rank, distinct = 0;
    reading was = read_of(rank, round), r = was;
    weir_block_range ranges[TYPES] = {{0, r.rows[0]}, {r.rows[0], r.rows[0] + r.rows[1]}};
    const weir_block_view view = {.types = TYPES, .input_ranges = ranges};
    uint32_t own[TYPES][ROWS_MAX * 4], categories[TYPES], *slots[TYPES];
    for (uint32_t type = 0; type < TYPES; type++) {
        categories[type] = weir_nn_vertex(world.shape, type)->category_count;
        assert_true(categories[type] <= 4);
        slots[type] = own[type];
        for (uint32_t i = 0; i < r.rows[type]; i++)
            own[type][i * categories[type] + categories[type] - 1] = r.slots[type][i];
        for (uint32_t slot = 0; slot < weir_nn_vertex(world.shape, type)->known_count; slot++)
            distinct += reads(&was, type, slot);
    }
    weir_nn_brought brought;
    assert_ok(weir_train_wants_list(wants, world.shares, rank, &view, (const uint32_t *const *)slots));
    weir_train_wants_place(wants, world.shares, &view, slots);
    assert_ok(weir_train_wants_tell(wants, world.shares, world.comm));
    weir_comm_traffic before = weir_comm_traffic_of(world.comm);
    assert_ok(weir_train_shares_pull(world.shares, world.nn, world.params, wants, world.comm, &brought));
    weir_comm_traffic after = weir_comm_traffic_of(world.comm);
    assert_int_equal(brought.count, distinct); /* each row once */
    assert_int_equal(after.received - before.received, wants->remote * HIDDEN * sizeof(weir_real));
    for (uint32_t type = 0; type < TYPES; type++) {
        for (uint32_t i = 0; i < r.rows[type]; i++) {
            uint32_t slot = was.slots[type][i], at = own[type][i * categories[type] + categories[type] - 1];
            if (slot == WEIR_NO_SLOT) {
                assert_int_equal(at, WEIR_NO_SLOT);
                continue;
            }
            assert_true(at < brought.count);
            for (uint32_t c = 0; c < HIDDEN; c++) {
                assert_true(brought.rows[at * HIDDEN + c] == row_value(type, slot, c));
                brought.gradients[at * HIDDEN + c] = gradient_value(rank, round, type, slot, c);
            }
        }
    }
    memset(world.gradients, 0, weir_nn_parameter_count(world.nn) * sizeof *world.gradients);
    assert_ok(weir_train_shares_push(world.shares, world.nn, wants, world.comm, world.gradients));
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
    for (uint32_t type = 0; type < TYPES; type++) {
        char name[WEIR_NN_TENSOR_NAME_MAX];
        snprintf(name, sizeof name, "encode.%s.embedding", weir_nn_vertex(world.shape, type)->name);
        const weir_nn_tensor *tensor = weir_nn_tensor_find(whole, name);
        for (uint64_t i = 0; i < (uint64_t)tensor->rows * HIDDEN; i++)
            assert_true(all[tensor->offset + i] == row_value(type, (uint32_t)(i / HIDDEN), (uint32_t)(i % HIDDEN)));
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
    rows_have_one_owner();
    for (uint32_t type = 0; type < TYPES; type++)
        for (uint32_t row = 0; row < world.shares->types[type].own_count; row++)
            for (uint32_t c = 0; c < HIDDEN; c++)
                world.params[offset_of(type) + (uint64_t)row * HIDDEN + c] =
                    row_value(type, world.shares->types[type].own[row], c);
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
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = PEOPLE, .bad = 0.3};
    const weir_parts_opts opts = {.parts = ranks, .method = WEIR_PARTS_RANDOM, .seed = weir_test_seed()};
    rank_prepare(&plan, parts ? &opts : NULL);
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
    uint32_t slots[TYPES][4] = {{0}}, *of[TYPES] = {slots[0], slots[1]};
    weir_block_range ranges[TYPES] = {{0, 0}, {0, 1}};
    const weir_block_view view = {.types = TYPES, .input_ranges = ranges};
    prepare(1, false);
    world_open();
    assert_ok(weir_train_wants_open(1, &wants));
    uint32_t last = weir_nn_vertex(world.shape, 1)->category_count - 1,
             known = weir_nn_vertex(world.shape, 1)->known_count;
    slots[1][last] = known;
    assert_err(weir_train_wants_list(&wants, world.shares, 0, &view, (const uint32_t *const *)of), WEIR_ECORRUPT,
               "a batch names vertex");
    slots[1][last] = known - 1;
    const uint64_t good = (uint64_t)1 << 48 | (uint64_t)1 << 32 | (known - 1);
    const uint64_t bad[] = {good + 1, good + ((uint64_t)1 << 32), good + ((uint64_t)1 << 48)};
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        assert_ok(weir_train_wants_list(&wants, world.shares, 0, &view, (const uint32_t *const *)of));
        assert_int_equal(wants.keys.length, sizeof good);
        assert_memory_equal(wants.keys.bytes, &good, sizeof good);
        if (i == sizeof bad / sizeof *bad) {
            assert_ok(weir_train_wants_tell(&wants, world.shares, world.comm));
            break;
        }
        memcpy(wants.keys.bytes, &bad[i], sizeof bad[i]);
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
                                 "--batch",       "64",   "--hidden",         "16",   "--fanouts", "6,6",
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
    const learn_plan plan = {.seed = 3, .pays = 600, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
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
            shell("cd $folder && mv together before");
            trains(ranks, ranks_train_program(), snapshot, together, "3", optimizer);
            shell("cd $folder; for f in params best moment1 moment2; do cmp before/checkpoint/$f.npy "
                  "together/checkpoint/$f.npy; done; rm -r before together");
        }
        shell("cd $folder && rm -r alone");
    }
}

/* Four ranks with parts, then two with the snapshot, then one: each takes its share of what was saved. */
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
           WEIR_CASE(r4_resumed_by_other_ranks), WEIR_CASE(r4_a_model_has_all_rows))
