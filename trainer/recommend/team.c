/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - threads that wait for work, take its parts one after the other, and are waited for. */
#include <stdatomic.h>
#include <stdio.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "recommend_private.h"

typedef struct team_member {
    weir_recommend_team *team;
    weir_thread *thread;
    uint32_t index;
} team_member;

struct weir_recommend_team {
    weir_mutex mutex; /* LEAF; guards what follows, up to the parts */
    weir_cond begin, end;
    weir_recommend_work work;
    void *context;
    uint64_t round; /* of work; so that nobody does one twice */
    uint32_t busy;  /* members that have not ended this round */
    bool closing;
    atomic_uint next;
    uint32_t parts, count;
    team_member members[WEIR_RECOMMEND_THREADS_MAX];
};

static void team_take_parts(weir_recommend_team *team, uint32_t index) {
    for (;;) {
        uint32_t part = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (part >= team->parts) return;
        team->work(team->context, part, index);
    }
}

static void team_main(void *context) {
    const team_member *self = context;
    weir_recommend_team *team = self->team;
    uint64_t round = 0;
    weir_mutex_lock(&team->mutex);
    for (;;) {
        while (!team->closing && team->round == round)
            weir_cond_wait(&team->begin, &team->mutex);
        if (team->closing) break;
        round = team->round;
        weir_mutex_unlock(&team->mutex);
        team_take_parts(team, self->index);
        weir_mutex_lock(&team->mutex);
        if (--team->busy == 0) weir_cond_signal(&team->end);
    }
    weir_mutex_unlock(&team->mutex);
}

void weir_recommend_team_run(weir_recommend_team *team, uint32_t parts, weir_recommend_work work, void *context) {
    weir_mutex_lock(&team->mutex);
    WEIR_ASSERT(team->busy == 0);
    team->work = work;
    team->context = context;
    team->parts = parts;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    team->busy = team->count;
    team->round++;
    weir_cond_broadcast(&team->begin);
    weir_mutex_unlock(&team->mutex);
    team_take_parts(team, team->count);
    weir_mutex_lock(&team->mutex);
    while (team->busy)
        weir_cond_wait(&team->end, &team->mutex);
    weir_mutex_unlock(&team->mutex);
}

/* The caller's own thread is one of them. */
uint32_t weir_recommend_team_size(const weir_recommend_team *team) {
    return team->count + 1;
}

weir_err weir_recommend_team_open(uint32_t threads, weir_recommend_team **teamp) {
    *teamp = NULL;
    WEIR_ASSERT(threads > 0 && threads <= WEIR_RECOMMEND_THREADS_MAX);
    weir_recommend_team *team = weir_calloc(1, sizeof *team);
    if (!team) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    weir_mutex_init(&team->mutex, WEIR_RANK_LEAF, "recommend team");
    weir_cond_init(&team->begin);
    weir_cond_init(&team->end);
    weir_err err = WEIR_OK;
    while (!err && team->count + 1 < threads) {
        team_member *member = &team->members[team->count];
        char name[WEIR_THREAD_NAME_MAX + 1];
        *member = (team_member){.team = team, .index = team->count};
        snprintf(name, sizeof name, "learn-%u", team->count);
        err = weir_thread_start(name, WEIR_ROLE_WORKER, team_main, member, &member->thread);
        if (!err) team->count++;
    }
    if (err) {
        weir_recommend_team_close(team);
        return err;
    }
    *teamp = team;
    return WEIR_OK;
}

void weir_recommend_team_close(weir_recommend_team *team) {
    if (!team) return;
    weir_mutex_lock(&team->mutex);
    team->closing = true;
    weir_cond_broadcast(&team->begin);
    weir_mutex_unlock(&team->mutex);
    for (uint32_t i = 0; i < team->count; i++)
        weir_thread_join(team->members[i].thread);
    weir_cond_destroy(&team->begin);
    weir_cond_destroy(&team->end);
    weir_mutex_destroy(&team->mutex);
    weir_free(team);
}
