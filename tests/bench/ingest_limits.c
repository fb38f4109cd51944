/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_limits.c - the records of the payments, without the payments: what bounds ingest, and what it must beat.
 *
 * One thread a shard, as ours has. Sorted files are as many as ours seals; RocksDB's have its own defaults and a
 * filter, and nothing of ours, while the engine's have what its readers need. The plain way is one database a shard,
 * batches of 1000 records in the order of events, memtables of 64 MiB, no log of its own (the events are in one),
 * flushed at the end.
 */
#include <stdio.h>

#include <rocksdb/c.h>

#include <weir/store/base/file.h>
#include <weir/store/base/thread.h>
#include <weir/store/engine/engine.h>

#include "ingest_bench.h"

#define BATCH_RECORDS  1000u
#define MEMTABLE_BYTES (64u << 20)

typedef struct share {
    const ingest_context *context;
    const ingest_records *records;
    char path[1024];
    weir_err err;
} share;

/* Both shards at once, each with a thread. */
static weir_err run_shares(const ingest_context *c, const char *name, weir_thread_main work,
                           weir_bench_sample *samplep) {
    static share shares[INGEST_SHARDS];
    weir_thread *threads[INGEST_SHARDS] = {NULL};
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < INGEST_SHARDS; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "%s-%u", name, i);
        shares[i] = (share){.context = c, .records = &c->shards[i]};
        err = weir_ingest_bench_fresh(c, folder, shares[i].path);
    }
    weir_bench_start(samplep);
    for (uint32_t i = 0; !err && i < INGEST_SHARDS; i++)
        err = weir_thread_start(name, WEIR_ROLE_WORKER, work, &shares[i], &threads[i]);
    for (uint32_t i = 0; i < INGEST_SHARDS; i++) {
        weir_thread_join(threads[i]);
        weir_err_keep(&err, shares[i].err);
    }
    weir_bench_stop(samplep, (double)c->records);
    for (uint32_t i = 0; i < INGEST_SHARDS; i++)
        weir_err_keep(&err, weir_folder_remove(shares[i].path));
    return err;
}

/* --- sorted files of the engine ----------------------------------------------------------------------------------- */

static weir_err write_file(weir_engine *engine, const ingest_records *r, size_t begin, size_t end) {
    weir_engine_writer *writer;
    weir_err err = weir_engine_writer_open(engine, &writer);
    if (err) return err;
    for (size_t i = begin; !err && i < end; i++) {
        const char *key = r->bytes.bytes + r->of[i].at;
        err =
            weir_engine_writer_add(writer, key, r->of[i].key_length, key + r->of[i].key_length, r->of[i].value_length);
    }
    if (!err) return weir_engine_writer_ingest(writer);
    weir_engine_writer_cancel(writer);
    return err;
}

static void write_engine(void *context) {
    share *s = context;
    const weir_engine_opts opts = {.create = true, .bulk = true};
    weir_engine *engine;
    uint64_t files = s->context->files;
    s->err = weir_engine_open(s->path, &opts, &engine);
    if (s->err) return;
    for (uint64_t f = 0; !s->err && f < files; f++)
        s->err = write_file(engine, s->records, s->records->count * f / files, s->records->count * (f + 1) / files);
    weir_engine_close(engine);
}

weir_err weir_ingest_bench_engine(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_shares(context, "engine", write_engine, samplep);
}

/* --- sorted files of RocksDB -------------------------------------------------------------------------------------- */

static weir_err check(char *message, const char *what) {
    if (!message) return WEIR_OK;
    weir_err err = WEIR_ERR(WEIR_EIO, "cannot %s: %.200s", what, message);
    rocksdb_free(message);
    return err;
}

static weir_err write_sorted_file(rocksdb_t *db, const rocksdb_options_t *options, const char *path,
                                  const ingest_records *r, size_t begin, size_t end) {
    char *message = NULL;
    rocksdb_envoptions_t *env = rocksdb_envoptions_create();
    rocksdb_ingestexternalfileoptions_t *how = rocksdb_ingestexternalfileoptions_create();
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_ingestexternalfileoptions_set_move_files(how, 1);
    rocksdb_sstfilewriter_open(writer, path, &message);
    for (size_t i = begin; !message && i < end; i++) {
        const char *key = r->bytes.bytes + r->of[i].at;
        rocksdb_sstfilewriter_put(writer, key, r->of[i].key_length, key + r->of[i].key_length, r->of[i].value_length,
                                  &message);
    }
    if (!message) rocksdb_sstfilewriter_finish(writer, &message);
    if (!message) rocksdb_ingest_external_file(db, &path, 1, how, &message);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_ingestexternalfileoptions_destroy(how);
    rocksdb_envoptions_destroy(env);
    return check(message, "write a sorted file");
}

static void write_sorted(void *context) {
    share *s = context;
    char path[sizeof s->path + 16], *message = NULL;
    const uint64_t files = s->context->files, count = s->records->count;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_t *db = rocksdb_open(options, s->path, &message);
    s->err = check(message, "open a database");
    snprintf(path, sizeof path, "%s/one.tmp", s->path);
    for (uint64_t f = 0; !s->err && f < files; f++)
        s->err = write_sorted_file(db, options, path, s->records, count * f / files, count * (f + 1) / files);
    if (db) rocksdb_close(db);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
}

weir_err weir_ingest_bench_sorted(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_shares(context, "sorted", write_sorted, samplep);
}

/* --- memtables ---------------------------------------------------------------------------------------------------- */

static weir_err put_all(rocksdb_t *db, const rocksdb_writeoptions_t *options, const ingest_records *r) {
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < r->count; i++) {
        char *message = NULL;
        const ingest_record *record = &r->of[r->shuffled[i]];
        const char *key = r->bytes.bytes + record->at;
        rocksdb_writebatch_put(batch, key, record->key_length, key + record->key_length, record->value_length);
        if ((i + 1) % BATCH_RECORDS && i + 1 < r->count) continue;
        rocksdb_write(db, options, batch, &message);
        rocksdb_writebatch_clear(batch);
        err = check(message, "write a batch");
    }
    rocksdb_writebatch_destroy(batch);
    return err;
}

static weir_err flush(rocksdb_t *db) {
    char *message = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &message);
    rocksdb_flushoptions_destroy(options);
    return check(message, "flush the memtable");
}

static void write_memtables(void *context) {
    share *s = context;
    char *message = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_writeoptions_disable_WAL(writes, 1);
    rocksdb_t *db = rocksdb_open(options, s->path, &message);
    s->err = check(message, "open a database");
    if (!s->err) s->err = put_all(db, writes, s->records);
    if (!s->err) s->err = flush(db);
    if (db) rocksdb_close(db);
    rocksdb_writeoptions_destroy(writes);
    rocksdb_options_destroy(options);
}

weir_err weir_ingest_bench_memtable(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_shares(context, "memtable", write_memtables, samplep);
}
