/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - one batch: sampled, asked of other ranks, answered and encoded. Its memory grows to the largest and stays:
 * a pass soon allocates nothing.
 *
 * A row that another rank owns is asked for by (type, vertex, time), once a batch (asks.h), and comes back encoded: its
 * owner reads the features, evaluates the aggregates and scales, by the very code that encodes its own rows. A rank's
 * own rows are encoded in place and never sent.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>
#include <weir/store/sample/sampler.h>

#include "answers.h"
#include "batch.h"
#include "cache.h"
#include "deal.h"
#include "hand.h"
#include "lookahead.h"
#include "remote.h"
#include "thin.h"

#define ROWS_AHEAD      4u /* of a cache: between the prefetch of one and its copy */
#define BATCH_NO_MEMORY "for a batch; lower --batch or the fan-outs"

/* Streams of random numbers of a row. */
enum { RNG_ENTRIES = 1, RNG_UNKNOWN = 2 };

/* The inputs of one type. */
typedef struct batch_type {
    weir_real *numbers;
    uint32_t *slots;
    size_t capacity; /* rows */
    /* Of a type of which some rows stay in the kernels' memory: as many as numbers. */
    uint32_t *places, *brought;
    uint32_t *missing; /* own rows that do not stay */
} batch_type;

/* A target that this rank computes, before those of one time stand together. */
typedef struct batch_target {
    weir_target target;
    uint64_t id;     /* the low half of its vertex's */
    uint32_t number; /* of the epoch's targets       */
    uint32_t place;  /* as the list has them         */
} batch_target;

/* A batch with what it is made in. */
typedef struct batch_memory {
    weir_train_batch out; /* first: batch_memory_of relies on it */
    const weir_batches_opts *opts;
    weir_comm *const *channels; /* NULL where there is one rank */
    weir_block *block;
    batch_target *taken;
    weir_target *targets; /* the same apart, as the block has them, and so the next two */
    uint32_t *own;
    uint64_t *ids; /* of each of them: the low half of its vertex's */
    uint64_t *keys;
    uint32_t *node_counts; /* of each target: nodes numbered so far */
    bool shared;           /* targets of one time share what lies below them */
    size_t key_capacity;
    batch_type *types;
    weir_real **edges;
    size_t *edge_capacity;
    weir_train_thinned *thinned;  /* one a step; NULL: all edges are seen */
    weir_block_edges *seen;       /* likewise */
    weir_block_view thinned_view; /* the block with these, for whoever computes */
    weir_real **numbers_to;
    uint32_t **slots_to;
    weir_nn_resident *residents; /* one a type; NULL: no row stays */
    weir_nn_arrival *arrival;    /* NULL: a pass brings the batch to the kernels' memory */
    const weir_real **numbers_of;
    const uint32_t **slots_of;
    weir_train_hands hands;
    weir_train_asks asks;
    weir_buf foretold;        /* uint32_t: rows of others that a later batch reads */
    uint64_t nth;             /* of the stream's batches */
    weir_train_remote remote; /* vertices and edges that the part does not have */
    weir_buf asked;           /* what other ranks ask of this one for their batch of the same number, by rank */
    uint64_t *asked_bytes;
    weir_train_wants wants;
    weir_nn_rows *read; /* of embeddings that every rank has; NULL: nobody is told of them */
    weir_buf told, heard;
    uint64_t *heard_lengths;
} batch_memory;

struct weir_train_sampler {
    const weir_batches_opts *opts;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_comm *comm; /* NULL where there is one rank */
    bool shared;
    bool remote; /* the source asks other ranks: remote.h */
};

struct weir_train_fetcher {
    const weir_batches_opts *opts;
    weir_sample_source *source;
    weir_inputs *inputs;
    weir_train_answers answers;
};

static batch_memory *batch_memory_of(weir_train_batch *batch) {
    return (batch_memory *)(void *)batch;
}

static int64_t batch_row_time(const weir_block_view *view, uint32_t row) {
    return view->before_us[view->groups[view->input_nodes[row]]];
}

/* --- sample: the block, keys of its nodes, and whose its rows are ------------------------------------------------ */

/* TRAIN-E2: a node's key says where it stands in its target's own tree, and which target that is; where trees are
 * shared, which vertex it is, how far from the targets, and as of which time. Of a graph that stands still there is one
 * time, which says nothing. Vertices by their ids, which all ranks agree on. Nodes of the last hop have none: no layer
 * computes, and so drops, anything of theirs. */
