/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - the cells of a message, through the mutations of its source.
 *
 *   cells ──► id, time ──► for each mutation whose conditions hold: keys, then the row ──► mutations, both halves of
 * edges
 *
 * Everything is worked out before anything is handed out, so a fault in the last field takes the whole event back
 * (check, then act). An edge puts both its ends: a vertex exists from the first edge that touches it.
 */
#include <stdio.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/ingest/map.h>
#include <weir/store/row.h>

#include "value.h"

#define ARENA_BYTES_MAX (16u << 20)

struct weir_mapper {
    const weir_schema *schema;
    const weir_schema_source *source;
    weir_paths *paths;         /* JSON */
    uint32_t *field_of_column; /* CSV; as many as columns */
    uint32_t column_count;
    weir_arena *arena; /* of one message */
    weir_cell *cells;  /* one a field    */
    weir_mutation mutations[WEIR_MAP_MUTATIONS_MAX];
    size_t count;
    /* of the message in hand */
    uint64_t offset, event;
    int64_t time_us;
};

/* A key in hand: text and the vertex that it names. */
typedef struct end {
    uint32_t type;
    const char *key;
    size_t key_length;
    weir_vertex vertex;
} end;

static weir_err no_memory(void) {
    return WEIR_ERR(WEIR_ENOMEM, "no memory to map a message");
}

static const char *path_of(const weir_mapper *mapper, uint32_t field) {
    return mapper->source->fields[field].path;
}

/* --- keys ----------------------------------------------------------------------------------------------------------
 * */

/* Escapes so that ("a|b", "c") and ("a", "b|c") are two keys. */
static char *part_append(char *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '|' || text[i] == '\\') *to++ = '\\';
        *to++ = text[i];
    }
    return to;
}

static weir_err key_of_parts(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    const char *parts[WEIR_SCHEMA_KEY_PARTS_MAX];
    size_t lengths[WEIR_SCHEMA_KEY_PARTS_MAX], room = key->count;
    for (uint32_t i = 0; i < key->count; i++) {
        uint32_t field = key->fields[i];
        weir_err err = weir_cell_text(&mapper->cells[field], path_of(mapper, field), &parts[i], &lengths[i]);
        if (err) return err;
        room += 2 * lengths[i];
    }
    char *text = weir_arena_alloc_aligned(mapper->arena, 1, room), *to = text;
    if (!text) return no_memory();
    for (uint32_t i = 0; i < key->count; i++) {
        if (i > 0) *to++ = '|';
        to = part_append(to, parts[i], lengths[i]);
    }
    *textp = text;
    *lengthp = (size_t)(to - text);
    return WEIR_OK;
}

static weir_err key_text(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    uint32_t field = key->fields[0];
    const weir_cell *cell = &mapper->cells[field];
    weir_err err = key->count > 1 ? key_of_parts(mapper, key, textp, lengthp)
                                  : weir_cell_text(cell, path_of(mapper, field), textp, lengthp);
    if (err) return err;
    if (*lengthp == 0) return weir_cell_wrong(cell, path_of(mapper, field), "an empty key");
    if (*lengthp > WEIR_KEY_MAX) return weir_cell_wrong(cell, path_of(mapper, field), "a key longer than 1024 bytes");
    return WEIR_OK;
}

/* 7, "7" and "007" are one vertex: whole numbers are written again. */
static weir_err key_integer(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    int64_t value;
    uint32_t field = key->fields[0];
    weir_err err = weir_cell_integer(&mapper->cells[field], path_of(mapper, field), &value);
    if (err) return err;
    *textp = weir_arena_printf(mapper->arena, "%lld", (long long)value);
    if (!*textp) return no_memory();
    *lengthp = strlen(*textp);
    return WEIR_OK;
}

static weir_err end_read(weir_mapper *mapper, const weir_schema_key *key, uint32_t type, end *endp) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, type);
    *endp = (end){.type = type};
    bool integer = vertex->key == WEIR_SCHEMA_KEY_INTEGER && key->count == 1;
    weir_err err = integer ? key_integer(mapper, key, &endp->key, &endp->key_length)
                           : key_text(mapper, key, &endp->key, &endp->key_length);
    if (!err) endp->vertex = weir_vertex_id(vertex->name, endp->key, endp->key_length);
    return err;
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 * */

static weir_err category_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value *value) {
    size_t length;
    const weir_cell *cell = &mapper->cells[a->field];
    weir_err err = weir_cell_text(cell, path_of(mapper, a->field), &value->text, &length);
    if (err) return err;
    if (length > WEIR_ROW_TEXT_MAX) return weir_cell_wrong(cell, path_of(mapper, a->field), "longer than 255 bytes");
    value->text_length = (uint8_t)length;
    return WEIR_OK;
}

