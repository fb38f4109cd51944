/* SPDX-License-Identifier: Apache-2.0 */
/* cold_test.c - lists read out of the bundles of many seals, against all that was ever sealed, sorted. Entries come
 * late, twice and at one moment; and one vertex has more than a scan gathers. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>

#include "cold.h"
#include "delta.h"
#include "joining.h"

#define SEALS       12u
#define VERTICES    6u
#define LARGE       40000u /* entries of the last vertex, most of them in one list */
#define PAGE_MAX    300u
#define EDGES       WEIR_LIST_EDGES(2, WEIR_OUT)
#define ROUNDS      (4000u / (unsigned)weir_test_part(1, 20))
#define RECORDS_MAX 200000u

static const weir_list lists[] = {WEIR_LIST_EDGES(0, WEIR_IN), EDGES, WEIR_LIST_FEATURES, WEIR_LIST_LABEL(1),
                                  WEIR_LIST_PUTS};
#define LISTS (sizeof lists / sizeof lists[0])
static const uint8_t row[] = "a row of some bytes";

typedef struct record {
    weir_vertex vertex;
    weir_list list;
    weir_entry entry;
} record;

/* All that was sealed. */
typedef struct world {
    weir_rng rng;
    weir_engine *engine;
    record *records; /* sorted, each once */
    size_t count;
    bool named[VERTICES + 1];
} world;

static weir_vertex vertex_at(uint64_t n) {
    return weir_vertex_make(n * 0x9e3779b97f4a7c15ull, n);
}

static int order(const void *a, const void *b) {
    const record *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    return weir_entry_order(&x->entry, &y->entry);
}

static int order_lists(const void *a, const void *b) {
    weir_list x = *(const weir_list *)a, y = *(const weir_list *)b;
    return x < y ? -1 : x > y;
}

/* Of a stream that goes on, from seal to seal faster or slower: mostly about now, sometimes late by up to years, and
 * often at the same moment. A third of the seals have times that cannot be. */
static int64_t draw_time(weir_rng *rng, uint64_t seal) {
    int64_t now_us = 1700000000000000 + (int64_t)seal * 30000000;
    if (seal % 3 == 0 && weir_rng_below(rng, 400) == 0) return weir_rng_below(rng, 2) ? INT64_MIN + 1 : INT64_MAX - 2;
    if (weir_rng_below(rng, 3) == 0) return now_us;
    int64_t late_us = weir_rng_below(rng, 8) ? 30000000 >> seal % 4 * 4 : (int64_t)1 << weir_rng_below(rng, 48);
    return now_us - (int64_t)weir_rng_below(rng, (uint64_t)late_us);
}

static weir_mutation draw_mutation(world *w, uint64_t seal, uint64_t n) {
    weir_rng *rng = &w->rng;
    uint64_t kind = n == VERTICES ? 1 : weir_rng_below(rng, LISTS + 1);
    weir_mutation m = {.kind = WEIR_PUT_EDGE,
                       .vertex = vertex_at(n),
                       .neighbor = vertex_at(100 + weir_rng_below(rng, 20)),
                       .time_us = draw_time(rng, seal),
                       .event = 1 + weir_rng_below(rng, 1u << 20),
                       .content = 7,
                       .row = row,
                       .row_length = weir_rng_below(rng, 2) ? sizeof row : 0};
    if (kind == 0) m.direction = WEIR_IN;
    if (kind == 1) m.type = 2;
    if (kind <= 1 && weir_rng_below(rng, 10) == 0) m.kind = WEIR_DELETE_EDGE;
    if (m.kind == WEIR_DELETE_EDGE) m.row_length = 0;
    if (kind == 2 || kind == 4 || kind == 5) m.kind = WEIR_PUT_VERTEX;
    if (kind == 2) m.row_length = sizeof row;
    if (kind == 4) m.row_length = 0;
    if (kind == 3) m.kind = WEIR_PUT_LABEL, m.type = 1;
    if (kind == 5) m.key = "k", m.key_length = 1;
    return m;
}

