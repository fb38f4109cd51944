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
 * part (GRAPH-S2), and the cold store is read page by page by one cursor, which sees one moment. So a read costs what
 * it passes, and a few bytes for each deletion that it has met. What the cold store's run has left is kept for the next
 * reader (remains.h).
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cold.h"
#include "hidden.h"
#include "remains.h"
#include "shard.h"

#define SPARE_ENTRIES 8u    /* in place of some that are hidden */
#define WIDE_MAX      8192u /* entries that a window is made for: more is a dump, and takes the place of too many */
#define SOURCES       3u    /* active, frozen, cold: newest first */
#define NEAR_ENTRIES  48u /* of each, where few are asked for: what is written anew for each read stays in the cache */
#define COLD          2u
#define LACKS_COLD    (1u << COLD)
#define FURTHER_MAX   1024u /* entries that are passed for the next reader alone */
#define CLOCK_STEPS   1024u

#define PAGE_ENTRIES     512u /* at first */
#define PAGE_ENTRIES_MAX 16384u
#define PAGE_ROWS_MAX    (256u << 20) /* of the first page, of rows as long as a schema can have, a half */

typedef struct read_source {
    weir_entry *entries;
    size_t count, next;
    bool complete;
    weir_engine_cursor *cursor; /* where the cold store is read page by page … */
    weir_arena *rows;           /* … those of the page                         */
    size_t page;                /* entries that there is room for              */
} read_source;

static weir_err read_arena_full(const weir_arena *arena) {
    return WEIR_ARENA_ERR(arena, "the read needs more memory than its request may use; ask for fewer neighbours");
}

/* --- what a read may cost --------------------------------------------------------------------------------------- */

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

/* --- the cold source -------------------------------------------------------------------------------------------- */

static weir_err read_scan_cold(weir_shard *shard, const weir_list_query *query, int64_t before_us, size_t capacity,
                               weir_arena *arena, read_source *s) {
    const weir_cold_query cold = {query->vertex, before_us, .budget = query->budget};
    weir_cold_page page = {.list = query->list,
                           .capacity = capacity,
                           .bounded = query->newer_than_us != INT64_MIN,
                           .newer_than_us = query->newer_than_us,
                           .entries = s->entries,
                           .room = capacity,
                           .arena = arena};
    weir_engine_cursor *cursor = NULL;
    weir_err err;
    if (WEIR_LIST_KIND(query->list) != WEIR_LIST_KIND_EVENTS) {
        err = weir_cold_newest(shard->engine, &cold, &page, 1);
    } else {
        err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_SCAN, &cursor); /* drives nothing out of caches */
        if (!err) err = weir_cold_list(cursor, &cold, &page);
        weir_engine_cursor_close(cursor);
    }
    s->next = 0;
    s->count = page.count;
    s->complete = !page.more;
    return err;
}

/* The next page, where the cold store is read page by page and the last entry of one was taken. Each begins anew with
 * the bundles that reach into it, so pages become larger. */
static weir_err read_step_cold(const weir_list_query *query, read_source *s) {
    if (!s->cursor) return WEIR_OK;
    weir_err err = weir_shard_spend(query->budget, 1);
    if (err || s->complete || s->next < s->count) return err;
    weir_cold_query cold = {query->vertex, query->before_us, .budget = query->budget};
    WEIR_ASSERT(s->next == s->count && s->count <= s->page);
    const weir_entry last = s->count ? s->entries[s->count - 1] : (weir_entry){0};
    if (s->count) cold.after = &last;
    size_t page = s->page ? s->page * 2 : PAGE_ENTRIES;
    if (page <= PAGE_ENTRIES_MAX && weir_arena_used(s->rows) <= PAGE_ROWS_MAX / 256) {
        weir_entry *wider = weir_realloc_array(s->entries, page, sizeof *wider);
        if (!wider) return WEIR_NOMEM("while reading a list of deletions");
        s->entries = wider;
        s->page = page;
    }
    for (s->next = 0;; s->page /= 2) {
        weir_cold_page next = {
            .list = query->list, .capacity = s->page, .entries = s->entries, .room = s->page, .arena = s->rows};
        weir_arena_reset(s->rows);
        err = weir_cold_list(s->cursor, &cold, &next);
        s->count = next.count;
        s->complete = !next.more;
        if (!weir_err_is(err, WEIR_ELIMIT) || s->page == 1) return err; /* else its rows are long */
    }
}

static void *read_allocate_row(void *arena, size_t size) {
    return weir_arena_alloc_aligned(arena, 1, size);
}

