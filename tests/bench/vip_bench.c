/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vip_bench.c - rows of other ranks that the ranks of a training have to ask for: by what they keep, and how much of
 * it.
 *
 * On graphs where it matters: few edges are cut, and a part's batches read some vertices of others far more often than
 * the rest (on a random graph every policy is as good as any). One process takes the parts one after the other, samples
 * some epochs of each, and then counts for each policy what is not among the rows that it would keep. What is kept from
 * the beginning is not counted as asked for, as a training asks for it once.
 *
 * Two lines show what is left to win: `oracle` keeps from the beginning what is read most often in the very epochs that
 * are counted; `ahead` changes what it keeps after each batch, by what is read next, and sees as far as the last batch,
 * where a training sees some batches. `simulated` draws other epochs than those that are counted.
 *
 * Of a part's own rows, `first` are those that the first share of its numbers would serve, as a device would keep them.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "cache.h"
#include "vip_bench.h"

#define VIP_HOPS          3u
#define VIP_BATCH         256u
#define VIP_EPOCHS        5u
#define VIP_EPOCH_SEED    7u
#define VIP_QUICK         4000u
#define VIP_QUICK_BATCH   16u
#define VIP_STEPS_MAX     8u
#define VIP_SHARES        7u
#define VIP_SHOWN_SHARE   4u /* whose saving is printed beside the rows */
#define VIP_NO_MEMORY     "for the weights of the bench's vertices"
#define VIP_LINE_OF_EMPTY "           "

static const double vip_shares[VIP_SHARES] = {0, 0.01, 0.05, 0.1, 0.2, 0.5, 1};
static const uint32_t vip_fanouts[VIP_HOPS] = {15, 10, 5};

typedef enum vip_line {
    VIP_VIP,
    VIP_SIMULATED,
    VIP_PATHS,
    VIP_DEGREE,
    VIP_HALO,
    VIP_ORACLE,
    VIP_AHEAD,
    VIP_LINES
} vip_line;

static const char *const vip_line_names[VIP_LINES] = {"vip", "simulated", "paths", "degree", "halo", "oracle", "ahead"};
static const weir_train_cached vip_policies[] = {WEIR_TRAIN_CACHED_VIP, WEIR_TRAIN_CACHED_SIMULATED,
                                                 WEIR_TRAIN_CACHED_PATHS, WEIR_TRAIN_CACHED_DEGREE,
                                                 WEIR_TRAIN_CACHED_HALO};

typedef struct vip_opts {
    uint32_t batch, epochs, window;
    bool quick, json;
} vip_opts;

/* Of all parts of one cut, an epoch. */
typedef struct vip_table {
    uint64_t edges; /* both ways */
    double cut_share;
    double rows, remote, predicted, first[VIP_SHARES];
    double asked[VIP_LINES][VIP_SHARES];
} vip_table;

/* One part at a time. */
typedef struct vip_run {
    const vip_opts *opts;
    const vip_ring *ring;
    const weir_nn_shape *shape;
    weir_part *part;
    weir_target *targets; /* of the part, to learn from */
    uint16_t *owners;     /* of targets */
    uint32_t count;
    vip_reads reads;
    vip_table *table;
} vip_run;

/* --- the network's steps ------------------------------------------------------------------------------------------ */

static weir_err vip_shape_open(const weir_snapshot *snapshot, uint32_t window, weir_nn_shape **shapep) {
    const weir_train_reach reach = {.fanouts = vip_fanouts, .layers = VIP_HOPS, .out_only = true};
    const bool timeless[] = {true};
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    weir_sample_step steps[VIP_STEPS_MAX];
    weir_nn_opts opts = {.steps = steps, .window = window};
    opts.step_count = weir_train_steps(schema, 0, &reach, timeless, steps, VIP_STEPS_MAX);
    return weir_nn_shape_open(schema, &opts, shapep);
}

/* --- a part ------------------------------------------------------------------------------------------------------- */

static weir_err vip_find_targets(vip_run *run) {
    const weir_snapshot *snapshot = weir_part_snapshot(run->part);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, 0);
    const uint8_t *mask = NULL;
    for (uint32_t i = 0; i < v->extra_count; i++)
        if (strcmp(v->extras[i].name, "train") == 0) mask = v->extras[i].mask;
    if (!mask) return WEIR_ERR(WEIR_EDATA, "a part of the bench's ring lacks its mask");
    run->count = 0;
    run->targets = weir_calloc(v->own + 1, sizeof *run->targets);
    run->owners = weir_calloc(v->own + 1, sizeof *run->owners);
    if (!run->targets || !run->owners) return WEIR_NOMEM(VIP_NO_MEMORY);
    for (uint64_t place = 0; place < v->own; place++) {
        if (!mask[place]) continue;
        run->owners[run->count] = (uint16_t)weir_part_index(run->part);
        run->targets[run->count++] = (weir_target){place, weir_snapshot_as_of_us(snapshot), 0, 0};
    }
    return run->count ? WEIR_OK : WEIR_ERR(WEIR_EDATA, "a part of the bench's ring has nothing to learn from");
}

