/* SPDX-License-Identifier: Apache-2.0 */
/* arrival.c - a batch's arrays in the kernels' memory before its pass begins: one chunk, which grows to the largest. */
#include <weir/inference/kernel/room.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "gather.h"
#include "nn_private.h"

#define ALIGNMENT 64u

typedef struct arrival_array {
    const void *host;
    size_t bytes, offset;
} arrival_array;

struct weir_nn_arrival {
    const weir_kernels *kernels; /* a context of its own */
    weir_kernel_room room;
    weir_buf arrays; /* arrival_array */
    size_t bytes;    /* of all, each aligned */
};

weir_err weir_nn_arrival_open(const weir_kernels *kernels, weir_nn_arrival **arrivalp) {
    weir_nn_arrival *a = *arrivalp = weir_calloc(1, sizeof *a);
    if (!a) return WEIR_NOMEM("for batches on their way");
    weir_err err = kernels->open(kernels, &a->kernels);
    if (!err) return WEIR_OK;
    weir_free(a);
    *arrivalp = NULL;
    return err;
}

void weir_nn_arrival_close(weir_nn_arrival *arrival) {
    if (!arrival) return;
    weir_kernel_room_release(&arrival->room);
    arrival->kernels->close(arrival->kernels);
    weir_buf_free(&arrival->arrays);
    weir_free(arrival);
}

static const arrival_array *arrival_find(const weir_nn_arrival *a, const void *host, size_t bytes) {
    const arrival_array *arrays = (const arrival_array *)(const void *)a->arrays.bytes;
    for (size_t i = 0; i < a->arrays.length / sizeof *arrays; i++)
        if (arrays[i].host == host && arrays[i].bytes >= bytes) return &arrays[i];
    return NULL;
}

const void *weir_nn_arrival_place(const weir_nn_arrival *arrival, const void *host, size_t bytes) {
    const arrival_array *found = arrival_find(arrival, host, bytes);
    return found ? (const uint8_t *)arrival->room.memory + found->offset : NULL;
}

static void arrival_add(weir_nn_arrival *a, const void *host, size_t count, size_t size) {
    if (count == 0 || arrival_find(a, host, count * size)) return;
    weir_buf_append(&a->arrays, &(arrival_array){host, count * size, a->bytes}, sizeof(arrival_array));
    a->bytes += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void arrival_add_type(weir_nn_arrival *a, const weir_nn_shape *shape, const weir_nn_batch *batch,
                             uint32_t type) {
    const weir_nn_inputs *inputs = &shape->vertices[type];
    const weir_nn_resident *r = batch->resident ? &batch->resident[type] : NULL;
    const bool some = r && r->table;
    const size_t rows = batch->block->input_ranges[type].end - batch->block->input_ranges[type].begin,
                 brought = some ? r->brought_count : rows;
    if (inputs->width) arrival_add(a, batch->numbers[type], brought * inputs->width, sizeof(weir_real));
    if (inputs->category_count) arrival_add(a, batch->slots[type], rows * inputs->category_count, sizeof(uint32_t));
    if (some) arrival_add(a, r->places, rows, sizeof(uint32_t));
    if (some && brought) arrival_add(a, r->brought, rows, sizeof(uint32_t));
}

static void arrival_add_step(weir_nn_arrival *a, const weir_nn_shape *shape, const weir_nn_batch *batch,
                             uint32_t step) {
    const weir_block_edges *e = &batch->block->edges[step];
    const bool alike = e->alike && !weir_nn_way_of(shape)->sees_edges;
    const size_t width = shape->edges[shape->steps[step].relation].width;
    arrival_add(a, e->offsets, e->parent_end - e->parent_begin + 1u, sizeof(uint32_t));
    arrival_add(a, e->children, e->count, sizeof(uint32_t));
    arrival_add(a, e->times, alike ? 1 : e->count, sizeof(int64_t));
    if (!alike) arrival_add(a, e->parents, e->count, sizeof(uint32_t));
    if (width) arrival_add(a, batch->edges[step], e->count * width, sizeof(weir_real));
}

weir_err weir_nn_arrival_bring(weir_nn_arrival *arrival, const weir_nn_shape *shape, const weir_nn_batch *batch,
                               const uint64_t *keys) {
    const weir_block_view *b = batch->block;
    weir_buf_clear(&arrival->arrays);
    arrival->bytes = 0;
    arrival_add(arrival, b->input_of, b->nodes, sizeof(uint32_t));
    arrival_add(arrival, b->before_us, b->targets, sizeof(int64_t));
    arrival_add(arrival, b->groups, b->nodes, sizeof(uint32_t));
    if (keys) arrival_add(arrival, keys, b->hop_end[shape->layers - 1], sizeof(uint64_t));
    for (uint32_t type = 0; type < shape->types; type++)
        arrival_add_type(arrival, shape, batch, type);
    for (uint32_t step = 0; step < shape->step_count; step++)
        arrival_add_step(arrival, shape, batch, step);
    weir_err err = weir_buf_err(&arrival->arrays);
    /* A quarter more than what is wanted: the next batch is seldom the same size, and taking memory may wait. */
    if (!err && arrival->bytes >= arrival->room.bytes)
        err = weir_kernel_room_grow(&arrival->room, arrival->kernels, arrival->bytes + arrival->bytes / 4 + 1);
    const arrival_array *arrays = (const arrival_array *)(const void *)arrival->arrays.bytes;
    for (size_t i = 0; !err && i < arrival->arrays.length / sizeof *arrays; i++)
        arrival->kernels->to_device(arrival->kernels, (uint8_t *)arrival->room.memory + arrays[i].offset,
                                    arrays[i].host, arrays[i].bytes);
    return err ? err : arrival->kernels->finish(arrival->kernels);
}
