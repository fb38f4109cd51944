/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - what a reader sees: active delta, frozen delta and cold store merged, deletions and expiry applied.
 *
 * Each of the three gives its newest entries in one order; the merge takes the first of the three heads, equal records
 * once (the newer source's). How many entries must be taken for `limit` visible ones is not known before the deletions
 * are met, and a deletion may sit in another source than what it hides (an edge that comes late, after its deletion was
 * sealed). Most lists have none: `limit` of each are taken first. When that was not enough, the read is done again with
 * a few more, which a window that was filled has, and then with many. When even those were not, the list begins with a
 * long run of deletions. Then the deltas are taken whole, because what comes while they are read must not be seen in
 * part (S2), and the cold store is read page by page by one cursor, which sees one moment. So a read costs what it
 * passes, and a few bytes for each deletion that it has met.
 */
#include <string.h>

#include <weir/base/alloc.h>

#include "cold.h"
#include "hidden.h"
#include "shard.h"

#define SPARE_ENTRIES 8u    /* in place of some that are hidden */
#define WIDE_MAX      8192u /* entries that a window is made for: more is a dump, and takes the place of too many */
#define SOURCES       3u    /* active, frozen, cold: newest first */
#define NEAR_ENTRIES  48u /* of each, where few are asked for: what is written anew for each read stays in the cache */
#define COLD          2u
#define CLOCK_STEPS   1024u

#define PAGE_ENTRIES     512u /* at first */
#define PAGE_ENTRIES_MAX 16384u
#define PAGE_ROWS_MAX    (256u << 20) /* of the first page, of rows as long as a schema can have, a half */

typedef struct source {
    weir_entry *entries;
    size_t count, next;
    bool complete;
    weir_engine_cursor *cursor; /* where the cold store is read page by page … */
    weir_arena *rows;           /* … those of the page                         */
    size_t page;                /* entries that there is room for              */
} source;

static weir_err arena_full(const weir_arena *arena) {
    return WEIR_ARENA_ERR(arena, "the read needs more memory than its request may use; ask for fewer neighbours");
}

/* --- what a read may cost ----------------------------------------------------------------------------------------- */

weir_err weir_shard_spend(weir_graph_budget *budget, uint64_t steps) {
    if (!budget) return WEIR_OK;
    if (steps > budget->steps) {
        budget->exceeded = true;
        return WEIR_ERR(WEIR_EBUSY, "the read needs more steps than it may take; ask for fewer neighbours");
    }
    budget->steps -= steps;
    budget->unlooked += steps;
    if (!budget->clock || budget->unlooked < CLOCK_STEPS) return WEIR_OK;
    budget->unlooked = 0;
    if (weir_clock_mono_us(budget->clock) < budget->until_us) return WEIR_OK;
    return WEIR_ERR(WEIR_ETIMEOUT, "the read has taken as long as a request may (http.request_timeout); ask for fewer "
                                   "neighbours, or of an earlier time");
}

weir_err weir_graph_budget_covers(weir_graph_budget *budget, uint64_t steps) {
    weir_graph_budget tried = *budget;
    weir_err err = weir_shard_spend(&tried, steps);
    budget->exceeded = tried.exceeded;
    return err;
}

/* --- the cold source -----------------------------------------------------------------------------------------------
 * */

static weir_err scan_cold(weir_shard *shard, const weir_list_query *query, int64_t before_us, size_t capacity,
                          weir_arena *arena, source *s) {
    const weir_cold_query cold = {query->vertex, query->list, before_us, .budget = query->budget};
    weir_engine_cursor *cursor;
    bool once = WEIR_LIST_KIND(query->list) == WEIR_LIST_KIND_EVENTS; /* must not drive out what requests ask for */
    weir_err err = weir_engine_cursor_open(shard->engine, once ? WEIR_ENGINE_SCAN : WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    err = weir_cold_list(cursor, &cold, s->entries, capacity, arena, &s->count, &s->complete);
    weir_engine_cursor_close(cursor);
    s->next = 0;
    return err;
}

/* Each page begins anew with the bundles that reach into it, so they become larger. */
static weir_err widen_page(source *s) {
    size_t page = s->page ? s->page * 2 : PAGE_ENTRIES;
    if (page > PAGE_ENTRIES_MAX || weir_arena_used(s->rows) > PAGE_ROWS_MAX / 256) return WEIR_OK;
    weir_entry *wider = weir_realloc_array(s->entries, page, sizeof *wider);
    if (!wider) return WEIR_ERR(WEIR_ENOMEM, "no memory to read a list of deletions");
    s->entries = wider;
    s->page = page;
    return WEIR_OK;
}

/* The next page, where the cold store is read page by page and the last entry of one was taken. */
static weir_err step_cold(const weir_list_query *query, source *s) {
    if (!s->cursor) return WEIR_OK;
    weir_err err = weir_shard_spend(query->budget, 1);
    if (err || s->complete || s->next < s->count) return err;
    weir_cold_query cold = {query->vertex, query->list, query->before_us, .budget = query->budget};
    const weir_entry last = s->count ? s->entries[s->count - 1] : (weir_entry){0};
    if (s->count) cold.after = &last;
    err = widen_page(s);
    if (err) return err;
    for (s->next = 0;; s->page /= 2) {
        weir_arena_reset(s->rows);
        err = weir_cold_list(s->cursor, &cold, s->entries, s->page, s->rows, &s->count, &s->complete);
        if (!weir_err_is(err, WEIR_ELIMIT) || s->page == 1) return err; /* else its rows are long */
    }
}

static void *allocate_row(void *arena, size_t size) {
    return weir_arena_alloc_aligned(arena, 1, size);
}

static bool collect_cached(weir_shard *shard, const weir_list_query *query, size_t capacity, weir_arena *arena,
                           source *s) {
    s->next = 0;
    return weir_cache_collect(shard->cache, query->vertex, query->list, query->before_us, s->entries, capacity,
                              allocate_row, arena, &s->count, &s->complete);
}

/* Somewhat more than was asked for: who asks again may ask for more, or as of a little earlier. To fill a window is to
 * read all of it from the cold store, so none is filled to its full width for a reader of ten. */
static size_t window_size(const weir_shard *shard, size_t capacity) {
    if (capacity > WIDE_MAX) return shard->window;
    if (capacity > shard->window) return capacity + capacity / 4;
    return capacity * 2 < shard->window ? capacity * 2 : shard->window;
}

/* Scans from the newest on, so that the next reader finds a window; then answers from that, if it reaches. */
static weir_err collect_cold(weir_shard *shard, const weir_list_query *query, size_t capacity, weir_arena *arena,
                             source *s) {
    size_t size = window_size(shard, capacity + SPARE_ENTRIES); /* for who has to ask for so many more */
    bool by_trims = query->list == WEIR_LIST_PUTS; /* a window would not know of those that a trim has left */
    if (by_trims || WEIR_LIST_KIND(query->list) == WEIR_LIST_KIND_EVENTS) /* or read once, at a start */
        return scan_cold(shard, query, query->before_us, capacity, arena, s);
    if (collect_cached(shard, query, capacity, arena, s)) return WEIR_OK;
    if (s->count >= size && s->count >= shard->window) /* far in the past */
        return scan_cold(shard, query, query->before_us, capacity, arena, s);
    if (s->count < shard->window && s->count * 2 > size) /* one that does not reach becomes wider */
        size = s->count * 2 < shard->window ? s->count * 2 : shard->window;
    source window = {.entries = weir_arena_alloc(arena, size * sizeof(weir_entry))};
    if (!window.entries) return arena_full(arena);
    uint64_t epoch = weir_cache_epoch(shard->cache);
    weir_err err = scan_cold(shard, query, INT64_MAX, size, arena, &window);
    if (err) return err;
    weir_cache_fill(shard->cache, epoch, query->vertex, query->list, window.entries, window.count, window.complete);
    size_t newer = 0;
    while (newer < window.count && window.entries[newer].time_us >= query->before_us)
        newer++;
    if (!window.complete && window.count - newer < capacity) {
        return scan_cold(shard, query, query->before_us, capacity, arena, s);
    }
    s->count = window.count - newer < capacity ? window.count - newer : capacity;
    s->next = 0;
    s->complete = window.complete && newer + s->count == window.count;
    memcpy(s->entries, window.entries + newer, s->count * sizeof(weir_entry));
    return WEIR_OK;
}

static weir_err copy_row(weir_arena *arena, weir_entry *entry) {
    if (entry->row_length == 0) return WEIR_OK;
    void *copy = weir_arena_alloc_aligned(arena, 1, entry->row_length);
    if (!copy) return arena_full(arena);
    entry->row = memcpy(copy, entry->row, entry->row_length);
    return WEIR_OK;
}

/* --- the merge -----------------------------------------------------------------------------------------------------
 * */

/* Whether the other end of an edge may have been deleted: then what is known of those ends is fetched side by side. */
static bool ends_may_be_deleted(const weir_shard *shard, const weir_list_query *query, const source *sources) {
    const weir_deleted_filter *filter = weir_deleted_filter_of(shard->deleted);
    if (query->hidden_too || WEIR_LIST_KIND(query->list) != WEIR_LIST_KIND_EDGES) return false;
    if (!weir_deleted_filter_any(filter)) return false;
    for (size_t i = 0; i < SOURCES; i++)
        for (size_t at = 0; at < sources[i].count && at < NEAR_ENTRIES; at++)
            weir_deleted_filter_ahead(filter, sources[i].entries[at].neighbor);
    return true;
}

static weir_err find_whether_hidden(weir_deleted_look *look, const weir_list_query *query, weir_hidden *h,
                                    const weir_entry *e, bool end_may_be, bool *hiddenp) {
    int64_t deleted_us;
    *hiddenp = !query->hidden_too && weir_hidden_has(h, e);
    if (*hiddenp || !end_may_be) return WEIR_OK;
    weir_err err = weir_deleted_time(look, e->neighbor, query->before_us, &deleted_us);
    *hiddenp = e->time_us <= deleted_us;
    return err;
}

static const weir_entry *next_of(const source *s) {
    return s->next < s->count ? &s->entries[s->next] : NULL;
}

/* The first that has anything of the list: mostly the cold store. */
static size_t first_source(const source *sources) {
    size_t first = 0;
    while (first < COLD && sources[first].count == 0 && sources[first].complete)
        first++;
    return first;
}

/* The next record in order, each once. NULL at the end; *shortp when a source that has more was read to its end. */
static const weir_entry *merge_next(source *sources, size_t first, bool *shortp) {
    const weir_entry *best = NULL;
    for (size_t i = first; i < SOURCES; i++) {
        const weir_entry *e = next_of(&sources[i]);
        if (!e && !sources[i].complete) *shortp = true;
        if (e && (!best || weir_entry_order(e, best) < 0)) best = e;
    }
    if (*shortp || !best) return NULL;
    for (size_t i = first; i < SOURCES; i++) {
        const weir_entry *e = next_of(&sources[i]);
        if (e && (e == best || weir_entry_order(e, best) == 0)) sources[i].next++;
    }
    return best;
}

typedef struct merged {
    weir_entry *entries;
    uint32_t count;
    bool is_short;
} merged;

static weir_err merge(weir_shard *shard, const weir_list_query *query, source *sources, weir_arena *arena,
                      merged *out) {
    weir_deleted_look look = {shard->deleted, query->budget, .beside = sources[COLD].cursor};
    const size_t first = first_source(sources);
    const bool ends_may_be = ends_may_be_deleted(shard, query, sources);
    int64_t own_deletion;
    weir_hidden h = {0};
    out->count = 0;
    out->is_short = false;
    weir_err err = weir_deleted_time(&look, query->vertex, query->before_us, &own_deletion);
    if (!err) err = step_cold(query, &sources[COLD]);
    int64_t newer_than = query->newer_than_us > own_deletion ? query->newer_than_us : own_deletion;
    while (!err && out->count < query->limit) {
        uint64_t steps = h.steps;
        const weir_entry *e = merge_next(sources, first, &out->is_short);
        if (!e || (e->time_us <= newer_than && newer_than != INT64_MIN)) break; /* all that follow are older */
        bool passed = e->deletion;
        err = e->deletion ? weir_hidden_add(&h, e, arena)
                          : find_whether_hidden(&look, query, &h, e, ends_may_be, &passed);
        if (!err && !passed) {
            out->entries[out->count] = *e;
            if (sources[COLD].cursor) err = copy_row(arena, &out->entries[out->count]);
            if (!err) out->count++;
        }
        if (!err) err = weir_shard_spend(query->budget, h.steps - steps);
        if (!err) err = step_cold(query, &sources[COLD]);
    }
    weir_deleted_look_end(&look);
    return err;
}

/* Rows of deltas live as long as our references: the answer gets its own. */
static weir_err copy_rows(merged *out, weir_arena *arena) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < out->count; i++)
        bytes += out->entries[i].row_length;
    if (bytes == 0) return WEIR_OK;
    uint8_t *rows = weir_arena_alloc_aligned(arena, 1, bytes);
    if (!rows) return arena_full(arena);
    for (uint32_t i = 0; i < out->count; i++) {
        weir_entry *e = &out->entries[i];
        if (e->row_length == 0) continue;
        e->row = memcpy(rows, e->row, e->row_length);
        rows += e->row_length;
    }
    return WEIR_OK;
}

