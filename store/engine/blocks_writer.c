/* SPDX-License-Identifier: Apache-2.0 */
/* blocks_writer.c - see blocks_writer.h. */
#include "blocks_writer.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "blocks.h"
#include "blocks_format.h"

#define BLOCK_BYTES       4096u
#define BLOCK_BYTES_LEAST (BLOCK_BYTES / 10 * 9)
#define PART_BYTES        8192u
#define FLUSH_BYTES       (1u << 20)
#define RESTART_INTERVAL  16u                              /* so many keys rest on one that is whole */
#define RESTARTS_MAX      (BLOCK_BYTES / RESTART_INTERVAL) /* no entry is shorter than a byte        */
#define NUMBER_BYTES_MAX  10u
#define INDEX_WHOLE       0u
#define INDEX_IN_PARTS    2u
#define FILTER_LINE_BYTES 64u
#define FILTER_BITS       10u
#define FILTER_PROBES     6u
#define FILTER_TAIL_BYTES 5u
#define FILTER_PREFIXES   (PART_BYTES * 8 / FILTER_BITS)
#define PROPERTY_NAME_MAX 64u
#define PROPERTIES_MAX    48u

/* A block of which each entry has its key whole. */
typedef struct blocks_list {
    weir_buf entries, restarts;
} blocks_list;

/* A block that lies in the file, or waits for it, and the key that tells what comes before its end. */
typedef struct blocks_part {
    uint8_t key[WEIR_BLOCKS_KEY_MAX];
    size_t key_length, begin, bytes; /* in what waits */
} blocks_part;

typedef struct blocks_parts {
    weir_buf waits;
    blocks_part *parts;
    size_t count, room;
} blocks_parts;

typedef struct blocks_property {
    char name[PROPERTY_NAME_MAX];
    size_t begin, length; /* in property_values */
} blocks_property;

struct weir_blocks_writer {
    weir_file *file;
    bool in_parts;
    weir_buf out;       /* what is not in the file yet, and at its end the block that grows, … */
    size_t block_begin; /* … which begins here */
    uint64_t flushed;   /* bytes that are in the file */
    uint32_t crc;       /* of those */

    uint32_t restarts[RESTARTS_MAX], restart_count, since_restart;
    uint8_t last[WEIR_BLOCKS_KEY_MAX + WEIR_BLOCKS_SUFFIX_BYTES];
    size_t last_length; /* of the user's key; 0: there was none */
    uint64_t records, blocks, key_bytes, value_bytes, data_bytes;

    weir_blocks_place ended; /* the block whose end is told once the next key is known */
    bool has_ended;
    blocks_list index;
    blocks_parts indices;

    uint64_t *hashes, prefixes;
    size_t hash_count, hash_room;
    blocks_parts filters;