static void remember(world *w, const weir_mutation *m) {
    record r = {.vertex = m->vertex, .entry = {.time_us = m->time_us, .event = m->event, .content = m->content}};
    assert_true(w->count < RECORDS_MAX);
    switch (m->kind) {
    case WEIR_PUT_EDGE:
    case WEIR_DELETE_EDGE:
        r.list = WEIR_LIST_EDGES(m->type, m->direction);
        r.entry.neighbor = m->neighbor;
        r.entry.deletion = m->kind == WEIR_DELETE_EDGE;
        if (r.entry.deletion) r.entry.content = 0;
        break;
    case WEIR_PUT_LABEL:
        r.list = WEIR_LIST_LABEL(m->type);
        break;
    default:
        r.list = m->row_length ? WEIR_LIST_FEATURES : WEIR_LIST_PUTS;
        if (!m->row_length) r.entry = (weir_entry){.time_us = m->time_us};
    }
    w->records[w->count++] = r;
}

static weir_err add(void *writer, const uint8_t *key, size_t key_length, const uint8_t *value, size_t value_length) {
    return weir_engine_writer_add(writer, key, key_length, value, value_length);
}

static void seal(world *w, uint64_t turn) {
    weir_delta *delta;
    weir_delta_order *sorted;
    weir_engine_writer *writer;
    size_t before = w->count;
    assert_ok(weir_delta_open(64u << 20, false, &delta));
    for (uint64_t n = 0; n <= VERTICES; n++) {
        uint64_t most = n == VERTICES ? LARGE / SEALS : 1 + weir_rng_below(&w->rng, 1u << n * 2);
        for (uint64_t i = 0; i < most; i++) {
            weir_mutation m = draw_mutation(w, turn, n);
            if (m.key_length) w->named[n] = true;
            assert_ok(weir_delta_apply(delta, &m, 1));
            remember(w, &m);
            if (weir_rng_below(&w->rng, 20) || before == 0) continue;
            const record *again = &w->records[weir_rng_below(&w->rng, before)]; /* of an earlier seal */
            if (WEIR_LIST_KIND(again->list) != WEIR_LIST_KIND_EDGES || again->entry.deletion) continue;
            m = (weir_mutation){.kind = WEIR_PUT_EDGE,
                                .type = (uint16_t)(again->list >> 1),
                                .direction = again->list & 1 ? WEIR_IN : WEIR_OUT,
                                .vertex = again->vertex,
                                .neighbor = again->entry.neighbor,
                                .time_us = again->entry.time_us,
                                .event = again->entry.event,
                                .content = again->entry.content};
            assert_ok(weir_delta_apply(delta, &m, 1));
        }
    }
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &sorted));
    assert_ok(weir_engine_writer_open(w->engine, &writer));
    assert_ok(weir_delta_order_walk(sorted, add, writer));
    assert_ok(weir_engine_writer_ingest(writer));
    weir_delta_order_close(sorted);
    weir_delta_release(delta);
}

static size_t bundles_of(weir_engine *engine) {
    static const uint8_t kind = WEIR_BUNDLE_KIND;
    weir_engine_cursor *cursor;
    size_t count = 0;
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    weir_engine_cursor_seek(cursor, &kind, sizeof kind);
    for (; weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor))
        count++;
    assert_ok(weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
    return count;
}

static world *world_open(void) {
    static world w;
    const weir_engine_opts opts = {.create = true, .last_rank = weir_bundle_last_rank, .joining = &weir_joining};
    weir_engine_stats stats;
    size_t kept = 1;
    w = (world){.rng = weir_rng_stream(weir_test_seed(), 1, 0)};
    w.records = malloc(RECORDS_MAX * sizeof *w.records);
    assert_non_null(w.records);
    assert_ok(weir_engine_open(weir_test_path("cold"), &opts, &w.engine));
    for (uint64_t turn = 0; turn < SEALS; turn++) {
        seal(&w, turn);
        if (turn != SEALS / 2) continue;
        size_t before = bundles_of(w.engine);
        assert_ok(weir_engine_compact(w.engine));
        weir_engine_stats_get(w.engine, &stats);
        assert_true(stats.merges > 0 && bundles_of(w.engine) < before); /* they were joined */
    }
    qsort(w.records, w.count, sizeof *w.records, order);
    for (size_t i = 1; i < w.count; i++)
        if (order(&w.records[kept - 1], &w.records[i]) != 0) w.records[kept++] = w.records[i];
    w.count = kept;
    return &w;
}