static weir_err list_once(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2], size_t capacity,
                          weir_arena *arena, merged *out) {
    source sources[SOURCES] = {0};
    weir_entry near[SOURCES * NEAR_ENTRIES];
    for (size_t i = 0; i < SOURCES; i++) {
        sources[i].complete = true;
        sources[i].entries =
            capacity <= NEAR_ENTRIES ? &near[i * NEAR_ENTRIES] : weir_arena_alloc(arena, capacity * sizeof(weir_entry));
        if (!sources[i].entries) return arena_full(arena);
    }
    for (size_t i = 0; i < COLD; i++) {
        if (!deltas[i]) continue;
        sources[i].count = weir_delta_collect(deltas[i], query->vertex, query->list, query->before_us,
                                              sources[i].entries, capacity, &sources[i].complete);
    }
    weir_err err = collect_cold(shard, query, capacity, arena, &sources[COLD]);
    if (!err) err = weir_shard_spend(query->budget, sources[0].count + sources[1].count + sources[COLD].count);
    if (!err) err = merge(shard, query, sources, arena, out);
    return err;
}

/* All that a delta has of the list, at one moment: more may come while room is made for it. */
static weir_err collect_whole(weir_delta *delta, const weir_list_query *query, weir_arena *arena, source *s) {
    weir_err err = WEIR_OK;
    s->complete = !delta;
    while (!err && !s->complete) {
        size_t capacity = weir_delta_count(delta, query->vertex, query->list, query->before_us) + SPARE_ENTRIES;
        err = weir_shard_spend(query->budget, capacity);
        if (err) return err;
        s->entries = weir_arena_alloc(arena, capacity * sizeof(weir_entry));
        if (!s->entries) return arena_full(arena);
        s->count =
            weir_delta_collect(delta, query->vertex, query->list, query->before_us, s->entries, capacity, &s->complete);
    }
    return err;
}

