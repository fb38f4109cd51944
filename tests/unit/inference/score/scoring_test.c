/* SPDX-License-Identifier: Apache-2.0 */
/* scoring_test.c - requests of many threads while models are exchanged under them. */
#include "score_fixture.h"

#include <math.h>
#include <stdatomic.h>

#include <weir/inference/score/scoring.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

#define TARGETS 12u
#define CLIENTS 4u
#define ASKED   3u /* targets of a request */
#define SWAPS   100u

typedef struct office {
    score_world world;
    score_net nets[2];
    weir_score_model *models[2];
    weir_scoring *scoring;
    weir_score_ask asks[TARGETS];
    double logits[2][TARGETS];
    atomic_bool stop;
    atomic_uint answers[2], failed, mixed;
} office;

/* One request, which its client waits for. */
typedef struct letter {
    office *office;
    weir_score_ask asks[ASKED];
    uint32_t first;
    uint32_t count; /* what prepare says; more than there is room for is refused */
    weir_err refusal;
    atomic_bool done;
    weir_err err;
    bool modelless;
} letter;

static weir_err letter_prepare(void *context, uint32_t thread, const weir_score_model *model,
                               const weir_score_ask **asksp, uint32_t *countp) {
    letter *l = context;
    (void)thread;
    assert_non_null(model);
    *asksp = l->asks;
    *countp = l->count;
    return l->refusal;
}

static void letter_done(void *context, uint32_t thread, const weir_score_model *model, const weir_score *scores,
                        weir_err err) {
    letter *l = context;
    office *o = l->office;
    (void)thread;
    l->err = err;
    l->modelless = !model;
    if (err || !scores) {
        atomic_fetch_add(&o->failed, 1);
    } else {
        uint32_t which = weir_score_model_version(model)[0] == 'b';
        for (uint32_t i = 0; i < l->count; i++)
            if (!(fabs(scores[i].logit - o->logits[which][l->first + i]) <= 1e-5)) atomic_fetch_add(&o->mixed, 1);
        atomic_fetch_add(&o->answers[which], 1);
    }
    atomic_store(&l->done, true);
}

static void letter_write(office *o, letter *l, uint32_t first) {
    memset(l, 0, sizeof *l);
    l->office = o;
    l->first = first;
    l->count = ASKED;
    memcpy(l->asks, &o->asks[first], sizeof l->asks);
}

static weir_err letter_send(letter *l, int64_t deadline_us) {
    const weir_scoring_work work = {
        .context = l, .prepare = letter_prepare, .done = letter_done, .deadline_us = deadline_us};
    weir_err err = weir_scoring_submit(l->office->scoring, &work);
    while (!err && !atomic_load(&l->done))
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 50);
    return err;
}

static void client_main(void *context) {
    office *o = context;
    letter l;
    for (uint32_t i = 0; !atomic_load(&o->stop); i = (i + 1) % (TARGETS - ASKED)) {
        letter_write(o, &l, i);
        assert_ok(letter_send(&l, 0));
    }
}

static void office_open(office *o) {
    static const char *const versions[] = {"a", "b"};
    uint64_t seed = weir_test_seed();
    weir_scorer *scorer;
    weir_arena *arena;
    char key[SCORE_VERTEX_KEY];
    memset(o, 0, sizeof *o);
    score_world_open(&o->world, seed, weir_test_path("store"));
    score_world_grow(&o->world, 200);
    assert_ok(weir_scorer_open(o->world.graph, &scorer));
    assert_ok(weir_arena_open(1u << 20, &arena));
    for (uint32_t m = 0; m < 2; m++) {
        weir_score scores[TARGETS];
        score_net_open(&o->nets[m], o->world.schema, score_steps, SCORE_STEPS, seed);
        o->nets[m].params[weir_nn_tensor_find(o->nets[m].nn, "head.bias")->offset] += (weir_real)m;
        o->models[m] = score_model_of(&o->nets[m], o->world.schema, versions[m]);
        for (uint32_t i = 0; i < TARGETS; i++)
            assert_ok(weir_score_ask_vertex(o->world.graph, o->models[m],
                                            score_vertex(&o->world, SCORE_PAYMENT, 100 + i, key), 0, arena,
                                            &o->asks[i]));
        assert_ok(weir_scorer_run(scorer, o->models[m], o->asks, TARGETS, scores));
        for (uint32_t i = 0; i < TARGETS; i++)
            o->logits[m][i] = scores[i].logit;
    }
    for (uint32_t i = 0; i < TARGETS; i++) /* else nothing could be told apart */
        assert_true(fabs(o->logits[0][i] - o->logits[1][i]) > 0.9);
    weir_arena_close(arena);
    weir_scorer_close(scorer);
    const weir_scoring_opts opts = {.graph = o->world.graph, .threads = 2};
    assert_ok(weir_scoring_open(&opts, &o->scoring));
}

