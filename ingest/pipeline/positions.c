/* SPDX-License-Identifier: Apache-2.0 */
/* positions.c - a small sorted table, and the file that it is kept in. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/thread.h>

#include "positions.h"

#define MAGIC         "WEIRPOS2"
#define MAGIC_OLD     "WEIRPOS1"
#define HEADER_BYTES  32u
#define ROW_BYTES_OLD 32u
#define ROW_BYTES     (ROW_BYTES_OLD + 16 * WEIR_POSITIONS_OLDER)
#define KEEP_EVERY    8u
#define FILE_MAX      (HEADER_BYTES + (size_t)WEIR_POSITIONS_MAX * ROW_BYTES)

struct weir_positions {
    char *path;
    bool is_new, is_old; /* set by open */
    weir_mutex mutex;    /* LEAF; guards the fields below */
    weir_cond saved;     /* saving became false */
    bool saving;         /* a thread is at the file, without the mutex */
    weir_position *rows; /* rising by source, then partition */
    size_t count, capacity;
    weir_positions_letters letters;
    bool changed;
};

/* --- the file -------------------------------------------------------------------------------------------------- */

static uint32_t positions_crc(const uint8_t *bytes, size_t length) {
    uint32_t crc = weir_crc32c(0, bytes, HEADER_BYTES - 4);
    return weir_crc32c(crc, bytes + HEADER_BYTES, length - HEADER_BYTES);
}

static weir_err positions_decode(weir_positions *positions, const uint8_t *bytes, size_t length) {
    positions->is_old = length >= HEADER_BYTES && memcmp(bytes, MAGIC_OLD, 8) == 0;
    bool whole = positions->is_old || (length >= HEADER_BYTES && memcmp(bytes, MAGIC, 8) == 0);
    size_t rows = whole ? weir_get_u32(bytes + 24) : 0, row_bytes = positions->is_old ? ROW_BYTES_OLD : ROW_BYTES;
    if (!whole || rows > WEIR_POSITIONS_MAX || length != HEADER_BYTES + rows * row_bytes ||
        weir_get_u32(bytes + 28) != positions_crc(bytes, length)) {
        return WEIR_ERR(WEIR_ECORRUPT, "%s is damaged; restore the store from a checkpoint, or rebuild it from the log",
                        positions->path);
    }
    positions->letters = (weir_positions_letters){weir_get_u64(bytes + 8), weir_get_u64(bytes + 16)};
    for (size_t i = 0; i < rows; i++) {
        const uint8_t *row = bytes + HEADER_BYTES + i * row_bytes;
        weir_position position = {.source = weir_get_u32(row),
                                  .partition = weir_get_u32(row + 4),
                                  .begin = weir_get_u64(row + 8),
                                  .offset = weir_get_u64(row + 16),
                                  .check = weir_get_u64(row + 24)};
        for (size_t k = 0; !positions->is_old && k < WEIR_POSITIONS_OLDER; k++)
            position.older[k] = (weir_mark){weir_get_u64(row + 32 + 16 * k), weir_get_u64(row + 40 + 16 * k)};
        weir_err err = weir_positions_put(positions, &position);
        if (err) return err;
    }
    positions->changed = false;
    return WEIR_OK;
}

weir_err weir_positions_open(const char *folder, weir_positions **positionsp) {
    *positionsp = NULL;
    weir_positions *positions = weir_calloc(1, sizeof *positions);
    if (!positions) return WEIR_NOMEM("for the positions of %s", folder);
    weir_mutex_init(&positions->mutex, WEIR_RANK_LEAF, "positions");
    weir_cond_init(&positions->saved);
    size_t size = strlen(folder) + sizeof "/positions", length;
    char *bytes = NULL;
    positions->path = weir_malloc(size);
    weir_err err = positions->path ? WEIR_OK : WEIR_NOMEM("for the positions of %s", folder);
    if (err) goto done;
    snprintf(positions->path, size, "%s/positions", folder);
    positions->is_new = !weir_path_exists(positions->path);
    if (positions->is_new) goto done;
    err = weir_file_load(positions->path, FILE_MAX, &bytes, &length);
    if (!err) err = positions_decode(positions, (const uint8_t *)bytes, length);
    weir_free(bytes);
done:
    if (err)
        weir_positions_close(positions);
    else
        *positionsp = positions;
    return err;
}