/* Through a list whose newest entries are mostly hidden: as far as it takes, and never again from its beginning. */
static weir_err list_long(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2],
                          weir_arena *arena, merged *out) {
    source sources[SOURCES] = {0}, *cold = &sources[COLD];
    weir_err err = collect_whole(deltas[0], query, arena, &sources[0]);
    if (!err) err = collect_whole(deltas[1], query, arena, &sources[1]);
    if (!err) err = weir_arena_open(PAGE_ROWS_MAX, &cold->rows);
    if (!err) err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_POINT, &cold->cursor);
    if (!err) err = merge(shard, query, sources, arena, out);
    weir_engine_cursor_close(cold->cursor);
    weir_arena_close(cold->rows);
    weir_free(cold->entries);
    return err;
}

weir_err weir_shard_list_with(weir_shard *shard, weir_delta *const deltas[2], const weir_list_query *query,
                              weir_arena *arena, const weir_entry **entriesp, uint32_t *countp) {
    merged out = {.entries = query->room ? query->room : weir_arena_alloc(arena, query->limit * sizeof(weir_entry))};
    *entriesp = NULL;
    *countp = 0;
    if (!out.entries) return arena_full(arena);
    size_t capacity = query->limit;
    weir_err err = list_once(shard, query, deltas, capacity, arena, &out);
    while (!err && out.is_short) {
        capacity = capacity == query->limit ? capacity + SPARE_ENTRIES : capacity * 4;
        if (capacity > WIDE_MAX) {
            err = list_long(shard, query, deltas, arena, &out);
        } else {
            err = weir_shard_spend(query->budget, capacity); /* before it is begun, so that little is done in vain */
            if (!err) err = list_once(shard, query, deltas, capacity, arena, &out);
        }
    }
    if (!err) err = copy_rows(&out, arena);
    if (err) return err;
    *entriesp = out.entries;
    *countp = out.count;
    return WEIR_OK;
}

