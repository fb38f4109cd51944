/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - which rows of embeddings a batch reads: marked in a bit each, then listed in their order. */
#include <string.h>

#include <weir/inference/kernel/room.h>
#include <weir/inference/nn/tape.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/trainer/nn/nn.h>

#define ROWS_NO_MEMORY "for the rows of a batch"

typedef struct rows_table {
    const weir_nn_tensor *tensor;
    uint64_t *marks;
    uint32_t *ids;
    size_t capacity;
    uint32_t count;
    weir_kernel_room room; /* for a copy of the ids, where kernels cannot read these */
    const uint32_t *there; /* that, or the ids                                       */
    bool brought;          /* since the list has changed                             */
} rows_table;

struct weir_nn_rows {
    const weir_nn *nn;
    rows_table *tables;
    uint32_t count;
};

weir_err weir_nn_rows_open(const weir_nn *nn, weir_nn_rows **rowsp) {
    uint32_t tensors;
    const weir_nn_tensor *t = weir_nn_tensors(nn, &tensors);
    *rowsp = NULL;
    weir_nn_rows *rows = weir_calloc(1, sizeof *rows);
    if (!rows) return WEIR_NOMEM(ROWS_NO_MEMORY);
    rows->nn = nn;
    rows->tables = weir_calloc(tensors + 1, sizeof *rows->tables);
    bool all = rows->tables != NULL;
    for (uint32_t i = 0; all && i < tensors; i++) {
        if (!t[i].looked_up) continue;
        rows_table *table = &rows->tables[rows->count++];
        table->tensor = &t[i];
        table->marks = weir_calloc(t[i].rows / 64 + 1, sizeof *table->marks);
        all = table->marks != NULL;
    }
    if (!all) {
        weir_nn_rows_close(rows);
        return WEIR_NOMEM(ROWS_NO_MEMORY);
    }
    *rowsp = rows;
    return WEIR_OK;
}

void weir_nn_rows_close(weir_nn_rows *rows) {
    if (!rows) return;
    for (uint32_t i = 0; rows->tables && i < rows->count; i++) {
        weir_free(rows->tables[i].marks);
        weir_free(rows->tables[i].ids);
        weir_kernel_room_release(&rows->tables[i].room);
    }
    weir_free(rows->tables);
    weir_free(rows);
}

/* The marked ones in their order. Passing over a million bits takes microseconds. */
static weir_err rows_list(rows_table *table) {
    uint32_t words = table->tensor->rows / 64 + 1, count = 0;
    for (uint32_t w = 0; w < words; w++)
        count += (uint32_t)__builtin_popcountll(table->marks[w]);
    if (count > table->capacity) {
        uint32_t *ids = weir_realloc_array(table->ids, count, sizeof *ids);
        if (!ids) return WEIR_NOMEM(ROWS_NO_MEMORY);
        table->ids = ids;
        table->capacity = count;
    }
    table->count = 0;
    table->brought = false;
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t left = table->marks[w]; left; left &= left - 1)
            table->ids[table->count++] = w * 64 + (uint32_t)__builtin_ctzll(left);
    WEIR_ASSERT(table->count == count);
    return WEIR_OK;
}

static void rows_mark(rows_table *table, uint32_t row) {
    WEIR_ASSERT(row < table->tensor->rows);
    table->marks[row / 64] |= 1ull << row % 64;
}

weir_err weir_nn_rows_of_batch(weir_nn_rows *rows, const weir_nn_batch *batch) {
    const weir_nn_shape *shape = weir_nn_shape_of(rows->nn);
    const weir_nn_plan *plan = weir_nn_plan_of(rows->nn);
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < rows->count; i++) {
        for (uint32_t k = 0; k < rows->tables[i].count; k++)
            rows->tables[i].marks[rows->tables[i].ids[k] / 64] = 0;
        rows->tables[i].count = 0;
        rows->tables[i].brought = false;
    }
    /* Tensors stand in the order of types and, within, of categories. */
    for (uint32_t type = 0, n = 0; batch && !err && type < weir_nn_types(shape); type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, type);
        uint32_t categories = inputs->category_count;
        const uint32_t *slots = batch->slots[type];
        weir_block_range range = batch->block->input_ranges[type];
        if (plan->encode[type].bias == WEIR_NN_NO_TENSOR) continue; /* a type that the network does not see */
        for (uint32_t c = 0; !err && c < categories; c++, n++) {
            bool own = inputs->categories[c].feature == WEIR_SCHEMA_NONE;
            WEIR_ASSERT(n < rows->count && rows->tables[n].tensor->offset == plan->encode[type].categories[c]);
            if (rows->tables[n].tensor->held) continue;
            for (uint32_t row = 0; row < range.end - range.begin; row++) {
                uint32_t slot = slots[(size_t)row * categories + c];
                if (own && slot == WEIR_NO_SLOT) continue; /* an unknown vertex */
                if (slot >= rows->tables[n].tensor->rows)  /* as another rank may have answered */
                    return WEIR_ERR(WEIR_ECORRUPT,
                                    "a batch names row %u of '%s', which has %u; all ranks need the same "
                                    "program and the same data",
                                    slot, rows->tables[n].tensor->name, rows->tables[n].tensor->rows);
                rows_mark(&rows->tables[n], slot);
            }
            err = rows_list(&rows->tables[n]);
        }
    }
    return err;
}

