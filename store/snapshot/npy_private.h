/* SPDX-License-Identifier: Apache-2.0 */
/* npy_private.h - what the readers and writers of arrays share. */
#ifndef WEIR_STORE_NPY_PRIVATE_H
#define WEIR_STORE_NPY_PRIVATE_H

#include <weir/store/base/buf.h>
#include <weir/store/snapshot/npy.h>

/* The whole of a file, mapped for reading. An empty file has no bytes, and is no error. */
typedef struct weir_mapping {
    const uint8_t *bytes;
    size_t length;
} weir_mapping;

weir_err weir_mapping_open(const char *path, weir_mapping *mappingp);
void weir_mapping_close(weir_mapping *mapping);

/* Appends magic, version, length and header of an array, a multiple of 64 bytes. */
void weir_npy_header(const weir_npy_array *array, weir_buf *out);

/* weir_npy_writer_open for any shape; count and data of the array are not looked at. */
weir_err weir_npy_writer_open_shape(const char *path, const weir_npy_array *shape, weir_npy_writer **writerp);

#endif /* WEIR_STORE_NPY_PRIVATE_H */