/* To fill a window is to read all of it from the cold store, out of one more file for every few entries: so none is
 * filled to its full width for a reader of ten. A reader of very many may ask as of a little earlier the next time. */
static size_t read_window_size(const weir_shard *shard, size_t capacity) {
    if (capacity > WIDE_MAX) return shard->window;
    return capacity > shard->window ? capacity + capacity / 4 : capacity;
}

/* So many entries of any age, and more up to a capacity as long as they are newer than that. */
typedef struct read_want {
    size_t least, capacity;
    int64_t newer_than_us;
} read_want;

static read_want read_want_of(const weir_shard *shard, const weir_list_query *query, const weir_graph_list *beside) {
    read_want w = {.least = beside->least, .capacity = read_window_size(shard, beside->limit + SPARE_ENTRIES)};
    if (__builtin_sub_overflow(query->before_us, beside->window_us, &w.newer_than_us) || w.newer_than_us == INT64_MIN)
        w.least = w.capacity;
    else
        w.newer_than_us--;
    if (w.least > w.capacity) w.least = w.capacity;
    return w;
}

/* What both want. */
static read_want read_want_both(read_want a, read_want b) {
    return (read_want){.least = a.least > b.least ? a.least : b.least,
                       .capacity = a.capacity > b.capacity ? a.capacity : b.capacity,
                       .newer_than_us = a.newer_than_us < b.newer_than_us ? a.newer_than_us : b.newer_than_us};
}

static weir_cold_page read_page_of(weir_list list, int64_t before_us, read_want want, weir_arena *arena) {
    return (weir_cold_page){.list = list,
                            .capacity = want.capacity,
                            .bounded = true,
                            .least = want.least,
                            .least_before_us = before_us,
                            .newer_than_us = want.newer_than_us,
                            .arena = arena};
}

/* From the newest on, so that the next reader finds a window: so many entries of the list that is asked for, and more
 * up to a size where they cost no further file; and those lists beside it that have no window yet, because to look for
 * a vertex costs more than to read what it has. These are in the scratch memory of the ask, which is theirs until the
 * next vertex. */
static weir_err read_fill_windows(weir_shard *shard, const weir_list_query *query, size_t least, size_t size,
                                  weir_arena *arena, weir_cold_page pages[1 + WEIR_GRAPH_BESIDE_MAX],
                                  const weir_cold_page **windowp) {
    const weir_cold_query newest = {query->vertex, INT64_MAX, .budget = query->budget};
    uint64_t epoch = weir_cache_epoch(shard->cache);
    size_t count = 0, own = SIZE_MAX;
    const bool all_ages = query->newer_than_us == INT64_MIN;
    const read_want asked = {all_ages ? least : 0, size, all_ages ? INT64_MAX : query->newer_than_us};
    if (query->beside_count) weir_arena_reset(query->scratch);
    for (size_t i = 0; i <= query->beside_count; i++) {
        const weir_graph_list *beside = i < query->beside_count ? &query->beside[i] : NULL;
        read_want w = beside ? read_want_of(shard, query, beside) : asked;
        if (own == SIZE_MAX && (!beside || beside->list >= query->list)) {
            read_want both = beside && beside->list == query->list ? read_want_both(asked, w) : asked;
            own = count;
            pages[count++] = read_page_of(query->list, query->before_us, both, arena);
        }
        if (!beside || beside->list == query->list || weir_cache_has(shard->cache, query->vertex, beside->list))
            continue;
        WEIR_ASSERT(WEIR_LIST_KIND(beside->list) == WEIR_LIST_KIND_EDGES || beside->list == WEIR_LIST_FEATURES);
        pages[count] = read_page_of(beside->list, query->before_us, w, query->scratch);
        pages[count++].if_it_fits = true;
    }
    WEIR_ASSERT(own < count && pages[own].list == query->list);
    weir_err err = weir_cold_newest(shard->engine, &newest, pages, count);
    for (size_t i = 0; !err && i < count; i++)
        if (!pages[i].lost)
            weir_cache_fill(shard->cache, epoch, query->vertex, pages[i].list, pages[i].entries, pages[i].count,
                            !pages[i].more);
    *windowp = &pages[own];
    return err;
}