    blocks_property properties[PROPERTIES_MAX];
    size_t property_count;
    weir_buf property_values;
};

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static uint8_t *writer_put_number(uint8_t *at, uint64_t number) {
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

/* with_length: how long the value is is said before it. */
static void writer_list_add(blocks_list *list, const void *key, size_t key_length, const void *value, size_t length,
                            bool with_length) {
    uint8_t head[3 * NUMBER_BYTES_MAX], place[sizeof(uint32_t)];
    weir_put_u32(place, (uint32_t)list->entries.length);
    weir_buf_append(&list->restarts, place, sizeof place);
    uint8_t *end = writer_put_number(writer_put_number(head, 0), key_length);
    if (with_length) end = writer_put_number(end, length);
    weir_buf_append(&list->entries, head, (size_t)(end - head));
    weir_buf_append(&list->entries, key, key_length);
    weir_buf_append(&list->entries, value, length);
}

/* Entries, where they are, and how many. */
static weir_err writer_list_end(blocks_list *list) {
    uint8_t count[sizeof(uint32_t)];
    weir_put_u32(count, (uint32_t)(list->restarts.length / sizeof count));
    if (!weir_buf_err(&list->restarts)) weir_buf_append(&list->entries, list->restarts.bytes, list->restarts.length);
    weir_buf_append(&list->entries, count, sizeof count);
    return weir_buf_err(&list->restarts) ? weir_buf_err(&list->restarts) : weir_buf_err(&list->entries);
}

static void writer_list_clear(blocks_list *list) {
    weir_buf_clear(&list->entries);
    weir_buf_clear(&list->restarts);
}

static void writer_list_free(blocks_list *list) {
    weir_buf_free(&list->entries);
    weir_buf_free(&list->restarts);
}

static weir_err writer_flush(weir_blocks_writer *w) {
    weir_err err = weir_buf_err(&w->out);
    if (!err && w->out.length) err = weir_file_append(w->file, w->out.bytes, w->out.length);
    if (err) return err;
    w->crc = weir_crc32c(w->crc, w->out.bytes, w->out.length);
    w->flushed += w->out.length;
    weir_buf_clear(&w->out);
    w->block_begin = 0;
    return WEIR_OK;
}

/* What was written since block_begin is one. */
static weir_err writer_end_block(weir_blocks_writer *w, weir_blocks_place *placep) {
    uint8_t trailer[WEIR_BLOCKS_TRAILER_BYTES] = {0}; /* not compressed, which changes nothing of the checksum */
    if (weir_buf_err(&w->out)) return weir_buf_err(&w->out);
    const size_t bytes = w->out.length - w->block_begin;
    *placep = (weir_blocks_place){w->flushed + w->block_begin, bytes};
    weir_put_u32(trailer + 1, (uint32_t)weir_xxh3(w->out.bytes + w->block_begin, bytes, 0));
    weir_buf_append(&w->out, trailer, sizeof trailer);
    w->block_begin = w->out.length;
    return w->out.length < FLUSH_BYTES ? weir_buf_err(&w->out) : writer_flush(w);
}

static weir_err writer_put_block(weir_blocks_writer *w, const void *bytes, size_t length, weir_blocks_place *placep) {
    weir_buf_append(&w->out, bytes, length);
    return writer_end_block(w, placep);
}

static weir_err writer_put_list(weir_blocks_writer *w, blocks_list *list, weir_blocks_place *placep) {
    weir_err err = writer_list_end(list);
    return err ? err : writer_put_block(w, list->entries.bytes, list->entries.length, placep);
}

/* --- parts: they wait until the blocks before them are written --------------------------------------------------- */

static weir_err writer_parts_add(blocks_parts *parts, const void *bytes, size_t length, const uint8_t *key,
                                 size_t key_length) {
    if (!WEIR_GROW(parts->parts, parts->room, parts->count)) return WEIR_NOMEM("for the index of a file");
    blocks_part *part = &parts->parts[parts->count++];
    *part = (blocks_part){.key_length = key_length, .begin = parts->waits.length, .bytes = length};
    memcpy(part->key, key, key_length);
    weir_buf_append(&parts->waits, bytes, length);
    return weir_buf_err(&parts->waits);
}

/* All of them, and an index of where they are; or the only one there is. *placep: where the reader begins. */
static weir_err writer_put_parts(weir_blocks_writer *w, const blocks_parts *parts, weir_blocks_place *placep) {
    uint8_t where[2 * NUMBER_BYTES_MAX];
    blocks_list list = {0};
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < parts->count; i++) {
        const blocks_part *part = &parts->parts[i];
        err = writer_put_block(w, parts->waits.bytes + part->begin, part->bytes, placep);
        if (err) break;
        uint8_t *end = writer_put_number(writer_put_number(where, placep->offset), placep->bytes);
        writer_list_add(&list, part->key, part->key_length, where, (size_t)(end - where), false);
    }
    WEIR_ASSERT(err || w->in_parts || parts->count == 1);
    if (!err && w->in_parts) err = writer_put_list(w, &list, placep);
    writer_list_free(&list);
    return err;
}

static void writer_parts_free(blocks_parts *parts) {
    weir_buf_free(&parts->waits);
    weir_free(parts->parts);
}

/* --- the index ---------------------------------------------------------------------------------------------------- */

/* A short key that is not less than the last one, and less than the next: the index is kept in memory. Where they
 * differ first there may be no number between; then any byte behind that can be greater. */
