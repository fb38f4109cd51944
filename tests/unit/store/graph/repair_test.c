/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair_test.c - a shard is made anew beside its damaged files, and takes their place or does not.
 *
 * The log is an array of random events: edges with rows, names, deletions, notes. Each has a time of its own, so that a
 * record tells of which event it is.
 */
#include "trouble.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>
#include <weir/store/engine/engine.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>
#include <weir/store/graph/repair.h>

#include "damage.h"
#include "graph_private.h"

#define EVENTS   6000u
#define VERTICES 400u
#define ROW_MAX  1600u
#define SEALS    3u /* before compaction begins */
#define NO_EVENT UINT64_MAX

typedef struct event {
    uint64_t a, b, what;
    uint8_t row[200];
} event;

typedef struct world {
    trouble_store store;
    weir_rng rng;
    uint32_t row_length; /* 0: of each event its own */
    event events[EVENTS];
    uint64_t peak; /* of live bytes */
} world;

/* --- the log ---------------------------------------------------------------------------------------------------- */

static int64_t time_of(uint64_t offset) {
    return 1000000 + 10 * (int64_t)offset;
}

static uint32_t row_of(const world *w, uint64_t offset, uint8_t row[ROW_MAX]) {
    const event *e = &w->events[offset];
    for (size_t i = 0; i < ROW_MAX; i++)
        row[i] = (uint8_t)(e->row[i % sizeof e->row] + i / sizeof e->row);
    return w->row_length ? w->row_length : 20 + (uint32_t)(offset % 180);
}

/* The mutations of an event, by vertex; row and key live as long as the next call. */
static size_t mutations_of(const world *w, uint64_t offset, weir_mutation m[4]) {
    static _Thread_local uint8_t row[ROW_MAX];
    static _Thread_local char key[32];
    const event *e = &w->events[offset];
    size_t count = 1;
    uint32_t row_length = row_of(w, offset, row);
    m[0] = (weir_mutation){.time_us = time_of(offset), .event = offset + 1, .offset = offset};
    m[0].vertex = trouble_vertex(e->a);
    if (e->what == 0) {
        m[0].kind = WEIR_DELETE_VERTEX;
    } else if (e->what < 3) {
        m[0].kind = WEIR_PUT_VERTEX;
        m[0].key = key;
        m[0].key_length = (uint16_t)snprintf(key, sizeof key, "key-%llu", (unsigned long long)e->a);
    } else {
        m[0].kind = WEIR_PUT_EDGE;
        m[0].row = row;
        m[0].row_length = row_length;
        m[count++] = m[0];
        m[1].direction = WEIR_IN;
        m[1].vertex = m[0].neighbor = trouble_vertex(1000000 + e->b);
        m[1].neighbor = m[0].vertex;
    }
    m[count] = (weir_mutation){.kind = WEIR_NOTE_EVENT, .event = offset + 1, .offset = offset};
    m[count].time_us = (int64_t)offset;
    m[count].vertex = weir_graph_source_vertex(w->store.graph, w->store.source, 0);
    return count + 1;
}

static void submit_until(world *w, uint64_t end) {
    weir_mutation m[4];
    while (w->store.offset < end) {
        size_t count = mutations_of(w, w->store.offset, m);
        assert_ok(trouble_submit(&w->store, m, count, 0));
    }
    assert_ok(weir_graph_seal(w->store.graph));
}

static void world_open(world *w, uint64_t memory_bytes) {
    w->rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (size_t i = 0; i < EVENTS; i++) {
        event *e = &w->events[i];
        e->a = 1 + weir_rng_below(&w->rng, VERTICES);
        e->b = 1 + weir_rng_below(&w->rng, VERTICES);
        e->what = weir_rng_below(&w->rng, 20);
        for (size_t k = 0; k < sizeof e->row; k++)
            e->row[k] = (uint8_t)weir_rng_below(&w->rng, 256);
    }
    trouble_in_memory();
    assert_ok(trouble_open(&w->store, memory_bytes, 3600 * WEIR_US_PER_S));
}

static world *world_filled(uint64_t end) {
    world *w = weir_calloc(1, sizeof *w);
    assert_non_null(w);
    world_open(w, 64u << 20);
    for (uint64_t i = 1; i <= SEALS; i++)
        submit_until(w, end * i / SEALS);
    return w;
}

