/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - a graph, the logs of its sources and a pipeline between them; and what ought to be in the graph, by
 * mapping every record of the logs into the naive graph.
 */
#ifndef WEIR_PIPELINE_FIXTURE_H
#define WEIR_PIPELINE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/ingest/pipeline/pipeline.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir_test.h>

#include <naive_graph.h>

#define FIXTURE_SOURCES 4u
#define FIXTURE_WAIT    (120 * WEIR_US_PER_S)

typedef struct fixture {
    weir_schema *schema;
    weir_eventlog *logs[FIXTURE_SOURCES];
    size_t log_count;
    uint32_t partitions;    /* of each log; 0: 2 */
    uint64_t segment_bytes; /* 0: as ever; else retention may remove all but the last segment */
    weir_graph *graph;
    weir_graph_opts graph_opts;
    weir_pipeline *pipeline;
} fixture;

static inline weir_schema *fixture_schema(const char *text) {
    weir_schema *schema;
    assert_ok(weir_schema_parse("test", text, strlen(text), &schema));
    return schema;
}

static inline void fixture_open_logs(fixture *f) {
    f->log_count = weir_schema_source_count(f->schema);
    assert_true(f->log_count <= FIXTURE_SOURCES);
    for (uint32_t i = 0; i < f->log_count; i++) {
        const weir_eventlog_opts opts = {.partitions = f->partitions ? f->partitions : 2,
                                         .segment_bytes = f->segment_bytes,
                                         .retain_bytes = f->segment_bytes ? 1 : 0};
        const char *topic = weir_schema_source_at(f->schema, i)->topic;
        assert_ok(weir_eventlog_open(weir_test_path("log"), topic, &opts, &f->logs[i]));
    }
}

static inline void fixture_open_graph(fixture *f) {
    f->graph_opts.create = true;
    f->graph_opts.id_key = &weir_id_key_public;
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &f->graph_opts, &f->graph));
}

static inline weir_err fixture_try_pipeline(fixture *f) {
    weir_pipeline_source sources[FIXTURE_SOURCES] = {0};
    for (uint32_t i = 0; i < f->log_count; i++)
        sources[i] = (weir_pipeline_source){.source = i, .stream = WEIR_PIPELINE_EVENTLOG, .log = f->logs[i]};
    const weir_pipeline_opts opts = {.graph = f->graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = sources,
                                     .source_count = f->log_count};
    return weir_pipeline_open(&opts, &f->pipeline);
}

static inline void fixture_start(fixture *f) {
    assert_ok(fixture_try_pipeline(f));
    assert_ok(weir_pipeline_start(f->pipeline));
}

static inline void fixture_open(fixture *f) {
    fixture_open_logs(f);
    fixture_open_graph(f);
    fixture_start(f);
}

static inline void fixture_stop(fixture *f) {
    assert_ok(weir_pipeline_close(f->pipeline));
    f->pipeline = NULL;
    assert_ok(weir_graph_close(f->graph));
    f->graph = NULL;
}

static inline void fixture_close(fixture *f) {
    fixture_stop(f);
    for (size_t i = 0; i < f->log_count; i++)
        assert_ok(weir_eventlog_close(f->logs[i]));
    weir_schema_free(f->schema);
}

static inline uint64_t fixture_append(fixture *f, uint32_t source, uint32_t partition, const char *value,
                                      size_t length) {
    const weir_record record = {.value = value, .value_length = length};
    uint64_t offset;
    assert_ok(weir_eventlog_append(f->logs[source], partition, &record, 1, &offset));
    return offset;
}

static inline uint64_t fixture_text(fixture *f, uint32_t source, uint32_t partition, const char *value) {
    return fixture_append(f, source, partition, value, strlen(value));
}

static inline void fixture_drain(fixture *f) {
    for (size_t i = 0; i < f->log_count; i++)
        assert_ok(weir_eventlog_sync(f->logs[i]));
    assert_ok(weir_pipeline_drain(f->pipeline, FIXTURE_WAIT));
}