static weir_err batch_make_keys(batch_memory *m, const weir_block_view *view) {
    uint32_t nodes = view->hop_end[view->hops - 1];
    if (nodes > m->key_capacity) {
        uint64_t *keys = weir_realloc_array(m->keys, nodes, sizeof *keys);
        if (!keys) return WEIR_NOMEM(BATCH_NO_MEMORY);
        m->keys = keys;
        m->key_capacity = nodes;
    }
    memset(m->node_counts, 0, m->out.own_count * sizeof *m->node_counts);
    for (uint32_t i = 0; m->shared && i < view->hops * view->types; i++) {
        for (uint32_t node = view->ranges[i].begin; node < view->ranges[i].end; node++) {
            weir_train_name of;
            weir_err err = weir_train_name_of(&m->opts->owners, &m->remote, i % view->types, view->vertices[node], &of);
            if (err) return err;
            const int64_t before_us = m->opts->targets->one_time ? 0 : view->before_us[view->groups[node]];
            const uint64_t name[2] = {of.id, i}; /* i: hop and type */
            m->keys[node] = weir_xxh3(name, sizeof name, (uint64_t)before_us);
        }
    }
    for (uint32_t node = 0; !m->shared && node < nodes; node++) {
        uint32_t group = view->groups[node];
        WEIR_ASSERT(group < m->out.own_count);
        const uint64_t name[3] = {m->ids[group], (uint64_t)m->targets[group].before_us, m->node_counts[group]++};
        m->keys[node] = weir_xxh3(name, sizeof name, 0);
    }
    m->out.keys = m->keys;
    return WEIR_OK;
}

/* What another rank has told of the target, as the block will call it. */
static weir_err batch_take_handed(batch_memory *m, const weir_train_sampler *sampler, uint32_t owner,
                                  batch_target *taken) {
    weir_train_handed handed = weir_train_hands_next(&m->hands, owner);
    uint32_t type = weir_nn_target_type(m->opts->shape);
    uint64_t vertex = handed.name.number; /* of a whole snapshot: its index, which the sampler checks */
    weir_err err = WEIR_OK;
    if (sampler->remote) err = weir_train_remote_add(sampler->source, type, &handed.name, &vertex);
    taken->target = (weir_target){vertex, handed.before_us, handed.event, (uint16_t)type};
    taken->id = handed.name.id;
    return err;
}