static void world_close(world *w) {
    assert_ok(trouble_close(&w->store));
    trouble_free(&w->store);
    weir_free(w);
}

/* --- damage ----------------------------------------------------------------------------------------------------- */

static weir_buf dump_shard(world *w, uint32_t shard) {
    return damage_dump(w->store.graph, shard);
}

static void is_the_same(world *w, uint32_t shard, const weir_buf *wanted) {
    damage_same(w->store.graph, shard, wanted);
}

/* A scrub must find it; what it hits may be about to be removed by a compaction. */
static void damage(world *w, uint32_t shard, uint64_t bits) {
    do
        damage_bits(&w->rng, "store", shard, bits);
    while (!weir_graph_scrub(w->store.graph, damage_never_wait, NULL));
    assert_err(weir_graph_health(w->store.graph), WEIR_ECORRUPT, NULL);
}

/* --- a repair --------------------------------------------------------------------------------------------------- */

static bool go_on(void *context) {
    (void)context;
    return true;
}

static void watch_memory(world *w) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    if (stats.live_bytes > w->peak) w->peak = stats.live_bytes;
}

/* As a pipeline does it: by vertex, names claimed, only what the shard wants. */
static weir_err add_event(world *w, weir_graph_repair *repair, uint64_t offset) {
    weir_mutation m[4], wanted[4];
    size_t count = mutations_of(w, offset, m), taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (!weir_graph_repair_wants(repair, &m[i])) continue;
        bool named = m[i].kind == WEIR_PUT_VERTEX && weir_graph_repair_claim(repair, m[i].vertex);
        if (!named) m[i].key_length = 0;
        wanted[taken++] = m[i];
    }
    watch_memory(w);
    return taken ? weir_graph_repair_add(repair, wanted, taken) : WEIR_OK;
}

static weir_err add_events(world *w, weir_graph_repair *repair, uint64_t begin, uint64_t omitted) {
    weir_err err = WEIR_OK;
    for (uint64_t offset = begin; !err && offset < w->store.offset; offset++)
        if (offset != omitted) err = add_event(w, repair, offset);
    return err ? err : weir_graph_repair_covered(repair, w->store.source, 0, w->store.offset);
}

static weir_err put_in_place(weir_graph_repair *repair) {
    weir_err err = weir_graph_repair_hold(repair);
    if (!err) err = weir_graph_repair_replace(repair, go_on, NULL);
    weir_graph_repair_release(repair);
    return err;
}

static weir_err make_anew(world *w, uint32_t shard, uint64_t omitted) {
    weir_graph_repair *repair;
    weir_err err = weir_graph_repair_begin(w->store.graph, shard, NULL, &repair);
    if (err) return err;
    err = add_events(w, repair, 0, omitted);
    if (!err) err = put_in_place(repair);
    weir_graph_repair_close(repair);
    return err;
}

static bool lies_beside(uint32_t shard, const char *suffix) {
    return damage_beside("store", shard, suffix);
}

static void what_was_damaged_is_as_it_was(void **state) {
    (void)state;
    world *w = world_filled(EVENTS * 3 / 4);
    for (uint64_t round = 0; round < weir_test_rounds(4); round++) {
        weir_buf wanted[TROUBLE_SHARDS];
        uint64_t sealed = weir_graph_offset_sealed(w->store.graph, w->store.source, 0);
        int64_t watermark = weir_graph_watermark(w->store.graph);
        for (uint32_t i = 0; i < TROUBLE_SHARDS; i++)
            wanted[i] = dump_shard(w, i);
        uint32_t shard = (uint32_t)weir_rng_below(&w->rng, TROUBLE_SHARDS);
        damage(w, shard, 1 + weir_rng_below(&w->rng, 20));
        assert_ok(make_anew(w, shard, NO_EVENT));
        assert_ok(weir_graph_health(w->store.graph));
        assert_ok(weir_graph_scrub(w->store.graph, damage_never_wait, NULL));
        assert_true(lies_beside(shard, ".damaged") && !lies_beside(shard, ".repair"));
        assert_ok(trouble_close(&w->store));
        assert_ok(trouble_open(&w->store, 64u << 20, 3600 * WEIR_US_PER_S));
        assert_int_equal(weir_graph_offset_sealed(w->store.graph, w->store.source, 0), sealed);
        assert_int_equal(weir_graph_watermark(w->store.graph), watermark);
        for (uint32_t i = 0; i < TROUBLE_SHARDS; i++) {
            is_the_same(w, i, &wanted[i]);
            weir_buf_free(&wanted[i]);
        }
    }
    submit_until(w, EVENTS);
    world_close(w);
}

