/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - one ordered walk over each shard, sorted into spills.
 *
 * Records come vertex by vertex, and of each by kind. A list of edges comes newest first, and a deletion of an edge
 * comes before the edges that it ends, so it is applied here. Deletions of vertices are applied when the spills are
 * read.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/table.h>
#include <weir/store/format/key.h>
#include <weir/store/format/stored.h>

#include "draft.h"
#include "lives.h"

/* --- edges that were deleted, within one list -------------------------------------------------------------------- */

typedef struct scan_hidden {
    uint32_t tag;
    uint64_t event;  /* 0: every edge to the neighbour */
    int64_t time_us; /* of the oldest so far: an edge of this time or older ends after it */
    weir_vertex neighbor;
} scan_hidden;

static scan_hidden *scan_hidden_find(const weir_table *table, weir_vertex neighbor, uint64_t event) {
    scan_hidden *hidden = weir_table_first(table, weir_edge_fold(neighbor, event), sizeof *hidden);
    while (hidden && (hidden->neighbor != neighbor || hidden->event != event))
        hidden = weir_table_next(table, hidden, sizeof *hidden);
    return hidden;
}

static weir_err scan_hidden_add(weir_table *table, weir_vertex neighbor, uint64_t event, int64_t time_us) {
    scan_hidden *hidden = scan_hidden_find(table, neighbor, event);
    if (!hidden) {
        if (!weir_table_reserve(table, table->count + 1, sizeof *hidden))
            return WEIR_NOMEM("for the deletions of a vertex's edges");
        hidden = weir_table_add(table, weir_edge_fold(neighbor, event), sizeof *hidden);
        hidden->neighbor = neighbor;
        hidden->event = event;
    }
    hidden->time_us = time_us;
    return WEIR_OK;
}

/* From when on the edge that the walk has reached is deleted. */
static int64_t scan_hidden_from(const weir_table *table, weir_vertex neighbor, uint64_t event) {
    int64_t until_us = INT64_MAX;
    const uint64_t events[] = {event, 0};
    for (size_t i = 0; i < 2; i++) {
        const scan_hidden *hidden = scan_hidden_find(table, neighbor, events[i]);
        if (hidden && hidden->time_us < until_us) until_us = hidden->time_us + 1;
    }
    return until_us;
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

typedef struct snapshot_scan {
    weir_snapshot_draft *draft;
    uint32_t shard;
    weir_spill **edges, **features, **names, **labels; /* relation * 2 + direction, type, type, label */
    weir_spill **puts, **met, **rowed;                 /* one: of all types                             */
    weir_lives lives;                                  /* of the vertex at hand, by its edges or its rows */
    weir_vertex met_vertex;                            /* which is this one */
    weir_spill *met_spill;                             /* where they go     */
    int64_t *gone_us;                                  /* of each relation: as old or older has expired */
    int64_t *from_us;                                  /* and the first time at which it is visible     */
    weir_table hidden;                                 /* scan_hidden, of the list at hand */
    weir_edge_key list;                                /* vertex, relation and direction of the last edge */
} snapshot_scan;

static weir_err scan_damaged(char kind) {
    return WEIR_ERR(WEIR_ECORRUPT, "a record of kind '%c' is damaged; restore a checkpoint", kind);
}

/* The lives of each vertex by its edges, deleted or expired ones too, because an event that put an edge put both its
 * ends; and likewise by its rows. */
static weir_err scan_meet_end(snapshot_scan *s) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < s->lives.count; i++) {
        const weir_life *life = &s->lives.of[i];
        const weir_spill_record record = {
            .vertex = s->met_vertex, .time_us = life->last_us, .event = (uint64_t)life->first_us};
        err = weir_spill_add(s->met_spill, &record);
    }
    s->met_spill = NULL;
    s->lives.count = 0;
    return err;
}

static weir_err scan_meet(snapshot_scan *s, weir_spill *spill, uint32_t type, weir_vertex vertex, int64_t time_us) {
    if (!s->met_spill || vertex != s->met_vertex || spill != s->met_spill) {
        size_t count;
        weir_err err = s->met_spill ? scan_meet_end(s) : WEIR_OK;
        if (err) return err;
        const int64_t *deletions = weir_draft_deletions_of(s->draft, vertex, &count);
        weir_lives_begin(&s->lives, weir_schema_vertex_at(s->draft->schema, type)->expire_us, deletions, count);
        s->met_vertex = vertex;
        s->met_spill = spill;
    }
    return weir_lives_add(&s->lives, (weir_life){time_us, time_us});
}

