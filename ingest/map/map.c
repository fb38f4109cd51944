/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - the cells of a message, through the rules of its source.
 *
 *   cells ──► id, time ──► for each rule whose conditions hold: ends, then the row ──► mutations, both halves of edges
 *
 * Everything is worked out before anything is handed out, so a fault in the last field takes the whole event back
 * (check, then act). An edge puts both its ends, once a message: a vertex exists from the first edge that touches it.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/hash.h>

#include "map_private.h"

/* Texts whose escapes were undone, at most a message; rows of 64 rules; keys: so it is never full by what a message
 * says. */
#define ARENA_BYTES_MAX (16u << 20)

#define EVENTS "event" /* ids are named per store, not per source: a label names the event of another source */

weir_err weir_map_no_memory(void) {
    return WEIR_NOMEM("while mapping a message");
}

/* --- mutations -------------------------------------------------------------------------------------------------- */

static weir_mutation *map_emit(weir_mapper *mapper, const weir_rule *rule, weir_mutation_kind kind) {
    WEIR_ASSERT(mapper->count < WEIR_MAP_MUTATIONS_MAX); /* four a rule at most */
    WEIR_ASSERT(rule->from->message == mapper->message);
    weir_mutation *m = &mapper->mutations[mapper->count++];
    *m = (weir_mutation){.kind = kind,
                         .type = (uint16_t)rule->schema->subject,
                         .offset = mapper->offset,
                         .time_us = mapper->time_us,
                         .event = mapper->event,
                         .vertex = rule->from->vertex};
    return m;
}

static weir_mutation *map_emit_put(weir_mapper *mapper, const weir_rule *rule, weir_end *end) {
    weir_mutation *m = map_emit(mapper, rule, WEIR_PUT_VERTEX);
    WEIR_ASSERT(end->key_length > 0 && end->key_length <= WEIR_KEY_MAX);
    m->type = end->type;
    m->vertex = end->vertex;
    m->key = end->key;
    m->key_length = end->key_length;
    end->put = true;
    return m;
}

/* The other half of the edge whose first was just emitted. */
static void map_emit_other_half(weir_mapper *mapper) {
    WEIR_ASSERT(mapper->count > 0 && mapper->count < WEIR_MAP_MUTATIONS_MAX);
    const weir_mutation *out = &mapper->mutations[mapper->count - 1];
    weir_mutation *in = &mapper->mutations[mapper->count++];
    *in = *out;
    in->direction = WEIR_IN;
    in->vertex = out->neighbor;
    in->neighbor = out->vertex;
}

/* 0 where the rule names no event. */
static weir_err map_named_event(weir_mapper *mapper, const weir_schema_key *key, uint64_t *eventp) {
    const char *text;
    size_t length;
    *eventp = 0;
    if (key->count == 0) return WEIR_OK;
    weir_err err = weir_map_key(mapper, key, &text, &length);
    if (!err) *eventp = weir_event_id(&mapper->id_key, EVENTS, text, length);
    return err;
}

static weir_err map_apply_rule(weir_mapper *mapper, const weir_rule *rule) {
    const weir_schema_label *label;
    weir_mutation *m, row;
    weir_err err = weir_map_end(mapper, rule->from);
    if (!err && rule->to) err = weir_map_end(mapper, rule->to);
    if (err) return err;
    switch (rule->schema->verb) {
    case WEIR_SCHEMA_PUT_VERTEX:
        err = weir_map_row(mapper, rule, &row);
        if (err || (!row.row && rule->from->put)) return err; /* the name alone is put once a message */
        m = map_emit_put(mapper, rule, rule->from);
        m->row = row.row;
        m->row_length = row.row_length;
        return WEIR_OK;
    case WEIR_SCHEMA_PUT_EDGE:
        if (!rule->from->put) map_emit_put(mapper, rule, rule->from);
        if (!rule->to->put) map_emit_put(mapper, rule, rule->to);
        m = map_emit(mapper, rule, WEIR_PUT_EDGE);
        m->neighbor = rule->to->vertex;
        err = weir_map_row(mapper, rule, m);
        if (!err) map_emit_other_half(mapper);
        return err;
    case WEIR_SCHEMA_PUT_LABEL:
        label = weir_schema_label_at(mapper->schema, rule->schema->subject);
        m = map_emit(mapper, rule, WEIR_PUT_LABEL);
        if (label->on_relation) {
            m->neighbor = rule->to->vertex;
            err = map_named_event(mapper, &rule->schema->event, &m->event);
        }
        return err ? err : weir_map_label_row(mapper, rule, label, m);
    case WEIR_SCHEMA_DELETE_VERTEX:
        map_emit(mapper, rule, WEIR_DELETE_VERTEX);
        return WEIR_OK;
    case WEIR_SCHEMA_DELETE_EDGE:
        m = map_emit(mapper, rule, WEIR_DELETE_EDGE);
        m->neighbor = rule->to->vertex;
        err = map_named_event(mapper, &rule->schema->event, &m->event);
        if (!err) map_emit_other_half(mapper);
        return err;
    }
    return WEIR_OK;
}

