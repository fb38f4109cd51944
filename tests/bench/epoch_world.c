/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_world.c - edges go through the real store; features and masks are laid beside the vertices, as imports do. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>
#include <weir/store/sample/sampler.h>

#include "bench.h"
#include "epoch_world.h"

#define RUN_MUTATIONS 8192u
#define LEARNABLE     0.25f /* how far apart the classes lie in the first feature, in its own range */
#define SUM_FACTOR    0x9E3779B97F4A7C15ull

enum { RNG_EDGES = 1, RNG_FEATURES = 2 };

static const char schema_text[] = "version: 1\n"
                                  "name: epoch\n"
                                  "vertices: {node: {}}\n"
                                  "relations: {edge: {from: node, to: node}}\n"
                                  "labels: {side: {vertex: node, values: [left, right]}}\n"
                                  "tasks: {side: {kind: classify, label: side, positive: right}}\n";

/* --- edges and labels --------------------------------------------------------------------------------------------- */

typedef struct epoch_feed {
    const epoch_world *world;
    weir_graph *graph;
    uint32_t source, count; /* mutations of the run at hand */
    uint64_t row, begin;    /* rows are the offsets of the source */
    weir_buf batch;
} epoch_feed;

static weir_vertex epoch_vertex(uint64_t n, char key[24], int *lengthp) {
    *lengthp = snprintf(key, 24, "%llu", (unsigned long long)n);
    return weir_vertex_id(&weir_id_key_public, "node", key, (size_t)*lengthp);
}

static bool epoch_is_right(uint64_t id_low) {
    return id_low & 1;
}

static void epoch_add(epoch_feed *f, weir_mutation m) {
    m.offset = f->row;
    m.event = f->row + 1;
    weir_batch_add(&f->batch, &m, f->begin);
    f->count++;
}

static weir_err epoch_end_row(epoch_feed *f, bool last) {
    f->row++;
    if (f->count < RUN_MUTATIONS && !last) return WEIR_OK;
    const weir_batch_span span = {f->source, 0, f->begin, f->row};
    weir_batch_end(&f->batch, &span, f->count);
    weir_err err = weir_buf_err(&f->batch);
    if (!err) err = weir_graph_submit(f->graph, &f->batch);
    weir_buf_clear(&f->batch);
    weir_batch_begin(&f->batch);
    f->begin = f->row;
    f->count = 0;
    return err;
}

static weir_err epoch_put_vertex(epoch_feed *f, uint64_t n) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    uint8_t row[16];
    char key[24];
    int length;
    weir_vertex id = epoch_vertex(n, key, &length);
    bool right = epoch_is_right(weir_vertex_low(id));
    const weir_value side = {.present = true, .text = right ? "right" : "left", .text_length = right ? 5 : 4};
    epoch_add(f, (weir_mutation){
                     .kind = WEIR_PUT_VERTEX, .vertex = id, .key = key, .key_length = (uint16_t)length, .row = row});
    epoch_add(f, (weir_mutation){.kind = WEIR_PUT_LABEL,
                                 .vertex = id,
                                 .row = row,
                                 .row_length = (uint32_t)weir_row_write(&kind, &side, 1, row)});
    return epoch_end_row(f, false);
}

/* The end of an edge is the smaller the more likely. */
static weir_err epoch_put_edge(epoch_feed *f, weir_rng *rng, bool last) {
    char key[24];
    int length;
    uint64_t vertices = f->world->vertices;
    double place = weir_rng_double(rng);
    weir_vertex from = epoch_vertex(weir_rng_below(rng, vertices), key, &length);
    weir_vertex to = epoch_vertex((uint64_t)(place * place * (double)vertices), key, &length);
    epoch_add(f, (weir_mutation){.kind = WEIR_PUT_EDGE, .direction = WEIR_OUT, .vertex = from, .neighbor = to});
    epoch_add(f, (weir_mutation){.kind = WEIR_PUT_EDGE, .direction = WEIR_IN, .vertex = to, .neighbor = from});
    return epoch_end_row(f, last);
}

