/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c - candidates of a task, their classes, and the cut into parts. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "targets_private.h"

#define TARGETS_MIN       20u /* of a part: below, a metric is a roll of dice */
#define TARGETS_DAY_US    ((int64_t)86400 * 1000000)
#define TARGETS_NO_MEMORY "for the targets of training"

/* The class of a label's value: of a yes-or-no question whether the value is among the positive ones. */
static uint32_t targets_class(const weir_schema_task *task, uint32_t value) {
    if (task->positive_count == 0) return value;
    for (uint32_t i = 0; i < task->positive_count; i++) {
        if (task->positive[i] == value) return 1;
    }
    return 0;
}

weir_err weir_target_candidate_add(weir_target_collector *c, const weir_target *target, uint32_t value) {
    if (value >= c->label->values.count) /* opening a snapshot does not look at each label */
        return WEIR_ERR(
            WEIR_ECORRUPT,
            "the snapshot says that vertex %llu has value %u of label '%s', which has only %u; take another "
            "copy",
            (unsigned long long)target->vertex, value, c->label->name, c->label->values.count);
    const uint32_t class_of = targets_class(c->task, value);
    WEIR_ASSERT(class_of < c->out->classes);
    if (!WEIR_GROW(c->candidates, c->capacity, c->count)) return WEIR_NOMEM(TARGETS_NO_MEMORY);
    const weir_vertex_pair id = weir_snapshot_vertices_of(c->snapshot, target->type)->ids[target->vertex];
    c->candidates[c->count++] = (weir_target_candidate){
        {id, target->before_us, class_of, WEIR_TARGETS_PARTS}, (uint64_t)target->vertex, target->event};
    return WEIR_OK;
}

/* Whether labels of a target of this time may come at or after by_us. */
static bool targets_is_young(const weir_target_collector *c, int64_t time_us, int64_t by_us) {
    int64_t ripe_us;
    bool late = __builtin_add_overflow(time_us, c->task->maturity_us, &ripe_us);
    return late || ripe_us > by_us;
}

bool weir_target_is_young(const weir_target_collector *c, int64_t time_us) {
    return targets_is_young(c, time_us, weir_snapshot_as_of_us(c->snapshot));
}

/* Whether a target of this time can be in a part; labels before *by_us count. */
static bool targets_looks_at(const weir_target_collector *c, int64_t time_us, int64_t *by_us) {
    const weir_targets_cut *cut = c->cut;
    *by_us = weir_snapshot_as_of_us(c->snapshot);
    if (cut->split != WEIR_TARGETS_BY_TIMES) return true;
    if (time_us >= cut->known_us) return time_us >= cut->test_from_us && time_us < cut->test_to_us;
    *by_us = cut->known_us; /* TRAIN-T7 */
    return true;
}

/* Its label may still come: counts it among those that are excluded. */
static void targets_leave_young(weir_target_collector *c, int64_t time_us) {
    const bool test = c->cut->split != WEIR_TARGETS_BY_TIMES || time_us >= c->cut->known_us;
    c->out->young += test;
    c->out->untold += !test;
}

/* As of when the vertex was put, in one of its lives; labels [begin, end) are of that life, newest first. */
static weir_err targets_take_life(weir_target_collector *c, uint64_t vertex, int64_t time_us, uint64_t begin,
                                  uint64_t end) {
    uint32_t type = c->label->target, value = c->label->absent;
    int64_t by_us, last_us = INT64_MAX; /* of labels that count */
    if (!targets_looks_at(c, time_us, &by_us)) return WEIR_OK;
    if (time_us < weir_snapshot_from_us(c->snapshot)) { /* TRAIN-T4 */
        c->out->old++;
        return WEIR_OK;
    }
    if (targets_is_young(c, time_us, by_us)) { /* TRAIN-T2 */
        targets_leave_young(c, time_us);
        return WEIR_OK;
    }
    if (c->task->horizon_us && __builtin_add_overflow(time_us, c->task->horizon_us, &last_us)) last_us = INT64_MAX;
    while (begin < end && (c->labels->times[begin] > last_us || c->labels->times[begin] >= by_us))
        begin++;
    if (begin < end) {
        value = (uint32_t)c->labels->values[begin];
    } else if (value == WEIR_SCHEMA_NONE) {
        c->out->unlabelled++;
        return WEIR_OK;
    }
    weir_target target = {.vertex = vertex, .before_us = time_us, .type = (uint16_t)type};
    weir_err err = weir_snapshot_event_of_put(c->snapshot, type, vertex, time_us, &target.event);
    return err ? err : weir_target_candidate_add(c, &target, value);
}