/* It is the only copy of what could not be read. */
static void what_was_damaged_stays_where_it_cannot_be_renamed(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 3);
    weir_buf wanted = dump_shard(w, 0);
    damage(w, 0, 5);
    assert_ok(weir_fault_arm("rename:1:EIO:.damaged"));
    assert_ok(make_anew(w, 0, NO_EVENT));
    assert_ok(weir_fault_arm(NULL));
    assert_true(lies_beside(0, ".repair") && !lies_beside(0, ".damaged"));
    is_the_same(w, 0, &wanted);
    damage(w, 0, 5);
    assert_ok(make_anew(w, 0, NO_EVENT));
    assert_true(lies_beside(0, ".damaged") && !lies_beside(0, ".repair"));
    is_the_same(w, 0, &wanted);
    weir_buf_free(&wanted);
    world_close(w);
}

/* --- notes ------------------------------------------------------------------------------------------------------ */

static weir_err meet_note(void *context, const weir_event_note *note) {
    uint64_t *next = context; /* behind the one that is to come */
    assert_int_equal(note->offset, --*next);
    assert_int_equal(note->event, note->offset + 1);
    return WEIR_OK;
}

/* Which ids came before a checkpoint is known by its notes alone. */
static void the_notes_of_a_checkpoint_are_all_told(void **state) {
    (void)state;
    static const uint64_t counts[] = {SEALS, 700, 1024, 2500};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        world *w = world_filled(counts[i]);
        weir_vertex source = weir_graph_source_vertex(w->store.graph, w->store.source, 0);
        weir_graph_repair *repair;
        assert_ok(weir_folder_create(weir_test_path("checkpoints")));
        assert_ok(weir_graph_checkpoint(w->store.graph, weir_test_path("checkpoints/one")));
        uint32_t shard = weir_shard_of(source, TROUBLE_SHARDS);
        assert_ok(weir_graph_repair_begin(w->store.graph, shard, weir_test_path("checkpoints"), &repair));
        for (uint64_t from = 0; from <= counts[i]; from += 1 + weir_rng_below(&w->rng, counts[i])) {
            uint64_t next = counts[i];
            assert_ok(weir_graph_repair_notes(repair, source, from, meet_note, &next));
            assert_int_equal(next, from);
        }
        weir_graph_repair_close(repair);
        world_close(w);
        assert_ok(weir_folder_remove(weir_test_path("store")));
        assert_ok(weir_folder_remove(weir_test_path("checkpoints")));
    }
}

/* --- R1 --------------------------------------------------------------------------------------------------------- */

/* A key of the cold store: of a deletion or a bundle. */
typedef struct stored_key {
    uint8_t key[64];
    size_t length;
    bool has_event;   /* a record of the event that is looked for */
    uint64_t an_edge; /* the event of an edge in it; 0: it has none */
    bool told;        /* of what can be read of its file alone      */
} stored_key;

typedef struct key_set {
    weir_buf of;
} key_set;

static const stored_key *key_set_at(const key_set *s, size_t i) {
    return (const stored_key *)(const void *)s->of.bytes + i;
}

static size_t key_set_count(const key_set *s) {
    return s->of.length / sizeof(stored_key);
}

static void key_set_add(key_set *s, const void *key, size_t length, bool has_event, uint64_t an_edge) {
    stored_key added = {.length = length, .has_event = has_event, .an_edge = an_edge};
    assert_true(length <= sizeof added.key);
    memcpy(added.key, key, length);
    weir_buf_append(&s->of, &added, sizeof added);
    assert_ok(weir_buf_err(&s->of));
}

static void key_set_add_bundle(key_set *s, const weir_engine_cursor *cursor, const weir_bundle_key *bundle,
                               uint64_t offset) {
    weir_bundle_reader reader;
    weir_entry e;
    size_t length;
    bool has_event = false;
    uint64_t an_edge = 0;
    const void *value = weir_engine_cursor_value(cursor, &length);
    assert_true(weir_bundle_open(&reader, bundle, value, length));
    while (weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY) {
        bool note = WEIR_LIST_KIND(reader.list) == WEIR_LIST_KIND_EVENTS;
        has_event = has_event || e.time_us == (note ? (int64_t)offset : time_of(offset));
        if (WEIR_LIST_KIND(reader.list) == WEIR_LIST_KIND_EDGES && !e.deletion) an_edge = e.event;
    }
    const void *key = weir_engine_cursor_key(cursor, &length);
    key_set_add(s, key, length, has_event, an_edge);
}