static void office_close(office *o) {
    weir_scoring_close(o->scoring);
    for (uint32_t m = 0; m < 2; m++) {
        weir_score_model_drop(o->models[m]);
        score_net_close(&o->nets[m]);
    }
    score_world_close(&o->world);
}

static uint32_t answered(office *o) {
    return atomic_load(&o->answers[0]) + atomic_load(&o->answers[1]);
}

static void c4_each_answer_is_of_one_model(void **state) {
    (void)state;
    static office o;
    weir_thread *clients[CLIENTS];
    office_open(&o);
    weir_scoring_swap(o.scoring, o.models[0]);
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_ok(weir_thread_start("client", WEIR_ROLE_TEST, client_main, &o, &clients[i]));
    for (uint64_t swap = weir_test_rounds(SWAPS); swap > 0; swap--) {
        uint32_t before = answered(&o);
        weir_scoring_swap(o.scoring, o.models[swap % 2]);
        while (answered(&o) < before + 2) /* each model gets to answer */
            weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 100);
    }
    atomic_store(&o.stop, true);
    for (uint32_t i = 0; i < CLIENTS; i++)
        weir_thread_join(clients[i]);
    assert_int_equal(atomic_load(&o.failed), 0);
    assert_int_equal(atomic_load(&o.mixed), 0);
    assert_true(atomic_load(&o.answers[0]) > 10 && atomic_load(&o.answers[1]) > 10);
    office_close(&o);
}

static void without_a_model_there_is_no_score(void **state) {
    (void)state;
    static office o;
    letter l;
    office_open(&o);
    letter_write(&o, &l, 0);
    assert_ok(letter_send(&l, 0));
    assert_true(l.modelless && !l.err);
    weir_scoring_swap(o.scoring, o.models[0]);
    letter_write(&o, &l, 0);
    assert_ok(letter_send(&l, 0));
    assert_true(!l.modelless && !l.err);
    weir_scoring_swap(o.scoring, NULL);
    assert_null(weir_scoring_model(o.scoring));
    letter_write(&o, &l, 0);
    assert_ok(letter_send(&l, 0));
    assert_true(l.modelless);
    office_close(&o);
}

static void what_cannot_be_answered_says_why(void **state) {
    (void)state;
    static office o;
    letter l;
    office_open(&o);
    weir_scoring_swap(o.scoring, o.models[1]);
    letter_write(&o, &l, 0);
    assert_err(letter_send(&l, 1), WEIR_ETIMEOUT, "before its turn came"); /* long ago */
    letter_write(&o, &l, 0);
    l.count = WEIR_SCORE_BATCH_MAX + 1;
    assert_ok(letter_send(&l, 0));
    assert_err(l.err, WEIR_ELIMIT, "65 targets");
    letter_write(&o, &l, 0);
    l.refusal = WEIR_ERR(WEIR_EDATA, "no such thing");
    assert_ok(letter_send(&l, 0));
    assert_err(l.err, WEIR_EDATA, "no such thing");
    office_close(&o);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

#define TARGET_US 1000

/* Requests whose worker is held until the test lets go; who was done when, in order. */
typedef struct gate {
    office *office;
    weir_clock *clock;
    atomic_bool held, open;
    atomic_uint ended;
} gate;

typedef struct caller {
    gate *gate;
    uint32_t first, count, place; /* place: how many had ended before */
    weir_err err;
    atomic_bool done;
    struct caller *next; /* whom the answer lets ask; NULL: nobody */
    weir_err next_err;   /* what that one is told                  */
} caller;

static weir_err call(caller *c, gate *g, uint32_t count, int64_t deadline_us);

static weir_err caller_prepare(void *context, uint32_t thread, const weir_score_model *model,
                               const weir_score_ask **asksp, uint32_t *countp) {
    caller *c = context;
    (void)thread;
    (void)model;
    if (!c->count) { /* the one that holds the gate */
        atomic_store(&c->gate->held, true);
        while (!atomic_load(&c->gate->open))
            weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 50);
    }
    *asksp = &c->gate->office->asks[c->first];
    *countp = c->count ? c->count : 1;
    return WEIR_OK;
}

