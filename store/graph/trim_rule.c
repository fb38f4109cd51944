/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trim_rule.c - what of a vertex no reader can be told any more.
 *
 * `history` says as of which times something can be asked for at all: of those later than the watermark less the
 * history. The watermark does not go back, so what no such reader is told is never told again:
 *
 *   an edge        that has expired for all of them; that was deleted before all of them, itself or one of its ends
 *   a row          whose features are all in newer rows that all of them see; of a life that ended before all of them
 *   a deletion     of an edge: that hides nothing but what has expired
 *   a label        of a vertex that was forgotten, or deleted, before all of them
 *   a name         of such a vertex, of which nothing else is left
 *   a note         of an event, that no id is compared with any more
 *
 * But each record also says that the vertex was put then, and puts decide about lives: from the newest put before a
 * reader's time back to the first one, over gaps shorter than the type's expiry. So a bare put stays in the place of a
 * record, unless others stand for it: the newest and the oldest, and in between as few as keep the gaps short.
 *
 * A deletion that comes late divides a life. Of a vertex that was deleted before, all puts stay; what comes later than
 * `history` may meet a vertex whose puts have been thinned out, which the schema's description says.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/stored.h>

#include "hidden.h"
#include "trim.h"

#define NO_TYPE     UINT32_MAX
#define NEXT_SHARES 8 /* of the time that is kept: a shard is trimmed again after one of them */

/* As of told_us, or an earlier time, readers are told nothing; what is as old as gone_us has expired for all others.
 * INT64_MIN: there is no such time. */
typedef struct trim_reach {
    int64_t told_us, gone_us;
} trim_reach;

static trim_reach trim_reach_of(int64_t now_us, int64_t history_us, int64_t expire_us) {
    trim_reach r = {INT64_MIN, INT64_MIN};
    if (!history_us || __builtin_sub_overflow(now_us, history_us, &r.told_us))
        return (trim_reach){INT64_MIN, INT64_MIN};
    if (!expire_us || __builtin_sub_overflow(r.told_us, expire_us, &r.gone_us)) r.gone_us = INT64_MIN;
    return r;
}

static trim_reach trim_reach_of_list(const weir_trimmer *t, weir_list list) {
    const weir_schema_relation *relation = weir_schema_relation_at(t->rule.schema, list >> 1);
    return trim_reach_of(t->rule.now_us, relation->history_us, relation->expire_us);
}

static bool trim_is_of_edges(const weir_trimmer *t, weir_list list) {
    return WEIR_LIST_KIND(list) == WEIR_LIST_KIND_EDGES && list >> 1 < weir_schema_relation_count(t->rule.schema);
}

/* The newest deletion of a vertex that every reader sees who is told anything. */
static weir_err trim_deleted_us(weir_trimmer *t, weir_vertex vertex, int64_t told_us, int64_t *deleted_usp) {
    *deleted_usp = WEIR_DELETED_NEVER;
    return told_us == INT64_MIN ? WEIR_OK : weir_deleted_time(&t->look, vertex, told_us + 1, deleted_usp);
}

static weir_err trim_note_put(weir_trimmer *t, int64_t time_us) {
    if (!WEIR_GROW(t->times, t->time_capacity, t->time_count))
        return WEIR_NOMEM("for %zu puts of a vertex", t->time_count + 1);
    t->times[t->time_count++] = time_us;
    return WEIR_OK;
}

/* --- what kind of vertex it is ---------------------------------------------------------------------------------- */

/* A type has its own ids, so any record says which it is. */
static uint32_t trim_type_by_list(const weir_trimmer *t, const weir_gathered *g) {
    const weir_schema *schema = t->rule.schema;
    if (trim_is_of_edges(t, g->list)) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, g->list >> 1);
        return (g->list & 1) == WEIR_OUT ? relation->from : relation->to;
    }
    if (g->list == WEIR_LIST_FEATURES && g->entry.row_length >= WEIR_STORED_FEATURES_PREFIX)
        return weir_get_u16(g->entry.row);
    return NO_TYPE;
}

