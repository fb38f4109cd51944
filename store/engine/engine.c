/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - RocksDB behind our error type; opening, reading and keeping.
 *
 * Debian's RocksDB is built with its assertions on: a slip in its API is an abort, not an error. So handles are
 * private, and the order of closing is fixed here once: cursors before the engine, the engine before its options, all
 * before the cache that they share.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/file.h>

#include "engine_private.h"

#define OWN_CACHE_BYTES (8u << 20)
#define BLOCK_BYTES     8192u
#define FILTER_BITS     10.0
#define SCAN_READ_AHEAD (2u << 20)
#define LEVEL0_TRIGGER  4
#define BACKGROUND_JOBS 2
#define LOG_BYTES_MAX   (1u << 20)
#define LOG_FILES       2
#define LOG_LEVEL_WARN  2

struct weir_engine_cache {
    rocksdb_cache_t *cache;
};

struct weir_engine_cursor {
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iterator;
    weir_engine *engine;
};

/* RocksDB says what went wrong in words only; the first of them is its status. */
weir_err weir_engine_error(const weir_engine *engine, const char *what, char *message) {
    weir_code code = WEIR_EIO;
    if (!message) return WEIR_OK;
    const char *advice = "look at the disk";
    if (strstr(message, "No space left")) {
        code = WEIR_EFULL;
        advice = "free some space and try again";
    } else if (strstr(message, "lock") && strstr(message, "LOCK")) {
        code = WEIR_EBUSY;
        advice = "stop the other process first";
    } else if (strncmp(message, "Corruption", 10) == 0) {
        code = WEIR_ECORRUPT;
        advice = "restore a checkpoint, or delete the shard's folder and let the log rebuild it";
    } else if (strstr(message, "does not exist")) {
        code = WEIR_ENOTFOUND;
        advice = "check the path";
    }
    weir_err err = WEIR_ERR(code, "cannot %s %s: %.300s; %s", what, engine->folder, message, advice);
    rocksdb_free(message);
    return err;
}

weir_err weir_engine_cache_open(uint64_t bytes, weir_engine_cache **cachep) {
    *cachep = NULL;
    weir_engine_cache *cache = weir_calloc(1, sizeof *cache);
    if (!cache) return WEIR_ERR(WEIR_ENOMEM, "no memory for a block cache");
    cache->cache = rocksdb_cache_create_lru(bytes);
    *cachep = cache;
    return WEIR_OK;
}

void weir_engine_cache_close(weir_engine_cache *cache) {
    if (!cache) return;
    rocksdb_cache_destroy(cache->cache);
    weir_free(cache);
}

static void table_options(weir_engine *engine, rocksdb_cache_t *cache) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_checksum(table, 4); /* XXH3 */
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    /* The filters hold prefixes, which is what every read seeks by: names are their own prefix. */
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(FILTER_BITS));
    rocksdb_block_based_options_set_whole_key_filtering(table, 0);
    rocksdb_options_set_block_based_table_factory(engine->options, table);
    rocksdb_block_based_options_destroy(table);
}

/* What the C interface has no setter for goes through the option string, which refuses a name that it does not know. */
static weir_err checking_options(weir_engine *engine) {
    char *message = NULL;
    rocksdb_options_t *base = engine->options;
    rocksdb_options_t *checked = rocksdb_options_create();
    rocksdb_get_options_from_string(base,
                                    "verify_sst_unique_id_in_manifest=true;force_consistency_checks=true;"
                                    "file_checksum_gen_factory=FileChecksumGenCrc32cFactory",
                                    checked, &message);
    if (message) {
        rocksdb_options_destroy(checked);
        return weir_engine_error(engine, "set the options of", message);
    }
    engine->options = checked;
    rocksdb_options_destroy(base);
    return WEIR_OK;
}