static int batch_by_time(const void *a, const void *b) {
    const batch_target *x = a, *y = b;
    if (x->target.before_us != y->target.before_us) return x->target.before_us < y->target.before_us ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Targets that share stand by time, as the sampler needs them; else, and those of one time, as in the list. */
static void batch_order_targets(batch_memory *m) {
    const uint32_t count = m->out.own_count;
    if (m->shared && !m->opts->targets->one_time && count) qsort(m->taken, count, sizeof *m->taken, batch_by_time);
    for (uint32_t i = 0; i < count; i++) {
        m->targets[i] = m->taken[i].target;
        m->ids[i] = m->taken[i].id;
        m->own[i] = m->taken[i].number;
    }
}

/* This rank's share of the global batch: what it owns; of a dealt one, what it has the turn of. */
static weir_err batch_take_targets(batch_memory *m, const weir_train_sampler *sampler, const weir_train_slice *slice) {
    const weir_batches_opts *o = m->opts;
    weir_train_batch *batch = &m->out;
    bool handed = false;
    weir_err err = WEIR_OK;
    if (o->dealt) err = weir_train_hands_exchange(&m->hands, &o->owners, o->targets, slice, sampler->comm, &handed);
    if (sampler->remote) weir_train_remote_begin(sampler->source, &m->remote, handed);
    for (uint64_t at = slice->begin; !err && at < slice->end; at++) {
        uint32_t target = slice->list[at - slice->begin];
        uint32_t owner = weir_train_target_owner(&o->owners, o->targets, target);
        uint32_t taker = o->dealt ? weir_train_deal_taker(at, o->owners.ranks) : owner;
        if (taker != o->owners.rank) continue;
        batch_target *taken = &m->taken[batch->own_count];
        *taken = (batch_target){.number = target, .place = batch->own_count++};
        if (owner == taker) {
            uint32_t place = weir_targets_place(o->targets, target);
            taken->target = o->targets->targets[place];
            taken->id = o->targets->ids[place];
        } else {
            err = batch_take_handed(m, sampler, owner, taken);
            batch->handed++;
        }
    }
    batch_order_targets(m);
    return err;
}

/* The block of a slice; none where no target of it is this rank's. */
static weir_err batch_draw(batch_memory *m, const weir_train_sampler *sampler, const weir_train_slice *slice) {
    const weir_batches_opts *o = m->opts;
    weir_train_batch *batch = &m->out;
    WEIR_ASSERT(slice->begin < slice->end && slice->end - slice->begin <= o->batch);

    *batch = (weir_train_batch){.epoch = slice->epoch,
                                .number = slice->number,
                                .batches = slice->batches,
                                .begin = slice->begin,
                                .end = slice->end,
                                .list = slice->list,
                                .seed = slice->seed,
                                .own = m->own,
                                .wants = &m->wants,
                                .keys = m->keys};
    weir_err err = batch_take_targets(m, sampler, slice);
    if (err) return err;
    if (!batch->own_count) return sampler->remote ? weir_train_remote_idle(sampler->source) : WEIR_OK;
    weir_sampler_seed(sampler->sampler, slice->seed);
    err = weir_sample(sampler->sampler, m->targets, batch->own_count, m->block);
    if (err) return err;
    weir_block_inputs(sampler->sampler, m->block, true);
    batch->nn.block = weir_block_look(m->block);
    return WEIR_OK;
}

weir_err weir_train_batch_foretell(weir_train_batch *batch, weir_train_sampler *sampler, uint64_t nth,
                                   const weir_train_slice *slice) {
    batch_memory *m = batch_memory_of(batch);
    const weir_batches_opts *o = m->opts;
    WEIR_ON_ROLE(WORKER);
    weir_buf_clear(&m->foretold);
    weir_err err = slice ? batch_draw(m, sampler, slice) : WEIR_OK;
    if (!err && slice && batch->nn.block)
        err = weir_train_lookahead_list(o->kept.lookahead, batch->nn.block, &m->foretold);
    weir_buf_clear(&m->asks.reads);
    return err ? err : weir_train_lookahead_tell(o->kept.lookahead, nth, &m->foretold, &m->asks.reads);
}

weir_err weir_train_batch_sample(weir_train_batch *batch, weir_train_sampler *sampler, const weir_train_slice *slice) {
    batch_memory *m = batch_memory_of(batch);
    const weir_batches_opts *o = m->opts;
    WEIR_ON_ROLE(WORKER);
    weir_err err = batch_draw(m, sampler, slice);
    const weir_block_view *view = batch->nn.block;
    m->nth = slice->nth;
    if (!err && view) err = batch_make_keys(m, view);
    if (!err && o->owners.ranks > 1)
        err = weir_train_asks_make(&m->asks, &o->owners, o->shape, o->kept, &m->remote, view);
    if (err || !view) return err;
    for (uint32_t step = 0; step < view->steps; step++)
        batch->edges += view->edges[step].count;
    batch->remote = m->asks.asks.length / sizeof(weir_train_ask);
    batch->cached = m->asks.hit_count - m->asks.partly;
    batch->rows = view->inputs;
    return WEIR_OK;
}

/* --- ask: other ranks for the rows that they own ------------------------------------------------------------------ */

weir_err weir_train_batch_ask(weir_train_batch *batch) {
    batch_memory *m = batch_memory_of(batch);
    const weir_batches_opts *o = m->opts;
    WEIR_ON_ROLE(WORKER);
    if (o->owners.ranks == 1) return WEIR_OK;
    weir_buf_clear(&m->asked);
    return weir_comm_exchange(m->channels[WEIR_TRAIN_CHANNEL_ASK], m->asks.asks.bytes, m->asks.bytes, &m->asked,
                              m->asked_bytes);
}

/* --- answer: what other ranks asked ------------------------------------------------------------------------------- */

/* Room for the rows of every type. */
static weir_err batch_grow(batch_memory *m) {
    const weir_block_view *view = m->out.nn.block;
    for (uint32_t type = 0; type < view->types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, type);
        batch_type *t = &m->types[type];
        size_t rows = view->input_ranges[type].end - view->input_ranges[type].begin;
        if (rows > t->capacity) {
            rows += rows / 8; /* else each batch that is a little larger takes memory anew, which the system zeroes */
            weir_free(t->numbers);
            weir_free(t->slots);
            t->numbers = weir_large_alloc((rows * inputs->width + 1) * sizeof *t->numbers);
            t->slots = weir_calloc(rows * inputs->category_count + 1, sizeof *t->slots);
            bool all = t->numbers && t->slots;
            if (m->residents) {
                weir_free(t->places);
                weir_free(t->brought);
                weir_free(t->missing);
                t->places = weir_calloc(rows, sizeof *t->places);
                t->brought = weir_calloc(rows, sizeof *t->brought);
                t->missing = weir_calloc(rows, sizeof *t->missing);
                all = all && t->places && t->brought && t->missing;
            }
            t->capacity = all ? rows : 0;
            if (!all) return WEIR_NOMEM(BATCH_NO_MEMORY);
        }
        WEIR_ASSERT(rows <= t->capacity);
        m->numbers_of[type] = t->numbers;
        m->slots_of[type] = t->slots;
    }
    return WEIR_OK;
}

/* Rows that this rank keeps, and those of the answers, to their places; then, of these, what stays for coming batches.
 */
