/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_table.c - deletions that are not sealed: a table of vertices, each with its times. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "deleted_private.h"

#define PLACES_MIN 64u
#define TIMES_MIN  4u

/* Where the vertex stands, or where it would. */
static weir_deletion_place *deletion_table_place_of(const weir_deletion_table *table, weir_vertex vertex) {
    size_t at = weir_deletion_hash(vertex) & (table->capacity - 1);
    while (table->places[at].count && table->places[at].vertex != vertex)
        at = (at + 1) & (table->capacity - 1);
    return &table->places[at];
}

static bool deletion_table_grow(weir_deletion_table *table) {
    weir_deletion_table grown = *table;
    grown.capacity = table->capacity ? table->capacity * 2 : PLACES_MIN;
    grown.places = weir_calloc(grown.capacity, sizeof *grown.places);
    if (!grown.places) return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->places[i].count) *deletion_table_place_of(&grown, table->places[i].vertex) = table->places[i];
    weir_free(table->places);
    *table = grown;
    return true;
}

const int64_t *weir_deletion_times(const weir_deletion_place *place) {
    return place->capacity ? place->times.many : &place->times.one;
}

/* How many of its times are before this one. */
static uint32_t deletion_times_before(const weir_deletion_place *place, int64_t time_us) {
    const int64_t *times = weir_deletion_times(place);
    uint32_t low = 0, high = place->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (times[middle] < time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool deletion_times_grow(weir_deletion_place *place) {
    uint32_t capacity = place->capacity ? place->capacity * 2 : TIMES_MIN;
    int64_t *many = weir_malloc(capacity * sizeof *many);
    if (!many) return false;
    memcpy(many, weir_deletion_times(place), place->count * sizeof *many);
    if (place->capacity) weir_free(place->times.many);
    place->times.many = many;
    place->capacity = capacity;
    return true;
}

bool weir_deletion_table_insert(weir_deletion_table *table, weir_vertex vertex, int64_t time_us, bool *newp) {
    *newp = false;
    if (table->vertices * 2 >= table->capacity && !deletion_table_grow(table)) return false;
    WEIR_ASSERT(table->vertices < table->capacity); /* else a search would not end */
    weir_deletion_place *place = deletion_table_place_of(table, vertex);
    if (place->count == 0) {
        *place = (weir_deletion_place){.vertex = vertex, .count = 1, .times.one = time_us};
        table->vertices++;
    } else {
        uint32_t at = deletion_times_before(place, time_us);
        if (at < place->count && weir_deletion_times(place)[at] == time_us) return true;
        if (place->count >= place->capacity && !deletion_times_grow(place)) return false;
        WEIR_ASSERT(at <= place->count && place->count < place->capacity);
        memmove(&place->times.many[at + 1], &place->times.many[at], (place->count - at) * sizeof(int64_t));
        place->times.many[at] = time_us;
        place->count++;
    }
    table->count++;
    *newp = true;
    return true;
}

int64_t weir_deletion_table_newest(const weir_deletion_table *table, weir_vertex vertex, int64_t before_us) {
    if (table->count == 0) return WEIR_DELETED_NEVER;
    const weir_deletion_place *place = deletion_table_place_of(table, vertex);
    uint32_t before = deletion_times_before(place, before_us);
    return before ? weir_deletion_times(place)[before - 1] : WEIR_DELETED_NEVER;
}

void weir_deletion_table_free(weir_deletion_table *table) {
    for (size_t i = 0; i < table->capacity; i++)
        if (table->places[i].capacity) weir_free(table->places[i].times.many);
    weir_free(table->places);
}
