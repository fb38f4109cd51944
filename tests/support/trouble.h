/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.h - a small store whose calls may fail, for the tests of what goes wrong. */
#ifndef WEIR_TEST_TROUBLE_H
#define WEIR_TEST_TROUBLE_H

#include "submit.h"
#include "tiny_schema.h"
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/clock.h>
#include <weir/store/graph/graph.h>

#define TROUBLE_SHARDS 2u

typedef struct trouble_store {
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t offset; /* of the next event */
    bool from_log;   /* a store that is made is filled: what comes behind its first seals lies on piles */
} trouble_store;

/* Where a sync costs nothing: for cases of hundreds of openings. Before the first path is made. */
static inline void trouble_in_memory(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
}

static inline weir_vertex trouble_vertex(uint64_t number) {
    return (weir_vertex)number;
}

static inline weir_err trouble_open(trouble_store *s, uint64_t memory_bytes, int64_t seal_us) {
    const weir_graph_opts opts = {.shards = TROUBLE_SHARDS,
                                  .memory_bytes = memory_bytes,
                                  .seal_us = seal_us,
                                  .create = true,
                                  .from_log = s->from_log};
    weir_err err = WEIR_OK;
    if (!s->schema) err = weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &s->schema);
    if (!err) err = weir_graph_open(weir_test_path("store"), s->schema, &opts, &s->graph);
    if (err) return err;
    err = weir_graph_source(s->graph, "log:s", 7, &s->source);
    if (!err) return WEIR_OK;
    weir_err_keep(&err, weir_graph_close(s->graph));
    s->graph = NULL;
    return err;
}

static inline weir_err trouble_close(trouble_store *s) {
    weir_err err = weir_graph_close(s->graph);
    s->graph = NULL;
    return err;
}

static inline void trouble_free(trouble_store *s) {
    weir_schema_free(s->schema);
    s->schema = NULL;
}

/* As one event of partition 0. What was not taken can be submitted again. */
static inline weir_err trouble_submit(trouble_store *s, weir_mutation *mutations, size_t count, uint64_t skipped) {
    weir_err err = submit_event(s->graph, s->source, s->offset + skipped, mutations, count);
    if (!err) s->offset++;
    return err;
}

static inline weir_err trouble_edge(trouble_store *s, uint64_t a, uint64_t b, int64_t time_us) {
    weir_mutation m[2] = {
        {.kind = WEIR_PUT_EDGE, .direction = WEIR_OUT, .time_us = time_us, .event = s->offset + 1},
        {.kind = WEIR_PUT_EDGE, .direction = WEIR_IN, .time_us = time_us, .event = s->offset + 1},
    };
    m[0].vertex = m[1].neighbor = trouble_vertex(a);
    m[1].vertex = m[0].neighbor = trouble_vertex(b);
    return trouble_submit(s, m, 2, 0);
}

static inline weir_err trouble_degree(trouble_store *s, uint64_t a, weir_direction direction, uint32_t *countp) {
    weir_arena *arena = NULL;
    const weir_edge *edges;
    *countp = 0;
    weir_err err = weir_arena_open(8u << 20, &arena);
    if (!err) {
        err = weir_graph_neighbors(s->graph, trouble_vertex(a), 0, direction, WEIR_BEFORE_ALL, 5000, arena, &edges,
                                   countp);
    }
    weir_arena_close(arena);
    return err;
}

static inline void trouble_nap(void) {
    weir_clock *clock = weir_clock_system();
    weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + 2000);
}

#endif /* WEIR_TEST_TROUBLE_H */
