/* SPDX-License-Identifier: Apache-2.0 */
/* naive_graph.c - one array per vertex of what was put there, in the order of the log; every question looks at all of
 * it. */
#include "naive_graph.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096u

typedef struct record {
    weir_mutation m; /* row and key are owned copies */
} record;

typedef struct place {
    struct place *next;
    weir_vertex vertex;
    record *records;
    size_t count, capacity;
} place;

struct naive_graph {
    place *places[BUCKETS];
    int64_t now_us;
};

static void *must(void *block) {
    if (!block) abort();
    return block;
}

naive_graph *naive_graph_open(void) {
    naive_graph *graph = must(calloc(1, sizeof *graph));
    graph->now_us = INT64_MIN;
    return graph;
}

static place *place_find(const naive_graph *graph, weir_vertex vertex) {
    place *p = graph->places[vertex % BUCKETS];
    while (p && p->vertex != vertex)
        p = p->next;
    return p;
}

void naive_graph_close(naive_graph *graph) {
    for (size_t b = 0; b < BUCKETS; b++) {
        for (place *p = graph->places[b], *next; p; p = next) {
            next = p->next;
            for (size_t i = 0; i < p->count; i++) {
                free((void *)(uintptr_t)p->records[i].m.row);
                free((void *)(uintptr_t)p->records[i].m.key);
            }
            free(p->records);
            free(p);
        }
    }
    free(graph);
}

static void *copy_of(const void *bytes, size_t length) {
    void *copy = must(malloc(length + 1));
    if (length) memcpy(copy, bytes, length);
    return copy;
}

void naive_graph_apply(naive_graph *graph, const weir_mutation *mutation) {
    place *p = place_find(graph, mutation->vertex);
    if (!p) {
        p = must(calloc(1, sizeof *p));
        p->vertex = mutation->vertex;
        p->next = graph->places[mutation->vertex % BUCKETS];
        graph->places[mutation->vertex % BUCKETS] = p;
    }
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 8;
        p->records = must(realloc(p->records, p->capacity * sizeof *p->records));
    }
    record *r = &p->records[p->count++];
    r->m = *mutation;
    r->m.row = copy_of(mutation->row, mutation->row_length);
    r->m.key = copy_of(mutation->key, mutation->key_length);
}

void naive_graph_now_set(naive_graph *graph, int64_t now_us) {
    graph->now_us = now_us;
}

int64_t naive_graph_now(const naive_graph *graph) {
    return graph->now_us;
}

bool naive_graph_told(const naive_graph *graph, int64_t history_us, int64_t before_us) {
    return !history_us || graph->now_us == INT64_MIN || before_us > graph->now_us - history_us;
}

/* Whether the vertex was deleted at time_us or later, as seen before before_us. */
static bool vertex_hidden(const naive_graph *graph, weir_vertex vertex, int64_t time_us, int64_t before_us) {
    const place *p = place_find(graph, vertex);
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (m->kind == WEIR_DELETE_VERTEX && m->time_us < before_us && time_us <= m->time_us) return true;
    }
    return false;
}

static bool same_list(const weir_mutation *m, uint16_t relation, weir_direction direction) {
    return m->type == relation && m->direction == direction;
}

static bool edge_hidden(const place *p, const weir_mutation *edge, int64_t before_us) {
    for (size_t i = 0; i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (m->kind != WEIR_DELETE_EDGE || !same_list(m, edge->type, edge->direction)) continue;
        if (m->neighbor != edge->neighbor || (m->event && m->event != edge->event)) continue;
        if (m->time_us < before_us && edge->time_us <= m->time_us) return true;
    }
    return false;
}

static int order(const naive_edge *a, const naive_edge *b) {
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (a->neighbor != b->neighbor) return a->neighbor < b->neighbor ? -1 : 1;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    return 0;
}

/* Insertion into what is kept, the newest last, where most belong; the same record again replaces the row, because the
 * log goes on. */
static size_t insert(naive_edge *kept, size_t count, const naive_edge *e) {
    size_t at = count;
    while (at > 0 && order(&kept[at - 1], e) < 0)
        at--;
    if (at > 0 && order(&kept[at - 1], e) == 0) {
        kept[at - 1] = *e;
        return count;
    }
    for (size_t i = count; i > at; i--)
        kept[i] = kept[i - 1];
    kept[at] = *e;
    return count + 1;
}

static size_t take_newest(naive_edge *all, size_t count, size_t limit, naive_edge *edges) {
    size_t taken = count < limit ? count : limit;
    for (size_t i = 0; i < taken; i++)
        edges[i] = all[count - 1 - i];
    free(all);
    return taken;
}

size_t naive_graph_neighbors(const naive_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                             int64_t before_us, int64_t expire_us, int64_t now_us, size_t limit, naive_edge *edges) {
    const place *p = place_find(graph, vertex);
    naive_edge *all = must(malloc(((p ? p->count : 0) + 1) * sizeof *all));
    int64_t reference_us = before_us == INT64_MAX ? now_us : before_us;
    size_t count = 0;
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (m->kind != WEIR_PUT_EDGE || !same_list(m, relation, direction) || m->time_us >= before_us) continue;
        if (expire_us && reference_us > INT64_MIN && m->time_us <= reference_us - expire_us) continue;
        if (vertex_hidden(graph, vertex, m->time_us, before_us)) continue;
        if (vertex_hidden(graph, m->neighbor, m->time_us, before_us) || edge_hidden(p, m, before_us)) continue;
        naive_edge e = {m->neighbor, m->time_us, m->event, m->row, m->row_length};
        count = insert(all, count, &e);
    }
    return take_newest(all, count, limit, edges);
}