static weir_err engine_options(weir_engine *engine, const weir_engine_opts *opts) {
    engine->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(engine->options, opts->create);
    rocksdb_options_set_paranoid_checks(engine->options, 1);
    rocksdb_options_set_compression(engine->options, rocksdb_lz4_compression);
    rocksdb_options_set_prefix_extractor(engine->options,
                                         rocksdb_slicetransform_create_fixed_prefix(WEIR_ENGINE_PREFIX_BYTES));
    rocksdb_options_set_level0_file_num_compaction_trigger(engine->options, LEVEL0_TRIGGER);
    rocksdb_options_set_disable_auto_compactions(engine->options, opts->bulk);
    rocksdb_options_set_max_background_jobs(engine->options, BACKGROUND_JOBS);
    rocksdb_options_set_keep_log_file_num(engine->options, LOG_FILES);
    rocksdb_options_set_max_log_file_size(engine->options, LOG_BYTES_MAX);
    rocksdb_options_set_info_log_level(engine->options, LOG_LEVEL_WARN);
    rocksdb_cache_t *own = opts->cache ? NULL : rocksdb_cache_create_lru(OWN_CACHE_BYTES);
    table_options(engine, opts->cache ? opts->cache->cache : own);
    if (own) rocksdb_cache_destroy(own); /* the table options hold it now */
    return checking_options(engine);
}

weir_err weir_engine_open(const char *folder, const weir_engine_opts *opts, weir_engine **enginep) {
    char *message = NULL;
    *enginep = NULL;
    weir_engine *engine = weir_calloc(1, sizeof *engine);
    if (!engine) return WEIR_ERR(WEIR_ENOMEM, "no memory to open %s", folder);
    weir_err err = WEIR_OK;
    engine->read_only = opts->read_only;
    engine->folder = weir_strdup(folder);
    if (!engine->folder) err = WEIR_ERR(WEIR_ENOMEM, "no memory to open %s", folder);
    if (!err && opts->create) err = weir_folder_create(folder);
    if (!err) err = engine_options(engine, opts);
    if (err) goto err;
    engine->point = rocksdb_readoptions_create();
    if (opts->read_only) {
        engine->db = rocksdb_open_for_read_only(engine->options, folder, 0, &message);
    } else {
        engine->db = rocksdb_open(engine->options, folder, &message);
    }
    err = weir_engine_error(engine, "open the store", message);
    if (err) goto err;
    *enginep = engine;
    return WEIR_OK;
err:
    weir_engine_close(engine);
    return err;
}

void weir_engine_close(weir_engine *engine) {
    if (!engine) return;
    if (engine->db) rocksdb_close(engine->db);
    if (engine->point) rocksdb_readoptions_destroy(engine->point);
    if (engine->options) rocksdb_options_destroy(engine->options);
    weir_free(engine->folder);
    weir_free(engine);
}

/* --- reading --------------------------------------------------------------------------------------------------- */

weir_err weir_engine_get(weir_engine *engine, const void *key, size_t length, weir_buf *out, bool *foundp) {
    char *message = NULL;
    *foundp = false;
    weir_buf_clear(out);
    rocksdb_pinnableslice_t *slice = rocksdb_get_pinned(engine->db, engine->point, key, length, &message);
    if (message) return weir_engine_error(engine, "read from", message);
    if (!slice) return WEIR_OK;
    size_t value_length;
    const char *value = rocksdb_pinnableslice_value(slice, &value_length);
    weir_buf_append(out, value, value_length);
    rocksdb_pinnableslice_destroy(slice);
    *foundp = true;
    return weir_buf_err(out);
}

weir_err weir_engine_cursor_open(weir_engine *engine, weir_engine_use use, weir_engine_cursor **cursorp) {
    *cursorp = NULL;
    weir_engine_cursor *cursor = weir_calloc(1, sizeof *cursor);
    if (!cursor) return WEIR_ERR(WEIR_ENOMEM, "no memory for a cursor");
    cursor->engine = engine;
    cursor->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(cursor->options, 1); /* N3 */
    if (use == WEIR_ENGINE_SCAN) {
        rocksdb_readoptions_set_total_order_seek(cursor->options, 1);
        rocksdb_readoptions_set_fill_cache(cursor->options, 0);
        rocksdb_readoptions_set_readahead_size(cursor->options, SCAN_READ_AHEAD);
    } else {
        rocksdb_readoptions_set_prefix_same_as_start(cursor->options, 1);
    }
    cursor->iterator = rocksdb_create_iterator(engine->db, cursor->options);
    *cursorp = cursor;
    return WEIR_OK;
}

