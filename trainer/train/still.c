/* SPDX-License-Identifier: Apache-2.0 */
/* still.c - targets of a graph that stands still: imports without times, as published data sets are (TRAIN-T3). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "targets_private.h"

#define RNG_DRAW        11u
#define STILL_NO_MEMORY "for the targets of training"

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
    if (begin == end && value == WEIR_SCHEMA_NONE) {
        c->out->unlabelled++;
        return WEIR_OK;
    }
    return weir_target_candidate_add(c, &target, value);
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
            if (!mask[candidate->vertex]) continue;
            if (candidate->told.part != WEIR_TARGETS_PARTS)
                return WEIR_ERR(WEIR_EDATA, "vertex %llu is in mask '%s' and in mask '%s'; a target has one part",
                                (unsigned long long)candidate->vertex, cut->masks[candidate->told.part],
                                cut->masks[part]);
            candidate->told.part = part;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->candidates[i].told.part != WEIR_TARGETS_PARTS) c->candidates[kept++] = c->candidates[i];
    c->count = kept;
    return WEIR_OK;
}

/* --- a draw ------------------------------------------------------------------------------------------------------- */

/* Inside out: each place gets what is in a random one before it. */
static void still_shuffle(uint64_t seed, uint32_t *order, uint64_t count) {
    weir_rng rng = weir_rng_stream(seed, RNG_DRAW, 0);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t other = weir_rng_below(&rng, i + 1);
        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
}

/* The first so many of each class in a shuffled order. */
static weir_err still_part_by_class(const weir_target_collector *c, const weir_targets_cut *cut, uint8_t *parts) {
    uint64_t train = cut->each[0], both = (uint64_t)cut->each[0] + cut->each[1], count = c->out->count;
    uint32_t *order = weir_calloc(count + 1, sizeof *order);
    uint64_t *dealt = weir_calloc(c->out->classes, sizeof *dealt);
    weir_err err = order && dealt ? WEIR_OK : WEIR_NOMEM(STILL_NO_MEMORY);
    if (!err) still_shuffle(cut->seed, order, count);
    for (uint64_t i = 0; !err && i < count; i++) {
        uint64_t place = dealt[c->classes_of[order[i]]]++;
        parts[order[i]] = place < train  ? WEIR_TARGETS_TRAIN
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

/* Of the first so many that are dealt to the folds in turn, how many this one has. */
static uint64_t still_dealt(const weir_targets_cut *cut, uint64_t count) {
    return (count + cut->folds - 1 - cut->fold) / cut->folds;
}

/* Which part has what lies at this place of so many in a shuffled order, behind those of other classes. Folds are dealt
 * out over all of them, so that none gets what is left of every class (TRAIN-T8). */
static weir_targets_part still_part_at(const weir_targets_cut *cut, uint64_t before, uint64_t place, uint64_t count) {
    uint64_t test = (uint64_t)round(cut->test * (double)count), rest = count;
    if (cut->folds) {
        if ((before + place) % cut->folds == cut->fold) return WEIR_TARGETS_TEST;
        rest -= still_dealt(cut, before + count) - still_dealt(cut, before);
        place -= still_dealt(cut, before + place) - still_dealt(cut, before);
        test = 0;
    }
    WEIR_ASSERT(place < rest); // TRAIN-T8
    if (place < test) return WEIR_TARGETS_TEST;
    return place < test + (uint64_t)round(cut->validation * (double)rest) ? WEIR_TARGETS_VALIDATION
                                                                          : WEIR_TARGETS_TRAIN;
}

static weir_err still_part_by_draw(const weir_target_collector *c, const weir_targets_cut *cut, uint8_t *parts) {
    const uint64_t count = c->out->count;
    uint32_t *order = weir_calloc(count + 1, sizeof *order);
    const uint32_t classes = c->out->classes;
    uint64_t *begins = weir_calloc(classes + 1u, sizeof *begins), *dealt = weir_calloc(classes, sizeof *dealt);
    weir_err err = order && begins && dealt ? WEIR_OK : WEIR_NOMEM(STILL_NO_MEMORY);
    if (!err) still_shuffle(cut->seed, order, count);
    for (uint64_t i = 0; !err && i < count; i++)
        begins[(cut->stratified ? c->classes_of[i] : 0) + 1]++;
    for (uint32_t i = 0; !err && i < classes; i++)
        begins[i + 1] += begins[i];
    for (uint64_t i = 0; !err && i < count; i++) {
        const uint32_t stratum = cut->stratified ? c->classes_of[order[i]] : 0;
        parts[order[i]] =
            (uint8_t)still_part_at(cut, begins[stratum], dealt[stratum]++, begins[stratum + 1] - begins[stratum]);
    }
    weir_free(order);
    weir_free(begins);
    weir_free(dealt);
    return err;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int still_by_id(const void *a, const void *b) {
    const weir_target_told *x = a, *y = b;
    if (x->id.high != y->id.high) return x->id.high < y->id.high ? -1 : 1;
    return x->id.low < y->id.low ? -1 : x->id.low > y->id.low;
}

static int still_by_part(const void *a, const void *b) {
    const weir_target_told *x = a, *y = b;
    return x->part != y->part ? (x->part < y->part ? -1 : 1) : still_by_id(a, b);
}

typedef struct still_hearing {
    weir_target_collector *c;
    uint8_t *parts; /* of all, in the order of their ids */
} still_hearing;

static void still_hear(void *context, const weir_target_told *told, uint32_t rank) {
    const still_hearing *hearing = context;
    hearing->parts[hearing->c->taken] = (uint8_t)told->part;
    weir_targets_put(hearing->c, told, rank);
}

/* From the order of ids into that of parts, within which it stays. */
static weir_err still_arrange(weir_target_collector *c, const uint8_t *parts) {
    weir_targets *t = c->out;
    uint64_t next[WEIR_TARGETS_PARTS], own = 0;
    uint32_t rank = c->comm ? weir_comm_rank(c->comm) : 0;
    for (uint64_t i = 0; i < t->count; i++) {
        WEIR_ASSERT(parts[i] < WEIR_TARGETS_PARTS);
        t->ends[parts[i]]++;
        if (!c->owners || weir_targets_owner(t, i) == rank) c->candidates[own++].told.part = parts[i];
    }
    WEIR_ASSERT(own == c->count);
    for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++)
        t->ends[part] += t->ends[part - 1];
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++)
        next[part] = weir_targets_begin(t, part);
    uint8_t *classes_of = weir_calloc(t->count + 1, sizeof *classes_of);
    void *owners = c->owners ? weir_calloc(t->count + 1, t->owner_bytes) : NULL;
    if (!classes_of || (c->owners && !owners)) {
        weir_free(classes_of);
        weir_free(owners);
        return WEIR_NOMEM(STILL_NO_MEMORY);
    }
    for (uint64_t i = 0; i < t->count; i++) {
        uint64_t to = next[parts[i]]++;
        classes_of[to] = c->classes_of[i];
        if (owners) weir_targets_owner_put(t, owners, to, weir_targets_owner(t, i));
    }
    weir_free(c->classes_of);
    weir_free(c->owners);
    t->classes_of = c->classes_of = classes_of;
    t->owners = c->owners = owners;
    if (c->count) qsort(c->candidates, c->count, sizeof *c->candidates, still_by_part);
    return WEIR_OK;
}

static weir_err still_set_times(const weir_target_collector *c) {
    weir_targets *t = c->out;
    uint64_t judged = t->count - t->ends[WEIR_TARGETS_TRAIN];
    int64_t as_of_us = weir_snapshot_as_of_us(c->snapshot);
    int32_t *days = weir_calloc(judged + 1, sizeof *days);
    t->days = days;
    if (!days) return WEIR_NOMEM(STILL_NO_MEMORY);
    for (uint64_t i = 0; i < judged; i++)
        days[i] = weir_target_day(as_of_us);
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++)
        t->from_us[part] = t->to_us[part] = as_of_us;
    t->one_time = true;
    return WEIR_OK;
}