/* --- conditions ------------------------------------------------------------------------------------------------- */

static bool map_is_one_of(const weir_cell *cell, const weir_schema_values *values) {
    return cell->kind != WEIR_CELL_ABSENT && cell->kind != WEIR_CELL_NESTED &&
           weir_schema_values_find(values, cell->text, cell->length) != WEIR_SCHEMA_NONE;
}

static bool map_conditions_hold(const weir_mapper *mapper, const weir_schema_mutation *rule) {
    bool hold = true;
    for (uint32_t i = 0; hold && i < rule->condition_count; i++) {
        const weir_schema_condition *condition = &rule->conditions[i];
        const weir_cell *cell = &mapper->cells[condition->field];
        switch (condition->test) {
        case WEIR_SCHEMA_HAS:
            hold = cell->kind != WEIR_CELL_ABSENT;
            break;
        case WEIR_SCHEMA_LACKS:
            hold = cell->kind == WEIR_CELL_ABSENT;
            break;
        case WEIR_SCHEMA_IS:
            hold = map_is_one_of(cell, &condition->values);
            break;
        case WEIR_SCHEMA_IS_NOT:
            hold = !map_is_one_of(cell, &condition->values);
            break;
        }
    }
    return hold;
}

/* --- the message ------------------------------------------------------------------------------------------------ */

/* What an event says, in 32 bits: not its bytes, which another client orders and spaces in another way. It begins with
 * the event's id, so only who holds the store's key can make two contents of one id meet. */
static void map_sign_mutations(weir_mapper *mapper) {
    uint64_t hash = mapper->event;
    for (size_t i = 0; i < mapper->count; i++) {
        const weir_mutation *m = &mapper->mutations[i];
        if (m->direction == WEIR_IN) continue; /* the other half of the one before */
        const uint64_t words[] = {(uint64_t)m->kind | (uint64_t)m->type << 8 | (uint64_t)m->row_length << 32,
                                  weir_vertex_high(m->vertex),
                                  weir_vertex_low(m->vertex),
                                  weir_vertex_high(m->neighbor),
                                  weir_vertex_low(m->neighbor),
                                  (uint64_t)m->time_us,
                                  m->event};
        hash = weir_xxh3(words, sizeof words, hash);
        if (m->row_length) hash = weir_xxh3(m->row, m->row_length, hash);
    }
    mapper->content = (uint32_t)hash;
    for (size_t i = 0; i < mapper->count; i++)
        mapper->mutations[i].content = mapper->content;
}

weir_err weir_mapper_map(weir_mapper *mapper, uint32_t partition, uint64_t offset, const void *message, size_t length,
                         weir_mapped *mappedp) {
    const weir_schema_source *source = mapper->source;
    weir_mapped mapped = {0};
    weir_err err;
    *mappedp = mapped;
    mapper->count = 0;
    mapper->offset = offset;
    mapper->message++;
    weir_arena_reset(mapper->arena);

    /* The cells. */
    if (source->format == WEIR_SCHEMA_JSON) {
        err = weir_message_json(mapper->paths, message, length, mapper->arena, mapper->cells, source->field_count);
    } else {
        err = weir_message_csv(source->separator, mapper->field_of_column, source->columns.count, message, length,
                               mapper->arena, mapper->cells, source->field_count);
    }
    if (err) return err;

    /* Which event it is, and when. */
    if (source->id.count == 0) {
        mapper->event = weir_event_id_at(&mapper->id_key, source->topic, partition, offset);
    } else {
        err = weir_map_key(mapper, &source->id, &mapped.event_id, &mapped.event_id_length);
        if (err) return err;
        mapper->event = weir_event_id(&mapper->id_key, EVENTS, mapped.event_id, mapped.event_id_length);
    }
    err = weir_cell_time(&mapper->cells[source->time_field], weir_map_path(mapper, source->time_field),
                         source->time_format, &mapper->time_us);

    for (uint32_t i = 0; !err && i < source->mutation_count; i++) {
        const weir_rule *rule = &mapper->rules[i];
        if (map_conditions_hold(mapper, rule->schema)) err = map_apply_rule(mapper, rule);
    }
    if (err) return err;
    map_sign_mutations(mapper);
    mapped.mutations = mapper->mutations;
    mapped.count = mapper->count;
    mapped.event = mapper->event;
    mapped.content = mapper->content;
    mapped.time_us = mapper->time_us;
    *mappedp = mapped;
    return WEIR_OK;
}