/* Scans from the newest on, so that the next reader finds a window; then answers from that, if it reaches. */
static weir_err read_collect_cold(weir_shard *shard, const weir_list_query *query, size_t capacity, weir_arena *arena,
                                  read_source *s) {
    size_t size = read_window_size(shard, capacity + SPARE_ENTRIES); /* for a reader that has to ask for so many more */
    bool by_trims = query->list == WEIR_LIST_PUTS; /* a window would not know of those that a trim has left */
    if (by_trims || WEIR_LIST_KIND(query->list) == WEIR_LIST_KIND_EVENTS) /* or read once, at a start */
        return read_scan_cold(shard, query, query->before_us, capacity, arena, s);
    s->next = 0;
    const weir_cache_span span = {query->before_us, query->newer_than_us};
    if (weir_cache_collect(shard->cache, query->vertex, query->list, span, s->entries, capacity, read_allocate_row,
                           arena, &s->count, &s->complete))
        return WEIR_OK;
    if (s->count >= size && s->count >= shard->window) /* far in the past */
        return read_scan_cold(shard, query, query->before_us, capacity, arena, s);
    if (s->count < shard->window && s->count * 2 > size) /* one that does not reach becomes wider */
        size = s->count * 2 < shard->window ? s->count * 2 : shard->window;
    weir_cold_page pages[1 + WEIR_GRAPH_BESIDE_MAX];
    const weir_cold_page *window;
    weir_err err = read_fill_windows(shard, query, capacity, size, arena, pages, &window);
    if (err) return err;
    size_t newer = 0;
    while (newer < window->count && window->entries[newer].time_us >= query->before_us)
        newer++;
    bool ends = window->count > newer && query->newer_than_us != INT64_MIN &&
                window->entries[window->count - 1].time_us <= query->newer_than_us;
    if (window->more && !ends && window->count - newer < capacity)
        return read_scan_cold(shard, query, query->before_us, capacity, arena, s);
    s->count = window->count - newer < capacity ? window->count - newer : capacity;
    s->next = 0;
    s->complete = !window->more && newer + s->count == window->count;
    if (s->count) memcpy(s->entries, window->entries + newer, s->count * sizeof(weir_entry));
    return WEIR_OK;
}

/* What remains of the list, instead of its window. Not where a delta has an edge so old that a deletion which is not
 * kept may hide it. */
static bool read_collect_remains(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2],
                                 size_t capacity, weir_arena *arena, read_source *s, bool *latep) {
    weir_remains_span span;
    int64_t oldest_us;
    if (query->hidden_too ||
        !weir_remains_collect(shard->remains, query->vertex, query->list, query->before_us, query->newer_than_us,
                              s->entries, capacity, read_allocate_row, arena, &s->count, &span))
        return false;
    if (s->count < query->limit && !span.complete) return false;
    const int64_t late_us = span.deletion_us < query->before_us ? span.deletion_us + 1 : query->before_us;
    for (size_t i = 0; i < COLD; i++) {
        bool has =
            deltas[i] && weir_delta_oldest(deltas[i], query->vertex, query->list, INT64_MIN, late_us, &oldest_us);
        *latep = *latep || has;
    }
    if (*latep) return false;
    s->next = 0;
    s->complete = span.complete;
    return true;
}

/* --- the merge -------------------------------------------------------------------------------------------------- */

/* Whether the other end of an edge may have been deleted: then what is known of those ends is fetched side by side. */
static bool read_ends_may_be_deleted(const weir_shard *shard, const weir_list_query *query,
                                     const read_source *sources) {
    const weir_deleted_filter *filter = weir_deleted_filter_of(shard->deleted);
    if (query->hidden_too || WEIR_LIST_KIND(query->list) != WEIR_LIST_KIND_EDGES) return false;
    if (!weir_deleted_filter_any(filter)) return false;
    for (size_t i = 0; i < SOURCES; i++)
        for (size_t at = 0; at < sources[i].count && at < NEAR_ENTRIES; at++)
            weir_deleted_filter_ahead(filter, sources[i].entries[at].neighbor);
    return true;
}

static const weir_entry *read_next_entry(const read_source *s) {
    return s->next < s->count ? &s->entries[s->next] : NULL;
}

/* The next record in order, each once; *coldp: the cold store, which is the last that is looked at, has it. NULL at the
 * end; *lackingp gets those sources that have more and were read to their end. */
static const weir_entry *read_merge_next(read_source *sources, size_t first, unsigned *lackingp, bool *coldp) {
    const weir_entry *best = NULL;
    for (size_t i = first; i < SOURCES; i++) {
        const weir_entry *e = read_next_entry(&sources[i]);
        if (!e && !sources[i].complete) *lackingp |= 1u << i;
        if (e && (!best || weir_entry_order(e, best) < 0)) best = e;
    }
    if (*lackingp || !best) return NULL;
    for (size_t i = first; i < SOURCES; i++) {
        const weir_entry *e = read_next_entry(&sources[i]);
        *coldp = e && (e == best || weir_entry_order(e, best) == 0);
        sources[i].next += *coldp;
    }
    return best;
}

