/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - reads all that is stored and trusts none of it: blocks, keys, rows, names, offsets. */
#include <string.h>

#include <weir/store/base/bytes.h>
#include <weir/store/format/key.h>
#include <weir/store/format/stored.h>

#include "graph_private.h"

#define KEY_HEX_MAX WEIR_EDGE_KEY_BYTES /* bytes of a key that an error shows: no key is longer */

typedef struct verify_walk {
    const weir_graph *graph;
    uint32_t shard;
    uint64_t records;
} verify_walk;

typedef struct verify_record {
    const uint8_t *key, *value;
    size_t key_length, value_length;
} verify_record;

static weir_err verify_record_damaged(const verify_walk *v, const verify_record *r, const char *what) {
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

static weir_err verify_record_row(const verify_walk *v, const verify_record *r, const weir_graph_kinds *kinds,
                                  const uint8_t *row, size_t length) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err err = weir_row_check(kinds->kinds, kinds->count, row, length);
    if (!err) return WEIR_OK;
    weir_err_sentence(err, sentence, sizeof sentence);
    return verify_record_damaged(v, r, sentence);
}

/* A vertex lives in the shard that its id says; a record elsewhere would never be found. */
static weir_err verify_record_home(const verify_walk *v, const verify_record *r, weir_vertex vertex) {
    if (weir_shard_of(vertex, v->graph->shard_count) == v->shard) return WEIR_OK;
    return verify_record_damaged(v, r, "the vertex belongs to another shard");
}

static weir_err verify_record_edge(const verify_walk *v, const verify_record *r) {
    weir_edge_key key;
    if (!weir_edge_key_read(r->key, r->key_length, &key))
        return verify_record_damaged(v, r, "this is not a key of an edge");
    if (key.relation >= weir_schema_relation_count(v->graph->schema))
        return verify_record_damaged(v, r, "the schema has no such relation");
    if (key.deletion && r->value_length) return verify_record_damaged(v, r, "the deletion of an edge has features");
    weir_err err = verify_record_home(v, r, key.vertex);
    if (err || r->value_length == 0) return err;
    return verify_record_row(v, r, &v->graph->relation_kinds[key.relation], r->value, r->value_length);
}

static weir_err verify_record_features(const verify_walk *v, const verify_record *r) {
    weir_version_key key;
    if (!weir_feature_key_read(r->key, r->key_length, &key))
        return verify_record_damaged(v, r, "this is not a key of features");
    if (r->value_length < WEIR_STORED_FEATURES_PREFIX) return verify_record_damaged(v, r, "the features are cut short");
    uint16_t type = weir_get_u16(r->value);
    if (type >= weir_schema_vertex_count(v->graph->schema))
        return verify_record_damaged(v, r, "the schema has no such vertex type");
    weir_err err = verify_record_home(v, r, key.vertex);
    if (err) return err;
    return verify_record_row(v, r, &v->graph->vertex_kinds[type], r->value + WEIR_STORED_FEATURES_PREFIX,
                             r->value_length - WEIR_STORED_FEATURES_PREFIX);
}

static weir_err verify_record_label(const verify_walk *v, const verify_record *r) {
    static weir_value_kind kind = WEIR_VALUE_CATEGORY;
    static const weir_graph_kinds kinds = {&kind, 1};
    weir_version_key key;
    uint16_t label;
    if (!weir_label_key_read(r->key, r->key_length, &key, &label))
        return verify_record_damaged(v, r, "this is not a key of a label");
    if (label >= weir_schema_label_count(v->graph->schema))
        return verify_record_damaged(v, r, "the schema has no such label");
    weir_err err = verify_record_home(v, r, key.vertex);
    return err ? err : verify_record_row(v, r, &kinds, r->value, r->value_length);
}

/* The name must hash to the vertex that it is stored under. */
static weir_err verify_record_name(const verify_walk *v, const verify_record *r) {
    weir_vertex vertex;
    uint16_t type;
    int64_t time_us;
    const char *name;
    size_t length;
    if (!weir_name_key_read(r->key, r->key_length, &vertex))
        return verify_record_damaged(v, r, "this is not a key of a name");
    if (!weir_stored_name_read(r->value, r->value_length, &type, &time_us, &name, &length))
        return verify_record_damaged(v, r, "the name cannot be read");
    if (type >= weir_schema_vertex_count(v->graph->schema))
        return verify_record_damaged(v, r, "the schema has no such vertex type");
    if (weir_vertex_id(&v->graph->id_key, weir_schema_vertex_at(v->graph->schema, type)->name, name, length) != vertex)
        return verify_record_damaged(v, r, "the name is another vertex's");
    return verify_record_home(v, r, vertex);
}

static weir_err verify_record_offset(const verify_walk *v, const verify_record *r) {
    uint32_t source, partition;
    weir_event_clock clock;
    bool whole = weir_offset_key_read(r->key, r->key_length, &source, &partition) && r->value_length >= 8;
    if (!whole || !weir_event_clock_read(r->value + 8, r->value_length - 8, &clock))
        return verify_record_damaged(v, r, "the offset of a source cannot be read");
    if (source >= v->graph->source_count) return verify_record_damaged(v, r, "graph.yaml has no such source");
    return WEIR_OK;
}

static weir_err verify_visit(void *context, const void *key, size_t key_length, const void *value,
                             size_t value_length) {
    verify_walk *v = context;
    const verify_record r = {key, value, key_length, value_length};
    weir_version_key version;
    weir_vertex vertex;
    int64_t time_us;
    v->records++;
    switch (key_length ? r.key[0] : 0) {
    case 'E':
        return verify_record_edge(v, &r);
    case 'F':
        return verify_record_features(v, &r);
    case 'I':
        if (!weir_event_key_read(key, key_length, &version) || version.time_us < 0 || value_length)
            return verify_record_damaged(v, &r, "the note of an event cannot be read");
        return verify_record_home(v, &r, version.vertex);
    case 'K':
        if (!weir_put_key_read(key, key_length, &vertex, &time_us) || value_length)
            return verify_record_damaged(v, &r, "the put of a vertex cannot be read");
        return verify_record_home(v, &r, vertex);
    case 'L':
        return verify_record_label(v, &r);
    case 'N':
        return verify_record_name(v, &r);
    case 'O':
        return verify_record_offset(v, &r);
    case 'T':
        if (weir_deleted_key_read(key, key_length, &vertex, &time_us) && value_length == 0) return WEIR_OK;
        return verify_record_damaged(v, &r, "the deletion of a vertex cannot be read");
    case 'P':
        if (weir_newest_key_read(key, key_length) && value_length == WEIR_NEWEST_BYTES) return WEIR_OK;
        return verify_record_damaged(v, &r, "the newest time cannot be read");
    default:
        return verify_record_damaged(v, &r, "there are no records with such a key");
    }
}

weir_err weir_graph_verify(weir_graph *graph, uint64_t *recordsp) {
    verify_walk v = {.graph = graph};
    weir_err err = WEIR_OK;
    *recordsp = 0;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        v.shard = i;
        err = weir_graph_scan(graph, i, verify_visit, &v); /* the engine checks the blocks that it reads */
        err = weir_err_prefix(err, "shard %u", i);
    }
    *recordsp = v.records;
    return err;
}