static weir_err epoch_feed_all(const epoch_world *world, weir_graph *graph) {
    epoch_feed f = {.world = world, .graph = graph};
    weir_rng rng = weir_rng_stream(RNG_EDGES, world->vertices, 0);
    weir_err err = weir_graph_source(graph, "epoch", 1, &f.source);
    weir_batch_begin(&f.batch);
    for (uint64_t n = 0; !err && n < world->vertices; n++)
        err = epoch_put_vertex(&f, n);
    for (uint64_t n = 0; !err && n < world->edges; n++)
        err = epoch_put_edge(&f, &rng, n + 1 == world->edges);
    if (!err) err = weir_graph_drain(graph);
    if (!err) err = weir_graph_seal(graph);
    weir_buf_free(&f.batch);
    return err;
}

/* --- features and masks ------------------------------------------------------------------------------------------- */

/* One line a vertex: numbers from -1 to 1, the first of them shifted by the class. */
static weir_err epoch_lay_features(const epoch_world *world, weir_snapshot_draft *draft) {
    uint64_t count;
    const weir_vertex_pair *ids = weir_snapshot_draft_ids(draft, 0, &count);
    float *x = weir_calloc(count * world->features + 1, sizeof *x);
    if (!x) return WEIR_NOMEM("for the features of the bench's graph");
    for (uint64_t v = 0; v < count; v++) {
        weir_rng rng = weir_rng_stream(RNG_FEATURES, ids[v].low, 0);
        for (uint64_t i = 0; i < world->features; i++)
            x[v * world->features + i] = (float)weir_rng_u32(&rng) * 0x1p-31f - 1;
        x[v * world->features] += epoch_is_right(ids[v].low) ? LEARNABLE : -LEARNABLE;
    }
    weir_err err = weir_snapshot_draft_matrix(draft, 0, "x", x, world->features);
    weir_free(x);
    return err;
}

/* Vertices lie in the order of their ids, which are hashes: those at equal distances are a random choice. */
static weir_err epoch_lay_mask(const epoch_world *world, weir_snapshot_draft *draft, const char *name, uint64_t first,
                               uint64_t wanted) {
    uint64_t count, stride = world->vertices / world->targets;
    weir_snapshot_draft_ids(draft, 0, &count);
    uint8_t *mask = weir_calloc(count + 1, 1);
    if (!mask) return WEIR_NOMEM("for the masks of the bench's graph");
    for (uint64_t i = 0; i < wanted && first + i * stride < count; i++)
        mask[first + i * stride] = 1;
    weir_err err = weir_snapshot_draft_mask(draft, 0, name, mask);
    weir_free(mask);
    return err;
}

static weir_err epoch_extend(void *context, weir_snapshot_draft *draft) {
    const epoch_world *world = context;
    weir_err err = epoch_lay_features(world, draft);
    if (!err) err = epoch_lay_mask(world, draft, "train", 0, world->targets);
    if (!err) err = epoch_lay_mask(world, draft, "validation", 1, EPOCH_JUDGED);
    if (!err) err = epoch_lay_mask(world, draft, "test", 2, EPOCH_JUDGED);
    return err;
}

/* --- the snapshot ------------------------------------------------------------------------------------------------- */

/* A snapshot: vertices "node" with a matrix "x", of which two classes of targets (label "side", masks "train",
 * "validation" and "test") can be learnt, and relation "edge", whose list of a vertex is what it looks at. Edges begin
 * anywhere; few vertices are the end of many. */
static weir_err world_make(const epoch_world *world, const char *out) {
    const weir_graph_opts opts = {
        .shards = 1, .memory_bytes = (uint64_t)1 << 30, .create = true, .id_key = &weir_id_key_public};
    epoch_world extended = *world;
    const weir_snapshot_build_opts build = {
        .out = out, .as_of_us = WEIR_BEFORE_ALL, .extend = epoch_extend, .context = &extended};
    char folder[PATH_MAX];
    weir_snapshot_stats stats;
    weir_schema *schema = NULL;
    weir_graph *graph = NULL;
    if (snprintf(folder, sizeof folder, "%s.store", out) >= (int)sizeof folder)
        return WEIR_ERR(WEIR_ELIMIT, "the path of the bench's graph is too long; name a shorter one");
    weir_err err = weir_schema_parse("bench", schema_text, strlen(schema_text), &schema);
    if (!err) err = weir_graph_open(folder, schema, &opts, &graph);
    if (!err) err = epoch_feed_all(world, graph);
    if (!err) err = weir_snapshot_build(graph, &build, &stats);
    if (graph) weir_err_keep(&err, weir_graph_close(graph));
    if (weir_path_exists(folder)) weir_err_keep(&err, weir_folder_remove(folder));
    weir_schema_free(schema);
    return err;
}

