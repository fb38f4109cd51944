/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - a buffer that moves over a file, and the records seen through it. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "eventlog_private.h"

/* Reads even if the last read met the end of the file: the file may have grown. */
weir_err weir_elog_window_at(weir_elog_window *window, uint64_t position, size_t want, const uint8_t **bytesp,
                             size_t *availablep) {
    uint64_t end = window->start + window->length;
    *bytesp = NULL;
    *availablep = 0;
    if (position < window->start || position + want > end) {
        /* The window begins at position now, and keeps what it already has from there on. */
        size_t kept = position >= window->start && position < end ? (size_t)(end - position) : 0;
        size_t capacity = want > ELOG_WINDOW_BYTES ? want : ELOG_WINDOW_BYTES, got = 0;
        if (kept) memmove(window->bytes, window->bytes + window->length - kept, kept);
        window->start = position;
        window->length = kept;
        if (capacity > window->capacity) {
            uint8_t *bytes = weir_realloc_array(window->bytes, capacity, 1);
            if (!bytes) return WEIR_NOMEM("for %zu bytes of %s", capacity, weir_file_path(window->file));
            window->bytes = bytes;
            window->capacity = capacity;
        }
        weir_err err =
            weir_file_read_at(window->file, position + kept, window->bytes + kept, window->capacity - kept, &got);
        if (err) return err;
        window->length += got;
    }
    WEIR_ASSERT(window->length <= window->capacity && position <= window->start + window->length);
    *bytesp = window->bytes + (position - window->start);
    *availablep = (size_t)(window->start + window->length - position);
    return WEIR_OK;
}

bool weir_elog_window_holds(const weir_elog_window *window, uint64_t position) {
    uint64_t end = window->start + window->length;
    if (position < window->start || position + ELOG_RECORD_HEADER > end) return false;
    return position + weir_elog_record_length(window->bytes + (position - window->start)) <= end;
}

void weir_elog_window_reset(weir_elog_window *window, weir_file *file) {
    window->file = file;
    window->start = 0;
    window->length = 0;
}

void weir_elog_window_free(weir_elog_window *window) {
    weir_free(window->bytes);
    *window = (weir_elog_window){0};
}

weir_err weir_elog_window_record(weir_elog_window *window, const weir_elog_origin *origin, uint64_t position,
                                 uint64_t offset, weir_elog_found *foundp) {
    size_t available;
    *foundp = (weir_elog_found){0};
    weir_err err = weir_elog_window_at(window, position, ELOG_RECORD_HEADER, &foundp->bytes, &available);
    if (err || available == 0) return err;
    if (available < ELOG_RECORD_HEADER) {
        foundp->problem = "the file ends inside a record's header";
        return WEIR_OK;
    }
    size_t length = weir_elog_record_length(foundp->bytes);
    if (length == 0) {
        foundp->problem = "the length of the record is not valid";
        return WEIR_OK;
    }
    err = weir_elog_window_at(window, position, length, &foundp->bytes, &available);
    if (err) return err;
    if (available < length) {
        foundp->problem = "the file ends inside a record";
    } else if (!weir_elog_record_decode(foundp->bytes, length, origin, &foundp->record)) {
        foundp->problem = "the checksum of the record is wrong";
    } else if (foundp->record.offset != offset) {
        foundp->problem = "the record has an offset that does not fit its place"; // EVENTLOG-L1
    } else {
        foundp->length = length;
    }
    return WEIR_OK;
}