/* Of an epoch that is not counted. */
static uint64_t vip_draw(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp) {
    const vip_run *run = context;
    weir_rng rng = weir_rng_stream(VIP_EPOCH_SEED, epoch, 1);
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t other = weir_rng_below(&rng, i + 1);
        list[i] = list[other];
        list[other] = (uint32_t)i;
    }
    *seedp = weir_rng_u64(&rng);
    return run->count;
}

/* Of all vertices that the part has. Its own targets stand for those of all ranks, and its batches for its share of
 * theirs: a training of ranks that have equally many comes to the same chances. */
static weir_err vip_weigh(const vip_run *run, weir_train_cached policy, uint32_t batch, double **weightsp) {
    const weir_targets targets = {.count = run->count,
                                  .ends = {run->count, run->count, run->count},
                                  .held = run->count,
                                  .targets = run->targets,
                                  .owners = run->owners,
                                  .owner_bytes = sizeof *run->owners};
    const weir_train_cache_opts opts = {
        .shape = run->shape,
        .owners = {weir_part_snapshot(run->part), run->part, weir_part_index(run->part), run->ring->parts},
        .targets = &targets,
        .batch = batch,
        .policy = policy,
        .draw = vip_draw,
        .context = run};
    *weightsp = NULL;
    return weir_train_weigh(&opts, weightsp);
}

typedef struct vip_candidate {
    double weight;
    uint64_t id;
    uint32_t foreign;
} vip_candidate;

/* In the order of a training's cache: equal ones by id. */
static int vip_by_weight(const void *a, const void *b) {
    const vip_candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* weights: of the vertices of others. */
static weir_err vip_count_asked(const vip_run *run, const double *weights, vip_line line) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(weir_part_snapshot(run->part), 0);
    const vip_reads *reads = &run->reads;
    vip_candidate *candidates = weir_calloc((size_t)reads->foreign + 1, sizeof *candidates);
    uint32_t count = 0;
    if (!candidates) return WEIR_NOMEM(VIP_NO_MEMORY);
    for (uint32_t i = 0; i < reads->foreign; i++)
        if (weights[i] > 0) candidates[count++] = (vip_candidate){weights[i], v->ids[v->own + i].low, i};
    qsort(candidates, count, sizeof *candidates, vip_by_weight);
    for (uint32_t s = 0; s < VIP_SHARES; s++) {
        uint64_t most = (uint64_t)(vip_shares[s] * (double)run->ring->vertices / run->ring->parts);
        double asked = (double)reads->count;
        for (uint32_t i = 0; i < count && i < most; i++)
            asked -= reads->times[candidates[i].foreign];
        run->table->asked[line][s] += asked / run->opts->epochs;
    }
    weir_free(candidates);
    return WEIR_OK;
}

static weir_err vip_count_policy(const vip_run *run, vip_line line) {
    double *weights;
    weir_err err = vip_weigh(run, vip_policies[line], run->opts->batch, &weights);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(weir_part_snapshot(run->part), 0);
    if (!err) err = vip_count_asked(run, weights + v->own, line);
    weir_free(weights);
    return err;
}

/* What the weights say of an epoch: so many whole batches, and the rest of the targets as a smaller one. */
static weir_err vip_predict(const vip_run *run) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(weir_part_snapshot(run->part), 0);
    const uint32_t sizes[2] = {run->opts->batch, (uint32_t)(run->count % run->opts->batch)};
    const uint64_t batches[2] = {run->count / run->opts->batch, 1};
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < 2; i++) {
        double *weights;
        if (!sizes[i]) continue;
        err = vip_weigh(run, WEIR_TRAIN_CACHED_VIP, sizes[i], &weights);
        for (uint32_t f = 0; !err && f < run->reads.foreign; f++)
            run->table->predicted += (double)batches[i] * weights[v->own + f];
        weir_free(weights);
    }
    return err;
}

static void vip_count_first(const vip_run *run) {
    uint64_t own = weir_snapshot_vertices_of(weir_part_snapshot(run->part), 0)->own;
    for (uint32_t s = 0; s < VIP_SHARES; s++)
        for (uint64_t place = 0; place < (uint64_t)(vip_shares[s] * (double)own); place++)
            run->table->first[s] += run->reads.own[place] / run->opts->epochs;
}