uint64_t weir_epoch_world_sum(const weir_snapshot *snapshot) {
    const weir_snapshot_edges *edges = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, 0);
    uint64_t sum = 0;
    for (uint64_t vertex = 0; vertex < edges->vertices; vertex++)
        for (int64_t e = edges->indptr[vertex]; e < edges->indptr[vertex + 1]; e++)
            sum += (SUM_FACTOR * (vertex + 1)) ^ (uint64_t)edges->neighbors[e];
    for (uint32_t i = 0; i < v->extra_count; i++) {
        for (uint64_t n = 0; n < v->count * v->extras[i].columns; n++) {
            uint32_t bits;
            memcpy(&bits, &v->extras[i].matrix[n], sizeof bits);
            sum += bits * SUM_FACTOR;
        }
    }
    return sum;
}

weir_err weir_epoch_world_read(const weir_cli *cli, epoch_world *world) {
    const bool quick = weir_bench_quick(cli);
    uint64_t batch = quick ? 32 : 1024;
    *world = quick ? (epoch_world){2000, 20000, 10, 128, 0} : (epoch_world){1000000, 25000000, 100, 20480, 0};
    weir_err err = weir_cli_u64(cli, "vertices", 1000, 100000000, &world->vertices);
    if (!err) err = weir_cli_u64(cli, "edges", 1000, 2000000000, &world->edges);
    if (!err) err = weir_cli_u64(cli, "features", 1, 1024, &world->features);
    if (!err) err = weir_cli_u64(cli, "targets", 20, 10000000, &world->targets);
    if (!err) err = weir_cli_u64(cli, "batch", 1, WEIR_SAMPLE_TARGETS_MAX, &batch);
    world->batch = (uint32_t)batch;
    const uint64_t share = world->vertices / world->targets;
    if (!err && (share < 4 || world->vertices / EPOCH_JUDGED < share))
        err = WEIR_ERR(WEIR_EUSAGE, "--targets is at least %u, and at most a quarter of --vertices", EPOCH_JUDGED);
    return err;
}

static weir_err world_count_targets(epoch_world *world, const weir_snapshot *snapshot) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, 0);
    const uint8_t *mask = NULL;
    for (uint32_t i = 0; i < v->extra_count; i++)
        if (strcmp(v->extras[i].name, "train") == 0) mask = v->extras[i].mask;
    if (!mask) return WEIR_ERR(WEIR_EDATA, "the bench's graph lacks its mask of targets; name a new folder");
    world->targets = 0;
    for (uint64_t n = 0; n < v->count; n++)
        world->targets += mask[n];
    return WEIR_OK;
}

weir_err weir_epoch_world_open(const weir_cli *cli, weir_comm *comm, epoch_world *world, weir_snapshot **snapshotp) {
    const weir_snapshot_opts opts = {.load = true};
    const char *folder = weir_cli_text(cli, "graph");
    char path[PATH_MAX];
    weir_err err = WEIR_OK;
    if (!folder) err = weir_bench_folder(&folder);
    if (!err) err = weir_path_join(path, sizeof path, folder, "snapshot");
    if (!err && weir_comm_rank(comm) == 0 && !weir_path_exists(path)) {
        err = weir_folder_create(folder);
        if (!err) err = world_make(world, path);
    }
    err = weir_comm_fail(comm, err);
    if (!err) weir_comm_broadcast(comm, path, sizeof path);
    if (!err) err = weir_snapshot_open(path, &opts, snapshotp);
    if (err) return err;
    const weir_snapshot_edges *e = weir_snapshot_edges_of(*snapshotp, 0, WEIR_OUT);
    if (e->vertices != world->vertices || e->edges != world->edges)
        return WEIR_ERR(WEIR_EUSAGE,
                        "%s has %" PRIu64 " vertices and %" PRIu64 " edges, but other numbers are wanted; name a "
                        "folder that is not there yet",
                        path, e->vertices, e->edges);
    return world_count_targets(world, *snapshotp);
}