int32_t weir_target_day(int64_t time_us) {
    return (int32_t)(time_us / TARGETS_DAY_US);
}

bool weir_target_has_name(const weir_snapshot_vertices *v, uint64_t vertex) {
    return v->key_offsets[vertex] < v->key_offsets[vertex + 1];
}

/* Forgotten or deleted and put again, it is another target. labels [begin, end) are the vertex's, newest first. */
static weir_err targets_take_lives(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(c->snapshot, c->label->target);
    if (!weir_target_has_name(v, vertex)) return WEIR_OK; /* only named by edges, never put */
    weir_err err = weir_snapshot_check_list(c->snapshot, c->label->target, vertex, "lives", v->lives.indptr,
                                            v->lives.count); /* who has written a file can have written its sum, too */
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
        int64_t time_us = c->labels->times[i], by_us;
        uint64_t life;
        bool there = time_us < INT64_MAX && weir_snapshot_span(&v->lives, vertex, time_us + 1, &life);
        if (!there || !weir_target_has_name(v, vertex)) continue; /* what is not there is not judged */
        if (v->lives.times[life] < time_us) time_us--;
        if (!targets_looks_at(c, time_us, &by_us)) continue;
        if (c->labels->times[i] >= by_us) {
            targets_leave_young(c, time_us);
            continue;
        }
        if (time_us < weir_snapshot_from_us(c->snapshot)) { /* TRAIN-T4 */
            c->out->old++;
            continue;
        }
        const weir_target target = {vertex, time_us, 0, (uint16_t)c->label->target};
        err = weir_target_candidate_add(c, &target, (uint32_t)c->labels->values[i]);
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

/* --- cut by time ------------------------------------------------------------------------------------------------ */

static int targets_by_time(const void *a, const void *b) {
    const weir_target_told *x = a, *y = b;
    if (x->before_us != y->before_us) return x->before_us < y->before_us ? -1 : 1;
    if (x->id.high != y->id.high) return x->id.high < y->id.high ? -1 : 1;
    if (x->id.low != y->id.low) return x->id.low < y->id.low ? -1 : 1;
    return x->class_of < y->class_of ? -1 : x->class_of > y->class_of; /* TRAIN-T5: two labels of one moment */
}

/* Times of the first and the last of all ranks' first candidates, of this rank so many; first > last: there are none.
 */
static weir_err targets_range(const weir_target_collector *c, size_t learnt, int64_t range_us[2]) {
    uint32_t ranks = c->comm ? weir_comm_ranks(c->comm) : 1;
    weir_buf all = {0};
    range_us[0] = learnt ? c->candidates[0].told.before_us : INT64_MAX;
    range_us[1] = learnt ? c->candidates[learnt - 1].told.before_us : INT64_MIN;
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM(TARGETS_NO_MEMORY);
    if (!err && c->comm) err = weir_comm_gather(c->comm, range_us, 2 * sizeof *range_us, &all, lengths);
    for (size_t at = 0; !err && at < all.length; at += 2 * sizeof *range_us) {
        int64_t of_rank[2];
        memcpy(of_rank, all.bytes + at, sizeof of_rank);
        if (of_rank[0] < range_us[0]) range_us[0] = of_rank[0];
        if (of_rank[1] > range_us[1]) range_us[1] = of_rank[1];
    }
    weir_buf_free(&all);
    weir_free(lengths);
    return err;
}

/* The warm-up is only a past. *learntp: of the candidates, in their order, those that are not for a test by times. */
static weir_err targets_leave_warm_up(weir_target_collector *c, double warm_up, size_t *learntp) {
    int64_t range_us[2];
    weir_err err = targets_range(c, *learntp, range_us);
    if (err || range_us[0] > range_us[1]) return err;
    uint64_t length_us = (uint64_t)range_us[1] - (uint64_t)range_us[0]; /* may be more than an int64_t holds */
    int64_t begin_us = (int64_t)((uint64_t)range_us[0] + (uint64_t)(warm_up * (double)length_us));
    WEIR_ASSERT(begin_us >= range_us[0] && begin_us <= range_us[1]);
    size_t begin = 0;
    while (begin < *learntp && c->candidates[begin].told.before_us < begin_us)
        begin++;
    *learntp -= begin;
    c->count -= begin;
    if (c->count) memmove(c->candidates, c->candidates + begin, c->count * sizeof *c->candidates);
    return WEIR_OK;
}

/* Where the next one belongs. last_us: of the one before. */
typedef struct targets_cutting {
    weir_target_collector *c;
    int32_t *days;
    int64_t last_us;
} targets_cutting;

static void targets_cut_next(void *context, const weir_target_told *told, uint32_t rank) {
    targets_cutting *cutting = context;
    weir_targets *t = cutting->c->out;
    const uint64_t at = cutting->c->taken;
    weir_targets_part part = WEIR_TARGETS_TRAIN;
    /* A cut moves to the right until it separates different times (TRAIN-T1). */
    for (weir_targets_part p = WEIR_TARGETS_TRAIN; at > 0 && p < WEIR_TARGETS_TEST; p++)
        t->ends[p] += at == t->ends[p] && told->before_us == cutting->last_us;
    while (at >= t->ends[part])
        part++;
    if (part != WEIR_TARGETS_TRAIN) cutting->days[at - t->ends[WEIR_TARGETS_TRAIN]] = weir_target_day(told->before_us);
    if (at == weir_targets_begin(t, part)) t->from_us[part] = told->before_us;
    t->to_us[part] = told->before_us;
    t->one_time = at == 0 || (t->one_time && told->before_us == cutting->last_us);
    cutting->last_us = told->before_us;
    weir_targets_put(cutting->c, told, rank);
}

static weir_err targets_cut_by_time(weir_target_collector *c, const weir_targets_cut *cut) {
    targets_cutting cutting = {.c = c};
    const bool by_times = cut->split == WEIR_TARGETS_BY_TIMES;
    weir_err err =
        weir_targets_collect(c, c->task->moment == WEIR_SCHEMA_AT_PUT ? targets_take_lives : targets_take_labels);
    if (!err && c->count) qsort(c->candidates, c->count, sizeof *c->candidates, targets_by_time);
    size_t learnt = c->count;
    while (by_times && learnt > 0 && c->candidates[learnt - 1].told.before_us >= cut->known_us)
        learnt--;
    if (!err) err = targets_leave_warm_up(c, cut->warm_up, &learnt);
    if (!err) err = weir_targets_count(c);
    if (err) return err;
    uint64_t count = c->out->count, *ends = c->out->ends;
    double of_ranks = (double)learnt;
    if (by_times && c->comm) weir_comm_sum_doubles(c->comm, &of_ranks, 1);
    ends[WEIR_TARGETS_TRAIN] =
        (uint64_t)(by_times ? (1 - cut->validation) * of_ranks : (1 - cut->validation - cut->test) * (double)count);
    ends[WEIR_TARGETS_VALIDATION] = (uint64_t)(by_times ? of_ranks : (1 - cut->test) * (double)count);
    ends[WEIR_TARGETS_TEST] = count;
    c->out->days = cutting.days = weir_calloc(count - ends[WEIR_TARGETS_TRAIN] + 1, sizeof *cutting.days);
    return cutting.days ? weir_targets_gather(c, targets_by_time, targets_cut_next, &cutting)
                        : WEIR_NOMEM(TARGETS_NO_MEMORY);
}

/* --- what is kept ----------------------------------------------------------------------------------------------- */

/* This rank's candidates stand in the order of all. */
static weir_err targets_hold(const weir_target_collector *c) {
    weir_target *targets = weir_calloc(c->count + 1, sizeof *targets);
    uint64_t *ids = weir_calloc(c->count + 1, sizeof *ids);
    uint32_t *numbers = c->owners ? weir_calloc(c->count + 1, sizeof *numbers) : NULL, numbered = 0;
    c->out->targets = targets;
    c->out->ids = ids;
    c->out->numbers = numbers;
    if (!targets || !ids || (c->owners && !numbers)) return WEIR_NOMEM(TARGETS_NO_MEMORY);
    for (size_t i = 0; i < c->count; i++) {
        const weir_target_candidate *from = &c->candidates[i];
        targets[i] = (weir_target){from->vertex, from->told.before_us, from->event, (uint16_t)c->label->target};
        ids[i] = from->told.id.low;
    }
    for (uint64_t i = 0; c->owners && i < c->out->count; i++)
        if (weir_targets_owner(c->out, i) == weir_comm_rank(c->comm)) numbers[numbered++] = (uint32_t)i;
    WEIR_ASSERT(c->owners ? numbered == c->count : c->out->count == c->count); /* TRAIN-T6 */
    c->out->held = (uint32_t)c->count;
    return WEIR_OK;
}

static weir_err targets_count_classes(weir_targets *t) {
    uint64_t *counts = weir_calloc((size_t)WEIR_TARGETS_PARTS * t->classes, sizeof *counts);
    t->class_counts = counts;
    if (!counts) return WEIR_NOMEM(TARGETS_NO_MEMORY);
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
    uint64_t count = t->ends[part] - weir_targets_begin(t, part), young = t->untold ? t->untold : t->young;
    uint32_t present = 0;
    for (uint32_t i = 0; i < t->classes; i++)
        present += t->class_counts[part * t->classes + i] > 0;
    if (count < TARGETS_MIN) {
        if (t->old > young)
            return WEIR_ERR(WEIR_EDATA,
                            "there are only %llu targets %s (%llu are from before the history that the snapshot "
                            "covers); build it with a longer --history or with none, and lengthen the schema's "
                            "`history` if it has one",
                            (unsigned long long)count, names[part], (unsigned long long)t->old);
        return WEIR_ERR(WEIR_EDATA,
                        "there are only %llu targets %s (%llu are too young: their labels may still come); take more "
                        "data, or shorten the task's `maturity`",
                        (unsigned long long)count, names[part], (unsigned long long)young);
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
    if (cut->split == WEIR_TARGETS_BY_TIME && t->count >= TARGETS_MIN && t->one_time)
        return WEIR_ERR(
            WEIR_EDATA,
            "all %llu targets are of one moment, so no time separates them; give --split, --masks or --per-class",
            (unsigned long long)t->count);
    /* A test by times is a span of the caller's: a day without a positive is one, too. */
    const weir_targets_part end = cut->split == WEIR_TARGETS_BY_TIMES ? WEIR_TARGETS_TEST : WEIR_TARGETS_PARTS;
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; !err && part < end; part++)
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

uint64_t weir_targets_number(const weir_targets *targets, uint32_t place) {
    WEIR_ASSERT(place < targets->held);
    return targets->numbers ? targets->numbers[place] : place;
}

uint32_t weir_targets_place(const weir_targets *targets, uint64_t target) {
    uint32_t begin = 0, end = targets->held;
    WEIR_ASSERT(target < targets->count);
    if (!targets->numbers) return (uint32_t)target;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (targets->numbers[middle] < target) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < targets->held && targets->numbers[begin] == target ? begin : WEIR_TARGETS_ELSEWHERE;
}

uint32_t weir_targets_owner(const weir_targets *targets, uint64_t target) {
    WEIR_ASSERT(targets->owners && target < targets->count);
    WEIR_ASSERT(targets->owner_bytes == 1 || targets->owner_bytes == 2);
    if (targets->owner_bytes == 1) return ((const uint8_t *)targets->owners)[target];
    return ((const uint16_t *)targets->owners)[target];
}

void weir_targets_owner_put(const weir_targets *targets, void *owners, uint64_t target, uint32_t rank) {
    WEIR_ASSERT(target < targets->count && rank >> 8 * targets->owner_bytes == 0);
    if (targets->owner_bytes == 1) {
        ((uint8_t *)owners)[target] = (uint8_t)rank;
    } else {
        ((uint16_t *)owners)[target] = (uint16_t)rank;
    }
}

uint64_t weir_targets_bytes(const weir_targets *t) {
    uint64_t judged = t->count - t->ends[WEIR_TARGETS_TRAIN];
    return t->count * (sizeof *t->classes_of + (t->owners ? t->owner_bytes : 0)) + judged * sizeof *t->days +
           t->held * (sizeof *t->targets + sizeof *t->ids + (t->numbers ? sizeof *t->numbers : 0)) +
           WEIR_TARGETS_PARTS * t->classes * sizeof *t->class_counts;
}

static weir_err targets_check_cut(const weir_targets_cut *cut) {
    const bool by_times = cut->split == WEIR_TARGETS_BY_TIMES;
    const double test = by_times ? 0 : cut->test;
    if ((by_times || cut->split == WEIR_TARGETS_BY_TIME) &&
        !(cut->warm_up >= 0 && cut->warm_up <= 0.9 && cut->validation > 0 && (by_times || test > 0) &&
          cut->validation + test < 1))
        return WEIR_ERR(WEIR_EINVAL, "warm-up is a share up to 0.9; validation and test are shares below 1 together");
    if (cut->split == WEIR_TARGETS_BY_DRAW &&
        !(cut->validation > 0 && cut->validation < 1 &&
          (cut->folds ? cut->folds >= 2 && cut->fold < cut->folds : cut->test > 0 && cut->validation + test < 1)))
        return WEIR_ERR(WEIR_EINVAL,
                        "validation and test are shares below 1 together, and a fold is one of two or more");
    if (by_times && !(cut->known_us <= cut->test_from_us && cut->test_from_us < cut->test_to_us))
        return WEIR_ERR(WEIR_EINVAL, "a test by times is a span that begins when what is learnt from was known, or "
                                     "later");
    return WEIR_OK;
}

weir_err weir_targets_open(const weir_snapshot *snapshot, const weir_targets_opts *opts, weir_targets **targetsp) {
    const weir_targets_cut *cut = &opts->cut;
    const bool in_order = cut->split == WEIR_TARGETS_BY_TIME || cut->split == WEIR_TARGETS_BY_TIMES;
    *targetsp = NULL;
    weir_err err = targets_check_cut(cut);
    if (err) return err;
    weir_target_collector c = {
        .snapshot = snapshot, .cut = cut, .comm = opts->comm, .out = weir_calloc(1, sizeof *c.out)};
    if (!c.out) return WEIR_NOMEM(TARGETS_NO_MEMORY);
    err = targets_find_task(&c, opts->task);
    if (!err) err = in_order ? targets_cut_by_time(&c, cut) : weir_targets_cut_still(&c, cut);
    if (!err) err = targets_hold(&c);
    if (!err) err = targets_count_classes(c.out);
    if (!err) err = targets_check(&c, cut);
    weir_free(c.candidates);
    weir_free(c.counts);
    if (err) {
        weir_targets_close(c.out);
        return err;
    }
    *targetsp = c.out;
    return WEIR_OK;
}

/* Moves class counts of validation's targets by one each way. */
static void targets_move_counts(weir_targets *t, uint64_t begin, uint64_t end, bool back) {
    uint64_t *counts = (uint64_t *)(uintptr_t)t->class_counts;
    for (uint64_t i = begin; i < end; i++) {
        counts[WEIR_TARGETS_TRAIN * t->classes + t->classes_of[i]] += back ? UINT64_MAX : 1;
        counts[WEIR_TARGETS_VALIDATION * t->classes + t->classes_of[i]] += back ? 1 : UINT64_MAX;
    }
}

void weir_targets_merge(weir_targets *t) {
    WEIR_ASSERT(t->merged == 0);
    t->merged = t->ends[WEIR_TARGETS_VALIDATION] - t->ends[WEIR_TARGETS_TRAIN];
    t->unmerged_us = t->to_us[WEIR_TARGETS_TRAIN];
    targets_move_counts(t, t->ends[WEIR_TARGETS_TRAIN], t->ends[WEIR_TARGETS_VALIDATION], false);
    t->days += t->merged;
    t->ends[WEIR_TARGETS_TRAIN] = t->ends[WEIR_TARGETS_VALIDATION];
    t->to_us[WEIR_TARGETS_TRAIN] = t->to_us[WEIR_TARGETS_VALIDATION];
}

void weir_targets_unmerge(weir_targets *t) {
    if (t->merged == 0) return;
    t->ends[WEIR_TARGETS_TRAIN] -= t->merged;
    t->to_us[WEIR_TARGETS_TRAIN] = t->unmerged_us;
    t->days -= t->merged;
    targets_move_counts(t, t->ends[WEIR_TARGETS_TRAIN], t->ends[WEIR_TARGETS_VALIDATION], true);
    t->merged = 0;
}

void weir_targets_close(weir_targets *targets) {
    if (!targets) return;
    weir_targets_unmerge(targets);
    weir_free((void *)(uintptr_t)targets->targets);
    weir_free((void *)(uintptr_t)targets->ids);
    weir_free((void *)(uintptr_t)targets->owners);
    weir_free((void *)(uintptr_t)targets->classes_of);
    weir_free((void *)(uintptr_t)targets->days);
    weir_free((void *)(uintptr_t)targets->numbers);
    weir_free((void *)(uintptr_t)targets->class_counts);
    weir_free(targets);
}