size_t naive_graph_rows(const naive_graph *graph, weir_vertex vertex, weir_mutation_kind kind, uint16_t type,
                        int64_t before_us, size_t limit, naive_edge *edges) {
    const place *p = place_find(graph, vertex);
    naive_edge *all = must(malloc(((p ? p->count : 0) + 1) * sizeof *all));
    size_t count = 0;
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (m->kind != kind || m->row_length == 0 || m->time_us >= before_us) continue;
        if (kind == WEIR_PUT_LABEL && m->type != type) continue;
        if (vertex_hidden(graph, vertex, m->time_us, before_us)) continue;
        naive_edge e = {0, m->time_us, m->event, m->row, m->row_length};
        count = insert(all, count, &e);
    }
    return take_newest(all, count, limit, edges);
}

const char *naive_graph_name(const naive_graph *graph, weir_vertex vertex, size_t *lengthp) {
    const place *p = place_find(graph, vertex);
    const char *key = NULL;
    bool there = false;
    *lengthp = 0;
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        bool puts = m->kind == WEIR_PUT_VERTEX || m->kind == WEIR_PUT_EDGE;
        there = there || (puts && !vertex_hidden(graph, vertex, m->time_us, INT64_MAX));
        if (m->kind != WEIR_PUT_VERTEX || m->key_length == 0) continue;
        key = m->key;
        *lengthp = m->key_length;
    }
    if (there) return key;
    *lengthp = 0;
    return NULL;
}

static bool is_put(const weir_mutation *m) {
    return m->kind == WEIR_PUT_VERTEX || m->kind == WEIR_PUT_EDGE;
}

int64_t naive_graph_deleted(const naive_graph *graph, weir_vertex vertex, int64_t before_us) {
    const place *p = place_find(graph, vertex);
    int64_t newest_us = INT64_MIN;
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (m->kind == WEIR_DELETE_VERTEX && m->time_us < before_us && m->time_us > newest_us) newest_us = m->time_us;
    }
    return newest_us;
}

static int falling(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The times of the vertex's puts between the two, newest first; to be freed. */
static int64_t *puts_of(const naive_graph *graph, weir_vertex vertex, int64_t newer_than_us, int64_t before_us,
                        size_t *countp) {
    const place *p = place_find(graph, vertex);
    int64_t *times = must(malloc(((p ? p->count : 0) + 1) * sizeof *times));
    *countp = 0;
    for (size_t i = 0; p && i < p->count; i++) {
        const weir_mutation *m = &p->records[i].m;
        if (is_put(m) && m->time_us > newer_than_us && m->time_us < before_us) times[(*countp)++] = m->time_us;
    }
    qsort(times, *countp, sizeof *times, falling);
    return times;
}

bool naive_graph_life(const naive_graph *graph, weir_vertex vertex, int64_t before_us, int64_t expire_us,
                      int64_t *firstp) {
    int64_t now_us = before_us == INT64_MAX ? graph->now_us : before_us;
    size_t count, last = 0;
    int64_t *puts = puts_of(graph, vertex, naive_graph_deleted(graph, vertex, before_us), before_us, &count);
    bool ages = expire_us && now_us != INT64_MIN;
    bool there = count && (!ages || puts[0] > now_us - expire_us);
    while (there && last + 1 < count &&
           (!ages || puts[last + 1] > now_us - expire_us || puts[last] - puts[last + 1] < expire_us))
        last++;
    if (there) *firstp = puts[last];
    free(puts);
    return there;
}

bool naive_graph_was_put(const naive_graph *graph, weir_vertex vertex, int64_t newer_than_us, int64_t before_us) {
    size_t count;
    free(puts_of(graph, vertex, newer_than_us, before_us, &count));
    return count > 0;
}

size_t naive_graph_features(const naive_graph *graph, weir_vertex vertex, int64_t before_us, int64_t expire_us,
                            size_t limit, naive_edge *edges) {
    int64_t first_us;
    size_t count = naive_graph_rows(graph, vertex, WEIR_PUT_VERTEX, 0, before_us, limit, edges);
    if (!naive_graph_life(graph, vertex, before_us, expire_us, &first_us)) return 0;
    while (count && edges[count - 1].time_us < first_us)
        count--;
    return count;
}

bool naive_graph_label(const naive_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us,
                       int64_t expire_us, naive_edge *labelp) {
    int64_t first_us;
    if (!naive_graph_rows(graph, vertex, WEIR_PUT_LABEL, label, before_us, 1, labelp)) return false;
    if (!expire_us && naive_graph_deleted(graph, vertex, before_us) == INT64_MIN) return true;
    if (!naive_graph_life(graph, vertex, before_us, expire_us, &first_us)) return false;
    return labelp->time_us > first_us || !naive_graph_was_put(graph, vertex, INT64_MIN, first_us);
}
