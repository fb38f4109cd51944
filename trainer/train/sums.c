/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - what a step tells other ranks, in the order in which it comes to be, and the thread that tells it. */
#include <weir/inference/nn/tape.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>
#include <weir/trainer/comm/pace.h>

#include "sums.h"

typedef struct sums_piece {
    uint64_t begin, end;
    uint64_t host; /* where it is among the numbers that MPI is given a copy of */
} sums_piece;

/* What a step has the thread begin, one after the other; pieces follow. */
enum { SUMS_LOSS, SUMS_PIECES };

struct weir_train_sums {
    const weir_kernels *kernels; /* the network's, of who computes       */
    const weir_kernels *copying; /* the thread's own context              */
    weir_real *gradients;        /* in their memory */
    weir_real *host;             /* all pieces, which MPI reads and writes; NULL: it can do so where they are */
    weir_comm *channel;
    sums_piece *pieces; /* from the array's end to its beginning */
    uint32_t count;     /* of all that is to be done in a step   */
    weir_err_kept copy_err;
    weir_thread *thread;
    weir_train_trace *trace; /* NULL: none */
    weir_train_span span;    /* of the piece whose sum was begun last; begin_us 0: all have ended */
    /* Under the mutex. */
    weir_mutex mutex;
    weir_cond changed;
    uint32_t begun;     /* of the step at hand        */
    uint32_t under_way; /* of them, sums not ended    */
    bool has_loss;
    double loss;
    uint64_t from; /* gradients are finished from here on */
    int64_t busy_us;
    bool over;
};

/* Neighbouring tensors of one layer are one piece. */
static weir_err sums_cut(weir_train_sums *s, const weir_nn *nn) {
    uint32_t tensors, count = 0, layers = weir_nn_layers(weir_nn_shape_of(nn));
    const weir_nn_tensor *of = weir_nn_tensors(nn, &tensors);
    const uint64_t *begins = weir_nn_plan_of(nn)->begins;
    s->pieces = weir_calloc(tensors, sizeof *s->pieces);
    if (!s->pieces) return WEIR_NOMEM("for the sum of gradients");
    for (uint32_t i = tensors, layer = layers + 1; i-- > 0;) {
        uint64_t end = of[i].offset + (uint64_t)of[i].rows * of[i].cols;
        bool joins = count > 0 && s->pieces[count - 1].begin == end && begins[layer] != end;
        while (begins[layer] > of[i].offset)
            layer--;
        if (of[i].looked_up) continue;
        if (!joins) s->pieces[count++].end = end;
        s->pieces[count - 1].begin = of[i].offset;
    }
    WEIR_ASSERT(count > 0 && count <= tensors);
    s->count = SUMS_PIECES + count;
    uint64_t numbers = 0;
    for (uint32_t i = 0; i < count; i++) {
        s->pieces[i].host = numbers;
        numbers += s->pieces[i].end - s->pieces[i].begin;
    }
    if (s->kernels->unified) return WEIR_OK;
    s->host = weir_calloc(numbers, sizeof *s->host);
    return s->host ? WEIR_OK : WEIR_NOMEM("for the sum of gradients");
}

static bool sums_may_begin(const weir_train_sums *s) {
    if (s->begun == s->count) return false;
    return s->begun == SUMS_LOSS ? s->has_loss : s->pieces[s->begun - SUMS_PIECES].begin >= s->from;
}

static void sums_begin_next(weir_train_sums *s) {
    if (s->begun == SUMS_LOSS) {
        weir_comm_sum_doubles_begin(s->channel, &s->loss, 1);
    } else {
        const sums_piece piece = s->pieces[s->begun - SUMS_PIECES];
        const uint64_t count = piece.end - piece.begin;
        weir_real *numbers = s->host ? s->host + piece.host : s->gradients + piece.begin;
        if (s->host) {
            s->copying->to_host(s->copying, numbers, s->gradients + piece.begin, count * sizeof *numbers);
            weir_err err = s->copying->finish(s->copying);
            if (err) weir_err_kept_set(&s->copy_err, err); /* the others wait for a sum: they get one */
        }
        weir_comm_sum_floats_begin(s->channel, numbers, count);
    }
}

/* A sum is shown until the next one begins, or all have ended: spans of one track may not overlap. */
static void sums_show(weir_train_sums *s, int64_t now_us, bool begins) {
    s->span.end_us = now_us;
    if (s->span.begin_us) weir_train_trace_add(s->trace, &s->span);
    s->span.begin_us = begins ? now_us : 0;
}