static weir_err batch_put_rows(batch_memory *m, const weir_train_fetcher *f) {
    uint32_t types = weir_nn_types(m->opts->shape);
    weir_train_lookahead *lookahead = m->opts->kept.lookahead;
    if (lookahead) weir_train_lookahead_enter(lookahead, m->nth);
    for (uint32_t i = 0; i < m->asks.hit_count; i++) {
        const weir_train_ask *hit = &m->asks.hits[i];
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, hit->type);
        batch_type *t = &m->types[hit->type];
        const weir_train_ask *later = i + ROWS_AHEAD < m->asks.hit_count ? hit + ROWS_AHEAD : NULL;
        WEIR_ASSERT(hit->row < t->capacity);
        if (later && !lookahead) weir_train_cache_ahead_row(m->opts->kept.cache, later->type, (uint32_t)later->vertex);
        weir_real *numbers = t->numbers + (size_t)hit->row * inputs->width;
        uint32_t *slots = t->slots + (size_t)hit->row * inputs->category_count, place = (uint32_t)hit->vertex;
        if (lookahead)
            weir_train_lookahead_get(lookahead, place, hit->type, numbers, slots);
        else
            weir_train_cache_copy(m->opts->kept.cache, hit->type, place, numbers, slots);
    }
    for (uint32_t type = 0; type < types; type++) {
        m->numbers_to[type] = m->types[type].numbers;
        m->slots_to[type] = m->types[type].slots;
    }
    const weir_train_rows_to to = {m->numbers_to, m->slots_to, NULL};
    weir_err err = weir_train_answers_put(&f->answers, &m->asks.asks, &m->asks.earlier, &to);
    for (size_t at = 0; !err && at < m->asks.keeps.length; at += sizeof(weir_train_ask)) {
        weir_train_ask keep;
        memcpy(&keep, m->asks.keeps.bytes + at, sizeof keep);
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, keep.type);
        const batch_type *t = &m->types[keep.type];
        weir_train_lookahead_put(lookahead, (uint32_t)keep.vertex, keep.type,
                                 t->numbers + (size_t)keep.row * inputs->width,
                                 t->slots + (size_t)keep.row * inputs->category_count);
    }
    if (!err && lookahead) weir_train_lookahead_leave(lookahead);
    return err;
}

weir_err weir_train_batch_answer(weir_train_batch *batch, weir_train_fetcher *fetcher) {
    batch_memory *m = batch_memory_of(batch);
    const weir_batches_opts *o = m->opts;
    WEIR_ON_ROLE(WORKER);
    weir_err err = batch->own_count ? batch_grow(m) : WEIR_OK;
    if (err || o->owners.ranks == 1) return err;
    err = weir_train_answers_exchange(&fetcher->answers, &o->owners, fetcher->inputs, &m->asked, m->asked_bytes,
                                      m->channels[WEIR_TRAIN_CHANNEL_ANSWER]);
    return err ? err : batch_put_rows(m, fetcher);
}

weir_err weir_train_batch_expect(const weir_train_batch *batch, weir_train_fetcher *fetcher, uint32_t rank,
                                 uint64_t *askedp, uint64_t *answeredp) {
    const batch_memory *m = (const batch_memory *)(const void *)batch;
    const char *at = m->asks.asks.bytes;
    weir_train_owners owners = m->opts->owners;
    owners.rank = rank;
    for (uint32_t before = 0; before < rank; before++)
        at += m->asks.bytes[before];
    *askedp = m->asks.bytes[rank];
    return weir_train_answers_expect(&fetcher->answers, &owners, fetcher->inputs, at, *askedp, answeredp);
}

/* --- encode: what is not there yet, as floats --------------------------------------------------------------------- */

static weir_err batch_encode_edges(batch_memory *m, weir_train_fetcher *f, uint32_t step) {
    const weir_block_view *view = m->out.nn.block;
    uint32_t steps;
    const weir_sample_step *s = &weir_nn_steps(m->opts->shape, &steps)[step];
    size_t width = weir_nn_edge(m->opts->shape, s->relation)->width, numbers = view->edges[step].count * width;
    if (numbers > m->edge_capacity[step]) {
        weir_free(m->edges[step]);
        m->edges[step] = weir_calloc(numbers, sizeof *m->edges[step]);
        m->edge_capacity[step] = m->edges[step] ? numbers : 0;
        if (!m->edges[step]) return WEIR_NOMEM(BATCH_NO_MEMORY);
    }
    weir_err err = WEIR_OK;
    for (uint32_t begin = 0, end; !err && numbers && begin < view->edges[step].count; begin = end) {
        weir_real *to = m->edges[step] + begin * width;
        uint64_t first = view->edges[step].refs[begin];
        bool mixed = m->remote.edges[step] > 0; /* else none has to be looked at */
        end = mixed ? weir_train_remote_run_end(&view->edges[step], begin) : view->edges[step].count;
        if (first & WEIR_TRAIN_REMOTE) { /* encoded by their owner; they follow each other there, too */
            first &= ~WEIR_TRAIN_REMOTE;
            WEIR_ASSERT(first + (end - begin) <= m->remote.edges[step]);
            memcpy(to, m->remote.numbers[step].bytes + first * width * sizeof *to, (end - begin) * width * sizeof *to);
        } else {
            err = weir_inputs_edges(f->inputs, view, step, begin, end, to);
        }
    }
    return err;
}

