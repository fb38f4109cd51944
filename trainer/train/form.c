/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - columns of a row that hold, columns that move, and both as bytes. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "form.h"

/* An age moves; whether it is missing does not. */
static bool form_moves(const weir_nn_inputs *inputs, uint32_t column) {
    for (uint32_t i = 0; i < inputs->number_count; i++)
        if (inputs->numbers[i].column == column) return inputs->numbers[i].kind != WEIR_NN_VALUE;
    return false;
}

static void form_sort_columns(const weir_nn_inputs *inputs, bool timed, weir_train_form_type *type) {
    for (uint32_t c = 0; c < inputs->width; c++)
        if (!timed || !form_moves(inputs, c)) type->columns[type->fixed++] = c;
    for (uint32_t c = 0; timed && c < inputs->width; c++)
        if (form_moves(inputs, c)) type->columns[type->fixed + type->moving++] = c;
    WEIR_ASSERT(type->fixed + type->moving == inputs->width);
    type->categories = inputs->category_count;
}

weir_err weir_train_form_open(const weir_nn_shape *shape, weir_train_wire wire, bool timed, weir_train_form *form) {
    uint32_t types = weir_nn_types(shape), widest = 0;
    *form = (weir_train_form){
        .wire = wire, .timed = timed, .type_count = types, .types = weir_calloc(types, sizeof *form->types)};
    bool all = form->types != NULL;
    for (uint32_t type = 0; all && type < types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, type);
        weir_train_form_type *t = &form->types[type];
        t->columns = weir_calloc(inputs->width + 1, sizeof *t->columns);
        all = t->columns != NULL;
        if (all) form_sort_columns(inputs, timed, t);
        if (inputs->width > widest) widest = inputs->width;
    }
    form->gathered = weir_calloc(widest + 1, sizeof *form->gathered);
    if (all && form->gathered) return WEIR_OK;
    weir_train_form_close(form);
    return WEIR_NOMEM("for rows between ranks");
}

void weir_train_form_close(weir_train_form *form) {
    for (uint32_t type = 0; form->types && type < form->type_count; type++)
        weir_free(form->types[type].columns);
    weir_free(form->types);
    weir_free(form->gathered);
    *form = (weir_train_form){.types = NULL};
}

size_t weir_train_form_bytes(const weir_train_form *form, uint32_t type, unsigned parts) {
    const weir_train_form_type *t = &form->types[type];
    size_t bytes = 0;
    if (parts & WEIR_TRAIN_SPAN) bytes += 2 * sizeof(int64_t);
    if (parts & WEIR_TRAIN_FIXED)
        bytes += weir_train_wire_bytes(form->wire, t->fixed) + t->categories * sizeof(uint32_t);
    if (parts & WEIR_TRAIN_MOVING) bytes += weir_train_wire_bytes(form->wire, t->moving);
    return bytes;
}

static char *form_pack_columns(const weir_train_form *form, const uint32_t *columns, uint32_t count,
                               const weir_real *numbers, char *bytes) {
    for (uint32_t i = 0; i < count; i++)
        form->gathered[i] = numbers[columns[i]];
    weir_train_wire_pack(form->wire, form->gathered, count, bytes);
    return bytes + weir_train_wire_bytes(form->wire, count);
}

static const char *form_unpack_columns(const weir_train_form *form, const uint32_t *columns, uint32_t count,
                                       const char *bytes, weir_real *numbers) {
    weir_train_wire_unpack(form->wire, bytes, count, form->gathered);
    for (uint32_t i = 0; i < count; i++)
        numbers[columns[i]] = form->gathered[i];
    return bytes + weir_train_wire_bytes(form->wire, count);
}

void weir_train_form_pack(const weir_train_form *form, uint32_t type, unsigned parts, const weir_real *numbers,
                          const uint32_t *slots, char *bytes) {
    const weir_train_form_type *t = &form->types[type];
    if (parts & WEIR_TRAIN_FIXED) {
        if (t->moving) {
            bytes = form_pack_columns(form, t->columns, t->fixed, numbers, bytes);
        } else {
            weir_train_wire_pack(form->wire, numbers, t->fixed, bytes);
            bytes += weir_train_wire_bytes(form->wire, t->fixed);
        }
        memcpy(bytes, slots, t->categories * sizeof *slots);
        bytes += t->categories * sizeof *slots;
    }
    if (parts & WEIR_TRAIN_MOVING) form_pack_columns(form, t->columns + t->fixed, t->moving, numbers, bytes);
}

void weir_train_form_unpack(const weir_train_form *form, uint32_t type, unsigned parts, const char *bytes,
                            weir_real *numbers, uint32_t *slots) {
    const weir_train_form_type *t = &form->types[type];
    if (parts & WEIR_TRAIN_FIXED) {
        if (t->moving) {
            bytes = form_unpack_columns(form, t->columns, t->fixed, bytes, numbers);
        } else {
            weir_train_wire_unpack(form->wire, bytes, t->fixed, numbers);
            bytes += weir_train_wire_bytes(form->wire, t->fixed);
        }
        memcpy(slots, bytes, t->categories * sizeof *slots);
        bytes += t->categories * sizeof *slots;
    }
    if (parts & WEIR_TRAIN_MOVING) form_unpack_columns(form, t->columns + t->fixed, t->moving, bytes, numbers);
}

void weir_train_form_copy(const weir_train_form *form, uint32_t type, const weir_real *numbers, const uint32_t *slots,
                          weir_real *to_numbers, uint32_t *to_slots) {
    const weir_train_form_type *t = &form->types[type];
    if (!t->moving) memcpy(to_numbers, numbers, t->fixed * sizeof *numbers);
    for (uint32_t i = 0; t->moving && i < t->fixed; i++)
        to_numbers[t->columns[i]] = numbers[t->columns[i]];
    memcpy(to_slots, slots, t->categories * sizeof *slots);
}

weir_train_last *weir_train_last_of(weir_table *table, uint32_t type, uint64_t vertex, bool *newp) {
    const uint64_t name[2] = {vertex, type}, hash = weir_xxh3(name, sizeof name, 0);
    weir_train_last *last = weir_table_first(table, hash, sizeof *last);
    while (last && (last->vertex != vertex || last->type != type))
        last = weir_table_next(table, last, sizeof *last);
    *newp = !last;
    if (last || !weir_table_reserve(table, table->count + 1, sizeof *last)) return last;
    last = weir_table_add(table, hash, sizeof *last);
    last->type = type;
    last->vertex = vertex;
    return last;
}