/* Several sums are under way at a time, as one of few numbers is all waiting. */
static void sums_main(void *context) {
    weir_train_sums *s = context;
    weir_clock *clock = weir_clock_system();
    weir_comm_pace pace = {0};
    int64_t since_us = 0; /* when time was last counted */
    weir_mutex_lock(&s->mutex);
    while (!s->over) {
        bool begins = sums_may_begin(s);
        if (!begins && !s->under_way) {
            weir_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        weir_mutex_unlock(&s->mutex); /* nobody else writes what is read until begun and under_way say so */
        if (!s->under_way) since_us = weir_clock_mono_us(clock);
        if (begins && s->begun >= SUMS_PIECES) sums_show(s, weir_clock_mono_us(clock), true);
        if (begins) sums_begin_next(s);
        int64_t look_us = weir_clock_mono_us(clock);
        uint32_t under_way = weir_comm_sums_look(s->channel);
        int64_t now_us = weir_clock_mono_us(clock);
        if (!under_way) sums_show(s, now_us, false);
        weir_mutex_lock(&s->mutex);
        s->busy_us += now_us - since_us;
        since_us = now_us;
        if (begins || under_way != s->under_way) {
            s->begun += begins;
            s->under_way = under_way;
            weir_comm_pace_moved(&pace, now_us);
            weir_cond_broadcast(&s->changed);
        }
        int64_t nap_us = weir_comm_pace_nap(&pace, now_us - look_us, now_us);
        if (under_way && nap_us && !sums_may_begin(s)) weir_cond_wait_until(&s->changed, &s->mutex, now_us + nap_us);
    }
    weir_mutex_unlock(&s->mutex);
}

void weir_train_sums_trace(weir_train_sums *sums, weir_train_trace *trace, uint32_t track) {
    sums->trace = trace; /* the thread reads it in a step alone */
    sums->span = (weir_train_span){.track = track, .stage = WEIR_STAGE_REDUCE};
}

void weir_train_sums_begin(weir_train_sums *sums, uint32_t epoch, uint64_t batch) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(sums->begun == sums->count && !sums->under_way); /* the step before has waited */
    sums->span.epoch = epoch;
    sums->span.batch = batch;
    sums->from = UINT64_MAX;
    sums->has_loss = false;
    sums->busy_us = 0;
    sums->begun = 0;
    weir_cond_broadcast(&sums->changed);
    weir_mutex_unlock(&sums->mutex);
}

void weir_train_sums_loss(weir_train_sums *sums, double loss) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(!sums->has_loss);
    sums->loss = loss;
    sums->has_loss = true;
    weir_cond_broadcast(&sums->changed);
    weir_mutex_unlock(&sums->mutex);
}

void weir_train_sums_reach(weir_train_sums *sums, uint64_t from) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(from < sums->from);
    sums->from = from;
    weir_cond_broadcast(&sums->changed);
    weir_mutex_unlock(&sums->mutex);
}

weir_err weir_train_sums_wait(weir_train_sums *sums, double *lossp, int64_t *busy_us) {
    weir_mutex_lock(&sums->mutex);
    WEIR_ASSERT(sums->from == 0 && sums->has_loss);
    while (sums->begun < sums->count || sums->under_way)
        weir_cond_wait(&sums->changed, &sums->mutex);
    *lossp = sums->loss;
    *busy_us += sums->busy_us;
    weir_err err = weir_err_kept_get(&sums->copy_err);
    weir_mutex_unlock(&sums->mutex);
    if (err) return err;
    for (uint32_t i = 0; sums->host && i < sums->count - SUMS_PIECES; i++) {
        const sums_piece piece = sums->pieces[i];
        sums->kernels->to_device(sums->kernels, sums->gradients + piece.begin, sums->host + piece.host,
                                 (piece.end - piece.begin) * sizeof *sums->host);
    }
    return WEIR_OK;
}

weir_err weir_train_sums_open(const weir_nn *nn, weir_real *gradients, weir_comm *channel, weir_train_sums **sumsp) {
    *sumsp = NULL;
    weir_train_sums *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for the sum of gradients");
    s->kernels = weir_nn_kernels(nn);
    s->gradients = gradients;
    s->channel = channel;
    weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "sums of gradients");
    weir_cond_init(&s->changed);
    weir_err err = sums_cut(s, nn);
    s->begun = s->count;
    if (!err) err = s->kernels->open(s->kernels, &s->copying);
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
    if (sums->copying) sums->copying->close(sums->copying);
    weir_cond_destroy(&sums->changed);
    weir_mutex_destroy(&sums->mutex);
    weir_free(sums->pieces);
    weir_free(sums->host);
    weir_free(sums);
}
