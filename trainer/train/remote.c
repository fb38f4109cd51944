/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - a hop's parents that have no list here: asked for, drawn by their owners, and handed to the sampler as
 * windows of which it takes all.
 *
 * Questions and answers are in the order in which the sampler will ask for the windows: step by step, parent by parent.
 * So neither names a node, and a window is found by counting.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/table.h>

#include "remote.h"

#define REMOTE_NO_MEMORY  "for edges of other ranks; lower --batch or the fan-outs"
#define REMOTE_AT_ONCE    256u /* at most               */
#define REMOTE_FOUND_MAX  ((size_t)1 << 34)
#define REMOTE_HERE       UINT32_MAX
#define REMOTE_SAME_PARTS "; all ranks need parts of one cutting, and the same program"

/* A parent, as it goes over the wire. */
typedef struct remote_ask {
    uint64_t number;
    int64_t before_us;
    uint64_t key;
    uint64_t event; /* of a target that its owner has handed over; else 0 */
    uint32_t step, zero;
} remote_ask;

/* An edge of an answer, behind how many there are. Its numbers follow. */
typedef struct remote_edge {
    uint64_t number; /* of the neighbour */
    uint64_t id;
    int64_t time_us;
} remote_edge;

/* Neighbour and time as a window has them. */
typedef struct remote_seen {
    uint64_t neighbor;
    int64_t time_us;
} remote_seen;

/* A vertex of the batch that is not in the part. */
typedef struct remote_found {
    uint32_t tag, at; /* at: in weir_train_remote */
    uint64_t number;
} remote_found;

typedef struct remote_source {
    weir_sample_source base; /* first: the handle is this */
    weir_train_remote_opts opts;
    const weir_sample_step *steps;
    uint32_t step_count, hops;
    uint32_t first_hop; /* that is asked for, of the batch at hand */
    uint32_t at_once;   /* parents of others that are drawn for together */
    weir_sample_source *here;
    weir_train_remote *remote;
    /* drawing for others */
    weir_inputs *inputs;
    weir_sampler *sampler;
    weir_block *block;
    weir_buf numbers;
    /* the round at hand */
    weir_buf asks, asked, answers, received;
    uint64_t *lengths, *received_lengths, *places;
    /* the windows of the hop at hand, in their order, and how far the sampler has come */
    weir_buf counts, seen, positions;
    weir_buf events; /* of the first hop; else none */
    size_t next, next_edge;
    weir_arena *arena; /* of the tables, until the next batch */
    weir_table *found; /* by type: remote_found */
} remote_source;

static void remote_close(weir_sample_source *source);

static remote_source *remote_of(weir_sample_source *source) {
    WEIR_ASSERT(source->close == remote_close);
    return (remote_source *)(void *)source;
}

static uint32_t remote_parent_type(const remote_source *s, const weir_sample_step *step) {
    const weir_sample_ends *ends = &s->base.ends[step->relation];
    return step->direction == WEIR_OUT ? ends->from : ends->to;
}