static size_t writer_key_between(const uint8_t *last, size_t last_length, const uint8_t *next, size_t next_length,
                                 uint8_t *between) {
    size_t at = 0, least = last_length < next_length ? last_length : next_length;
    memcpy(between, last, last_length);
    while (at < least && last[at] == next[at])
        at++;
    if (at == least) return last_length; /* the next one only goes on */
    WEIR_ASSERT(last[at] < next[at]);
    if (last[at] + 1 == next[at]) at++;
    while (at < last_length && last[at] == UINT8_MAX)
        at++;
    if (at == last_length) return last_length;
    between[at]++;
    return at + 1;
}

static weir_err writer_end_index_part(weir_blocks_writer *w, const uint8_t *key, size_t key_length) {
    weir_err err = writer_list_end(&w->index);
    if (!err) err = writer_parts_add(&w->indices, w->index.entries.bytes, w->index.entries.length, key, key_length);
    writer_list_clear(&w->index);
    return err;
}

/* Where the block that has ended lies. next: the first key behind it; NULL: there is none. */
static weir_err writer_index_ended(weir_blocks_writer *w, const uint8_t *next, size_t next_length) {
    uint8_t key[WEIR_BLOCKS_KEY_MAX], where[2 * NUMBER_BYTES_MAX];
    size_t length = w->last_length;
    if (next)
        length = writer_key_between(w->last, length, next, next_length, key);
    else
        memcpy(key, w->last, length);
    uint8_t *end = writer_put_number(writer_put_number(where, w->ended.offset), w->ended.bytes);
    writer_list_add(&w->index, key, length, where, (size_t)(end - where), false);
    w->has_ended = false;
    bool is_full = w->in_parts && w->index.entries.length + w->index.restarts.length >= PART_BYTES;
    return is_full || !next ? writer_end_index_part(w, key, length) : WEIR_OK;
}

/* --- the filter --------------------------------------------------------------------------------------------------- */

