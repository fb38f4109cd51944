/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.c - the edges of one step: windows, draws, columns.
 *
 * A batch of parents goes through three loops instead of one parent through three steps. The first asks the source for
 * all windows, the second draws positions and asks the processor for what lies there, the third reads it: so the misses
 * of a batch are under way together, and no call is made per neighbour.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "sampler_private.h"

typedef struct expansion {
    weir_sampler *sampler;
    weir_block *block;
    const weir_sample_step *step;
    const weir_block_columns *columns;
    uint32_t index;    /* of the step  */
    uint32_t position; /* in the columns */
    bool alike;        /* no time was read but the one of all */
} expansion;

/* --- draws -------------------------------------------------------------------------------------------------------- */

static weir_err expand_weigh(const expansion *x, const weir_sample_ask *ask, const weir_sample_window *window) {
    weir_sampler *s = x->sampler;
    if (window->count == 0) return WEIR_OK;
    if (x->step->weight == WEIR_SCHEMA_NONE) {
        /* Age counts from the window's newest edge: only quotients of weights matter, and a time of "all" is no
         * time. */
        double per_us = -M_LN2 / (double)x->step->half_life_us;
        int64_t newest_us = weir_sample_window_time(window, 0);
        for (uint32_t i = 0; i < window->count; i++)
            s->draw.log_weights[i] =
                per_us * (double)((uint64_t)newest_us - (uint64_t)weir_sample_window_time(window, i));
        return WEIR_OK;
    }
    weir_err err = s->source->numbers(s->source, ask, window, x->step->weight, s->draw.weights);
    for (uint32_t i = 0; !err && i < window->count; i++)
        s->draw.log_weights[i] = s->draw.weights[i] > 0 ? log((double)s->draw.weights[i]) : -INFINITY;
    return err;
}

/* How many edges this parent may get; that a target's limit took some away is remembered. */
static uint32_t expand_allowed(const expansion *x, uint32_t group, uint32_t available) {
    const weir_sampler *s = x->sampler;
    uint32_t fanout = weir_sample_fanout(s, x->step), edges_max = s->opts.edges_max;
    uint32_t wanted = fanout < available ? fanout : available;
    if (edges_max == 0) return fanout;
    uint32_t left = edges_max - x->block->used[group];
    if (wanted <= left) return fanout;
    x->block->cut[group] = 1;
    return left;
}

static uint32_t expand_substream(const weir_sample_step *step) {
    return step->hop << 24 | (uint32_t)step->relation << 1 | (uint32_t)step->direction;
}

/* The stream of one parent's draws: SAMPLE-P3 */
static weir_rng expand_rng(const expansion *x, uint32_t group, uint64_t id) {
    return weir_rng_stream(x->sampler->keys[group], id, expand_substream(x->step));
}

/* Picks out of a window or a part of it that has n positions and, for weighted ones, their weights. */
static uint32_t expand_draw(const expansion *x, uint32_t group, weir_rng_lane *stream, uint32_t n, uint32_t *picks) {
    weir_sampler *s = x->sampler;
    uint32_t k = expand_allowed(x, group, n), count;
    switch (x->step->strategy) {
    case WEIR_SAMPLE_UNIFORM:
        count = weir_draw_uniform(&s->draw, stream, n, k, picks);
        break;
    case WEIR_SAMPLE_WEIGHTED:
        count = weir_draw_weighted(&s->draw, &stream->rest, n, k, picks);
        break;
    default:
        count = weir_draw_recent(n, k, picks);
    }
    x->block->used[group] += count;
    return count;
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* What only a graph has: events in place of positions, and rows. */
static weir_err expand_write_events(const expansion *x, const weir_sample_window *window, uint32_t at,
                                    const uint32_t *picks, uint32_t count) {
    weir_sample_source *source = x->sampler->source;
    for (uint32_t i = 0; i < count; i++) {
        const weir_edge *edge = &window->edges[picks[i]];
        const uint8_t *kept = NULL;
        weir_err err = edge->row_length ? source->keep(source, edge->row, edge->row_length, &kept) : WEIR_OK;
        if (err) return err;
        x->columns->refs[at + i] = edge->event;
        x->columns->rows[at + i] = kept;
        x->columns->row_lengths[at + i] = edge->row_length;
    }
    return WEIR_OK;
}

/* The hot loop: returns the newest time of the picks. Strides and width are constants where this is inlined. */
static inline int64_t expand_gather(const weir_sample_window *window, size_t stride, size_t times_stride,
                                    const uint32_t *picks, uint32_t count, size_t width, uint8_t *restrict neighbors,
                                    int64_t *restrict times) {
    int64_t newest_us = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(neighbors + i * width, window->neighbors + picks[i] * stride, width);
        memcpy(&times[i], window->times + picks[i] * times_stride, sizeof times[i]);
        newest_us = times[i] > newest_us ? times[i] : newest_us;
    }
    return newest_us;
}