static uint32_t remote_child_type(const remote_source *s, const weir_sample_step *step) {
    const weir_sample_ends *ends = &s->base.ends[step->relation];
    return step->direction == WEIR_OUT ? ends->to : ends->from;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* The owner of a parent that has no list here, and its number; else REMOTE_HERE. */
static weir_err remote_owner(const remote_source *s, uint32_t type, uint64_t vertex, uint32_t *ownerp,
                             uint64_t *numberp) {
    const weir_train_owners *owners = &s->opts.owners;
    weir_train_name name;
    *ownerp = REMOTE_HERE;
    if (vertex < weir_part_listed(owners->part, type)) return WEIR_OK;
    weir_err err = weir_train_name_of(owners, s->remote, type, vertex, &name);
    if (err) return err;
    *numberp = name.number;
    *ownerp = weir_part_owner(owners->part, type, (int64_t)name.number);
    return WEIR_OK;
}

/* Counted, then laid out by their owners, in two passes over them. */
static weir_err remote_ask_for(remote_source *s, const weir_sample_hop *hop) {
    const weir_train_owners *owners = &s->opts.owners;
    uint64_t bytes = 0;
    char *asks = NULL;
    weir_buf_clear(&s->asks);
    memset(s->lengths, 0, owners->ranks * sizeof *s->lengths);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < hop->step_count; i++) {
            uint32_t type = remote_parent_type(s, &hop->steps[i]);
            for (uint32_t node = hop->parents[i].begin; node < hop->parents[i].end; node++) {
                uint64_t number;
                uint32_t owner;
                weir_err err = remote_owner(s, type, hop->vertices[node], &owner, &number);
                if (err) return err;
                if (owner == REMOTE_HERE) continue;
                const remote_ask ask = {.number = number,
                                        .before_us = hop->before_us[hop->groups[node]],
                                        .key = hop->keys[hop->groups[node]],
                                        .event = hop->events ? hop->events[node] : 0,
                                        .step = hop->first_step + i};
                if (pass == 0) {
                    s->lengths[owner] += sizeof ask;
                } else {
                    memcpy(asks + s->places[owner], &ask, sizeof ask);
                    s->places[owner] += sizeof ask;
                }
            }
        }
        for (uint32_t rank = 0; pass == 0 && rank < owners->ranks; rank++) {
            s->places[rank] = bytes;
            bytes += s->lengths[rank];
        }
        if (pass == 0) asks = weir_buf_reserve(&s->asks, bytes + 1);
        if (!asks) return weir_buf_err(&s->asks);
    }
    weir_buf_commit(&s->asks, bytes);
    return WEIR_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Draws for parents of one step, and adds the edges to the answers. */
static weir_err remote_answer(remote_source *s, uint32_t step, const weir_sample_parent *parents, uint32_t count) {
    const weir_train_owners *owners = &s->opts.owners;
    const weir_sample_step *of = &s->steps[step];
    uint32_t child = remote_child_type(s, of), width = weir_nn_edge(s->opts.shape, of->relation)->width;
    const weir_vertex_pair *ids = weir_snapshot_vertices_of(owners->snapshot, child)->ids;
    const uint64_t *neighbors;
    weir_err err = weir_sample_answer(s->sampler, step, parents, count, s->block, &neighbors);
    if (err) return err;
    const weir_block_view *view = weir_block_look(s->block);
    const weir_block_edges *edges = &view->edges[step];
    size_t bytes = s->opts.learner ? 0 : width * sizeof(weir_real);
    weir_buf_clear(&s->numbers);
    weir_real *numbers = (weir_real *)(void *)weir_buf_reserve(&s->numbers, edges->count * bytes + 1);
    if (!numbers) return WEIR_NOMEM(REMOTE_NO_MEMORY);
    err = s->opts.learner ? weir_inputs_learn_edges(s->inputs, view, step, 0, edges->count, s->opts.learner)
                          : weir_inputs_edges(s->inputs, view, step, 0, edges->count, numbers);
    for (uint32_t p = 0; !err && p < count; p++) {
        const uint32_t drawn = edges->offsets[p + 1] - edges->offsets[p];
        weir_buf_append(&s->answers, &drawn, sizeof drawn);
        for (uint32_t e = edges->offsets[p]; !err && e < edges->offsets[p + 1]; e++) {
            err = weir_snapshot_check_vertex(owners->snapshot, child, neighbors[e]); /* the file is not trusted */
            if (err) break;
            const remote_edge edge = {(uint64_t)weir_part_number(owners->part, child, neighbors[e]),
                                      ids[neighbors[e]].low, edges->times[e]};
            weir_buf_append(&s->answers, &edge, sizeof edge);
            weir_buf_append(&s->answers, (const char *)numbers + e * bytes, bytes);
        }
    }
    return err ? err : weir_buf_err(&s->answers);
}