/* --- what ought to be there ------------------------------------------------------------------------------------- */

typedef struct fixture_record {
    uint32_t source, partition;
    const weir_record *record;
} fixture_record;

/* Calls visit for every durable record of the logs: partition by partition. */
static inline void fixture_walk(fixture *f, void (*visit)(void *context, const fixture_record *record), void *context) {
    for (uint32_t i = 0; i < f->log_count; i++) {
        for (uint32_t p = 0; p < weir_eventlog_partitions(f->logs[i]); p++) {
            weir_eventlog_reader *reader;
            weir_record records[64];
            size_t count;
            assert_ok(weir_eventlog_reader_open(f->logs[i], p, 0, &reader));
            do {
                assert_ok(weir_eventlog_reader_next(reader, records, 64, &count));
                for (size_t r = 0; r < count; r++)
                    visit(context, &(fixture_record){i, p, &records[r]});
            } while (count);
            weir_eventlog_reader_close(reader);
        }
    }
}

typedef struct fixture_expected {
    fixture *f;
    weir_mapper *mappers[FIXTURE_SOURCES];
    naive_graph *naive;
    weir_vertex *vertices; /* with repetitions */
    size_t vertex_count, vertex_capacity;
    uint64_t mapped, refused;
} fixture_expected;

static inline void fixture_expect_vertex(fixture_expected *e, weir_vertex vertex) {
    if (e->vertex_count == e->vertex_capacity) {
        e->vertex_capacity = e->vertex_capacity ? e->vertex_capacity * 2 : 1024;
        e->vertices = weir_realloc_array(e->vertices, e->vertex_capacity, sizeof *e->vertices);
        assert_non_null(e->vertices);
    }
    e->vertices[e->vertex_count++] = vertex;
}

static inline void fixture_expect_record(void *context, const fixture_record *r) {
    fixture_expected *e = context;
    weir_mapped mapped;
    weir_err err = weir_mapper_map(e->mappers[r->source], r->partition, r->record->offset, r->record->value,
                                   r->record->value_length, &mapped);
    if (err) {
        assert_err(err, WEIR_EDATA, NULL);
        e->refused++;
        return;
    }
    e->mapped++;
    for (size_t i = 0; i < mapped.count; i++) {
        naive_graph_apply(e->naive, &mapped.mutations[i]);
        fixture_expect_vertex(e, mapped.mutations[i].vertex);
    }
}

static inline void fixture_expect(fixture *f, fixture_expected *e) {
    *e = (fixture_expected){.f = f, .naive = naive_graph_open()};
    for (uint32_t i = 0; i < f->log_count; i++)
        assert_ok(weir_mapper_open(f->schema, i, &weir_id_key_public, &e->mappers[i]));
    fixture_walk(f, fixture_expect_record, e);
    naive_graph_now_set(e->naive, weir_graph_watermark(f->graph)); /* naive_clock.h is the watermark's own oracle */
}

static inline void fixture_expected_close(fixture_expected *e) {
    for (uint32_t i = 0; i < e->f->log_count; i++)
        weir_mapper_close(e->mappers[i]);
    naive_graph_close(e->naive);
    weir_free(e->vertices);
}

#define FIXTURE_LIMIT 512u

static inline void fixture_compare_edges(const fixture_expected *e, weir_vertex vertex, uint16_t relation,
                                         weir_direction direction, weir_arena *arena) {
    static naive_edge wanted[FIXTURE_LIMIT];
    const weir_edge *edges;
    uint32_t count;
    int64_t expire_us = weir_schema_relation_at(e->f->schema, relation)->expire_us;
    size_t wanted_count = naive_graph_neighbors(e->naive, vertex, relation, direction, INT64_MAX, expire_us,
                                                naive_graph_now(e->naive), FIXTURE_LIMIT, wanted);
    assert_ok(weir_graph_neighbors(e->f->graph, vertex, relation, direction, WEIR_BEFORE_ALL, FIXTURE_LIMIT, arena,
                                   &edges, &count));
    assert_int_equal(count, wanted_count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(edges[i].neighbor, wanted[i].neighbor);
        assert_int_equal(edges[i].time_us, wanted[i].time_us);
        assert_int_equal(edges[i].event, wanted[i].event);
        assert_int_equal(edges[i].row_length, wanted[i].row_length);
        if (wanted[i].row_length) assert_memory_equal(edges[i].row, wanted[i].row, wanted[i].row_length);
    }
}