static weir_err expand_write_columns(expansion *x, const weir_sample_window *window, uint32_t parent, int64_t before_us,
                                     const uint32_t *picks, uint32_t count) {
    const weir_block_columns *c = x->columns;
    uint32_t at = x->position;
    bool wide = x->sampler->source->wide;
    uint8_t *neighbors = (uint8_t *)c->neighbors + at * weir_sample_vertex_bytes(x->sampler->source);
    int64_t *times = c->times + at;
    WEIR_ASSERT(count <= x->sampler->plan.edges_max[x->index] - at); /* SAMPLE-P4 */
    const uint32_t stride = window->stride, times_stride = window->times_stride;
    int64_t newest_us =
        wide ? expand_gather(window, stride, times_stride, picks, count, 16, neighbors, times)
        : stride == 8 && times_stride == 0 ? expand_gather(window, 8, 0, picks, count, 8, neighbors, times)
        : stride == 8 && times_stride == 8 ? expand_gather(window, 8, 8, picks, count, 8, neighbors, times)
        : stride == 16 && times_stride == 16
            ? expand_gather(window, 16, 16, picks, count, 8, neighbors, times)
            : expand_gather(window, stride, times_stride, picks, count, 8, neighbors, times);
    /* SAMPLE-P2. Arrays come from files: that their times fall is checked here, where each is read anyway. */
    if (count > 0 && newest_us >= before_us) {
        return WEIR_ERR(WEIR_ECORRUPT,
                        "an edge of time %lld stands among those before %lld; the arrays are not newest first, verify "
                        "them",
                        (long long)newest_us, (long long)before_us);
    }
    for (uint32_t i = 0; i < count; i++) {
        c->parents[at + i] = parent;
        c->refs[at + i] = window->first + picks[i];
    }
    for (uint32_t i = 0; window->places && i < count; i++)
        c->refs[at + i] = window->places[picks[i]];
    x->position += count;
    x->alike = x->alike && (count == 0 || times_stride == 0);
    return window->edges ? expand_write_events(x, window, at, picks, count) : WEIR_OK;
}

/* --- a target that has an event of its own ------------------------------------------------------------------------ */

static weir_err expand_own(expansion *x, weir_sample_ask ask, uint32_t target) {
    weir_sampler *s = x->sampler;
    weir_block *block = x->block;
    weir_sample_window *window = &s->windows[0];
    uint32_t group = block->groups[target];
    int64_t own_us = block->before_us[group], before_us = own_us < INT64_MAX ? own_us + 1 : own_us;
    weir_sample_ask_nodes(&ask, block, target, s->source->wide);
    ask.before_us = &before_us;
    ask.count = 1;
    weir_err err = s->source->windows(s->source, &ask, window);
    if (!err && x->step->strategy == WEIR_SAMPLE_WEIGHTED) err = expand_weigh(x, &ask, window);
    if (err) return err;
    /* Of its own time it sees only the edges of its own event. */
    uint32_t visible = 0;
    for (uint32_t i = 0; i < window->count; i++) {
        if (weir_sample_window_event(window, i) != block->events[target] &&
            weir_sample_window_time(window, i) >= own_us)
            continue;
        s->draw.log_weights[visible] = s->draw.log_weights[i]; /* looked at by weighted draws only */
        s->visible[visible++] = i;
    }
    weir_rng_lane stream = {.rest = expand_rng(x, group, window->id)};
    uint32_t count = expand_draw(x, group, &stream, visible, s->picks);
    for (uint32_t i = 0; i < count; i++)
        s->picks[i] = s->visible[s->picks[i]];
    err = expand_write_columns(x, window, target, before_us, s->picks, count);
    x->columns->offsets[target + 1 - block->edges[x->index].parent_begin] = x->position;
    return err;
}

/* --- a batch of parents ------------------------------------------------------------------------------------------- */

