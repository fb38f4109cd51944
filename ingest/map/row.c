/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - the fields that a rule assigns become a row of features. */
#include <string.h>

#include <weir/store/base/assert.h>

#include "map_private.h"

static weir_err row_read_value(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value_kind kind,
                               weir_value *value) {
    bool constant = a->presence == WEIR_SCHEMA_CONSTANT;
    const weir_cell *cell = constant ? NULL : &mapper->cells[a->field];
    if (constant || (cell->kind == WEIR_CELL_ABSENT && a->presence == WEIR_SCHEMA_DEFAULT)) {
        value->present = true;
        value->number = a->number;
        value->text = a->text ? a->text : "";
        WEIR_ASSERT(strlen(value->text) <= WEIR_ROW_TEXT_MAX); /* as the schema's reader allows */
        value->text_length = (uint8_t)strlen(value->text);
        return WEIR_OK;
    }
    const char *path = weir_map_path(mapper, a->field);
    if (cell->kind == WEIR_CELL_ABSENT)
        return a->presence == WEIR_SCHEMA_REQUIRED ? weir_cell_wrong(cell, path, "missing") : WEIR_OK;
    value->present = true;
    if (kind == WEIR_VALUE_NUMBER) return weir_cell_number(cell, path, &value->number);
    if (kind == WEIR_VALUE_TIME) return weir_cell_time(cell, path, a->time_format, &value->time_us);
    size_t length;
    weir_err err = weir_cell_text(cell, path, &value->text, &length);
    if (err) return err;
    if (length > WEIR_ROW_TEXT_MAX) return weir_cell_wrong(cell, path, "longer than 255 bytes");
    value->text_length = (uint8_t)length;
    return WEIR_OK;
}

static weir_err row_write(weir_mapper *mapper, const weir_value_kind *kinds, const weir_value *values, size_t count,
                          weir_mutation *m) {
    size_t size = weir_row_size(kinds, values, count);
    uint8_t *row = weir_arena_alloc_aligned(mapper->arena, 1, size);
    if (!row) return weir_map_no_memory();
    m->row_length = (uint32_t)weir_row_write(kinds, values, count, row);
    WEIR_ASSERT(m->row_length <= size);
    m->row = row;
    return WEIR_OK;
}

weir_err weir_map_row(weir_mapper *mapper, const weir_rule *rule, weir_mutation *m) {
    const weir_schema_mutation *schema = rule->schema;
    weir_value *values = mapper->values;
    bool any = false;
    m->row = NULL;
    m->row_length = 0;
    if (schema->assignment_count == 0) return WEIR_OK;
    memset(values, 0, rule->kind_count * sizeof values[0]);
    for (uint32_t i = 0; i < schema->assignment_count; i++) {
        const weir_schema_assignment *a = &schema->assignments[i];
        WEIR_ASSERT(a->feature < rule->kind_count);
        weir_err err = row_read_value(mapper, a, rule->kinds[a->feature], &values[a->feature]);
        if (err) return err;
        any = any || values[a->feature].present;
    }
    return any ? row_write(mapper, rule->kinds, values, rule->kind_count, m) : WEIR_OK;
}

/* A text that is not of the schema's classes makes a bad message, not a new class. */
weir_err weir_map_label_row(weir_mapper *mapper, const weir_rule *rule, const weir_schema_label *label,
                            weir_mutation *m) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    const weir_schema_assignment *a = &rule->schema->value;
    weir_value value = {0};
    weir_err err = row_read_value(mapper, a, kind, &value);
    if (err) return err;
    if (a->presence != WEIR_SCHEMA_CONSTANT &&
        weir_schema_values_find(&label->values, value.text, value.text_length) == WEIR_SCHEMA_NONE) {
        return weir_cell_wrong(&mapper->cells[a->field], weir_map_path(mapper, a->field),
                               "not one of the label's values");
    }
    return row_write(mapper, &kind, &value, 1, m);
}
