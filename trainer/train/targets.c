/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c - candidates of a task, their classes, and the cut into parts. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "targets_private.h"

#define TARGETS_MIN 20u /* of a part: below, a metric is a roll of dice */

weir_err weir_target_candidate_add(weir_target_collector *c, const weir_target *target, uint32_t class_of) {
    if (class_of >= c->out->classes) /* opening a snapshot does not look at each label */
        return WEIR_ERR(
            WEIR_ECORRUPT,
            "the snapshot says that vertex %llu has value %u of label '%s', which has only %u; take another "
            "copy",
            (unsigned long long)target->vertex, class_of, c->label->name, c->out->classes);
    if (!WEIR_GROW(c->candidates, c->capacity, c->count)) return WEIR_NOMEM("for the targets of training");
    weir_vertex id = weir_vertex_of(weir_snapshot_vertices_of(c->snapshot, target->type)->ids[target->vertex]);
    c->candidates[c->count++] = (weir_target_candidate){*target, id, class_of, 0, WEIR_TARGETS_PARTS};
    return WEIR_OK;
}

uint32_t weir_target_class(const weir_schema_task *task, uint32_t value) {
    if (task->positive_count == 0) return value;
    for (uint32_t i = 0; i < task->positive_count; i++) {
        if (task->positive[i] == value) return 1;
    }
    return 0;
}

/* No file is believed: who has written one can have written its sum into the manifest, too. */
static weir_err targets_check_list(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, const char *of,
                                   const int64_t *indptr, uint64_t count) {
    int64_t begin = indptr[vertex], end = indptr[vertex + 1];
    if (begin >= 0 && begin <= end && (uint64_t)end <= count) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot says that vertex %llu of type '%s' has %s %lld to %lld of %llu; take another copy",
                    (unsigned long long)vertex, weir_schema_vertex_at(weir_snapshot_schema(snapshot), type)->name, of,
                    (long long)begin, (long long)end, (unsigned long long)count);
}

/* The event that put the vertex: its edges of that very moment carry it. 0: it came without edges. */
static weir_err targets_event_of(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, int64_t time_us,
                                 uint64_t *eventp) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    *eventp = 0;
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        if (weir_schema_relation_at(schema, r)->from != type) continue;
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r, WEIR_OUT);
        weir_err err = targets_check_list(snapshot, type, vertex, "edges", e->indptr, e->edges);
        if (err) return err;
        for (int64_t i = e->indptr[vertex]; i < e->indptr[vertex + 1] && e->times[i] >= time_us; i++) {
            if (e->times[i] != time_us) continue;
            *eventp = e->events[i];
            return WEIR_OK;
        }
    }
    return WEIR_OK;
}

bool weir_target_is_young(const weir_target_collector *c, int64_t time_us) {
    int64_t ripe_us;
    bool late = __builtin_add_overflow(time_us, c->task->maturity_us, &ripe_us);
    return late || ripe_us > weir_snapshot_as_of_us(c->snapshot);
}

/* As of when the vertex was put, in one of its lives; labels [begin, end) are of that life, newest first. */
static weir_err targets_take_life(weir_target_collector *c, uint64_t vertex, int64_t time_us, uint64_t begin,
                                  uint64_t end) {
    uint32_t type = c->label->target, value = c->label->absent;
    int64_t last_us = INT64_MAX;                        /* of labels that count */
    if (time_us < weir_snapshot_from_us(c->snapshot)) { /* TRAIN-T4 */
        c->out->old++;
        return WEIR_OK;
    }
    if (weir_target_is_young(c, time_us)) { /* TRAIN-T2 */
        c->out->young++;
        return WEIR_OK;
    }
    if (c->task->horizon_us && __builtin_add_overflow(time_us, c->task->horizon_us, &last_us)) last_us = INT64_MAX;
    while (begin < end && c->labels->times[begin] > last_us)
        begin++;
    if (begin < end) value = (uint32_t)c->labels->values[begin];
    if (value == WEIR_SCHEMA_NONE) {
        c->out->unlabelled++;
        return WEIR_OK;
    }
    weir_target target = {.vertex = vertex, .before_us = time_us, .type = (uint16_t)type};
    weir_err err = targets_event_of(c->snapshot, type, vertex, time_us, &target.event);
    return err ? err : weir_target_candidate_add(c, &target, weir_target_class(c->task, value));
}