/* What one rank asked: runs of one step, as many as are drawn for together. */
static weir_err remote_answer_rank(remote_source *s, const char *at, const char *end) {
    weir_err err = WEIR_OK;
    while (!err && (size_t)(end - at) >= sizeof(remote_ask)) {
        weir_sample_parent parents[REMOTE_AT_ONCE];
        uint32_t count = 0, step = 0;
        for (; !err && count < s->at_once && (size_t)(end - at) >= sizeof(remote_ask); at += sizeof(remote_ask)) {
            remote_ask ask;
            memcpy(&ask, at, sizeof ask);
            if (count && ask.step != step) break;
            if (ask.step >= s->step_count)
                return WEIR_ERR(WEIR_ECORRUPT, "another rank asked for edges of step %u of %u" REMOTE_SAME_PARTS,
                                ask.step, s->step_count);
            step = ask.step;
            const weir_train_ask vertex = {.vertex = ask.number,
                                           .type = (uint16_t)remote_parent_type(s, &s->steps[step])};
            err = weir_train_asked(&s->opts.owners, &vertex, &parents[count].vertex);
            parents[count].before_us = ask.before_us;
            parents[count].key = ask.key;
            parents[count++].event = ask.event;
        }
        if (!err) err = remote_answer(s, step, parents, count);
    }
    return err;
}

/* One round, from s->asks and s->lengths to s->received, where each rank's answers begin at s->places. */
static weir_err remote_round(remote_source *s) {
    uint32_t ranks = s->opts.owners.ranks;
    weir_buf_clear(&s->asked);
    weir_buf_clear(&s->answers);
    weir_buf_clear(&s->received);
    weir_err err = weir_comm_exchange(s->opts.comm, s->asks.bytes, s->lengths, &s->asked, s->received_lengths);
    const char *at = s->asked.bytes;
    for (uint32_t rank = 0; !err && rank < ranks; rank++) {
        size_t before = s->answers.length;
        err = s->received_lengths[rank] % sizeof(remote_ask) == 0
                  ? remote_answer_rank(s, at, at + s->received_lengths[rank])
                  : WEIR_ERR(WEIR_ECORRUPT, "rank %u asked for a part of a vertex" REMOTE_SAME_PARTS, rank);
        at += s->received_lengths[rank];
        s->lengths[rank] = s->answers.length - before;
    }
    if (!err) err = weir_comm_exchange(s->opts.comm, s->answers.bytes, s->lengths, &s->received, s->received_lengths);
    uint64_t place = 0;
    for (uint32_t rank = 0; !err && rank < ranks; rank++) {
        s->places[rank] = place;
        place += s->received_lengths[rank];
        s->lengths[rank] = place; /* where they end */
    }
    return err;
}

/* --- what was told ------------------------------------------------------------------------------------------------ */

weir_err weir_train_remote_add(weir_sample_source *source, uint32_t type, const weir_train_name *name,
                               uint64_t *vertexp) {
    remote_source *s = remote_of(source);
    const weir_part *part = s->opts.owners.part;
    weir_buf *told = &s->remote->vertices[type];
    weir_table *found = &s->found[type];
    if (name->number >= (uint64_t)weir_part_starts(part, type)[weir_part_count(part)])
        return WEIR_ERR(WEIR_ECORRUPT,
                        "another rank told of vertex %llu of type %u, which there is not" REMOTE_SAME_PARTS,
                        (unsigned long long)name->number, type);
    if (weir_part_find(part, type, (int64_t)name->number, vertexp)) return WEIR_OK;
    uint64_t count = weir_snapshot_vertices_of(s->opts.owners.snapshot, type)->count;
    for (remote_found *f = weir_table_first(found, name->number, sizeof *f); f;
         f = weir_table_next(found, f, sizeof *f)) {
        *vertexp = count + f->at;
        if (f->number == name->number) return WEIR_OK;
    }
    if (!weir_table_reserve(found, found->count + 1, sizeof(remote_found))) return WEIR_NOMEM(REMOTE_NO_MEMORY);
    remote_found *f = weir_table_add(found, name->number, sizeof *f);
    f->number = name->number;
    f->at = (uint32_t)(told->length / sizeof *name);
    *vertexp = count + f->at;
    weir_buf_append(told, name, sizeof *name);
    return weir_buf_err(told);
}

/* The edges of one parent, from where its owner's answers have come to. event: the parent's own, NULL beyond the first
 * hop. What was drawn for a target is what it sees, so all of it counts as of its event. */
