/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets_test.c - the targets of random snapshots against a walk over what was put in, written down beside it.
 *
 * Pays are put twice or only named by edges, labels come early, late, several times or never.
 */
#include <weir/trainer/train/targets.h>

#include "learn_fixture.h"

#define PAYS   600u
#define SAID   3u /* labels of a pay at most */
#define SPAN_S 86400u

#define BY_TIME(of, past, share, last)                                                   \
    (weir_targets_opts) {                                                                \
        .task = (of), .cut = {.warm_up = (past), .validation = (share), .test = (last) } \
    }

typedef struct said {
    int64_t time_us;
    uint32_t value;
} said;

typedef struct pay {
    int64_t put_us; /* NEVER: only named by an edge */
    said labels[2][SAID];
    unsigned counts[2];
} pay;

typedef struct expected {
    int64_t time_us;
    weir_vertex vertex;
    uint32_t class_of;
} expected;

typedef struct world {
    learn_world learn;
    weir_snapshot *snapshot;
    int64_t as_of_us;
    pay pays[PAYS];
    expected expected[PAYS * SAID];
    uint64_t count, young, unlabelled;
} world;

static int64_t some_time(world *w) {
    return LEARN_START_US + (int64_t)weir_rng_below(&w->learn.rng, SPAN_S) * LEARN_SECOND +
           (int64_t)(w->learn.offset % 1000000);
}

static void say(world *w, uint64_t n, uint32_t label, int64_t time_us) {
    static const char *const words[2][3] = {{"no", "yes", "yes"}, {"low", "mid", "high"}};
    uint32_t value = (uint32_t)weir_rng_below(&w->learn.rng, label == LEARN_BAD ? 2 : 3);
    pay *p = &w->pays[n];
    learn_label(&w->learn, label, n, words[label][value], time_us);
    if (time_us < w->as_of_us) p->labels[label][p->counts[label]++] = (said){time_us, value};
}

static void make_pay(world *w, uint64_t n) {
    pay *p = &w->pays[n];
    int64_t t = some_time(w);
    *p = (pay){.put_us = WEIR_SNAPSHOT_NEVER};
    learn_edge(&w->learn, n, n % 7, t, 1);
    if (weir_rng_below(&w->learn.rng, 10)) {
        p->put_us = t;
        const double x = weir_rng_double(&w->learn.rng);
        learn_put(&w->learn, LEARN_PAY, n, t, &x);
        learn_put(&w->learn, LEARN_PAY, n, t + 5 * LEARN_SECOND, &x); /* the first put is what counts */
    }
    /* No two of a pay at one time, since of those no order is promised. */
    for (uint32_t label = 0; label < 2; label++) {
        for (uint64_t i = weir_rng_below(&w->learn.rng, SAID + 1); i > 0; i--)
            say(w, n, label, t + (int64_t)weir_rng_below(&w->learn.rng, 3600) * 2 * LEARN_SECOND + (int64_t)i);
    }
}

static void world_open_at(world *w, uint64_t seed, int64_t as_of_us) {
    *w = (world){.as_of_us = as_of_us};
    learn_open(&w->learn, learn_schema_text, seed);
    for (uint64_t n = 0; n < PAYS; n++)
        make_pay(w, n);
    const char *out = learn_path("snapshot");
    learn_build(&w->learn, out, w->as_of_us);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &w->snapshot));
}

static void world_open(world *w, uint64_t seed) {
    world_open_at(w, seed, LEARN_START_US + (int64_t)SPAN_S * LEARN_SECOND);
}

/* --- the naive walk ----------------------------------------------------------------------------------------------- */

static void expect(world *w, int64_t time_us, uint64_t n, uint32_t class_of) {
    w->expected[w->count++] = (expected){time_us, learn_vertex(LEARN_PAY, n), class_of};
}