static weir_err scan_visit_edge(snapshot_scan *s, const uint8_t *key, size_t key_length, const uint8_t *value,
                                size_t length) {
    weir_edge_key e;
    if (!weir_edge_key_read(key, key_length, &e)) return scan_damaged('E');
    if (e.relation >= weir_schema_relation_count(s->draft->schema)) return scan_damaged('E');
    if (e.vertex != s->list.vertex || e.relation != s->list.relation || e.direction != s->list.direction) {
        s->list = e;
        weir_table_free(&s->hidden);
    }
    if (e.time_us >= s->draft->as_of_us) return WEIR_OK; /* SNAPSHOT-Z3: of deletions too */
    if (e.deletion) return scan_hidden_add(&s->hidden, e.neighbor, e.event, e.time_us);
    const weir_schema_relation *r = weir_schema_relation_at(s->draft->schema, e.relation);
    weir_err err = scan_meet(s, s->met[0], e.direction == WEIR_OUT ? r->from : r->to, e.vertex, e.time_us);
    if (err) return err;
    if (e.time_us <= s->gone_us[e.relation] && s->gone_us[e.relation] != INT64_MIN) return WEIR_OK;
    int64_t until_us = scan_hidden_from(&s->hidden, e.neighbor, e.event);
    bool deleted = until_us != INT64_MAX;
    if (!weir_draft_sees(s->draft, s->from_us[e.relation], e.time_us, until_us, deleted)) return WEIR_OK;
    weir_spill_record record = {e.vertex, e.neighbor, e.time_us, until_us, e.event, value, (uint32_t)length};
    return weir_spill_add(s->edges[e.relation * 2u + e.direction], &record);
}

static weir_err scan_visit_features(snapshot_scan *s, const uint8_t *key, size_t key_length, const uint8_t *value,
                                    size_t length) {
    weir_version_key version;
    if (!weir_feature_key_read(key, key_length, &version) || length < WEIR_STORED_FEATURES_PREFIX)
        return scan_damaged('F');
    weir_spill_record record = {.vertex = version.vertex, .time_us = version.time_us, .event = version.event};
    uint16_t type = weir_get_u16(value);
    if (type >= weir_schema_vertex_count(s->draft->schema)) return scan_damaged('F');
    if (record.time_us >= s->draft->as_of_us) return WEIR_OK; /* SNAPSHOT-Z3 */
    record.row = value + WEIR_STORED_FEATURES_PREFIX;
    record.row_length = (uint32_t)(length - WEIR_STORED_FEATURES_PREFIX);
    weir_err err = scan_meet(s, s->rowed[0], type, record.vertex, record.time_us);
    return err ? err : weir_spill_add(s->features[type], &record);
}

static weir_err scan_visit_label(snapshot_scan *s, const uint8_t *key, size_t key_length, const uint8_t *value,
                                 size_t length) {
    weir_version_key version;
    uint16_t label;
    if (!weir_label_key_read(key, key_length, &version, &label) || label >= weir_schema_label_count(s->draft->schema)) {
        return scan_damaged('L');
    }
    const weir_spill_record record = {.vertex = version.vertex,
                                      .time_us = version.time_us,
                                      .event = version.event,
                                      .row = value,
                                      .row_length = (uint32_t)length};
    return record.time_us < s->draft->as_of_us ? weir_spill_add(s->labels[label], &record) : WEIR_OK; /* SNAPSHOT-Z3 */
}

static weir_err scan_visit_name(snapshot_scan *s, const uint8_t *key, size_t key_length, const uint8_t *value,
                                size_t length) {
    weir_spill_record record = {.vertex = 0};
    uint16_t type;
    const char *name;
    size_t name_length;
    if (!weir_name_key_read(key, key_length, &record.vertex) ||
        !weir_stored_name_read(value, length, &type, &record.time_us, &name, &name_length) ||
        type >= weir_schema_vertex_count(s->draft->schema)) {
        return scan_damaged('N');
    }
    record.row = (const uint8_t *)name;
    record.row_length = (uint32_t)name_length;
    return weir_spill_add(s->names[type], &record);
}

