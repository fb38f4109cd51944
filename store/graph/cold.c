/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.c - a page of a list, out of the bundles that hold parts of it.
 *
 * Bundles of a list lie newest first within each span, and overlap: seals follow one another, but entries come late.
 * So a page is a sorted array into which bundles are merged, until it has all that is wanted, and that is newer than
 * the next bundle. Only bundles that reach beyond the time that is asked for are passed in vain, and the span says how
 * far those may be.
 */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/format/bundle.h>

#include "cold.h"
#include "shard.h"

#define STEPS_MAX    4u
#define COLD_NO_ROOM "the read needs more memory than its request may use; ask for fewer neighbours"

_Static_assert(WEIR_BUNDLE_NEWEST_AT == WEIR_ENGINE_RANK_AT, "the engine knows how new a bundle is by its rank");

/* One pass over the bundles of a vertex, for one list or for several. */
typedef struct cold_pass {
    const weir_cold_query *query;
    int64_t latest_us;     /* no entry that is wanted is newer */
    weir_cold_page *pages; /* their lists rise */
    size_t page_count;
    bool is_long; /* in the file at hand: a seek was needed once, so steps lead nowhere */
} cold_pass;

weir_err weir_cold_damaged(weir_vertex vertex) {
    return WEIR_ERR(WEIR_ECORRUPT, "a record of vertex " WEIR_VERTEX_FORMAT " is damaged; restore a checkpoint",
                    WEIR_VERTEX_WORDS(vertex));
}

/* *therep: the cursor stands at a bundle of the vertex. */
static weir_err cold_stands(const weir_engine_cursor *cursor, weir_vertex vertex, weir_bundle_key *key, bool *therep) {
    size_t length;
    *therep = false;
    if (!weir_engine_cursor_valid(cursor)) return weir_engine_cursor_err(cursor);
    const uint8_t *bytes = weir_engine_cursor_key(cursor, &length);
    if (length == 0 || bytes[0] != WEIR_BUNDLE_KIND) return WEIR_OK; /* behind the last of them there is nothing */
    if (!weir_bundle_key_read(bytes, length, key)) return weir_cold_damaged(vertex);
    *therep = key->vertex == vertex;
    return WEIR_OK;
}

/* Bundles of a span are no wider than it: what is further away in time than a few of them is not among the next few. */
static bool cold_is_far(const void *at, size_t length, const weir_bundle_key *wanted) {
    int64_t near_us = wanted->newest_us;
    weir_bundle_key key;
    if (!weir_bundle_key_read(at, length, &key) || key.part != wanted->part || key.span != wanted->span) return false;
    for (unsigned steps = 0; steps < STEPS_MAX; steps++)
        near_us = weir_bundle_reach(key.span, near_us);
    return key.newest_us > near_us;
}

/* Onwards. What is sought is most often a few bundles away, if not where it stands, and a seek asks every file. In a
 * long list each step may read a block in vain. */
static void cold_seek_on(weir_engine_cursor *cursor, const weir_bundle_key *wanted, bool *is_longp) {
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    size_t length;
    weir_bundle_key_write(wanted, key);
    for (unsigned steps = 0; steps <= STEPS_MAX; steps++) {
        if (!weir_engine_cursor_valid(cursor)) return;
        const void *at = weir_engine_cursor_key(cursor, &length);
        if (length < sizeof key || memcmp(at, key, sizeof key) >= 0) return; /* cold_stands finds a damaged one */
        if (*is_longp || cold_is_far(at, length, wanted)) break;
        if (steps < STEPS_MAX) weir_engine_cursor_next(cursor);
    }
    weir_engine_cursor_seek(cursor, key, sizeof key);
    *is_longp = true;
}

static void cold_seek_first(weir_engine_cursor *cursor, weir_vertex vertex) {
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key_write(&(weir_bundle_key){.vertex = vertex, .part = WEIR_BUNDLE_NAMED, .newest_us = INT64_MAX}, key);
    weir_engine_cursor_seek(cursor, key, sizeof key);
}

/* --- merging a bundle into a page ------------------------------------------------------------------------------- */