static uint64_t writer_fold(const uint8_t *bytes, uint64_t one, uint64_t other) {
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(weir_get_u64(bytes) ^ one) * (weir_get_u64(bytes + 8) ^ other);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

_Static_assert(WEIR_ENGINE_PREFIX_BYTES == 17, "the hash below is of so many bytes");

/* RocksDB's hash of 17 bytes: XXH3 as it was before its first release, which ends in another factor than it has now. */
static uint64_t writer_hash(const uint8_t prefix[WEIR_ENGINE_PREFIX_BYTES]) {
    uint64_t hash = WEIR_ENGINE_PREFIX_BYTES * 0x9e3779b185ebca87u;
    hash += writer_fold(prefix, 0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu);
    hash += writer_fold(prefix + 1, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u);
    hash = (hash ^ hash >> 37) * 0x165667b19e3779f9u;
    return hash ^ hash >> 32;
}

static weir_err writer_end_filter_part(weir_blocks_writer *w, const uint8_t *key, size_t key_length) {
    static const uint8_t tail[FILTER_TAIL_BYTES] = {0xff, 0, FILTER_PROBES, 0, 0}; /* the kind of filter */
    const size_t lines = (w->hash_count * FILTER_BITS + FILTER_LINE_BYTES * 8 - 1) / (FILTER_LINE_BYTES * 8);
    weir_buf filter = {0};
    char *bytes = weir_buf_reserve(&filter, lines * FILTER_LINE_BYTES + FILTER_TAIL_BYTES);
    if (!bytes) return weir_buf_err(&filter);
    memset(bytes, 0, lines * FILTER_LINE_BYTES);
    for (size_t i = 0; i < w->hash_count; i++) {
        char *line = bytes + ((uint64_t)(uint32_t)w->hashes[i] * lines >> 32) * FILTER_LINE_BYTES;
        uint32_t bits = (uint32_t)(w->hashes[i] >> 32);
        for (unsigned n = 0; n < FILTER_PROBES; n++, bits *= 0x9e3779b9u)
            line[bits >> 26] = (char)(line[bits >> 26] | 1 << (bits >> 23 & 7));
    }
    memcpy(bytes + lines * FILTER_LINE_BYTES, tail, sizeof tail);
    weir_err err = writer_parts_add(&w->filters, bytes, lines * FILTER_LINE_BYTES + FILTER_TAIL_BYTES, key, key_length);
    weir_buf_free(&filter);
    w->prefixes += w->hash_count;
    w->hash_count = 0;
    return err;
}

/* A prefix lies in one part, which ends at its last key. The part behind it has it, too, for who goes backwards from
 * there. */
static weir_err writer_filter_key(weir_blocks_writer *w, const uint8_t *key, size_t length) {
    weir_err err = WEIR_OK;
    const bool has_last = w->last_length >= WEIR_ENGINE_PREFIX_BYTES;
    if (length < WEIR_ENGINE_PREFIX_BYTES || (has_last && memcmp(key, w->last, WEIR_ENGINE_PREFIX_BYTES) == 0))
        return WEIR_OK;
    if (w->in_parts && w->hash_count >= FILTER_PREFIXES) {
        err = writer_end_filter_part(w, w->last, w->last_length);
        if (has_last) w->hashes[w->hash_count++] = writer_hash(w->last);
    }
    if (!WEIR_GROW(w->hashes, w->hash_room, w->hash_count)) return WEIR_NOMEM("for the filter of a file");
    w->hashes[w->hash_count++] = writer_hash(key);
    return err;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

weir_err weir_blocks_writer_open(const char *path, bool in_parts, weir_blocks_writer **writerp) {
    *writerp = NULL;
    weir_blocks_writer *w = weir_calloc(1, sizeof *w);
    if (!w) return WEIR_NOMEM("while writing %s", path);
    w->in_parts = in_parts;
    weir_err err = weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, &w->file);
    if (!err) err = weir_file_truncate(w->file, 0);
    if (err) {
        weir_blocks_writer_close(w);
        return err;
    }
    *writerp = w;
    return WEIR_OK;
}

static weir_err writer_end_data(weir_blocks_writer *w) {
    uint8_t places[sizeof(uint32_t)];
    for (uint32_t i = 0; i <= w->restart_count; i++) {
        weir_put_u32(places, i < w->restart_count ? w->restarts[i] : w->restart_count);
        weir_buf_append(&w->out, places, sizeof places);
    }
    w->restart_count = 0;
    w->has_ended = true;
    w->blocks++;
    return writer_end_block(w, &w->ended);
}

/* The entry: what its key has in common with the one before, unless keys are whole here, and the rest. */
static void writer_put_entry(weir_blocks_writer *w, const uint8_t *key, size_t key_length, const void *value,
                             size_t value_length) {
    uint8_t head[3 * NUMBER_BYTES_MAX];
    const size_t last = w->last_length + WEIR_BLOCKS_SUFFIX_BYTES, least = last < key_length ? last : key_length;
    size_t shared = 0;
    if (w->restart_count == 0 || ++w->since_restart == RESTART_INTERVAL) {
        w->restarts[w->restart_count++] = (uint32_t)(w->out.length - w->block_begin);
        w->since_restart = 0;
    } else {
        while (shared < least && key[shared] == w->last[shared])
            shared++;
    }
    uint8_t *end = writer_put_number(writer_put_number(head, shared), key_length - shared);
    end = writer_put_number(end, value_length);
    char *to = weir_buf_reserve(&w->out, (size_t)(end - head) + key_length - shared + value_length);
    if (!to) return; /* the buffer says so */
    memcpy(to, head, (size_t)(end - head));
    to += end - head;
    memcpy(to, key + shared, key_length - shared);
    if (value_length) memcpy(to + key_length - shared, value, value_length); /* of nothing there may be no address */
    weir_buf_commit(&w->out, (size_t)(end - head) + key_length - shared + value_length);
}

weir_err weir_blocks_writer_add(weir_blocks_writer *writer, const void *key, size_t key_length, uint64_t sequence,
                                const void *value, size_t value_length) {
    uint8_t whole[WEIR_BLOCKS_KEY_MAX + WEIR_BLOCKS_SUFFIX_BYTES];
    weir_err err = WEIR_OK;
    WEIR_ASSERT(key_length > 0 && key_length <= WEIR_BLOCKS_KEY_MAX);
    memcpy(whole, key, key_length);
    weir_put_u64(whole + key_length, sequence << 8 | WEIR_BLOCKS_KIND_PUT);
    const size_t grown = writer->out.length - writer->block_begin + writer->restart_count * sizeof(uint32_t);
    bool is_full = grown > BLOCK_BYTES_LEAST && grown + key_length + value_length > BLOCK_BYTES;
    if (is_full) err = writer_end_data(writer);
    if (!err && writer->has_ended) err = writer_index_ended(writer, key, key_length);
    if (!err) err = writer_filter_key(writer, key, key_length);
    if (err) return err;
    writer_put_entry(writer, whole, key_length + WEIR_BLOCKS_SUFFIX_BYTES, value, value_length);
    memcpy(writer->last, whole, key_length + WEIR_BLOCKS_SUFFIX_BYTES);
    writer->last_length = key_length;
    writer->records++;
    writer->key_bytes += key_length + WEIR_BLOCKS_SUFFIX_BYTES;
    writer->value_bytes += value_length;
    return weir_buf_err(&writer->out);
}

uint64_t weir_blocks_writer_bytes(const weir_blocks_writer *writer) {
    return writer->flushed + writer->out.length;
}

/* --- the end of the file ------------------------------------------------------------------------------------------ */

weir_err weir_blocks_writer_property(weir_blocks_writer *writer, const char *name, const void *value, size_t length) {
    WEIR_ASSERT(writer->property_count < PROPERTIES_MAX && strlen(name) < PROPERTY_NAME_MAX);
    blocks_property *property = &writer->properties[writer->property_count++];
    *property = (blocks_property){.begin = writer->property_values.length, .length = length};
    strcpy(property->name, name);
    weir_buf_append(&writer->property_values, value, length);
    return weir_buf_err(&writer->property_values);
}

static int writer_compare_properties(const void *a, const void *b) {
    return strcmp(((const blocks_property *)a)->name, ((const blocks_property *)b)->name);
}

/* Those that say how the file is made. */
static weir_err writer_own_properties(weir_blocks_writer *w, uint64_t filter_bytes, uint64_t index_bytes) {
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"rocksdb.raw.key.size", w->key_bytes},
        {"rocksdb.raw.value.size", w->value_bytes},
        {"rocksdb.data.size", w->data_bytes},
        {"rocksdb.index.size", index_bytes},
        {"rocksdb.index.partitions", w->in_parts ? w->indices.count : 0},
        {"rocksdb.index.key.is.user.key", 1},
        {"rocksdb.index.value.is.delta.encoded", 1},
        {"rocksdb.num.entries", w->records},
        {"rocksdb.num.filter_entries", w->prefixes},
        {"rocksdb.deleted.keys", 0},
        {"rocksdb.merge.operands", 0},
        {"rocksdb.num.range-deletions", 0},
        {"rocksdb.num.data.blocks", w->blocks},
        {"rocksdb.filter.size", filter_bytes},
        {"rocksdb.format.version", 0},
        {"rocksdb.fixed.key.length", 0},
    };
    uint8_t bytes[NUMBER_BYTES_MAX];
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < sizeof numbers / sizeof *numbers; i++) {
        uint8_t *end = writer_put_number(bytes, numbers[i].number);
        err = weir_blocks_writer_property(w, numbers[i].name, bytes, (size_t)(end - bytes));
    }
    weir_put_u32(bytes, w->in_parts ? INDEX_IN_PARTS : INDEX_WHOLE);
    if (!err) err = weir_blocks_writer_property(w, "rocksdb.block.based.table.index.type", bytes, sizeof(uint32_t));
    if (!err) err = weir_blocks_writer_property(w, "rocksdb.block.based.table.whole.key.filtering", "0", 1);
    if (!err) err = weir_blocks_writer_property(w, "rocksdb.block.based.table.prefix.filtering", "1", 1);
    return err;
}