static void world_close(world *w) {
    weir_engine_close(w->engine);
    free(w->records);
}

/* The first record of a list, and how many there are. */
static const record *list_of(const world *w, weir_vertex vertex, weir_list list, size_t *countp) {
    size_t begin = 0, end;
    while (begin < w->count && (w->records[begin].vertex != vertex || w->records[begin].list != list))
        begin++;
    for (end = begin; end < w->count && w->records[end].vertex == vertex && w->records[end].list == list; end++) {
    }
    *countp = end - begin;
    return &w->records[begin];
}

static int64_t a_moment(world *w, const record *records, size_t count) {
    switch (weir_rng_below(&w->rng, 4)) {
    case 0:
        return weir_rng_below(&w->rng, 2) ? INT64_MAX : INT64_MIN;
    case 1:
        return draw_time(&w->rng, weir_rng_below(&w->rng, SEALS));
    default:
        return count ? records[weir_rng_below(&w->rng, count)].entry.time_us + (int64_t)weir_rng_below(&w->rng, 2) : 0;
    }
}

static void same_page(const weir_cold_page *page, const record *records, size_t count) {
    size_t wanted = 0, least = 0;
    while (wanted < count && records[wanted].entry.time_us > page->newer_than_us)
        wanted++;
    while (least < count && records[least].entry.time_us >= page->least_before_us)
        least++;
    least = page->least ? least + page->least : 0;
    wanted = wanted + 1 > least ? wanted + 1 : least;
    if (!page->bounded || wanted > page->capacity) wanted = page->capacity;
    assert_true(page->count >= (count < wanted ? count : wanted) && page->count <= page->capacity);
    assert_true(page->more || page->count == count);
    assert_true(!page->more || page->count >= wanted); /* a bundle beside a name may have nothing of the list */
    for (size_t i = 0; i < page->count; i++) {
        const weir_entry *e = &page->entries[i];
        assert_int_equal(weir_entry_order(e, &records[i].entry), 0);
        assert_true(e->row_length == 0 || e->row_length >= sizeof row); /* with the type before it */
        if (e->row_length) assert_memory_equal(e->row + e->row_length - sizeof row, row, sizeof row);
    }
}

/* Several lists in one pass, some of them in memory that is too small at first. */
static void pages_of_one_pass_are_what_was_sealed(void **state) {
    (void)state;
    world *w = world_open();
    weir_arena *arena;
    static weir_entry entries[LISTS][PAGE_MAX];
    assert_ok(weir_arena_open(64u << 20, &arena));
    for (unsigned round = 0; round < ROUNDS; round++) {
        weir_cold_query query = {.vertex = vertex_at(weir_rng_below(&w->rng, VERTICES + 2)), .before_us = INT64_MAX};
        weir_cold_page pages[LISTS];
        size_t count = 0, of_some;
        const record *some = list_of(w, query.vertex, lists[weir_rng_below(&w->rng, LISTS)], &of_some);
        if (weir_rng_below(&w->rng, 2)) query.before_us = a_moment(w, some, of_some);
        weir_arena_reset(arena);
        for (size_t i = 0; i < LISTS; i++) {
            size_t capacity = 1 + (size_t)weir_rng_below(&w->rng, weir_rng_below(&w->rng, 2) ? PAGE_MAX : 4);
            if (weir_rng_below(&w->rng, 3) == 0 && (count || i + 1 < LISTS)) continue;
            pages[count] = (weir_cold_page){.list = lists[i],
                                            .capacity = capacity,
                                            .bounded = weir_rng_below(&w->rng, 2),
                                            .least = weir_rng_below(&w->rng, capacity + 1),
                                            .newer_than_us = a_moment(w, some, of_some),
                                            .least_before_us = a_moment(w, some, of_some),
                                            .entries = entries[i],
                                            .room = weir_rng_below(&w->rng, capacity + 1),
                                            .arena = arena};
            if (pages[count].room == 0) pages[count].entries = NULL;
            count++;
        }
        assert_ok(weir_cold_newest(w->engine, &query, pages, count));
        for (size_t i = 0; i < count; i++) {
            size_t of_list, begin = 0;
            const record *records = list_of(w, query.vertex, pages[i].list, &of_list);
            while (begin < of_list && records[begin].entry.time_us >= query.before_us)
                begin++;
            same_page(&pages[i], records + begin, of_list - begin);
        }
    }
    weir_arena_close(arena);
    world_close(w);
}

