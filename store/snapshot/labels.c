/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - labels known before as_of, each with the position of its target.
 *
 * Of a vertex, the labels of lives that a target sees. A label belongs to the last life that began before it: a message
 * that both labels a vertex and puts it again describes the earlier life. A label older than all lives belongs to the
 * first, unless a deletion lies between. The end of a life hides no label: what is learnt about a target must not
 * depend on whether it was deleted afterwards.
 *
 * The label of an edge names its vertex and its event, and is stored with the vertex at which the edge begins: out's
 * list of that vertex is searched for the event. For a vertex with many edges the events are sorted once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "along.h"

#define SORT_FROM 32 /* edges of a vertex; fewer are searched one by one */

typedef struct event_place {
    uint64_t event;
    int64_t edge;
} event_place;

typedef struct label_files {
    weir_snapshot_draft *draft;
    uint32_t label;
    const weir_schema_label *schema;
    weir_npy_writer *targets, *values, *times; /* NULL while counting */
    uint64_t count, orphans;
    weir_pulse pulse; /* of a vertex's label */
    /* of an edge's label: out */
    weir_npy_map *indptr_map, *events_map;
    weir_npy_array indptr, events;
    event_place *sorted; /* of the vertex at sorted_index */
    size_t sorted_count, sorted_capacity;
    uint64_t sorted_index;
} label_files;

/* --- the target -------------------------------------------------------------------------------------------------- */

static int labels_by_event(const void *a, const void *b) {
    const event_place *x = a, *y = b;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    return (x->edge > y->edge) - (x->edge < y->edge);
}

static weir_err labels_sort_events(label_files *f, uint64_t index, int64_t begin, int64_t end) {
    size_t count = (size_t)(end - begin);
    WEIR_ASSERT(begin >= 0 && begin <= end && (uint64_t)end <= f->events.count); /* SNAPSHOT-Z2 */
    const uint64_t *events = f->events.data;
    if (f->sorted_index == index && f->sorted_count == count) return WEIR_OK;
    if (count > f->sorted_capacity) {
        event_place *grown = weir_realloc_array(f->sorted, count, sizeof *grown);
        if (!grown) return WEIR_NOMEM("while finding the labelled edges of a vertex with %zu", count);
        f->sorted = grown;
        f->sorted_capacity = count;
    }
    for (size_t i = 0; i < count; i++)
        f->sorted[i] = (event_place){events[begin + (int64_t)i], begin + (int64_t)i};
    qsort(f->sorted, count, sizeof *f->sorted, labels_by_event);
    f->sorted_index = index;
    f->sorted_count = count;
    return WEIR_OK;
}

static weir_err labels_find_edge(label_files *f, const weir_spill_record *r, int64_t *targetp, bool *foundp) {
    uint32_t from = weir_schema_relation_at(f->draft->schema, f->schema->target)->from;
    uint64_t index;
    *foundp = false;
    if (!weir_draft_find(f->draft, from, r->vertex, &index)) return WEIR_OK;
    int64_t begin = ((const int64_t *)f->indptr.data)[index], end = ((const int64_t *)f->indptr.data)[index + 1];
    WEIR_ASSERT(begin >= 0 && begin <= end && (uint64_t)end <= f->events.count);
    if (end - begin >= SORT_FROM) {
        weir_err err = labels_sort_events(f, index, begin, end);
        if (err) return err;
        size_t low = 0, high = f->sorted_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (f->sorted[middle].event < r->event) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        *foundp = low < f->sorted_count && f->sorted[low].event == r->event;
        if (*foundp) *targetp = f->sorted[low].edge;
        return WEIR_OK;
    }
    for (int64_t e = begin; e < end && !*foundp; e++) {
        *foundp = ((const uint64_t *)f->events.data)[e] == r->event;
        *targetp = e;
    }
    return WEIR_OK;
}

static bool labels_sees(const weir_pulse *p, int64_t time_us) {
    const weir_lives *lives = &p->lives;
    size_t life = time_us == INT64_MIN ? lives->count : weir_lives_find(lives, time_us - 1);
    int64_t until_us;
    if (lives->count == 0) return false;
    if (life == lives->count) {
        if (weir_lives_deleted_us(lives, time_us) < lives->of[0].first_us) return false;
        life = 0;
    }
    return weir_pulse_sees(p, &lives->of[life], &until_us);
}

/* --- one walk ---------------------------------------------------------------------------------------------------- */

