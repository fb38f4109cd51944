/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the system's clocks, and a clock that stands still until a test moves it. */
#include <time.h>

#include <weir/base/alloc.h>
#include <weir/base/clock.h>
#include <weir/base/thread.h>

struct weir_clock {
    bool manual;
    weir_mutex mutex; /* CLOCK; guards the rest */
    weir_cond moved;
    int64_t mono_us;
    int64_t wall_us;
};

static weir_clock system_clock = {.manual = false};

weir_clock *weir_clock_system(void) {
    return &system_clock;
}

weir_err weir_clock_manual_open(int64_t wall_us, weir_clock **clockp) {
    *clockp = NULL;
    weir_clock *clock = weir_calloc(1, sizeof *clock);
    if (!clock) return WEIR_ERR(WEIR_ENOMEM, "no memory for a clock");
    clock->manual = true;
    clock->wall_us = wall_us;
    weir_mutex_init(&clock->mutex, WEIR_RANK_CLOCK, "clock");
    weir_cond_init(&clock->moved);
    *clockp = clock;
    return WEIR_OK;
}

void weir_clock_manual_advance(weir_clock *clock, int64_t us) {
    weir_mutex_lock(&clock->mutex);
    clock->mono_us += us;
    clock->wall_us += us;
    weir_cond_broadcast(&clock->moved);
    weir_mutex_unlock(&clock->mutex);
}

void weir_clock_manual_set_wall(weir_clock *clock, int64_t wall_us) {
    weir_mutex_lock(&clock->mutex);
    clock->wall_us = wall_us;
    weir_mutex_unlock(&clock->mutex);
}

void weir_clock_close(weir_clock *clock) {
    if (!clock || !clock->manual) return;
    weir_cond_destroy(&clock->moved);
    weir_mutex_destroy(&clock->mutex);
    weir_free(clock);
}

static int64_t system_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t manual_read(weir_clock *clock, const int64_t *us) {
    weir_mutex_lock(&clock->mutex);
    int64_t value = *us;
    weir_mutex_unlock(&clock->mutex);
    return value;
}

int64_t weir_clock_mono_us(weir_clock *clock) {
    return clock->manual ? manual_read(clock, &clock->mono_us) : system_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t weir_clock_mono_ns(weir_clock *clock) {
    return clock->manual ? manual_read(clock, &clock->mono_us) * 1000 : system_ns(CLOCK_MONOTONIC);
}

int64_t weir_clock_wall_us(weir_clock *clock) {
    return clock->manual ? manual_read(clock, &clock->wall_us) : system_ns(CLOCK_REALTIME) / 1000;
}

void weir_clock_sleep_until(weir_clock *clock, int64_t mono_us) {
    if (!clock->manual) {
        struct timespec when = {.tv_sec = mono_us / WEIR_US_PER_S, .tv_nsec = mono_us % WEIR_US_PER_S * 1000};
        if (mono_us <= 0) return;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
        }
        return;
    }
    weir_mutex_lock(&clock->mutex);
    while (clock->mono_us < mono_us)
        weir_cond_wait(&clock->moved, &clock->mutex);
    weir_mutex_unlock(&clock->mutex);
}
