/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - the fields that a rule assigns become a row of features. */
#include <string.h>

#include "map_private.h"

static weir_err category_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value *value) {
    size_t length;
    const weir_cell *cell = &mapper->cells[a->field];
    const char *path = weir_map_path(mapper, a->field);
    weir_err err = weir_cell_text(cell, path, &value->text, &length);
    if (err) return err;
    if (length > WEIR_ROW_TEXT_MAX) return weir_cell_wrong(cell, path, "longer than 255 bytes");
    value->text_length = (uint8_t)length;
    return WEIR_OK;
}

static weir_err cell_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value_kind kind,
                          weir_value *value) {
    const weir_cell *cell = &mapper->cells[a->field];
    const char *path = weir_map_path(mapper, a->field);
    value->present = true;
    if (kind == WEIR_VALUE_NUMBER) return weir_cell_number(cell, path, &value->number);
    if (kind == WEIR_VALUE_TIME) return weir_cell_time(cell, path, a->time_format, &value->time_us);
    return category_read(mapper, a, value);
}

/* rules.c has seen that the text fits. */
static void constant_read(const weir_schema_assignment *a, weir_value *value) {
    value->present = true;
    value->number = a->number;
    value->text = a->text ? a->text : "";
    value->text_length = (uint8_t)strlen(value->text);
}

static weir_err value_read(const weir_mapper *mapper, const weir_schema_assignment *a, weir_value_kind kind,
                           weir_value *value) {
    if (a->presence == WEIR_SCHEMA_CONSTANT) {
        constant_read(a, value);
        return WEIR_OK;
    }
    const weir_cell *cell = &mapper->cells[a->field];
    if (cell->kind != WEIR_CELL_ABSENT) return cell_read(mapper, a, kind, value);
    if (a->presence == WEIR_SCHEMA_DEFAULT) constant_read(a, value);
    if (a->presence == WEIR_SCHEMA_REQUIRED) return weir_cell_wrong(cell, weir_map_path(mapper, a->field), "missing");
    return WEIR_OK;
}

static weir_err row_write(weir_mapper *mapper, const weir_value_kind *kinds, const weir_value *values, size_t count,
                          weir_mutation *m) {
    uint8_t *row = weir_arena_alloc_aligned(mapper->arena, 1, weir_row_size(kinds, values, count));
    if (!row) return weir_map_no_memory();
    m->row_length = (uint32_t)weir_row_write(kinds, values, count, row);
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
        weir_err err = value_read(mapper, a, rule->kinds[a->feature], &values[a->feature]);
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
    weir_err err = value_read(mapper, a, kind, &value);
    if (err) return err;
    if (a->presence != WEIR_SCHEMA_CONSTANT &&
        weir_schema_values_find(&label->values, value.text, value.text_length) == WEIR_SCHEMA_NONE) {
        return weir_cell_wrong(&mapper->cells[a->field], weir_map_path(mapper, a->field),
                               "not one of the label's values");
    }
    return row_write(mapper, &kind, &value, 1, m);
}