bool weir_target_has_name(const weir_snapshot_vertices *v, uint64_t vertex) {
    return v->key_offsets[vertex] < v->key_offsets[vertex + 1];
}

/* Forgotten or deleted and put again, it is another target. labels [begin, end) are the vertex's, newest first. */
static weir_err targets_take_lives(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(c->snapshot, c->label->target);
    if (!weir_target_has_name(v, vertex)) return WEIR_OK; /* only named by edges, never put */
    weir_err err = targets_check_list(c->snapshot, c->label->target, vertex, "lives", v->lives.indptr, v->lives.count);
    for (int64_t life = v->lives.indptr[vertex]; !err && life < v->lives.indptr[vertex + 1]; life++) {
        uint64_t from = begin, to = end;
        weir_snapshot_labels_of_life(v, vertex, (uint64_t)life, c->labels, &from, &to);
        err = targets_take_life(c, vertex, v->lives.times[life], from, to);
    }
    return err;
}

/* As of just before each of its labels, because the message that brings it may say more: a row of that very moment is
 * the label told in other words. Unless the vertex came with it. */
static weir_err targets_take_labels(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(c->snapshot, c->label->target);
    weir_err err = WEIR_OK;
    for (uint64_t i = begin; !err && i < end; i++) {
        int64_t time_us = c->labels->times[i];
        uint64_t life;
        bool there = time_us < INT64_MAX && weir_snapshot_span(&v->lives, vertex, time_us + 1, &life);
        if (!there || !weir_target_has_name(v, vertex)) continue; /* what is not there is not judged */
        if (v->lives.times[life] < time_us) time_us--;
        if (time_us < weir_snapshot_from_us(c->snapshot)) { /* TRAIN-T4 */
            c->out->old++;
            continue;
        }
        const weir_target target = {vertex, time_us, 0, (uint16_t)c->label->target};
        err = weir_target_candidate_add(c, &target, weir_target_class(c->task, (uint32_t)c->labels->values[i]));
    }
    return err;
}

weir_err weir_targets_collect(weir_target_collector *c, weir_target_take take) {
    uint64_t vertices = weir_snapshot_vertices_of(c->snapshot, c->label->target)->own, at = 0;
    weir_err err = WEIR_OK;
    for (uint64_t vertex = 0; !err && vertex < vertices; vertex++) {
        uint64_t begin = at;
        while (at < c->labels->count && (uint64_t)c->labels->targets[at] == vertex)
            at++;
        err = take(c, vertex, begin, at);
    }
    return err;
}

/* --- parts ------------------------------------------------------------------------------------------------------ */

static int targets_by_time(const void *a, const void *b) {
    const weir_target_candidate *x = a, *y = b;
    if (x->target.before_us != y->target.before_us) return x->target.before_us < y->target.before_us ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->class_of < y->class_of ? -1 : x->class_of > y->class_of; /* TRAIN-T5: two labels of one moment */
}

/* Moves a cut to the right until it separates different times (TRAIN-T1). */
static uint64_t targets_cut_at(const weir_target_candidate *candidates, uint64_t count, double share) {
    uint64_t cut = (uint64_t)(share * (double)count);
    while (cut > 0 && cut < count && candidates[cut].target.before_us == candidates[cut - 1].target.before_us)
        cut++;
    return cut;
}

static weir_err targets_keep(weir_target_collector *c, size_t begin, bool shared) {
    size_t count = c->count - begin;
    WEIR_ASSERT(begin <= c->count);
    const weir_target_candidate *kept = c->candidates + begin;
    weir_target *targets = weir_calloc(count + 1, sizeof *targets);
    uint64_t *ids = weir_calloc(count + 1, sizeof *ids);
    uint32_t *classes = weir_calloc(count + 1, sizeof *classes);
    uint32_t *ranks = shared ? weir_calloc(count + 1, sizeof *ranks) : NULL;
    c->out->targets = targets;
    c->out->ids = ids;
    c->out->classes_of = classes;
    c->out->ranks = ranks;
    if (!targets || !ids || !classes || (shared && !ranks)) return WEIR_NOMEM("for the targets of training");
    for (size_t i = 0; i < count; i++) {
        targets[i] = kept[i].target;
        ids[i] = weir_vertex_low(kept[i].id);
        classes[i] = kept[i].class_of;
        if (ranks) ranks[i] = kept[i].rank;
    }
    c->out->count = count;
    return WEIR_OK;
}