static void a_page_is_what_was_sealed(void **state) {
    (void)state;
    world *w = world_open();
    weir_engine_cursor *cursors[2];
    weir_arena *rows;
    static weir_entry entries[PAGE_MAX];
    assert_ok(weir_arena_open(64u << 20, &rows));
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_POINT, &cursors[0]));
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_SCAN, &cursors[1]));
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count, begin = 0, capacity = 1 + (size_t)weir_rng_below(&w->rng, PAGE_MAX);
        weir_cold_query query = {.vertex = vertex_at(weir_rng_below(&w->rng, VERTICES + 2))};
        weir_cold_page page = {.list = lists[weir_rng_below(&w->rng, LISTS)],
                               .capacity = capacity,
                               .bounded = weir_rng_below(&w->rng, 2),
                               .least = weir_rng_below(&w->rng, capacity + 1),
                               .entries = entries,
                               .room = PAGE_MAX,
                               .arena = rows};
        const record *records = list_of(w, query.vertex, page.list, &count);
        query.before_us = a_moment(w, records, count);
        page.newer_than_us = a_moment(w, records, count);
        page.least_before_us = a_moment(w, records, count);
        if (count && weir_rng_below(&w->rng, 3) == 0) query.after = &records[weir_rng_below(&w->rng, count)].entry;
        while (begin < count && (records[begin].entry.time_us >= query.before_us ||
                                 (query.after && weir_entry_order(query.after, &records[begin].entry) >= 0)))
            begin++;
        weir_arena_reset(rows);
        size_t way = (size_t)weir_rng_below(&w->rng, 3);
        assert_ok(way == 2 ? weir_cold_newest(w->engine, &query, &page, 1)
                           : weir_cold_list(cursors[way], &query, &page));
        same_page(&page, records + begin, count - begin);
    }
    weir_engine_cursor_close(cursors[0]);
    weir_engine_cursor_close(cursors[1]);
    weir_arena_close(rows);
    world_close(w);
}

/* --- where a file begins and ends ------------------------------------------------------------------------------- */

static weir_mutation edge_at(int64_t time_us, uint64_t event) {
    return (weir_mutation){.kind = WEIR_PUT_EDGE,
                           .type = 2,
                           .vertex = vertex_at(1),
                           .neighbor = vertex_at(9),
                           .time_us = time_us,
                           .event = event};
}

static void seal_edges(weir_engine *engine, const weir_mutation *edges, size_t count) {
    weir_delta *delta;
    weir_delta_order *sorted;
    weir_engine_writer *writer;
    assert_ok(weir_delta_open(1u << 20, false, &delta));
    for (size_t i = 0; i < count; i++)
        assert_ok(weir_delta_apply(delta, &edges[i], 1));
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &sorted));
    assert_ok(weir_engine_writer_open(engine, &writer));
    assert_ok(weir_delta_order_walk(sorted, add, writer));
    assert_ok(weir_engine_writer_ingest(writer));
    weir_delta_order_close(sorted);
    weir_delta_release(delta);
}

/* How many files a reader is put before, up to the one before which he would stop. */
static unsigned files_for(weir_engine *engine, int64_t latest_us) {
    weir_engine_cursor *cursor;
    uint64_t rank;
    unsigned count = 0;
    assert_ok(weir_cold_files(engine, vertex_at(1), latest_us, &cursor));
    while (weir_engine_cursor_next_file(cursor, &rank))
        count++;
    weir_engine_cursor_close(cursor);
    return count;
}