weir_err weir_shard_list(weir_shard *shard, const weir_list_query *query, weir_arena *arena,
                         const weir_entry **entriesp, uint32_t *countp) {
    weir_delta *deltas[2];
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    weir_err err = weir_shard_list_with(shard, deltas, query, arena, entriesp, countp);
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}

/* --- the other end of a list ------------------------------------------------------------------------------------- */

static weir_err oldest_cold(weir_shard *shard, const weir_list_query *query, bool *foundp, int64_t *time_usp) {
    const weir_cold_query cold = {query->vertex, query->list, query->before_us, .budget = query->budget};
    weir_engine_cursor *cursor;
    *foundp = false;
    weir_err err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    err = weir_shard_spend(query->budget, WEIR_GRAPH_SEEK_STEPS);
    if (!err) err = weir_cold_oldest(cursor, &cold, query->newer_than_us, foundp, time_usp);
    weir_engine_cursor_close(cursor);
    return err;
}

weir_err weir_shard_oldest(weir_shard *shard, const weir_list_query *query, bool *foundp, int64_t *time_usp) {
    weir_delta *deltas[2];
    int64_t time_us;
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    weir_err err = oldest_cold(shard, query, foundp, time_usp);
    for (size_t i = 0; i < 2; i++) {
        bool has = deltas[i] && weir_delta_oldest(deltas[i], query->vertex, query->list, query->newer_than_us,
                                                  query->before_us, &time_us);
        if (has && (!*foundp || time_us < *time_usp)) *time_usp = time_us;
        *foundp = *foundp || has;
        weir_delta_release(deltas[i]);
    }
    return err;
}