static weir_err targets_cut_by_time(weir_target_collector *c, const weir_targets_opts *opts) {
    const weir_targets_cut *cut = &opts->cut;
    weir_err err =
        weir_targets_collect(c, c->task->moment == WEIR_SCHEMA_AT_PUT ? targets_take_lives : targets_take_labels);
    if (!err && opts->comm) err = weir_targets_gather(c, opts->comm);
    if (err) return err;
    if (c->count) qsort(c->candidates, c->count, sizeof *c->candidates, targets_by_time);

    /* The warm-up is only a past. */
    size_t begin = 0;
    if (c->count) {
        int64_t first_us = c->candidates[0].target.before_us, last_us = c->candidates[c->count - 1].target.before_us;
        uint64_t range_us = (uint64_t)last_us - (uint64_t)first_us; /* may be more than an int64_t holds */
        int64_t begin_us = (int64_t)((uint64_t)first_us + (uint64_t)(cut->warm_up * (double)range_us));
        WEIR_ASSERT(begin_us >= first_us && begin_us <= last_us);
        while (begin < c->count && c->candidates[begin].target.before_us < begin_us)
            begin++;
    }
    size_t count = c->count - begin;
    const weir_target_candidate *kept = c->candidates + begin;
    c->out->ends[WEIR_TARGETS_TRAIN] = targets_cut_at(kept, count, 1 - cut->validation - cut->test);
    c->out->ends[WEIR_TARGETS_VALIDATION] = targets_cut_at(kept, count, 1 - cut->test);
    c->out->ends[WEIR_TARGETS_TEST] = count;
    return targets_keep(c, begin, opts->comm != NULL);
}

static int targets_by_part(const void *a, const void *b) {
    const weir_target_candidate *x = a, *y = b;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* TRAIN-T3: what is in no part stands last, and is left out. */
static weir_err targets_cut_still(weir_target_collector *c, const weir_targets_opts *opts) {
    uint64_t *ends = c->out->ends;
    weir_err err = weir_targets_still(c, opts);
    if (err) return err;
    if (c->count) qsort(c->candidates, c->count, sizeof *c->candidates, targets_by_part);
    for (size_t i = 0; i < c->count && c->candidates[i].part < WEIR_TARGETS_PARTS; i++)
        ends[c->candidates[i].part] = i + 1;
    for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++)
        ends[part] = ends[part] > ends[part - 1] ? ends[part] : ends[part - 1];
    WEIR_ASSERT(ends[WEIR_TARGETS_TEST] <= c->count);
    c->count = ends[WEIR_TARGETS_TEST];
    return targets_keep(c, 0, opts->comm != NULL);
}

static weir_err targets_count_classes(weir_targets *t) {
    uint64_t *counts = weir_calloc((size_t)WEIR_TARGETS_PARTS * t->classes, sizeof *counts);
    t->class_counts = counts;
    if (!counts) return WEIR_NOMEM("for the targets of training");
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        for (uint64_t i = weir_targets_begin(t, part); i < t->ends[part]; i++) {
            WEIR_ASSERT(t->classes_of[i] < t->classes);
            counts[part * t->classes + t->classes_of[i]]++;
        }
    }
    return WEIR_OK;
}

/* --- what is refused ------------------------------------------------------------------------------------------- */