typedef struct read_merged {
    weir_entry *entries; /* room for as many as are asked for; NULL: it is in the arena, once it is needed */
    bool as_edges;       /* edges are asked for …                                             */
    weir_edge *edges;    /* … and these are the answer; NULL: the entries are                    */
    uint32_t count;
    unsigned lacking;  /* sources of which more must be taken; 0: these are the entries */
    bool rows_are_own; /* they lie in the arena, none in a delta */
    /* Room for what the cold store's own deletions leave, for the next reader; NULL: nothing is kept. */
    weir_entry *kept;
    size_t kept_count;
    size_t kept_max; /* what comes behind so many is not kept */
    size_t kept_bytes;
    bool kept_all;
    bool late;           /* a delta has an edge that is too old for what is kept */
    int64_t deletion_us; /* of the newest deletion that was met in the cold store  */
    bool kept_by_edges;  /* only deletions of edges have left something out: for readers as of an earlier time, too */
} read_merged;

typedef struct read_merging {
    weir_list_query query;
    read_source *sources;
    size_t first; /* that has anything of the list: mostly the cold store */
    weir_deleted_look look;
    weir_hidden hidden;
    int64_t newer_than_us;
    bool ends_may_be; /* deleted */
    uint64_t passed;
    weir_arena *arena;
    read_merged *out;
} read_merging;

/* Whether deletions hide it, and whether those that the cold store has do without the deltas'. */
static weir_err read_merge_look(read_merging *m, const weir_entry *e, bool *hiddenp, bool *hidden_coldp) {
    *hiddenp = *hidden_coldp = e->deletion;
    if (e->deletion || m->query.hidden_too) return WEIR_OK;
    weir_hidden_by by = weir_hidden_find(&m->hidden, e);
    *hiddenp = by != WEIR_HIDDEN_BY_NONE;
    *hidden_coldp = by == WEIR_HIDDEN_BY_COLD;
    if (*hiddenp || !m->ends_may_be) return WEIR_OK;
    int64_t deleted_us;
    weir_err err = weir_deleted_time(&m->look, e->neighbor, m->query.before_us, &deleted_us);
    *hiddenp = *hidden_coldp = !err && e->time_us <= deleted_us;
    m->out->kept_by_edges = m->out->kept_by_edges && !*hiddenp;
    return err;
}

/* Pages go their own way, so their rows are copied. What finds no room for the next reader must not fail this one. */
static weir_err read_merge_take(read_merging *m, const weir_entry *e, bool told, bool kept) {
    read_merged *out = m->out;
    WEIR_ASSERT(!told || out->count < m->query.limit);
    if (!m->sources[COLD].cursor) {
        if (told) out->entries[out->count++] = *e;
        return WEIR_OK;
    }
    weir_entry taken = *e;
    bool copied = (told || (kept && out->kept_count < out->kept_max)) && e->row_length;
    void *row = copied ? weir_arena_alloc_aligned(m->arena, 1, e->row_length) : NULL;
    if (copied && !row && told) return read_arena_full(m->arena);
    if (copied && !row) out->kept_max = out->kept_count;
    if (row) taken.row = memcpy(row, e->row, e->row_length);
    if (told) out->entries[out->count++] = taken;
    if (kept && out->kept_count < out->kept_max) {
        out->kept[out->kept_count++] = taken;
        out->kept_bytes += sizeof taken + taken.row_length;
        if (out->kept_bytes > WEIR_REMAINS_BYTES_MAX) out->kept_max = out->kept_count;
    } else if (kept) {
        out->kept_all = false;
    }
    return WEIR_OK;
}

static weir_err read_merge_step(read_merging *m, bool *endp) {
    uint64_t steps = m->hidden.steps;
    bool cold = false, hidden = false, hidden_cold = false;
    const weir_entry *e = read_merge_next(m->sources, m->first, &m->out->lacking, &cold);
    *endp = !e || (e->time_us <= m->newer_than_us && m->newer_than_us != INT64_MIN); /* all that follow are older */
    if (*endp) return WEIR_OK;
    if (e->deletion && cold && m->out->deletion_us == INT64_MIN) m->out->deletion_us = e->time_us;
    weir_err err = e->deletion ? weir_hidden_add(&m->hidden, e, cold, m->arena) : WEIR_OK;
    if (!err) err = read_merge_look(m, e, &hidden, &hidden_cold);
    if (!err)
        err = read_merge_take(m, e, !hidden && m->out->count < m->query.limit, m->out->kept && cold && !hidden_cold);
    if (!err) err = weir_shard_spend(m->query.budget, m->hidden.steps - steps);
    m->passed++;
    return err ? err : read_step_cold(&m->query, &m->sources[COLD]);
}

