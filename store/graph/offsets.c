/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.c - a sorted array under a lock: partitions are few, and change once a batch. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "offsets.h"

typedef struct offsets_row {
    uint64_t id; /* source, then partition */
    uint64_t offset;
    weir_event_clock clock; /* behind the last event below the offset */
} offsets_row;

struct weir_offsets {
    weir_mutex mutex; /* LEAF; guards the rest */
    offsets_row *rows;
    size_t count, capacity;
};

weir_err weir_offsets_open(weir_offsets **offsetsp) {
    *offsetsp = weir_calloc(1, sizeof **offsetsp);
    if (!*offsetsp) return WEIR_NOMEM("for source offsets");
    weir_mutex_init(&(*offsetsp)->mutex, WEIR_RANK_LEAF, "offsets");
    return WEIR_OK;
}

void weir_offsets_close(weir_offsets *offsets) {
    if (!offsets) return;
    weir_mutex_destroy(&offsets->mutex);
    weir_free(offsets->rows);
    weir_free(offsets);
}

static size_t offsets_place(const weir_offsets *offsets, uint64_t id) {
    size_t low = 0, high = offsets->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offsets->rows[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t offsets_id_of(uint32_t source, uint32_t partition) {
    return (uint64_t)source << 32 | partition;
}

bool weir_offsets_get(weir_offsets *offsets, uint32_t source, uint32_t partition, uint64_t *offsetp) {
    uint64_t id = offsets_id_of(source, partition);
    *offsetp = 0;
    weir_mutex_lock(&offsets->mutex);
    size_t at = offsets_place(offsets, id);
    bool found = at < offsets->count && offsets->rows[at].id == id;
    if (found) *offsetp = offsets->rows[at].offset;
    weir_mutex_unlock(&offsets->mutex);
    return found;
}

void weir_offsets_clock(weir_offsets *offsets, uint32_t source, uint32_t partition, weir_event_clock *clockp) {
    uint64_t id = offsets_id_of(source, partition);
    *clockp = weir_event_clock_unset();
    weir_mutex_lock(&offsets->mutex);
    size_t at = offsets_place(offsets, id);
    if (at < offsets->count && offsets->rows[at].id == id) *clockp = offsets->rows[at].clock;
    weir_mutex_unlock(&offsets->mutex);
}

static weir_err offsets_room(weir_offsets *offsets, size_t count) {
    if (count > WEIR_OFFSETS_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "more than %u source partitions feed one store", WEIR_OFFSETS_MAX);
    }
    if (count <= offsets->capacity) return WEIR_OK;
    size_t capacity = count < 8 ? 8 : count * 2;
    offsets_row *rows = weir_realloc_array(offsets->rows, capacity, sizeof *rows);
    if (!rows) return WEIR_NOMEM("for source offsets");
    offsets->rows = rows;
    offsets->capacity = capacity;
    return WEIR_OK;
}

weir_err weir_offsets_set(weir_offsets *offsets, uint32_t source, uint32_t partition, uint64_t offset,
                          const weir_event_clock *clock) {
    uint64_t id = offsets_id_of(source, partition);
    weir_err err = WEIR_OK;
    weir_mutex_lock(&offsets->mutex);
    size_t at = offsets_place(offsets, id);
    if (at == offsets->count || offsets->rows[at].id != id) {
        err = offsets_room(offsets, offsets->count + 1);
        if (err) goto end;
        WEIR_ASSERT(at <= offsets->count && offsets->count < offsets->capacity);
        memmove(&offsets->rows[at + 1], &offsets->rows[at], (offsets->count - at) * sizeof(offsets_row));
        offsets->rows[at] = (offsets_row){.id = id};
        offsets->count++;
    }
    WEIR_ASSERT(at + 1 == offsets->count || id < offsets->rows[at + 1].id); /* they are searched */
    WEIR_ASSERT(offsets->rows[at].offset <= offset);                        /* GRAPH-S1 */
    offsets->rows[at].offset = offset;
    offsets->rows[at].clock = *clock;
end:
    weir_mutex_unlock(&offsets->mutex);
    return err;
}

/* Two tables of one rank are never locked together: the copy goes over the stack of a walk. */
typedef struct offsets_copied {
    offsets_row *rows;
    size_t count;
} offsets_copied;

static weir_err offsets_copy_rows(weir_offsets *from, offsets_copied *copyp) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&from->mutex);
    copyp->count = from->count;
    copyp->rows = weir_malloc(from->count * sizeof(offsets_row));
    if (!copyp->rows) {
        err = WEIR_NOMEM("for source offsets");
    } else if (from->count) {
        memcpy(copyp->rows, from->rows, from->count * sizeof(offsets_row));
    }
    weir_mutex_unlock(&from->mutex);
    return err;
}

weir_err weir_offsets_copy(weir_offsets *to, weir_offsets *from) {
    offsets_copied c;
    weir_err err = offsets_copy_rows(from, &c);
    if (err) return err;
    weir_mutex_lock(&to->mutex);
    err = offsets_room(to, c.count);
    if (!err) {
        WEIR_ASSERT(c.count <= to->capacity);
        if (c.count) memcpy(to->rows, c.rows, c.count * sizeof(offsets_row));
        to->count = c.count;
    }
    weir_mutex_unlock(&to->mutex);
    weir_free(c.rows);
    return err;
}

weir_err weir_offsets_walk(weir_offsets *offsets, weir_offsets_visit visit, void *context) {
    offsets_copied c;
    weir_err err = offsets_copy_rows(offsets, &c);
    for (size_t i = 0; !err && i < c.count; i++) {
        err =
            visit(context, (uint32_t)(c.rows[i].id >> 32), (uint32_t)c.rows[i].id, c.rows[i].offset, &c.rows[i].clock);
    }
    weir_free(c.rows);
    return err;
}