/* The newest label within the horizon, or what absence means. */
static void walk_put(world *w, uint64_t n, uint32_t label, int64_t horizon_us, uint32_t absent) {
    const pay *p = &w->pays[n];
    const said *newest = NULL;
    if (p->put_us == WEIR_SNAPSHOT_NEVER || p->put_us >= w->as_of_us) return;
    if (p->put_us + LEARN_RIPE_US > w->as_of_us) {
        w->young++;
        return;
    }
    for (unsigned i = 0; i < p->counts[label]; i++) {
        const said *s = &p->labels[label][i];
        if (s->time_us <= p->put_us + horizon_us && (!newest || s->time_us > newest->time_us)) newest = s;
    }
    if (newest || absent != WEIR_SCHEMA_NONE)
        expect(w, p->put_us, n, newest ? newest->value : absent);
    else
        w->unlabelled++;
}

/* Judged just before the label came, or with the put that it came with. What was never put is nobody's question. */
static void walk_label(world *w, uint64_t n, const said *s) {
    if (w->pays[n].put_us == WEIR_SNAPSHOT_NEVER) return;
    expect(w, s->time_us - (s->time_us > w->pays[n].put_us), n, s->value);
}

static int by_time(const void *a, const void *b) {
    const expected *x = a, *y = b;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static void walk(world *w, uint32_t task) {
    w->count = w->young = w->unlabelled = 0;
    for (uint64_t n = 0; n < PAYS; n++) {
        if (task == LEARN_TASK_BAD) walk_put(w, n, LEARN_BAD, LEARN_RIPE_US, 0);
        if (task == LEARN_TASK_RANK) walk_put(w, n, LEARN_RANK, LEARN_RIPE_US / 2, WEIR_SCHEMA_NONE);
        for (unsigned i = 0; task == LEARN_TASK_SAID && i < w->pays[n].counts[LEARN_BAD]; i++)
            walk_label(w, n, &w->pays[n].labels[LEARN_BAD][i]);
    }
    qsort(w->expected, w->count, sizeof *w->expected, by_time);
}

static void compare(const world *w, const weir_targets *t) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, LEARN_PAY);
    assert_int_equal(t->count, w->count);
    assert_int_equal(t->young, w->young);
    assert_int_equal(t->unlabelled, w->unlabelled);
    for (uint64_t i = 0; i < t->count; i++) {
        assert_true(t->targets[i].before_us == w->expected[i].time_us);
        assert_true(weir_vertex_of(v->ids[t->targets[i].vertex]) == w->expected[i].vertex);
        assert_int_equal(t->classes_of[i], w->expected[i].class_of);
    }
}

/* Each part ends at the first place from its share on that parts two times. */
static void cuts(const weir_targets *t, const weir_targets_opts *opts) {
    const double shares[] = {1 - opts->cut.validation - opts->cut.test, 1 - opts->cut.test, 1};
    for (unsigned part = 0; part < WEIR_TARGETS_PARTS; part++) {
        uint64_t end = t->ends[part];
        assert_true(end >= (uint64_t)(shares[part] * (double)t->count));
        if (end < t->count) assert_true(t->targets[end - 1].before_us < t->targets[end].before_us);
    }
}

/* With validation's among those that are learnt from, all else is as without; parted again, all is as it was. */
static void merged_is_the_same_cut(const weir_snapshot *snapshot, const weir_targets_opts *opts,
                                   const weir_targets *t) {
    weir_targets *m = NULL;
    assert_ok(weir_targets_open(snapshot, opts, &m));
    const uint64_t test = t->ends[WEIR_TARGETS_VALIDATION], learnt = t->ends[WEIR_TARGETS_TRAIN];
    weir_targets_merge(m);
    assert_int_equal(m->count, t->count);
    assert_int_equal(m->ends[WEIR_TARGETS_TRAIN], test);
    assert_int_equal(m->ends[WEIR_TARGETS_VALIDATION], test);
    assert_true(m->to_us[WEIR_TARGETS_TRAIN] == t->to_us[WEIR_TARGETS_VALIDATION]);
    for (uint64_t i = test; i < t->count; i++)
        assert_int_equal(m->days[i - test], t->days[i - learnt]);
    for (uint32_t c = 0; c < t->classes; c++) {
        uint64_t seen = 0;
        for (uint64_t i = 0; i < test; i++)
            seen += t->classes_of[i] == c;
        assert_int_equal(m->class_counts[WEIR_TARGETS_TRAIN * t->classes + c], seen);
        assert_int_equal(m->class_counts[WEIR_TARGETS_VALIDATION * t->classes + c], 0);
    }
    weir_targets_unmerge(m);
    assert_memory_equal(m->ends, t->ends, sizeof t->ends);
    assert_memory_equal(m->to_us, t->to_us, sizeof t->to_us);
    assert_memory_equal(m->days, t->days, (t->count - learnt) * sizeof *t->days);
    assert_memory_equal(m->class_counts, t->class_counts,
                        (size_t)WEIR_TARGETS_PARTS * t->classes * sizeof *t->class_counts);
    weir_targets_merge(m); /* which is closed as well */
    weir_targets_close(m);
}