/* The reader has what he wants. What he would have to pass once more if the newest of it were deleted is kept, too: at
 * most a quarter of what he has passed, and no further than the page at hand. It takes none of his steps, but as few of
 * its own, and ends when his time does. */
static void read_merge_further(read_merging *m, bool end) {
    const read_source *cold = &m->sources[COLD];
    uint64_t left = m->passed / 4 < FURTHER_MAX ? m->passed / 4 : FURTHER_MAX;
    weir_graph_budget own = m->query.budget ? *m->query.budget : (weir_graph_budget){0};
    weir_err err = WEIR_OK;
    own.steps = left;
    m->query.budget = m->look.budget = &own;
    for (; !err && !end && left > 0 && m->out->kept_count < m->out->kept_max; left--) {
        if (!cold->complete && cold->next + 1 >= cold->count) break;
        err = read_merge_step(m, &end);
    }
    m->out->kept_all = m->out->kept_all && end && !err;
    m->look.budget = NULL;
}

static weir_err read_merge(weir_shard *shard, const weir_list_query *query, read_source *sources, weir_arena *arena,
                           read_merged *out) {
    read_merging m = {.query = *query,
                      .sources = sources,
                      .look = {shard->deleted, query->budget, .beside = sources[COLD].cursor},
                      .ends_may_be = read_ends_may_be_deleted(shard, query, sources),
                      .arena = arena,
                      .out = out};
    bool end = false;
    while (m.first < COLD && sources[m.first].count == 0 && sources[m.first].complete)
        m.first++;
    out->count = 0;
    out->lacking = 0;
    out->kept_all = true;
    out->deletion_us = INT64_MIN;
    weir_err err = weir_deleted_time(&m.look, query->vertex, query->before_us, &m.newer_than_us);
    out->kept_by_edges = m.newer_than_us == WEIR_DELETED_NEVER;
    if (query->newer_than_us > m.newer_than_us) m.newer_than_us = query->newer_than_us;
    if (!err) err = read_step_cold(query, &sources[COLD]);
    while (!err && !end && out->count < query->limit)
        err = read_merge_step(&m, &end);
    if (!err && out->kept) read_merge_further(&m, end);
    weir_deleted_look_end(&m.look);
    return err;
}

/* Most lists have nothing in a delta, and nothing that was deleted: then what the cold store gave, which lies in the
 * answer's place already, is the answer, up to what is too old. */
static weir_err read_take_as_they_are(weir_shard *shard, const weir_list_query *query, read_source *sources,
                                      weir_arena *arena, read_merged *out) {
    const weir_deleted_filter *filter = weir_deleted_filter_of(shard->deleted);
    const bool ends_may_be = read_ends_may_be_deleted(shard, query, sources);
    const read_source *cold = &sources[COLD];
    bool told = !weir_deleted_filter_may_have(filter, query->vertex);
    for (size_t i = 0; told && i < cold->count; i++) {
        const weir_entry *e = &cold->entries[i];
        told = !e->deletion && !(ends_may_be && weir_deleted_filter_may_have(filter, e->neighbor));
    }
    if (!told) return read_merge(shard, query, sources, arena, out);
    WEIR_ASSERT(cold->entries == out->entries && cold->count <= query->limit);
    out->count = (uint32_t)cold->count;
    out->lacking = 0;
    while (query->newer_than_us != INT64_MIN && out->count > 0 &&
           cold->entries[out->count - 1].time_us <= query->newer_than_us)
        out->count--;
    return WEIR_OK;
}

/* Of edges that are asked for again their window, or what remains of the list, gives the answer as it is told, where no
 * delta has anything of it. false: by way of entries. */