static void expect_page(weir_engine *engine, weir_arena *rows, int64_t before_us, size_t capacity,
                        const uint64_t *events, size_t count, bool complete) {
    const weir_cold_query query = {.vertex = vertex_at(1), .before_us = before_us};
    weir_entry entries[8];
    weir_cold_page page = {.list = EDGES, .capacity = capacity, .entries = entries, .room = 8, .arena = rows};
    weir_arena_reset(rows);
    assert_ok(weir_cold_newest(engine, &query, &page, 1));
    assert_int_equal(page.count, count);
    assert_int_equal(!page.more, complete);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(entries[i].event, events[i]);
}

/* Two seals with edges of one moment: of these the one with the lesser id is met first, whichever file it lies in. A
 * reader goes on to a file that begins at the moment where he is, and not to one that begins a moment before. */
static void a_page_ends_where_the_next_file_begins(void **state) {
    (void)state;
    const int64_t day_us = 86400000000, t = 1700000000000000;
    const weir_mutation old[] = {edge_at(t - day_us, 30), edge_at(t - day_us + 1, 31)},
                        first[] = {edge_at(t - 1, 20), edge_at(t, 10)}, second[] = {edge_at(t, 11), edge_at(t + 5, 12)};
    const uint64_t newest[] = {12, 10, 11, 20, 31, 30};
    const weir_engine_opts opts = {.create = true, .last_rank = weir_bundle_last_rank};
    weir_engine *engine;
    weir_arena *rows;
    assert_ok(weir_arena_open(1u << 20, &rows));
    assert_ok(weir_engine_open(weir_test_path("ends"), &opts, &engine));
    seal_edges(engine, old, 2);
    seal_edges(engine, first, 2);
    seal_edges(engine, second, 2);
    for (size_t capacity = 1; capacity <= 7; capacity++)
        expect_page(engine, rows, INT64_MAX, capacity, newest, capacity < 6 ? capacity : 6, capacity >= 6);
    expect_page(engine, rows, t + 1, 1, newest + 1, 1, false);
    expect_page(engine, rows, t, 2, newest + 3, 2, false);
    expect_page(engine, rows, t - day_us + 1, 2, newest + 5, 1, true);
    assert_int_equal(files_for(engine, INT64_MAX), 3);
    assert_int_equal(files_for(engine, t - day_us), 1); /* the others have nothing so old */
    weir_engine_close(engine);
    assert_ok(weir_engine_open(weir_test_path("widest"), &opts, &engine)); /* as wide as its span may be */
    const weir_mutation wide[] = {edge_at(t - (1 << 20) + 1, 41), edge_at(t, 40)};
    const uint64_t oldest = 41;
    seal_edges(engine, wide, 2);
    expect_page(engine, rows, t - (1 << 20) + 2, 1, &oldest, 1, true);
    assert_int_equal(files_for(engine, t - (1 << 20)), 0);
    weir_engine_close(engine);
    assert_ok(weir_engine_open(weir_test_path("notes"), &opts, &engine)); /* their times are offsets */
    const weir_mutation noted[] = {edge_at(t, 50),
                                   {.kind = WEIR_NOTE_EVENT, .vertex = vertex_at(2), .time_us = 70, .event = 51}};
    seal_edges(engine, noted, 2);
    assert_int_equal(files_for(engine, t), 1);
    assert_int_equal(files_for(engine, t - day_us), 0);
    weir_engine_close(engine);
    weir_arena_close(rows);
}

