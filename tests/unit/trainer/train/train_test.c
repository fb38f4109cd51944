/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_test.c - trainings in this process: what can be learnt is, a leak cannot, a resumed one gives the same bits,
 * and what cannot be learnt is said.
 */
#include <math.h>

#include <weir/store/base/file.h>
#include <weir/store/snapshot/npy.h>
#include <weir/trainer/train/plan.h>

#include "train_fixture.h"

#define NO_OTHERS "trains with the threads that other cases train with"

/* AUROC on the test part of a training on such a world. */
static double auroc_of(const learn_plan *plan) {
    weir_snapshot *snapshot = learn_snapshot_open(plan);
    const weir_train_opts opts = train_opts_of(snapshot);
    weir_trained *trained = train_run(&opts);
    double auroc = weir_trained_look(trained).metrics[WEIR_TARGETS_TEST].auroc;
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
    return auroc;
}

/* --- what is learnt, and what must not be ------------------------------------------------------------------------- */

static void bad_people_are_found_by_their_past(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 1500, .people = 40, .bad = 0.25};
    double auroc = auroc_of(&plan);
    if (!(auroc > 0.75)) fail_msg("AUROC is %.3f", auroc);
}

#define COINS 1200u

/* Labels are thrown: 300 test targets leave AUROC within 0.5 ± 6 deviations of 0.033. */
static void leak(learn_leak which, int64_t leak_us, bool seen) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = COINS, .coin = true, .leak = which, .leak_us = leak_us};
    double auroc = auroc_of(&plan);
    if (seen ? !(auroc > 0.95) : !(fabs(auroc - 0.5) < 0.2)) fail_msg("AUROC is %.3f", auroc);
}

static void a_coin_stays_a_coin(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_NO_LEAK, 0, false);
}

static void i1_an_edge_before_is_seen(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_EDGE, -1, true);
}

static void i1_an_edge_of_that_moment_is_not(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_EDGE, 0, false);
}

static void i1_an_edge_behind_is_not(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_EDGE, 1, false);
}

static void i1_a_row_before_is_seen(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_ROW, -1, true);
}

static void i1_a_row_of_that_moment_is_not(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_ROW, 0, false);
}

static void i1_a_row_behind_is_not(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    leak(LEARN_LEAK_ROW, 1, false);
}

/* --- which parameters are kept ------------------------------------------------------------------------------------ */

typedef struct watching {
    double best;
    uint32_t best_epoch;
} watching;

static weir_err watch(void *context, const weir_train_epoch *epoch) {
    watching *w = context;
    bool best = w->best_epoch == 0 || epoch->validation > w->best;
    assert_int_equal(epoch->best, best);
    if (best) *w = (watching){epoch->validation, epoch->number};
    return WEIR_OK;
}

/* What is judged at the end is judged with the parameters of the best epoch: it scores the same again. */
static void r3_the_best_epoch_is_kept(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 500, .people = 30, .bad = 0.3};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_train_opts opts = train_opts_of(snapshot);
    watching w = {0};
    opts.rate = 0.1; /* so wild that the last epoch is seldom the best */
    opts.epochs = 8;
    opts.patience = 0;
    opts.on_epoch = watch;
    opts.context = &w;
    weir_trained *trained = train_run(&opts);
    assert_int_equal(weir_trained_look(trained).best_epoch, w.best_epoch);
    assert_true(weir_trained_look(trained).metrics[WEIR_TARGETS_VALIDATION].average_precision == w.best);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

/* --- who it is ---------------------------------------------------------------------------------------------------- */

/* Neither pays nor people say anything of themselves: who is bad can be learnt from who it is alone. */
static const char faceless_schema_text[] = "version: 1\n"
                                           "name: faceless\n"
                                           "vertices: {pay: {}, who: {}, shelf: {}}\n"
                                           "relations: {by: {from: pay, to: who}, on: {from: shelf, to: shelf}}\n"
                                           "labels:\n"
                                           "  bad: {vertex: pay, values: [no, yes], absent: no, lag: 1h}\n"
                                           "tasks: {bad: {kind: classify, label: bad, positive: yes}}\n"
                                           "sources:\n"
                                           "  s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}\n";

#define FACES     40u
#define FACE_PAYS 1500u

