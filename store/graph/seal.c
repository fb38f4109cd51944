/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.c - a frozen delta becomes part of the cold store, with the offsets that it makes true.
 *
 *   1 write one sorted file: offsets, deletions, bundles    a crash here leaves a file that the store does not know
 *   2 ingest it                                             GRAPH-S3: all of it and its offsets, or nothing
 *   3 update the windows, forget answers about deletions    GRAPH-S5
 *   4 drop the delta                                        who still holds it meets records twice, and counts them
 *   once
 *
 * The order 2, 3, 4 is the correctness of reads: at each step what a reader can reach is all there.
 */
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/format/key.h>

#include "shard.h"
#include "trim.h"

typedef struct seal {
    weir_engine_writer *writer;
    weir_offsets *sealed;
    weir_delta_order *order;
    weir_cache *cache;
    weir_cache_marks *marks;
    weir_remains *remains;
    weir_remains_marks remains_marks;
} seal;

static weir_err seal_write_record(void *context, const uint8_t *key, size_t key_length, const uint8_t *value,
                                  size_t value_length) {
    const seal *s = context;
    return weir_engine_writer_add(s->writer, key, key_length, value, value_length);
}

static weir_err seal_put_offset(void *writer, uint32_t source, uint32_t partition, uint64_t offset,
                                const weir_event_clock *clock) {
    uint8_t key[WEIR_OFFSET_KEY_BYTES], value[8 + WEIR_EVENT_CLOCK_BYTES_MAX];
    weir_offset_key_write(source, partition, key);
    weir_put_u64(value, offset);
    size_t length = 8 + weir_event_clock_write(clock, value + 8);
    WEIR_ASSERT(length <= sizeof value);
    return weir_engine_writer_add(writer, key, sizeof key, value, length);
}

/* Not of a partition that has come no further: the store has its offset, and most partitions of a store that has loaded
 * many files are read no more. */
static weir_err seal_write_moved_offset(void *context, uint32_t source, uint32_t partition, uint64_t offset,
                                        const weir_event_clock *clock) {
    const seal *s = context;
    uint64_t sealed;
    if (weir_offsets_get(s->sealed, source, partition, &sealed) && sealed == offset) return WEIR_OK;
    return seal_put_offset(s->writer, source, partition, offset, clock);
}

static weir_err seal_write_newest(weir_engine_writer *writer, int64_t newest_us, weir_watermark_mark mark,
                                  weir_trimmed trimmed) {
    uint8_t key[WEIR_NEWEST_KEY_BYTES], value[WEIR_NEWEST_BYTES];
    weir_newest_key_write(key);
    weir_put_u64(value, (uint64_t)newest_us);
    weir_put_u64(value + 8, (uint64_t)mark.now_us);
    weir_put_u64(value + 16, mark.turn);
    weir_put_u64(value + 24, (uint64_t)trimmed.now_us);
    weir_put_u64(value + 32, (uint64_t)trimmed.whole_from_us);
    return weir_engine_writer_add(writer, key, sizeof key, value, sizeof value);
}

static weir_err seal_update_window(void *context, weir_vertex vertex, weir_list list, const weir_entry *entries,
                                   size_t count) {
    const seal *s = context;
    if (weir_cache_marks_may_have(s->marks, vertex, list)) weir_cache_seal_list(s->cache, vertex, list, entries, count);
    if (weir_remains_marks_may_have(&s->remains_marks, vertex, list)) weir_remains_drop(s->remains, vertex, list);
    return WEIR_OK;
}

/* Most lists of a seal have no window, and while a file is loaded none has. */
static weir_err seal_update_windows(seal *s) {
    s->marks = weir_cache_marks_take(s->cache);
    weir_remains_marks_take(s->remains, &s->remains_marks);
    bool any = weir_cache_marks_any(s->marks) || s->remains_marks.any;
    weir_err err = any ? weir_delta_order_lists(s->order, seal_update_window, s) : WEIR_OK;
    weir_cache_marks_free(s->marks);
    return err;
}

static weir_err seal_write_records(const weir_shard *shard, seal *s, weir_trimmed trimmed) {
    weir_err err = weir_offsets_walk(shard->frozen_offsets, seal_write_moved_offset, s);
    if (!err) err = seal_write_newest(s->writer, shard->frozen_newest_us, shard->frozen_mark, trimmed);
    if (!err) err = weir_delta_order_walk_deletions(s->order, seal_write_record, s);
    weir_kill_point("seal.half_written");
    return err ? err : weir_delta_order_walk(s->order, seal_write_record, s);
}

/* The time of the newest event may be that of one that is not sealed yet: it is for people. */
weir_err weir_shard_write_sealed(weir_shard *shard, weir_engine_writer *writer, weir_trimmed trimmed) {
    weir_mutex_lock(&shard->mutex);
    weir_watermark_mark mark = shard->frozen_mark;
    weir_mutex_unlock(&shard->mutex);
    weir_err err = weir_offsets_walk(shard->sealed, seal_put_offset, writer);
    return err ? err : seal_write_newest(writer, atomic_load(&shard->event_time_last_us), mark, trimmed);
}

/* After an error the delta stays frozen and is sealed again: once its file is in the store, that changes nothing
 * (GRAPH-S4). */
weir_err weir_shard_write_frozen(weir_shard *shard) {
    WEIR_ON_ROLE(WORKER);
    weir_delta *delta = shard->frozen; /* only this thread sets it to NULL */
    seal s = {.cache = shard->cache, .remains = shard->remains, .sealed = shard->sealed};
    weir_trimmed trimmed;
    WEIR_ASSERT(delta);
    const uint64_t records = weir_delta_records(delta);
    weir_kill_point("seal.begin");

    /* 1: a file that nothing refers to yet */
    weir_err err = weir_delta_order_open(delta, &s.order);
    if (!err) err = weir_engine_writer_open(shard->engine, &s.writer);
    if (err) goto done;
    err = seal_write_records(shard, &s, shard->trimmed);
    if (err) {
        weir_engine_writer_cancel(s.writer);
        goto done;
    }

    /* 2: into the store. A store that is about to take its place gets the same; what fails there is not the seal's. */
    err = weir_engine_writer_ingest(s.writer); /* GRAPH-S3 */
    if (err) goto done;
    s.writer = weir_trim_seal_begin(shard->trim, &trimmed);
    if (s.writer) weir_trim_seal_end(shard->trim, s.writer, seal_write_records(shard, &s, trimmed));
    weir_kill_point("seal.ingested");

    /* 3: windows, offsets and answers say what the store has now (GRAPH-S5) */
    weir_cache_sealed(shard->cache);
    err = seal_update_windows(&s);
    if (!err) err = weir_offsets_copy(shard->sealed, shard->frozen_offsets);
    if (err) goto done;
    weir_deleted_sealed(shard->deleted);

    /* 4: the delta is not needed any more */
    weir_mutex_lock(&shard->mutex);
    shard->frozen = NULL;
    shard->sealed_us = shard->frozen_mark.now_us;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    weir_delta_release(delta);
    atomic_fetch_add_explicit(&shard->sealed_records, records, memory_order_relaxed);
    weir_kill_point("seal.end");
done:
    weir_delta_order_close(s.order);
    return err;
}
