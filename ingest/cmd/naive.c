/* SPDX-License-Identifier: Apache-2.0 */
/* naive.c - see naive.h: append, sort, search. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

#include "naive.h"

static weir_err naive_push(weir_naive *naive, weir_naive_record record, const void *row, size_t length) {
    if (!WEIR_GROW(naive->records, naive->capacity, naive->count))
        return WEIR_NOMEM("for %zu records; compare on a larger machine", naive->count + 1);
    record.row = naive->rows.length;
    record.row_length = (uint32_t)length;
    if (length) weir_buf_append(&naive->rows, row, length);
    naive->records[naive->count++] = record;
    return weir_buf_err(&naive->rows);
}

/* Type and bytes: of features and of names. */
static weir_err naive_push_typed(weir_naive *naive, weir_naive_record record, uint16_t type, const void *bytes,
                                 size_t length) {
    uint8_t prefix[2];
    weir_put_u16(prefix, type);
    weir_err err = naive_push(naive, record, prefix, sizeof prefix);
    if (err) return err;
    weir_buf_append(&naive->rows, bytes, length);
    naive->records[naive->count - 1].row_length += (uint32_t)length;
    return weir_buf_err(&naive->rows);
}

static weir_err naive_add_one(weir_naive *naive, const weir_mutation *m, const weir_naive_place *place) {
    weir_naive_record record = {.list = m->type,
                                .direction = m->direction,
                                .vertex = m->vertex,
                                .neighbor = m->neighbor,
                                .time_us = m->time_us,
                                .event = m->event,
                                .content = m->content,
                                .place = *place};
    if (m->kind != WEIR_DELETE_VERTEX && weir_shard_of(m->vertex, naive->shards) != naive->shard) return WEIR_OK;
    switch (m->kind) {
    case WEIR_PUT_VERTEX: {
        const weir_naive_record name = {.kind = 'N', .vertex = m->vertex, .place = *place};
        weir_err err = naive_push_typed(naive, name, m->type, m->key, m->key_length);
        record = (weir_naive_record){.kind = 'F',
                                     .vertex = m->vertex,
                                     .time_us = m->time_us,
                                     .event = m->event,
                                     .content = m->content,
                                     .place = *place};
        return err || !m->row_length ? err : naive_push_typed(naive, record, m->type, m->row, m->row_length);
    }
    case WEIR_PUT_EDGE:
        record.kind = 'E';
        return naive_push(naive, record, m->row, m->row_length);
    case WEIR_DELETE_EDGE:
        record.kind = 'D';
        record.content = 0;
        return naive_push(naive, record, NULL, 0);
    case WEIR_PUT_LABEL:
        record.kind = 'L';
        record.direction = WEIR_OUT;
        record.neighbor = 0; /* a label of an edge is found by its event */
        return naive_push(naive, record, m->row, m->row_length);
    case WEIR_DELETE_VERTEX:
        record = (weir_naive_record){.kind = 'T', .vertex = m->vertex, .time_us = m->time_us, .place = *place};
        return naive_push(naive, record, NULL, 0);
    case WEIR_NOTE_EVENT:
        return WEIR_OK; /* weir_naive_add_event: a mapper makes none */
    }
    return WEIR_OK;
}

/* A put that would leave neither a row nor an edge behind to tell of it. */
static weir_err naive_add_bare_put(weir_naive *naive, const weir_mutation *mutations, size_t count,
                                   const weir_mutation *put, const weir_naive_place *place) {
    const weir_naive_record record = {.kind = 'K', .vertex = put->vertex, .time_us = put->time_us, .place = *place};
    if (put->kind != WEIR_PUT_VERTEX || put->row_length) return WEIR_OK;
    if (weir_shard_of(put->vertex, naive->shards) != naive->shard) return WEIR_OK;
    for (size_t i = 0; i < count; i++) {
        if (mutations[i].kind == WEIR_PUT_EDGE && mutations[i].vertex == put->vertex) return WEIR_OK;
    }
    return naive_push(naive, record, NULL, 0);
}

weir_err weir_naive_add(weir_naive *naive, const weir_mutation *mutations, size_t count,
                        const weir_naive_place *place) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        err = naive_add_one(naive, &mutations[i], place);
        if (!err) err = naive_add_bare_put(naive, mutations, count, &mutations[i], place);
    }
    return err;
}

weir_err weir_naive_add_event(weir_naive *naive, weir_vertex source_vertex, uint64_t event, uint32_t content,
                              const weir_naive_place *place) {
    const weir_naive_record record = {.kind = 'I',
                                      .vertex = source_vertex,
                                      .time_us = (int64_t)place->offset,
                                      .event = event,
                                      .content = content,
                                      .place = *place};
    if (weir_shard_of(source_vertex, naive->shards) != naive->shard) return WEIR_OK;
    return naive_push(naive, record, NULL, 0);
}

#define COMPARE(field) \
    if (a->field != b->field) return a->field < b->field ? -1 : 1

static int naive_compare(const void *x, const void *y) {
    const weir_naive_record *a = x, *b = y;
    COMPARE(kind);
    COMPARE(vertex);
    COMPARE(list);
    COMPARE(direction);
    COMPARE(time_us);
    COMPARE(neighbor);
    COMPARE(event);
    COMPARE(content);
    return 0;
}

void weir_naive_sort(weir_naive *naive) {
    if (naive->count) qsort(naive->records, naive->count, sizeof *naive->records, naive_compare);
}

size_t weir_naive_group_end(const weir_naive *naive, size_t begin) {
    size_t end = begin + 1;
    while (end < naive->count && naive_compare(&naive->records[begin], &naive->records[end]) == 0)
        end++;
    return end;
}

/* The first record that does not sort before it. */
static size_t naive_place_of(const weir_naive *naive, const weir_naive_record *like) {
    size_t low = 0, high = naive->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (naive_compare(&naive->records[middle], like) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool weir_naive_put_after(const weir_naive *naive, weir_vertex vertex, int64_t time_us) {
    for (const char *kind = "EFK"; *kind; kind++) {
        const weir_naive_record like = {.kind = *kind, .vertex = vertex, .time_us = INT64_MIN};
        for (size_t i = naive_place_of(naive, &like); i < naive->count; i++) {
            const weir_naive_record *r = &naive->records[i];
            if (r->kind != *kind || r->vertex != vertex) break;
            if (r->time_us > time_us) return true;
        }
    }
    return false;
}

weir_naive_record *weir_naive_find(weir_naive *naive, const weir_naive_record *like, size_t *countp) {
    size_t low = naive_place_of(naive, like);
    *countp = 0;
    if (low == naive->count || naive_compare(&naive->records[low], like) != 0) return NULL;
    *countp = weir_naive_group_end(naive, low) - low;
    return &naive->records[low];
}

bool weir_naive_row_is(const weir_naive *naive, const weir_naive_record *record, const void *row, size_t length) {
    WEIR_ASSERT(record->row + record->row_length <= naive->rows.length);
    return record->row_length == length && (length == 0 || memcmp(naive->rows.bytes + record->row, row, length) == 0);
}

void weir_naive_free(weir_naive *naive) {
    weir_free(naive->records);
    weir_buf_free(&naive->rows);
    *naive = (weir_naive){0};
}
