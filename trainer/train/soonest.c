/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soonest.c - places stand in queues by the batch that reads their row next: a ring of horizon + 1 queues, and one of
 * rows that no list names. A batch moves the places of its own rows alone, so that it costs what it reads, however many
 * places there are.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "soonest.h"

#define SOONEST_NO_MEMORY "for what the coming batches read; lower --batch or the fan-outs"
#define SOONEST_NEVER     UINT64_MAX

typedef struct soonest_entry {
    uint64_t next; /* the batch that reads the row after this one */
    uint32_t row;
} soonest_entry;

typedef struct soonest_list {
    soonest_entry *entries;
    size_t count, capacity;
} soonest_list;

typedef struct soonest_row {
    uint64_t use;      /* the first batch that reads it and is not taken yet */
    uint32_t list, at; /* of the last one that does, where it stands there    */
    uint32_t place;
} soonest_row;

/* Of a queue: each place has one, and behind them each queue has one that ends it. */
typedef struct soonest_link {
    uint32_t before, after;
    uint32_t row;
} soonest_link;

struct weir_train_soonest {
    soonest_row *rows;
    soonest_list *lists; /* of batches by number, a ring */
    soonest_link *links;
    uint64_t listed, taken; /* batches */
    uint32_t row_count, places, filled, horizon;
};

weir_err weir_train_soonest_open(uint32_t rows, uint32_t places, uint32_t horizon, weir_train_soonest **soonestp) {
    size_t queues = (size_t)horizon + 2;
    *soonestp = NULL;
    weir_train_soonest *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(SOONEST_NO_MEMORY);
    if (places > rows) places = rows;
    WEIR_ASSERT(places + queues < WEIR_TRAIN_NO_PLACE);
    s->row_count = rows;
    s->places = places;
    s->horizon = horizon;
    s->rows = weir_calloc((size_t)rows + 1, sizeof *s->rows);
    s->lists = weir_calloc((size_t)horizon + 1, sizeof *s->lists);
    s->links = weir_calloc(places + queues, sizeof *s->links);
    if (!s->rows || !s->lists || !s->links) {
        weir_train_soonest_close(s);
        return WEIR_NOMEM(SOONEST_NO_MEMORY);
    }
    for (uint32_t row = 0; row < rows; row++)
        s->rows[row] = (soonest_row){.use = SOONEST_NEVER, .place = WEIR_TRAIN_NO_PLACE};
    for (uint32_t end = places; end < places + queues; end++)
        s->links[end].before = s->links[end].after = end;
    *soonestp = s;
    return WEIR_OK;
}

void weir_train_soonest_close(weir_train_soonest *s) {
    if (!s) return;
    for (uint32_t i = 0; s->lists && i <= s->horizon; i++)
        weir_free(s->lists[i].entries);
    weir_free(s->rows);
    weir_free(s->lists);
    weir_free(s->links);
    weir_free(s);
}

/* The end of the queue of rows that this batch reads next. */
static uint32_t soonest_queue(const weir_train_soonest *s, uint64_t use) {
    return s->places + (use == SOONEST_NEVER ? s->horizon + 1 : (uint32_t)(use % ((uint64_t)s->horizon + 1)));
}

static void soonest_leave(weir_train_soonest *s, uint32_t place) {
    const soonest_link *link = &s->links[place];
    s->links[link->before].after = link->after;
    s->links[link->after].before = link->before;
}

/* The place goes to the back of the queue in which the row's next batch has it. */
static void soonest_enter(weir_train_soonest *s, uint32_t place, uint32_t row) {
    uint32_t end = soonest_queue(s, s->rows[row].use), last = s->links[end].before;
    s->links[place] = (soonest_link){.before = last, .after = end, .row = row};
    s->links[last].after = s->links[end].before = place;
}

weir_err weir_train_soonest_list(weir_train_soonest *s, const uint32_t *rows, size_t count) {
    uint32_t slot = (uint32_t)(s->listed % ((uint64_t)s->horizon + 1));
    soonest_list *list = &s->lists[slot];
    WEIR_ASSERT(s->listed - s->taken <= s->horizon && count < UINT32_MAX);
    if (count > list->capacity) {
        soonest_entry *entries = weir_realloc_array(list->entries, count, sizeof *entries);
        if (!entries) return WEIR_NOMEM(SOONEST_NO_MEMORY);
        list->entries = entries;
        list->capacity = count;
    }
    list->count = count;
    for (uint32_t at = 0; at < count; at++) {
        WEIR_ASSERT(rows[at] < s->row_count);
        soonest_row *row = &s->rows[rows[at]];
        if (row->use == SOONEST_NEVER) {
            row->use = s->listed;
            if (row->place != WEIR_TRAIN_NO_PLACE) {
                soonest_leave(s, row->place);
                soonest_enter(s, row->place, rows[at]);
            }
        } else {
            WEIR_ASSERT(row->list != slot); /* each once */
            s->lists[row->list].entries[row->at].next = s->listed;
        }
        row->list = slot;
        row->at = at;
        list->entries[at] = (soonest_entry){.next = SOONEST_NEVER, .row = rows[at]};
    }
    s->listed++;
    return WEIR_OK;
}

weir_err weir_train_soonest_take(weir_train_soonest *s, weir_buf *reads) {
    const soonest_list *list = &s->lists[s->taken % ((uint64_t)s->horizon + 1)];
    WEIR_ASSERT(s->taken < s->listed);
    char *room = weir_buf_reserve(reads, list->count * sizeof(weir_train_read) + 1);
    if (!room) return weir_buf_err(reads);

    /* Of all rows of the batch, when they are read again; before any of them has to go. */
    for (size_t i = 0; i < list->count; i++) {
        soonest_row *row = &s->rows[list->entries[i].row];
        const weir_train_read read = {list->entries[i].row, row->place, row->place != WEIR_TRAIN_NO_PLACE};
        memcpy(room + i * sizeof read, &read, sizeof read);
        WEIR_ASSERT(row->use == s->taken);
        row->use = list->entries[i].next;
        if (!read.there) continue;
        soonest_leave(s, row->place);
        soonest_enter(s, row->place, read.row);
    }

    /* The others into places that are free, or have a row that is read later. Which is the latest only moves nearer: a
     * row that comes in is read before the one that goes. */
    uint64_t latest = SOONEST_NEVER;
    for (size_t i = 0; i < list->count; i++) {
        weir_train_read read;
        memcpy(&read, room + i * sizeof read, sizeof read);
        soonest_row *row = &s->rows[read.row];
        if (read.there) continue;
        while (s->filled == s->places && latest > row->use && s->links[soonest_queue(s, latest)].after >= s->places)
            latest = latest == SOONEST_NEVER ? s->taken + s->horizon : latest - 1;
        if (s->filled < s->places) {
            read.place = s->filled++;
        } else if (latest > row->use) {
            read.place = s->links[soonest_queue(s, latest)].after;
            s->rows[s->links[read.place].row].place = WEIR_TRAIN_NO_PLACE;
            soonest_leave(s, read.place);
        } else {
            continue;
        }
        row->place = read.place;
        soonest_enter(s, read.place, read.row);
        memcpy(room + i * sizeof read, &read, sizeof read);
    }
    weir_buf_commit(reads, list->count * sizeof(weir_train_read));
    s->taken++;
    return WEIR_OK;
}