weir_err weir_nn_rows_of_held(weir_nn_rows *rows, uint32_t type, uint32_t category, const uint32_t *ids, size_t count) {
    uint64_t offset = weir_nn_plan_of(rows->nn)->encode[type].categories[category];
    uint32_t n = 0;
    while (n < rows->count && rows->tables[n].tensor->offset != offset)
        n++;
    WEIR_ASSERT(n < rows->count && rows->tables[n].tensor->held);
    for (size_t i = 0; i < count; i++)
        rows_mark(&rows->tables[n], ids[i]);
    return rows_list(&rows->tables[n]);
}

/* Of each table how many, and then which. */
void weir_nn_rows_write(const weir_nn_rows *rows, weir_buf *out) {
    for (uint32_t i = 0; i < rows->count; i++) {
        const rows_table *table = &rows->tables[i];
        if (table->tensor->held) continue;
        weir_buf_append(out, &table->count, sizeof table->count);
        weir_buf_append(out, table->ids, table->count * sizeof *table->ids);
    }
}

weir_err weir_nn_rows_add(weir_nn_rows *rows, const char *bytes, size_t length) {
    const char *at = bytes, *end = bytes + length;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < rows->count; i++) {
        rows_table *table = &rows->tables[i];
        uint32_t count = 0, row;
        if (table->tensor->held) continue;
        bool whole = (size_t)(end - at) >= sizeof count;
        if (whole) memcpy(&count, at, sizeof count);
        at += whole ? sizeof count : 0;
        whole = whole && (size_t)(end - at) / sizeof row >= count;
        for (uint32_t k = 0; whole && k < count; k++, at += sizeof row) {
            memcpy(&row, at, sizeof row);
            whole = row < table->tensor->rows;
            if (whole) rows_mark(table, row);
        }
        if (!whole)
            return WEIR_ERR(WEIR_ECORRUPT,
                            "another rank names rows that '%s' does not have; all ranks need the same "
                            "program and the same data",
                            table->tensor->name);
        err = rows_list(table);
    }
    return err;
}

const uint32_t *weir_nn_rows_look(const weir_nn_rows *rows, uint32_t n, const weir_nn_tensor **tensorp,
                                  uint32_t *countp) {
    *tensorp = n < rows->count ? rows->tables[n].tensor : NULL;
    *countp = n < rows->count ? rows->tables[n].count : 0;
    return n < rows->count ? rows->tables[n].ids : NULL;
}

size_t weir_nn_rows_size(const weir_nn_rows *rows) {
    size_t size = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        if (!rows->tables[i].tensor->held) size += (size_t)rows->tables[i].count * rows->tables[i].tensor->cols;
    return size;
}

weir_err weir_nn_rows_list(weir_nn_rows *rows, uint32_t n, const weir_nn_tensor **tensorp, weir_row_list *listp) {
    rows_table *table = n < rows->count ? &rows->tables[n] : NULL;
    const void *there;
    *tensorp = table ? table->tensor : NULL;
    *listp = (weir_row_list){0};
    if (!table) return WEIR_OK;
    if (!table->brought) {
        weir_err err = weir_kernel_room_bring(&table->room, weir_nn_kernels(rows->nn), table->ids,
                                              table->count * sizeof *table->ids, &there);
        if (err) return err;
        table->there = there;
        table->brought = true;
    }
    *listp = (weir_row_list){table->count, table->tensor->cols, table->there};
    return WEIR_OK;
}

weir_err weir_nn_rows_pack(weir_nn_rows *rows, const weir_real *flat, weir_real *packed) {
    const weir_kernels *k = weir_nn_kernels(rows->nn);
    const weir_nn_tensor *t;
    weir_row_list list;
    k->zero(k, packed, weir_nn_rows_size(rows) * sizeof *packed);
    for (uint32_t n = 0; n < rows->count; n++) {
        if (rows->tables[n].tensor->held) continue;
        weir_err err = weir_nn_rows_list(rows, n, &t, &list);
        if (err) return err;
        k->embed(k, list.count, list.cols, list.ids, 1, flat + t->offset, packed);
        packed += (size_t)list.count * list.cols;
    }
    return WEIR_OK;
}

weir_err weir_nn_rows_zero(weir_nn_rows *rows, weir_real *flat) {
    const weir_kernels *k = weir_nn_kernels(rows->nn);
    const weir_nn_tensor *t;
    weir_row_list list;
    for (uint32_t n = 0; n < rows->count; n++) {
        weir_err err = weir_nn_rows_list(rows, n, &t, &list);
        if (err) return err;
        if (list.count) k->zero_rows(k, &list, flat + t->offset);
    }
    return WEIR_OK;
}

weir_err weir_nn_rows_unpack(weir_nn_rows *rows, const weir_real *packed, weir_real *flat) {
    const weir_kernels *k = weir_nn_kernels(rows->nn);
    const weir_nn_tensor *t;
    weir_row_list list;
    for (uint32_t n = 0; n < rows->count; n++) {
        weir_err err = weir_nn_rows_list(rows, n, &t, &list);
        if (err) return err;
        if (t->held || list.count == 0) continue;
        k->zero_rows(k, &list, flat + t->offset);
        k->embed_back(k, list.count, list.cols, list.ids, 1, packed, flat + t->offset);
        packed += (size_t)list.count * list.cols;
    }
    return WEIR_OK;
}
