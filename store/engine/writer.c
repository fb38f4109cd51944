/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - a sorted file, from its first key to its place in the store.
 *
 *   open ──add*──► ingest: finish (syncs the file) ──► RocksDB links it and syncs its manifest: visible and durable
 *     └────────► cancel: the file is removed
 *
 * The file lies in the engine's folder under a name that RocksDB does not know; what a crash leaves there is removed
 * when the next writer wants the name.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#include "blocks.h"
#include "engine_private.h"

struct weir_engine_writer {
    weir_engine *engine;
    weir_rocks_writer *writer;
    char *path;
    uint64_t number, records;
    bool finished, ingested;
    size_t last_length;
    uint8_t last_key[WEIR_BLOCKS_KEY_MAX];
};

static void engine_writer_free(weir_engine_writer *writer) {
    if (!writer) return;
    if (writer->writer) weir_rocks_writer_close(writer->writer);
    weir_free(writer->path);
    weir_free(writer);
}

static weir_err engine_writer_open(weir_engine *engine, bool in_parts, weir_engine_writer **writerp) {
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    *writerp = NULL;
    if (engine->opts.read_only) return WEIR_ERR(WEIR_EPERM, "%s is open for reading only", engine->folder);
    weir_engine_writer *writer = weir_calloc(1, sizeof *writer);
    if (writer) writer->number = atomic_fetch_add(&engine->next_file, 1);
    size_t size = strlen(engine->folder) + 32;
    if (writer) writer->path = weir_malloc(size);
    if (!writer || !writer->path) {
        engine_writer_free(writer);
        return WEIR_NOMEM("while writing into %s", engine->folder);
    }
    snprintf(writer->path, size, "%s/seal-%llu.tmp", engine->folder, (unsigned long long)writer->number);
    writer->engine = engine;
    unlink(writer->path);
    if (!weir_engine_enter(engine, &err)) {
        engine_writer_free(writer);
        return err;
    }
    if (!weir_rocks_writer_open(engine->db, writer->path, in_parts, &writer->writer, &status)) {
        err = weir_engine_error(engine, "begin a file in", &status);
        weir_engine_writer_cancel(writer);
        return err;
    }
    *writerp = writer;
    return WEIR_OK;
}

weir_err weir_engine_writer_open(weir_engine *engine, weir_engine_writer **writerp) {
    return engine_writer_open(engine, false, writerp);
}

weir_err weir_engine_writer_open_large(weir_engine *engine, weir_engine_writer **writerp) {
    return engine_writer_open(engine, true, writerp);
}

weir_err weir_engine_writer_add(weir_engine_writer *writer, const void *key, size_t key_length, const void *value,
                                size_t value_length) {
    weir_rocks_status status;
    WEIR_ASSERT(!writer->finished && key_length > 0 && key_length <= WEIR_BLOCKS_KEY_MAX);
    if (writer->records && weir_blocks_compare(key, key_length, writer->last_key, writer->last_length) <= 0) {
        return WEIR_ERR(WEIR_EORDER, "record %llu of %s does not sort behind the one before it",
                        (unsigned long long)writer->records, writer->path);
    }
    if (!weir_rocks_writer_add(writer->writer, key, key_length, value, value_length, &status))
        return weir_engine_error(writer->engine, "write a file in", &status);
    memcpy(writer->last_key, key, key_length);
    writer->last_length = key_length;
    writer->records++;
    return WEIR_OK;
}

uint64_t weir_engine_writer_bytes(const weir_engine_writer *writer) {
    return weir_rocks_writer_bytes(writer->writer);
}

weir_err weir_engine_writer_finish(weir_engine_writer *writer) {
    weir_rocks_status status;
    WEIR_ASSERT(!writer->ingested);
    if (writer->records == 0 || writer->finished) return WEIR_OK;
    weir_err err = WEIR_OK;
    if (!weir_rocks_writer_finish(writer->writer, &status))
        err = weir_engine_error(writer->engine, "finish a file in", &status);
    writer->finished = !err;
    return err;
}

weir_err weir_engine_writer_ingest(weir_engine_writer *writer) {
    weir_engine *engine = writer->engine;
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(!writer->ingested);
    if (writer->records > 0) {
        err = weir_engine_writer_finish(writer);
        weir_kill_point("engine.finished");
        if (!err && !weir_rocks_ingest(writer->writer, &status)) { /* ENGINE-N1, ENGINE-N2 */
            bool damaged = status.kind == WEIR_ROCKS_CORRUPT;
            err = weir_engine_error(engine, "take a file into", &status);
            if (damaged && weir_rocks_put_file(engine->db, writer->path, &status)) err = WEIR_OK; /* ENGINE-N1 */
            if (err) weir_engine_stopped(engine, err);
        }
        weir_kill_point("engine.ingested");
    }
    writer->ingested = !err;
    weir_engine_writer_cancel(writer); /* a link of it is in the store, or it is not wanted */
    return err;
}

void weir_engine_writer_cancel(weir_engine_writer *writer) {
    weir_engine *engine = writer ? writer->engine : NULL;
    if (!writer) return;
    WEIR_ASSERT(writer->number < atomic_load(&engine->next_file));
    unlink(writer->path);               /* before another gets its name */
    uint64_t next = writer->number + 1; /* one that failed left no file: the next has its name, and says the same */
    if (!writer->ingested) (void)atomic_compare_exchange_strong(&engine->next_file, &next, writer->number);
    engine_writer_free(writer); /* before the engine may be replaced: it is made of its options */
    weir_engine_leave(engine);
}
