/* SPDX-License-Identifier: Apache-2.0 */
/* letters.c - the topic of dead letters, and which positions are in it. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/thread.h>

#include "letters.h"

#define READ_RECORDS 256u

typedef weir_letters_place place;

typedef struct places {
    place *items;
    size_t count, capacity;
} places;

struct weir_letters {
    weir_eventlog *log;
    weir_clock *clock;
    places loaded; /* sorted; not changed after load */

    weir_mutex mutex;   /* LEAF; guards the fields below    */
    places unsealed;    /* in no order                      */
    uint64_t end;       /* number of the next letter        */
    uint32_t in_flight; /* appended, not yet in unsealed, which has room for them */
    bool passing;       /* a thread has taken unsealed away */
};

static weir_err places_reserve(places *all, size_t more) {
    size_t capacity = all->capacity ? all->capacity : 64;
    if (all->count + more <= all->capacity) return WEIR_OK;
    while (capacity < all->count + more)
        capacity *= 2;
    place *items = weir_realloc_array(all->items, capacity, sizeof *items);
    if (!items) return WEIR_NOMEM("for the places of %zu dead letters", capacity);
    all->items = items;
    all->capacity = capacity;
    return WEIR_OK;
}

static weir_err places_add(places *all, const place *added) {
    weir_err err = places_reserve(all, 1);
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

typedef struct loading {
    weir_letters *letters;
    places *to;
    uint64_t born;
    weir_letters_source_of source_of;
    void *context;
} loading;

static weir_err load_one(const loading *load, const weir_record *record) {
    weir_dead_letter letter;
    weir_err err = weir_dead_letter_read(record, &letter);
    if (err) return err;
    uint32_t source = load->source_of(load->context, letter.source, letter.source_length, letter.identity);
    const place at = {source, letter.partition, letter.offset, record->offset, record->offset >= load->born};
    return source == UINT32_MAX ? WEIR_OK : places_add(load->to, &at);
}

static int compare_places(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorted. */
static weir_err load_all(const loading *load, uint64_t from) {
    weir_record records[READ_RECORDS];
    weir_eventlog_partition_stats stats = {0};
    weir_eventlog_reader *reader;
    size_t count;
    weir_err err = weir_eventlog_stats_get(load->letters->log, 0, &stats);
    if (err) return err;
    if (from < stats.offset_begin || from > stats.offset_end) from = stats.offset_begin;
    err = weir_eventlog_reader_open(load->letters->log, 0, from, &reader);
    if (err) return err;
    do {
        err = weir_eventlog_reader_next(reader, records, READ_RECORDS, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = load_one(load, &records[i]);
    } while (!err && count);
    weir_eventlog_reader_close(reader);
    if (load->to->count) qsort(load->to->items, load->to->count, sizeof *load->to->items, compare_places);
    return err;
}

weir_err weir_letters_load(weir_letters *letters, uint64_t from, uint64_t born, weir_letters_source_of source_of,
                           void *context) {
    places *loaded = &letters->loaded;
    const loading load = {letters, loaded, born, source_of, context};
    weir_err err = load_all(&load, from);
    for (size_t i = 0; !err && i < loaded->count; i++)
        err = places_add(&letters->unsealed, &loaded->items[i]);
    return err;
}

weir_err weir_letters_all(weir_letters *letters, uint64_t born, weir_letters_source_of source_of, void *context,
                          weir_letters_place **placesp, size_t *countp) {
    places all = {0};
    const loading load = {letters, &all, born, source_of, context};
    weir_err err = load_all(&load, 0);
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

/* The first loaded letter at or behind this place. */
static size_t lower_bound(const weir_letters *letters, const place *wanted) {
    size_t low = 0, high = letters->loaded.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_places(&letters->loaded.items[middle], wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void weir_letters_known(const weir_letters *letters, uint32_t source, uint32_t partition, uint64_t from,
                        const weir_letters_place **placesp, size_t *countp) {
    const place first = {.source = source, .partition = partition, .offset = from};
    size_t begin = lower_bound(letters, &first), end = begin;
    while (end < letters->loaded.count && letters->loaded.items[end].source == source &&
           letters->loaded.items[end].partition == partition)
        end++;
    *placesp = letters->loaded.items ? letters->loaded.items + begin : NULL;
    *countp = end - begin;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static weir_err append(weir_letters *letters, weir_dead_letter *letter, weir_buf *scratch, uint64_t *numberp) {
    weir_record record;
    weir_err err = weir_dead_letter_write(letter, scratch, &record);
    record.time_us = weir_clock_wall_us(letters->clock);
    return err ? err : weir_eventlog_append(letters->log, 0, &record, 1, numberp);
}

weir_err weir_letters_add(weir_letters *letters, uint32_t source, weir_dead_letter *letter, weir_buf *scratch) {
    place at = {source, letter->partition, letter->offset, 0, true};
    weir_mutex_lock(&letters->mutex); /* room first: a letter that is appended must not fail any more, and come twice */
    weir_err err = places_reserve(&letters->unsealed, letters->in_flight + (size_t)1);
    if (!err) letters->in_flight++;
    weir_mutex_unlock(&letters->mutex);
    if (err) return err;
    err = append(letters, letter, scratch, &at.number);
    weir_mutex_lock(&letters->mutex);
    if (!err) err = places_add(&letters->unsealed, &at);
    if (!err && letters->end <= at.number) letters->end = at.number + 1;
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

/* Keeps those that may be read again; returns the least number of them, or end. */
static uint64_t keep_unsealed(places *all, weir_graph *graph, uint64_t end) {
    size_t kept = 0;
    uint64_t least = end;
    for (size_t i = 0; i < all->count; i++) {
        const place *p = &all->items[i];
        if (p->offset < weir_graph_offset_sealed(graph, p->source, p->partition)) continue;
        if (p->number < least) least = p->number;
        all->items[kept++] = *p;
    }
    all->count = kept;
    return least;
}

/* The graph is asked without the mutex; what is added meanwhile has higher numbers. Without memory to join the two,
 * it cannot be told any more: `passing` stays. */
bool weir_letters_passed(weir_letters *letters, weir_graph *graph, uint64_t *numberp) {
    weir_mutex_lock(&letters->mutex);
    bool quiet = letters->in_flight == 0 && !letters->passing;
    places taken = letters->unsealed;
    uint64_t end = letters->end;
    if (quiet) {
        letters->unsealed = (places){0};
        letters->passing = true;
    }
    weir_mutex_unlock(&letters->mutex);
    if (!quiet) return false;
    *numberp = keep_unsealed(&taken, graph, end);
    weir_err err = WEIR_OK;
    weir_mutex_lock(&letters->mutex);
    err = places_reserve(&letters->unsealed, taken.count + letters->in_flight);
    for (size_t i = 0; !err && i < taken.count; i++)
        err = places_add(&letters->unsealed, &taken.items[i]);
    letters->passing = err != WEIR_OK;
    weir_mutex_unlock(&letters->mutex);
    weir_free(taken.items);
    return !err;
}
