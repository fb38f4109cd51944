/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - memory of a table of kernels that grows with what is put into it, batch after batch.
 *
 * A room remembers whose memory it has: whoever named the table may be gone when it is released, but not the table.
 *
 * THREADS: a room belongs to one thread.
 */
#ifndef WEIR_INFERENCE_KERNEL_ROOM_H
#define WEIR_INFERENCE_KERNEL_ROOM_H

#include <weir/inference/kernel/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plain value; all zeros is an empty one. */
typedef struct weir_kernel_room {
    const weir_kernels *kernels; /* of the first growth, and of all later ones */
    void *memory;                /* NULL: nothing has been put into it         */
    size_t bytes;
} weir_kernel_room;

/* At least so many bytes. What was in it is lost where it has to grow; where that fails it is empty.  WEIR_ENOMEM */
weir_err weir_kernel_room_grow(weir_kernel_room *room, const weir_kernels *kernels, size_t bytes);
/* *placep: where kernels can read what lies in the host's memory: there, if they read that, or a copy in the room. The
 * copy holds until the room is used again.  WEIR_ENOMEM */
weir_err weir_kernel_room_bring(weir_kernel_room *room, const weir_kernels *kernels, const void *host, size_t bytes,
                                const void **placep);
void weir_kernel_room_release(weir_kernel_room *room); /* it is empty then */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_KERNEL_ROOM_H */