static void t1_t2_of_random_snapshots(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    world *w = malloc(sizeof *w);
    assert_non_null(w);
    world_open(w, seed);
    for (uint32_t task = LEARN_TASK_BAD; task <= LEARN_TASK_SAID; task++) {
        const weir_targets_opts opts = BY_TIME(task, 0, 0.2, 0.3);
        weir_targets *t = NULL;
        walk(w, task);
        assert_ok(weir_targets_open(w->snapshot, &opts, &t));
        compare(w, t);
        cuts(t, &opts);
        merged_is_the_same_cut(w->snapshot, &opts, t);
        weir_targets_close(t);
    }
    weir_snapshot_close(w->snapshot);
    free(w);
}

static void same_targets(const world *x, const weir_targets *a, uint64_t a_begin, const world *y, const weir_targets *b,
                         uint64_t b_begin, uint64_t count) {
    const weir_snapshot_vertices *of_x = weir_snapshot_vertices_of(x->snapshot, LEARN_PAY);
    const weir_snapshot_vertices *of_y = weir_snapshot_vertices_of(y->snapshot, LEARN_PAY);
    for (uint64_t i = 0; i < count; i++) {
        const weir_target *s = &a->targets[a_begin + i], *t = &b->targets[b_begin + i];
        assert_true(s->before_us == t->before_us && s->event == t->event);
        assert_memory_equal(&of_x->ids[s->vertex], &of_y->ids[t->vertex], sizeof of_x->ids[0]);
        assert_int_equal(a->classes_of[a_begin + i], b->classes_of[b_begin + i]);
    }
}

/* What is learnt from is what a snapshot as of that time has, and the test is what one of the end has of the span. */
static void cut_by_times_is_a_snapshot_of_that_time(const world *early, const world *late, uint32_t task,
                                                    double warm_up) {
    const int64_t from_us = early->as_of_us + 600 * LEARN_SECOND, to_us = from_us + 7200 * LEARN_SECOND;
    weir_targets_opts opts = {.task = task,
                              .cut = {.split = WEIR_TARGETS_BY_TIMES,
                                      .warm_up = warm_up,
                                      .validation = 0.3,
                                      .known_us = early->as_of_us,
                                      .test_from_us = from_us,
                                      .test_to_us = to_us}};
    weir_targets *cut = NULL, *then = NULL, *all = NULL;
    assert_ok(weir_targets_open(late->snapshot, &opts, &cut));
    assert_ok(weir_targets_open(early->snapshot, &BY_TIME(task, warm_up, 0.3, 0.3), &then));
    assert_ok(weir_targets_open(late->snapshot, &BY_TIME(task, 0, 0.2, 0.2), &all));
    const uint64_t learnt = cut->ends[WEIR_TARGETS_VALIDATION];
    assert_int_equal(learnt, then->count);
    assert_int_equal(cut->untold, then->young);
    assert_true(cut->ends[WEIR_TARGETS_TRAIN] >= (uint64_t)(0.7 * (double)learnt));
    same_targets(late, cut, 0, early, then, 0, learnt);

    uint64_t begin = 0, end;
    while (begin < all->count && all->targets[begin].before_us < from_us)
        begin++;
    for (end = begin; end < all->count && all->targets[end].before_us < to_us;)
        end++;
    assert_true(end > begin);
    assert_int_equal(cut->count - learnt, end - begin);
    same_targets(late, cut, learnt, late, all, begin, end - begin);
    weir_targets_close(cut);
    weir_targets_close(then);
    weir_targets_close(all);
}

