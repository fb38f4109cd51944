/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_table.c - deletions that are not sealed: a table of vertices, each with its times. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "deleted_private.h"

static weir_deletion_place *deletion_place_of(const weir_deletion_table *table, weir_vertex vertex) {
    weir_deletion_place *place = weir_table_first(&table->places, weir_vertex_fold(vertex), sizeof *place);
    while (place && place->vertex != vertex)
        place = weir_table_next(&table->places, place, sizeof *place);
    return place;
}

const int64_t *weir_deletion_times(const weir_deletion_place *place) {
    return place->count > 1 ? place->times.many : &place->times.one;
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

bool weir_deletion_table_insert(weir_deletion_table *table, weir_vertex vertex, int64_t time_us, bool *newp) {
    weir_deletion_place *place = deletion_place_of(table, vertex);
    *newp = false;
    if (!place) {
        if (!weir_table_reserve(&table->places, table->places.count + 1, sizeof *place)) return false;
        place = weir_table_add(&table->places, weir_vertex_fold(vertex), sizeof *place);
        place->vertex = vertex;
        place->times.one = time_us;
    } else {
        uint32_t at = deletion_times_before(place, time_us);
        if (at < place->count && weir_deletion_times(place)[at] == time_us) return true;
        int64_t *many = place->count > 1 ? place->times.many : NULL;
        if ((place->count & (place->count - 1)) == 0) { /* there is no room for one more */
            many = weir_realloc_array(many, (size_t)place->count * 2, sizeof *many);
            if (!many) return false;
            if (place->count == 1) many[0] = place->times.one;
            place->times.many = many;
        }
        WEIR_ASSERT(at <= place->count);
        memmove(&many[at + 1], &many[at], (place->count - at) * sizeof *many);
        many[at] = time_us;
    }
    place->count++;
    table->count++;
    *newp = true;
    return true;
}

int64_t weir_deletion_table_newest(const weir_deletion_table *table, weir_vertex vertex, int64_t before_us) {
    const weir_deletion_place *place = deletion_place_of(table, vertex);
    uint32_t before = place ? deletion_times_before(place, before_us) : 0;
    return before ? weir_deletion_times(place)[before - 1] : WEIR_DELETED_NEVER;
}

void weir_deletion_table_free(weir_deletion_table *table) {
    const weir_deletion_place *places = table->places.entries;
    for (size_t i = 0; i < table->places.capacity; i++)
        if (places[i].count > 1) weir_free(places[i].times.many);
    weir_table_free(&table->places);
}