/* An edge a day, a seal for each. Who wants those of three days passes four bundles, however many days lie behind. */
static void what_is_too_old_is_not_read(void **state) {
    (void)state;
    const int64_t day_us = 86400000000, t = 1700000000000000;
    const weir_engine_opts opts = {.create = true, .last_rank = weir_bundle_last_rank};
    weir_engine *engine;
    weir_entry entries[64];
    assert_ok(weir_engine_open(weir_test_path("days"), &opts, &engine));
    for (int64_t day = 0; day < 40; day++) {
        const weir_mutation edge = edge_at(t + day * day_us, (uint64_t)day + 1);
        weir_graph_budget budget = {.steps = 1000};
        const weir_cold_query query = {.vertex = vertex_at(1), .before_us = INT64_MAX, .budget = &budget};
        weir_cold_page page = {.list = EDGES,
                               .capacity = 64,
                               .bounded = true,
                               .newer_than_us = t + (day - 3) * day_us,
                               .entries = entries,
                               .room = 64};
        seal_edges(engine, &edge, 1);
        assert_ok(weir_cold_newest(engine, &query, &page, 1));
        assert_int_equal(page.count, day < 4 ? day + 1 : 4);
        assert_int_equal(1000 - budget.steps, page.count);
        assert_int_equal(page.more, day > 3);
    }
    weir_engine_close(engine);
}

/* A bundle of many seals says how old it is, so a reader of the past is not put before the file that has it. */
static void what_was_joined_is_no_older_than_it_is(void **state) {
    (void)state;
    const int64_t day_us = 86400000000, t = 1700000000000000;
    const weir_engine_opts opts = {
        .create = true, .bulk = true, .last_rank = weir_bundle_last_rank, .joining = &weir_joining};
    weir_engine *engine;
    assert_ok(weir_engine_open(weir_test_path("joined"), &opts, &engine));
    for (int64_t day = 0; day < 40; day++) {
        const weir_mutation edge = edge_at(t + day * day_us, (uint64_t)day + 1);
        seal_edges(engine, &edge, 1);
    }
    assert_ok(weir_engine_compact(engine));
    assert_int_equal(bundles_of(engine), 1);
    assert_int_equal(files_for(engine, t), 1);
    assert_int_equal(files_for(engine, t - 1), 0);
    weir_engine_close(engine);
}

/* Of some of the lists of a vertex, against a look at all that was sealed. */
static void the_oldest_is_what_was_sealed(void **state) {
    (void)state;
    world *w = world_open();
    for (unsigned round = 0; round < ROUNDS; round++) {
        weir_list some[LISTS];
        size_t some_count = 0, count;
        bool found, is = false;
        int64_t time_us, oldest_us = 0;
        weir_vertex vertex = vertex_at(weir_rng_below(&w->rng, VERTICES + 2));
        uint64_t of = 1 + weir_rng_below(&w->rng, (1u << LISTS) - 1), about = weir_rng_below(&w->rng, LISTS);
        const record *records = list_of(w, vertex, lists[about], &count);
        int64_t newer_than_us = a_moment(w, records, count);
        for (size_t l = 0; l < LISTS; l++) {
            if (!(of >> l & 1)) continue;
            some[some_count++] = lists[l];
            records = list_of(w, vertex, lists[l], &count);
            for (size_t i = 0; i < count; i++) {
                const weir_entry *e = &records[i].entry;
                if (e->deletion || (e->time_us <= newer_than_us && newer_than_us != INT64_MIN)) continue;
                if (!is || e->time_us < oldest_us) oldest_us = e->time_us;
                is = true;
            }
        }
        qsort(some, some_count, sizeof *some, order_lists);
        assert_ok(weir_cold_oldest(w->engine, vertex, some, some_count, newer_than_us, NULL, &found, &time_us));
        assert_int_equal(found, is);
        if (is) assert_int_equal(time_us, oldest_us);
    }
    world_close(w);
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

typedef struct walk {
    const world *w;
    size_t at, names;
} walk;

static weir_err meet(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    walk *k = context;
    uint8_t wanted[WEIR_EDGE_KEY_BYTES];
    (void)value, (void)value_length;
    if (*(const char *)key == 'N') {
        k->names++;
        return WEIR_OK;
    }
    assert_true(k->at < k->w->count);
    const record *r = &k->w->records[k->at++];
    size_t length = weir_record_key_write(r->vertex, r->list, &r->entry, wanted);
    assert_int_equal(key_length, length);
    assert_memory_equal(key, wanted, length);
    return WEIR_OK;
}

static void a_scan_is_all_that_was_sealed(void **state) {
    (void)state;
    world *w = world_open();
    weir_engine_cursor *cursor;
    walk k = {.w = w};
    size_t names = 0;
    for (size_t n = 0; n <= VERTICES; n++)
        names += w->named[n];
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_SCAN, &cursor));
    assert_ok(weir_cold_scan(cursor, meet, &k));
    assert_int_equal(k.at, w->count);
    assert_int_equal(k.names, names);
    weir_engine_cursor_close(cursor);
    world_close(w);
}

