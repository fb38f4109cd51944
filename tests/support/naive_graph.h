/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_graph.h - the graph as a list of everything that was ever put, and answers by looking at all of it.
 *
 * The oracle of the store's tests. It shares nothing with the store but the types of its questions: no order of keys,
 * no merge, no window, no cache. Slow on purpose.
 */
#ifndef WEIR_NAIVE_GRAPH_H
#define WEIR_NAIVE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/format/mutation.h>

typedef struct naive_graph naive_graph;

/* An edge as the oracle has it; row is its own. */
typedef struct naive_edge {
    weir_vertex neighbor;
    int64_t time_us;
    uint64_t event;
    const uint8_t *row;
    uint32_t row_length;
} naive_edge;

naive_graph *naive_graph_open(void);
void naive_graph_close(naive_graph *graph);
/* Copies. The order of calls is the order of the log. */
void naive_graph_apply(naive_graph *graph, const weir_mutation *mutation);

/* Newest first; equal times by neighbour, then event. expire_us 0: none. now_us stands in for a before of "all" when
 * age is counted. Returns how many, at most limit; edges has room for limit. */
size_t naive_graph_neighbors(const naive_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                             int64_t before_us, int64_t expire_us, int64_t now_us, size_t limit, naive_edge *edges);
/* The rows of a vertex's features or of one of its labels, newest first, as edges without neighbours. */
size_t naive_graph_rows(const naive_graph *graph, weir_vertex vertex, weir_mutation_kind kind, uint16_t type,
                        int64_t before_us, size_t limit, naive_edge *edges);
/* The key under which the vertex was ever put, or NULL; NULL also if no put of it, or of an edge at it, is newer than
 * all its deletions. */
const char *naive_graph_name(const naive_graph *graph, weir_vertex vertex, size_t *lengthp);
/* From when age is counted where no time is given; INT64_MIN, as it is at first: nothing has an age. */
void naive_graph_now_set(naive_graph *graph, int64_t now_us);
int64_t naive_graph_now(const naive_graph *graph);
/* Whether a history of the schema reaches back to this time, counted from now; history_us 0: it reaches any. What it
 * does not reach is told nobody, whatever the functions here say of it. */
bool naive_graph_told(const naive_graph *graph, int64_t history_us, int64_t before_us);
/* The life that the vertex has before a time: the puts of it, and of edges at it, that no deletion hides and that are
 * not forgotten by then, and back from these over gaps shorter than the expiry; expire_us 0: none. *firstp: the oldest
 * of them. false: there is none, or the newest is as old as the expiry. */
bool naive_graph_life(const naive_graph *graph, weir_vertex vertex, int64_t before_us, int64_t expire_us,
                      int64_t *firstp);
/* Whether it was put between the two, itself or by an edge, whatever was deleted; INT64_MIN: ever before. */
bool naive_graph_was_put(const naive_graph *graph, weir_vertex vertex, int64_t newer_than_us, int64_t before_us);
/* The newest deletion of the vertex before this; INT64_MIN: none. */
int64_t naive_graph_deleted(const naive_graph *graph, weir_vertex vertex, int64_t before_us);
/* The rows of the vertex's features that are of that life, newest first, as naive_graph_rows. */
size_t naive_graph_features(const naive_graph *graph, weir_vertex vertex, int64_t before_us, int64_t expire_us,
                            size_t limit, naive_edge *edges);
/* The newest label before this of the life that the vertex has then: one that is no newer than the life's begin is of
 * it only if the life is the vertex's first. Of a vertex that was never deleted and never expires, any. */
bool naive_graph_label(const naive_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us,
                       int64_t expire_us, naive_edge *labelp);

#endif /* WEIR_NAIVE_GRAPH_H */