void weir_train_entries_hide(const weir_nn_inputs *inputs, const weir_train_entries *entries, weir_real *numbers) {
    const uint64_t name[4] = {entries->seed, entries->batch, entries->vertex, (uint64_t)entries->before_us};
    weir_rng rng = weir_rng_stream(weir_xxh3(name, sizeof name, 0), RNG_ENTRIES, 0);
    weir_real kept = (weir_real)(1 / (1 - entries->rate));
    for (uint32_t i = 0; i < inputs->matrix_count; i++) {
        weir_real *row = numbers + inputs->matrices[i].column;
        for (uint32_t c = 0; c < inputs->matrices[i].columns; c++) {
            if (row[c] == 0) continue; /* it says the same hidden or not */
            row[c] = weir_rng_double(&rng) < entries->rate ? 0 : row[c] * kept;
        }
    }
}

/* Another share of the matrices' entries each time: a bag of words of which the network sees some is many bags, and few
 * labels are not learnt by heart. And some known vertices as if they were not: so what all of their type have in common
 * learns to stand for one alone. */
static weir_err batch_hide(batch_memory *m) {
    const weir_batches_opts *o = m->opts;
    const weir_block_view *view = m->out.nn.block;
    for (uint32_t type = 0; type < view->types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(o->shape, type);
        const batch_type *t = &m->types[type];
        bool entries = o->hidden > 0 && inputs->matrix_count > 0, vertices = o->unknown > 0 && inputs->known_count > 0;
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; (entries || vertices) && row < range.end; row++) {
            weir_train_name of;
            weir_err err =
                weir_train_name_of(&o->owners, &m->remote, type, view->vertices[view->input_nodes[row]], &of);
            if (err) return err;
            size_t place = row - range.begin;
            int64_t before_us = batch_row_time(view, row);
            const weir_train_entries hide = {o->hidden, m->out.seed, m->out.number, of.id, before_us};
            if (entries) weir_train_entries_hide(inputs, &hide, t->numbers + place * inputs->width);
            if (!vertices) continue;
            const uint64_t name[4] = {m->out.seed, m->out.number, of.id, (uint64_t)before_us};
            weir_rng rng = weir_rng_stream(weir_xxh3(name, sizeof name, 0), RNG_UNKNOWN, 0);
            if (weir_rng_double(&rng) < o->unknown) t->slots[(place + 1) * inputs->category_count - 1] = WEIR_NO_SLOT;
        }
    }
    return WEIR_OK;
}

/* Some edges are not seen: a vertex is not learnt by the neighbours that it happens to have. */
static weir_err batch_thin(batch_memory *m) {
    const weir_block_view *view = m->out.nn.block;
    const weir_train_thinning by = {m->opts->thinned, m->out.seed, m->out.number, m->keys};
    uint32_t steps;
    const weir_sample_step *step = weir_nn_steps(m->opts->shape, &steps);
    weir_err err = WEIR_OK;
    if (!m->thinned) return WEIR_OK;
    for (uint32_t s = 0; !err && s < view->steps; s++)
        err = weir_train_thin(&m->thinned[s], &view->edges[s], s, &by,
                              weir_nn_edge(m->opts->shape, step[s].relation)->width, m->edges[s], &m->seen[s]);
    if (err) return err;
    m->thinned_view = *view;
    m->thinned_view.edges = m->seen;
    m->out.nn.block = &m->thinned_view;
    return WEIR_OK;
}

/* Of embeddings that every rank has, all are told which rows a batch reads, which are summed in its step: long before
 * it, so that no step waits for that. */
static weir_err batch_tell(batch_memory *m) {
    if (!m->read) return WEIR_OK;
    weir_err err = weir_nn_rows_of_batch(m->read, m->out.own_count ? &m->out.nn : NULL);
    if (err) return err;
    weir_buf_clear(&m->told);
    weir_buf_clear(&m->heard);
    weir_nn_rows_write(m->read, &m->told);
    err = weir_buf_err(&m->told);
    if (err || !m->told.length) return err; /* there are no such embeddings, on any rank */
    m->out.heard = &m->heard;
    m->out.heard_lengths = m->heard_lengths;
    return weir_comm_gather(m->channels[WEIR_TRAIN_CHANNEL_ASK], m->told.bytes, m->told.length, &m->heard,
                            m->heard_lengths);
}