static weir_err writer_put_properties(weir_blocks_writer *w, weir_blocks_place *placep) {
    blocks_list list = {0};
    qsort(w->properties, w->property_count, sizeof *w->properties, writer_compare_properties);
    for (size_t i = 0; i < w->property_count; i++) {
        const blocks_property *p = &w->properties[i];
        writer_list_add(&list, p->name, strlen(p->name), w->property_values.bytes + p->begin, p->length, true);
    }
    weir_err err = writer_put_list(w, &list, placep);
    writer_list_free(&list);
    return err;
}

/* The names of the blocks that are not found by an index, and the footer, which says where this is. */
static weir_err writer_put_names(weir_blocks_writer *w, const weir_blocks_place *filter,
                                 const weir_blocks_place *properties, const weir_blocks_place *index) {
    const char *filter_name =
        w->in_parts ? "partitionedfilter." WEIR_BLOCKS_FILTER_NAME : "fullfilter." WEIR_BLOCKS_FILTER_NAME;
    static const char properties_name[] = "rocksdb.properties";
    uint8_t where[2 * NUMBER_BYTES_MAX], footer[WEIR_BLOCKS_FOOTER_BYTES] = {WEIR_BLOCKS_CHECKSUM_XXH3};
    blocks_list list = {0};
    weir_blocks_place names;
    uint8_t *end = writer_put_number(writer_put_number(where, filter->offset), filter->bytes);
    if (filter->bytes) writer_list_add(&list, filter_name, strlen(filter_name), where, (size_t)(end - where), true);
    end = writer_put_number(writer_put_number(where, properties->offset), properties->bytes);
    writer_list_add(&list, properties_name, sizeof properties_name - 1, where, (size_t)(end - where), true);
    weir_err err = writer_put_list(w, &list, &names);
    writer_list_free(&list);
    if (err) return err;
    end = writer_put_number(writer_put_number(footer + 1, names.offset), names.bytes);
    writer_put_number(writer_put_number(end, index->offset), index->bytes);
    weir_put_u32(footer + WEIR_BLOCKS_VERSION_AT, WEIR_BLOCKS_FORMAT_VERSION);
    weir_put_u64(footer + WEIR_BLOCKS_MARK_AT, WEIR_BLOCKS_FOOTER_MARK);
    weir_buf_append(&w->out, footer, sizeof footer);
    return weir_buf_err(&w->out);
}

