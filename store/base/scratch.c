/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c - a file that loses its name as soon as it is open: a kill before that leaves an empty one, later none. */
#include <weir/store/base/scratch.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sys.h"

#define SCRATCH_MODE  0600
#define SCRATCH_BYTES (256u << 10) /* of its buffer */

struct weir_scratch {
    int fd;
    uint64_t length; /* of the file */
    size_t used;     /* of the buffer, whose place is behind that */
    uint8_t *buffer; /* NULL once it is mapped */
    void *mapped;
    char path[];
};

weir_err weir_scratch_open(const char *path, weir_scratch **scratchp) {
    const size_t path_bytes = strlen(path) + 1;
    *scratchp = NULL;
    weir_scratch *scratch = weir_malloc(sizeof *scratch + path_bytes);
    if (!scratch) return WEIR_NOMEM("while opening %s", path);
    *scratch = (weir_scratch){.fd = -1};
    memcpy(scratch->path, path, path_bytes);
    weir_err err = WEIR_OK;
    scratch->buffer = weir_malloc(SCRATCH_BYTES);
    if (!scratch->buffer) err = WEIR_NOMEM("while opening %s", path);
    int error = err ? 0 : weir_sys_unlink(path);
    if (error == ENOENT) error = 0;
    if (!err && !error) error = weir_sys_open(path, O_RDWR | O_CREAT | O_EXCL, SCRATCH_MODE, &scratch->fd);
    if (!err && !error) error = weir_sys_unlink(path);
    if (error) err = WEIR_ERRNO(error, "cannot make the file %s, where what does not fit into memory would lie", path);
    if (err) {
        weir_scratch_close(scratch);
        return err;
    }
    *scratchp = scratch;
    return WEIR_OK;
}

static weir_err scratch_flush(weir_scratch *s) {
    int error = weir_sys_write_at(s->fd, s->path, s->buffer, s->used, s->length);
    if (error)
        return WEIR_ERRNO(error,
                          "cannot write more than %llu bytes to %s, where what does not fit into memory lies; free "
                          "space on that disk, write to another, or allow more memory",
                          (unsigned long long)s->length, s->path);
    s->length += s->used;
    s->used = 0;
    return WEIR_OK;
}

weir_err weir_scratch_write(weir_scratch *scratch, const void *bytes, size_t length) {
    const uint8_t *from = bytes;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(scratch->buffer);
    while (!err && length > 0) {
        const size_t room = SCRATCH_BYTES - scratch->used, part = length < room ? length : room;
        memcpy(scratch->buffer + scratch->used, from, part);
        scratch->used += part;
        from += part;
        length -= part;
        if (scratch->used == SCRATCH_BYTES) err = scratch_flush(scratch);
    }
    return err;
}

weir_err weir_scratch_map(weir_scratch *scratch, const void **bytesp) {
    *bytesp = NULL;
    WEIR_ASSERT(scratch->buffer);
    weir_err err = scratch_flush(scratch);
    if (err) return err;
    weir_free(scratch->buffer);
    scratch->buffer = NULL;
    if (!scratch->length) return WEIR_OK;
    void *mapped = mmap(NULL, scratch->length, PROT_READ, MAP_SHARED, scratch->fd, 0);
    if (mapped == MAP_FAILED)
        return WEIR_ERRNO(errno, "cannot map the %llu bytes of %s", (unsigned long long)scratch->length, scratch->path);
    *bytesp = scratch->mapped = mapped;
    return WEIR_OK;
}

void weir_scratch_in_order(const weir_scratch *scratch, bool in_order) {
    if (scratch->mapped) madvise(scratch->mapped, scratch->length, in_order ? MADV_SEQUENTIAL : MADV_NORMAL);
}

void weir_scratch_close(weir_scratch *scratch) {
    if (!scratch) return;
    if (scratch->mapped) munmap(scratch->mapped, scratch->length);
    if (scratch->fd >= 0) weir_sys_close(scratch->fd, scratch->path); /* what it held is gone either way */
    weir_free(scratch->buffer);
    weir_free(scratch);
}