void weir_positions_close(weir_positions *positions) {
    if (!positions) return;
    weir_mutex_destroy(&positions->mutex);
    weir_cond_destroy(&positions->saved);
    weir_free(positions->rows);
    weir_free(positions->path);
    weir_free(positions);
}

/* Under the mutex. */
static void positions_encode(const weir_positions *positions, weir_buf *out) {
    uint8_t bytes[ROW_BYTES] = {0};
    WEIR_ASSERT(weir_mutex_held(&positions->mutex) && positions->count <= WEIR_POSITIONS_MAX);
    memcpy(bytes, MAGIC, 8);
    weir_put_u64(bytes + 8, positions->letters.from);
    weir_put_u64(bytes + 16, positions->letters.born);
    weir_put_u32(bytes + 24, (uint32_t)positions->count);
    weir_buf_append(out, bytes, HEADER_BYTES);
    for (size_t i = 0; i < positions->count; i++) {
        const weir_position *p = &positions->rows[i];
        weir_put_u32(bytes, p->source);
        weir_put_u32(bytes + 4, p->partition);
        weir_put_u64(bytes + 8, p->begin);
        weir_put_u64(bytes + 16, p->offset);
        weir_put_u64(bytes + 24, p->check);
        for (size_t k = 0; k < WEIR_POSITIONS_OLDER; k++) {
            weir_put_u64(bytes + 32 + 16 * k, p->older[k].offset);
            weir_put_u64(bytes + 40 + 16 * k, p->older[k].check);
        }
        weir_buf_append(out, bytes, ROW_BYTES);
    }
    if (out->failed) return;
    WEIR_ASSERT(out->length == HEADER_BYTES + positions->count * ROW_BYTES);
    weir_put_u32(bytes, positions_crc((const uint8_t *)out->bytes, out->length));
    memcpy(out->bytes + HEADER_BYTES - 4, bytes, 4);
}

weir_err weir_positions_save(weir_positions *positions) {
    weir_buf out = {0};
    weir_mutex_lock(&positions->mutex);
    while (positions->saving)
        weir_cond_wait(&positions->saved, &positions->mutex);
    bool changed = positions->changed;
    if (changed) positions_encode(positions, &out);
    positions->changed = false;
    positions->saving = true;
    weir_mutex_unlock(&positions->mutex);
    weir_err err = weir_buf_err(&out);
    if (!err && changed) err = weir_file_replace(positions->path, out.bytes, out.length);
    weir_mutex_lock(&positions->mutex);
    positions->changed = positions->changed || err;
    positions->saving = false;
    weir_cond_broadcast(&positions->saved);
    weir_mutex_unlock(&positions->mutex);
    weir_buf_free(&out);
    return err;
}

/* --- the table --------------------------------------------------------------------------------------------------- */

/* The first row that is not below (source, partition). */
static size_t positions_place(const weir_positions *positions, uint32_t source, uint32_t partition) {
    uint64_t wanted = (uint64_t)source << 32 | partition;
    size_t low = 0, high = positions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const weir_position *row = &positions->rows[middle];
        if (((uint64_t)row->source << 32 | row->partition) < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool positions_is_row(const weir_positions *positions, size_t i, uint32_t source, uint32_t partition) {
    return i < positions->count && positions->rows[i].source == source && positions->rows[i].partition == partition;
}

bool weir_positions_get(weir_positions *positions, uint32_t source, uint32_t partition, weir_position *positionp) {
    weir_mutex_lock(&positions->mutex);
    size_t i = positions_place(positions, source, partition);
    bool found = positions_is_row(positions, i, source, partition);
    *positionp = found ? positions->rows[i] : (weir_position){.source = source, .partition = partition};
    weir_mutex_unlock(&positions->mutex);
    return found;
}

bool weir_positions_find_check(weir_positions *positions, uint32_t source, uint64_t check, weir_position *positionp) {
    bool found = false;
    weir_mutex_lock(&positions->mutex);
    for (size_t i = positions_place(positions, source, 0); i < positions->count && positions->rows[i].source == source;
         i++) {
        if (positions->rows[i].check != check) continue;
        *positionp = positions->rows[i];
        found = true;
    }
    weir_mutex_unlock(&positions->mutex);
    return found;
}

uint32_t weir_positions_partitions(weir_positions *positions, uint32_t source) {
    weir_mutex_lock(&positions->mutex);
    size_t end = positions_place(positions, source + 1, 0);
    bool any = end > 0 && positions->rows[end - 1].source == source;
    uint32_t partitions = any ? positions->rows[end - 1].partition + 1 : 0;
    weir_mutex_unlock(&positions->mutex);
    return partitions;
}

static weir_err positions_grow(weir_positions *positions) {
    if (positions->count < positions->capacity) return WEIR_OK;
    if (positions->count == WEIR_POSITIONS_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "a store remembers at most %u source partitions", WEIR_POSITIONS_MAX);
    }
    size_t capacity = positions->capacity ? positions->capacity * 2 : 16;
    weir_position *rows = weir_realloc_array(positions->rows, capacity, sizeof *rows);
    if (!rows) return WEIR_NOMEM("for %zu positions", capacity);
    positions->rows = rows;
    positions->capacity = capacity;
    return WEIR_OK;
}

weir_err weir_positions_put(weir_positions *positions, const weir_position *position) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&positions->mutex);
    size_t i = positions_place(positions, position->source, position->partition);
    if (!positions_is_row(positions, i, position->source, position->partition)) {
        err = positions_grow(positions);
        if (!err) {
            memmove(&positions->rows[i + 1], &positions->rows[i], (positions->count - i) * sizeof *positions->rows);
            positions->count++;
        }
    }
    if (!err) {
        WEIR_ASSERT(i < positions->count && positions->count <= positions->capacity);
        positions->rows[i] = *position;
        positions->changed = true;
    }
    weir_mutex_unlock(&positions->mutex);
    return err;
}