static weir_err remote_take(remote_source *s, uint32_t step, uint32_t owner, const uint64_t *event) {
    const weir_sample_step *of = &s->steps[step];
    size_t bytes = s->opts.learner ? 0 : weir_nn_edge(s->opts.shape, of->relation)->width * sizeof(weir_real);
    uint32_t child = remote_child_type(s, of), count = 0;
    const char *at = s->received.bytes + s->places[owner], *end = s->received.bytes + s->lengths[owner];
    uint32_t window = weir_nn_window(s->opts.shape);
    uint32_t most = of->strategy == WEIR_SAMPLE_FULL || of->fanout > window ? window : of->fanout;
    bool whole = (size_t)(end - at) >= sizeof count;
    if (whole) memcpy(&count, at, sizeof count);
    if (!whole || count > most || (size_t)(end - at) - sizeof count < count * (sizeof(remote_edge) + bytes))
        return WEIR_ERR(WEIR_ECORRUPT,
                        "rank %u answered too little, or more edges than were asked for" REMOTE_SAME_PARTS, owner);
    at += sizeof count;
    weir_buf_append(&s->counts, &count, sizeof count);
    weir_buf *numbers = &s->remote->numbers[step];
    uint64_t position = WEIR_TRAIN_REMOTE | s->remote->edges[step];
    s->remote->edges[step] += count;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++, position++, at += sizeof(remote_edge) + bytes) {
        remote_edge edge;
        remote_seen seen;
        memcpy(&edge, at, sizeof edge);
        const weir_train_name name = {edge.number, edge.id};
        err = weir_train_remote_add(&s->base, child, &name, &seen.neighbor);
        seen.time_us = edge.time_us;
        if (event) weir_buf_append(&s->events, event, sizeof *event);
        weir_buf_append(&s->seen, &seen, sizeof seen);
        weir_buf_append(&s->positions, &position, sizeof position);
        weir_buf_append(numbers, at + sizeof edge, bytes);
    }
    s->places[owner] = (uint64_t)(at - s->received.bytes);
    if (!err) err = weir_buf_err(&s->counts);
    if (!err) err = weir_buf_err(&s->seen);
    if (!err) err = weir_buf_err(&s->positions);
    if (!err) err = weir_buf_err(&s->events);
    return err ? err : weir_buf_err(numbers);
}

static weir_err remote_hop(weir_sample_source *source, const weir_sample_hop *hop) {
    remote_source *s = remote_of(source);
    weir_buf_clear(&s->counts);
    weir_buf_clear(&s->seen);
    weir_buf_clear(&s->positions);
    weir_buf_clear(&s->events);
    s->next = s->next_edge = 0;
    if (hop->steps->hop < s->first_hop) return WEIR_OK;
    weir_err err = remote_ask_for(s, hop);
    if (!err) err = remote_round(s);
    for (uint32_t i = 0; !err && i < hop->step_count; i++) {
        uint32_t type = remote_parent_type(s, &hop->steps[i]);
        for (uint32_t node = hop->parents[i].begin; !err && node < hop->parents[i].end; node++) {
            uint64_t number;
            uint32_t owner;
            err = remote_owner(s, type, hop->vertices[node], &owner, &number);
            if (!err && owner != REMOTE_HERE)
                err = remote_take(s, hop->first_step + i, owner, hop->events ? &hop->events[node] : NULL);
        }
    }
    for (uint32_t rank = 0; !err && rank < s->opts.owners.ranks; rank++)
        if (s->places[rank] != s->lengths[rank])
            err = WEIR_ERR(WEIR_ECORRUPT, "rank %u answered too much" REMOTE_SAME_PARTS, rank);
    return err;
}

weir_err weir_train_remote_idle(weir_sample_source *source) {
    remote_source *s = remote_of(source);
    weir_err err = WEIR_OK;
    for (uint32_t hop = s->first_hop; !err && hop <= s->hops; hop++) {
        weir_buf_clear(&s->asks);
        memset(s->lengths, 0, s->opts.owners.ranks * sizeof *s->lengths);
        err = remote_round(s);
    }
    return err;
}

/* --- as a source -------------------------------------------------------------------------------------------------- */

static weir_err remote_ids(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids) {
    const remote_source *s = remote_of(source);
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_train_name name;
        err = weir_train_name_of(&s->opts.owners, s->remote, targets[i].type, (uint64_t)targets[i].vertex, &name);
        ids[i] = err ? 0 : name.id;
    }
    return err;
}

