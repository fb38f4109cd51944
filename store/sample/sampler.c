/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.c - hop after hop: the edges of every step, then the nodes that they lead to.
 *
 *   targets ──► expand: windows, draws, columns   (expand.c; a batch of parents at a time, so that their misses
 * overlap)
 *                 │
 *                 ▼
 *               number: children as nodes          (number.c; by type, within a type by target)
 *
 * What is one node: a vertex, at one hop, below one target. Not a vertex of the batch: that would make a target's tree
 * depend on who else is there (P3), and at two times a vertex has two neighbourhoods anyway.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "sampler_private.h"

#define SLOT_BITS_MIN 6u

static uint32_t bits_for(uint64_t count) {
    uint32_t bits = SLOT_BITS_MIN;
    while ((uint64_t)1 << bits < count * 2)
        bits++;
    return bits;
}

static weir_err memory_open(weir_sampler *s) {
    s->slot_bits = bits_for(s->plan.nodes_max);
    s->slots = weir_calloc((size_t)1 << s->slot_bits, weir_sample_slot_bytes(s->source));
    s->keys = weir_calloc(s->opts.targets_max, sizeof *s->keys);
    s->picks = weir_calloc((size_t)WEIR_SAMPLE_BATCH * s->plan.fanout_max, sizeof *s->picks);
    s->visible = weir_calloc(s->opts.window, sizeof *s->visible);
    if (!s->slots || !s->keys || !s->picks || !s->visible) {
        return WEIR_NOMEM("while sampling blocks of %u nodes", s->plan.nodes_max);
    }
    return weir_draw_open(&s->draw, s->opts.window, s->plan.fanout_max);
}

weir_err weir_sampler_open(const weir_sample_opts *opts, weir_sample_source *source, weir_sampler **samplerp) {
    weir_sample_plan plan;
    weir_sample_opts own = *opts;
    *samplerp = NULL;
    if (own.window == 0) own.window = WEIR_SAMPLE_WINDOW;
    weir_err err = weir_sample_plan_make(&own, source, &plan);
    if (err) return err;
    weir_sampler *sampler = weir_calloc(1, sizeof *sampler);
    if (!sampler) return WEIR_NOMEM("for a sampler");
    memcpy(sampler->steps, own.steps, own.step_count * sizeof *own.steps);
    own.steps = sampler->steps;
    sampler->opts = own;
    sampler->plan = plan;
    sampler->source = source;
    err = weir_block_size(sampler) > WEIR_BLOCK_BYTES_MAX
              ? WEIR_ERR(WEIR_ELIMIT, "a block of these targets and fanouts may need %llu bytes; lower them",
                         (unsigned long long)weir_block_size(sampler))
              : memory_open(sampler);
    if (err) {
        weir_sampler_close(sampler);
        return err;
    }
    *samplerp = sampler;
    return WEIR_OK;
}

void weir_sampler_close(weir_sampler *sampler) {
    if (!sampler) return;
    weir_draw_close(&sampler->draw);
    weir_free(sampler->slots);
    weir_free(sampler->keys);
    weir_free(sampler->picks);
    weir_free(sampler->visible);
    weir_free(sampler);
}

void weir_sample_source_close(weir_sample_source *source) {
    if (source) source->close(source);
}

/* --- targets -------------------------------------------------------------------------------------------------------
 * */

static weir_err check_targets(const weir_sampler *s, const weir_target *targets, uint32_t count) {
    if (count == 0 || count > s->opts.targets_max) {
        return WEIR_ERR(WEIR_EINVAL, "%u targets; this sampler takes 1 to %u", count, s->opts.targets_max);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (targets[i].type >= s->plan.types)
            return WEIR_ERR(WEIR_EINVAL, "target %u: no vertex type %u", i, targets[i].type);
        if (i == 0) continue;
        if (targets[i].type < targets[i - 1].type) {
            return WEIR_ERR(WEIR_EINVAL, "target %u is of a lower type than the one before; give targets by type", i);
        }
        if (s->opts.shared && targets[i].before_us != targets[0].before_us) {
            return WEIR_ERR(WEIR_EINVAL, "target %u has another time than the first; targets that share must agree", i);
        }
    }
    return WEIR_OK;
}