static bool read_take_edges(const weir_shard *shard, const weir_list_query *query, bool remains, weir_arena *arena,
                            read_merged *out) {
    const weir_deleted_filter *filter = weir_deleted_filter_of(shard->deleted);
    weir_edge *edges;
    WEIR_ASSERT(WEIR_LIST_KIND(query->list) == WEIR_LIST_KIND_EDGES && !query->hidden_too);
    if (weir_deleted_filter_may_have(filter, query->vertex)) return false;
    const weir_cache_span span = {query->before_us, query->newer_than_us};
    const bool has = remains ? weir_remains_edges(shard->remains, query->vertex, query->list, query->before_us,
                                                  query->newer_than_us, query->limit, arena, &edges, &out->count)
                             : weir_cache_edges(shard->cache, query->vertex, query->list, span, query->limit, arena,
                                                &edges, &out->count);
    if (!has) return false;
    if (weir_deleted_filter_any(filter)) {
        for (uint32_t i = 0; i < out->count; i++)
            weir_deleted_filter_ahead(filter, edges[i].neighbor);
        for (uint32_t i = 0; i < out->count; i++)
            if (weir_deleted_filter_may_have(filter, edges[i].neighbor)) return false;
    }
    out->edges = edges;
    return true;
}

static weir_entry *read_room(weir_entry *near, size_t capacity, weir_arena *arena) {
    return capacity <= NEAR_ENTRIES ? near : weir_arena_alloc(arena, capacity * sizeof *near);
}

/* The first time no more than a window is looked for, which most lists have. */
static weir_err read_list_once(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2],
                               size_t capacity, weir_arena *arena, read_merged *out) {
    read_source sources[SOURCES];
    weir_entry near[SOURCES * NEAR_ENTRIES];
    bool first = capacity == query->limit, alone = true;
    WEIR_ASSERT(!out->edges); /* whoever has the answer asks no further */
    for (size_t i = 0; i < SOURCES; i++)
        sources[i] = (read_source){.complete = true};
    for (size_t i = 0; i < COLD; i++) {
        read_source *s = &sources[i];
        if (!deltas[i] || weir_delta_records(deltas[i]) == 0) continue;
        s->entries = read_room(&near[i * NEAR_ENTRIES], capacity, arena);
        if (!s->entries) return read_arena_full(arena);
        s->count = weir_delta_collect(deltas[i], query->vertex, query->list, query->before_us, s->entries, capacity,
                                      &s->complete);
        alone = alone && s->count == 0 && s->complete;
    }
    if (alone && out->as_edges && read_take_edges(shard, query, !first, arena, out)) {
        weir_err err = weir_shard_spend(query->budget, out->count);
        out->lacking = 0; /* another reader has left what remains since the last try */
        while (query->newer_than_us != INT64_MIN && out->count > 0 &&
               out->edges[out->count - 1].time_us <= query->newer_than_us)
            out->count--;
        return err;
    }
    if (!out->entries) out->entries = weir_arena_alloc(arena, query->limit * sizeof *out->entries);
    /* Those of the cold store alone lie in the answer's place: a merge moves each only towards the front. */
    sources[COLD].entries = first && alone ? out->entries : read_room(&near[COLD * NEAR_ENTRIES], capacity, arena);
    if (!out->entries || !sources[COLD].entries) return read_arena_full(arena);
    bool remains = !first && read_collect_remains(shard, query, deltas, capacity, arena, &sources[COLD], &out->late);
    weir_err err = remains ? WEIR_OK : read_collect_cold(shard, query, capacity, arena, &sources[COLD]);
    if (!err) err = weir_shard_spend(query->budget, sources[0].count + sources[1].count + sources[COLD].count);
    if (err) return err;
    out->rows_are_own = alone;
    return first && alone ? read_take_as_they_are(shard, query, sources, arena, out)
                          : read_merge(shard, query, sources, arena, out);
}

/* All that a delta has of the list, at one moment: more may come while room is made for it. */
static weir_err read_collect_whole(weir_delta *delta, const weir_list_query *query, weir_arena *arena, read_source *s) {
    weir_err err = WEIR_OK;
    s->complete = !delta;
    while (!err && !s->complete) {
        size_t capacity = weir_delta_count(delta, query->vertex, query->list, query->before_us) + SPARE_ENTRIES;
        err = weir_shard_spend(query->budget, capacity);
        if (err) return err;
        s->entries = weir_arena_alloc(arena, capacity * sizeof(weir_entry));
        if (!s->entries) return read_arena_full(arena);
        s->count =
            weir_delta_collect(delta, query->vertex, query->list, query->before_us, s->entries, capacity, &s->complete);
    }
    return err;
}