/* Of embeddings that are shared out, each rank tells the owners which it will need: none of a vertex that is hidden. */
static weir_err batch_want(batch_memory *m) {
    const weir_train_shares *shares = m->opts->shares;
    const weir_block_view *view = m->out.own_count ? m->out.nn.block : NULL;
    weir_err told = batch_tell(m);
    if (told || !shares) return told;
    weir_err err = weir_train_wants_list(&m->wants, shares, shares->rank, view, m->slots_of);
    for (uint32_t type = 0; !err && view && type < view->types; type++)
        m->slots_to[type] = m->types[type].slots;
    if (!err) weir_train_wants_place(&m->wants, shares, view, m->slots_to);
    return err ? err : weir_train_wants_tell(&m->wants, shares, m->channels[WEIR_TRAIN_CHANNEL_ASK]);
}

/* Of a type: what stays of its rows. Not where a batch hides entries of them, another share each time. */
static const weir_train_resident *batch_resident_of(const batch_memory *m, uint32_t type) {
    bool hides = m->opts->hidden > 0 && weir_nn_vertex(m->opts->shape, type)->matrix_count > 0;
    return hides ? NULL : weir_train_residents_of(m->opts->residents, type);
}

/* Finds the own rows of a type that stay, and lists the others. own: count of the rows, by their places; NULL: all. */
static uint32_t batch_find_resident(batch_memory *m, uint32_t type, const weir_train_resident *resident,
                                    const uint32_t *own, uint32_t count) {
    const weir_block_view *view = m->out.nn.block;
    const weir_block_range range = view->input_ranges[type];
    const size_t categories = weir_nn_vertex(m->opts->shape, type)->category_count;
    batch_type *t = &m->types[type];
    uint32_t missing = 0;
    memset(t->places, 0xff, (range.end - range.begin) * sizeof *t->places); /* WEIR_NO_SLOT */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t row = own ? own[i] : i;
        const uint64_t vertex = view->vertices[view->input_nodes[range.begin + row]];
        const uint32_t place = t->places[row] = weir_train_resident_place(resident, vertex);
        if (place == WEIR_NO_SLOT)
            t->missing[missing++] = row;
        else
            memcpy(t->slots + row * categories, resident->slots + place * categories, categories * sizeof *t->slots);
    }
    return missing;
}

/* The rows of a type; of those that stay the places, and the others one after the other. */
static weir_err batch_encode_type(batch_memory *m, const weir_train_fetcher *f, uint32_t type) {
    const weir_block_view *view = m->out.nn.block;
    const weir_train_resident *resident = batch_resident_of(m, type);
    const bool all = m->opts->owners.ranks == 1;
    const uint32_t rows = view->input_ranges[type].end - view->input_ranges[type].begin,
                   begin = all || type == 0 ? 0 : m->asks.own_ends[type - 1],
                   count = all ? rows : m->asks.own_ends[type] - begin;
    const uint32_t *own = all ? NULL : m->asks.own_rows + begin;
    const size_t width = weir_nn_vertex(m->opts->shape, type)->width;
    batch_type *t = &m->types[type];
    if (m->residents) m->residents[type] = (weir_nn_resident){0};
    if (!resident || rows == 0) return weir_inputs_block(f->inputs, view, type, own, count, t->numbers, t->slots);
    const uint32_t missing = batch_find_resident(m, type, resident, own, count);
    weir_err err = weir_inputs_block(f->inputs, view, type, t->missing, missing, t->numbers, t->slots);
    uint32_t brought = 0;
    for (uint32_t row = 0; !err && row < rows; row++) {
        t->brought[row] = t->places[row] == WEIR_NO_SLOT ? brought++ : WEIR_NO_SLOT;
        if (t->brought[row] != WEIR_NO_SLOT && t->brought[row] != row)
            memcpy(t->numbers + t->brought[row] * width, t->numbers + row * width, width * sizeof *t->numbers);
    }
    m->residents[type] = (weir_nn_resident){resident->table, t->places, t->brought, brought};
    return err;
}

weir_err weir_train_batch_encode(weir_train_batch *batch, weir_train_fetcher *fetcher) {
    batch_memory *m = batch_memory_of(batch);
    const weir_block_view *view = batch->nn.block;
    weir_err err = WEIR_OK;
    WEIR_ON_ROLE(WORKER);
    if (!batch->own_count) return batch_want(m);
    for (uint32_t type = 0; !err && type < view->types; type++)
        err = batch_encode_type(m, fetcher, type);
    if (!err) err = batch_hide(m);
    for (uint32_t step = 0; !err && step < view->steps; step++)
        err = batch_encode_edges(m, fetcher, step);
    if (!err) err = batch_thin(m);
    batch->nn.numbers = m->numbers_of;
    batch->nn.resident = m->residents;
    batch->nn.slots = m->slots_of;
    batch->nn.edges = (const weir_real *const *)m->edges;
    return err ? err : batch_want(m);
}