static weir_err remote_windows(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows) {
    remote_source *s = remote_of(source);
    weir_sample_window windows_here[WEIR_SAMPLE_ASK_MAX];
    uint64_t parents[WEIR_SAMPLE_ASK_MAX], listed = weir_part_listed(s->opts.owners.part, ask->type);
    int64_t before_us[WEIR_SAMPLE_ASK_MAX];
    uint32_t places[WEIR_SAMPLE_ASK_MAX];
    weir_sample_ask here = *ask;
    WEIR_ASSERT(ask->count <= WEIR_SAMPLE_ASK_MAX);
    here.parents = parents;
    here.before_us = before_us;
    here.since_us = NULL; /* arrays leave out nothing */
    here.count = 0;
    for (uint32_t i = 0; i < ask->count; i++) {
        if (ask->parents[i] < listed) {
            parents[here.count] = ask->parents[i];
            before_us[here.count] = ask->before_us[i];
            places[here.count++] = i;
            continue;
        }
        if (s->next == s->counts.length / sizeof(uint32_t))
            return WEIR_ERR(WEIR_ECORRUPT,
                            "vertex %llu of type %u has no list in this part, which should have it; take another copy "
                            "of the part",
                            (unsigned long long)ask->parents[i], ask->type);
        uint32_t count = ((const uint32_t *)(const void *)s->counts.bytes)[s->next++];
        windows[i] = (weir_sample_window){.stride = sizeof(remote_seen)};
        if (count == 0) continue; /* and no edge at all may have been told of */
        const remote_seen *seen = (const remote_seen *)(const void *)s->seen.bytes + s->next_edge;
        windows[i] = (weir_sample_window){
            .neighbors = (const uint8_t *)&seen->neighbor,
            .times = (const uint8_t *)&seen->time_us,
            .places = (const uint64_t *)(const void *)s->positions.bytes + s->next_edge,
            .events = s->events.length ? (const uint64_t *)(const void *)s->events.bytes + s->next_edge : NULL,
            .stride = sizeof *seen,
            .times_stride = sizeof *seen,
            .count = count,
        };
        s->next_edge += count;
    }
    weir_err err = here.count ? s->here->windows(s->here, &here, windows_here) : WEIR_OK;
    for (uint32_t i = 0; !err && i < here.count; i++)
        windows[places[i]] = windows_here[i];
    return err;
}

/* By what edges are weighted. Those that were drawn by their weights elsewhere are all taken: any weight does. */
static weir_err remote_numbers(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                               uint32_t feature, float *numbers) {
    remote_source *s = remote_of(source);
    bool remote = window->places && window->count && window->places[0] & WEIR_TRAIN_REMOTE;
    if (!remote) return s->here->numbers(s->here, ask, window, feature, numbers);
    for (uint32_t i = 0; i < window->count; i++)
        numbers[i] = 1;
    return WEIR_OK;
}

static void remote_close(weir_sample_source *source) {
    remote_source *s = remote_of(source);
    weir_buf *const bufs[] = {&s->numbers, &s->asks, &s->asked,     &s->answers, &s->received,
                              &s->counts,  &s->seen, &s->positions, &s->events};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        weir_buf_free(bufs[i]);
    weir_inputs_close(s->inputs);
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->here);
    weir_arena_close(s->arena);
    weir_free(s->found);
    weir_free(s->lengths);
    weir_free(s->received_lengths);
    weir_free(s->places);
    weir_free(s);
}

bool weir_train_remote_needed(const weir_train_owners *owners, const weir_nn_shape *shape, bool dealt) {
    uint32_t count;
    const weir_sample_step *steps = weir_nn_steps(shape, &count); /* hops rise */
    if (!owners->part || owners->ranks == 1) return false;
    return dealt || steps[count - 1].hop > weir_part_depth(owners->part) + 1;
}