/* The place of the first entry that a reader does not meet before this one. */
static size_t cold_page_place(const weir_cold_page *page, const weir_entry *e) {
    size_t low = 0, high = page->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (weir_entry_order(&page->entries[middle], e) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What the page has already stays where it is, with the row that says more. */
static size_t cold_page_leave_out_known(const weir_cold_page *page, weir_entry *fresh, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = cold_page_place(page, &fresh[i]);
        bool known = at < page->count && weir_entry_order(&page->entries[at], &fresh[i]) == 0;
        if (!known) fresh[kept++] = fresh[i];
        if (known && weir_entry_says_more(&fresh[i], &page->entries[at])) page->entries[at] = fresh[i];
    }
    return kept;
}

/* Both are in order; from the back, so that each entry moves once. */
static weir_err cold_page_merge(weir_cold_page *page, weir_entry *fresh, size_t count) {
    bool behind = page->count == 0 || count == 0 || weir_entry_order(&page->entries[page->count - 1], &fresh[0]) < 0;
    if (!behind) count = cold_page_leave_out_known(page, fresh, count);
    size_t old = page->count, total = old + count, kept = total < page->capacity ? total : page->capacity;
    if (kept > page->room) {
        size_t room = page->room * 2 > kept ? page->room * 2 : kept;
        if (room > page->capacity) room = page->capacity;
        weir_entry *entries = weir_arena_alloc(page->arena, room * sizeof *entries);
        if (!entries) return WEIR_ARENA_ERR(page->arena, COLD_NO_ROOM);
        if (old) memcpy(entries, page->entries, old * sizeof *entries);
        page->entries = entries;
        page->room = room;
    }
    for (size_t at = total; count > 0; at--) {
        bool of_old = old > 0 && weir_entry_order(&page->entries[old - 1], &fresh[count - 1]) > 0;
        const weir_entry *last = of_old ? &page->entries[--old] : &fresh[--count];
        if (at <= kept) page->entries[at - 1] = *last;
    }
    WEIR_ASSERT(old <= kept && kept <= page->capacity);
    page->more = page->more || total > page->capacity;
    page->count = kept;
    return WEIR_OK;
}

/* Entries of a bundle's value, which is gone when the cursor moves: so they get rows of their own, those that find no
 * place in the page, too, which are few. */
static weir_err cold_page_put(weir_cold_page *page, weir_entry *fresh, size_t count) {
    const size_t bytes = weir_entries_row_bytes(fresh, count);
    uint8_t *rows = bytes ? weir_arena_alloc_aligned(page->arena, 1, bytes) : NULL;
    weir_err err = bytes && !rows ? WEIR_ARENA_ERR(page->arena, COLD_NO_ROOM) : WEIR_OK;
    if (!err) {
        if (rows) weir_entries_own_rows(fresh, count, rows);
        err = cold_page_merge(page, fresh, count);
    }
    page->lost = err && page->if_it_fits;
    return page->lost ? WEIR_OK : err;
}

/* Entries of a time, or newer. */
static size_t cold_page_since(const weir_cold_page *page, int64_t time_us) {
    size_t low = 0, high = page->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (page->entries[middle].time_us >= time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* How many entries are wanted, as far as is known: so many, or more. */
static size_t cold_page_wanted(const weir_cold_page *page) {
    if (!page->bounded || page->least == page->capacity) return page->capacity;
    const size_t least = page->least ? cold_page_since(page, page->least_before_us) + page->least : 0;
    size_t wanted = page->newer_than_us == INT64_MAX ? 1 : cold_page_since(page, page->newer_than_us + 1) + 1;
    if (least > wanted) wanted = least;
    return wanted < page->capacity ? wanted : page->capacity;
}

/* Whether nothing that is so old, or older, is wanted. */
static bool cold_page_is_past(const weir_cold_page *page, uint64_t rank) {
    const size_t wanted = cold_page_wanted(page);
    if (page->lost) return true;
    return page->count >= wanted && weir_bundle_rank(page->entries[wanted - 1].time_us) < rank;
}

/* Where a file or a bundle was passed over because it is past the page, the page has a gap from there on. What is
 * wanted lies before that, and so may some more. */
static void cold_page_end(weir_cold_page *page) {
    size_t wanted = cold_page_wanted(page);
    while (wanted < page->count && weir_bundle_rank(page->entries[wanted].time_us) < page->gap_rank)
        wanted++;
    if (page->more && page->count > wanted) page->count = wanted;
}

/* Whether that is so of all of them: then there may be more behind each. */
static bool cold_pages_are_past(weir_cold_page *pages, size_t count, uint64_t rank) {
    for (size_t i = 0; i < count; i++)
        if (!cold_page_is_past(&pages[i], rank)) return false;
    for (size_t i = 0; i < count; i++) {
        pages[i].more = true;
        if (pages[i].gap_rank > rank) pages[i].gap_rank = rank;
    }
    return true;
}

static bool cold_pass_wants(const cold_pass *p, const weir_entry *e) {
    if (e->time_us >= p->query->before_us) return false;
    int order = p->query->after ? weir_entry_order(p->query->after, e) : -1;
    return order < 0 || (order == 0 && p->query->with_it);
}

/* The bundle at which the cursor stands, into those of the pages whose lists it has: its lists rise, too. */
static weir_err cold_pass_take(const cold_pass *p, weir_cold_page *pages, size_t page_count,
                               const weir_engine_cursor *cursor, const weir_bundle_key *key) {
    weir_entry fresh[WEIR_BUNDLE_ENTRIES_MAX + 1];
    weir_bundle_reader reader;
    size_t length, count = 0, at = 0;
    bool end = false;
    weir_err err = weir_shard_spend(p->query->budget, 1);
    const void *value = weir_engine_cursor_value(cursor, &length);
    if (err) return err;
    if (!weir_bundle_open(&reader, key, value, length)) return weir_cold_damaged(key->vertex);
    if (reader.oldest_us > p->latest_us) return WEIR_OK;
    while (!err && !end) {
        weir_bundle_step step = weir_bundle_next(&reader, &fresh[count]);
        if (step == WEIR_BUNDLE_DAMAGED) return weir_cold_damaged(key->vertex);
        end = step != WEIR_BUNDLE_ENTRY;
        bool goes_on = !end && reader.list == pages[at].list;
        if (count > 0 && (!goes_on || count == WEIR_BUNDLE_ENTRIES_MAX)) {
            const weir_entry *next = &fresh[count];
            err = cold_page_put(&pages[at], fresh, count);
            if (!end) fresh[0] = *next;
            count = 0;
        }
        while (!end && at + 1 < page_count && pages[at].list < reader.list)
            at++;
        weir_cold_page *page = &pages[at];
        if (end || page->lost || page->list != reader.list || !cold_pass_wants(p, &fresh[count])) continue;
        bool full = count == page->capacity || (page->count == page->capacity &&
                                                weir_entry_order(&page->entries[page->count - 1], &fresh[count]) < 0);
        page->more = page->more || full;
        count += !full;
        end = full && page_count == 1; /* what follows in its list is older still */
    }
    return err || count == 0 ? err : cold_page_put(&pages[at], fresh, count);
}

/* --- pages ------------------------------------------------------------------------------------------------------ */

/* Of one part and span: from the first bundle that may reach back to what is wanted, to one that is too old. */
static weir_err cold_pass_take_span(cold_pass *p, weir_cold_page *pages, size_t page_count, weir_engine_cursor *cursor,
                                    uint32_t part, uint8_t span, weir_bundle_key *key, bool *therep) {
    const weir_bundle_key wanted = {
        .vertex = p->query->vertex, .part = part, .span = span, .newest_us = weir_bundle_reach(span, p->latest_us)};
    cold_seek_on(cursor, &wanted, &p->is_long);
    weir_err err = cold_stands(cursor, p->query->vertex, key, therep);
    while (!err && *therep && key->part == part && key->span == span) {
        if (cold_pages_are_past(pages, page_count, weir_bundle_rank(key->newest_us))) break;
        err = cold_pass_take(p, pages, page_count, cursor, key);
        weir_engine_cursor_next(cursor);
        if (!err) err = cold_stands(cursor, p->query->vertex, key, therep);
    }
    return err;
}

static weir_err cold_pass_take_part(cold_pass *p, weir_cold_page *pages, size_t page_count, weir_engine_cursor *cursor,
                                    uint32_t part, weir_bundle_key *key, bool *therep) {
    weir_err err = WEIR_OK;
    for (uint8_t span = 0; !err && *therep && key->part <= part && span < WEIR_BUNDLE_SPANS; span++) {
        if (key->part == part && key->span > span) continue; /* it has none of this span */
        err = cold_pass_take_span(p, pages, page_count, cursor, part, span, key, therep);
    }
    return err;
}

/* All that the cursor goes over, in which nothing is newer than the rank says: parts are in the order of lists. */
static weir_err cold_pass_take_all(cold_pass *p, weir_engine_cursor *cursor, uint64_t rank) {
    weir_bundle_key key;
    bool there;
    p->is_long = false;
    cold_seek_first(cursor, p->query->vertex);
    weir_err err = cold_stands(cursor, p->query->vertex, &key, &there);
    if (!err) err = cold_pass_take_part(p, p->pages, p->page_count, cursor, WEIR_BUNDLE_NAMED, &key, &there);
    for (size_t i = 0; !err && there && i < p->page_count; i++) {
        weir_cold_page *page = &p->pages[i];
        if (!cold_pages_are_past(page, 1, rank))
            err = cold_pass_take_part(p, page, 1, cursor, WEIR_BUNDLE_PART(page->list), &key, &there);
    }
    return err;
}

static cold_pass cold_pass_begin(const weir_cold_query *query, weir_cold_page *pages, size_t count) {
    int64_t latest_us = query->before_us == INT64_MIN ? INT64_MIN : query->before_us - 1;
    if (query->after) latest_us = query->after->time_us;
    for (size_t i = 0; i < count; i++) {
        WEIR_ASSERT(pages[i].capacity > 0 && (i == 0 || pages[i - 1].list < pages[i].list));
        pages[i].count = 0;
        pages[i].more = pages[i].lost = false;
        pages[i].gap_rank = UINT64_MAX;
    }
    return (cold_pass){query, latest_us, pages, count, false};
}

weir_err weir_cold_list(weir_engine_cursor *cursor, const weir_cold_query *query, weir_cold_page *page) {
    cold_pass p = cold_pass_begin(query, page, 1);
    weir_err err = query->before_us == INT64_MIN ? WEIR_OK : cold_pass_take_all(&p, cursor, 0);
    cold_page_end(page);
    return err;
}

weir_err weir_cold_files(weir_engine *engine, weir_vertex vertex, int64_t latest_us, weir_engine_cursor **cursorp) {
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key_write(&(weir_bundle_key){.vertex = vertex}, key);
    return weir_engine_cursor_open_files(engine, key, weir_bundle_rank(latest_us), cursorp);
}

/* What is newest of lists that go on is in the newest files: a pass ends before those that are too old for all. */
weir_err weir_cold_newest(weir_engine *engine, const weir_cold_query *query, weir_cold_page *pages, size_t count) {
    weir_engine_cursor *cursor;
    uint64_t rank = 0;
    bool enough = false;
    cold_pass p = cold_pass_begin(query, pages, count);
    for (size_t i = 0; i < count; i++)
        WEIR_ASSERT(WEIR_LIST_KIND(pages[i].list) != WEIR_LIST_KIND_EVENTS);
    if (query->before_us == INT64_MIN) return WEIR_OK;
    weir_err err = weir_cold_files(engine, query->vertex, p.latest_us, &cursor);
    if (err) return err;
    while (!err && !enough && weir_engine_cursor_next_file(cursor, &rank)) {
        enough = cold_pages_are_past(pages, count, rank);
        if (!enough) err = cold_pass_take_all(&p, cursor, rank);
    }
    if (!err) err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    for (size_t i = 0; i < count; i++)
        cold_page_end(&pages[i]);
    return err;
}

/* --- the other end of a list ------------------------------------------------------------------------------------ */

typedef struct cold_oldest {
    weir_vertex vertex;
    const weir_list *lists; /* rising */
    size_t count;
    int64_t newer_than_us, time_us;
    weir_graph_budget *budget;
    bool found;
} cold_oldest;

static bool cold_oldest_wants(const cold_oldest *o, weir_list list) {
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->lists[middle] == list) return true;
        if (o->lists[middle] < list) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static weir_err cold_oldest_take(cold_oldest *o, const weir_engine_cursor *cursor, const weir_bundle_key *key) {
    weir_bundle_reader reader;
    weir_bundle_step step = WEIR_BUNDLE_DAMAGED;
    weir_entry e;
    size_t length;
    weir_err err = weir_shard_spend(o->budget, 1);
    const void *value = weir_engine_cursor_value(cursor, &length);
    bool more = weir_bundle_open(&reader, key, value, length);
    if (more && o->found && reader.oldest_us >= o->time_us) return err;
    while (!err && more && (step = weir_bundle_next(&reader, &e)) == WEIR_BUNDLE_ENTRY) {
        if (e.deletion || !cold_oldest_wants(o, reader.list)) continue;
        if (e.time_us <= o->newer_than_us && o->newer_than_us != INT64_MIN) continue;
        if (!o->found || e.time_us < o->time_us) o->time_us = e.time_us;
        o->found = true;
    }
    if (!err && step == WEIR_BUNDLE_DAMAGED) err = weir_cold_damaged(key->vertex);
    return err;
}

/* Backwards from the last bundle of a span that has anything so new, as long as one may have something older. *spanp is
 * where it begins; -1: the part has no more before it. */
static weir_err cold_oldest_take_span(cold_oldest *o, weir_engine_cursor *cursor, uint32_t part, int *spanp) {
    weir_bundle_key key = {.vertex = o->vertex,
                           .part = part,
                           .span = (uint8_t)*spanp,
                           .newest_us = o->newer_than_us == INT64_MIN ? INT64_MIN : o->newer_than_us + 1,
                           .turn = UINT32_MAX,
                           .hash = UINT64_MAX};
    uint8_t bytes[WEIR_BUNDLE_KEY_BYTES], span = key.span;
    bool there;
    weir_bundle_key_write(&key, bytes);
    weir_engine_cursor_seek_last(cursor, bytes, sizeof bytes);
    weir_err err = cold_stands(cursor, o->vertex, &key, &there);
    bool of_part = !err && there && key.part == part;
    *spanp = !of_part ? -1 : key.span < span ? key.span : span - 1; /* of a lower span the end, which may be too old */
    while (!err && there && key.part == part && key.span == span) {
        if (o->found && weir_bundle_reach(span, o->time_us) < key.newest_us) break;
        err = cold_oldest_take(o, cursor, &key);
        weir_engine_cursor_previous(cursor);
        if (!err) err = cold_stands(cursor, o->vertex, &key, &there);
    }
    return err;
}

/* The part at whose first bundle the cursor stands, and on to what is behind it. Most parts are a bundle or two; of one
 * that is more the end is sought, span by span. */
static weir_err cold_oldest_take_part(cold_oldest *o, weir_engine_cursor *cursor, weir_bundle_key *key, bool *therep) {
    uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
    uint32_t part = key->part;
    bool wanted = part == WEIR_BUNDLE_NAMED || cold_oldest_wants(o, part - 1);
    weir_err err = WEIR_OK;
    for (unsigned steps = 0; !err && *therep && key->part == part && steps < STEPS_MAX; steps++) {
        if (wanted) err = cold_oldest_take(o, cursor, key);
        weir_engine_cursor_next(cursor);
        if (!err) err = cold_stands(cursor, o->vertex, key, therep);
    }
    if (err || !*therep || key->part != part) return err;
    for (int span = WEIR_BUNDLE_SPANS - 1; !err && wanted && span >= 0;)
        err = cold_oldest_take_span(o, cursor, part, &span);
    weir_bundle_key_write(&(weir_bundle_key){.vertex = o->vertex, .part = part + 1, .newest_us = INT64_MAX}, bytes);
    weir_engine_cursor_seek(cursor, bytes, sizeof bytes);
    return err ? err : cold_stands(cursor, o->vertex, key, therep);
}

/* Nothing but what is too old is left when a file begins with that. */
weir_err weir_cold_oldest(weir_engine *engine, weir_vertex vertex, const weir_list *lists, size_t count,
                          int64_t newer_than_us, weir_graph_budget *budget, bool *foundp, int64_t *time_usp) {
    cold_oldest o = {
        .vertex = vertex, .lists = lists, .count = count, .newer_than_us = newer_than_us, .budget = budget};
    weir_engine_cursor *cursor;
    weir_bundle_key key;
    uint64_t rank = 0;
    bool there;
    *foundp = false;
    if (newer_than_us == INT64_MAX) return WEIR_OK;
    weir_err err = weir_cold_files(engine, vertex, INT64_MAX, &cursor);
    if (err) return err;
    while (!err && weir_engine_cursor_next_file(cursor, &rank)) {
        if (newer_than_us != INT64_MIN && rank >= weir_bundle_rank(newer_than_us)) break;
        cold_seek_first(cursor, vertex);
        err = cold_stands(cursor, vertex, &key, &there);
        while (!err && there)
            err = cold_oldest_take_part(&o, cursor, &key, &there);
    }
    if (!err) err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    *foundp = o.found;
    *time_usp = o.time_us;
    return err;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* Whatever put the name again said the same. */
weir_err weir_cold_name(weir_engine_cursor *cursor, weir_vertex vertex, weir_name *namep, bool *foundp) {
    weir_bundle_reader reader;
    weir_bundle_key key;
    size_t length;
    cold_seek_first(cursor, vertex);
    weir_err err = cold_stands(cursor, vertex, &key, foundp);
    *foundp = !err && *foundp && key.part == WEIR_BUNDLE_NAMED;
    if (!*foundp) return err;
    const void *value = weir_engine_cursor_value(cursor, &length);
    if (!weir_bundle_open(&reader, &key, value, length)) return weir_cold_damaged(vertex);
    *namep = reader.name;
    return WEIR_OK;
}
