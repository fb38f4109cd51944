/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - reads everything that is stored and believes none of it: blocks, keys, rows, names, offsets. */
#include <string.h>

#include <weir/store/base/bytes.h>
#include <weir/store/format/key.h>
#include <weir/store/format/stored.h>

#include "graph_private.h"

#define KEY_HEX_MAX 56u /* bytes of a key that an error shows: the longest is WEIR_EDGE_KEY_BYTES */

typedef struct verify {
    const weir_graph *graph;
    uint32_t shard;
    uint64_t records;
} verify;

typedef struct record {
    const uint8_t *key, *value;
    size_t key_length, value_length;
} record;

static weir_err damaged(const verify *v, const record *r, const char *what) {
    static const char digits[] = "0123456789abcdef";
    char hex[2 * KEY_HEX_MAX + 1];
    size_t shown = r->key_length < KEY_HEX_MAX ? r->key_length : KEY_HEX_MAX;
    for (size_t i = 0; i < shown; i++) {
        hex[2 * i] = digits[r->key[i] >> 4];
        hex[2 * i + 1] = digits[r->key[i] & 15];
    }
    hex[2 * shown] = 0;
    return WEIR_ERR(WEIR_ECORRUPT, "shard %u of %s, key %s: %s; restore a checkpoint", v->shard, v->graph->folder, hex,
                    what);
}

static weir_err check_row(const verify *v, const record *r, const weir_graph_kinds *kinds, const uint8_t *row,
                          size_t length) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err err = weir_row_check(kinds->kinds, kinds->count, row, length);
    if (!err) return WEIR_OK;
    weir_err_sentence(err, sentence, sizeof sentence);
    return damaged(v, r, sentence);
}

/* A vertex lives in the shard that its id says; a record elsewhere would never be found. */
static weir_err check_home(const verify *v, const record *r, weir_vertex vertex) {
    if (weir_shard_of(vertex, v->graph->shard_count) == v->shard) return WEIR_OK;
    return damaged(v, r, "the vertex belongs to another shard");
}

static weir_err check_edge(const verify *v, const record *r) {
    weir_edge_key key;
    if (!weir_edge_key_read(r->key, r->key_length, &key)) return damaged(v, r, "this is no key of an edge");
    if (key.relation >= weir_schema_relation_count(v->graph->schema))
        return damaged(v, r, "the schema has no such relation");
    if (key.deletion && r->value_length) return damaged(v, r, "the deletion of an edge has features");
    weir_err err = check_home(v, r, key.vertex);
    if (err || r->value_length == 0) return err;
    return check_row(v, r, &v->graph->relation_kinds[key.relation], r->value, r->value_length);
}

static weir_err check_features(const verify *v, const record *r) {
    weir_version_key key;
    if (!weir_feature_key_read(r->key, r->key_length, &key)) return damaged(v, r, "this is no key of features");
    if (r->value_length < WEIR_STORED_FEATURES_PREFIX) return damaged(v, r, "the features are cut short");
    uint16_t type = weir_get_u16(r->value);
    if (type >= weir_schema_vertex_count(v->graph->schema)) return damaged(v, r, "the schema has no such vertex type");
    weir_err err = check_home(v, r, key.vertex);
    if (err) return err;
    return check_row(v, r, &v->graph->vertex_kinds[type], r->value + WEIR_STORED_FEATURES_PREFIX,
                     r->value_length - WEIR_STORED_FEATURES_PREFIX);
}

static weir_err check_label(const verify *v, const record *r) {
    static weir_value_kind kind = WEIR_VALUE_CATEGORY;
    static const weir_graph_kinds kinds = {&kind, 1};
    weir_version_key key;
    uint16_t label;
    if (!weir_label_key_read(r->key, r->key_length, &key, &label)) return damaged(v, r, "this is no key of a label");
    if (label >= weir_schema_label_count(v->graph->schema)) return damaged(v, r, "the schema has no such label");
    weir_err err = check_home(v, r, key.vertex);
    return err ? err : check_row(v, r, &kinds, r->value, r->value_length);
}

/* The name must hash to the vertex that it is stored under. */
static weir_err check_name(const verify *v, const record *r) {
    weir_vertex vertex;
    uint16_t type;
    int64_t time_us;
    const char *name;
    size_t length;
    if (!weir_name_key_read(r->key, r->key_length, &vertex)) return damaged(v, r, "this is no key of a name");
    if (!weir_stored_name_read(r->value, r->value_length, &type, &time_us, &name, &length))
        return damaged(v, r, "the name cannot be read");
    if (type >= weir_schema_vertex_count(v->graph->schema)) return damaged(v, r, "the schema has no such vertex type");
    if (weir_vertex_id(&v->graph->id_key, weir_schema_vertex_at(v->graph->schema, type)->name, name, length) != vertex)
        return damaged(v, r, "the name is another vertex's");
    return check_home(v, r, vertex);
}

static weir_err check_offset(const verify *v, const record *r) {
    uint32_t source, partition;
    weir_event_clock clock;
    bool whole = weir_offset_key_read(r->key, r->key_length, &source, &partition) && r->value_length >= 8;
    if (!whole || !weir_event_clock_read(r->value + 8, r->value_length - 8, &clock))
        return damaged(v, r, "the offset of a source cannot be read");
    if (source >= v->graph->source_count) return damaged(v, r, "graph.yaml has no such source");
    return WEIR_OK;
}

static weir_err check_event(const verify *v, const record *r) {
    weir_version_key key;
    if (!weir_event_key_read(r->key, r->key_length, &key) || key.time_us < 0 || r->value_length)
        return damaged(v, r, "the note of an event cannot be read");
    return check_home(v, r, key.vertex);
}

static weir_err check_deleted(const verify *v, const record *r) {
    weir_vertex vertex;
    int64_t time_us;
    bool read = weir_deleted_key_read(r->key, r->key_length, &vertex, &time_us) && r->value_length == 0;
    return read ? WEIR_OK : damaged(v, r, "the deletion of a vertex cannot be read");
}

static weir_err check_put(const verify *v, const record *r) {
    weir_vertex vertex;
    int64_t time_us;
    if (!weir_put_key_read(r->key, r->key_length, &vertex, &time_us) || r->value_length)
        return damaged(v, r, "the put of a vertex cannot be read");
    return check_home(v, r, vertex);
}

static weir_err check_record(void *context, const void *key, size_t key_length, const void *value,
                             size_t value_length) {
    verify *v = context;
    const record r = {key, value, key_length, value_length};
    v->records++;
    switch (key_length ? r.key[0] : 0) {
    case 'E':
        return check_edge(v, &r);
    case 'F':
        return check_features(v, &r);
    case 'I':
        return check_event(v, &r);
    case 'K':
        return check_put(v, &r);
    case 'L':
        return check_label(v, &r);
    case 'N':
        return check_name(v, &r);
    case 'O':
        return check_offset(v, &r);
    case 'T':
        return check_deleted(v, &r);
    case 'P':
        if (weir_newest_key_read(key, key_length) && value_length == WEIR_NEWEST_BYTES) return WEIR_OK;
        return damaged(v, &r, "the newest time cannot be read");
    default:
        return damaged(v, &r, "no record has such a key");
    }
}

weir_err weir_graph_verify(weir_graph *graph, uint64_t *recordsp) {
    verify v = {.graph = graph};
    weir_err err = WEIR_OK;
    *recordsp = 0;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        v.shard = i;
        err = weir_graph_scan(graph, i, check_record, &v); /* the engine checks the blocks that it reads */
        err = weir_err_prefix(err, "shard %u", i);
    }
    *recordsp = v.records;
    return err;
}
