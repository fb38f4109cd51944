/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales.c - what training learns about its inputs before it begins: blocks of targets that are spread over the
 * training part. Each rank samples those of its own targets, and shows its learner the rows that it owns, of its blocks
 * and of the others': each once, as one rank alone would. The moments are then added up on all ranks.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>

#include "form.h"
#include "remote.h"
#include "training_private.h"

#define SCALES_TARGETS   8192u /* are looked at where there are as many, and fewer than twice that */
#define SCALES_BATCH     256u
#define SCALES_NO_MEMORY "while learning the scales of inputs"

typedef struct scales_row {
    uint64_t vertex;
    int64_t before_us;
    uint64_t event;
    uint32_t type;
} scales_row;

typedef struct scales_survey {
    weir_train_owners owners;
    weir_sample_source *source; /* of this rank's snapshot or part */
    weir_sample_source *remote; /* of edges that it lacks; NULL: of none */
    weir_train_remote told;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_train_asks asks;
    weir_buf asked;
    uint64_t *asked_bytes;
    weir_buf rows; /* scales_row: what this rank owns, of the blocks at hand of all ranks */
    weir_target targets[SCALES_BATCH];
    uint64_t vertices[SCALES_BATCH];
    int64_t before_us[SCALES_BATCH];
    uint64_t events[SCALES_BATCH];
} scales_survey;

static int scales_row_order(const void *a, const void *b) {
    const scales_row *x = a, *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    if (x->before_us != y->before_us) return x->before_us < y->before_us ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static weir_err scales_collect_rows(scales_survey *s, const weir_nn_shape *shape, weir_comm *comm,
                                    const weir_block_view *view) {
    weir_buf_clear(&s->rows);
    weir_err err = weir_train_asks_make(&s->asks, &s->owners, shape, (weir_train_kept){.cache = NULL}, &s->told, view);
    for (uint32_t type = 0, at = 0; !err && view && type < view->types; type++) {
        if (weir_train_row_bytes(weir_nn_vertex(shape, type)) == 0) at = s->asks.own_ends[type];
        for (; at < s->asks.own_ends[type]; at++) {
            uint32_t node = view->input_nodes[view->input_ranges[type].begin + s->asks.own_rows[at]];
            const scales_row row = {.vertex = view->vertices[node],
                                    .before_us = view->before_us[view->groups[node]],
                                    .event = node < view->targets ? view->events[node] : WEIR_SAMPLE_NO_TARGET,
                                    .type = type};
            weir_buf_append(&s->rows, &row, sizeof row);
        }
    }
    weir_buf_clear(&s->asked);
    if (!err) err = weir_comm_exchange(comm, s->asks.asks.bytes, s->asks.bytes, &s->asked, s->asked_bytes);
    for (size_t at = 0; !err && at < s->asked.length; at += sizeof(weir_train_ask)) {
        weir_train_ask ask;
        memcpy(&ask, s->asked.bytes + at, sizeof ask);
        scales_row row = {.before_us = ask.before_us, .event = ask.event, .type = ask.type};
        err = weir_train_asked(&s->owners, &ask, &row.vertex);
        weir_buf_append(&s->rows, &row, sizeof row);
    }
    if (err) return err;
    /* Blocks have each row once; of those of several ranks, two may have the same. */
    if (s->owners.ranks > 1 && s->rows.length)
        qsort(s->rows.bytes, s->rows.length / sizeof(scales_row), sizeof(scales_row), scales_row_order);
    return weir_buf_err(&s->rows);
}

static weir_err scales_learn_rows(scales_survey *s, weir_nn_learner *learner) {
    const scales_row *rows = (const scales_row *)(const void *)s->rows.bytes;
    size_t count = s->rows.length / sizeof *rows;
    weir_err err = WEIR_OK;
    for (size_t at = 0; !err && at < count;) {
        weir_sample_vertices of = {
            .vertices = s->vertices, .before_us = s->before_us, .events = s->events, .type = (uint16_t)rows[at].type};
        for (; at < count && of.count < SCALES_BATCH && rows[at].type == of.type; at++) {
            if (at > 0 && scales_row_order(&rows[at - 1], &rows[at]) == 0) continue;
            s->vertices[of.count] = rows[at].vertex;
            s->events[of.count] = rows[at].event;
            s->before_us[of.count++] = rows[at].before_us;
        }
        err = weir_inputs_learn_rows(s->inputs, &of, learner);
    }
    return err;
}

/* Those that are here; the others were shown to the learner of the rank that drew them. */
static weir_err scales_learn_edges(scales_survey *s, const weir_block_view *view, weir_nn_learner *learner) {
    weir_err err = WEIR_OK;
    for (uint32_t step = 0; !err && step < view->steps; step++) {
        const weir_block_edges *edges = &view->edges[step];
        for (uint32_t begin = 0, end; !err && begin < edges->count; begin = end) {
            end = weir_train_remote_run_end(edges, begin);
            if (!(edges->refs[begin] & WEIR_TRAIN_REMOTE))
                err = weir_inputs_learn_edges(s->inputs, view, step, begin, end, learner);
        }
    }
    return err;
}

static weir_err scales_open(scales_survey *s, const weir_trained *t) {
    weir_sample_opts opts = {
        .targets_max = SCALES_BATCH, .seed = t->opts.sample_seed, .window = weir_nn_window(t->shape)};
    opts.steps = weir_nn_steps(t->shape, &opts.step_count);
    opts.own_rows =
        weir_aggregates_of_ends(weir_snapshot_schema(t->opts.snapshot), weir_nn_target_type(t->shape)) != NULL;
    s->owners = weir_training_owners(t);
    s->asked_bytes = weir_calloc(s->owners.ranks, sizeof *s->asked_bytes);
    if (!s->asked_bytes) return WEIR_NOMEM(SCALES_NO_MEMORY);
    weir_err err = weir_train_asks_open(&s->owners, weir_nn_types(t->shape), false, &s->asks);
    if (!err) err = weir_sample_over_snapshot(t->opts.snapshot, &s->source);
    if (!err) err = weir_train_remote_open(t->shape, &s->told);
    const weir_train_remote_opts remote = {s->owners, t->shape, t->learner, SCALES_BATCH, t->comm};
    if (!err && weir_train_remote_needed(&s->owners, t->shape, false))
        err = weir_train_remote_source(&remote, &s->remote);
    if (!err) err = weir_sampler_open(&opts, s->remote ? s->remote : s->source, &s->sampler);
    if (!err) err = weir_block_open(s->sampler, &s->block);
    return err ? err : weir_inputs_open(t->shape, weir_snapshot_schema(t->opts.snapshot), s->source, &s->inputs);
}

static void scales_close(scales_survey *s) {
    weir_inputs_close(s->inputs);
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->remote);
    weir_sample_source_close(s->source);
    weir_train_remote_close(&s->told);
    weir_train_asks_close(&s->asks);
    weir_buf_free(&s->asked);
    weir_buf_free(&s->rows);
    weir_free(s->asked_bytes);
    weir_free(s);
}