/* It was put, and at no later time. A label may have come before the first put of all. */
static bool trim_ended_by(const weir_gather *g, int64_t time_us) {
    bool put = false;
    for (size_t i = 0; i < g->count; i++) {
        unsigned kind = WEIR_LIST_KIND(g->of[i].list);
        bool edge = kind == WEIR_LIST_KIND_EDGES && !g->of[i].entry.deletion;
        if (!edge && kind != WEIR_LIST_KIND_FEATURES && kind != WEIR_LIST_KIND_PUTS) continue;
        if (g->of[i].entry.time_us > time_us) return false;
        put = true;
    }
    return put && time_us != INT64_MIN;
}

/* --- its lists: each leaves what stays at `kept`, and says how much that is ------------------------------------- */

typedef struct trim_part {
    weir_gather *gather;
    size_t begin, end, kept;
} trim_part;

static void trim_keep(trim_part *p, size_t i) {
    WEIR_ASSERT(p->kept <= i);
    p->gather->of[p->kept++] = p->gather->of[i];
}

static weir_err trim_edges(weir_trimmer *t, trim_part *p) {
    const trim_reach r = trim_reach_of_list(t, p->gather->of[p->begin].list);
    weir_hidden hidden = {0};
    int64_t own_us;
    weir_arena_reset(t->arena);
    weir_err err = trim_deleted_us(t, p->gather->vertex, r.told_us, &own_us);
    if (own_us < r.gone_us) own_us = r.gone_us;
    for (size_t i = p->begin; !err && i < p->end; i++) {
        const weir_entry e = p->gather->of[i].entry;
        bool goes = e.time_us <= own_us && own_us != INT64_MIN;
        if (!goes && e.deletion && e.time_us <= r.told_us) err = weir_hidden_add(&hidden, &e, true, t->arena);
        if (!err && !goes && !e.deletion) { /* a deletion that is met before it has hidden it since anybody's time */
            int64_t neighbor_us = WEIR_DELETED_NEVER;
            goes = weir_hidden_find(&hidden, &e) != WEIR_HIDDEN_BY_NONE;
            if (!goes) err = trim_deleted_us(t, e.neighbor, r.told_us, &neighbor_us);
            goes = goes || (e.time_us <= neighbor_us && neighbor_us != WEIR_DELETED_NEVER);
        }
        if (!goes) trim_keep(p, i);
        if (!err && goes && !e.deletion) err = trim_note_put(t, e.time_us);
    }
    return err;
}

/* Of the rows that everybody sees, those stay that have a feature which no newer one of them has. */
static weir_err trim_rows(weir_trimmer *t, trim_part *p, uint32_t type, trim_reach r, bool forgotten) {
    const weir_graph_kinds *kinds = &t->rule.vertex_kinds[type];
    weir_value values[WEIR_ROW_FEATURES_MAX] = {0};
    size_t present = 0;
    bool any = false;
    int64_t own_us;
    weir_err err = trim_deleted_us(t, p->gather->vertex, r.told_us, &own_us);
    for (size_t i = p->begin; !err && i < p->end; i++) {
        const weir_entry e = p->gather->of[i].entry;
        bool goes = forgotten || (e.time_us <= own_us && own_us != WEIR_DELETED_NEVER);
        bool of_type = e.row_length >= WEIR_STORED_FEATURES_PREFIX && weir_get_u16(e.row) == type;
        if (!goes && e.time_us <= r.told_us && of_type) {
            const uint8_t *row = e.row + WEIR_STORED_FEATURES_PREFIX;
            size_t length = e.row_length - WEIR_STORED_FEATURES_PREFIX, before = present;
            err = weir_row_check(kinds->kinds, kinds->count, row, length);
            if (!err) present = weir_row_fill(kinds->kinds, kinds->count, row, length, values);
            goes = !err && any && present == before;
            any = true;
        }
        if (!goes) trim_keep(p, i);
        if (!err && goes) err = trim_note_put(t, e.time_us);
    }
    return err;
}

