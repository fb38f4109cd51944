/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - what a batch is made of. Memory grows to the largest batch and stays: a pass soon allocates nothing.
 *
 * A row that another rank owns is asked for by (type, vertex, time) and comes back encoded: its owner reads the
 * features, evaluates the aggregates and scales, by the very code that encodes its own rows.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>
#include <weir/store/sample/sampler.h>

#include "batch.h"

typedef struct row_ask {
    uint64_t vertex;
    int64_t before_us;
    uint32_t type;
    uint32_t row; /* of the asker's type */
} row_ask;

/* The inputs of one type. */
typedef struct making_type {
    weir_real *numbers;
    uint32_t *slots;
    size_t capacity; /* rows */
} making_type;

struct weir_making {
    weir_train_batch out; /* first: a batch is its making */
    const weir_batches_opts *opts;
    weir_block *block;
    weir_target *targets;
    uint64_t *own;
    uint64_t *keys;
    uint32_t *node_counts; /* of each target: nodes numbered so far */
    size_t key_capacity;
    making_type *types;
    weir_real **edges;
    size_t *edge_capacity;
    const weir_real **numbers_of;
    const uint32_t **slots_of;
    weir_buf asks;       /* row_ask, by owner                             */
    uint64_t *ask_bytes; /* to each rank                                  */
};

struct weir_train_sampler {
    const weir_batches_opts *opts;
    weir_sample_source *source;
    weir_sampler *sampler;
};

struct weir_train_fetcher {
    const weir_batches_opts *opts;
    weir_inputs *inputs;
    weir_buf asked, answers, received;
    uint64_t *lengths, *received_lengths;
};

static uint32_t rank_of(const weir_batches_opts *opts) {
    return opts->owners.ranks > 1 ? weir_comm_rank(opts->channel) : 0;
}

static uint32_t owner_of(const weir_batches_opts *opts, uint32_t type, uint64_t vertex) {
    const weir_owners *owners = &opts->owners;
    if (owners->ranks == 1) return 0;
    if (owners->of) return owners->of[type][vertex];
    return (uint32_t)(weir_snapshot_vertices_of(opts->snapshot, type)->ids[vertex].low % owners->ranks);
}

/* --- sample ------------------------------------------------------------------------------------------------------- */

weir_err weir_train_sampler_open(const weir_batches_opts *opts, weir_train_sampler **samplerp) {
    *samplerp = NULL;
    weir_train_sampler *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
    weir_sample_opts of = {.targets_max = opts->batch, .seed = opts->seed, .window = weir_nn_window(opts->shape)};
    of.steps = weir_nn_steps(opts->shape, &of.step_count);
    s->opts = opts;
    weir_err err = weir_sample_over_snapshot(opts->snapshot, &s->source);
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

/* This rank's share of the global batch. */
static void take_targets(weir_making *m, uint64_t number) {
    const weir_batches_opts *o = m->opts;
    weir_train_batch *out = &m->out;
    *out = (weir_train_batch){.number = number, .begin = number * o->batch, .own = m->own, .keys = m->keys};
    out->end = o->count - out->begin < o->batch ? o->count : out->begin + o->batch;
    for (uint64_t i = out->begin; i < out->end; i++) {
        const weir_target *target = &o->targets->targets[o->list[i]];
        if (owner_of(o, target->type, (uint64_t)target->vertex) != rank_of(o)) continue;
        m->targets[out->own_count] = *target;
        m->own[out->own_count++] = o->list[i];
    }
}

/* A node's key says where it stands in its target's own tree, and which target that is (TRAIN-E2). */
static weir_err make_keys(weir_making *m, const weir_block_view *view) {
    if (view->nodes > m->key_capacity) {
        uint64_t *keys = weir_realloc_array(m->keys, view->nodes, sizeof *keys);
        if (!keys) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
        m->keys = keys;
        m->key_capacity = view->nodes;
    }
    memset(m->node_counts, 0, m->out.own_count * sizeof *m->node_counts);
    for (uint32_t node = 0; node < view->nodes; node++) {
        uint32_t group = view->groups[node];
        const uint64_t name[3] = {(uint64_t)m->targets[group].vertex, (uint64_t)m->targets[group].before_us,
                                  m->node_counts[group]++};
        m->keys[node] = weir_xxh3(name, sizeof name, 0);
    }
    m->out.keys = m->keys;
    return WEIR_OK;
}

static int64_t row_time(const weir_block_view *view, uint32_t row) {
    return view->before_us[view->groups[view->input_nodes[row]]];
}

static void ask_rank(weir_making *m, const weir_block_view *view, uint32_t rank) {
    size_t before = m->asks.length;
    for (uint32_t type = 0; type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; row < range.end; row++) {
            uint64_t vertex = view->vertices[view->input_nodes[row]];
            if (owner_of(m->opts, type, vertex) != rank) continue;
            const row_ask ask = {vertex, row_time(view, row), type, row - range.begin};
            weir_buf_append(&m->asks, &ask, sizeof ask);
        }
    }
    m->ask_bytes[rank] = m->asks.length - before;
}

