/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - a thread that starts a program at the times of a cron expression, one at a time. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/thread.h>
#include <weir/trainer/schedule/schedule.h>

#define LOOK_US        (WEIR_US_PER_S / 4) /* at the clock and at the program that runs */
#define FILE_BYTES_MAX 64u
#define STEP_BACK_US   (5 * 60 * WEIR_US_PER_S) /* and less: the clock is being set, the plan stays (C4) */

struct weir_scheduler {
    weir_cron cron;
    const char *text, *file;
    const char *const *arguments;
    weir_clock *clock;
    weir_thread *thread;
    weir_mutex mutex;
    weir_cond wake;
    bool closing;
    pid_t child;        /* 0: none */
    int64_t planned_us; /* when the next time was worked out, by the wall clock */
    weir_scheduler_stats stats;
};

/* --- the last start ---------------------------------------------------------------------------------------------- */

static weir_err save_last(const weir_scheduler *s, int64_t last_us) {
    char text[FILE_BYTES_MAX];
    int length = snprintf(text, sizeof text, "%lld\n", (long long)last_us);
    return weir_file_replace(s->file, text, (size_t)length);
}

/* Who was never started has missed nothing. */
static weir_err load_last(weir_scheduler *s, int64_t now_us, int64_t *lastp) {
    char *text;
    size_t length;
    *lastp = now_us;
    weir_err err = weir_file_load(s->file, FILE_BYTES_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return save_last(s, now_us);
    if (err) return err;
    long long last = strtoll(text, NULL, 10);
    weir_free(text);
    if (last > 0 && last < now_us) *lastp = last;
    return WEIR_OK;
}

/* --- the program ------------------------------------------------------------------------------------------------- */

static void spawn(weir_scheduler *s, pid_t *childp) {
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **arguments;
    memcpy(&arguments, &s->arguments, sizeof arguments); /* posix_spawn does not write to them */
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int problem = posix_spawn(childp, arguments[0], NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    if (!problem) return;
    *childp = 0;
    WEIR_LOG(ERROR, "schedule.start", "cannot start the program of the schedule", WEIR_TEXT("program", arguments[0]),
             WEIR_TEXT("why", strerror(problem)));
}

static void count_failure(weir_scheduler *s) {
    s->stats.failures++;
    weir_metric_add(WEIR_METRIC_NIGHTLY_FAILURES, 1);
}

static void start(weir_scheduler *s, int64_t now_us) {
    weir_err err = save_last(s, now_us); /* first: what fails is not begun again and again */
    if (err) weir_log_error("schedule.file", err);
    spawn(s, &s->child);
    s->stats.last_us = now_us;
    s->stats.starts++;
    s->stats.running = s->child > 0;
    weir_metric_add(WEIR_METRIC_NIGHTLY_STARTS, 1);
    if (!s->child) count_failure(s);
}

static void reap(weir_scheduler *s, int options) {
    int status;
    if (!s->child || waitpid(s->child, &status, options) != s->child) return;
    s->child = 0;
    s->stats.running = false;
    s->stats.last_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (s->stats.last_status) count_failure(s);
    if (!s->stats.last_status) s->stats.due_us = 0;
    WEIR_LOG(INFO, "schedule.ended", "the program of the schedule has ended", WEIR_I64("status", s->stats.last_status));
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

static void plan(weir_scheduler *s, int64_t after_us) {
    if (weir_cron_next(&s->cron, after_us, &s->stats.next_us)) s->stats.next_us = 0;
}

/* What was planned in a future that is none any more is planned anew, and the file forgets that future too. */
static void go_back(weir_scheduler *s, int64_t now_us) {
    weir_err err = save_last(s, now_us);
    if (err) weir_log_error("schedule.file", err);
    plan(s, now_us);
    s->planned_us = now_us;
    if (s->stats.due_us > now_us) s->stats.due_us = 0;
    WEIR_LOG(WARN, "schedule.clock", "the clock went back, so the next time was worked out anew");
}

static void look(weir_scheduler *s) {
    int64_t now_us = weir_clock_wall_us(s->clock);
    reap(s, WNOHANG);
    if (now_us < s->planned_us - STEP_BACK_US) go_back(s, now_us); // C4
    weir_metric_set(WEIR_METRIC_NIGHTLY_OVERDUE, s->stats.due_us ? (now_us - s->stats.due_us) / WEIR_US_PER_S : 0);
    if (!s->stats.next_us || now_us < s->stats.next_us) return;
    if (!s->stats.due_us) s->stats.due_us = s->stats.next_us;
    if (s->child) s->stats.passed_over++; /* C2 */
    if (!s->child) start(s, now_us);
    plan(s, now_us); /* C3: whatever lies between is past */
    s->planned_us = now_us;
}

static void scheduler_main(void *context) {
    weir_scheduler *s = context;
    weir_mutex_lock(&s->mutex);
    while (!s->closing) {
        look(s);
        weir_cond_wait_until(&s->wake, &s->mutex, weir_clock_mono_us(weir_clock_system()) + LOOK_US);
    }
    weir_mutex_unlock(&s->mutex);
}

weir_err weir_scheduler_open(const weir_scheduler_opts *opts, weir_scheduler **schedulerp) {
    int64_t last_us = 0;
    *schedulerp = NULL;
    weir_scheduler *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a schedule");
    s->text = opts->cron;
    s->file = opts->file;
    s->arguments = opts->arguments;
    s->clock = opts->clock ? opts->clock : weir_clock_system();
    s->stats.last_status = -1;
    weir_mutex_init(&s->mutex, WEIR_RANK_SCHEDULE, "schedule");
    weir_cond_init(&s->wake);
    weir_err err = weir_cron_parse(opts->cron, &s->cron);
    if (!err) err = load_last(s, weir_clock_wall_us(s->clock), &last_us);
    if (!err) plan(s, last_us);
    s->planned_us = last_us;
    if (!err) err = weir_thread_start("schedule", WEIR_ROLE_WORKER, scheduler_main, s, &s->thread);
    if (err) {
        weir_scheduler_close(s);
        return err;
    }
    *schedulerp = s;
    return WEIR_OK;
}

const char *weir_scheduler_cron(const weir_scheduler *scheduler) {
    return scheduler->text;
}

void weir_scheduler_stats_get(weir_scheduler *scheduler, weir_scheduler_stats *statsp) {
    weir_mutex_lock(&scheduler->mutex);
    *statsp = scheduler->stats;
    weir_mutex_unlock(&scheduler->mutex);
}

void weir_scheduler_close(weir_scheduler *scheduler) {
    if (!scheduler) return;
    weir_mutex_lock(&scheduler->mutex);
    scheduler->closing = true;
    weir_cond_broadcast(&scheduler->wake);
    weir_mutex_unlock(&scheduler->mutex);
    weir_thread_join(scheduler->thread);
    if (scheduler->child) kill(scheduler->child, SIGTERM);
    reap(scheduler, 0);
    weir_cond_destroy(&scheduler->wake);
    weir_mutex_destroy(&scheduler->mutex);
    weir_free(scheduler);
}