static weir_err cell_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value_kind kind,
                          weir_value *value) {
    const weir_cell *cell = &mapper->cells[a->field];
    const char *path = path_of(mapper, a->field);
    value->present = true;
    if (kind == WEIR_VALUE_NUMBER) return weir_cell_number(cell, path, &value->number);
    if (kind == WEIR_VALUE_TIME) return weir_cell_time(cell, path, a->time_format, &value->time_us);
    return category_read(mapper, a, value);
}

static void constant_read(const weir_schema_assignment *a, weir_value *value) {
    value->present = true;
    value->number = a->number;
    value->text = a->text ? a->text : "";
    value->text_length = (uint8_t)strnlen(value->text, WEIR_ROW_TEXT_MAX);
}

static weir_err value_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value_kind kind,
                           weir_value *value) {
    if (a->presence == WEIR_SCHEMA_CONSTANT) {
        constant_read(a, value);
        return WEIR_OK;
    }
    if (mapper->cells[a->field].kind != WEIR_CELL_ABSENT) return cell_read(mapper, a, kind, value);
    if (a->presence == WEIR_SCHEMA_DEFAULT) constant_read(a, value);
    if (a->presence == WEIR_SCHEMA_REQUIRED) {
        return weir_cell_wrong(&mapper->cells[a->field], path_of(mapper, a->field), "missing");
    }
    return WEIR_OK;
}

static weir_value_kind kind_of(weir_schema_feature_kind kind) {
    return kind == WEIR_SCHEMA_NUMBER ? WEIR_VALUE_NUMBER
           : kind == WEIR_SCHEMA_TIME ? WEIR_VALUE_TIME
                                      : WEIR_VALUE_CATEGORY;
}

static weir_err row_write(weir_mapper *mapper, const weir_value_kind *kinds, const weir_value *values, size_t count,
                          weir_mutation *m) {
    uint8_t *row = weir_arena_alloc_aligned(mapper->arena, 1, weir_row_size(kinds, values, count));
    if (!row) return no_memory();
    m->row_length = (uint32_t)weir_row_write(kinds, values, count, row);
    m->row = row;
    return WEIR_OK;
}

/* No row when the mutation assigns nothing, or when all that it assigns is optional and absent. */
static weir_err row_read(weir_mapper *mapper, const weir_schema_mutation *rule, const weir_schema_feature *features,
                         uint32_t feature_count, weir_mutation *m) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    weir_value_kind kinds[WEIR_ROW_FEATURES_MAX];
    bool any = false;
    m->row = NULL;
    m->row_length = 0;
    if (rule->assignment_count == 0) return WEIR_OK;
    memset(values, 0, feature_count * sizeof values[0]);
    for (uint32_t i = 0; i < feature_count; i++)
        kinds[i] = kind_of(features[i].kind);
    for (uint32_t i = 0; i < rule->assignment_count; i++) {
        const weir_schema_assignment *a = &rule->assignments[i];
        weir_err err = value_read(mapper, a, kinds[a->feature], &values[a->feature]);
        if (err) return err;
        any = any || values[a->feature].present;
    }
    return any ? row_write(mapper, kinds, values, feature_count, m) : WEIR_OK;
}

/* --- mutations -----------------------------------------------------------------------------------------------------
 * */

static weir_err emit(weir_mapper *mapper, const weir_mutation *m) {
    if (mapper->count == WEIR_MAP_MUTATIONS_MAX) {
        return WEIR_ERR(WEIR_EDATA, "the message makes more than %u mutations", WEIR_MAP_MUTATIONS_MAX);
    }
    weir_mutation *to = &mapper->mutations[mapper->count++];
    *to = *m;
    to->offset = mapper->offset;
    to->time_us = mapper->time_us;
    return WEIR_OK;
}

static weir_err emit_vertex(weir_mapper *mapper, const end *e, const weir_mutation *row) {
    weir_mutation m = {.kind = WEIR_PUT_VERTEX,
                       .type = (uint16_t)e->type,
                       .vertex = e->vertex,
                       .event = mapper->event,
                       .key = e->key,
                       .key_length = (uint16_t)e->key_length};
    if (row) {
        m.row = row->row;
        m.row_length = row->row_length;
    }
    return emit(mapper, &m);
}

static weir_err emit_halves(weir_mapper *mapper, weir_mutation *m, const end *from, const end *to) {
    m->direction = WEIR_OUT;
    m->vertex = from->vertex;
    m->neighbor = to->vertex;
    weir_err err = emit(mapper, m);
    m->direction = WEIR_IN;
    m->vertex = to->vertex;
    m->neighbor = from->vertex;
    return err ? err : emit(mapper, m);
}

static weir_err ends_read(weir_mapper *mapper, const weir_schema_mutation *rule, uint32_t relation, end *from,
                          end *to) {
    const weir_schema_relation *r = weir_schema_relation_at(mapper->schema, relation);
    weir_err err = end_read(mapper, &rule->from, r->from, from);
    return err ? err : end_read(mapper, &rule->to, r->to, to);
}