static key_set keys_of(world *w, uint32_t shard, uint64_t offset) {
    key_set s = {0};
    weir_engine_cursor *cursor;
    assert_ok(weir_engine_cursor_open(w->store.graph->shards[shard]->engine, WEIR_ENGINE_SCAN, &cursor));
    for (weir_engine_cursor_seek(cursor, "Q", 1); weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor)) {
        size_t length;
        weir_bundle_key bundle;
        weir_vertex vertex;
        int64_t time_us;
        const void *key = weir_engine_cursor_key(cursor, &length);
        if (weir_bundle_key_read(key, length, &bundle)) {
            key_set_add_bundle(&s, cursor, &bundle, offset);
        } else {
            assert_true(weir_deleted_key_read(key, length, &vertex, &time_us));
            key_set_add(&s, key, length, time_us == time_of(offset), 0);
        }
    }
    assert_ok(weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
    return s;
}

static weir_err key_set_tell(void *context, const void *key, size_t key_length, const void *value,
                             size_t value_length) {
    const key_set *s = context;
    size_t low = 0;
    (void)value, (void)value_length;
    for (size_t end = key_set_count(s); low < end;) {
        size_t middle = low + (end - low) / 2, length = key_set_at(s, middle)->length;
        int order = memcmp(key_set_at(s, middle)->key, key, length < key_length ? length : key_length);
        if (order < 0 || (order == 0 && length < key_length))
            low = middle + 1;
        else
            end = middle;
    }
    stored_key *k = (stored_key *)(void *)s->of.bytes + low;
    if (low < key_set_count(s) && k->length == key_length && memcmp(k->key, key, key_length) == 0) k->told = true;
    return WEIR_OK;
}

/* The records of the event that is looked for, and can be read of their files alone. */
static uint64_t key_set_tell_all(world *w, uint32_t shard, key_set *s) {
    const weir_engine_range all = {"Q", "\xff", 1, 1};
    uint64_t count = 0;
    for (size_t i = 0; i < key_set_count(s); i++)
        ((stored_key *)(void *)s->of.bytes)[i].told = false;
    assert_ok(weir_engine_salvage(w->store.graph->shards[shard]->engine, &all, 1, key_set_tell, s));
    for (size_t i = 0; i < key_set_count(s); i++)
        count += key_set_at(s, i)->has_event && key_set_at(s, i)->told;
    return count;
}

/* As everybody reads, by way of all files, of whose indexes some are in memory. */
static bool can_be_read(world *w, uint32_t shard, const key_set *s) {
    bool read = false;
    for (size_t i = 0; i < key_set_count(s) && !read; i++) {
        const stored_key *k = key_set_at(s, i);
        weir_engine_cursor *cursor;
        size_t length = 0;
        if (!k->has_event) continue;
        assert_ok(weir_engine_cursor_open(w->store.graph->shards[shard]->engine, WEIR_ENGINE_SCAN, &cursor));
        weir_engine_cursor_seek(cursor, k->key, k->length);
        const void *found = weir_engine_cursor_valid(cursor) ? weir_engine_cursor_key(cursor, &length) : "";
        read = length == k->length && memcmp(found, k->key, length) == 0;
        weir_engine_cursor_close(cursor);
    }
    return read;
}

/* An event with an edge that can be read and stands behind what cannot; false: there is none. */
static bool behind_damage(world *w, const key_set *s, uint64_t *offsetp) {
    size_t found = 0;
    for (size_t i = 1; i < key_set_count(s); i++) {
        const stored_key *k = key_set_at(s, i);
        if (k->told && !key_set_at(s, i - 1)->told && k->an_edge && weir_rng_below(&w->rng, ++found) == 0)
            *offsetp = k->an_edge - 1;
    }
    return found > 0;
}