weir_err weir_blocks_writer_finish(weir_blocks_writer *writer, uint64_t *bytesp, uint32_t *crcp) {
    weir_blocks_place filter = {0}, index = {0}, properties = {0};
    WEIR_ASSERT(writer->records > 0);
    weir_err err = writer_end_data(writer);
    writer->data_bytes = writer->flushed + writer->out.length;
    if (!err) err = writer_index_ended(writer, NULL, 0);
    if (!err && writer->hash_count) err = writer_end_filter_part(writer, writer->last, writer->last_length);
    if (!err && writer->filters.count) err = writer_put_parts(writer, &writer->filters, &filter);
    const uint64_t filter_bytes = writer->flushed + writer->out.length - writer->data_bytes;
    if (!err) err = writer_put_parts(writer, &writer->indices, &index);
    const uint64_t index_bytes = writer->flushed + writer->out.length - writer->data_bytes - filter_bytes;
    if (!err) err = writer_own_properties(writer, filter_bytes, index_bytes);
    if (!err) err = writer_put_properties(writer, &properties);
    if (!err) err = writer_put_names(writer, &filter, &properties, &index);
    if (!err) err = writer_flush(writer);
    if (!err) err = weir_file_sync(writer->file);
    *bytesp = writer->flushed;
    *crcp = writer->crc;
    return err;
}

void weir_blocks_writer_close(weir_blocks_writer *writer) {
    if (!writer) return;
    if (writer->file) (void)weir_file_close(writer->file); /* what matters is synced */
    weir_buf_free(&writer->out);
    writer_list_free(&writer->index);
    weir_free(writer->hashes);
    writer_parts_free(&writer->indices);
    writer_parts_free(&writer->filters);
    weir_buf_free(&writer->property_values);
    weir_free(writer);
}