weir_err weir_train_remote_source(const weir_train_remote_opts *opts, weir_sample_source **sourcep) {
    const weir_train_owners *owners = &opts->owners;
    weir_sample_opts of = {.targets_max = opts->batch < REMOTE_AT_ONCE ? opts->batch : REMOTE_AT_ONCE,
                           .window = weir_nn_window(opts->shape)};
    *sourcep = NULL;
    WEIR_ASSERT(owners->part && owners->ranks == weir_part_count(owners->part));
    remote_source *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(REMOTE_NO_MEMORY);
    of.steps = s->steps = weir_nn_steps(opts->shape, &s->step_count);
    of.step_count = s->step_count;
    s->opts = *opts;
    s->at_once = of.targets_max;
    s->hops = s->steps[s->step_count - 1].hop; /* they rise */
    s->base.close = remote_close;
    s->lengths = weir_calloc(owners->ranks, sizeof *s->lengths);
    s->received_lengths = weir_calloc(owners->ranks, sizeof *s->received_lengths);
    s->places = weir_calloc(owners->ranks, sizeof *s->places);
    s->found = weir_calloc(weir_nn_types(opts->shape), sizeof *s->found);
    weir_err err = s->lengths && s->received_lengths && s->places && s->found ? WEIR_OK : WEIR_NOMEM(REMOTE_NO_MEMORY);
    if (!err) err = weir_arena_open(REMOTE_FOUND_MAX, &s->arena);
    if (!err) err = weir_sample_over_snapshot(owners->snapshot, &s->here);
    if (!err) err = weir_inputs_open(opts->shape, weir_snapshot_schema(owners->snapshot), s->here, &s->inputs);
    if (!err) err = weir_sampler_open(&of, s->here, &s->sampler);
    if (!err) err = weir_block_open_answers(s->sampler, &s->block);
    if (err) {
        remote_close(&s->base);
        return err;
    }
    s->base = (weir_sample_source){
        .types = s->here->types,
        .relations = s->here->relations,
        .ends = s->here->ends,
        .ids = remote_ids,
        .hop = remote_hop,
        .windows = remote_windows,
        .numbers = remote_numbers,
        .close = remote_close,
    };
    *sourcep = &s->base;
    return WEIR_OK;
}

/* --- what a batch keeps ------------------------------------------------------------------------------------------- */

weir_err weir_train_remote_open(const weir_nn_shape *shape, weir_train_remote *remote) {
    *remote = (weir_train_remote){.types = weir_nn_types(shape)};
    weir_nn_steps(shape, &remote->steps);
    remote->vertices = weir_calloc(remote->types, sizeof *remote->vertices);
    remote->numbers = weir_calloc(remote->steps, sizeof *remote->numbers);
    remote->edges = weir_calloc(remote->steps, sizeof *remote->edges);
    if (remote->vertices && remote->numbers && remote->edges) return WEIR_OK;
    weir_train_remote_close(remote);
    return WEIR_NOMEM(REMOTE_NO_MEMORY);
}

void weir_train_remote_close(weir_train_remote *remote) {
    for (uint32_t i = 0; remote->vertices && i < remote->types; i++)
        weir_buf_free(&remote->vertices[i]);
    for (uint32_t i = 0; remote->numbers && i < remote->steps; i++)
        weir_buf_free(&remote->numbers[i]);
    weir_free(remote->vertices);
    weir_free(remote->numbers);
    weir_free(remote->edges);
    *remote = (weir_train_remote){0};
}

void weir_train_remote_begin(weir_sample_source *source, weir_train_remote *remote, bool handed) {
    remote_source *s = remote_of(source);
    s->remote = remote;
    s->first_hop = handed ? 1 : weir_part_depth(s->opts.owners.part) + 2;
    weir_arena_reset(s->arena);
    for (uint32_t i = 0; i < remote->types; i++) {
        s->found[i] = (weir_table){.arena = s->arena};
        weir_buf_clear(&remote->vertices[i]);
    }
    for (uint32_t i = 0; i < remote->steps; i++) {
        weir_buf_clear(&remote->numbers[i]);
        remote->edges[i] = 0;
    }
}

uint32_t weir_train_remote_run_end(const weir_block_edges *edges, uint32_t begin) {
    uint32_t end = begin;
    while (end < edges->count && !((edges->refs[end] ^ edges->refs[begin]) & WEIR_TRAIN_REMOTE))
        end++;
    return end;
}