/* A reader as of a time that is later than all of the cold store's list leaves what remains of it to the next one. */
static weir_err read_begin_to_keep(const weir_list_query *query, weir_engine_cursor *cursor, weir_arena *arena,
                                   weir_remains_span *span, int64_t *newest_usp, read_merged *out) {
    const weir_cold_query newest = {query->vertex, INT64_MAX, .budget = query->budget};
    weir_entry first;
    weir_cold_page page = {.list = query->list, .capacity = 1, .entries = &first, .room = 1, .arena = arena};
    out->kept = NULL;
    out->kept_count = out->kept_bytes = 0;
    out->kept_max = WEIR_REMAINS_MAX;
    if (query->hidden_too || WEIR_LIST_KIND(query->list) != WEIR_LIST_KIND_EDGES) return WEIR_OK;
    weir_err err = weir_cold_list(cursor, &newest, &page);
    if (err || page.count == 0 || page.entries[0].time_us >= query->before_us) return err;
    *span = (weir_remains_span){query->before_us, query->newer_than_us, INT64_MIN, false};
    *newest_usp = page.entries[0].time_us;
    out->kept = weir_arena_alloc(arena, WEIR_REMAINS_MAX * sizeof *out->kept);
    return WEIR_OK; /* without room nothing is kept */
}

/* Through a list whose newest entries are mostly hidden: as far as it takes, and never again from its beginning. */
static weir_err read_list_long(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2],
                               weir_arena *arena, read_merged *out) {
    read_source sources[SOURCES] = {0}, *cold = &sources[COLD];
    uint64_t epoch = weir_cache_epoch(shard->cache);
    weir_remains_span span;
    int64_t newest_us = INT64_MIN;
    out->rows_are_own = true; /* of pages they are copied one by one */
    weir_err err = read_collect_whole(deltas[0], query, arena, &sources[0]);
    if (!err) err = read_collect_whole(deltas[1], query, arena, &sources[1]);
    if (!err) err = weir_arena_open(PAGE_ROWS_MAX, &cold->rows);
    if (!err) err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_POINT, &cold->cursor);
    if (!err) err = read_begin_to_keep(query, cold->cursor, arena, &span, &newest_us, out);
    if (!err) err = read_merge(shard, query, sources, arena, out);
    if (!err && out->kept) {
        span.complete = out->kept_all;
        span.deletion_us = out->deletion_us;
        if (out->kept_by_edges) span.before_us = newest_us + 1;
        weir_remains_fill(shard->remains, epoch, query->vertex, query->list, &span, out->kept, out->kept_count);
    }
    weir_engine_cursor_close(cold->cursor);
    weir_arena_close(cold->rows);
    weir_free(cold->entries);
    return err;
}

/* Windows serve all times alike, so a reader of the past takes ever more of one. What remains of a list serves only
 * readers of now, and is kept only after a long pass. */
static bool read_is_for_a_long_pass(weir_shard *shard, const weir_list_query *query, size_t capacity, weir_arena *arena,
                                    const read_merged *out) {
    weir_entry newest;
    size_t count, few = 4 * ((size_t)query->limit + SPARE_ENTRIES);
    bool complete;
    if (capacity > WIDE_MAX) return true;
    bool kept = !query->hidden_too && WEIR_LIST_KIND(query->list) == WEIR_LIST_KIND_EDGES;
    if (!kept || query->limit > WEIR_REMAINS_MAX || out->late) return false; /* it would not pay for the next one */
    if (capacity <= few || out->lacking != LACKS_COLD) return false;
    const weir_cache_span all = {INT64_MAX, INT64_MIN};
    bool has_window = weir_cache_collect(shard->cache, query->vertex, query->list, all, &newest, 1, read_allocate_row,
                                         arena, &count, &complete);
    return !has_window || count == 0 || newest.time_us < query->before_us;
}

static weir_err read_list(weir_shard *shard, const weir_list_query *query, weir_delta *const deltas[2],
                          weir_arena *arena, read_merged *out) {
    size_t capacity = query->limit;
    /* A list that once was a long pass is one again for who begins at its newest entries. */
    if (!query->hidden_too && weir_remains_may_have(shard->remains, query->vertex, query->list))
        capacity += SPARE_ENTRIES;
    weir_err err = read_list_once(shard, query, deltas, capacity, arena, out);
    while (!err && out->lacking) {
        capacity = capacity == query->limit ? capacity + SPARE_ENTRIES : capacity * 4;
        if (read_is_for_a_long_pass(shard, query, capacity, arena, out)) {
            err = read_list_long(shard, query, deltas, arena, out);
        } else {
            err = weir_shard_spend(query->budget, capacity); /* before it is begun, so that little is done in vain */
            if (!err) err = read_list_once(shard, query, deltas, capacity, arena, out);
        }
    }
    if (err || out->edges) return err;
    WEIR_ASSERT(out->count <= query->limit);

    /* Rows of deltas live as long as our references: the answer gets its own. */
    size_t bytes = out->rows_are_own ? 0 : weir_entries_row_bytes(out->entries, out->count);
    uint8_t *rows = bytes ? weir_arena_alloc_aligned(arena, 1, bytes) : NULL;
    if (bytes && !rows) return read_arena_full(arena);
    if (rows) weir_entries_own_rows(out->entries, out->count, rows);
    return WEIR_OK;
}

