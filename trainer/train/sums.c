/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - pieces of gradients in the order in which the way back finishes them, and the thread that sums them. */
#include <weir/inference/nn/tape.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

#include "sums.h"

typedef struct sums_piece {
    uint64_t begin, end;
} sums_piece;

struct weir_train_sums {
    weir_real *gradients;
    weir_comm *channel;
    sums_piece *pieces; /* from the array's end to its beginning */
    uint32_t count;
    weir_thread *thread;
    /* Under the mutex. */
    weir_mutex mutex;
    weir_cond changed;
    uint64_t from;   /* gradients are finished from here on */
    uint32_t summed; /* pieces */
    int64_t busy_us; /* of the step at hand */
    bool over;
};

/* Neighbouring tensors of one layer are one piece. */
static weir_err sums_cut(weir_train_sums *s, const weir_nn *nn) {
    uint32_t tensors, layers = weir_nn_layers(weir_nn_shape_of(nn));
    const weir_nn_tensor *of = weir_nn_tensors(nn, &tensors);
    const uint64_t *begins = weir_nn_plan_of(nn)->begins;
    s->pieces = weir_calloc(tensors, sizeof *s->pieces);
    if (!s->pieces) return WEIR_NOMEM("for the sum of gradients");
    for (uint32_t i = tensors, layer = layers + 1; i-- > 0;) {
        uint64_t end = of[i].offset + (uint64_t)of[i].rows * of[i].cols;
        bool joins = s->count > 0 && s->pieces[s->count - 1].begin == end && begins[layer] != end;
        while (begins[layer] > of[i].offset)
            layer--;
        if (of[i].looked_up) continue;
        if (!joins) s->pieces[s->count++].end = end;
        s->pieces[s->count - 1].begin = of[i].offset;
    }
    WEIR_ASSERT(s->count > 0 && s->count <= tensors);
    return WEIR_OK;
}

static void sums_main(void *context) {
    weir_train_sums *s = context;
    weir_mutex_lock(&s->mutex);
    while (!s->over) {
        if (s->summed == s->count || s->pieces[s->summed].begin < s->from) {
            weir_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        sums_piece piece = s->pieces[s->summed];
        weir_mutex_unlock(&s->mutex);
        int64_t begin_us = weir_clock_mono_us(weir_clock_system());
        weir_comm_sum_floats(s->channel, s->gradients + piece.begin, piece.end - piece.begin);
        int64_t end_us = weir_clock_mono_us(weir_clock_system());
        weir_mutex_lock(&s->mutex);
        s->busy_us += end_us - begin_us;
        s->summed++;
        weir_cond_broadcast(&s->changed);
    }
    weir_mutex_unlock(&s->mutex);
}

void weir_train_sums_begin(weir_train_sums *sums) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(sums->summed == sums->count); /* the step before has waited */
    sums->from = UINT64_MAX;
    sums->summed = 0;
    sums->busy_us = 0;
    weir_mutex_unlock(&sums->mutex);
}

void weir_train_sums_reach(weir_train_sums *sums, uint64_t from) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(from < sums->from);
    sums->from = from;
    weir_cond_broadcast(&sums->changed);
    weir_mutex_unlock(&sums->mutex);
}

void weir_train_sums_wait(weir_train_sums *sums, int64_t *busy_us) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(sums->from == 0);
    while (sums->summed < sums->count)
        weir_cond_wait(&sums->changed, &sums->mutex);
    *busy_us += sums->busy_us;
    weir_mutex_unlock(&sums->mutex);
}

weir_err weir_train_sums_open(const weir_nn *nn, weir_real *gradients, weir_comm *channel, weir_train_sums **sumsp) {
    *sumsp = NULL;
    weir_train_sums *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for the sum of gradients");
    s->gradients = gradients;
    s->channel = channel;
    weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "sums of gradients");
    weir_cond_init(&s->changed);
    weir_err err = sums_cut(s, nn);
    s->summed = s->count;
    if (!err) err = weir_thread_start("sum", WEIR_ROLE_WORKER, sums_main, s, &s->thread);
    if (err) {
        weir_train_sums_close(s);
        return err;
    }
    *sumsp = s;
    return WEIR_OK;
}

void weir_train_sums_close(weir_train_sums *sums) {
    if (!sums) return;
    weir_mutex_lock(&sums->mutex);
    sums->over = true;
    weir_cond_broadcast(&sums->changed);
    weir_mutex_unlock(&sums->mutex);
    weir_thread_join(sums->thread);
    weir_cond_destroy(&sums->changed);
    weir_mutex_destroy(&sums->mutex);
    weir_free(sums->pieces);
    weir_free(sums);
}