static void caller_done(void *context, uint32_t thread, const weir_score_model *model, const weir_score *scores,
                        weir_err err) {
    caller *c = context;
    (void)thread;
    (void)model;
    assert_true(err || scores);
    c->err = err;
    c->place = atomic_fetch_add(&c->gate->ended, 1);
    if (c->next) c->next_err = call(c->next, c->gate, 1, 1);
    atomic_store(&c->done, true);
}

static weir_err call(caller *c, gate *g, uint32_t count, int64_t deadline_us) {
    *c = (caller){.gate = g, .first = 0, .count = count};
    const weir_scoring_work work = {.context = c,
                                    .prepare = caller_prepare,
                                    .done = caller_done,
                                    .deadline_us = deadline_us ? weir_clock_mono_us(g->clock) + deadline_us : 0,
                                    .targets = count};
    return weir_scoring_submit(g->office->scoring, &work);
}

static void await_caller(const caller *c) {
    while (!atomic_load(&c->done))
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 50);
}

/* One thread, a clock that stands still, and a target that takes a millisecond. */
static void gate_open(gate *g, office *o) {
    office_open(o);
    weir_scoring_close(o->scoring);
    memset(g, 0, sizeof *g);
    g->office = o;
    assert_ok(weir_clock_manual_open(SCORE_START_US, &g->clock));
    weir_clock_manual_advance(g->clock, WEIR_US_PER_S);
    const weir_scoring_opts opts = {
        .graph = o->world.graph, .threads = 1, .clock = g->clock, .target_ns = TARGET_US * 1000};
    assert_ok(weir_scoring_open(&opts, &o->scoring));
    weir_scoring_swap(o->scoring, o->models[0]);
}

/* What waits before a request counts against its time, at once and not when its turn would have come. */
static void who_cannot_be_answered_in_time_is_told_at_once(void **state) {
    (void)state;
    static office o;
    static caller first, waiting, refused, patient, late, again;
    gate g;
    gate_open(&g, &o);
    assert_ok(call(&first, &g, 0, 0));
    while (!atomic_load(&g.held))
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 50);
    assert_ok(call(&waiting, &g, 9, 0));
    /* ten targets wait: ten milliseconds */
    assert_err(call(&refused, &g, 1, 10 * TARGET_US - 1), WEIR_EBUSY, "10 targets wait before this request");
    assert_ok(call(&patient, &g, 1, 12 * TARGET_US));
    assert_ok(call(&late, &g, 1, 11 * TARGET_US));
    weir_clock_manual_advance(g.clock, 11 * TARGET_US + 1); /* it took longer than it was thought to */
    atomic_store(&g.open, true);
    await_caller(&first);
    await_caller(&waiting);
    await_caller(&patient);
    await_caller(&late);
    assert_true(!first.err && !waiting.err && !patient.err);
    assert_err(late.err, WEIR_ETIMEOUT, "before its turn came");
    assert_ok(call(&refused, &g, 1, 1)); /* nobody waits any more: what was outstanding is given back */
    await_caller(&refused);
    assert_ok(refused.err);
    atomic_store(&g.held, false);
    atomic_store(&g.open, false);
    assert_ok(call(&first, &g, 0, 0));
    first.next = &again; /* before its answer, which waits for the gate */
    atomic_store(&g.open, true);
    await_caller(&first);
    assert_ok(first.next_err); /* who has an answer does not wait for it any more */
    await_caller(&again);
    assert_ok(again.err);
    office_close(&o); /* its thread looks at the clock once more, behind the last answer */
    weir_clock_close(g.clock);
}