static void a_name_is_found_however_many_carry_it(void **state) {
    (void)state;
    world *w = world_open();
    weir_engine_cursor *all, *files;
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_POINT, &all));
    for (size_t n = 0; n <= VERTICES; n++) {
        weir_name name;
        bool found, in_files = false;
        uint64_t rank;
        assert_ok(weir_cold_name(all, vertex_at(n), &name, &found));
        assert_int_equal(found, w->named[n]);
        if (found) assert_true(name.key_length == 1 && *name.key == 'k');
        assert_ok(weir_cold_files(w->engine, vertex_at(n), INT64_MAX, &files));
        while (!in_files && weir_engine_cursor_next_file(files, &rank))
            assert_ok(weir_cold_name(files, vertex_at(n), &name, &in_files));
        assert_int_equal(in_files, w->named[n]);
        if (in_files) assert_true(name.key_length == 1 && *name.key == 'k');
        weir_engine_cursor_close(files);
    }
    weir_engine_cursor_close(all);
    world_close(w);
}

/* Behind a whole bundle stands a key that ends before its time: an error, and no byte behind its end is looked at. */
static void a_key_that_is_cut_short_is_damaged(void **state) {
    (void)state;
    const weir_engine_opts opts = {.create = true, .last_rank = weir_bundle_last_rank};
    const weir_bundle_key cut = {.vertex = vertex_at(1), .part = WEIR_BUNDLE_PART(EDGES), .newest_us = INT64_MAX};
    const weir_cold_query query = {.vertex = vertex_at(1), .before_us = INT64_MAX};
    const weir_name name = {.vertex_type = 0, .key_length = 1, .time_us = 5, .key = "k"};
    weir_bundle_writer bundle = {0};
    weir_engine *engine;
    weir_engine_writer *writer;
    weir_engine_cursor *cursor;
    weir_entry entry;
    weir_cold_page page = {.list = EDGES, .capacity = 1, .entries = &entry, .room = 1};
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    assert_ok(weir_engine_open(weir_test_path("cut"), &opts, &engine));
    assert_ok(weir_engine_writer_open(engine, &writer));
    weir_bundle_begin(&bundle, name.time_us, name.time_us);
    weir_bundle_put_name(&bundle, &name);
    assert_ok(weir_bundle_end(&bundle, (weir_bundle_key){.vertex = vertex_at(1), .part = WEIR_BUNDLE_NAMED}, key));
    assert_ok(weir_engine_writer_add(writer, key, sizeof key, bundle.value.bytes, bundle.value.length));
    weir_bundle_key_write(&cut, key);
    assert_ok(weir_engine_writer_add(writer, key, WEIR_BUNDLE_NEWEST_AT, "", 0));
    assert_ok(weir_engine_writer_ingest(writer));
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    assert_err(weir_cold_list(cursor, &query, &page), WEIR_ECORRUPT, "is damaged");
    weir_engine_cursor_close(cursor);
    weir_engine_close(engine);
    weir_buf_free(&bundle.value);
}

WEIR_TESTS(WEIR_CASE(a_key_that_is_cut_short_is_damaged), WEIR_CASE(a_page_is_what_was_sealed),
           WEIR_CASE(pages_of_one_pass_are_what_was_sealed), WEIR_CASE(a_page_ends_where_the_next_file_begins),
           WEIR_CASE(what_is_too_old_is_not_read), WEIR_CASE(what_was_joined_is_no_older_than_it_is),
           WEIR_CASE(the_oldest_is_what_was_sealed), WEIR_CASE(a_scan_is_all_that_was_sealed),
           WEIR_CASE(a_name_is_found_however_many_carry_it))
