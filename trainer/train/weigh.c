/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.c - how much a rank's batches read each vertex: by the chance that a target is in a batch, and from there
 * outwards as the sampler draws (reads.h); or by what the lists here name.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/reads.h>

#include "cache.h"

#define WEIGH_NO_MEMORY "for weighing the vertices of a part"

static double *weigh_array(const weir_snapshot *snapshot, uint32_t type) {
    return weir_calloc(weir_snapshot_vertices_of(snapshot, type)->count + 1, sizeof(double));
}

/* The chance of each training target of this rank to be in a batch. Of class 0 an epoch takes some only: as in
 * weir_training_list_epoch. */
static void weigh_targets(const weir_train_cache_opts *o, double **chances) {
    const weir_targets *t = o->targets;
    uint64_t count = t->ends[WEIR_TARGETS_TRAIN], zeros = o->negatives ? t->class_counts[0] : 0;
    double wanted = (double)o->negatives * (double)(count - zeros);
    double keep = zeros == 0 || wanted >= (double)zeros ? 1 : wanted / (double)zeros;
    double chance = fmin(1, (double)o->batch / ((double)(count - zeros) + keep * (double)zeros));
    for (uint32_t place = 0; place < t->held; place++) {
        uint64_t target = weir_targets_number(t, place);
        if (target < count && weir_train_target_owner(&o->owners, t, target) == o->owners.rank)
            chances[t->targets[place].type][(uint64_t)t->targets[place].vertex] =
                chance * (zeros && t->classes_of[target] == 0 ? keep : 1);
    }
}

/* How often the lists that are here name a vertex; or only whether lists of own vertices do. */
static void weigh_names(const weir_train_cache_opts *o, double **weights) {
    const weir_snapshot *snapshot = o->owners.snapshot;
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    bool halo = o->policy == WEIR_TRAIN_CACHED_HALO;
    for (uint32_t i = 0; i < 2 * weir_schema_relation_count(schema); i++) {
        const weir_schema_relation *r = weir_schema_relation_at(schema, i / 2);
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, i / 2, i % 2);
        uint32_t from = i % 2 == WEIR_OUT ? r->from : r->to, to = i % 2 == WEIR_OUT ? r->to : r->from;
        uint64_t others = weir_snapshot_vertices_of(snapshot, to)->count;
        for (uint64_t v = 0; v < e->vertices; v++) {
            if (halo && weir_train_owner(&o->owners, from, v) != o->owners.rank) continue;
            for (int64_t at = e->indptr[v]; at >= 0 && at < e->indptr[v + 1] && at < (int64_t)e->edges; at++) {
                uint64_t other = (uint64_t)e->neighbors[at];
                if (other < others) weights[to][other] = halo ? 1 : weights[to][other] + 1;
            }
        }
    }
}

weir_err weir_train_weigh(const weir_train_cache_opts *opts, double **weights) {
    bool vip = opts->policy == WEIR_TRAIN_CACHED_VIP, walks = opts->policy == WEIR_TRAIN_CACHED_PATHS;
    weir_sample_reads reads = {
        .snapshot = opts->owners.snapshot, .window = weir_nn_window(opts->shape), .walks = walks};
    uint32_t types = weir_nn_types(opts->shape);
    double **chances = weir_calloc(types, sizeof *chances);
    bool all = chances != NULL;
    reads.steps = weir_nn_steps(opts->shape, &reads.step_count);
    for (uint32_t type = 0; type < types; type++) {
        weights[type] = weigh_array(opts->owners.snapshot, type);
        if (all) chances[type] = weigh_array(opts->owners.snapshot, type);
        all = all && weights[type] && chances[type];
    }
    weir_err err = all ? WEIR_OK : WEIR_NOMEM(WEIGH_NO_MEMORY);
    if (!err && (vip || walks)) {
        weigh_targets(opts, chances);
        err = weir_sample_reads_add(&reads, chances, weights);
    } else if (!err && opts->policy == WEIR_TRAIN_CACHED_SIMULATED) {
        err = weir_train_simulate(opts, weights);
    } else if (!err) {
        weigh_names(opts, weights);
    }
    /* Unless no hop reaches it. */
    for (uint32_t type = 0; !err && vip && type < types; type++)
        for (uint64_t v = 0; v < weir_snapshot_vertices_of(opts->owners.snapshot, type)->count; v++)
            weights[type][v] = -expm1(weights[type][v]);
    for (uint32_t type = 0; chances && type < types; type++)
        weir_free(chances[type]);
    weir_free(chances);
    return err;
}