weir_err weir_mapper_check_time(const weir_mapper *mapper, int64_t latest_us) {
    char time[WEIR_TIME_TEXT_MAX], latest[WEIR_TIME_TEXT_MAX], what[192];
    uint32_t field = mapper->source->time_field;
    if (mapper->time_us <= latest_us) return WEIR_OK;
    weir_time_format(mapper->time_us, time);
    weir_time_format(latest_us, latest);
    snprintf(
        what, sizeof what,
        "the event's time, %s, is in the future: none after %s is taken (ingest.future_max); check the sender's clock",
        time, latest);
    return weir_cell_wrong(&mapper->cells[field], weir_map_path(mapper, field), what);
}

weir_err weir_mapper_tombstone(weir_mapper *mapper, uint32_t partition, uint64_t offset, int64_t time_us,
                               const void *key, size_t key_length, weir_mapped *mappedp) {
    const weir_schema_source *source = mapper->source;
    *mappedp = (weir_mapped){0};
    mapper->count = 0;
    mapper->offset = offset;
    mapper->message++;
    if (source->tombstone == WEIR_SCHEMA_NONE || !key || key_length == 0) return WEIR_OK;
    const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, source->tombstone);
    weir_arena_reset(mapper->arena);
    mapper->gone.type = (uint16_t)source->tombstone;
    mapper->gone.type_name = vertex->name;
    mapper->gone.integer = vertex->key == WEIR_SCHEMA_KEY_INTEGER;
    weir_err err = weir_map_end_named(mapper, &mapper->gone, key, key_length);
    if (err) return err;
    mapper->event = weir_event_id_at(&mapper->id_key, source->topic, partition, offset);
    mapper->mutations[mapper->count++] = (weir_mutation){.kind = WEIR_DELETE_VERTEX,
                                                         .type = mapper->gone.type,
                                                         .offset = offset,
                                                         .time_us = time_us,
                                                         .event = mapper->event,
                                                         .vertex = mapper->gone.vertex};
    *mappedp = (weir_mapped){
        .mutations = mapper->mutations, .count = mapper->count, .event = mapper->event, .time_us = time_us};
    return WEIR_OK;
}

/* --- open and close --------------------------------------------------------------------------------------------- */

static weir_err map_open_columns(weir_mapper *mapper) {
    const weir_schema_source *source = mapper->source;
    mapper->field_of_column = weir_malloc(source->columns.count * sizeof(uint32_t));
    if (!mapper->field_of_column) return weir_map_no_memory();
    for (uint32_t i = 0; i < source->columns.count; i++)
        mapper->field_of_column[i] = WEIR_SCHEMA_NONE;
    for (uint32_t i = 0; i < source->field_count; i++) {
        WEIR_ASSERT(source->fields[i].column < source->columns.count);
        mapper->field_of_column[source->fields[i].column] = i;
    }
    return WEIR_OK;
}

weir_err weir_mapper_open(const weir_schema *schema, size_t source_index, const weir_id_key *id_key,
                          weir_mapper **mapperp) {
    *mapperp = NULL;
    WEIR_ASSERT(source_index < weir_schema_source_count(schema));
    weir_mapper *mapper = weir_calloc(1, sizeof *mapper);
    if (!mapper) return weir_map_no_memory();
    mapper->schema = schema;
    mapper->id_key = *id_key;
    mapper->source = weir_schema_source_at(schema, (uint32_t)source_index);
    weir_err err = weir_arena_open(ARENA_BYTES_MAX, &mapper->arena);
    mapper->cells = weir_calloc(mapper->source->field_count, sizeof(weir_cell));
    if (!err && !mapper->cells) err = weir_map_no_memory();
    if (!err && mapper->source->format == WEIR_SCHEMA_JSON) err = weir_paths_open(mapper->source, &mapper->paths);
    if (!err && mapper->source->format == WEIR_SCHEMA_CSV) err = map_open_columns(mapper);
    if (!err) err = weir_map_rules_open(mapper);
    if (err) {
        weir_mapper_close(mapper);
        return err;
    }
    *mapperp = mapper;
    return WEIR_OK;
}

void weir_mapper_close(weir_mapper *mapper) {
    if (!mapper) return;
    weir_map_rules_close(mapper);
    weir_paths_close(mapper->paths);
    weir_arena_close(mapper->arena);
    weir_free(mapper->field_of_column);
    weir_free(mapper->cells);
    weir_free(mapper);
}
