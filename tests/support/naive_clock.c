/* SPDX-License-Identifier: Apache-2.0 */
/* naive_clock.c - every time that ever came, sorted anew for every answer. */
#include "naive_clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PARTITIONS 64u
#define WINDOW     63u

typedef struct partition {
    int64_t *times; /* all of them */
    size_t count, capacity;
    size_t before; /* how many there were at the last naive_clock_applied */
    int64_t clock_us;
    naive_state state;
} partition;

struct naive_clock {
    partition partitions[PARTITIONS];
    int64_t now_us;
};

static void *must(void *block) {
    if (!block) abort();
    return block;
}

naive_clock *naive_clock_open(void) {
    naive_clock *clock = must(calloc(1, sizeof *clock));
    clock->now_us = INT64_MIN;
    naive_clock_restart(clock);
    return clock;
}

void naive_clock_close(naive_clock *clock) {
    for (size_t i = 0; i < PARTITIONS; i++)
        free(clock->partitions[i].times);
    free(clock);
}

static int descending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The last 63 of a partition, behind what `out` has already. */
static size_t add_window(const partition *p, int64_t *out, size_t count) {
    size_t taken = p->count < WINDOW ? p->count : WINDOW;
    if (taken) memcpy(out + count, p->times + p->count - taken, taken * sizeof *out);
    return count + taken;
}

/* The greatest time that more than half of them are at or behind; of more than 63, that 32 are. */
static int64_t majority(int64_t *times, size_t count) {
    qsort(times, count, sizeof *times, descending);
    return times[(count < WINDOW ? count : WINDOW) / 2];
}

void naive_clock_event(naive_clock *clock, uint32_t number, int64_t time_us, int64_t latest_us) {
    partition *p = &clock->partitions[number];
    int64_t window[WINDOW];
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 64;
        p->times = must(realloc(p->times, p->capacity * sizeof *p->times));
    }
    p->times[p->count++] = time_us;
    int64_t middle_us = majority(window, add_window(p, window, 0));
    bool free_to_go_back = p->count < WINDOW || p->clock_us > latest_us;
    if (free_to_go_back || middle_us > p->clock_us) p->clock_us = middle_us;
}

static bool holds(const partition *p) {
    return p->state == NAIVE_READING && !p->count;
}

static void look(naive_clock *clock, int64_t latest_us) {
    int64_t *all = must(malloc(PARTITIONS * WINDOW * sizeof *all)), wanted_us = INT64_MAX;
    size_t count = 0, voices = 0;
    bool held = false;
    for (size_t i = 0; i < PARTITIONS; i++) {
        const partition *p = &clock->partitions[i];
        held = held || holds(p);
        count = add_window(p, all, count);
        if (p->state == NAIVE_IDLE || !p->count) continue;
        voices++;
        if (p->clock_us < wanted_us) wanted_us = p->clock_us;
    }
    if (!held && voices) {
        int64_t most_us = majority(all, count);
        for (size_t i = 0; i < PARTITIONS; i++) {
            const partition *p = &clock->partitions[i];
            if (p->count >= WINDOW && p->clock_us > most_us) most_us = p->clock_us;
        }
        if (most_us < wanted_us) wanted_us = most_us;
        if (count < WINDOW || clock->now_us > latest_us || wanted_us > clock->now_us) clock->now_us = wanted_us;
    }
    free(all);
}

void naive_clock_applied(naive_clock *clock, uint32_t number, int64_t latest_us) {
    partition *p = &clock->partitions[number];
    if (p->count > p->before && p->state == NAIVE_IDLE) p->state = NAIVE_WAITING;
    p->before = p->count;
    look(clock, latest_us);
}

void naive_clock_state(naive_clock *clock, uint32_t number, naive_state state, int64_t latest_us) {
    partition *p = &clock->partitions[number];
    bool never = !p->count, behind = never ? clock->now_us > INT64_MIN : p->clock_us < clock->now_us;
    if (state == NAIVE_WAITING && p->state == NAIVE_IDLE && behind) return;
    p->state = state;
    look(clock, latest_us);
}

void naive_clock_restart(naive_clock *clock) {
    for (size_t i = 0; i < PARTITIONS; i++)
        clock->partitions[i].state = NAIVE_IDLE;
}

int64_t naive_clock_now(const naive_clock *clock) {
    return clock->now_us;
}