static void t7_of_random_snapshots(void **state) {
    (void)state;
    const uint64_t seed = weir_test_seed();
    weir_rng rng = weir_rng_stream(seed, 7, 0);
    world *early = malloc(sizeof *early), *late = malloc(sizeof *late);
    assert_non_null(early);
    assert_non_null(late);
    const int64_t known_us =
        LEARN_START_US + (int64_t)(SPAN_S / 8 * 6 + weir_rng_below(&rng, SPAN_S / 8)) * LEARN_SECOND + 123457;
    world_open_at(early, seed, known_us);
    world_open(late, seed);
    for (uint32_t task = LEARN_TASK_BAD; task <= LEARN_TASK_SAID; task++) {
        cut_by_times_is_a_snapshot_of_that_time(early, late, task, 0);
        cut_by_times_is_a_snapshot_of_that_time(early, late, task, 0.1);
    }
    weir_snapshot_close(early->snapshot);
    weir_snapshot_close(late->snapshot);
    free(early);
    free(late);
}

/* A label of the very moment of the cut is not known yet, and a target whose time for labels ends then is ripe. */
static void t7_the_moment_of_the_cut(void **state) {
    (void)state;
    enum { PUT = 200 };
    const int64_t step_us = 60 * LEARN_SECOND, known_us = LEARN_START_US + 100 * step_us + LEARN_RIPE_US;
    learn_world w;
    weir_snapshot *snapshot;
    weir_targets *t = NULL;
    const char *out = learn_path("snapshot");
    learn_open(&w, learn_schema_text, weir_test_seed());
    for (uint64_t n = 0; n < PUT; n++) {
        const double x = 1;
        learn_put(&w, LEARN_PAY, n, LEARN_START_US + (int64_t)n * step_us, &x);
        if (n % 2) learn_label(&w, LEARN_BAD, n, "yes", LEARN_START_US + (int64_t)n * step_us + step_us);
    }
    learn_label(&w, LEARN_BAD, 100, "yes", known_us); /* that of the last ripe one comes when its time ends */
    learn_build(&w, out, LEARN_START_US + PUT * step_us + 2 * LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    weir_targets_opts opts = {.task = LEARN_TASK_BAD,
                              .cut = {.split = WEIR_TARGETS_BY_TIMES,
                                      .validation = 0.25,
                                      .known_us = known_us,
                                      .test_from_us = known_us,
                                      .test_to_us = known_us + 1}};
    assert_ok(weir_targets_open(snapshot, &opts, &t));
    assert_int_equal(t->ends[WEIR_TARGETS_VALIDATION], 101);
    assert_int_equal(t->classes_of[100], 0);
    assert_int_equal(t->untold, 59);                                  /* of 101 to 159, all before the cut */
    assert_int_equal(t->count - t->ends[WEIR_TARGETS_VALIDATION], 1); /* 160, whatever class it has */
    weir_targets_close(t);
    opts.cut.test_from_us = known_us - 1;
    assert_err(weir_targets_open(snapshot, &opts, &t), WEIR_EINVAL, "begins when what is learnt from was known");
    weir_snapshot_close(snapshot);
}

/* As many targets as ten share each moment, so that most cuts would part some. */
static void t1_a_cut_parts_no_moment(void **state) {
    (void)state;
    enum { MOMENTS = 40, EACH = 10 };
    learn_world w;
    weir_snapshot *snapshot;
    const char *out = weir_test_path("snapshot");
    learn_open(&w, learn_schema_text, weir_test_seed());
    for (uint64_t n = 0; n < MOMENTS * EACH; n++) {
        int64_t time_us = LEARN_START_US + (int64_t)(n / EACH) * 60 * LEARN_SECOND;
        const double x = 1;
        learn_put(&w, LEARN_PAY, n, time_us, &x);
        learn_label(&w, LEARN_BAD, n, n % 3 ? "no" : "yes", time_us + LEARN_SECOND);
    }
    learn_build(&w, out, LEARN_START_US + 2 * LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    for (unsigned share = 10; share < 40; share++) {
        const weir_targets_opts opts = BY_TIME(LEARN_TASK_BAD, 0, share / 100.0, 0.11 + share / 100.0);
        weir_targets *t = NULL;
        assert_ok(weir_targets_open(snapshot, &opts, &t));
        cuts(t, &opts);
        for (unsigned part = 0; part < WEIR_TARGETS_PARTS; part++) {
            assert_int_equal(t->ends[part] % EACH, 0);
            assert_true(t->from_us[part] == t->targets[weir_targets_begin(t, part)].before_us);
            assert_true(t->to_us[part] == t->targets[t->ends[part] - 1].before_us);
        }
        weir_targets_close(t);
    }
    weir_snapshot_close(snapshot);
}

static void a_warm_up_is_only_past(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 400, .people = 20, .bad = 0.3};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_targets *all = NULL, *late = NULL;
    assert_ok(weir_targets_open(snapshot, &BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2), &all));
    assert_ok(weir_targets_open(snapshot, &BY_TIME(LEARN_TASK_BAD, 0.5, 0.2, 0.2), &late));
    int64_t first_us = all->targets[0].before_us, last_us = all->targets[all->count - 1].before_us;
    uint64_t skipped = all->count - late->count;
    assert_true(all->targets[skipped].before_us >= first_us + (last_us - first_us) / 2);
    assert_true(all->targets[skipped - 1].before_us < first_us + (last_us - first_us) / 2);
    assert_true(late->targets[0].before_us == all->targets[skipped].before_us);
    assert_true(late->targets[0].event == all->targets[skipped].event && late->targets[0].event != 0);
    weir_targets_close(all);
    weir_targets_close(late);
    weir_snapshot_close(snapshot);
}

