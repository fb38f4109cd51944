/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - memory of a table of kernels that grows. */
#include <weir/inference/kernel/room.h>
#include <weir/store/base/assert.h>

weir_err weir_kernel_room_grow(weir_kernel_room *room, const weir_kernels *kernels, size_t bytes) {
    WEIR_ASSERT(!room->kernels || room->kernels == kernels);
    if (bytes <= room->bytes) return WEIR_OK;
    weir_kernel_room_release(room);
    weir_err err = kernels->alloc(kernels, bytes, &room->memory);
    if (err) {
        room->memory = NULL;
        return err;
    }
    room->kernels = kernels;
    room->bytes = bytes;
    return WEIR_OK;
}

weir_err weir_kernel_room_bring(weir_kernel_room *room, const weir_kernels *kernels, const void *host, size_t bytes,
                                const void **placep) {
    *placep = host;
    if (kernels->unified) return WEIR_OK;
    weir_err err = weir_kernel_room_grow(room, kernels, bytes);
    if (err) return err;
    if (bytes) kernels->to_device(kernels, room->memory, host, bytes);
    *placep = room->memory;
    return WEIR_OK;
}

void weir_kernel_room_release(weir_kernel_room *room) {
    if (room->memory) room->kernels->release(room->kernels, room->memory);
    *room = (weir_kernel_room){0};
}