/* Of every rank, our own too: what is local takes the same way but for the exchange. view: NULL without targets. */
static weir_err make_asks(weir_making *m, const weir_block_view *view) {
    uint32_t ranks = m->opts->owners.ranks;
    weir_buf_clear(&m->asks);
    memset(m->ask_bytes, 0, ranks * sizeof *m->ask_bytes);
    for (uint32_t rank = 0; ranks > 1 && view && rank < ranks; rank++)
        ask_rank(m, view, rank);
    return weir_buf_err(&m->asks);
}

/* The sampler follows those that it goes on from; the last ones are followed here for the first time. */
static weir_err check_inputs(const weir_making *m, const weir_block_view *view) {
    for (uint32_t type = 0; type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        uint64_t count = weir_snapshot_vertices_of(m->opts->snapshot, type)->count;
        for (uint32_t row = range.begin; row < range.end; row++) {
            uint64_t vertex = view->vertices[view->input_nodes[row]];
            if (vertex >= count)
                return WEIR_ERR(WEIR_ECORRUPT,
                                "the snapshot says that a neighbour is vertex %llu of type %u, of which there are only "
                                "%llu; take another copy",
                                (unsigned long long)vertex, type, (unsigned long long)count);
        }
    }
    return WEIR_OK;
}

weir_err weir_making_sample(weir_making *making, weir_train_sampler *sampler, uint64_t number) {
    const weir_block_view *view = NULL;
    weir_err err = WEIR_OK;
    take_targets(making, number);
    if (making->out.own_count) {
        err = weir_sample(sampler->sampler, making->targets, making->out.own_count, making->block);
        if (err) return err;
        weir_block_inputs(sampler->sampler, making->block, true);
        view = weir_block_look(making->block);
        making->out.batch.block = view;
        for (uint32_t step = 0; step < view->steps; step++)
            making->out.edges += view->edges[step].count;
        err = check_inputs(making, view);
        if (!err) err = make_keys(making, view);
    }
    return err ? err : make_asks(making, view);
}

/* --- fetch -------------------------------------------------------------------------------------------------------- */

static size_t row_bytes(const weir_nn_inputs *inputs) {
    return inputs->width * sizeof(weir_real) + inputs->category_count * sizeof(uint32_t);
}

static weir_err answer_one(weir_train_fetcher *f, const row_ask *ask) {
    const weir_snapshot *snapshot = f->opts->snapshot;
    if (ask->type >= weir_nn_types(f->opts->shape) ||
        ask->vertex >= weir_snapshot_vertices_of(snapshot, ask->type)->count)
        return WEIR_ERR(WEIR_ECORRUPT,
                        "another rank asked for vertex %llu of type %u; all ranks need the same snapshot",
                        (unsigned long long)ask->vertex, ask->type);
    assert(owner_of(f->opts, ask->type, ask->vertex) == rank_of(f->opts));
    const weir_nn_inputs *inputs = weir_nn_vertex(f->opts->shape, ask->type);
    char *room = weir_buf_reserve(&f->answers, row_bytes(inputs) + 1);
    if (!room) return weir_buf_err(&f->answers);
    weir_real *numbers = (weir_real *)(void *)room;
    uint32_t *slots = (uint32_t *)(void *)(room + inputs->width * sizeof *numbers);
    weir_err err = weir_inputs_rows(f->inputs, ask->type, &ask->vertex, &ask->before_us, 1, numbers, slots);
    weir_buf_commit(&f->answers, row_bytes(inputs));
    return err;
}

/* Answers in the order of the asks, which is by rank. */
static weir_err answer_all(weir_train_fetcher *f) {
    const char *at = f->asked.bytes;
    weir_err err = WEIR_OK;
    weir_buf_clear(&f->answers);
    for (uint32_t rank = 0; !err && rank < f->opts->owners.ranks; rank++) {
        size_t before = f->answers.length;
        for (uint64_t n = f->received_lengths[rank] / sizeof(row_ask); !err && n > 0; n--) {
            row_ask ask;
            memcpy(&ask, at, sizeof ask);
            err = answer_one(f, &ask);
            at += sizeof ask;
        }
        f->lengths[rank] = f->answers.length - before;
    }
    return err;
}

