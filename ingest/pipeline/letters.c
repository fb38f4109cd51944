/* SPDX-License-Identifier: Apache-2.0 */
/* letters.c - the topic of dead letters, and which positions are in it. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/thread.h>

#include "letters.h"

#define READ_RECORDS 256u

typedef struct letters_places {
    weir_letters_place *items;
    size_t count, capacity;
} letters_places;

struct weir_letters {
    weir_eventlog *log;
    weir_clock *clock;
    letters_places loaded; /* sorted; not changed after load */

    weir_mutex mutex;        /* LEAF; guards the fields below    */
    letters_places unsealed; /* in no order                      */
    uint64_t end;            /* number of the next letter        */
    uint32_t in_flight;      /* appended, not yet in unsealed, which has room for them */
    bool passing;            /* a thread has taken unsealed away */
};

static weir_err letters_places_reserve(letters_places *all, size_t more) {
    size_t capacity = all->capacity ? all->capacity : 64;
    if (all->count + more <= all->capacity) return WEIR_OK;
    while (capacity < all->count + more)
        capacity *= 2;
    weir_letters_place *items = weir_realloc_array(all->items, capacity, sizeof *items);
    if (!items) return WEIR_NOMEM("for the places of %zu dead letters", capacity);
    all->items = items;
    all->capacity = capacity;
    return WEIR_OK;
}

static weir_err letters_places_add(letters_places *all, const weir_letters_place *added) {
    weir_err err = letters_places_reserve(all, 1);
    if (!err) all->items[all->count++] = *added;
    return err;
}

/* --- open and close --------------------------------------------------------------------------------------------- */

weir_err weir_letters_open(const char *folder, weir_clock *clock, weir_letters **lettersp) {
    *lettersp = NULL;
    weir_letters *letters = weir_calloc(1, sizeof *letters);
    if (!letters) return WEIR_NOMEM("for the dead letters");
    weir_mutex_init(&letters->mutex, WEIR_RANK_LEAF, "dead letters");
    letters->clock = clock;
    const weir_eventlog_opts opts = {.partitions = 1, .clock = clock};
    weir_eventlog_partition_stats stats = {0};
    weir_err err = weir_eventlog_open(folder, WEIR_DEAD_LETTER_TOPIC, &opts, &letters->log);
    if (!err) err = weir_eventlog_stats_get(letters->log, 0, &stats);
    letters->end = stats.offset_end;
    if (err) {
        weir_err_keep(&err, weir_letters_close(letters));
        return err;
    }
    *lettersp = letters;
    return WEIR_OK;
}

weir_err weir_letters_close(weir_letters *letters) {
    if (!letters) return WEIR_OK;
    weir_err err = weir_eventlog_close(letters->log);
    weir_mutex_destroy(&letters->mutex);
    weir_free(letters->loaded.items);
    weir_free(letters->unsealed.items);
    weir_free(letters);
    return err;
}

/* --- loading ---------------------------------------------------------------------------------------------------- */