/* Fills the streams of the parents that will draw; returns how many blocks each got. */
static uint32_t expand_fill_streams(const expansion *x, uint32_t begin, uint32_t count) {
    weir_sampler *s = x->sampler;
    const uint32_t *groups = x->block->groups + begin;
    uint32_t blocks = (x->step->fanout + 3) / 4;
    weir_rng_lanes streams = {s->stream_keys, s->stream_ids, expand_substream(x->step), 0};
    if (x->step->strategy != WEIR_SAMPLE_UNIFORM) return 0;
    if (blocks > WEIR_SAMPLE_BLOCKS) blocks = WEIR_SAMPLE_BLOCKS;
    for (uint32_t i = 0; i < count; i++) {
        if (s->windows[i].count <= x->step->fanout) continue;
        s->stream_keys[streams.count] = s->keys[groups[i]];
        s->stream_ids[streams.count++] = s->windows[i].id;
    }
    weir_rng_lanes_fill(&streams, blocks, s->draws);
    return blocks;
}

static weir_err expand_draw_batch(const expansion *x, const weir_sample_ask *ask, uint32_t begin) {
    weir_sampler *s = x->sampler;
    const uint32_t *groups = x->block->groups + begin;
    uint32_t blocks = expand_fill_streams(x, begin, ask->count);
    const uint32_t *draws = s->draws;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        const weir_sample_window *window = &s->windows[i];
        uint32_t *picks = s->picks + (size_t)i * s->plan.fanout_max;
        weir_rng_lane stream = {.rest = expand_rng(x, groups[i], window->id)};
        WEIR_ASSERT(window->count <= s->opts.window);
        if (blocks && window->count > x->step->fanout) {
            stream.next = draws;
            stream.end = draws += (size_t)4 * blocks;
            stream.rest.counter[0] = blocks;
        }
        if (x->step->strategy == WEIR_SAMPLE_WEIGHTED) err = expand_weigh(x, ask, window);
        s->pick_counts[i] = err ? 0 : expand_draw(x, groups[i], &stream, window->count, picks);
        for (uint32_t p = 0; p < s->pick_counts[i]; p++) {
            __builtin_prefetch(window->neighbors + (size_t)picks[p] * window->stride);
            if (window->times_stride) __builtin_prefetch(window->times + (size_t)picks[p] * window->times_stride);
        }
    }
    return err;
}

static weir_err expand_batch(expansion *x, weir_sample_ask ask, uint32_t begin, uint32_t end) {
    weir_sampler *s = x->sampler;
    const weir_block *block = x->block;
    uint32_t *offsets = x->columns->offsets - block->edges[x->index].parent_begin;
    WEIR_ASSERT(begin < end && end - begin <= WEIR_SAMPLE_BATCH);
    for (uint32_t p = begin; p < end; p++)
        s->before_us[p - begin] = block->before_us[block->groups[p]];
    weir_sample_ask_nodes(&ask, block, begin, s->source->wide);
    ask.before_us = s->before_us;
    ask.count = end - begin;
    weir_err err = s->source->windows(s->source, &ask, s->windows);
    if (!err) err = expand_draw_batch(x, &ask, begin);
    for (uint32_t i = 0; !err && i < ask.count; i++) {
        const uint32_t *picks = s->picks + (size_t)i * s->plan.fanout_max;
        err = expand_write_columns(x, &s->windows[i], begin + i, s->before_us[i], picks, s->pick_counts[i]);
        offsets[begin + i + 1] = x->position;
    }
    return err;
}

weir_err weir_sample_expand(weir_sampler *sampler, weir_block *block, uint32_t step) {
    expansion x = {sampler, block, &sampler->steps[step], &block->columns[step], step, 0, true};
    uint16_t type = sampler->plan.parent_type[step];
    weir_block_range parents = block->ranges[(x.step->hop - 1) * sampler->plan.types + type];
    weir_sample_ask ask = {
        .limit = sampler->opts.window,
        .relation = x.step->relation,
        .type = type,
        .direction = x.step->direction,
    };
    const uint64_t *events = x.step->hop == 1 ? block->events : NULL; /* of each parent: they are the targets */
    weir_err err = WEIR_OK;
    block->edges[step].parent_begin = parents.begin;
    block->edges[step].parent_end = parents.end;
    x.columns->offsets[0] = 0;
    for (uint32_t p = parents.begin, end; !err && p < parents.end; p = end) {
        uint32_t stop = parents.end - p < WEIR_SAMPLE_BATCH ? parents.end : p + WEIR_SAMPLE_BATCH;
        bool own = events && events[p]; /* such a one goes alone */
        for (end = events ? p + 1 : stop; !own && end < stop && !events[end];)
            end++;
        err = own ? expand_own(&x, ask, p) : expand_batch(&x, ask, p, end);
    }
    block->edges[step].count = x.position;
    block->edges[step].alike = x.alike && x.position > 0;
    return err;
}
