/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - one segment file, and the row of them that is a partition. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>

#include "eventlog_private.h"

#define NAME_DIGITS 20u
#define NAME_SUFFIX ".seg"

void weir_elog_partition_path(char path[ELOG_PATH_MAX], const weir_elog_origin *origin) {
    int length = snprintf(path, ELOG_PATH_MAX, "%s/%05u", origin->topic_folder, origin->partition);
    WEIR_ASSERT(length > 0 && length < (int)ELOG_PATH_MAX); // weir_elog_path_join left room for it
}

void weir_elog_segment_path(char path[ELOG_PATH_MAX], const weir_elog_origin *origin, uint64_t first) {
    int length = snprintf(path, ELOG_PATH_MAX, "%s/%05u/%020llu" NAME_SUFFIX, origin->topic_folder, origin->partition,
                          (unsigned long long)first);
    WEIR_ASSERT(length > 0 && length < (int)ELOG_PATH_MAX);
}

/* --- the row -------------------------------------------------------------------------------------------------- */

weir_err weir_elog_row_insert(weir_elog_row *row, size_t at, const weir_elog_segment *segment) {
    WEIR_ASSERT(at <= row->count);
    if (!WEIR_GROW(row->segments, row->capacity, row->count))
        return WEIR_NOMEM("for a list of %zu segments", row->count + 1);
    memmove(row->segments + at + 1, row->segments + at, (row->count - at) * sizeof *row->segments);
    row->segments[at] = *segment;
    row->count++;
    return WEIR_OK;
}

weir_elog_segment weir_elog_row_take(weir_elog_row *row, size_t at) {
    WEIR_ASSERT(at < row->count);
    weir_elog_segment taken = row->segments[at];
    row->count--;
    memmove(row->segments + at, row->segments + at + 1, (row->count - at) * sizeof *row->segments);
    return taken;
}

weir_elog_segment *weir_elog_row_find(weir_elog_row *row, uint64_t offset) {
    size_t low = 0, high = row->count; /* the answer is in [low, high) */
    if (row->count == 0 || row->segments[0].first > offset) return NULL;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (row->segments[middle].first <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &row->segments[low];
}

uint64_t weir_elog_row_bytes(const weir_elog_row *row) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < row->count; i++)
        bytes += row->segments[i].bytes;
    return bytes;
}

void weir_elog_row_free(weir_elog_row *row) {
    for (size_t i = 0; i < row->count; i++)
        weir_elog_segment_free(&row->segments[i]);
    weir_free(row->segments);
    *row = (weir_elog_row){0};
}

/* --- the row, from the disk ----------------------------------------------------------------------------------- */

typedef struct elog_row_listing {
    weir_elog_row *row;
    const weir_elog_origin *origin;
} elog_row_listing;

static weir_err elog_row_visit(void *context, const char *name) {
    const elog_row_listing *list = context;
    weir_elog_segment segment = {0};
    size_t length = strlen(name), suffix = strlen(NAME_SUFFIX);
    if (length < suffix || strcmp(name + length - suffix, NAME_SUFFIX) != 0) return WEIR_OK;
    char *end;
    errno = 0;
    segment.first = strtoull(name, &end, 10);
    if (errno || end != name + NAME_DIGITS || length != NAME_DIGITS + suffix ||
        strspn(name, "0123456789") != NAME_DIGITS) {
        return WEIR_ERR(WEIR_ECORRUPT, "%s/%05u: the name of segment '%s' is not an offset; move it out of the log",
                        list->origin->topic_folder, list->origin->partition, name);
    }
    return weir_elog_row_insert(list->row, list->row->count, &segment);
}

weir_err weir_elog_row_list(weir_elog_row *row, const weir_elog_origin *origin) {
    char path[ELOG_PATH_MAX];
    elog_row_listing list = {row, origin};
    weir_elog_partition_path(path, origin);
    return weir_path_exists(path) ? weir_folder_list(path, elog_row_visit, &list) : WEIR_OK;
}

weir_err weir_elog_row_load(weir_elog_row *row, const weir_elog_origin *origin) {
    weir_err err = weir_elog_row_list(row, origin);
    for (size_t i = 0; !err && i < row->count; i++) {
        weir_elog_segment *segment = &row->segments[i];
        char path[ELOG_PATH_MAX];
        weir_file *file = NULL;
        weir_elog_segment_path(path, origin, segment->first);
        err = weir_file_open(path, WEIR_FILE_READ, &file);
        if (err) break;
        segment->bytes = weir_file_length(file);
        if (i + 1 < row->count) err = weir_elog_segment_check(file, origin, segment->first);
        weir_err_keep(&err, weir_file_close(file));
    }
    return err;
}

/* --- the sparse index ----------------------------------------------------------------------------------------- */

void weir_elog_segment_note(weir_elog_segment *segment, uint64_t offset, uint64_t position) {
    size_t count = segment->index_count;
    uint64_t last = count ? segment->index[count - 1].position : ELOG_SEGMENT_HEADER;
    if (position < last + ELOG_INDEX_STEP_BYTES) return;
    if (!WEIR_GROW(segment->index, segment->index_capacity, count)) return; /* seeking gets slower, nothing else */
    segment->index[count] = (weir_elog_index_entry){offset, position};
    segment->index_count++;
}