weir_err weir_shard_list_in(weir_shard *shard, weir_delta *const deltas[2], const weir_list_query *query,
                            weir_arena *arena, const weir_entry **entriesp, uint32_t *countp) {
    read_merged out = {0};
    weir_err err = read_list(shard, query, deltas, arena, &out);
    *entriesp = err ? NULL : out.entries;
    *countp = err ? 0 : out.count;
    return err;
}

weir_err weir_shard_list(weir_shard *shard, const weir_list_query *query, weir_arena *arena,
                         const weir_entry **entriesp, uint32_t *countp) {
    weir_delta *deltas[2];
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    weir_err err = weir_shard_list_in(shard, deltas, query, arena, entriesp, countp);
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}

weir_err weir_shard_edges(weir_shard *shard, weir_delta *const deltas[2], const weir_list_query *query,
                          weir_arena *arena, const weir_edge **edgesp, uint32_t *countp) {
    weir_entry near[NEAR_ENTRIES];
    read_merged out = {.entries = query->limit <= NEAR_ENTRIES ? near : NULL, .as_edges = true};
    weir_err err = read_list(shard, query, deltas, arena, &out);
    weir_edge *edges = err || out.edges ? out.edges : weir_arena_alloc(arena, out.count * sizeof *edges);
    if (!err && !edges) err = read_arena_full(arena);
    for (uint32_t i = 0; !err && !out.edges && i < out.count; i++) {
        const weir_entry *e = &out.entries[i];
        edges[i] = (weir_edge){e->neighbor, e->time_us, e->event, e->row, e->row_length};
    }
    *edgesp = err ? NULL : edges;
    *countp = err ? 0 : out.count;
    return err;
}

/* --- the other end of a list ------------------------------------------------------------------------------------ */

weir_err weir_shard_oldest(weir_shard *shard, const weir_list_query *query, const weir_list *lists, size_t count,
                           bool *foundp, int64_t *time_usp) {
    weir_delta *deltas[2];
    int64_t time_us;
    *foundp = false;
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    weir_err err = weir_shard_spend(query->budget, WEIR_GRAPH_SEEK_STEPS);
    if (!err)
        err = weir_cold_oldest(shard->engine, query->vertex, lists, count, query->newer_than_us, query->budget, foundp,
                               time_usp);
    for (size_t i = 0; i < 2 * count; i++) {
        bool has = deltas[i % 2] && weir_delta_oldest(deltas[i % 2], query->vertex, lists[i / 2], query->newer_than_us,
                                                      query->before_us, &time_us);
        if (has && (!*foundp || time_us < *time_usp)) *time_usp = time_us;
        *foundp = *foundp || has;
    }
    *foundp = *foundp && *time_usp < query->before_us;
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* A vertex has one name, whichever put carried it: the deltas are asked first, because that is cheap. */
weir_err weir_shard_name(weir_shard *shard, weir_vertex vertex, weir_graph_budget *budget, weir_arena *arena,
                         weir_name *namep, bool *foundp) {
    weir_delta *deltas[2];
    weir_engine_cursor *cursor = NULL;
    weir_name found;
    uint64_t rank;
    *foundp = false;
    weir_err err = weir_shard_spend(budget, WEIR_GRAPH_SEEK_STEPS);
    if (err) return err;
    weir_shard_version(shard, deltas); /* before the cold store is looked at: see shard.h */
    for (size_t i = 0; i < 2 && !*foundp; i++)
        *foundp = deltas[i] && weir_delta_name(deltas[i], vertex, &found);
    if (!*foundp) {
        err = weir_cold_files(shard->engine, vertex, INT64_MAX, &cursor);
        while (!err && !*foundp && weir_engine_cursor_next_file(cursor, &rank))
            err = weir_cold_name(cursor, vertex, &found, foundp);
        if (!err) err = weir_engine_cursor_err(cursor);
    }
    if (!err && *foundp) {
        char *key = weir_arena_alloc_aligned(arena, 1, found.key_length + 1u); /* it may have a 0 in it */
        if (key) {
            key[found.key_length] = 0;
            found.key = memcpy(key, found.key, found.key_length);
            *namep = found;
        } else {
            err = read_arena_full(arena);
        }
    }
    weir_engine_cursor_close(cursor); /* the key was borrowed from it */
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}