static weir_err grow_types(weir_making *m) {
    const weir_block_view *view = m->out.batch.block;
    for (uint32_t type = 0; type < view->types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, type);
        making_type *t = &m->types[type];
        size_t rows = view->input_ranges[type].end - view->input_ranges[type].begin;
        if (rows > t->capacity) {
            weir_free(t->numbers);
            weir_free(t->slots);
            t->numbers = weir_calloc(rows * inputs->width + 1, sizeof *t->numbers);
            t->slots = weir_calloc(rows * inputs->category_count + 1, sizeof *t->slots);
            t->capacity = t->numbers && t->slots ? rows : 0;
            if (!t->capacity) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
        }
        m->numbers_of[type] = t->numbers;
        m->slots_of[type] = t->slots;
    }
    return WEIR_OK;
}

/* Puts the answers where the asks came from. */
static weir_err put_answers(weir_making *m, const weir_train_fetcher *f) {
    const char *answer = f->received.bytes, *end = answer + f->received.length;
    for (size_t at = 0; at < m->asks.length; at += sizeof(row_ask)) {
        row_ask ask;
        memcpy(&ask, m->asks.bytes + at, sizeof ask);
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, ask.type);
        size_t numbers = inputs->width * sizeof(weir_real);
        if ((size_t)(end - answer) < row_bytes(inputs))
            return WEIR_ERR(WEIR_ECORRUPT, "another rank answered too little; all ranks need the same program");
        memcpy(m->types[ask.type].numbers + (size_t)ask.row * inputs->width, answer, numbers);
        memcpy(m->types[ask.type].slots + (size_t)ask.row * inputs->category_count, answer + numbers,
               row_bytes(inputs) - numbers);
        answer += row_bytes(inputs);
    }
    return WEIR_OK;
}

weir_err weir_making_exchange(weir_making *making, weir_train_fetcher *fetcher) {
    const weir_batches_opts *o = making->opts;
    weir_err err = making->out.own_count ? grow_types(making) : WEIR_OK;
    if (err || o->owners.ranks == 1) return err;
    weir_buf_clear(&fetcher->asked);
    weir_buf_clear(&fetcher->received);
    err = weir_comm_exchange(o->channel, making->asks.bytes, making->ask_bytes, &fetcher->asked,
                             fetcher->received_lengths);
    if (!err) err = answer_all(fetcher);
    if (!err)
        err = weir_comm_exchange(o->channel, fetcher->answers.bytes, fetcher->lengths, &fetcher->received,
                                 fetcher->received_lengths);
    if (!err) err = put_answers(making, fetcher);
    making->out.remote = making->asks.length / sizeof(row_ask) - making->ask_bytes[rank_of(o)] / sizeof(row_ask);
    return err;
}

/* One rank alone: rows of a type stand side by side already. */
static weir_err encode_type(weir_making *m, weir_train_fetcher *f, uint32_t type) {
    enum { PIECE = 256 };
    const weir_block_view *view = m->out.batch.block;
    const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, type);
    weir_block_range range = view->input_ranges[type];
    uint64_t vertices[PIECE];
    int64_t before_us[PIECE];
    weir_err err = WEIR_OK;
    for (uint32_t begin = range.begin; !err && begin < range.end; begin += PIECE) {
        uint32_t count = range.end - begin < PIECE ? range.end - begin : PIECE;
        for (uint32_t i = 0; i < count; i++) {
            vertices[i] = view->vertices[view->input_nodes[begin + i]];
            before_us[i] = row_time(view, begin + i);
        }
        size_t row = begin - range.begin;
        err =
            weir_inputs_rows(f->inputs, type, vertices, before_us, count, m->types[type].numbers + row * inputs->width,
                             m->types[type].slots + row * inputs->category_count);
    }
    return err;
}

static weir_err encode_edges(weir_making *m, const weir_train_fetcher *f, uint32_t step) {
    const weir_block_view *view = m->out.batch.block;
    uint32_t steps;
    const weir_sample_step *s = &weir_nn_steps(m->opts->shape, &steps)[step];
    size_t numbers = (size_t)view->edges[step].count * weir_nn_edge(m->opts->shape, s->relation)->width;
    if (numbers > m->edge_capacity[step]) {
        weir_free(m->edges[step]);
        m->edges[step] = weir_calloc(numbers, sizeof *m->edges[step]);
        m->edge_capacity[step] = m->edges[step] ? numbers : 0;
        if (!m->edges[step]) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
    }
    if (numbers) weir_inputs_edges(f->inputs, view, step, m->edges[step]);
    return WEIR_OK;
}

static void hide_entries(weir_making *m) {
    const weir_block_view *view = m->out.batch.block;
    for (uint32_t type = 0; type < view->types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(m->opts->shape, type);
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; inputs->matrix_count && row < range.end; row++) {
            const weir_entries entries = {m->opts->hidden, m->opts->seed, m->out.number,
                                          view->vertices[view->input_nodes[row]], row_time(view, row)};
            weir_entries_hide(inputs, &entries, m->types[type].numbers + (size_t)(row - range.begin) * inputs->width);
        }
    }
}