weir_err weir_targets_cut_still(weir_target_collector *c, const weir_targets_cut *cut) {
    still_hearing hearing = {.c = c};
    /* As of its end, a living graph shows what came after a target: a model that learns from that will not find it when
     * it serves. Only what lives has sources. */
    if (weir_schema_source_count(weir_snapshot_schema(c->snapshot)) > 0)
        return WEIR_ERR(WEIR_EDATA, "this snapshot is of a living graph, whose targets are cut by time; omit --masks, "
                                    "--per-class and --split, which are for imports");
    weir_err err = weir_targets_collect(c, still_take);
    /* Who has a target has its masks, too; a draw is from all. */
    if (!err && cut->split == WEIR_TARGETS_BY_MASKS) err = still_part_by_masks(c, cut);
    if (!err && c->count) qsort(c->candidates, c->count, sizeof *c->candidates, still_by_id);
    if (!err) err = weir_targets_count(c);
    if (!err) hearing.parts = weir_calloc(c->out->count + 1, sizeof *hearing.parts);
    if (!err && !hearing.parts) err = WEIR_NOMEM(STILL_NO_MEMORY);
    if (!err) err = weir_targets_gather(c, still_by_id, still_hear, &hearing);
    if (!err && cut->split == WEIR_TARGETS_BY_CLASS) err = still_part_by_class(c, cut, hearing.parts);
    if (!err && cut->split == WEIR_TARGETS_BY_DRAW) err = still_part_by_draw(c, cut, hearing.parts);
    if (!err) err = still_arrange(c, hearing.parts);
    if (!err) c->out->digest = weir_xxh3(hearing.parts, c->out->count, c->out->digest);
    weir_free(hearing.parts);
    return err ? err : still_set_times(c);
}