static weir_err scan_visit(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    snapshot_scan *s = context;
    weir_spill_record record = {.vertex = 0};
    const uint8_t *k = key;
    switch (key_length ? k[0] : 0) {
    case 'E':
        return scan_visit_edge(s, key, key_length, value, value_length);
    case 'F':
        return scan_visit_features(s, key, key_length, value, value_length);
    case 'K':
        /* A put that left neither a row nor an edge. */
        if (!weir_put_key_read(key, key_length, &record.vertex, &record.time_us)) return scan_damaged('K');
        return record.time_us < s->draft->as_of_us ? weir_spill_add(s->puts[0], &record) : WEIR_OK; /* SNAPSHOT-Z3 */
    case 'L':
        return scan_visit_label(s, key, key_length, value, value_length);
    case 'N':
        return scan_visit_name(s, key, key_length, value, value_length);
    default:
        return WEIR_OK; /* offsets and the like are the store's own, deletions of vertices are known */
    }
}

/* --- spills ------------------------------------------------------------------------------------------------------ */

static weir_err scan_open_spills(const snapshot_scan *s, const char *kind, uint32_t count, weir_spill ***spillsp) {
    char name[64];
    weir_err err = WEIR_OK;
    *spillsp = weir_calloc(count, sizeof **spillsp);
    if (!*spillsp) return WEIR_NOMEM("for the files of a scan");
    for (uint32_t i = 0; !err && i < count; i++) {
        snprintf(name, sizeof name, "%s.%u", kind, i);
        err = weir_spill_open(s->draft->spill, name, s->shard, &(*spillsp)[i]);
    }
    return err;
}

static void scan_close_spills(weir_spill **spills, uint32_t count, weir_err *errp) {
    for (uint32_t i = 0; spills && i < count; i++)
        weir_err_keep(errp, weir_spill_close(spills[i]));
    weir_free(spills);
}

static weir_err scan_shard(snapshot_scan *s) {
    const weir_schema *schema = s->draft->schema;
    uint32_t types = weir_schema_vertex_count(schema), relations = weir_schema_relation_count(schema);
    uint32_t labels = weir_schema_label_count(schema);
    weir_err err = scan_open_spills(s, "edges", relations * 2, &s->edges);
    if (!err) err = scan_open_spills(s, "features", types, &s->features);
    if (!err) err = scan_open_spills(s, "names", types, &s->names);
    if (!err) err = scan_open_spills(s, "labels", labels, &s->labels);
    if (!err) err = scan_open_spills(s, "puts", 1, &s->puts);
    if (!err) err = scan_open_spills(s, "met", 1, &s->met);
    if (!err) err = scan_open_spills(s, "rowed", 1, &s->rowed);
    s->list = (weir_edge_key){.relation = UINT16_MAX};
    if (!err) err = weir_graph_scan(s->draft->graph, s->shard, scan_visit, s);
    if (!err) err = scan_meet_end(s);
    scan_close_spills(s->edges, relations * 2, &err);
    scan_close_spills(s->features, types, &err);
    scan_close_spills(s->names, types, &err);
    scan_close_spills(s->labels, labels, &err);
    scan_close_spills(s->puts, 1, &err);
    scan_close_spills(s->met, 1, &err);
    scan_close_spills(s->rowed, 1, &err);
    s->rowed = s->met = s->puts = s->edges = s->features = s->names = s->labels = NULL;
    return err;
}

weir_err weir_draft_scan(weir_snapshot_draft *draft) {
    snapshot_scan s = {.draft = draft};
    uint32_t relations = weir_schema_relation_count(draft->schema);
    s.gone_us = weir_calloc(relations, sizeof *s.gone_us);
    s.from_us = weir_calloc(relations, sizeof *s.from_us);
    weir_err err = s.gone_us && s.from_us ? WEIR_OK : WEIR_NOMEM("for a scan");
    for (uint32_t i = 0; !err && i < relations; i++) {
        s.gone_us[i] = weir_draft_gone_us(draft, i);
        s.from_us[i] = weir_draft_relation_from_us(draft, i);
    }
    for (s.shard = 0; !err && s.shard < draft->shards; s.shard++)
        err = scan_shard(&s);
    weir_lives_free(&s.lives);
    weir_table_free(&s.hidden);
    weir_free(s.gone_us);
    weir_free(s.from_us);
    return err;
}