/* --- bring: to a device, if there is one -------------------------------------------------------------------------- */

weir_err weir_train_batch_bring(weir_train_batch *batch) {
    batch_memory *m = batch_memory_of(batch);
    WEIR_ON_ROLE(WORKER);
    if (!batch->own_count) return WEIR_OK;
    weir_err err = weir_nn_arrival_bring(m->arrival, m->opts->shape, &batch->nn, m->opts->drops ? batch->keys : NULL);
    if (!err) batch->nn.arrival = m->arrival;
    return err;
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

/* Whether targets of one time share what lies below them, and then draw by the time, not by their names. A target that
 * is alone in its time pays nothing for it. But what is judged is to be what serving will say: where steps draw, judged
 * targets draw by their names, as serving does, and share nothing. A graph that stands still nobody serves.
 *
 * This follows from the shape and from all targets: ranks agree, and a training that goes on does as it did. */
static bool batch_shares(const weir_batches_opts *opts, const weir_sample_step *steps, uint32_t count) {
    bool draws = false;
    for (uint32_t i = 0; i < count; i++)
        draws = draws || steps[i].strategy == WEIR_SAMPLE_UNIFORM || steps[i].strategy == WEIR_SAMPLE_WEIGHTED;
    return opts->targets->one_time || !draws || !opts->as_served;
}

weir_err weir_train_sampler_open(const weir_batches_opts *opts, weir_comm *const *channels,
                                 weir_train_sampler **samplerp) {
    *samplerp = NULL;
    weir_train_sampler *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(BATCH_NO_MEMORY);
    weir_sample_opts of = {.targets_max = opts->batch, .window = weir_nn_window(opts->shape)};
    of.steps = weir_nn_steps(opts->shape, &of.step_count);
    of.own_rows =
        weir_aggregates_of_ends(weir_snapshot_schema(opts->owners.snapshot), weir_nn_target_type(opts->shape)) != NULL;
    s->opts = opts;
    s->shared = of.shared = batch_shares(opts, of.steps, of.step_count);
    s->comm = channels ? channels[WEIR_TRAIN_CHANNEL_SAMPLE] : NULL;
    s->remote = weir_train_remote_needed(&opts->owners, opts->shape, opts->dealt);
    const weir_train_remote_opts elsewhere = {
        .owners = opts->owners, .shape = opts->shape, .batch = opts->batch, .comm = s->comm};
    weir_err err = s->remote ? weir_train_remote_source(&elsewhere, &s->source)
                             : weir_sample_over_snapshot(opts->owners.snapshot, &s->source);
    if (!err) err = weir_sampler_open(&of, s->source, &s->sampler);
    if (err) {
        weir_train_sampler_close(s);
        return err;
    }
    *samplerp = s;
    return WEIR_OK;
}

void weir_train_sampler_close(weir_train_sampler *sampler) {
    if (!sampler) return;
    weir_sampler_close(sampler->sampler);
    weir_sample_source_close(sampler->source);
    weir_free(sampler);
}

weir_err weir_train_fetcher_open(const weir_batches_opts *opts, weir_train_fetcher **fetcherp) {
    *fetcherp = NULL;
    weir_train_fetcher *f = weir_calloc(1, sizeof *f);
    if (!f) return WEIR_NOMEM(BATCH_NO_MEMORY);
    f->opts = opts;
    weir_err err =
        weir_train_answers_open(&opts->owners, opts->shape, opts->wire, !opts->targets->one_time, &f->answers);
    if (!err) err = weir_sample_over_snapshot(opts->owners.snapshot, &f->source);
    if (!err) err = weir_inputs_open(opts->shape, weir_snapshot_schema(opts->owners.snapshot), f->source, &f->inputs);
    if (err) {
        weir_train_fetcher_close(f);
        return err;
    }
    *fetcherp = f;
    return WEIR_OK;
}

void weir_train_fetcher_close(weir_train_fetcher *fetcher) {
    if (!fetcher) return;
    weir_inputs_close(fetcher->inputs);
    weir_sample_source_close(fetcher->source);
    weir_train_answers_close(&fetcher->answers);
    weir_free(fetcher);
}

uint64_t weir_train_fetcher_bytes(const weir_train_fetcher *fetcher) {
    return weir_train_answers_bytes(&fetcher->answers);
}

weir_err weir_train_batch_open(const weir_batches_opts *opts, const weir_train_sampler *sampler,
                               weir_comm *const *channels, weir_train_batch **batchp) {
    uint32_t types = weir_nn_types(opts->shape), steps;
    *batchp = NULL;
    batch_memory *m = weir_calloc(1, sizeof *m);
    if (!m) return WEIR_NOMEM(BATCH_NO_MEMORY);
    weir_nn_steps(opts->shape, &steps);
    m->opts = opts;
    m->channels = channels;
    m->shared = sampler->shared;
    m->taken = weir_calloc(opts->batch, sizeof *m->taken);
    m->targets = weir_calloc(opts->batch, sizeof *m->targets);
    m->own = weir_calloc(opts->batch, sizeof *m->own);
    m->ids = weir_calloc(opts->batch, sizeof *m->ids);
    m->node_counts = weir_calloc(opts->batch, sizeof *m->node_counts);
    m->types = weir_calloc(types, sizeof *m->types);
    m->numbers_to = weir_calloc(types, sizeof *m->numbers_to);
    m->slots_to = weir_calloc(types, sizeof *m->slots_to);
    m->numbers_of = weir_calloc(types, sizeof *m->numbers_of);
    m->slots_of = weir_calloc(types, sizeof *m->slots_of);
    m->edges = weir_calloc(steps, sizeof *m->edges);
    m->edge_capacity = weir_calloc(steps, sizeof *m->edge_capacity);
    m->asked_bytes = weir_calloc(opts->owners.ranks, sizeof *m->asked_bytes);
    if (opts->residents) m->residents = weir_calloc(types, sizeof *m->residents);
    const bool thins = opts->thinned > 0;
    if (thins) m->thinned = weir_calloc(steps, sizeof *m->thinned);
    if (thins) m->seen = weir_calloc(steps, sizeof *m->seen);
    bool all = (!thins || (m->thinned && m->seen)) && (!opts->residents || m->residents) && m->taken && m->targets &&
               m->own && m->ids && m->node_counts && m->types && m->numbers_to && m->slots_to && m->numbers_of &&
               m->slots_of && m->edges && m->edge_capacity && m->asked_bytes;
    weir_err err = all ? WEIR_OK : WEIR_NOMEM(BATCH_NO_MEMORY);
    if (!err) err = weir_train_asks_open(&opts->owners, types, !opts->targets->one_time, &m->asks);
    if (!err) err = weir_train_hands_open(opts->owners.ranks, &m->hands);
    if (!err) err = weir_train_wants_open(opts->owners.ranks, &m->wants);
    if (!err) err = weir_train_remote_open(opts->shape, &m->remote);
    if (!err) err = weir_block_open(sampler->sampler, &m->block);
    if (!err && opts->tells && channels) {
        m->heard_lengths = weir_calloc(opts->owners.ranks, sizeof *m->heard_lengths);
        err = m->heard_lengths ? weir_nn_rows_open(opts->tells, &m->read) : WEIR_NOMEM(BATCH_NO_MEMORY);
    }
    if (!err && opts->kernels) err = weir_nn_arrival_open(opts->kernels, &m->arrival);
    if (err) {
        weir_train_batch_close(&m->out);
        return err;
    }
    *batchp = &m->out;
    return WEIR_OK;
}

void weir_train_batch_close(weir_train_batch *batch) {
    if (!batch) return;
    batch_memory *m = batch_memory_of(batch);
    uint32_t steps;
    weir_nn_steps(m->opts->shape, &steps);
    for (uint32_t i = 0; m->edges && i < steps; i++)
        weir_free(m->edges[i]);
    for (uint32_t i = 0; m->thinned && i < steps; i++)
        weir_train_thinned_free(&m->thinned[i]);
    for (uint32_t i = 0; m->types && i < weir_nn_types(m->opts->shape); i++) {
        weir_free(m->types[i].numbers);
        weir_free(m->types[i].slots);
        weir_free(m->types[i].places);
        weir_free(m->types[i].brought);
        weir_free(m->types[i].missing);
    }
    weir_nn_arrival_close(m->arrival);
    weir_block_close(m->block);
    weir_train_hands_close(&m->hands);
    weir_train_asks_close(&m->asks);
    weir_train_wants_close(&m->wants);
    weir_train_remote_close(&m->remote);
    weir_buf_free(&m->asked);
    weir_buf_free(&m->foretold);
    weir_nn_rows_close(m->read);
    weir_buf_free(&m->told);
    weir_buf_free(&m->heard);
    weir_free(m->heard_lengths);
    weir_free(m->taken);
    weir_free(m->targets);
    weir_free(m->own);
    weir_free(m->ids);
    weir_free(m->keys);
    weir_free(m->node_counts);
    weir_free(m->types);
    weir_free(m->edges);
    weir_free(m->edge_capacity);
    weir_free(m->thinned);
    weir_free(m->seen);
    weir_free(m->numbers_to);
    weir_free(m->slots_to);
    weir_free(m->residents);
    weir_free(m->numbers_of);
    weir_free(m->slots_of);
    weir_free(m->asked_bytes);
    weir_free(m);
}
