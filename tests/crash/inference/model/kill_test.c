/* SPDX-License-Identifier: Apache-2.0 */
/* kill_test.c - promotions that are killed, anywhere: each is done or was not begun, and no server forgets one. */
#include "register_fixture.h"
#include "serve_child.h"

#include <weir/store/base/rng.h>

#define SIGKILLED   (128 + SIGKILL)
#define LIFE_MAX_US 60000

/* What `current` says after a promotion of model i that may have been killed: old, or new and one generation on. */
static bool went_on(const signed_register *r, const weir_models_entry *before, int i) {
    weir_models_entry now = signed_entry(r);
    bool done = now.generation == before->generation + 1;
    assert_string_equal(now.id, done ? r->ids[i] : before->id);
    assert_true(done || now.generation == before->generation);
    assert_true(!before->generation || !strcmp(now.register_id, before->register_id));
    return done;
}

static void kill_at(const char *point, bool done) {
    signed_register r;
    char spec[64];
    weir_test_output output;
    signed_make(&r, "d");
    signed_promote(&r, 0);
    weir_models_entry before = signed_entry(&r);
    snprintf(spec, sizeof spec, "WEIR_KILL_AT=%s:1", point);
    signed_run(&r, (const char *const[]){"promote", r.ids[1], NULL}, (const char *const[]){spec, NULL}, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    assert_true(went_on(&r, &before, 1) == done);
    signed_promote(&r, 2); /* and the next one is not hindered */
    assert_int_equal(signed_entry(&r).generation, before.generation + done + 1);
}

static void m3_killed_before_it_is_written(void **state) {
    (void)state;
    kill_at("models.decided", false);
}

static void m3_killed_after_it_is_written(void **state) {
    (void)state;
    kill_at("models.promoted", true);
}

static void run_and_kill(const signed_register *r, int i, int64_t life_us) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        execl(weir_test_program(), "weir", "model", "promote", r->ids[i], "--path", r->models, "--key", r->key, "--set",
              r->trusted, (char *)NULL);
        _exit(127);
    }
    usleep((useconds_t)life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void m3_killed_at_random_moments(void **state) {
    (void)state;
    signed_register r;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    signed_make(&r, "d");
    signed_promote(&r, 0);
    for (uint64_t round = 0; round < weir_test_rounds(40); round++) {
        weir_models_entry before = signed_entry(&r);
        int i = (int)weir_rng_below(&rng, SIGNED_MODELS);
        if (!strcmp(before.id, r.ids[i])) i = (i + 1) % SIGNED_MODELS;
        run_and_kill(&r, i, (int64_t)weir_rng_below(&rng, LIFE_MAX_US));
        (void)went_on(&r, &before, i);
    }
    uint64_t last = signed_entry(&r).generation;
    for (int i = 0; i < SIGNED_MODELS; i++)
        signed_promote(&r, i);
    assert_true(signed_entry(&r).generation >= last + SIGNED_MODELS - 1);
}

/* It has noted the promotion and loaded nothing: an older one put back then is an older one still. */
static void m6_a_server_killed_as_it_notes_forgets_nothing(void **state) {
    (void)state;
    signed_register r;
    serve_child child;
    int status;
    signed_make(&r, "data");
    signed_promote(&r, 0);
    copy_small(r.current, weir_test_path("old"));
    signed_promote(&r, 1);
    assert_int_equal(setenv("WEIR_KILL_AT", "models.noted:1", 1), 0);
    serve_start(&child, weir_test_path("data"), NULL);
    assert_int_equal(unsetenv("WEIR_KILL_AT"), 0);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(child.out);
    copy_small(r.current, weir_test_path("new"));
    copy_small(weir_test_path("old"), r.current);
    serve_start(&child, weir_test_path("data"), NULL);
    assert_true(child.port != 0);
    serve_await(&child, "/readyz", NULL, 503, "is generation 1, and 2 was seen");
    copy_small(weir_test_path("new"), r.current);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(m3_killed_before_it_is_written), WEIR_CASE(m3_killed_after_it_is_written),
           WEIR_CASE(m3_killed_at_random_moments), WEIR_CASE(m6_a_server_killed_as_it_notes_forgets_nothing))