static uint64_t face_of[FACE_PAYS];

/* The last fifth of the pays is by people of whom one in four is new. */
static weir_snapshot *faceless_snapshot(void) {
    learn_world w;
    weir_snapshot *snapshot;
    char out[4096];
    learn_open(&w, faceless_schema_text, weir_test_seed());
    for (uint64_t n = 0; n < FACE_PAYS; n++) {
        int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
        uint64_t who = weir_rng_below(&w.rng, FACES);
        if (n > FACE_PAYS * 4 / 5 && weir_rng_below(&w.rng, 4) == 0) who += FACES;
        learn_put(&w, LEARN_PAY, n, t, NULL);
        face_of[n] = who;
        learn_bare_edge(&w, n, who, t - 1);
        learn_label(&w, LEARN_BAD, n, who % 2 ? "yes" : "no", t + LEARN_SECOND);
    }
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    learn_build(&w, out, LEARN_START_US + (int64_t)FACE_PAYS * 60 * LEARN_SECOND + LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    return snapshot;
}

/* The caller frees them. */
static weir_real *params_of(const weir_trained *trained) {
    weir_real *params = calloc(weir_nn_parameter_count(weir_trained_look(trained).nn), sizeof *params);
    assert_non_null(params);
    assert_ok(weir_trained_params(trained, params));
    return params;
}

static const uint32_t faces[] = {LEARN_WHO};

/* Of the test's pays by people who were there before: how often one of a bad one scores above one of another. */
static double faceless_auroc(weir_train_opts opts, weir_trained **trainedp) {
    *trainedp = train_run(&opts);
    const weir_trained_view of = weir_trained_look(*trainedp);
    const weir_snapshot_vertices *pays = weir_snapshot_vertices_of(opts.snapshot, LEARN_PAY);
    double scores[2][FACE_PAYS], above = 0;
    uint64_t counts[2] = {0};
    for (uint64_t i = weir_targets_begin(of.targets, WEIR_TARGETS_TEST); i < of.targets->count; i++) {
        uint64_t vertex = (uint64_t)of.targets->targets[i].vertex, n = 0;
        for (int64_t at = pays->key_offsets[vertex]; at < pays->key_offsets[vertex + 1]; at++)
            n = 10 * n + pays->key_bytes[at] - '0';
        uint32_t bad = of.targets->classes_of[i];
        if (face_of[n] < FACES) scores[bad][counts[bad]++] = of.scores[i - of.targets->ends[WEIR_TARGETS_TRAIN]];
    }
    for (uint64_t i = 0; i < counts[1]; i++)
        for (uint64_t k = 0; k < counts[0]; k++)
            above += scores[1][i] > scores[0][k] ? 1 : scores[1][i] == scores[0][k] ? 0.5 : 0;
    print_message("AUROC %.3f\n", above / (double)(counts[0] * counts[1]));
    return above / (double)(counts[0] * counts[1]);
}

static void who_it_is_can_be_learnt(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    weir_snapshot *snapshot = faceless_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    weir_trained *trained;
    opts.epochs = 20;
    opts.patience = 0;
    double blind = faceless_auroc(opts, &trained);
    weir_trained_close(trained);
    assert_true(blind > 0.25 && blind < 0.75);
    opts.embedded = faces;
    opts.embedded_count = 1;
    for (unsigned adagrad = 0; adagrad < 2; adagrad++) {
        opts.adagrad = adagrad;
        opts.embedding_rate = adagrad ? 0.1 : 0;
        assert_true(faceless_auroc(opts, &trained) > 0.95);
        /* Newcomers, who are in the snapshot and in no batch that was learnt from, are as anybody unknown (NN-N8); of
         * the others each has learnt something of its own. */
        const weir_trained_view of = weir_trained_look(trained);
        const weir_nn_inputs *who = weir_nn_vertex(of.shape, LEARN_WHO);
        const weir_nn_tensor *table = weir_nn_tensor_find(of.nn, "encode.who.embedding");
        weir_real *params = params_of(trained);
        assert_int_equal(table->rows, who->known_count);
        for (uint64_t n = 0; n < 2 * FACES; n++) {
            uint32_t slot = weir_nn_slot_of(who, weir_vertex_low(learn_vertex(LEARN_WHO, n)));
            double squares = 0;
            if (slot == WEIR_NO_SLOT) continue; /* a newcomer who never came */
            for (uint32_t c = 0; c < table->cols; c++)
                squares += pow((double)params[table->offset + (uint64_t)slot * table->cols + c], 2);
            assert_true((squares > 0) == (n < FACES));
        }
        free(params);
        weir_trained_close(trained);
    }
    weir_snapshot_close(snapshot);
}

/* Whether something was learnt of who it is. */
static bool face_is_learnt(const weir_trained *trained, const weir_real *params, uint64_t n) {
    const weir_trained_view of = weir_trained_look(trained);
    const weir_nn_tensor *table = weir_nn_tensor_find(of.nn, "encode.who.embedding");
    uint32_t slot = weir_nn_slot_of(weir_nn_vertex(of.shape, LEARN_WHO), weir_vertex_low(learn_vertex(LEARN_WHO, n)));
    bool any = false;
    for (uint32_t c = 0; slot != WEIR_NO_SLOT && c < table->cols; c++)
        any = any || params[table->offset + (uint64_t)slot * table->cols + c] != 0;
    return any;
}

/* Newcomers come after four fifths of the pays, in the validation: who learns from it has learnt something of most of
 * them (dropout may hide one that came once). What is said of the validation is the first learning's. */
static void r5_learnt_again_with_the_validation(void **state) {
    (void)state;
    weir_snapshot *snapshot = faceless_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    uint32_t newcomers = 0, learnt = 0;
    opts.embedded = faces;
    opts.embedded_count = 1;
    opts.cut.validation = 0.4;
    opts.cut.test = 0.1;
    opts.average = 0.3;
    weir_trained *once = train_run(&opts);
    opts.again = true;
    weir_trained *again = train_run(&opts);
    const weir_trained_view a = weir_trained_look(once), b = weir_trained_look(again);
    weir_real *of_once = params_of(once), *of_again = params_of(again);
    for (uint64_t n = FACE_PAYS * 4 / 5; n < FACE_PAYS * 85 / 100; n++) {
        if (face_of[n] < FACES) continue;
        newcomers++;
        assert_false(face_is_learnt(once, of_once, face_of[n]));
        learnt += face_is_learnt(again, of_again, face_of[n]);
    }
    assert_true(newcomers > 0 && learnt >= newcomers * 3 / 4);
    assert_int_equal(a.best_epoch, b.best_epoch);
    assert_true(a.calibration.slope == b.calibration.slope && a.calibration.offset == b.calibration.offset);
    assert_memory_equal(a.targets->ends, b.targets->ends, sizeof a.targets->ends);
    for (uint64_t i = 0; i < a.targets->ends[WEIR_TARGETS_VALIDATION] - a.targets->ends[WEIR_TARGETS_TRAIN]; i++)
        assert_true(a.scores[i] == b.scores[i]);
    assert_true(a.metrics[WEIR_TARGETS_VALIDATION].log_loss == b.metrics[WEIR_TARGETS_VALIDATION].log_loss);
    assert_true(a.metrics[WEIR_TARGETS_TEST].targets == b.metrics[WEIR_TARGETS_TEST].targets);
    free(of_once);
    free(of_again);
    weir_trained_close(once);
    weir_trained_close(again);
    weir_snapshot_close(snapshot);
}

static void embeddings_that_could_not_be_learnt(void **state) {
    (void)state;
    static const uint32_t shelf[] = {LEARN_WHO + 1}, twice[] = {LEARN_WHO, LEARN_WHO};
    weir_snapshot *snapshot = faceless_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.embedded = shelf;
    opts.embedded_count = 1;
    train_refused(&opts, WEIR_EUSAGE, "vertex type 'shelf' has no vertices to embed");
    opts.embedded = twice;
    opts.embedded_count = 2;
    train_refused(&opts, WEIR_EUSAGE, "'who'");
    opts.embedded_count = 1;
    opts.unknown = 1;
    train_refused(&opts, WEIR_EUSAGE, "unknown is 1");
    opts.unknown = 0;
    opts.embedding_rate = 11;
    train_refused(&opts, WEIR_EUSAGE, "embedding rate is 11");
    weir_snapshot_close(snapshot);
}

/* --- the same again ----------------------------------------------------------------------------------------------- */

static weir_snapshot *small_snapshot(void) {
    const learn_plan plan = {.seed = 3, .pays = 600, .people = 30, .bad = 0.3};
    return learn_snapshot_open(&plan);
}

static void same_bits(const weir_trained *a, const weir_trained *b) {
    uint64_t count = weir_nn_parameter_count(weir_trained_look(a).nn);
    assert_int_equal(weir_nn_parameter_count(weir_trained_look(b).nn), count);
    weir_real *of_a = params_of(a), *of_b = params_of(b);
    assert_memory_equal(of_a, of_b, count * sizeof *of_a);
    free(of_a);
    free(of_b);
    assert_int_equal(weir_trained_look(a).best_epoch, weir_trained_look(b).best_epoch);
    const weir_calibration x = weir_trained_look(a).calibration, y = weir_trained_look(b).calibration;
    assert_true(x.slope == y.slope && x.offset == y.offset);
}

static void two_trainings_give_the_same_bits(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    const weir_train_opts opts = train_opts_of(snapshot);
    weir_trained *one = train_run(&opts), *two = train_run(&opts);
    same_bits(one, two);
    weir_trained_close(one);
    weir_trained_close(two);
    weir_snapshot_close(snapshot);
}

typedef struct stopping {
    uint32_t after;
} stopping;

static weir_err stop(void *context, const weir_train_epoch *epoch) {
    const stopping *s = context;
    return epoch->number == s->after ? WEIR_ERR(WEIR_ECLOSED, "stopped by the test") : WEIR_OK;
}

static void resumed(weir_train_opts opts, const char *folder) {
    weir_trained *whole = train_run(&opts);
    opts.folder = folder;
    for (uint32_t after = 1; after < opts.epochs; after += 2) {
        stopping s = {after};
        opts.on_epoch = stop;
        opts.context = &s;
        train_refused(&opts, WEIR_ECLOSED, "stopped by the test");
        opts.resume = true;
    }
    opts.on_epoch = NULL;
    weir_trained *parts = train_run(&opts);
    same_bits(whole, parts);
    weir_trained_close(whole);
    weir_trained_close(parts);
}

static void r2_resumed_is_as_if_never_stopped(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    resumed(opts, weir_test_path("run"));
    opts.embedded = faces;
    opts.embedded_count = 1;
    resumed(opts, weir_test_path("run-known"));
    opts.adagrad = true;
    opts.embedding_rate = 0.05;
    resumed(opts, weir_test_path("run-adagrad"));
    opts = train_opts_of(snapshot);
    opts.embedded = faces;
    opts.embedded_count = 1;
    opts.schedule = WEIR_TRAIN_COSINE;
    opts.edge_dropout = 0.3;
    opts.focal = 2;
    opts.rate_rise = 30; /* longer than an epoch */
    resumed(opts, weir_test_path("run-schedule"));
    opts.network = WEIR_NN_GAT;
    opts.attention_dropout = 0.3;
    opts.average = 0.7;
    resumed(opts, weir_test_path("run-attention"));
    weir_snapshot_close(snapshot);
}

/* --- the average of epochs ---------------------------------------------------------------------------------------- */

typedef struct averaging {
    const char *folder;
    double keep, weight, *sum; /* of epochs that count `keep` of the one after them */
    uint64_t count;
} averaging;

static weir_npy_map *array_of(const char *folder, const char *name, const weir_real **numbersp, uint64_t *countp) {
    char path[4096];
    weir_npy_map *map;
    weir_npy_array array;
    snprintf(path, sizeof path, "%s/checkpoint/%s.npy", folder, name);
    assert_ok(weir_npy_map_open(path, &map, &array));
    *numbersp = array.data;
    *countp = array.count;
    return map;
}

static weir_err add_up(void *context, const weir_train_epoch *epoch) {
    averaging *a = context;
    const weir_real *params, *average, *best;
    weir_npy_map *maps[] = {array_of(a->folder, "params", &params, &a->count),
                            array_of(a->folder, "average", &average, &a->count),
                            array_of(a->folder, "best", &best, &a->count)};
    if (!a->sum) a->sum = calloc(a->count, sizeof *a->sum);
    assert_non_null(a->sum);
    a->weight = a->keep * a->weight + 1;
    for (uint64_t i = 0; i < a->count; i++) {
        a->sum[i] = a->keep * a->sum[i] + (double)params[i];
        const double mean = a->sum[i] / a->weight;
        if (!(fabs((double)average[i] - mean) <= 1e-5 * (1 + fabs(mean))))
            fail_msg("after epoch %u parameter %llu is %g on average, not %g", epoch->number, (unsigned long long)i,
                     (double)average[i], mean);
    }
    if (epoch->best) assert_memory_equal(best, average, a->count * sizeof *best);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        weir_npy_map_close(maps[i]);
    return WEIR_OK;
}

/* Against a sum of all that the checkpoints had; and the way itself is the one of a training without an average. */
static void an_average_is_of_what_epochs_came_to(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    averaging a = {.folder = weir_test_path("run-average"), .keep = 0.7};
    weir_train_opts opts = train_opts_of(snapshot);
    const weir_real *with, *without;
    uint64_t count;
    opts.patience = 0;
    opts.folder = weir_test_path("run-alone");
    weir_trained_close(train_run(&opts));
    opts.folder = a.folder;
    opts.average = a.keep;
    opts.on_epoch = add_up;
    opts.context = &a;
    weir_trained_close(train_run(&opts));
    weir_npy_map *one = array_of(a.folder, "params", &with, &count);
    weir_npy_map *other = array_of(weir_test_path("run-alone"), "params", &without, &count);
    assert_int_equal(count, a.count);
    assert_memory_equal(with, without, count * sizeof *with);
    weir_npy_map_close(one);
    weir_npy_map_close(other);
    free(a.sum);
    weir_snapshot_close(snapshot);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

/* Options of one value, of which the checkpoint knows the one and the other is given. */
static void one_for_another(weir_train_opts opts) {
    double *const of[] = {&opts.attention_dropout, &opts.average, &opts.l2, &opts.edge_dropout, &opts.input_dropout};
    enum { OPTIONS = sizeof of / sizeof of[0] };
    char folder[4096];
    for (unsigned i = 0; i < OPTIONS; i++) {
        snprintf(folder, sizeof folder, "%s.%u", weir_test_path("run-one"), i);
        opts.folder = folder;
        opts.resume = false;
        *of[i] = 0.5;
        weir_trained_close(train_run(&opts));
        *of[i] = 0;
        opts.resume = true;
        for (unsigned other = 0; other < OPTIONS; other++) {
            if (other == i) continue;
            *of[other] = 0.5;
            train_refused(&opts, WEIR_EVERSION, "of other options");
            *of[other] = 0;
        }
    }
}

static void resume_with_other_options(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.folder = weir_test_path("run");
    opts.epochs = 1;
    weir_trained_close(train_run(&opts));
    opts.resume = true;
    opts.rate *= 2;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.rate /= 2;
    opts.hidden *= 2;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.hidden /= 2;
    opts.seed++;
    train_refused(&opts, WEIR_EVERSION, "another seed");
    opts.seed--;
    opts.embedded = faces;
    opts.embedded_count = 1;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.embedded_count = 0;
    opts.adagrad = true;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.adagrad = false;
    opts.rate_rise = 10;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.rate_rise = 0;
    opts.edge_dropout = 0.2;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.edge_dropout = 0;
    opts.attention_dropout = 0.2;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.attention_dropout = 0;
    opts.average = 0.5;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.average = 0;
    opts.network = WEIR_NN_GAT;
    one_for_another(opts);
    opts.network = WEIR_NN_MEAN;
    opts.focal = 2;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.focal = 0;
    opts.schedule = WEIR_TRAIN_COSINE;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.schedule = WEIR_TRAIN_CONSTANT;
    weir_snapshot_close(snapshot);
    const learn_plan plan = {.seed = 3, .pays = 601, .people = 30, .bad = 0.3};
    opts.snapshot = snapshot = learn_snapshot_open(&plan);
    train_refused(&opts, WEIR_EVERSION, "another snapshot");
    weir_snapshot_close(snapshot);
}

/* What falls by a cosine falls by the epochs that there will be: others are another training. */
static void a_schedule_ends_where_it_was_to(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    stopping s = {1};
    opts.folder = weir_test_path("run");
    opts.schedule = WEIR_TRAIN_COSINE;
    opts.epochs = 4;
    opts.on_epoch = stop;
    opts.context = &s;
    train_refused(&opts, WEIR_ECLOSED, "stopped by the test");
    opts.on_epoch = NULL;
    opts.resume = true;
    opts.epochs = 5;
    train_refused(&opts, WEIR_EVERSION, "of other options");
    opts.epochs = 4;
    weir_trained_close(train_run(&opts));
    weir_snapshot_close(snapshot);
}

typedef struct falling {
    const weir_train_opts *opts;
    double of_first[8], of_again[8]; /* rates, by epoch */
    uint32_t agains;
} falling;

static weir_err note_rate(void *context, const weir_train_epoch *epoch) {
    falling *f = context;
    assert_in_range(epoch->number, 1, 7);
    *(epoch->again ? &f->of_again[epoch->number] : &f->of_first[epoch->number]) = epoch->rate / f->opts->rate;
    f->agains += epoch->again;
    return WEIR_OK;
}

/* The second learning's rates are the first one's, however early that stopped: what was best was so by them. */
static void what_learns_again_falls_as_the_first_did(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    falling f = {.opts = &opts};
    opts.epochs = 7;
    opts.patience = 3;
    opts.schedule = WEIR_TRAIN_COSINE;
    opts.rate_end = 0.25;
    opts.again = true;
    opts.on_epoch = note_rate;
    opts.context = &f;
    weir_trained *trained = train_run(&opts);
    const uint32_t best = weir_trained_look(trained).best_epoch;
    assert_int_equal(f.agains, best);
    assert_true(fabs(f.of_first[1] - 1) < 1e-12);
    assert_true(fabs(f.of_first[2] - (0.25 + 0.375 * (1 + cos(M_PI / 7)))) < 1e-12);
    for (uint32_t epoch = 1; epoch <= best; epoch++)
        assert_true(f.of_again[epoch] == f.of_first[epoch]);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

static void a_torn_checkpoint_is_refused(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.folder = weir_test_path("run");
    opts.epochs = 1;
    weir_trained_close(train_run(&opts));
    opts.resume = true;
    assert_ok(weir_file_replace(weir_test_path("run/checkpoint/params.npy"), "torn", 4));
    train_refused(&opts, WEIR_ECORRUPT, "params.npy");
    assert_ok(weir_file_remove(weir_test_path("run/checkpoint/MANIFEST")));
    train_refused(&opts, WEIR_ECORRUPT, "has lost its MANIFEST");
    assert_true(weir_path_exists(weir_test_path("run/checkpoint/params.npy"))); /* nothing has replaced it */
    weir_snapshot_close(snapshot);
}

static void options_out_of_range(void **state) {
    (void)state;
    static const uint32_t none[] = {0, 0};
    weir_train_along alongs[2 * WEIR_SCHEMA_RELATIONS_MAX] = {{.relation = 0}};
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.rate = 0;
    train_refused(&opts, WEIR_EUSAGE, "rate is 0");
    opts = train_opts_of(snapshot);
    opts.reach.layers = 9;
    train_refused(&opts, WEIR_EUSAGE, "layers is 9");
    opts = train_opts_of(snapshot);
    opts.dropout = NAN;
    train_refused(&opts, WEIR_EUSAGE, "dropout is nan");
    opts = train_opts_of(snapshot);
    opts.rate_end = 1.5;
    train_refused(&opts, WEIR_EUSAGE, "share at the end is 1.5");
    opts = train_opts_of(snapshot);
    opts.alerts = 0;
    train_refused(&opts, WEIR_EUSAGE, "alerts is 0");
    opts.alerts = 1000001;
    train_refused(&opts, WEIR_EUSAGE, "alerts is 1e+06");
    opts = train_opts_of(snapshot);
    opts.reach.alongs = alongs;
    opts.reach.along_count = 2 * weir_schema_relation_count(weir_snapshot_schema(snapshot));
    for (uint32_t i = 0; i < opts.reach.along_count; i++)
        alongs[i] =
            (weir_train_along){.relation = (uint16_t)(i / 2), .direction = i % 2 ? WEIR_IN : WEIR_OUT, .fanouts = none};
    train_refused(&opts, WEIR_EUSAGE, "no relation is followed");
    weir_snapshot_close(snapshot);
}

static weir_err mistake(void *context, const weir_train_epoch *epoch) {
    (void)context;
    return WEIR_ERR(WEIR_EINVAL, "a mistake in epoch %u", epoch->number);
}

/* Days after its options were found right, a training blames nobody for them. */
static void what_is_invalid_later_is_no_wrong_usage(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.on_epoch = mistake;
    train_refused(&opts, WEIR_EINVAL, "a mistake in epoch 1");
    weir_snapshot_close(snapshot);
}

/* Who owns what is not known where one process pretends to be several. */
static void a_plan_that_pretends_has_no_local_batches(void **state) {
    (void)state;
    weir_snapshot *snapshot = small_snapshot();
    weir_train_opts opts = train_opts_of(snapshot);
    weir_train_plan *plan = NULL;
    weir_comm *comm = NULL;
    opts.local = true;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    for (uint32_t ranks = 1; ranks <= 3; ranks++) {
        assert_err(weir_train_plan_make(comm, &opts, ranks, &plan), WEIR_EINVAL, "local");
        assert_null(plan);
    }
    weir_comm_stop(comm);
    weir_snapshot_close(snapshot);
}

/* No number that a row can hold ends a training. */
static void numbers_that_are_none(void **state) {
    (void)state;
    static const double wild[] = {1e300, -1e300, 3e38, -3e38, 1e39, 1, 0}; /* in float some are infinite */
    learn_world w;
    weir_snapshot *snapshot;
    learn_open(&w, learn_schema_text, 1);
    for (uint64_t n = 0; n < 400; n++) {
        int64_t t = LEARN_START_US + (int64_t)n * LEARN_SECOND;
        learn_put(&w, LEARN_PAY, n, t, &wild[n % 7]);
        learn_edge(&w, n, n % 9, t - 1, wild[n % 5]);
        learn_label(&w, LEARN_BAD, n, n % 3 ? "no" : "yes", t + 1);
    }
    const char *out = weir_test_path("snapshot");
    learn_build(&w, out, LEARN_START_US + 2 * LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    weir_train_opts opts = train_opts_of(snapshot);
    weir_trained *trained = train_run(&opts);
    const double *scores = weir_trained_look(trained).scores;
    const weir_targets *targets = weir_trained_look(trained).targets;
    for (uint64_t i = targets->ends[WEIR_TARGETS_TRAIN]; i < targets->count; i++)
        assert_true(isfinite(scores[i - targets->ends[WEIR_TARGETS_TRAIN]]));
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(bad_people_are_found_by_their_past), WEIR_CASE(a_coin_stays_a_coin),
           WEIR_CASE(i1_an_edge_before_is_seen), WEIR_CASE(i1_an_edge_of_that_moment_is_not),
           WEIR_CASE(i1_an_edge_behind_is_not), WEIR_CASE(i1_a_row_before_is_seen),
           WEIR_CASE(i1_a_row_of_that_moment_is_not), WEIR_CASE(i1_a_row_behind_is_not),
           WEIR_CASE(r3_the_best_epoch_is_kept), WEIR_CASE(who_it_is_can_be_learnt),
           WEIR_CASE(r5_learnt_again_with_the_validation), WEIR_CASE(embeddings_that_could_not_be_learnt),
           WEIR_CASE(two_trainings_give_the_same_bits), WEIR_CASE(r2_resumed_is_as_if_never_stopped),
           WEIR_CASE(an_average_is_of_what_epochs_came_to), WEIR_CASE(resume_with_other_options),
           WEIR_CASE(a_schedule_ends_where_it_was_to), WEIR_CASE(what_learns_again_falls_as_the_first_did),
           WEIR_CASE(a_torn_checkpoint_is_refused), WEIR_CASE(options_out_of_range),
           WEIR_CASE(what_is_invalid_later_is_no_wrong_usage), WEIR_CASE(a_plan_that_pretends_has_no_local_batches),
           WEIR_CASE(numbers_that_are_none))
