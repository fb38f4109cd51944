/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - checks what is asked for, and how large a block can become at worst (SAMPLE-P4). */
#include <string.h>

#include <weir/store/base/assert.h>

#include "sampler_private.h"

_Static_assert(WEIR_SAMPLE_WINDOW_MAX == WEIR_WINDOW_MAX, "block.h says it without the header of the graph");

static weir_err sample_plan_check_step(const weir_sample_opts *opts, const weir_sample_source *source, uint32_t index) {
    const weir_sample_step *step = &opts->steps[index];
    uint32_t hop_before = index ? step[-1].hop : 0;
    if (step->hop != hop_before + 1 && (index == 0 || step->hop != hop_before)) {
        return WEIR_ERR(WEIR_EINVAL, "step %u is of hop %u; hops begin at 1 and rise without a gap", index, step->hop);
    }
    if (step->hop > WEIR_SAMPLE_HOPS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "step %u is of hop %u; there are at most %u", index, step->hop,
                        WEIR_SAMPLE_HOPS_MAX);
    }
    if (step->relation >= source->relations)
        return WEIR_ERR(WEIR_EINVAL, "step %u: no relation %u", index, step->relation);
    if (step->strategy != WEIR_SAMPLE_FULL && (step->fanout == 0 || step->fanout > WEIR_SAMPLE_FANOUT_MAX)) {
        return WEIR_ERR(WEIR_EINVAL, "step %u takes %u edges; 1 to %u are possible", index, step->fanout,
                        WEIR_SAMPLE_FANOUT_MAX);
    }
    for (uint32_t i = 0; i < index; i++) {
        const weir_sample_step *other = &opts->steps[i];
        if (other->hop != step->hop || other->relation != step->relation || other->direction != step->direction)
            continue;
        return WEIR_ERR(WEIR_EINVAL, "steps %u and %u take the same relation and direction at hop %u; join them", i,
                        index, step->hop);
    }
    if (step->strategy == WEIR_SAMPLE_WEIGHTED && step->weight == WEIR_SCHEMA_NONE && step->half_life_us <= 0)
        return WEIR_ERR(WEIR_EINVAL, "step %u weighs by age and has no half life; give it one", index);
    return WEIR_OK;
}

static weir_err sample_plan_check(const weir_sample_opts *opts, const weir_sample_source *source) {
    if (opts->step_count == 0 || opts->step_count > WEIR_SAMPLE_STEPS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%u steps; 1 to %u are possible", opts->step_count, WEIR_SAMPLE_STEPS_MAX);
    }
    if (opts->targets_max == 0 || opts->targets_max > WEIR_SAMPLE_TARGETS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%u targets; 1 to %u are possible", opts->targets_max, WEIR_SAMPLE_TARGETS_MAX);
    }
    if (opts->window > WEIR_WINDOW_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "a window of %u edges; at most %u are possible", opts->window, WEIR_WINDOW_MAX);
    }
    if (opts->shared && opts->edges_max) {
        return WEIR_ERR(WEIR_EINVAL, "a limit of edges a target has no meaning where targets share their trees");
    }
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < opts->step_count; i++)
        err = sample_plan_check_step(opts, source, i);
    return err;
}

weir_err weir_sample_plan_make(const weir_sample_opts *opts, const weir_sample_source *source,
                               weir_sample_plan *planp) {
    weir_err err = sample_plan_check(opts, source);
    /* Nodes per type of the hop before, and of this one; in 64 bits, so that a product of two checked counts fits. */
    uint64_t before[WEIR_SCHEMA_VERTICES_MAX] = {0}, now[WEIR_SCHEMA_VERTICES_MAX] = {0};
    uint64_t nodes = opts->targets_max, all = 0, cap = (uint64_t)opts->targets_max * opts->edges_max;
    if (err) return err;
    WEIR_ASSERT(source->types <= WEIR_SCHEMA_VERTICES_MAX);
    *planp = (weir_sample_plan){.types = source->types, .hops = opts->steps[opts->step_count - 1].hop};
    for (uint32_t type = 0; type < source->types; type++)
        now[type] = opts->targets_max;
    for (uint32_t i = 0; i < opts->step_count; i++) {
        const weir_sample_step *step = &opts->steps[i];
        const weir_sample_ends *ends = &source->ends[step->relation];
        if (i == 0 || step[-1].hop != step->hop) {
            memcpy(before, now, sizeof now);
            memset(now, 0, sizeof now);
        }
        uint16_t parent_type = step->direction == WEIR_OUT ? ends->from : ends->to;
        uint16_t child_type = step->direction == WEIR_OUT ? ends->to : ends->from;
        uint32_t fanout = step->strategy == WEIR_SAMPLE_FULL ? opts->window : step->fanout;
        uint64_t edges = before[parent_type] * fanout;
        if (cap && edges > cap) edges = cap;
        all += edges;
        if (all > WEIR_BLOCK_EDGES_MAX) {
            return WEIR_ERR(
                WEIR_ELIMIT,
                "a block of these targets and fanouts may have %llu edges, at most %llu are possible; lower "
                "them, or limit the edges of a target",
                (unsigned long long)all, (unsigned long long)WEIR_BLOCK_EDGES_MAX);
        }
        planp->parent_type[i] = parent_type;
        planp->child_type[i] = child_type;
        planp->parents_max[i] = (uint32_t)before[parent_type];
        planp->edges_max[i] = (uint32_t)edges;
        now[child_type] += edges;
        nodes += edges;
        if (fanout > planp->fanout_max) planp->fanout_max = fanout;
    }
    WEIR_ASSERT(nodes <= WEIR_SAMPLE_TARGETS_MAX + WEIR_BLOCK_EDGES_MAX);
    planp->nodes_max = (uint32_t)nodes;
    return WEIR_OK;
}