/* From the first moment of all to our days is further than a signed number tells. */
static void a_warm_up_over_more_than_all_of_time(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 400, .people = 20, .bad = 0.3};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_targets *all = NULL, *late = NULL;
    learn_spoil("vertices/pay/lives/first", 0, INT64_MIN + 1);
    assert_ok(weir_targets_open(snapshot, &BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2), &all));
    assert_ok(weir_targets_open(snapshot, &BY_TIME(LEARN_TASK_BAD, 0.15, 0.2, 0.2), &late));
    assert_true(all->targets[0].before_us == INT64_MIN + 1);
    assert_int_equal(late->count, all->count - 1);
    weir_targets_close(all);
    weir_targets_close(late);
    weir_snapshot_close(snapshot);
}

/* --- what cannot be learnt ---------------------------------------------------------------------------------------- */

static void refused(const learn_plan *plan, const weir_targets_opts *opts, weir_code code, const char *text) {
    weir_snapshot *snapshot = learn_snapshot_open(plan);
    weir_targets *targets = NULL;
    assert_err(weir_targets_open(snapshot, opts, &targets), code, text);
    assert_null(targets);
    weir_snapshot_close(snapshot);
}

static void too_few_targets(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 1, .pays = 60, .people = 5, .bad = 0.5};
    refused(&plan, &BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2), WEIR_EDATA, "take more data");
}

static void no_targets_at_all(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 1, .pays = 2, .people = 5, .bad = 0.5};
    refused(&plan, &BY_TIME(LEARN_TASK_BAD, 0.5, 0.2, 0.2), WEIR_EDATA, "targets");
}

static void one_class_only(void **state) {
    (void)state;
    learn_world w;
    weir_snapshot *snapshot;
    weir_targets *targets = NULL;
    learn_open(&w, learn_schema_text, 1);
    for (uint64_t n = 0; n < 200; n++)
        learn_put(&w, LEARN_PAY, n, LEARN_START_US + (int64_t)n * LEARN_SECOND, NULL);
    const char *out = weir_test_path("snapshot");
    learn_build(&w, out, LEARN_START_US + 2 * LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    const weir_targets_opts opts = BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2);
    assert_err(weir_targets_open(snapshot, &opts, &targets), WEIR_EDATA, "of one class");
    assert_null(targets);
    weir_snapshot_close(snapshot);
}