/* --- names ---------------------------------------------------------------------------------------------------------
 * */

static weir_err name_copy(const weir_name *from, weir_arena *arena, weir_name *namep) {
    *namep = *from;
    char *key = weir_arena_alloc_aligned(arena, 1, from->key_length + 1u); /* it may have a 0 in it */
    if (!key) return arena_full(arena);
    key[from->key_length] = 0;
    namep->key = memcpy(key, from->key, from->key_length);
    return WEIR_OK;
}

static weir_err name_cold(weir_shard *shard, weir_vertex vertex, weir_arena *arena, weir_name *namep, bool *foundp) {
    weir_engine_cursor *cursor;
    weir_name found;
    weir_err err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    err = weir_cold_name(cursor, vertex, &found, foundp);
    if (!err && *foundp) err = name_copy(&found, arena, namep);
    weir_engine_cursor_close(cursor);
    return err;
}

/* A vertex has one name, whoever carried it: the deltas are asked first, because that is cheap. */
weir_err weir_shard_name(weir_shard *shard, weir_vertex vertex, weir_graph_budget *budget, weir_arena *arena,
                         weir_name *namep, bool *foundp) {
    weir_delta *deltas[2];
    weir_name found;
    *foundp = false;
    weir_err err = weir_shard_spend(budget, WEIR_GRAPH_SEEK_STEPS);
    if (err) return err;
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    for (size_t i = 0; i < 2 && !*foundp; i++)
        *foundp = deltas[i] && weir_delta_name(deltas[i], vertex, &found);
    if (*foundp) {
        err = name_copy(&found, arena, namep);
    } else {
        err = name_cold(shard, vertex, arena, namep, foundp);
    }
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}