/* Whether it was refused. *by_caches counts what could be read only because of what the process keeps in memory. */
static bool r1_round(world *w, uint32_t shard, uint64_t *by_caches) {
    uint64_t omitted = weir_rng_below(&w->rng, w->store.offset);
    bool all_of_it = weir_rng_below(&w->rng, 3) == 0, must_be;
    weir_buf wanted = dump_shard(w, shard), other = dump_shard(w, 1 - shard);
    key_set keys = keys_of(w, shard, omitted);
    do {
        damage(w, shard, all_of_it ? 2000 : 1 + weir_rng_below(&w->rng, 40) * weir_rng_below(&w->rng, 2));
        must_be = key_set_tell_all(w, shard, &keys) > 0;
    } while (all_of_it && must_be);
    bool may_be = must_be || can_be_read(w, shard, &keys);
    if (!all_of_it && weir_rng_below(&w->rng, 2) && behind_damage(w, &keys, &omitted)) must_be = may_be = true;
    weir_err err = make_anew(w, shard, omitted);
    bool refused = must_be || (may_be && err);
    *by_caches += may_be && !must_be && !all_of_it;
    if (refused) {
        assert_err(err, WEIR_EDATA, "readable records that do not follow from the log");
        assert_err(weir_graph_health(w->store.graph), WEIR_ECORRUPT, NULL);
    } else {
        assert_ok(err);
    }
    assert_false(lies_beside(shard, ".repair"));
    assert_ok(make_anew(w, shard, NO_EVENT));
    is_the_same(w, shard, &wanted);
    is_the_same(w, 1 - shard, &other);
    weir_buf_free(&wanted);
    weir_buf_free(&other);
    weir_buf_free(&keys.of);
    return refused;
}

/* An event that the log has lost: as long as one of its records can be read, wherever it stands beside the damage, the
 * damaged store stays. */
static void r1_what_could_be_read_before_is_there_after(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 3);
    uint64_t refused = 0, rounds = 0, by_caches = 0, least = weir_test_rounds(30) / weir_test_part(1, 5);
    for (; rounds < least || refused == rounds; rounds++) /* what lies in a cache can be read, so most are refused */
        refused += r1_round(w, (uint32_t)weir_rng_below(&w->rng, TROUBLE_SHARDS), &by_caches);
    printf("%llu refused of %llu, %llu by what is in memory\n", (unsigned long long)refused, (unsigned long long)rounds,
           (unsigned long long)by_caches);
    assert_true(refused > 0 && (rounds < 30 || by_caches * 4 <= rounds));
    world_close(w);
}

/* What cannot be read just now is not damaged for ever, and may not be passed over: no try may take what was lost away.
 */
static void r1_what_fails_while_it_is_compared_is_not_passed_over(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 20);
    uint64_t omitted = w->store.offset, nth = 0, failures = 0, part = weir_test_part(1, 4);
    for (bool left = false; !left;) { /* the last that left something in this shard */
        key_set keys = keys_of(w, 0, --omitted);
        left = key_set_tell_all(w, 0, &keys) > 0;
        weir_buf_free(&keys.of);
    }
    for (bool met = true; met;) {
        char spec[64];
        weir_graph_repair *repair;
        assert_ok(weir_graph_repair_begin(w->store.graph, 0, NULL, &repair));
        assert_ok(add_events(w, repair, 0, omitted));
        nth += 7 * part; /* some of them, in order */
        snprintf(spec, sizeof spec, "engine:%d:EIO:once", (int)nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = put_in_place(repair);
        met = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        weir_graph_repair_close(repair);
        if (met && weir_err_is(err, WEIR_EIO))
            failures++;
        else
            assert_err(err, WEIR_EDATA, NULL);
    }
    assert_true(failures > 10 / part);
    world_close(w);
}

/* --- what is in the way ----------------------------------------------------------------------------------------- */