/* A batch that would be too late for one of its requests is run one by one, and the most urgent is the first. */
static void the_most_urgent_is_the_first(void **state) {
    (void)state;
    static const int64_t deadlines[] = {0, 9 * TARGET_US, 30 * TARGET_US, 8 * TARGET_US};
    static const uint32_t places[] = {4, 2, 3, 1};
    static office o;
    static caller first, callers[4];
    gate g;
    gate_open(&g, &o);
    assert_ok(call(&first, &g, 0, 0));
    while (!atomic_load(&g.held))
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 50);
    assert_ok(call(&callers[0], &g, 5, deadlines[0]));
    for (uint32_t i = 1; i < 4; i++)
        assert_ok(call(&callers[i], &g, 1, deadlines[i]));
    weir_clock_manual_advance(g.clock, 4 * TARGET_US); /* so that eight more are too many for two of them */
    atomic_store(&g.open, true);
    await_caller(&first);
    for (uint32_t i = 0; i < 4; i++) {
        await_caller(&callers[i]);
        assert_ok(callers[i].err);
        assert_int_equal(callers[i].place, places[i]);
    }
    office_close(&o); /* its thread looks at the clock once more, behind the last answer */
    weir_clock_close(g.clock);
}

static void released(void *owner) {
    *(bool *)owner = true;
}

static void a_model_goes_with_its_last_reference(void **state) {
    (void)state;
    static office o;
    bool gone = false;
    letter l;
    office_open(&o);
    const weir_score_model_opts opts = {.name = "x",
                                        .version = "a",
                                        .nn = o.nets[0].nn,
                                        .params = o.nets[0].params,
                                        .seed = 77,
                                        .slope = 1,
                                        .release = released,
                                        .owner = &gone};
    weir_score_model *model;
    assert_ok(weir_score_model_open(&opts, o.world.schema, &model));
    weir_scoring_swap(o.scoring, model);
    weir_score_model_drop(model);
    assert_false(gone);
    letter_write(&o, &l, 0);
    assert_ok(letter_send(&l, 0));
    assert_true(!l.err && !gone);
    weir_scoring_swap(o.scoring, NULL);
    weir_scoring_close(o.scoring); /* workers keep what they made for it until they see another */
    assert_true(gone);
    const weir_scoring_opts again = {.graph = o.world.graph, .threads = 1};
    assert_ok(weir_scoring_open(&again, &o.scoring));
    office_close(&o);
}

static weir_err open_and_close(void *graph) {
    const weir_scoring_opts opts = {.graph = graph, .threads = 3};
    weir_scoring *scoring;
    weir_err err = weir_scoring_open(&opts, &scoring);
    if (!err) weir_scoring_close(scoring);
    return err;
}

/* What a worker needs it has before it begins: later there is nobody to be told. */
static void without_memory_none_is_opened(void **state) {
    (void)state;
    score_world w;
    score_world_open(&w, weir_test_seed(), weir_test_path("store"));
    weir_test_every_allocation(open_and_close, w.graph);
    score_world_close(&w);
}

WEIR_TESTS(WEIR_CASE(who_cannot_be_answered_in_time_is_told_at_once), WEIR_CASE(the_most_urgent_is_the_first),
           WEIR_CASE(c4_each_answer_is_of_one_model), WEIR_CASE(without_a_model_there_is_no_score),
           WEIR_CASE(what_cannot_be_answered_says_why), WEIR_CASE(a_model_goes_with_its_last_reference),
           WEIR_CASE(without_memory_none_is_opened))