/* Training followed what `weir snapshot check` refuses into memory that is no snapshot's. */
static void lists_that_lead_out_of_the_snapshot_are_refused(void **state) {
    (void)state;
    static const char *const arrays[] = {"vertices/pay/lives/indptr", "relations/by/out/indptr"};
    static const int64_t wild[] = {INT64_MIN, -1, -1000000000, 1000000000, INT64_MAX};
    const learn_plan plan = {.seed = 1, .pays = 400, .people = 20, .bad = 0.3};
    const weir_targets_opts opts = BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2);
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_targets *targets = NULL;
    for (size_t a = 0; a < sizeof arrays / sizeof arrays[0]; a++) {
        const int64_t *indptr = a ? weir_snapshot_edges_of(snapshot, 0, WEIR_OUT)->indptr
                                  : weir_snapshot_vertices_of(snapshot, LEARN_PAY)->lives.indptr;
        const int64_t right = indptr[200];
        for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
            learn_spoil(arrays[a], 200, wild[i]);
            assert_err(weir_targets_open(snapshot, &opts, &targets), WEIR_ECORRUPT, a ? "has edges" : "has lives");
            assert_null(targets);
        }
        learn_spoil(arrays[a], 200, right);
        assert_ok(weir_targets_open(snapshot, &opts, &targets));
        weir_targets_close(targets);
        targets = NULL;
    }
    weir_snapshot_close(snapshot);
}

/* Two labels of the array get a value that the schema does not list, and then theirs again. */
static void wild_labels_are_refused(const weir_snapshot *snapshot, uint32_t task, uint32_t label, const char *array,
                                    const char *sentence) {
    static const int32_t wild[] = {3, 1000000000, INT32_MAX, INT32_MIN, -1};
    const weir_targets_opts opts = BY_TIME(task, 0, 0.2, 0.2);
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(snapshot, label);
    weir_targets *targets = NULL;
    int32_t right[2], spoilt[2];
    int64_t both;
    assert_true(labels->count > 200);
    memcpy(right, labels->values + 100, sizeof right);
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        spoilt[0] = spoilt[1] = wild[i];
        memcpy(&both, spoilt, sizeof both);
        learn_spoil(array, 50, both);
        assert_err(weir_targets_open(snapshot, &opts, &targets), WEIR_ECORRUPT, sentence);
        assert_null(targets);
    }
    memcpy(&both, right, sizeof both);
    learn_spoil(array, 50, both);
    assert_ok(weir_targets_open(snapshot, &opts, &targets));
    weir_targets_close(targets);
}

static void labels_without_a_value_of_the_schema_are_refused(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 1, .pays = 400, .people = 20, .bad = 0.3};
    static const char *const ranks[] = {"low", "mid", "high"};
    char out[4096];
    learn_world w;
    weir_snapshot *snapshot;
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    learn_open(&w, learn_schema_text, plan.seed);
    for (uint64_t n = 0; n < plan.pays; n++) {
        learn_pay(&w, &plan, n);
        learn_label(&w, LEARN_RANK, n, ranks[n % 3], LEARN_START_US + ((int64_t)n * 60 + 1) * LEARN_SECOND);
        learn_label(&w, LEARN_BAD, n, n % 3 ? "no" : "yes", LEARN_START_US + ((int64_t)n * 60 + 2) * LEARN_SECOND);
    }
    learn_build(&w, out, LEARN_START_US + (int64_t)plan.pays * 60 * LEARN_SECOND + 2 * LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){.load = false}, &snapshot));
    wild_labels_are_refused(snapshot, LEARN_TASK_RANK, LEARN_RANK, "labels/rank/values",
                            "of label 'rank', which has only 3");
    wild_labels_are_refused(snapshot, LEARN_TASK_BAD, LEARN_BAD, "labels/bad/values",
                            "of label 'bad', which has only 2");
    wild_labels_are_refused(snapshot, LEARN_TASK_SAID, LEARN_BAD, "labels/bad/values",
                            "of label 'bad', which has only 2");
    weir_snapshot_close(snapshot);
}

static void shares_out_of_range(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 1, .pays = 60, .people = 5, .bad = 0.5};
    refused(&plan, &BY_TIME(LEARN_TASK_BAD, 0, 0.6, 0.4), WEIR_EINVAL, "below 1 together");
}

/* As of its end it would show what came after each target. */
static void t3_a_living_graph_is_cut_by_time_only(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 1, .pays = 400, .people = 20, .bad = 0.5};
    const weir_targets_opts by_class = {.task = LEARN_TASK_BAD,
                                        .cut = {.split = WEIR_TARGETS_BY_CLASS, .each = {20, 20}}};
    const weir_targets_opts by_masks = {.task = LEARN_TASK_BAD,
                                        .cut = {.split = WEIR_TARGETS_BY_MASKS, .masks = {"learn", "look", "judge"}}};
    refused(&plan, &by_class, WEIR_EDATA, "of a living graph");
    refused(&plan, &by_masks, WEIR_EDATA, "of a living graph");
}