static int letters_compare(const void *a, const void *b) {
    const weir_letters_place *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The places of the letters from this number on, sorted; of sources that are known. */
static weir_err letters_read(weir_letters *letters, uint64_t from, uint64_t born, weir_letters_source_of source_of,
                             void *context, letters_places *placesp) {
    weir_record records[READ_RECORDS];
    weir_eventlog_partition_stats stats = {0};
    weir_eventlog_reader *reader;
    size_t count;
    weir_err err = weir_eventlog_stats_get(letters->log, 0, &stats);
    if (err) return err;
    if (from < stats.offset_begin || from > stats.offset_end) from = stats.offset_begin;
    err = weir_eventlog_reader_open(letters->log, 0, from, &reader);
    if (err) return err;
    do {
        err = weir_eventlog_reader_next(reader, records, READ_RECORDS, &count);
        for (size_t i = 0; !err && i < count; i++) {
            weir_dead_letter letter;
            err = weir_dead_letter_read(&records[i], &letter);
            if (err) break;
            uint32_t source = source_of(context, letter.source, letter.source_length, letter.identity);
            if (source == UINT32_MAX) continue;
            const weir_letters_place place = {source, letter.partition, letter.offset, records[i].offset,
                                              records[i].offset >= born};
            err = letters_places_add(placesp, &place);
        }
    } while (!err && count);
    weir_eventlog_reader_close(reader);
    if (placesp->count) qsort(placesp->items, placesp->count, sizeof *placesp->items, letters_compare);
    return err;
}

weir_err weir_letters_load(weir_letters *letters, uint64_t from, uint64_t born, weir_letters_source_of source_of,
                           void *context) {
    letters_places *loaded = &letters->loaded;
    WEIR_ASSERT(loaded->count == 0);
    weir_err err = letters_read(letters, from, born, source_of, context, loaded);
    for (size_t i = 0; !err && i < loaded->count; i++)
        err = letters_places_add(&letters->unsealed, &loaded->items[i]);
    return err;
}

weir_err weir_letters_all(weir_letters *letters, uint64_t born, weir_letters_source_of source_of, void *context,
                          weir_letters_place **placesp, size_t *countp) {
    letters_places all = {0};
    weir_err err = letters_read(letters, 0, born, source_of, context, &all);
    *placesp = all.items;
    *countp = all.count;
    return err;
}

uint64_t weir_letters_end(weir_letters *letters) {
    weir_mutex_lock(&letters->mutex);
    uint64_t end = letters->end;
    weir_mutex_unlock(&letters->mutex);
    return end;
}

void weir_letters_known(const weir_letters *letters, uint32_t source, uint32_t partition, uint64_t from,
                        const weir_letters_place **placesp, size_t *countp) {
    const letters_places *loaded = &letters->loaded;
    const weir_letters_place first = {.source = source, .partition = partition, .offset = from};
    size_t low = 0, high = loaded->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (letters_compare(&loaded->items[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < loaded->count && loaded->items[end].source == source && loaded->items[end].partition == partition)
        end++;
    WEIR_ASSERT(low == loaded->count || letters_compare(&loaded->items[low], &first) >= 0);
    *placesp = loaded->items ? loaded->items + low : NULL;
    *countp = end - low;
}

weir_letters_origin weir_letters_next(const weir_letters_place **placesp, size_t *countp, uint64_t offset) {
    weir_letters_origin found = WEIR_LETTERS_NONE;
    for (; *countp && (*placesp)->offset <= offset; (*placesp)++, (*countp)--) {
        if ((*placesp)->offset != offset || found == WEIR_LETTERS_OURS) continue;
        found = (*placesp)->ours ? WEIR_LETTERS_OURS : WEIR_LETTERS_EARLIER;
    }
    return found;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

weir_err weir_letters_add(weir_letters *letters, uint32_t source, const weir_dead_letter *letter, weir_buf *scratch) {
    weir_letters_place place = {source, letter->partition, letter->offset, 0, true};
    weir_record record;
    weir_mutex_lock(&letters->mutex); /* room first: a letter that is appended must not fail any more, and come twice */
    weir_err err = letters_places_reserve(&letters->unsealed, letters->in_flight + (size_t)1);
    if (!err) letters->in_flight++;
    weir_mutex_unlock(&letters->mutex);
    if (err) return err;
    err = weir_dead_letter_write(letter, scratch, &record);
    record.time_us = weir_clock_wall_us(letters->clock);
    if (!err) err = weir_eventlog_append(letters->log, 0, &record, 1, &place.number);
    weir_mutex_lock(&letters->mutex);
    WEIR_ASSERT(letters->in_flight > 0 && letters->unsealed.count < letters->unsealed.capacity);
    if (!err) letters->unsealed.items[letters->unsealed.count++] = place;
    if (!err && letters->end <= place.number) letters->end = place.number + 1;
    letters->in_flight--;
    weir_mutex_unlock(&letters->mutex);
    if (!err) weir_metric_add(WEIR_METRIC_INGEST_DEAD_LETTERS, 1);
    return err;
}

weir_err weir_letters_sync(weir_letters *letters) {
    return weir_eventlog_sync_partition(letters->log, 0);
}

weir_err weir_letters_resume(weir_letters *letters) {
    return weir_eventlog_resume(letters->log);
}

/* --- forgetting ------------------------------------------------------------------------------------------------- */

/* The graph is asked without the mutex; what is added meanwhile has higher numbers. Without memory to join the two,
 * it cannot be told any more: `passing` stays. */
bool weir_letters_passed(weir_letters *letters, weir_graph *graph, uint64_t *numberp) {
    weir_mutex_lock(&letters->mutex);
    bool quiet = letters->in_flight == 0 && !letters->passing;
    letters_places taken = letters->unsealed;
    uint64_t least = letters->end;
    if (quiet) {
        letters->unsealed = (letters_places){0};
        letters->passing = true;
    }
    weir_mutex_unlock(&letters->mutex);
    if (!quiet) return false;

    size_t kept = 0; /* those at or above their partition's sealed offset: they may be read again */
    for (size_t i = 0; i < taken.count; i++) {
        const weir_letters_place *p = &taken.items[i];
        if (p->offset < weir_graph_offset_sealed(graph, p->source, p->partition)) continue;
        if (p->number < least) least = p->number;
        taken.items[kept++] = *p;
    }

    weir_mutex_lock(&letters->mutex);
    weir_err err = letters_places_reserve(&letters->unsealed, kept + letters->in_flight);
    for (size_t i = 0; !err && i < kept; i++)
        letters->unsealed.items[letters->unsealed.count++] = taken.items[i];
    letters->passing = err != WEIR_OK;
    weir_mutex_unlock(&letters->mutex);
    weir_free(taken.items);
    *numberp = least;
    return !err;
}