/* One that is newer than that may be of a life whose first put is still to come. */
static weir_err trim_labels(weir_trimmer *t, trim_part *p, trim_reach r, bool forgotten) {
    uint32_t label = p->gather->of[p->begin].list & 0xffffffu;
    int64_t own_us;
    if (label < weir_schema_label_count(t->rule.schema) && weir_schema_label_at(t->rule.schema, label)->on_relation) {
        const weir_schema_relation *of =
            weir_schema_relation_at(t->rule.schema, weir_schema_label_at(t->rule.schema, label)->target);
        r = trim_reach_of(t->rule.now_us, of->history_us, of->expire_us);
        forgotten = false;
    }
    weir_err err = trim_deleted_us(t, p->gather->vertex, r.told_us, &own_us);
    for (size_t i = p->begin; i < p->end; i++) {
        int64_t time_us = p->gather->of[i].entry.time_us;
        bool goes = (forgotten && time_us <= r.told_us) || (time_us <= own_us && own_us != WEIR_DELETED_NEVER);
        if (err || !goes) trim_keep(p, i);
    }
    return err;
}

/* --- its puts --------------------------------------------------------------------------------------------------- */

static int trim_newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Of times, newest first, the fewest that are as good for readers as of later times: the newest and the oldest, and
 * such that gaps shorter than an expiry stay shorter. */
static size_t trim_thin_out(int64_t *times, size_t count, int64_t expire_us) {
    size_t kept = count ? 1 : 0;
    for (size_t at = 0; at + 1 < count;) {
        size_t next = at + 1;
        int64_t apart_us;
        while (next + 1 < count &&
               (!expire_us || (!__builtin_sub_overflow(times[at], times[next + 1], &apart_us) && apart_us < expire_us)))
            next++;
        times[kept++] = times[next];
        at = next;
    }
    WEIR_ASSERT(kept <= count && (kept == 0) == (count == 0));
    return kept;
}

/* From which time on each put counts: as of an earlier one the vertex is not asked for, or its type is not forgotten
 * and only its first put and its last one count. */
static weir_err trim_thins_until(weir_trimmer *t, weir_vertex vertex, const weir_schema_vertex *type, trim_reach r,
                                 int64_t *until_usp) {
    int64_t ever_us;
    weir_err err = weir_deleted_time(&t->look, vertex, INT64_MAX, &ever_us);
    *until_usp = ever_us != WEIR_DELETED_NEVER ? INT64_MIN
                 : type->history_us            ? r.told_us
                 : type->expire_us             ? INT64_MIN
                                               : weir_trim_rule_whole_from_us(&t->rule);
    return err;
}

/* Of the times, newest first, those that no row of the vertex has, which are newest first, too. */
static size_t trim_drop_times_of_rows(const weir_gather *g, int64_t *times, size_t count) {
    size_t row = 0, kept = 0;
    while (row < g->count && g->of[row].list < WEIR_LIST_FEATURES)
        row++;
    for (size_t i = 0; i < count; i++) {
        while (row < g->count && g->of[row].list == WEIR_LIST_FEATURES && g->of[row].entry.time_us > times[i])
            row++;
        bool has = row < g->count && g->of[row].list == WEIR_LIST_FEATURES && g->of[row].entry.time_us == times[i];
        if (!has) times[kept++] = times[i];
    }
    return kept;
}