static inline void fixture_compare_vertex(const fixture_expected *e, weir_vertex vertex, weir_arena *arena) {
    for (uint32_t r = 0; r < weir_schema_relation_count(e->f->schema); r++) {
        fixture_compare_edges(e, vertex, (uint16_t)r, WEIR_OUT, arena);
        fixture_compare_edges(e, vertex, (uint16_t)r, WEIR_IN, arena);
    }
    for (uint32_t l = 0; l < weir_schema_label_count(e->f->schema); l++) {
        naive_edge wanted;
        weir_row_view view;
        uint32_t type = weir_schema_label_at(e->f->schema, l)->target;
        int64_t expire_us = weir_schema_vertex_at(e->f->schema, type)->expire_us;
        bool known = naive_graph_label(e->naive, vertex, (uint16_t)l, INT64_MAX, expire_us, &wanted);
        assert_ok(weir_graph_label(e->f->graph, vertex, (uint16_t)l, WEIR_BEFORE_ALL, arena, &view));
        assert_int_equal(view.row != NULL, known);
        if (known) assert_memory_equal(view.row, wanted.row, wanted.row_length);
    }
    const char *key;
    uint32_t length;
    uint16_t type;
    size_t wanted_length;
    const char *wanted_key = naive_graph_name(e->naive, vertex, &wanted_length);
    assert_ok(weir_graph_name(e->f->graph, vertex, arena, &type, &key, &length));
    assert_int_equal(key != NULL, wanted_key != NULL);
    if (key) {
        assert_int_equal(length, wanted_length);
        assert_memory_equal(key, wanted_key, length);
    }
}

static inline int fixture_order(const void *a, const void *b) {
    weir_vertex x = *(const weir_vertex *)a, y = *(const weir_vertex *)b;
    return (x > y) - (x < y);
}

/* Every vertex of every message: all its edges, labels and its name. */
static inline void fixture_compare(fixture *f) {
    fixture_expected e;
    weir_arena *arena;
    fixture_expect(f, &e);
    assert_ok(weir_arena_open(64u << 20, &arena));
    qsort(e.vertices, e.vertex_count, sizeof *e.vertices, fixture_order);
    for (size_t i = 0; i < e.vertex_count; i++) {
        if (i > 0 && e.vertices[i] == e.vertices[i - 1]) continue;
        fixture_compare_vertex(&e, e.vertices[i], arena);
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
    fixture_expected_close(&e);
}

/* --- dead letters ----------------------------------------------------------------------------------------------- */

typedef void (*fixture_letter_visit)(void *context, uint64_t number, const weir_dead_letter *letter);

static inline size_t fixture_letters(fixture_letter_visit visit, void *context) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog *log;
    weir_eventlog_reader *reader;
    weir_record records[64];
    size_t count, total = 0;
    assert_ok(weir_eventlog_open(weir_test_path("log"), WEIR_DEAD_LETTER_TOPIC, &opts, &log));
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    do {
        assert_ok(weir_eventlog_reader_next(reader, records, 64, &count));
        for (size_t i = 0; i < count; i++) {
            weir_dead_letter letter;
            assert_ok(weir_dead_letter_read(&records[i], &letter));
            if (visit) visit(context, records[i].offset, &letter);
        }
        total += count;
    } while (count);
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
    return total;
}

#endif /* WEIR_PIPELINE_FIXTURE_H */