static void who_reads_for_long_has_it_put_off_and_it_goes_on(void **state) {
    (void)state;
    world *w = weir_calloc(1, sizeof *w);
    weir_graph_repair *repair;
    weir_engine_cursor *cursor;
    assert_non_null(w);
    w->row_length = ROW_MAX;
    world_open(w, 64u << 20);
    submit_until(w, EVENTS / 3);
    uint64_t begin = w->store.offset;
    damage(w, 1, 3);
    assert_ok(weir_graph_repair_begin(w->store.graph, 1, NULL, &repair));
    assert_ok(add_events(w, repair, 0, NO_EVENT));
    assert_ok(weir_engine_cursor_open(w->store.graph->shards[1]->engine, WEIR_ENGINE_SCAN, &cursor));
    assert_err(put_in_place(repair), WEIR_EBUSY, "while it is read");
    assert_err(weir_graph_health(w->store.graph), WEIR_ECORRUPT, NULL);
    weir_engine_cursor_close(cursor);
    submit_until(w, EVENTS); /* as much as becomes files of its own */
    assert_ok(add_events(w, repair, begin, NO_EVENT));
    assert_ok(put_in_place(repair));
    weir_graph_repair_close(repair);
    assert_ok(weir_graph_health(w->store.graph));
    weir_buf is = dump_shard(w, 1);
    damage(w, 1, 1); /* the same, made in one go */
    assert_ok(make_anew(w, 1, NO_EVENT));
    is_the_same(w, 1, &is);
    weir_buf_free(&is);
    world_close(w);
}

static weir_err no_missing(void *context, uint32_t source, uint32_t partition, uint64_t covered, uint64_t sealed) {
    uint64_t *missing = context;
    (void)source, (void)partition;
    *missing += sealed - covered;
    return WEIR_OK;
}

static void what_is_missing_is_named_and_must_be_added(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 10);
    weir_graph_repair *repair;
    uint64_t missing = 0, half = w->store.offset / 2;
    damage(w, 0, 1);
    assert_ok(weir_graph_repair_begin(w->store.graph, 0, NULL, &repair));
    assert_ok(weir_graph_repair_missing(repair, no_missing, &missing));
    assert_int_equal(missing, w->store.offset);
    for (uint64_t offset = 0; offset < half; offset++)
        assert_ok(add_event(w, repair, offset));
    assert_ok(weir_graph_repair_covered(repair, w->store.source, 0, half));
    missing = 0;
    assert_ok(weir_graph_repair_missing(repair, no_missing, &missing));
    assert_int_equal(missing, w->store.offset - half);
    assert_err(put_in_place(repair), WEIR_EINTERNAL, "is covered to");
    assert_ok(add_events(w, repair, half, NO_EVENT));
    assert_ok(put_in_place(repair));
    weir_graph_repair_close(repair);
    assert_ok(weir_graph_health(w->store.graph));
    world_close(w);
}

static void seal(void *context) {
    assert_ok(weir_graph_seal(context));
}

static bool waits_to_be_sealed(world *w, uint32_t shard) {
    weir_shard *s = w->store.graph->shards[shard];
    weir_mutex_lock(&s->mutex);
    bool frozen = s->frozen != NULL;
    weir_mutex_unlock(&s->mutex);
    return frozen;
}

/* Submits go on while it is held: they wait in memory, for longer than the sealer sleeps. */
static void nothing_is_sealed_while_it_is_held(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 10);
    weir_graph_repair *repair;
    weir_thread *sealer;
    uint64_t sealed = w->store.offset;
    assert_ok(weir_graph_repair_begin(w->store.graph, 0, NULL, &repair));
    assert_ok(add_events(w, repair, 0, NO_EVENT));
    assert_ok(weir_graph_repair_hold(repair));
    for (int i = 0; i < 100; i++) {
        weir_mutation m[4];
        size_t count = mutations_of(w, w->store.offset, m);
        assert_ok(trouble_submit(&w->store, m, count, 0));
    }
    assert_ok(weir_thread_start("sealer", WEIR_ROLE_TEST, seal, w->store.graph, &sealer));
    while (!waits_to_be_sealed(w, 0))
        trouble_nap();
    for (int i = 0; i < 700; i++)
        trouble_nap();
    assert_int_equal(weir_graph_offset_sealed(w->store.graph, w->store.source, 0), sealed);
    assert_ok(weir_graph_repair_replace(repair, go_on, NULL));
    assert_int_equal(weir_graph_offset_sealed(w->store.graph, w->store.source, 0), sealed);
    weir_graph_repair_close(repair);
    weir_thread_join(sealer);
    assert_int_equal(weir_graph_offset_sealed(w->store.graph, w->store.source, 0), w->store.offset);
    world_close(w);
}