/* Shows the learner every so-many-th target of the training part, some at a time: on all ranks as many times. */
static weir_err scales_look_around(const weir_trained *t, weir_nn_learner *learner) {
    uint64_t count = t->targets->ends[WEIR_TARGETS_TRAIN];
    uint64_t stride = count > SCALES_TARGETS ? count / SCALES_TARGETS : 1;
    scales_survey *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(SCALES_NO_MEMORY);
    weir_err err = scales_open(s, t);
    for (uint64_t begin = 0; !err && begin < count; begin += SCALES_BATCH * stride) {
        const weir_block_view *view = NULL;
        uint32_t own = 0;
        for (uint64_t i = begin; i < count && i < begin + SCALES_BATCH * stride; i += stride) {
            if (weir_train_target_owner(&s->owners, t->targets, i) != s->owners.rank) continue;
            WEIR_ASSERT(own < SCALES_BATCH);
            s->targets[own++] = t->targets->targets[weir_targets_place(t->targets, i)];
        }
        if (s->remote) weir_train_remote_begin(s->remote, &s->told, false);
        if (!own && s->remote) err = weir_train_remote_idle(s->remote);
        if (err) break;
        if (own) {
            err = weir_sample(s->sampler, s->targets, own, s->block);
            if (err) break;
            weir_block_inputs(s->sampler, s->block, true);
            view = weir_block_look(s->block);
        }
        err = scales_collect_rows(s, t->shape, t->comm, view);
        if (!err) err = scales_learn_rows(s, learner);
        if (!err && view) err = scales_learn_edges(s, view, learner);
    }
    scales_close(s);
    return err;
}

/* Each rank's moments to all, merged in the order of the ranks: the same bits everywhere. */
static weir_err scales_merge(const weir_trained *t, weir_nn_learner *learner) {
    uint32_t count, ranks = weir_comm_ranks(t->comm);
    weir_nn_moments *moments = weir_nn_learner_moments(learner, &count);
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_buf all = {0};
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM(SCALES_NO_MEMORY);
    if (!err) err = weir_comm_gather(t->comm, moments, count * sizeof *moments, &all, lengths);
    for (uint32_t i = 0; !err && i < count; i++) {
        moments[i] = (weir_nn_moments){0};
        for (uint32_t rank = 0; rank < ranks; rank++) {
            weir_nn_moments some;
            WEIR_ASSERT(lengths[rank] == count * sizeof some);
            memcpy(&some, all.bytes + (rank * (size_t)count + i) * sizeof some, sizeof some);
            weir_nn_moments_merge(&moments[i], &some);
        }
    }
    weir_free(lengths);
    weir_buf_free(&all);
    return err;
}

weir_err weir_training_scales(weir_trained *t) {
    weir_err err = weir_nn_learner_open(t->shape, &t->learner);
    if (!err) err = scales_look_around(t, t->learner);
    if (!err) err = scales_merge(t, t->learner);
    if (!err) weir_nn_learner_finish(t->learner);
    return err;
}