/* Events are named per store, not per source: a label or a deletion names the event of another source. */
static weir_err named_event(weir_mapper *mapper, const weir_schema_key *key, uint64_t *eventp) {
    const char *text;
    size_t length;
    *eventp = 0;
    if (key->count == 0) return WEIR_OK;
    weir_err err = key_text(mapper, key, &text, &length);
    if (!err) *eventp = weir_event_id("event", text, length);
    return err;
}

static weir_err put_vertex(weir_mapper *mapper, const weir_schema_mutation *rule) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, rule->subject);
    weir_mutation row = {0};
    end e;
    weir_err err = end_read(mapper, &rule->key, rule->subject, &e);
    if (!err) err = row_read(mapper, rule, vertex->features, vertex->feature_count, &row);
    return err ? err : emit_vertex(mapper, &e, &row);
}

static weir_err put_edge(weir_mapper *mapper, const weir_schema_mutation *rule) {
    const weir_schema_relation *relation = weir_schema_relation_at(mapper->schema, rule->subject);
    weir_mutation m = {.kind = WEIR_PUT_EDGE, .type = (uint16_t)rule->subject, .event = mapper->event};
    end from, to;
    weir_err err = ends_read(mapper, rule, rule->subject, &from, &to);
    if (!err) err = row_read(mapper, rule, relation->features, relation->feature_count, &m);
    if (!err) err = emit_vertex(mapper, &from, NULL);
    if (!err) err = emit_vertex(mapper, &to, NULL);
    return err ? err : emit_halves(mapper, &m, &from, &to);
}

/* A label that is not of the schema's classes is a bad message, not a new class. */
static weir_err label_value(weir_mapper *mapper, const weir_schema_mutation *rule, weir_mutation *m) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    const weir_schema_label *label = weir_schema_label_at(mapper->schema, rule->subject);
    const weir_schema_assignment *a = &rule->value;
    weir_value value = {0};
    weir_err err = value_read(mapper, a, kind, &value);
    if (err) return err;
    if (weir_schema_values_find(&label->values, value.text, value.text_length) == WEIR_SCHEMA_NONE) {
        return weir_cell_wrong(&mapper->cells[a->field], path_of(mapper, a->field), "not one of the label's values");
    }
    return row_write(mapper, &kind, &value, 1, m);
}

static weir_err put_label(weir_mapper *mapper, const weir_schema_mutation *rule) {
    const weir_schema_label *label = weir_schema_label_at(mapper->schema, rule->subject);
    weir_mutation m = {.kind = WEIR_PUT_LABEL, .type = (uint16_t)rule->subject, .event = mapper->event};
    end at, to;
    weir_err err = label->on_relation ? ends_read(mapper, rule, label->target, &at, &to)
                                      : end_read(mapper, &rule->key, label->target, &at);
    if (!err && label->on_relation) err = named_event(mapper, &rule->event, &m.event);
    if (!err && label->on_relation) m.neighbor = to.vertex;
    if (!err) err = label_value(mapper, rule, &m);
    m.vertex = at.vertex;
    return err ? err : emit(mapper, &m);
}

static weir_err delete_vertex(weir_mapper *mapper, const weir_schema_mutation *rule) {
    end e;
    weir_err err = end_read(mapper, &rule->key, rule->subject, &e);
    weir_mutation m = {
        .kind = WEIR_DELETE_VERTEX, .type = (uint16_t)rule->subject, .event = mapper->event, .vertex = e.vertex};
    return err ? err : emit(mapper, &m);
}

static weir_err delete_edge(weir_mapper *mapper, const weir_schema_mutation *rule) {
    weir_mutation m = {.kind = WEIR_DELETE_EDGE, .type = (uint16_t)rule->subject};
    end from, to;
    weir_err err = ends_read(mapper, rule, rule->subject, &from, &to);
    if (!err) err = named_event(mapper, &rule->event, &m.event);
    return err ? err : emit_halves(mapper, &m, &from, &to);
}

static bool holds(const weir_mapper *mapper, const weir_schema_condition *condition) {
    const weir_cell *cell = &mapper->cells[condition->field];
    bool there = cell->kind != WEIR_CELL_ABSENT;
    bool is = there && cell->kind != WEIR_CELL_NESTED &&
              weir_schema_values_find(&condition->values, cell->text, cell->length) != WEIR_SCHEMA_NONE;
    switch (condition->test) {
    case WEIR_SCHEMA_HAS:
        return there;
    case WEIR_SCHEMA_LACKS:
        return !there;
    case WEIR_SCHEMA_IS:
        return is;
    case WEIR_SCHEMA_IS_NOT:
        return !is;
    }
    return false;
}