static void a_full_disk_changes_nothing(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 3);
    weir_buf wanted = dump_shard(w, 0), other = dump_shard(w, 1);
    damage(w, 0, 4);
    assert_ok(weir_fault_arm("write:1:ENOSPC:.repair/"));
    assert_err(make_anew(w, 0, NO_EVENT), WEIR_EFULL, "space");
    assert_true(weir_fault_seen() > 0);
    assert_ok(weir_fault_arm(NULL));
    assert_err(weir_graph_health(w->store.graph), WEIR_ECORRUPT, NULL);
    assert_false(lies_beside(0, ".repair") || lies_beside(0, ".damaged"));
    is_the_same(w, 1, &other);
    assert_ok(make_anew(w, 0, NO_EVENT));
    is_the_same(w, 0, &wanted);
    weir_buf_free(&wanted);
    weir_buf_free(&other);
    world_close(w);
}

/* --- readers beside --------------------------------------------------------------------------------------------- */

typedef struct reader {
    world *w;
    atomic_bool over;
    atomic_uint reads;
    uint32_t degrees[VERTICES + 1];
} reader;

/* Right, or an error of damage. */
static void read_over_and_over(void *context) {
    reader *r = context;
    weir_rng rng = weir_rng_stream(1, 0, 0);
    while (!atomic_load(&r->over)) {
        uint64_t a = 1 + weir_rng_below(&rng, VERTICES);
        uint32_t count;
        weir_err err = trouble_degree(&r->w->store, a, WEIR_OUT, &count);
        if (err)
            assert_err(err, WEIR_ECORRUPT, NULL);
        else
            assert_int_equal(count, r->degrees[a]);
        atomic_fetch_add(&r->reads, 1);
    }
}

static void readers_go_on(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 3);
    reader r = {.w = w};
    weir_thread *threads[2];
    for (uint64_t a = 1; a <= VERTICES; a++)
        assert_ok(trouble_degree(&w->store, a, WEIR_OUT, &r.degrees[a]));
    assert_ok(trouble_close(&w->store)); /* with the windows that were read */
    assert_ok(trouble_open(&w->store, 64u << 20, 3600 * WEIR_US_PER_S));
    for (size_t i = 0; i < 2; i++)
        assert_ok(weir_thread_start("reader", WEIR_ROLE_TEST, read_over_and_over, &r, &threads[i]));
    for (uint64_t round = 0; round < weir_test_rounds(4); round++) {
        uint32_t shard = (uint32_t)(round % TROUBLE_SHARDS);
        unsigned before = atomic_load(&r.reads);
        damage(w, shard, 5);
        assert_ok(make_anew(w, shard, NO_EVENT));
        while (atomic_load(&r.reads) < before + 100)
            trouble_nap();
    }
    atomic_store(&r.over, true);
    for (size_t i = 0; i < 2; i++)
        weir_thread_join(threads[i]);
    assert_ok(weir_graph_health(w->store.graph));
    for (uint64_t a = 1; a <= VERTICES; a++) {
        uint32_t count;
        assert_ok(trouble_degree(&w->store, a, WEIR_OUT, &count));
        assert_int_equal(count, r.degrees[a]);
    }
    world_close(w);
}

/* --- memory, kills ---------------------------------------------------------------------------------------------- */

static void it_takes_no_more_memory_than_it_says(void **state) {
    (void)state;
    world *w = weir_calloc(1, sizeof *w);
    weir_alloc_stats before;
    assert_non_null(w);
    w->row_length = ROW_MAX;
    world_open(w, 80u << 20);
    submit_until(w, EVENTS);
    size_t quarter = w->store.graph->shards[0]->seal_bytes * 2 / 4;
    weir_alloc_stats_get(&before);
    assert_ok(make_anew(w, 0, NO_EVENT));
    uint64_t took = w->peak - before.live_bytes;
    printf("%llu KiB of %llu\n", (unsigned long long)took >> 10,
           (unsigned long long)(quarter + WEIR_GRAPH_REPAIR_NAMES_BYTES) >> 10);
    assert_true(w->row_length * (uint64_t)w->store.offset > 2 * quarter); /* more than once around */
    assert_true(took <= quarter + WEIR_GRAPH_REPAIR_NAMES_BYTES);
    world_close(w);
}

