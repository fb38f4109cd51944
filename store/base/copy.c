/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - a file again, under another name: by its bytes, or as the same file. */
#include <errno.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "sys.h"

#define COPY_BYTES (1u << 20)

weir_err weir_file_copy(const char *from, const char *to, uint64_t length_max) {
    weir_file *source = NULL, *target = NULL;
    uint8_t *chunk = weir_malloc(COPY_BYTES);
    weir_err err = chunk ? WEIR_OK : WEIR_NOMEM("while copying %s", from);
    if (!err) err = weir_file_open(from, WEIR_FILE_READ, &source);
    if (!err) err = weir_file_open(to, WEIR_FILE_CREATE, &target);
    uint64_t at = 0;
    for (size_t got = 1; !err && got && at < length_max; at += got) {
        uint64_t left = length_max - at;
        err = weir_file_read_at(source, at, chunk, left < COPY_BYTES ? (size_t)left : COPY_BYTES, &got);
        if (!err && got) err = weir_file_append(target, chunk, got);
    }
    if (!err) err = weir_file_sync(target);
    weir_err_keep(&err, weir_file_close(target));
    weir_err_keep(&err, weir_file_close(source));
    weir_free(chunk);
    return err;
}

weir_err weir_file_link(const char *from, const char *to) {
    int error = weir_sys_link(from, to);
    if (error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "%s cannot be a second name of %s here; copy it", to, from);
    return error ? WEIR_ERRNO(error, "cannot link %s to %s", from, to) : WEIR_OK;
}