static void block_clear(const weir_sampler *s, weir_block *block) {
    weir_block_view *view = &block->view;
    view->targets = view->nodes = view->inputs = 0;
    memset(block->ranges, 0, (view->hops + 1) * view->types * sizeof *block->ranges);
    memset(block->input_ranges, 0, view->types * sizeof *block->input_ranges);
    memset(block->hop_end, 0, (view->hops + 1) * sizeof *block->hop_end);
    for (uint32_t i = 0; i < view->steps; i++) {
        const weir_block_columns *c = &block->columns[i];
        c->offsets[0] = 0;
        block->edges[i] = (weir_block_edges){
            .offsets = c->offsets,
            .parents = c->parents,
            .children = c->children,
            .times = c->times,
            .refs = c->refs,
            .rows = s->source->rows ? c->rows : NULL,
            .row_lengths = s->source->rows ? c->row_lengths : NULL,
        };
    }
}

/* The random numbers of a target's tree: of its name and time, or of the time alone where trees are shared. */
static weir_err key_targets(weir_sampler *s, const weir_target *targets, const weir_block *block) {
    weir_err err = s->source->ids(s->source, targets, block->view.targets, s->keys);
    for (uint32_t i = 0; !err && i < block->view.targets; i++) {
        uint64_t name[3] = {s->keys[i], targets[i].type, (uint64_t)targets[i].before_us};
        if (s->opts.shared) name[0] = name[1] = UINT64_MAX;
        s->keys[i] = weir_xxh3(name, sizeof name, s->opts.seed);
    }
    return err;
}

static weir_err place_targets(weir_sampler *s, const weir_target *targets, uint32_t count, weir_block *block) {
    for (uint32_t i = 0; i < count; i++) {
        weir_block_range *range = &block->ranges[targets[i].type];
        if (range->begin == range->end) range->begin = i;
        range->end = i + 1;
        weir_sample_vertex_put(block->vertices, i, targets[i].vertex, s->source->wide);
        block->groups[i] = s->opts.shared ? 0 : i;
        block->before_us[i] = targets[i].before_us;
        block->events[i] = targets[i].event;
        block->used[i] = 0;
        block->cut[i] = 0;
    }
    block->view.targets = block->view.nodes = block->hop_end[0] = count;
    return key_targets(s, targets, block);
}

/* --- hops ----------------------------------------------------------------------------------------------------------
 * */

static weir_err run_hop(weir_sampler *s, uint32_t hop, uint32_t first, uint32_t end, weir_block *block) {
    weir_err err = WEIR_OK;
    for (uint32_t step = first; !err && step < end; step++)
        err = weir_sample_expand(s, block, step);
    for (uint32_t type = 0; !err && type < s->plan.types; type++)
        weir_sample_number(s, block, hop, type);
    block->hop_end[hop] = block->view.nodes;
    return err;
}

weir_err weir_sample(weir_sampler *sampler, const weir_target *targets, uint32_t count, weir_block *block) {
    WEIR_ASSERT(block->plan == &sampler->plan); /* P4: the block was sized for this sampler */
    block_clear(sampler, block);
    weir_err err = check_targets(sampler, targets, count);
    if (err) return err;
    sampler->source->begin(sampler->source);
    err = place_targets(sampler, targets, count, block);
    for (uint32_t step = 0, end; !err && step < sampler->opts.step_count; step = end) {
        end = step + 1;
        while (end < sampler->opts.step_count && sampler->steps[end].hop == sampler->steps[step].hop)
            end++;
        err = run_hop(sampler, sampler->steps[step].hop, step, end, block);
    }
    if (err) block_clear(sampler, block);
    return err;
}