static void killed_at(const char *point, bool *replacedp) {
    world *w = world_filled(EVENTS / 3);
    weir_buf wanted = dump_shard(w, 0);
    int status;
    damage_a_block("store", 0);
    assert_ok(trouble_close(&w->store));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (trouble_open(&w->store, 64u << 20, 3600 * WEIR_US_PER_S)) _exit(1);
        if (weir_fault_kill_arm(point)) _exit(2);
        _exit(make_anew(w, 0, NO_EVENT) ? 3 : 4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(lies_beside(0, ".repair"));
    assert_ok(trouble_open(&w->store, 64u << 20, 3600 * WEIR_US_PER_S));
    assert_false(lies_beside(0, ".repair"));
    *replacedp = !weir_graph_scrub(w->store.graph, damage_never_wait, NULL);
    if (!*replacedp) assert_ok(make_anew(w, 0, NO_EVENT));
    is_the_same(w, 0, &wanted);
    weir_buf_free(&wanted);
    world_close(w);
    assert_ok(weir_folder_remove(weir_test_path("store")));
}

static void a_kill_leaves_one_or_the_other_and_no_scratch(void **state) {
    (void)state;
    static const struct {
        const char *point;
        bool replaced;
    } cases[] = {{"repair.flushed:1", false},
                 {"repair.whole:1", false},
                 {"engine.replaced:1", true},
                 {"repair.replaced:1", true}};
    if (strcmp(weir_test_sanitizer(), "thread") == 0)
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool replaced;
        killed_at(cases[i].point, &replaced);
        assert_int_equal(replaced, cases[i].replaced);
    }
}

/* --- scrub ------------------------------------------------------------------------------------------------------ */

static weir_err count_files(void *context, const weir_graph_trouble *trouble) {
    uint32_t *shards = context;
    assert_string_equal(trouble->part, "files");
    *shards |= 1u << trouble->shard;
    return WEIR_OK;
}

static bool end_at_once(void *context, uint64_t bytes) {
    uint64_t *calls = context;
    (void)bytes;
    ++*calls;
    return false;
}

static void a_scrub_looks_at_every_shard_and_ends_when_told(void **state) {
    (void)state;
    world *w = world_filled(EVENTS / 10);
    uint64_t calls = 0;
    uint32_t shards = 0;
    assert_ok(weir_graph_scrub(w->store.graph, damage_never_wait, NULL));
    assert_ok(weir_graph_health(w->store.graph));
    assert_ok(weir_graph_scrub(w->store.graph, end_at_once, &calls));
    assert_int_equal(calls, 1);
    for (uint32_t i = 0; i < TROUBLE_SHARDS; i++)
        damage(w, i, 1);
    assert_ok(weir_graph_troubles(w->store.graph, count_files, &shards));
    assert_int_equal(shards, (1u << TROUBLE_SHARDS) - 1);
    world_close(w);
}

static void a_shard_s_identity_is_written_anew(void **state) {
    (void)state;
    world *w = world_filled(30);
    const char *path = weir_test_path("store/shard-001/identity");
    char *was, *is;
    size_t length;
    assert_ok(weir_file_load(path, 1000, &was, &length));
    assert_true(damage_flip(path, length / 2, 1));
    assert_ok(weir_graph_scrub(w->store.graph, damage_never_wait, NULL));
    assert_ok(weir_file_load(path, 1000, &is, &length));
    assert_string_equal(is, was);
    weir_free(is);
    assert_ok(weir_file_remove(path));
    assert_ok(weir_graph_scrub(w->store.graph, damage_never_wait, NULL));
    assert_ok(weir_file_load(path, 1000, &is, &length));
    assert_string_equal(is, was);
    weir_free(is);
    weir_free(was);
    world_close(w);
}

WEIR_TESTS(WEIR_CASE(the_notes_of_a_checkpoint_are_all_told), WEIR_CASE(what_was_damaged_is_as_it_was),
           WEIR_CASE(what_was_damaged_stays_where_it_cannot_be_renamed),
           WEIR_CASE(r1_what_could_be_read_before_is_there_after),
           WEIR_CASE(r1_what_fails_while_it_is_compared_is_not_passed_over),
           WEIR_CASE(who_reads_for_long_has_it_put_off_and_it_goes_on),
           WEIR_CASE(what_is_missing_is_named_and_must_be_added), WEIR_CASE(nothing_is_sealed_while_it_is_held),
           WEIR_CASE(a_full_disk_changes_nothing), WEIR_CASE(readers_go_on),
           WEIR_CASE(it_takes_no_more_memory_than_it_says), WEIR_CASE(a_kill_leaves_one_or_the_other_and_no_scratch),
           WEIR_CASE(a_scrub_looks_at_every_shard_and_ends_when_told), WEIR_CASE(a_shard_s_identity_is_written_anew))
