/* SPDX-License-Identifier: Apache-2.0 */
/* still.c - targets of a graph that stands still: imports without times, as published data sets are (TRAIN-T3). */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "targets_private.h"

#define RNG_DRAW 11u

/* --- who can be asked about --------------------------------------------------------------------------------------- */

/* labels [begin, end) are the vertex's, newest first. */
static weir_err still_take(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(c->snapshot, c->label->target);
    const weir_target target = {vertex, weir_snapshot_as_of_us(c->snapshot), 0, (uint16_t)c->label->target};
    uint64_t life;
    if (!weir_target_has_name(v, vertex)) return WEIR_OK;                                /* only named by edges */
    if (!weir_snapshot_span(&v->lives, vertex, target.before_us, &life)) return WEIR_OK; /* not there any more */
    weir_snapshot_labels_of_life(v, vertex, life, c->labels, &begin, &end);
    uint32_t value = begin < end ? (uint32_t)c->labels->values[begin] : c->label->absent;
    if (begin == end && weir_target_is_young(c, v->lives.times[life])) {
        c->out->young++;
        return WEIR_OK;
    }
    if (value == WEIR_SCHEMA_NONE) {
        c->out->unlabelled++;
        return WEIR_OK;
    }
    return weir_target_candidate_add(c, &target, weir_target_class(c->task, value));
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

static const uint8_t *still_mask(const weir_snapshot_vertices *v, const char *name) {
    for (uint32_t i = 0; i < v->extra_count; i++) {
        if (v->extras[i].mask && strcmp(v->extras[i].name, name) == 0) return v->extras[i].mask;
    }
    return NULL;
}

static weir_err still_part_by_masks(weir_target_collector *c, const weir_targets_cut *cut) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(c->snapshot, c->label->target);
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        const uint8_t *mask = still_mask(v, cut->masks[part]);
        if (!mask)
            return WEIR_ERR(WEIR_EDATA, "the snapshot has no mask '%s' of what label '%s' is about", cut->masks[part],
                            c->label->name);
        for (size_t i = 0; i < c->count; i++) {
            weir_target_candidate *candidate = &c->candidates[i];
            if (!mask[candidate->target.vertex]) continue;
            if (candidate->part != WEIR_TARGETS_PARTS)
                return WEIR_ERR(WEIR_EDATA, "vertex %llu is in mask '%s' and in mask '%s'; a target has one part",
                                (unsigned long long)candidate->target.vertex, cut->masks[candidate->part],
                                cut->masks[part]);
            candidate->part = part;
        }
    }
    return WEIR_OK;
}

/* --- a draw ------------------------------------------------------------------------------------------------------- */

/* The first so many of each class in a shuffled order. */
static weir_err still_part_by_class(weir_target_collector *c, const weir_targets_cut *cut) {
    weir_rng rng = weir_rng_stream(cut->seed, RNG_DRAW, 0);
    uint64_t train = cut->each[0], both = (uint64_t)cut->each[0] + cut->each[1];
    size_t *order = weir_calloc(c->count + 1, sizeof *order);
    uint64_t *dealt = weir_calloc(c->out->classes, sizeof *dealt);
    weir_err err = order && dealt ? WEIR_OK : WEIR_NOMEM("for the targets of training");
    for (size_t i = 0; !err && i < c->count; i++) { /* inside out: each place gets what is in a random one before it */
        size_t other = weir_rng_below(&rng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (size_t i = 0; !err && i < c->count; i++) {
        weir_target_candidate *candidate = &c->candidates[order[i]];
        WEIR_ASSERT(candidate->class_of < c->out->classes);
        uint64_t place = dealt[candidate->class_of]++;
        candidate->part = place < train  ? WEIR_TARGETS_TRAIN
                          : place < both ? WEIR_TARGETS_VALIDATION
                                         : WEIR_TARGETS_TEST;
    }
    for (uint32_t class_of = 0; !err && class_of < c->out->classes; class_of++) {
        if (dealt[class_of] <= both)
            err = WEIR_ERR(WEIR_EDATA,
                           "class %u has %llu targets; %u to learn from and %u for validation leave none for "
                           "the test",
                           class_of, (unsigned long long)dealt[class_of], cut->each[0], cut->each[1]);
    }
    weir_free(order);
    weir_free(dealt);
    return err;
}

weir_err weir_targets_still(weir_target_collector *c, const weir_targets_opts *opts) {
    /* As of its end, a living graph shows what came after a target: a model that learns from that will not find it when
     * it serves. Only what lives has sources. */
    if (weir_schema_source_count(weir_snapshot_schema(c->snapshot)) > 0)
        return WEIR_ERR(WEIR_EDATA,
                        "this snapshot is of a living graph, whose targets are cut by time; omit --masks and "
                        "--per-class, which are for imports");
    weir_err err = weir_targets_collect(c, still_take);
    /* Who has a target has its masks, too; a draw is from all. */
    if (!err && opts->cut.split == WEIR_TARGETS_BY_MASKS) err = still_part_by_masks(c, &opts->cut);
    if (!err && opts->comm) err = weir_targets_gather(c, opts->comm);
    return err || opts->cut.split == WEIR_TARGETS_BY_MASKS ? err : still_part_by_class(c, &opts->cut);
}
