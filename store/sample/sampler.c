/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.c - hop after hop: the edges of every step, then the nodes that they lead to.
 *
 *   targets ──► expand: windows, draws, columns   (expand.c; a batch of parents at a time: their misses overlap)
 *                 │
 *                 ▼
 *               number: children as nodes          (number.c; by type, within a type by group)
 *
 * What is one node: a vertex, at one hop, below one target, or under `shared` below those of one time. Not a vertex of
 * the batch: at two times it has two neighbourhoods, and below two targets that draw by their names two samples, which
 * may not depend on who else is there (SAMPLE-P3).
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "sampler_private.h"

#define SLOT_BITS_MIN 6u

weir_err weir_sampler_open(const weir_sample_opts *opts, weir_sample_source *source, weir_sampler **samplerp) {
    weir_sample_plan plan;
    weir_sample_opts own = *opts;
    *samplerp = NULL;
    if (own.window == 0) own.window = WEIR_SAMPLE_WINDOW;
    weir_err err = weir_sample_plan_make(&own, source, &plan);
    if (!err && source->hop && own.edges_max)
        err = WEIR_ERR(WEIR_EINVAL, "a limit of edges a target has no meaning where others draw for this source");
    if (err) return err;
    weir_sampler *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a sampler");
    memcpy(s->steps, own.steps, own.step_count * sizeof *own.steps);
    own.steps = s->steps;
    s->opts = own;
    s->plan = plan;
    s->source = source;
    if (weir_block_bytes(s) > WEIR_BLOCK_BYTES_MAX) {
        err = WEIR_ERR(WEIR_ELIMIT, "a block of these targets and fanouts may need %llu bytes; lower them",
                       (unsigned long long)weir_block_bytes(s));
        goto failed;
    }
    s->slot_bits = SLOT_BITS_MIN; /* twice as many slots as nodes */
    while ((uint64_t)1 << s->slot_bits < (uint64_t)plan.nodes_max * 2)
        s->slot_bits++;
    s->slots = weir_sparse_alloc(sizeof *s->slots << s->slot_bits);
    s->keys = weir_calloc(own.targets_max, sizeof *s->keys);
    s->picks = weir_calloc((size_t)WEIR_SAMPLE_BATCH * plan.fanout_max, sizeof *s->picks);
    s->visible = weir_calloc(own.window, sizeof *s->visible);
    err = s->slots && s->keys && s->picks && s->visible
              ? weir_draw_open(&s->draw, own.window, plan.fanout_max)
              : WEIR_NOMEM("while sampling blocks of %u nodes", plan.nodes_max);
    if (err) goto failed;
    *samplerp = s;
    return WEIR_OK;
failed:
    weir_sampler_close(s);
    return err;
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

void weir_sampler_seed(weir_sampler *sampler, uint64_t seed) {
    sampler->opts.seed = seed;
}

void weir_sample_source_close(weir_sample_source *source) {
    if (source) source->close(source);
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

static weir_err sampler_check_targets(const weir_sampler *s, const weir_target *targets, uint32_t count) {
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
        if (s->opts.shared && targets[i].type == targets[i - 1].type && targets[i].before_us < targets[i - 1].before_us)
            return WEIR_ERR(WEIR_EINVAL,
                            "target %u is of an earlier time than the one before; give targets that share by type, and "
                            "those of a type by time",
                            i);
    }
    return WEIR_OK;
}

static void sampler_clear_block(const weir_sampler *s, weir_block *block) {
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

/* Groups are the times of the targets, by rank: so they rise within each type, as number.c needs, and those of one time
 * agree whatever their type. Returns how many there are. */
static uint32_t sampler_group_times(const weir_sampler *s, const weir_target *targets, weir_block *block) {
    uint32_t next[WEIR_SCHEMA_VERTICES_MAX], groups = 0;
    for (uint32_t type = 0; type < s->plan.types; type++)
        next[type] = block->ranges[type].begin;
    for (;; groups++) {
        int64_t earliest_us = INT64_MAX;
        bool any = false;
        for (uint32_t type = 0; type < s->plan.types; type++) {
            if (next[type] == block->ranges[type].end) continue;
            any = true;
            if (targets[next[type]].before_us < earliest_us) earliest_us = targets[next[type]].before_us;
        }
        if (!any) return groups;
        block->before_us[groups] = earliest_us;
        for (uint32_t type = 0; type < s->plan.types; type++)
            while (next[type] < block->ranges[type].end && targets[next[type]].before_us == earliest_us)
                block->groups[next[type]++] = groups;
    }
}

static weir_err sampler_place_targets(weir_sampler *s, const weir_target *targets, uint32_t count, weir_block *block) {
    for (uint32_t i = 0; i < count; i++) {
        weir_block_range *range = &block->ranges[targets[i].type];
        if (range->begin == range->end) range->begin = i;
        range->end = i + 1;
        weir_sample_vertex_put(block->vertices, i, targets[i].vertex, s->source->wide);
        block->groups[i] = i;
        block->before_us[i] = targets[i].before_us;
        block->events[i] = targets[i].event;
        block->used[i] = 0;
        block->cut[i] = 0;
    }
    const uint32_t groups = s->opts.shared ? sampler_group_times(s, targets, block) : count;
    WEIR_ASSERT(groups <= count);
    block->alone = s->opts.shared && groups == 1 && !s->opts.own_rows;
    block->view.targets = block->view.nodes = block->hop_end[0] = count;
    /* The random numbers of a target's tree: of its name and time, or of the time alone where trees are shared. */
    weir_err err = s->source->ids(s->source, targets, count, s->keys);
    for (uint32_t i = 0; !err && i < groups; i++) {
        uint64_t name[3] = {s->keys[i], targets[i].type, (uint64_t)block->before_us[i]};
        if (s->opts.shared) name[0] = name[1] = UINT64_MAX; /* SAMPLE-P3 */
        s->keys[i] = weir_xxh3(name, sizeof name, s->opts.seed);
    }
    return err;
}

/* --- hops --------------------------------------------------------------------------------------------------------- */

/* Tells the source of the hop that begins with this step. */
static weir_err sampler_tell_hop(const weir_sampler *s, const weir_block *block, uint32_t step) {
    weir_block_range parents[WEIR_SAMPLE_STEPS_MAX];
    weir_sample_hop hop = {
        .steps = s->steps + step,
        .parents = parents,
        .first_step = step,
        .vertices = block->vertices,
        .groups = block->groups,
        .before_us = block->before_us,
        .keys = s->keys,
        .events = s->steps[step].hop == 1 ? block->events : NULL, /* the nodes are the targets */
    };
    WEIR_ASSERT(!s->source->wide && !s->opts.edges_max);
    for (; step < s->opts.step_count && s->steps[step].hop == hop.steps->hop; step++)
        parents[hop.step_count++] = block->ranges[(hop.steps->hop - 1) * s->plan.types + s->plan.parent_type[step]];
    return s->source->hop(s->source, &hop);
}

weir_err weir_sample(weir_sampler *sampler, const weir_target *targets, uint32_t count, weir_block *block) {
    const weir_sample_step *steps = sampler->steps;
    WEIR_ASSERT(block->plan == &sampler->plan && !block->answers); /* SAMPLE-P4: it was sized for this sampler */
    sampler_clear_block(sampler, block);
    weir_err err = sampler_check_targets(sampler, targets, count);
    if (err) return err;
    if (sampler->source->begin) sampler->source->begin(sampler->source);
    err = sampler_place_targets(sampler, targets, count, block);
    for (uint32_t step = 0; !err && step < sampler->opts.step_count;) {
        uint32_t hop = steps[step].hop;
        if (sampler->source->hop) err = sampler_tell_hop(sampler, block, step);
        for (; !err && step < sampler->opts.step_count && steps[step].hop == hop; step++)
            err = weir_sample_expand(sampler, block, step);
        for (uint32_t type = 0; !err && type < sampler->plan.types; type++)
            weir_sample_number(sampler, block, hop, type);
        block->hop_end[hop] = block->view.nodes;
    }
    if (err) sampler_clear_block(sampler, block);
    return err;
}

weir_err weir_sample_answer(weir_sampler *sampler, uint32_t step, const weir_sample_parent *parents, uint32_t count,
                            weir_block *block, const uint64_t **neighborsp) {
    const weir_sample_plan *plan = &sampler->plan;
    WEIR_ASSERT(block->plan == plan && step < sampler->opts.step_count);
    WEIR_ASSERT(!sampler->source->wide && !sampler->opts.edges_max);
    sampler_clear_block(sampler, block);
    *neighborsp = block->columns[step].neighbors;
    if (count > sampler->opts.targets_max || count > plan->parents_max[step])
        return WEIR_ERR(WEIR_EINVAL, "%u parents of step %u; a block of these steps has at most %u", count, step,
                        plan->parents_max[step]);
    if (sampler->source->begin) sampler->source->begin(sampler->source);
    block->view.targets = block->view.nodes = block->hop_end[0] = count;
    block->ranges[(sampler->steps[step].hop - 1) * plan->types + plan->parent_type[step]] =
        (weir_block_range){0, count};
    for (uint32_t i = 0; i < count; i++) {
        weir_sample_vertex_put(block->vertices, i, parents[i].vertex, false);
        block->groups[i] = i;
        block->before_us[i] = parents[i].before_us;
        block->events[i] = parents[i].event;
        block->used[i] = 0;
        block->cut[i] = 0;
        sampler->keys[i] = parents[i].key;
    }
    weir_err err = weir_sample_expand(sampler, block, step);
    if (err) sampler_clear_block(sampler, block);
    return err;
}