/* The puts that have lost their records, behind all other lists. */
static weir_err trim_keep_puts(weir_trimmer *t, weir_gather *g, const weir_schema_vertex *type, trim_reach r) {
    int64_t until_us;
    size_t young = 0, count = 0;
    if (t->time_count == 0) return WEIR_OK;
    weir_err err = trim_thins_until(t, g->vertex, type, r, &until_us);
    if (err) return err;
    qsort(t->times, t->time_count, sizeof *t->times, trim_newest_first);
    for (size_t i = 0; i < t->time_count; i++)
        if (count == 0 || t->times[count - 1] != t->times[i]) t->times[count++] = t->times[i];
    while (young < count && (until_us == INT64_MIN || t->times[young] > until_us))
        young++;
    count = young + trim_thin_out(t->times + young, count - young, type->expire_us);
    count = trim_drop_times_of_rows(g, t->times, count);
    WEIR_ASSERT(g->count + count <= g->capacity); /* each put stands for a record that has gone, or more */
    for (size_t i = 0; i < count; i++)
        g->of[g->count++] = (weir_gathered){WEIR_LIST_PUTS, {.time_us = t->times[i]}};
    return WEIR_OK;
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static weir_err trim_list(weir_trimmer *t, trim_part *p, uint32_t type, trim_reach r, bool forgotten) {
    weir_list list = p->gather->of[p->begin].list;
    weir_err err = WEIR_OK;
    if (trim_is_of_edges(t, list)) return trim_edges(t, p);
    if (list == WEIR_LIST_FEATURES) return trim_rows(t, p, type, r, forgotten);
    if (WEIR_LIST_KIND(list) == WEIR_LIST_KIND_LABEL) return trim_labels(t, p, r, forgotten);
    for (size_t i = p->begin; !err && i < p->end; i++) {
        if (list == WEIR_LIST_PUTS) err = trim_note_put(t, p->gather->of[i].entry.time_us);
        if (list != WEIR_LIST_PUTS) trim_keep(p, i);
    }
    return err;
}

/* Nothing is left of a vertex but that it was there once, in a life that has ended before anybody's time. A put that
 * is still to come has another, and brings its name: those that rely on this one are older than anybody's time, too.
 * The put that named it last may be newer than the name that is stored. */
static weir_err trim_life_is_over(weir_trimmer *t, const weir_gather *g, const weir_schema_vertex *type, trim_reach r,
                                  bool *overp) {
    int64_t own_us, renew_us = weir_trim_rule_renew_us(type), relied_us;
    *overp = false;
    if (r.told_us == INT64_MIN || !renew_us) return WEIR_OK;
    if (__builtin_sub_overflow(r.told_us, renew_us, &relied_us)) return WEIR_OK;
    if (g->named && (g->name.time_us > relied_us || !trim_ended_by(g, relied_us))) return WEIR_OK;
    weir_err err = trim_deleted_us(t, g->vertex, r.told_us, &own_us);
    *overp = !err && trim_ended_by(g, own_us > r.gone_us ? own_us : r.gone_us);
    return err;
}

/* Of a source's vertex, which has nothing else. */
static void trim_notes(const weir_trimmer *t, weir_gather *g) {
    size_t kept = 0;
    while (kept < g->count && g->of[kept].list == WEIR_LIST_EVENTS &&
           g->of[0].entry.time_us - g->of[kept].entry.time_us <= t->rule.event_window)
        kept++;
    if (g->count && g->of[0].list == WEIR_LIST_EVENTS) g->count = kept;
}

weir_err weir_trimmer_vertex(weir_trimmer *trimmer, weir_gather *gather) {
    uint32_t type = gather->named ? gather->name.vertex_type : NO_TYPE;
    bool over;
    for (size_t i = 0; i < gather->count && type == NO_TYPE; i++)
        type = trim_type_by_list(trimmer, &gather->of[i]);
    trim_notes(trimmer, gather);
    if (type >= weir_schema_vertex_count(trimmer->rule.schema)) return WEIR_OK; /* a source, or bare puts */
    const weir_schema_vertex *vertex = weir_schema_vertex_at(trimmer->rule.schema, type);
    const trim_reach r = trim_reach_of(trimmer->rule.now_us, vertex->history_us, vertex->expire_us);
    bool forgotten = trim_ended_by(gather, r.gone_us);
    trim_part p = {.gather = gather};
    trimmer->time_count = 0;
    weir_err err = trim_life_is_over(trimmer, gather, vertex, r, &over);
    for (; !err && p.begin < gather->count; p.begin = p.end) {
        for (p.end = p.begin; p.end < gather->count && gather->of[p.end].list == gather->of[p.begin].list; p.end++) {
        }
        err = trim_list(trimmer, &p, type, r, forgotten);
    }
    if (err) return err;
    WEIR_ASSERT(p.kept <= gather->count && p.begin == gather->count);
    gather->count = p.kept;
    if (over && p.kept == 0) {
        gather->named = false;
        return WEIR_OK;
    }
    return trim_keep_puts(trimmer, gather, vertex, r);
}

int64_t weir_trim_rule_renew_us(const weir_schema_vertex *type) {
    if (!type->history_us) return 0;
    return type->expire_us ? type->expire_us / 2 + 1 : type->history_us;
}

weir_err weir_trimmer_gone_us(weir_trimmer *trimmer, weir_vertex vertex, weir_list list, int64_t *gone_usp) {
    const weir_gathered any = {.list = list};
    int64_t until_us;
    *gone_usp = INT64_MIN;
    if (!trim_is_of_edges(trimmer, list)) return WEIR_OK;
    const weir_schema_vertex *type = weir_schema_vertex_at(trimmer->rule.schema, trim_type_by_list(trimmer, &any));
    const trim_reach r = trim_reach_of(trimmer->rule.now_us, type->history_us, type->expire_us);
    weir_err err = trim_thins_until(trimmer, vertex, type, r, &until_us);
    if (err || type->expire_us || until_us == INT64_MIN) return err;
    int64_t gone_us = trim_reach_of_list(trimmer, list).gone_us;
    *gone_usp = gone_us < until_us ? gone_us : until_us;
    return WEIR_OK;
}

/* --- how often it is worth it ----------------------------------------------------------------------------------- */

/* The least histories and the least time that anything is kept, of all that has a history; INT64_MAX: nothing has. */
typedef struct trim_least {
    int64_t history_us, kept_us;
} trim_least;

static void trim_least_take(trim_least *l, int64_t history_us, int64_t expire_us) {
    int64_t kept_us;
    if (!history_us) return;
    if (__builtin_add_overflow(history_us, expire_us, &kept_us)) kept_us = INT64_MAX;
    if (history_us < l->history_us) l->history_us = history_us;
    if (kept_us < l->kept_us) l->kept_us = kept_us;
}

static trim_least trim_least_of(const weir_schema *schema) {
    trim_least l = {INT64_MAX, INT64_MAX};
    for (uint32_t i = 0; i < weir_schema_relation_count(schema); i++)
        trim_least_take(&l, weir_schema_relation_at(schema, i)->history_us,
                        weir_schema_relation_at(schema, i)->expire_us);
    for (uint32_t i = 0; i < weir_schema_vertex_count(schema); i++)
        trim_least_take(&l, weir_schema_vertex_at(schema, i)->history_us, weir_schema_vertex_at(schema, i)->expire_us);
    return l;
}

/* After a share of what is kept: by then so much more may go, if the stream is even. */
int64_t weir_trim_rule_next_us(const weir_schema *schema, int64_t trimmed_us) {
    const trim_least l = trim_least_of(schema);
    int64_t next_us;
    if (l.kept_us == INT64_MAX) return INT64_MAX;
    return __builtin_add_overflow(trimmed_us, l.kept_us / NEXT_SHARES + 1, &next_us) ? INT64_MAX : next_us;
}

int64_t weir_trim_rule_whole_from_us(const weir_trim_rule *rule) {
    int64_t from_us;
    return __builtin_sub_overflow(rule->now_us, trim_least_of(rule->schema).history_us, &from_us) ? INT64_MIN : from_us;
}