static bool all_hold(const weir_mapper *mapper, const weir_schema_mutation *rule) {
    for (uint32_t i = 0; i < rule->condition_count; i++) {
        if (!holds(mapper, &rule->conditions[i])) return false;
    }
    return true;
}

static weir_err apply_rule(weir_mapper *mapper, const weir_schema_mutation *rule) {
    switch (rule->verb) {
    case WEIR_SCHEMA_PUT_VERTEX:
        return put_vertex(mapper, rule);
    case WEIR_SCHEMA_PUT_EDGE:
        return put_edge(mapper, rule);
    case WEIR_SCHEMA_PUT_LABEL:
        return put_label(mapper, rule);
    case WEIR_SCHEMA_DELETE_VERTEX:
        return delete_vertex(mapper, rule);
    case WEIR_SCHEMA_DELETE_EDGE:
        return delete_edge(mapper, rule);
    }
    return WEIR_OK;
}

/* --- the message ---------------------------------------------------------------------------------------------------
 * */

static weir_err cells_read(weir_mapper *mapper, const void *message, size_t length) {
    const weir_schema_source *source = mapper->source;
    weir_arena_reset(mapper->arena);
    if (source->format == WEIR_SCHEMA_JSON) {
        return weir_message_json(mapper->paths, message, length, mapper->arena, mapper->cells, source->field_count);
    }
    return weir_message_csv(source->separator, mapper->field_of_column, mapper->column_count, message, length,
                            mapper->arena, mapper->cells, source->field_count);
}

weir_err weir_mapper_map(weir_mapper *mapper, uint32_t partition, uint64_t offset, const void *message, size_t length,
                         weir_mapped *mappedp) {
    const weir_schema_source *source = mapper->source;
    *mappedp = (weir_mapped){0};
    mapper->count = 0;
    mapper->offset = offset;
    weir_err err = cells_read(mapper, message, length);
    if (!err && source->id.count) {
        err = key_text(mapper, &source->id, &mappedp->event_id, &mappedp->event_id_length);
        if (!err) mapper->event = weir_event_id("event", mappedp->event_id, mappedp->event_id_length);
    } else {
        mapper->event = weir_event_id_at(source->topic, partition, offset);
    }
    uint32_t time_field = source->time_field;
    if (!err)
        err = weir_cell_time(&mapper->cells[time_field], path_of(mapper, time_field), source->time_format,
                             &mapper->time_us);
    for (uint32_t i = 0; !err && i < source->mutation_count; i++) {
        if (all_hold(mapper, &source->mutations[i])) err = apply_rule(mapper, &source->mutations[i]);
    }
    if (err) return err;
    mappedp->mutations = mapper->mutations;
    mappedp->count = mapper->count;
    mappedp->event = mapper->event;
    mappedp->time_us = mapper->time_us;
    return WEIR_OK;
}

/* --- open and close ------------------------------------------------------------------------------------------------
 * */

static weir_err columns_open(weir_mapper *mapper) {
    const weir_schema_source *source = mapper->source;
    mapper->column_count = source->columns.count;
    mapper->field_of_column = weir_malloc(source->columns.count * sizeof(uint32_t));
    if (!mapper->field_of_column) return no_memory();
    for (uint32_t i = 0; i < source->columns.count; i++)
        mapper->field_of_column[i] = WEIR_SCHEMA_NONE;
    for (uint32_t i = 0; i < source->field_count; i++)
        mapper->field_of_column[source->fields[i].column] = i;
    return WEIR_OK;
}

weir_err weir_mapper_open(const weir_schema *schema, size_t source_index, weir_mapper **mapperp) {
    *mapperp = NULL;
    WEIR_ASSERT(source_index < weir_schema_source_count(schema));
    weir_mapper *mapper = weir_calloc(1, sizeof *mapper);
    if (!mapper) return no_memory();
    mapper->schema = schema;
    mapper->source = weir_schema_source_at(schema, (uint32_t)source_index);
    weir_err err = weir_arena_open(ARENA_BYTES_MAX, &mapper->arena);
    mapper->cells = weir_calloc(mapper->source->field_count, sizeof(weir_cell));
    if (!err && !mapper->cells) err = no_memory();
    if (!err && mapper->source->format == WEIR_SCHEMA_JSON) err = weir_paths_open(mapper->source, &mapper->paths);
    if (!err && mapper->source->format == WEIR_SCHEMA_CSV) err = columns_open(mapper);
    if (err) {
        weir_mapper_close(mapper);
        return err;
    }
    *mapperp = mapper;
    return WEIR_OK;
}

void weir_mapper_close(weir_mapper *mapper) {
    if (!mapper) return;
    weir_paths_close(mapper->paths);
    weir_arena_close(mapper->arena);
    weir_free(mapper->field_of_column);
    weir_free(mapper->cells);
    weir_free(mapper);
}