static weir_err vip_count_ahead(const vip_run *run) {
    weir_err err = WEIR_OK;
    for (uint32_t s = 0; !err && s < VIP_SHARES; s++) {
        uint64_t asked, most = (uint64_t)(vip_shares[s] * (double)run->ring->vertices / run->ring->parts);
        err = weir_vip_reads_ahead(&run->reads, most, &asked);
        run->table->asked[VIP_AHEAD][s] += (double)asked / run->opts->epochs;
    }
    return err;
}

static weir_err vip_run_part(vip_run *run, const char *folder) {
    weir_err err = weir_part_open(folder, &(weir_part_opts){0}, &run->part);
    if (!err) err = vip_find_targets(run);
    const vip_sampling sampling = {run->shape, run->targets, run->count, run->opts->batch, run->opts->epochs};
    if (!err) err = weir_vip_reads_make(run->part, &sampling, &run->reads);
    run->table->rows += (double)run->reads.rows / run->opts->epochs;
    run->table->remote += (double)run->reads.count / run->opts->epochs;
    if (!err) err = vip_predict(run);
    for (vip_line line = 0; !err && line < sizeof vip_policies / sizeof vip_policies[0]; line++)
        err = vip_count_policy(run, line);
    if (!err) err = vip_count_asked(run, run->reads.times, VIP_ORACLE);
    if (!err) err = vip_count_ahead(run);
    if (!err) vip_count_first(run);
    weir_vip_reads_free(&run->reads);
    weir_free(run->targets);
    weir_free(run->owners);
    run->targets = NULL;
    run->owners = NULL;
    weir_part_close(run->part);
    run->part = NULL;
    return err;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static const char *const vip_cut_names[VIP_CUTS] = {"metis", "arcs"};

static void vip_print_table(const vip_opts *o, const vip_ring *ring, vip_cut cut, const vip_table *t, weir_buf *out) {
    weir_buf_printf(out,
                    "vip        %s: %" PRIu64 " vertices, %" PRIu64 " edges both ways, %u parts by %s, "
                    "%.1f %% of the edges cut; %.0f %% train, batches of %u, window %u\n",
                    ring->name, ring->vertices, t->edges, ring->parts, vip_cut_names[cut], 100 * t->cut_share,
                    100 * ring->train, o->batch, o->window ? o->window : WEIR_SAMPLE_WINDOW);
    weir_buf_printf(out,
                    VIP_LINE_OF_EMPTY "rows an epoch %.0f, of other ranks %.0f (%.1f %%); VIP foretells %.3f times as "
                                      "many\n",
                    t->rows, t->remote, 100 * t->remote / t->rows, t->predicted / t->remote);
    weir_buf_text(out, VIP_LINE_OF_EMPTY "kept     ");
    for (uint32_t s = 0; s < VIP_SHARES; s++)
        weir_buf_printf(out, " %9.2f", vip_shares[s]);
    weir_buf_printf(out, "    saved at %.2f\n", vip_shares[VIP_SHOWN_SHARE]);
    for (vip_line line = 0; line < VIP_LINES; line++) {
        weir_buf_printf(out, VIP_LINE_OF_EMPTY "%-9s", vip_line_names[line]);
        for (uint32_t s = 0; s < VIP_SHARES; s++)
            weir_buf_printf(out, " %9.0f", t->asked[line][s]);
        weir_buf_printf(out, "  %12.1f %%\n", 100 * (1 - t->asked[line][VIP_SHOWN_SHARE] / t->remote));
    }
    weir_buf_text(out, VIP_LINE_OF_EMPTY "first   ");
    for (uint32_t s = 0; s < VIP_SHARES; s++)
        weir_buf_printf(out, " %7.1f %%", 100 * t->first[s] / (t->rows - t->remote));
    weir_buf_text(out, "    of own rows\n");
}

static void vip_print_json(const vip_opts *o, const vip_ring *ring, vip_cut cut, const vip_table *t, weir_buf *out) {
    for (uint32_t at = 0; at < VIP_LINES * VIP_SHARES; at++) {
        weir_buf_printf(out,
                        "{\"bench\":\"vip\",\"graph\":\"%s\",\"edges\":%" PRIu64 ",\"cut\":\"%s\","
                        "\"cut_share\":%.6g,\"batch\":%u,",
                        ring->name, t->edges, vip_cut_names[cut], t->cut_share, o->batch);
        weir_buf_printf(out, "\"rows\":%.6g,\"remote\":%.9g,\"predicted\":%.9g,", t->rows, t->remote, t->predicted);
        weir_buf_printf(out, "\"policy\":\"%s\",\"share\":%g,\"asked\":%.9g}\n", vip_line_names[at / VIP_SHARES],
                        vip_shares[at % VIP_SHARES], t->asked[at / VIP_SHARES][at % VIP_SHARES]);
    }
}

static weir_err vip_print(const vip_opts *o, const vip_ring *ring, vip_cut cut, const vip_table *t) {
    weir_buf out = {0};
    if (o->json)
        vip_print_json(o, ring, cut, t, &out);
    else
        vip_print_table(o, ring, cut, t, &out);
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- a graph ------------------------------------------------------------------------------------------------------ */

static weir_err vip_run_cut(const vip_opts *o, const vip_ring *ring, const weir_snapshot *snapshot, vip_cut cut,
                            const char *folder) {
    char out[PATH_MAX], name[32], path[PATH_MAX];
    weir_nn_shape *shape = NULL;
    vip_table table = {.edges = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT)->edges};
    weir_err err = weir_path_join(out, sizeof out, folder, vip_cut_names[cut]);
    if (!err) err = weir_vip_ring_cut(snapshot, ring, cut, out, &table.cut_share);
    if (!err) err = vip_shape_open(snapshot, o->window, &shape);
    vip_run run = {.opts = o, .ring = ring, .shape = shape, .table = &table};
    for (uint32_t part = 0; !err && part < ring->parts; part++) {
        snprintf(name, sizeof name, "part-%u", part);
        err = weir_path_join(path, sizeof path, out, name);
        if (!err) err = vip_run_part(&run, path);
    }
    weir_nn_shape_free(shape);
    return err ? err : vip_print(o, ring, cut, &table);
}

static weir_err vip_run_ring(const vip_opts *o, const vip_ring *ring) {
    const char *folder;
    weir_snapshot *snapshot = NULL;
    weir_err err = weir_bench_folder(&folder);
    if (!err) err = weir_vip_ring_make(ring, folder, &snapshot);
    for (vip_cut cut = 0; !err && cut < VIP_CUTS; cut++)
        err = vip_run_cut(o, ring, snapshot, cut, folder);
    weir_snapshot_close(snapshot);
    weir_bench_folder_remove(&err);
    return err;
}

static weir_err vip_command(weir_cli *cli) {
    vip_ring rings[] = {{"far", 100000, 4, 0.02, 1.6, 30, 0.08, 0}, {"near", 100000, 8, 0, 1.8, 30, 0.02, 0}};
    vip_opts o = {.quick = weir_bench_quick(cli), .json = weir_cli_given(cli, "json")};
    uint64_t seed = VIP_RING_SEED, batch = o.quick ? VIP_QUICK_BATCH : VIP_BATCH, epochs = o.quick ? 1 : VIP_EPOCHS,
             window = 0;
    weir_err err = weir_cli_u64(cli, "batch", 1, WEIR_SAMPLE_TARGETS_MAX, &batch);
    if (!err) err = weir_cli_u64(cli, "epochs", 1, 1000, &epochs);
    if (!err) err = weir_cli_u64(cli, "window", 1, WEIR_SAMPLE_WINDOW_MAX - 1, &window);
    if (!err) err = weir_cli_u64(cli, "seed", 0, INT64_MAX, &seed);
    o.batch = (uint32_t)batch;
    o.epochs = (uint32_t)epochs;
    o.window = (uint32_t)window;
    for (size_t i = 0; !err && i < sizeof rings / sizeof rings[0]; i++) {
        rings[i].seed = seed;
        if (o.quick) rings[i].vertices = VIP_QUICK;
        err = vip_run_ring(&o, &rings[i]);
    }
    return err;
}

static const weir_option options[] = {
    {"batch", 'b', "N", "targets of a batch of each part (default 256; quick: 16)", NULL},
    {"epochs", 'e', "N", "how many are counted (default 5; quick: 1)", NULL},
    {"window", 'w', "N", "edges of a vertex that are drawn from (default: as a training)", NULL},
    {"seed", 's', "N", "of the graphs (default 1234567: those of published figures)", NULL},
    {"quick", 'q', NULL, "small graphs", NULL},
    {"json", 'j', NULL, "one JSON object a figure", NULL},
    {0},
};

extern const weir_command weir_bench_vip;
const weir_command weir_bench_vip = {
    .name = "vip",
    .summary = "rows of other ranks that a training asks for, by cache policy and share",
    .description =
        "Cuts two graphs on a ring, by METIS and into arcs, and samples epochs of each part: 15, 10 and 5 "
        "edges, three hops. kept: rows of others by the vertices that a part owns on average; below, rows an epoch "
        "that are asked for, of all parts. oracle: the best that can be kept from the beginning; ahead: the best if "
        "what is kept changes after each batch, beginning with nothing.",
    .example = "weir bench vip --window 65535",
    .options = options,
    .run = vip_command,
};