weir_positions_letters weir_positions_letters_get(weir_positions *positions) {
    weir_mutex_lock(&positions->mutex);
    weir_positions_letters letters = positions->letters;
    weir_mutex_unlock(&positions->mutex);
    return letters;
}

void weir_positions_letters_set(weir_positions *positions, weir_positions_letters letters) {
    weir_mutex_lock(&positions->mutex);
    const weir_positions_letters *old = &positions->letters;
    positions->changed = positions->changed || old->from != letters.from || old->born != letters.born;
    positions->letters = letters;
    weir_mutex_unlock(&positions->mutex);
}

bool weir_positions_are_new(weir_positions *positions) {
    return positions->is_new;
}

bool weir_positions_are_old(weir_positions *positions) {
    return positions->is_old;
}

void weir_position_mark(weir_position *position, weir_mark mark, uint64_t verified, uint64_t times) {
    weir_mark *older = position->older;
    if (position->check && position->offset < mark.offset && position->offset <= verified) {
        for (size_t i = WEIR_POSITIONS_OLDER - 1; i > 0; i--) {
            bool first = i == WEIR_POSITIONS_OLDER - 1;
            if (first ? older[i].check == 0 : times % KEEP_EVERY == 0) older[i] = older[i - 1];
        }
        older[0] = (weir_mark){position->offset, position->check};
        if (!older[WEIR_POSITIONS_OLDER - 1].check) older[WEIR_POSITIONS_OLDER - 1] = older[0];
    }
    position->offset = mark.offset;
    position->check = mark.check;
}

/* --- marks ------------------------------------------------------------------------------------------------------ */

void weir_marks_add(weir_marks *marks, uint64_t offset, uint64_t check) {
    if (marks->count == WEIR_MARKS_MAX) {
        for (uint32_t i = 0; i < WEIR_MARKS_MAX / 2; i++)
            marks->marks[i] = marks->marks[2 * i];
        marks->count = WEIR_MARKS_MAX / 2;
    }
    WEIR_ASSERT(marks->count == 0 || marks->marks[marks->count - 1].offset < offset);
    marks->marks[marks->count++] = (weir_mark){offset, check};
}

bool weir_marks_take(weir_marks *marks, uint64_t sealed, weir_mark *markp) {
    uint32_t taken = 0;
    while (taken < marks->count && marks->marks[taken].offset <= sealed)
        taken++;
    if (taken == 0) return false;
    *markp = marks->marks[taken - 1];
    WEIR_ASSERT(markp->offset <= sealed);
    memmove(marks->marks, marks->marks + taken, (marks->count - taken) * sizeof marks->marks[0]);
    marks->count -= taken;
    return true;
}

bool weir_marks_find(const weir_marks *marks, uint64_t offset, weir_mark *markp) {
    bool found = false;
    for (uint32_t i = 0; i < marks->count && marks->marks[i].offset <= offset; i++) {
        *markp = marks->marks[i];
        found = true;
    }
    return found;
}