weir_elog_index_entry weir_elog_segment_seek(const weir_elog_segment *segment, uint64_t offset) {
    weir_elog_index_entry best = {segment->first, ELOG_SEGMENT_HEADER};
    size_t low = 0, high = segment->index_count; /* entries below low are at or before offset, from high on after it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segment->index[middle].offset <= offset) {
            best = segment->index[middle];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return best;
}

void weir_elog_segment_free(weir_elog_segment *segment) {
    weir_free(segment->index);
    segment->index = NULL;
    segment->index_count = segment->index_capacity = 0;
}

/* --- the file ------------------------------------------------------------------------------------------------- */

weir_err weir_elog_segment_create(const weir_elog_origin *origin, uint64_t first, weir_file **filep) {
    char folder[ELOG_PATH_MAX], path[ELOG_PATH_MAX];
    uint8_t header[ELOG_SEGMENT_HEADER];
    *filep = NULL;
    weir_elog_partition_path(folder, origin);
    weir_elog_segment_path(path, origin, first);
    weir_elog_segment_header_encode(header, origin, first);
    weir_err err = weir_folder_create(folder);
    if (!err) err = weir_file_open(path, WEIR_FILE_CREATE, filep);
    weir_kill_point("eventlog.segment.created");
    if (!err) err = weir_file_append(*filep, header, sizeof header);
    if (!err) err = weir_file_sync(*filep);
    if (!err) err = weir_folder_sync(folder);
    weir_kill_point("eventlog.segment.synced");
    if (err) {
        weir_err_keep(&err, weir_file_close(*filep));
        *filep = NULL;
    }
    return err;
}

weir_err weir_elog_segment_check(weir_file *file, const weir_elog_origin *origin, uint64_t first) {
    uint8_t header[ELOG_SEGMENT_HEADER];
    size_t got;
    weir_err err = weir_file_read_at(file, 0, header, sizeof header, &got);
    if (err) return err;
    const char *path = weir_file_path(file);
    switch (got == sizeof header ? weir_elog_segment_header_check(header, origin, first) : ELOG_HEADER_BAD) {
    case ELOG_HEADER_OURS:
        return WEIR_OK;
    case ELOG_HEADER_VERSION:
        return WEIR_ERR(
            WEIR_EVERSION,
            "%s: written in version %c of the log's format, and this program knows version %u; use the weir "
            "that wrote it",
            path, header[7], ELOG_VERSION);
    case ELOG_HEADER_FOREIGN:
        return WEIR_ERR(WEIR_ECORRUPT,
                        "%s: belongs to another topic or partition, or to a topic of this name that was removed; move "
                        "it out of the log",
                        path);
    case ELOG_HEADER_BAD:
        break;
    }
    return WEIR_ERR(WEIR_ECORRUPT, "%s: the header (byte 0 to 31) is damaged; bring the file back from a copy", path);
}

/* --- scan ----------------------------------------------------------------------------------------------------- */

weir_err weir_elog_segment_scan(weir_file *file, const weir_elog_origin *origin, weir_elog_segment *segment,
                                uint64_t offset_limit, weir_elog_scan *scanp) {
    weir_elog_window window = {.file = file};
    weir_err err = WEIR_OK;
    *scanp = (weir_elog_scan){.position = ELOG_SEGMENT_HEADER, .offset = segment->first};
    while (scanp->offset < offset_limit) {
        weir_elog_found found;
        err = weir_elog_window_record(&window, origin, scanp->position, scanp->offset, &found);
        scanp->problem = found.problem;
        if (err || found.length == 0) break;
        int64_t time = found.record.time_us;
        weir_elog_segment_note(segment, scanp->offset, scanp->position);
        if (scanp->records == 0 || time > scanp->time_newest) scanp->time_newest = time;
        scanp->time_last = time;
        scanp->records++;
        scanp->offset++;
        scanp->position += found.length;
    }
    weir_elog_window_free(&window);
    return err;
}

/* --- witness -------------------------------------------------------------------------------------------------- */

/* Could a record of `offset` or later begin here, `distance` bytes after where `offset` should have begun? Cheap, so
 * that a checksum is computed for next to nothing but records. */
static inline bool elog_witness_plausible(const uint8_t *header, uint64_t offset, uint64_t distance) {
    uint64_t there = weir_elog_record_offset(header);
    return weir_elog_record_length(header) != 0 && there >= offset && there - offset <= distance / ELOG_RECORD_HEADER &&
           weir_elog_record_claim(header) > offset;
}

/* The length field of what is damaged cannot be trusted, so every byte may be where a record begins. */
weir_err weir_elog_segment_witness(weir_file *file, const weir_elog_origin *origin, uint64_t position, uint64_t offset,
                                   uint64_t *claimp, uint64_t *claim_positionp) {
    weir_elog_window window = {.file = file};
    weir_err err = WEIR_OK;
    *claimp = *claim_positionp = 0;
    for (uint64_t at = position; !err; at++) {
        const uint8_t *bytes;
        size_t available;
        weir_record record;
        err = weir_elog_window_at(&window, at, ELOG_RECORD_HEADER, &bytes, &available);
        if (err || available < ELOG_RECORD_HEADER) break;
        if (!elog_witness_plausible(bytes, offset, at - position)) continue;
        uint64_t claim = weir_elog_record_claim(bytes);
        size_t length = weir_elog_record_length(bytes);
        err = weir_elog_window_at(&window, at, length, &bytes, &available);
        if (err || available < length || !weir_elog_record_decode(bytes, length, origin, &record)) continue;
        WEIR_ASSERT(claim > offset);
        *claimp = claim;
        *claim_positionp = at;
        break;
    }
    weir_elog_window_free(&window);
    return err;
}