weir_err weir_making_encode(weir_making *making, weir_train_fetcher *fetcher) {
    const weir_block_view *view = making->out.batch.block;
    weir_err err = WEIR_OK;
    if (!making->out.own_count) return WEIR_OK;
    for (uint32_t type = 0; !err && making->opts->owners.ranks == 1 && type < view->types; type++)
        err = encode_type(making, fetcher, type);
    if (!err && making->opts->hidden > 0) hide_entries(making);
    for (uint32_t step = 0; !err && step < view->steps; step++)
        err = encode_edges(making, fetcher, step);
    making->out.batch.numbers = making->numbers_of;
    making->out.batch.slots = making->slots_of;
    making->out.batch.edges = (const weir_real *const *)making->edges;
    return err;
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

weir_err weir_train_fetcher_open(const weir_batches_opts *opts, weir_train_fetcher **fetcherp) {
    *fetcherp = NULL;
    weir_train_fetcher *f = weir_calloc(1, sizeof *f);
    if (!f) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
    f->opts = opts;
    f->lengths = weir_calloc(opts->owners.ranks, sizeof *f->lengths);
    f->received_lengths = weir_calloc(opts->owners.ranks, sizeof *f->received_lengths);
    weir_err err =
        f->lengths && f->received_lengths ? WEIR_OK : WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
    if (!err) err = weir_inputs_open(opts->shape, opts->snapshot, &f->inputs);
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
    weir_buf_free(&fetcher->asked);
    weir_buf_free(&fetcher->answers);
    weir_buf_free(&fetcher->received);
    weir_free(fetcher->lengths);
    weir_free(fetcher->received_lengths);
    weir_free(fetcher);
}

static weir_err tables_open(weir_making *m) {
    const weir_batches_opts *o = m->opts;
    uint32_t types = weir_nn_types(o->shape), steps;
    weir_nn_steps(o->shape, &steps);
    m->targets = weir_calloc(o->batch, sizeof *m->targets);
    m->own = weir_calloc(o->batch, sizeof *m->own);
    m->node_counts = weir_calloc(o->batch, sizeof *m->node_counts);
    m->types = weir_calloc(types, sizeof *m->types);
    m->numbers_of = weir_calloc(types, sizeof *m->numbers_of);
    m->slots_of = weir_calloc(types, sizeof *m->slots_of);
    m->edges = weir_calloc(steps, sizeof *m->edges);
    m->edge_capacity = weir_calloc(steps, sizeof *m->edge_capacity);
    m->ask_bytes = weir_calloc(o->owners.ranks, sizeof *m->ask_bytes);
    bool all = m->targets && m->own && m->node_counts && m->types && m->numbers_of && m->slots_of && m->edges &&
               m->edge_capacity && m->ask_bytes;
    return all ? WEIR_OK : WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
}

weir_err weir_making_open(const weir_batches_opts *opts, const weir_train_sampler *sampler, weir_making **makingp) {
    *makingp = NULL;
    weir_making *m = weir_calloc(1, sizeof *m);
    if (!m) return WEIR_NOMEM("for a batch; lower --batch or the fan-outs");
    m->opts = opts;
    weir_err err = tables_open(m);
    if (!err) err = weir_block_open(sampler->sampler, &m->block);
    if (err) {
        weir_making_close(m);
        return err;
    }
    *makingp = m;
    return WEIR_OK;
}

static void lists_free(weir_making *m) {
    uint32_t steps;
    weir_nn_steps(m->opts->shape, &steps);
    for (uint32_t i = 0; m->edges && i < steps; i++)
        weir_free(m->edges[i]);
    for (uint32_t i = 0; m->types && i < weir_nn_types(m->opts->shape); i++) {
        weir_free(m->types[i].numbers);
        weir_free(m->types[i].slots);
    }
}

void weir_making_close(weir_making *making) {
    if (!making) return;
    lists_free(making);
    weir_block_close(making->block);
    weir_buf_free(&making->asks);
    weir_free(making->targets);
    weir_free(making->own);
    weir_free(making->keys);
    weir_free(making->node_counts);
    weir_free(making->types);
    weir_free(making->edges);
    weir_free(making->edge_capacity);
    weir_free(making->numbers_of);
    weir_free(making->slots_of);
    weir_free(making->ask_bytes);
    weir_free(making);
}

const weir_train_batch *weir_making_batch(const weir_making *making) {
    return &making->out;
}

weir_making *weir_making_of(const weir_train_batch *batch) {
    return (weir_making *)(uintptr_t)batch;
}