static weir_err open_and_close(void *context) {
    weir_targets *targets;
    weir_err err = weir_targets_open(context, &BY_TIME(LEARN_TASK_BAD, 0, 0.2, 0.2), &targets);
    weir_targets_close(targets);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 2, .pays = 400, .people = 20, .bad = 0.3};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_test_every_allocation(open_and_close, snapshot);
    weir_snapshot_close(snapshot);
}

/* A life each, with the labels that came after it began; older ones than the snapshot tells of are left out. */
static void t4_lives_are_targets_and_old_ones_are_not(void **state) {
    static const char who[] = "  pay: {features", expiring[] = "  pay: {expire: 10m, features";
    const int64_t minute = 60 * LEARN_SECOND, gap = 1200 * LEARN_SECOND;
    const char *at = strstr(learn_schema_text, who);
    char text[2 * sizeof learn_schema_text], out[4096];
    const double x = 1;
    (void)state;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - learn_schema_text), learn_schema_text, expiring,
             at + strlen(who));
    for (int64_t history_us = 0; history_us <= 400 * minute; history_us += 400 * minute) {
        const int64_t as_of_us = LEARN_START_US + 400 * minute + LEARN_RIPE_US;
        const weir_targets_opts opts = {.task = LEARN_TASK_BAD, .cut = {.validation = 0.25, .test = 0.25}};
        learn_world w;
        weir_snapshot *snapshot;
        weir_targets *targets;
        uint64_t lives = 0, yes = 0, old = 0;
        learn_open(&w, text, 1);
        for (uint64_t n = 0; n < 380; n++) { /* put again by the message that brings its label, if it is odd */
            int64_t t = LEARN_START_US + (int64_t)n * minute - gap;
            learn_put(&w, LEARN_PAY, n, t, &x);
            if (n % 2) learn_put(&w, LEARN_PAY, n, t + gap, &x);
            if (n % 2) learn_label(&w, LEARN_BAD, n, "yes", t + gap);
        }
        snprintf(out, sizeof out, "%s", learn_path("snapshot"));
        learn_build_with(&w, out, as_of_us, history_us ? history_us + LEARN_RIPE_US : 0);
        assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
        assert_ok(weir_targets_open(snapshot, &opts, &targets));
        for (uint64_t n = 0; n < 380; n++) {
            bool is_old = history_us && (int64_t)n * minute < gap;
            old += is_old;
            lives += (n % 2) + !is_old;
            yes += n % 2 && !is_old; /* what it says is about the life before */
        }
        assert_int_equal(targets->count, lives);
        assert_true(targets->old <= old && (targets->old > 0) == (old > 0)); /* those that had ended are not there */
        uint64_t positive = 0;
        for (uint64_t i = 0; i < targets->count; i++)
            positive += targets->classes_of[i];
        assert_int_equal(positive, yes);
        weir_targets_close(targets);
        weir_snapshot_close(snapshot);
    }
}

WEIR_TESTS(WEIR_CASE(t4_lives_are_targets_and_old_ones_are_not), WEIR_CASE(t1_t2_of_random_snapshots),
           WEIR_CASE(t1_a_cut_parts_no_moment), WEIR_CASE(t7_of_random_snapshots), WEIR_CASE(t7_the_moment_of_the_cut),
           WEIR_CASE(a_warm_up_is_only_past), WEIR_CASE(a_warm_up_over_more_than_all_of_time),
           WEIR_CASE(too_few_targets), WEIR_CASE(no_targets_at_all), WEIR_CASE(one_class_only),
           WEIR_CASE(shares_out_of_range), WEIR_CASE(lists_that_lead_out_of_the_snapshot_are_refused),
           WEIR_CASE(labels_without_a_value_of_the_schema_are_refused),
           WEIR_CASE(t3_a_living_graph_is_cut_by_time_only), WEIR_CASE(every_allocation_may_fail))