void weir_engine_cursor_seek(weir_engine_cursor *cursor, const void *key, size_t length) {
    rocksdb_iter_seek(cursor->iterator, key, length);
}

void weir_engine_cursor_seek_last(weir_engine_cursor *cursor, const void *key, size_t length) {
    rocksdb_iter_seek_for_prev(cursor->iterator, key, length);
}

void weir_engine_cursor_previous(weir_engine_cursor *cursor) {
    rocksdb_iter_prev(cursor->iterator);
}

bool weir_engine_cursor_valid(const weir_engine_cursor *cursor) {
    return rocksdb_iter_valid(cursor->iterator);
}

const void *weir_engine_cursor_key(const weir_engine_cursor *cursor, size_t *lengthp) {
    return rocksdb_iter_key(cursor->iterator, lengthp);
}

const void *weir_engine_cursor_value(const weir_engine_cursor *cursor, size_t *lengthp) {
    return rocksdb_iter_value(cursor->iterator, lengthp);
}

void weir_engine_cursor_next(weir_engine_cursor *cursor) {
    rocksdb_iter_next(cursor->iterator);
}

weir_err weir_engine_cursor_err(const weir_engine_cursor *cursor) {
    char *message = NULL;
    rocksdb_iter_get_error(cursor->iterator, &message);
    return weir_engine_error(cursor->engine, "read from", message);
}

void weir_engine_cursor_close(weir_engine_cursor *cursor) {
    if (!cursor) return;
    rocksdb_iter_destroy(cursor->iterator);
    rocksdb_readoptions_destroy(cursor->options);
    weir_free(cursor);
}

/* --- keeping --------------------------------------------------------------------------------------------------- */

weir_err weir_engine_checkpoint(weir_engine *engine, const char *folder) {
    char *message = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(engine->db, &message);
    if (!message) rocksdb_checkpoint_create(checkpoint, folder, 0, &message);
    if (checkpoint) rocksdb_checkpoint_object_destroy(checkpoint);
    return weir_engine_error(engine, "make a checkpoint of", message);
}

weir_err weir_engine_verify(weir_engine *engine, uint64_t *keysp) {
    weir_engine_cursor *cursor;
    *keysp = 0;
    weir_err err = weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    for (weir_engine_cursor_seek(cursor, "", 0); weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor)) {
        (*keysp)++;
    }
    err = weir_err_prefix(weir_engine_cursor_err(cursor), "behind key %llu", (unsigned long long)*keysp);
    weir_engine_cursor_close(cursor);
    return err;
}

weir_err weir_engine_compact(weir_engine *engine) {
    if (engine->read_only) return WEIR_ERR(WEIR_EPERM, "%s is open for reading only", engine->folder);
    rocksdb_compact_range(engine->db, NULL, 0, NULL, 0);
    return WEIR_OK;
}

static uint64_t property(weir_engine *engine, const char *name) {
    uint64_t value = 0;
    return rocksdb_property_int(engine->db, name, &value) == 0 ? value : 0;
}

static uint64_t property_text(weir_engine *engine, const char *name) {
    char *text = rocksdb_property_value(engine->db, name);
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    if (text) rocksdb_free(text);
    return value;
}

static uint64_t live_files(weir_engine *engine) {
    const rocksdb_livefiles_t *files = rocksdb_livefiles(engine->db);
    uint64_t count = (uint64_t)rocksdb_livefiles_count(files);
    rocksdb_livefiles_destroy(files);
    return count;
}

void weir_engine_stats_get(weir_engine *engine, weir_engine_stats *statsp) {
    *statsp = (weir_engine_stats){
        .live_bytes = property(engine, "rocksdb.live-sst-files-size"),
        .live_files = live_files(engine),
        .keys_estimate = property(engine, "rocksdb.estimate-num-keys"),
        .level0_files = property_text(engine, "rocksdb.num-files-at-level0"),
        .compaction_bytes = property(engine, "rocksdb.estimate-pending-compaction-bytes"),
    };
}