static weir_err targets_check_part(const weir_targets *t, weir_targets_part part) {
    static const char *const names[] = {"to learn from", "for validation", "for the test"};
    uint64_t count = t->ends[part] - weir_targets_begin(t, part);
    uint32_t present = 0;
    for (uint32_t i = 0; i < t->classes; i++)
        present += t->class_counts[part * t->classes + i] > 0;
    if (count < TARGETS_MIN) {
        if (t->old > t->young)
            return WEIR_ERR(WEIR_EDATA,
                            "there are only %llu targets %s (%llu are from before the history that the snapshot "
                            "covers); build it with a longer --history or with none, and lengthen the schema's "
                            "`history` if it has one",
                            (unsigned long long)count, names[part], (unsigned long long)t->old);
        return WEIR_ERR(WEIR_EDATA,
                        "there are only %llu targets %s (%llu are too young: their labels may still come); take more "
                        "data, or shorten the task's `maturity`",
                        (unsigned long long)count, names[part], (unsigned long long)t->young);
    }
    if (present < 2) {
        return WEIR_ERR(WEIR_EDATA, "all %llu targets %s are of one class; take a longer time range",
                        (unsigned long long)count, names[part]);
    }
    return WEIR_OK;
}

static weir_err targets_check(const weir_target_collector *c, const weir_targets_cut *cut) {
    const weir_targets *t = c->out;
    weir_err err = WEIR_OK;
    /* As those of an import without times. */
    if (cut->split == WEIR_TARGETS_BY_TIME && t->count >= TARGETS_MIN &&
        t->targets[0].before_us == t->targets[t->count - 1].before_us)
        return WEIR_ERR(WEIR_EDATA,
                        "all %llu targets are of one moment, so no time separates them; give --masks or --per-class",
                        (unsigned long long)t->count);
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; !err && part < WEIR_TARGETS_PARTS; part++)
        err = targets_check_part(t, part);
    return err;
}

static weir_err targets_find_task(weir_target_collector *c, uint32_t task) {
    const weir_schema *schema = weir_snapshot_schema(c->snapshot);
    WEIR_ASSERT(task < weir_schema_task_count(schema));
    c->task = weir_schema_task_at(schema, task);
    if (c->task->kind != WEIR_SCHEMA_CLASSIFY)
        return WEIR_ERR(WEIR_ECONFIG, "task %s recommends; only tasks that classify can be trained", c->task->name);
    c->label = weir_schema_label_at(schema, c->task->label);
    if (c->label->on_relation)
        return WEIR_ERR(WEIR_ECONFIG, "label %s of task %s is on a relation; only labels of vertices can be learnt",
                        c->label->name, c->task->name);
    c->labels = weir_snapshot_labels_of(c->snapshot, c->task->label);
    c->out->classes = c->task->positive_count ? 2 : c->label->values.count;
    return WEIR_OK;
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

uint64_t weir_targets_begin(const weir_targets *targets, weir_targets_part part) {
    WEIR_ASSERT(part < WEIR_TARGETS_PARTS);
    return part == WEIR_TARGETS_TRAIN ? 0 : targets->ends[part - 1];
}

weir_err weir_targets_open(const weir_snapshot *snapshot, const weir_targets_opts *opts, weir_targets **targetsp) {
    const weir_targets_cut *cut = &opts->cut;
    *targetsp = NULL;
    if (cut->split == WEIR_TARGETS_BY_TIME && !(cut->warm_up >= 0 && cut->warm_up <= 0.9 && cut->validation > 0 &&
                                                cut->test > 0 && cut->validation + cut->test < 1))
        return WEIR_ERR(WEIR_EINVAL, "warm-up is a share up to 0.9; validation and test are shares below 1 together");
    weir_target_collector c = {.snapshot = snapshot, .out = weir_calloc(1, sizeof *c.out)};
    if (!c.out) return WEIR_NOMEM("for the targets of training");
    weir_err err = targets_find_task(&c, opts->task);
    if (!err) err = cut->split == WEIR_TARGETS_BY_TIME ? targets_cut_by_time(&c, opts) : targets_cut_still(&c, opts);
    if (!err) err = targets_count_classes(c.out);
    if (!err) err = targets_check(&c, cut);
    weir_free(c.candidates);
    if (err) {
        weir_targets_close(c.out);
        return err;
    }
    *targetsp = c.out;
    return WEIR_OK;
}

void weir_targets_close(weir_targets *targets) {
    if (!targets) return;
    weir_free((void *)(uintptr_t)targets->targets);
    weir_free((void *)(uintptr_t)targets->ids);
    weir_free((void *)(uintptr_t)targets->ranks);
    weir_free((void *)(uintptr_t)targets->classes_of);
    weir_free((void *)(uintptr_t)targets->class_counts);
    weir_free(targets);
}