static weir_err labels_write_one(label_files *f, const weir_spill_record *r) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    weir_value value;
    int64_t target = 0;
    uint64_t index = 0;
    bool found;
    weir_err err;
    if (f->schema->on_relation) {
        err = labels_find_edge(f, r, &target, &found);
    } else {
        err = weir_pulse_to(&f->pulse, r->vertex);
        found = !err && labels_sees(&f->pulse, r->time_us) &&
                weir_draft_find(f->draft, f->schema->target, r->vertex, &index);
        target = (int64_t)index;
    }
    if (err) return err;

    uint32_t code = WEIR_SCHEMA_NONE;
    if (found) {
        err = weir_row_check(&kind, 1, r->row, r->row_length);
        if (err) return weir_err_prefix(err, "a label of vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(r->vertex));
        weir_row_read(&kind, 1, r->row, r->row_length, &value);
        if (value.present) code = weir_schema_values_find(&f->schema->values, value.text, value.text_length);
    }
    if (code == WEIR_SCHEMA_NONE) {
        f->orphans++;
        return WEIR_OK;
    }
    WEIR_ASSERT(r->time_us < f->draft->as_of_us); /* SNAPSHOT-Z3 */
    f->count++;
    if (!f->targets) return WEIR_OK;
    const int32_t number = (int32_t)code;
    err = weir_npy_write_i64(f->targets, target);
    if (!err) err = weir_npy_write(f->values, &number, 1);
    return err ? err : weir_npy_write_i64(f->times, r->time_us);
}

static weir_err labels_walk(label_files *f) {
    weir_merge *merge = NULL;
    weir_spill_record record;
    bool found = true;
    size_t count;
    char name[64];
    snprintf(name, sizeof name, "labels.%u", f->label);
    f->count = f->orphans = 0;
    weir_err err = weir_merge_open(f->draft->spill, name, f->draft->shards, &merge);
    if (!err && !f->schema->on_relation) err = weir_pulse_open(f->draft, f->schema->target, &f->pulse);
    while (!err && found) {
        err = weir_merge_next(merge, &record, &found);
        if (err || !found) break;
        /* What a deletion of the vertex hides is left out, labels of its edges too. */
        const int64_t *deletions =
            f->draft->opts->without_deleted ? weir_draft_deletions_of(f->draft, record.vertex, &count) : NULL;
        if (deletions && record.time_us <= deletions[count - 1]) continue;
        err = labels_write_one(f, &record);
    }
    weir_merge_close(merge);
    weir_pulse_close(&f->pulse);
    return err;
}

static weir_err labels_write(weir_snapshot_draft *draft, uint32_t label) {
    label_files f = {.draft = draft,
                     .label = label,
                     .schema = weir_schema_label_at(draft->schema, label),
                     .sorted_index = UINT64_MAX};
    char folder[512], path[WEIR_DRAFT_PATH_MAX];
    weir_err err = WEIR_OK;
    if (f.schema->on_relation) { /* the edges are found in `out` */
        const weir_schema_relation *r = weir_schema_relation_at(draft->schema, f.schema->target);
        err = weir_draft_path(draft, path, "relations/%s/out/indptr.npy", r->name);
        if (!err) err = weir_npy_map_open(path, &f.indptr_map, &f.indptr);
        if (!err) err = weir_draft_path(draft, path, "relations/%s/out/events.npy", r->name);
        if (!err) err = weir_npy_map_open(path, &f.events_map, &f.events);
    }
    if (!err) err = labels_walk(&f); /* counts, for the headers of the files */

    snprintf(folder, sizeof folder, "labels/%s", f.schema->name);
    if (!err) err = weir_draft_path(draft, path, "%s", folder);
    if (!err) err = weir_folder_create(path);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, f.count, 0, &f.targets, "%s/targets.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I32, f.count, 0, &f.values, "%s/values.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, f.count, 0, &f.times, "%s/times.npy", folder);
    if (!err) err = labels_walk(&f);
    draft->label_counts[label] = f.count;
    draft->stats.labels += f.count;
    draft->stats.orphan_labels += f.orphans;

    weir_npy_writer *writers[] = {f.targets, f.values, f.times};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        err = weir_npy_writer_end(writers[i], err);
    weir_npy_map_close(f.indptr_map);
    weir_npy_map_close(f.events_map);
    weir_free(f.sorted);
    return err;
}

weir_err weir_draft_labels(weir_snapshot_draft *draft) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_label_count(draft->schema); i++)
        err = labels_write(draft, i);
    return err;
}
