/* SPDX-License-Identifier: Apache-2.0 */
/* training.c - a training from its options to the parameters that judged best. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/log.h>
#include <weir/trainer/boost/boost.h>

#include "training_private.h"

#define TRAINING_NO_MEMORY "while training; lower --batch, --hidden or the fan-outs"

weir_train_opts weir_train_defaults(void) {
    static const uint32_t fanouts[] = {10, 10};
    return (weir_train_opts){
        .reach = {.fanouts = fanouts, .layers = 2},
        .hidden = 64,
        .epochs = 100, /* patience ends it, not this */
        .batch = 512,
        .ahead = WEIR_BATCHES_AHEAD,
        .patience = 5,
        .negatives = 50,
        .alerts = 50,
        .rate = 3e-3,
        .decay = 1e-2,
        .dropout = 0.2,
        .norm_max = 5,
        .unknown = 0.1,
        .cut = {.warm_up = 0.15, .validation = 0.15, .test = 0.15},
        .seed = 1,
        .sample_seed = 1,
        .resident = -1,
    };
}

static weir_err training_check_range(const char *name, double value, double least, double most) {
    if (value >= least && value <= most) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "%s is %g; it must be %g to %g", name, value, least, most);
}

static weir_err training_check_opts(const weir_train_opts *o) {
    weir_err err = training_check_range("layers", o->reach.layers, 1, WEIR_SAMPLE_HOPS_MAX);
    for (uint32_t i = 0; !err && i < o->reach.layers; i++) {
        err = training_check_range("a fan-out", o->reach.fanouts[i], 1, WEIR_TRAIN_FANOUT_MAX);
        for (uint32_t a = 0; !err && a < o->reach.along_count; a++)
            if (o->reach.alongs[a].fanouts)
                err = training_check_range("a fan-out", o->reach.alongs[a].fanouts[i], 0, WEIR_TRAIN_FANOUT_MAX);
    }
    if (!err) err = training_check_range("hidden", o->hidden, 1, WEIR_NN_HIDDEN_MAX);
    if (!err) err = training_check_range("epochs", o->epochs, 1, 100000);
    if (!err) err = training_check_range("batch", o->batch, 1, WEIR_SAMPLE_TARGETS_MAX);
    if (!err) err = training_check_range("ahead", o->ahead, 1, WEIR_TRAIN_AHEAD_MAX);
    if (!err) err = training_check_range("alerts", o->alerts, 1, 1000000);
    if (!err) err = training_check_range("rate", o->rate, 1e-9, 10);
    if (!err) err = training_check_range("the rate's share at the end", o->rate_end, 0, 1);
    if (!err) err = training_check_range("decay", o->decay, 0, 10);
    if (!err) err = training_check_range("l2", o->l2, 0, 10);
    if (!err) err = training_check_range("dropout", o->dropout, 0, 0.95);
    if (!err) err = training_check_range("input dropout", o->input_dropout, 0, 0.99);
    if (!err) err = training_check_range("attention dropout", o->attention_dropout, 0, 0.95);
    if (!err) err = training_check_range("edge dropout", o->edge_dropout, 0, 0.95);
    if (!err) err = training_check_range("the share of the average", o->average, 0, 0.999);
    if (!err) err = training_check_range("unknown", o->unknown, 0, 0.99);
    if (!err && o->embedding_rate > 0) err = training_check_range("embedding rate", o->embedding_rate, 1e-9, 10);
    if (!err) err = training_check_range("focal", o->focal, 0, 10);
    if (!err) err = training_check_range("positive weight", o->positive_weight, 0, 1e6);
    if (!err && o->headless && o->reach.layers == 1)
        err = WEIR_ERR(WEIR_EINVAL, "a network of one layer and no head has no embeddings; take two layers, or a head");
    if (!err && o->headless && o->jump)
        err = WEIR_ERR(WEIR_EINVAL, "what a jump makes is for a head, and there is none; omit one of them");
    return err;
}

weir_train_owners weir_training_owners(const weir_trained *t) {
    return (weir_train_owners){t->opts.snapshot, t->opts.part, weir_comm_rank(t->comm), weir_comm_ranks(t->comm)};
}

/* --- set up ------------------------------------------------------------------------------------------------------- */

/* All that the snapshot has: only an import has any, and whoever makes it can leave out a matrix. */
static weir_err training_find_matrices(const weir_trained *t, weir_nn_matrix_of **matricesp, uint32_t *countp) {
    uint32_t types = weir_schema_vertex_count(weir_snapshot_schema(t->opts.snapshot)), count = 0;
    for (uint32_t type = 0; type < types; type++)
        count += weir_snapshot_vertices_of(t->opts.snapshot, type)->extra_count;
    weir_nn_matrix_of *matrices = weir_calloc(count + 1, sizeof *matrices);
    *matricesp = matrices;
    *countp = 0;
    if (!matrices) return WEIR_NOMEM(TRAINING_NO_MEMORY);
    for (uint32_t type = 0; type < types; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(t->opts.snapshot, type);
        for (uint32_t i = 0; i < v->extra_count; i++) {
            if (!v->extras[i].columns) continue; /* a mask */
            if (v->extras[i].columns > WEIR_NN_COLUMNS_MAX)
                return WEIR_ERR(WEIR_ELIMIT, "matrix '%s' has %llu columns; a network reads at most %u",
                                v->extras[i].name, (unsigned long long)v->extras[i].columns, WEIR_NN_COLUMNS_MAX);
            const weir_nn_matrix matrix = {v->extras[i].name, (uint32_t)v->extras[i].columns, t->opts.unit_rows, 0};
            WEIR_ASSERT(*countp < count);
            matrices[(*countp)++] = (weir_nn_matrix_of){type, matrix};
        }
    }
    return WEIR_OK;
}

static int training_by_id(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* All vertices of the type that the snapshot has, on every rank: with parts, each tells the others its own. */
static weir_err training_find_known(const weir_trained *t, uint32_t type, weir_buf *ids, weir_nn_known *known) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(t->opts.snapshot, type);
    uint32_t ranks = weir_comm_ranks(t->comm);
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_buf own = {0}, *to = t->opts.part ? &own : ids;
    for (uint64_t i = 0; i < v->own; i++)
        weir_buf_append(to, &v->ids[i].low, sizeof v->ids[i].low);
    weir_err err = lengths ? weir_buf_err(to) : WEIR_NOMEM(TRAINING_NO_MEMORY);
    if (!err && t->opts.part) err = weir_comm_gather(t->comm, own.bytes, own.length, ids, lengths);
    uint64_t *all = (uint64_t *)(void *)ids->bytes, count = ids->length / sizeof *all, once = 0;
    if (!err && count) qsort(all, count, sizeof *all, training_by_id);
    for (uint64_t i = 0; !err && i < count; i++) /* two of which the low halves agree are one: there is hardly a pair */
        if (once == 0 || all[i] != all[once - 1]) all[once++] = all[i];
    *known = (weir_nn_known){type, all, once};
    weir_free(lengths);
    weir_buf_free(&own);
    return err;
}

/* An import without times gives all edges one: the newest of a vertex are then those that come first by their hash. Of
 * a living graph, all have one of their own. With parts, no rank has seen all edges of a relation. */
static weir_err training_find_timeless(const weir_trained *t, bool timeless[WEIR_SCHEMA_RELATIONS_MAX]) {
    const weir_schema *schema = weir_snapshot_schema(t->opts.snapshot);
    uint32_t relations = weir_schema_relation_count(schema), ranks = weir_comm_ranks(t->comm);
    int64_t spans[WEIR_SCHEMA_RELATIONS_MAX][2];
    weir_buf all = {0};
    if (weir_schema_source_count(schema) > 0) return WEIR_OK;
    for (uint32_t r = 0; r < relations; r++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(t->opts.snapshot, r, WEIR_OUT);
        spans[r][0] = INT64_MAX;
        spans[r][1] = INT64_MIN;
        for (uint64_t i = 0; i < e->edges; i++) {
            if (e->times[i] < spans[r][0]) spans[r][0] = e->times[i];
            if (e->times[i] > spans[r][1]) spans[r][1] = e->times[i];
        }
    }
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM(TRAINING_NO_MEMORY);
    if (!err) err = weir_comm_gather(t->comm, spans, relations * sizeof spans[0], &all, lengths);
    for (uint32_t rank = 0; !err && rank < ranks; rank++) {
        if (lengths[rank] != relations * sizeof spans[0])
            err = WEIR_ERR(WEIR_EDATA, "rank %u has another schema; all ranks need the same snapshot", rank);
        for (uint32_t r = 0; !err && r < relations; r++) {
            int64_t span[2];
            memcpy(span, all.bytes + (rank * (size_t)relations + r) * sizeof span, sizeof span);
            if (span[0] < spans[r][0]) spans[r][0] = span[0];
            if (span[1] > spans[r][1]) spans[r][1] = span[1];
        }
    }
    for (uint32_t r = 0; r < relations; r++)
        timeless[r] = spans[r][0] >= spans[r][1];
    weir_free(lengths);
    weir_buf_free(&all);
    return err;
}

/* 0: as the shape has it. */
static uint32_t training_window(const weir_train_opts *o, const bool *timeless, const weir_sample_step *steps,
                                uint32_t count) {
    bool whole = o->window == 0;
    for (uint32_t s = 0; s < count; s++)
        whole = whole && timeless[steps[s].relation] &&
                (steps[s].strategy == WEIR_SAMPLE_UNIFORM || steps[s].strategy == WEIR_SAMPLE_WEIGHTED);
    return whole ? WEIR_SAMPLE_WINDOW_MAX : o->window;
}

static weir_err training_shape_open(weir_trained *t) {
    weir_train_opts *o = &t->opts;
    const weir_schema *schema = weir_snapshot_schema(o->snapshot);
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    if (o->model == WEIR_TRAIN_TREES && !o->reach.draws) { /* also where edges have no times that differ */
        o->reach.draws = true;
        o->reach.strategy = WEIR_SAMPLE_RECENT;
    }
    bool timeless[WEIR_SCHEMA_RELATIONS_MAX] = {false};
    weir_err err = training_find_timeless(t, timeless);
    if (err) return err;
    uint32_t count = weir_train_steps(schema, o->task, &o->reach, timeless, steps, WEIR_SAMPLE_STEPS_MAX);
    if (!count)
        return WEIR_ERR(WEIR_EINVAL, "no relation is followed from what the task is about; take a fan-out above 0");
    if (count > WEIR_SAMPLE_STEPS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%u layers over this schema need more than %u steps; take fewer layers",
                        o->reach.layers, WEIR_SAMPLE_STEPS_MAX);
    if (o->reach.along_count && !o->reach.out_only && steps[count - 1].hop != o->reach.layers)
        return WEIR_ERR(WEIR_EINVAL, "all fan-outs of layer %u are 0; give %u numbers to --fanouts",
                        steps[count - 1].hop + 1, steps[count - 1].hop);
    weir_nn_opts opts = {.task = o->task,
                         .hidden = o->hidden,
                         .steps = steps,
                         .step_count = count,
                         .window = training_window(o, timeless, steps, count),
                         .bare = o->bare,
                         .residual = o->residual,
                         .feed_forward = o->feed_forward,
                         .headless = o->headless,
                         .norm = o->norm,
                         .jump = o->jump,
                         .network = o->network,
                         .heads = o->heads};
    weir_nn_matrix_of *matrices = NULL;
    weir_nn_known *known = weir_calloc(o->embedded_count + 1, sizeof *known);
    weir_buf *ids = weir_calloc(o->embedded_count + 1, sizeof *ids);
    err = known && ids ? training_find_matrices(t, &matrices, &opts.matrix_count) : WEIR_NOMEM(TRAINING_NO_MEMORY);
    for (uint32_t i = 0; !err && i < o->embedded_count; i++)
        err = training_find_known(t, o->embedded[i], &ids[i], &known[i]);
    opts.matrices = matrices;
    opts.known = known;
    opts.known_count = o->embedded_count;
    if (!err) err = weir_nn_shape_open(schema, &opts, &t->shape);
    for (uint32_t i = 0; !err && i < o->embedded_count; i++)
        if (!weir_nn_sees(t->shape, o->embedded[i]))
            err = WEIR_ERR(WEIR_EINVAL,
                           "the network looks at no vertex of type '%s', so embeddings of them would not be learnt; "
                           "omit it, or take more layers",
                           weir_nn_vertex(t->shape, o->embedded[i])->name);
    for (uint32_t i = 0; ids && i < o->embedded_count; i++)
        weir_buf_free(&ids[i]);
    weir_free(ids);
    weir_free(known);
    weir_free(matrices);
    return err;
}

/* With several ranks, embeddings of vertices and of large categories are shared out among them. */
static weir_err training_networks_open(weir_trained *t) {
    const weir_kernels *k = t->opts.kernels ? t->opts.kernels : weir_kernels_cpu();
    const weir_train_owners owners = weir_training_owners(t);
    weir_err err = weir_nn_open(t->shape, k, &t->whole);
    if (!err && owners.ranks > 1) err = weir_train_shares_open(&owners, t->shape, t->comm, &t->shares);
    if (!err && t->shares) return weir_train_shares_network(t->shares, k, &t->nn);
    t->nn = t->whole;
    return err;
}

static double training_sum_squares(void *context, double squares) {
    const weir_trained *t = context;
    weir_comm_sum_doubles(t->comm, &squares, 1);
    return squares;
}

static void training_set_class_weights(weir_trained *t) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    double weights[WEIR_SCHEMA_LABEL_VALUES_MAX];
    WEIR_ASSERT(t->targets->classes <= WEIR_SCHEMA_LABEL_VALUES_MAX);
    for (uint32_t c = 0; c < t->targets->classes; c++)
        weights[c] = weir_training_class_weight(t, c);
    k->to_device(k, t->class_weights, weights, t->targets->classes * sizeof *weights);
}

static weir_err training_network_open(weir_trained *t) {
    const weir_adamw_opts opts = {.decay = t->opts.decay,
                                  .l2 = t->opts.l2,
                                  .norm_max = t->opts.norm_max,
                                  .adagrad = t->opts.adagrad,
                                  .row_rate = t->opts.embedding_rate,
                                  .sum = t->shares ? training_sum_squares : NULL,
                                  .context = t};
    weir_err err = WEIR_OK;
    const weir_kernels *k = weir_nn_kernels(t->nn);
    size_t bytes = weir_nn_parameter_count(t->nn) * sizeof(weir_real);
    size_t logits = (size_t)t->opts.batch * weir_nn_outputs(t->shape);
    size_t judged = (size_t)(t->targets->count - t->targets->ends[WEIR_TARGETS_TRAIN]);
    err = k->alloc(k, bytes, (void **)&t->params);
    if (!err) err = k->alloc(k, bytes, (void **)&t->best_params);
    if (!err && t->opts.average > 0) err = k->alloc(k, bytes, (void **)&t->average);
    if (t->average) k->zero(k, t->average, bytes);
    if (!err) err = k->alloc(k, bytes, (void **)&t->gradients);
    if (!err) k->zero(k, t->gradients, bytes);
    if (!err) err = weir_nn_rows_open(t->nn, &t->rows);
    t->logits = weir_calloc(logits, sizeof *t->logits);
    t->labels = weir_calloc(t->opts.batch, sizeof *t->labels);
    t->scores = weir_calloc(judged, sizeof *t->scores);
    if (!err && !(t->logits && t->labels && t->scores)) err = WEIR_NOMEM(TRAINING_NO_MEMORY);
    if (!err) err = k->alloc(k, logits * sizeof *t->dlogits, (void **)&t->dlogits);
    if (!err) err = k->alloc(k, t->targets->classes * sizeof *t->class_weights, (void **)&t->class_weights);
    if (!err) err = k->alloc(k, sizeof *t->loss, (void **)&t->loss);
    if (!err) training_set_class_weights(t);
    if (!err) err = weir_nn_workspace_open(t->nn, true, &t->workspace);
    if (!err) err = weir_adamw_open(t->nn, &opts, &t->adamw);
    return err;
}

static weir_err training_channels_of_makers(const weir_trained *t, weir_comm *(*channels)[WEIR_TRAIN_CHANNELS]) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < t->opts.ahead * WEIR_TRAIN_CHANNELS; i++)
        err = weir_comm_channel(t->comm, &channels[i / WEIR_TRAIN_CHANNELS][i % WEIR_TRAIN_CHANNELS]);
    return err;
}

weir_err weir_training_judge_channels(weir_trained *t) {
    return training_channels_of_makers(t, t->judge_channels);
}

/* Whoever talks has channels of its own: each maker of both streams, and the sum. */
static weir_err training_channels(weir_trained *t) {
    weir_err err = training_channels_of_makers(t, t->learn_channels);
    if (!err) err = weir_training_judge_channels(t);
    return err ? err : weir_comm_channel(t->comm, &t->sum_channel);
}

static weir_err training_dealer_open(weir_trained *t) {
    t->dealer = weir_calloc(1, sizeof *t->dealer);
    if (!t->dealer) return WEIR_NOMEM(TRAINING_NO_MEMORY);
    return weir_train_dealer_open(t->targets->ends[WEIR_TARGETS_TRAIN], weir_comm_ranks(t->comm), t->dealer);
}

/* Each rank has read the checkpoint by itself. They go on together if all have the same: where the folder is a disk of
 * each machine, rank 0 alone finds what it has written there, or a rank finds what an earlier training left. */
static weir_err training_check_ranks(const weir_trained *t, const weir_real *params) {
    uint32_t tensors, ranks = weir_comm_ranks(t->comm);
    const weir_nn_tensor *of = weir_nn_tensors(t->nn, &tensors);
    uint64_t mine[2] = {t->state.epochs, 0}, zero[2], other[2]; /* epochs, and a digest of what was learnt in them */
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_buf all = {0};
    if (mine[0]) mine[1] = weir_xxh3(&t->state.best, sizeof t->state.best, weir_adamw_steps(t->adamw));
    for (uint32_t i = 0; mine[0] && i < tensors; i++)
        if (!of[i].held) /* embeddings that are shared out are others on each rank */
            mine[1] = weir_xxh3(params + of[i].offset, (size_t)of[i].rows * of[i].cols * sizeof *params, mine[1]);
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM(TRAINING_NO_MEMORY);
    if (!err) err = weir_comm_gather(t->comm, mine, sizeof mine, &all, lengths);
    for (uint32_t rank = 1; !err && rank < ranks; rank++) {
        memcpy(zero, all.bytes, sizeof zero);
        memcpy(other, all.bytes + rank * sizeof other, sizeof other);
        if (memcmp(zero, other, sizeof zero) == 0) continue;
        err = WEIR_ERR(WEIR_EDATA,
                       "rank 0 would continue after epoch %llu and rank %u after epoch %llu%s; put the folder %s on a "
                       "file system that all ranks see, or copy the checkpoint to continue from to all of them",
                       (unsigned long long)zero[0], rank, (unsigned long long)other[0],
                       zero[0] == other[0] ? ", but from different checkpoints" : "", t->opts.folder);
    }
    weir_free(lengths);
    weir_buf_free(&all);
    return err;
}

/* First parameters, or those of the checkpoint that there is. */
static weir_err training_begin(weir_trained *t) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    uint64_t count = weir_nn_parameter_count(t->nn);
    weir_real *host = weir_calloc(count, sizeof *host);
    if (!host) return WEIR_NOMEM(TRAINING_NO_MEMORY);
    double logit_max;
    weir_nn_init(t->nn, t->opts.seed, host);
    k->to_device(k, t->params, host, count * sizeof *host);
    t->state.best = -INFINITY;
    weir_err err = weir_err_prefix(weir_nn_bound(t->nn, host, &logit_max), "as this network begins");
    if (!err && t->opts.resume) err = weir_training_state_load(t);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    if (!err && t->opts.resume) {
        k->to_host(k, host, t->params, count * sizeof *host);
        err = k->finish(k);
        if (!err) err = training_check_ranks(t, host);
    }
    if (!err) err = k->finish(k);
    weir_free(host);
    return err;
}

/* A target's row is computed by its owner, who needs the edges of the target's neighbour for what is said of a pair,
 * and of those whom a walk meets: a part without them would take every pair for one that has never met. What it brings
 * precomputed is as of when a vertex was put (PARTS-P6). */
static weir_err training_check_ends(const weir_trained *t) {
    const weir_schema *schema = weir_snapshot_schema(t->opts.snapshot);
    const weir_schema_task *task = weir_schema_task_at(schema, t->opts.task);
    const weir_schema_aggregate *of = weir_aggregates_of_ends(schema, weir_nn_target_type(t->shape));
    if (!of || !t->opts.part || task->moment == WEIR_SCHEMA_AT_PUT) return WEIR_OK;
    const uint32_t hops = weir_aggregates_hops(of), depth = weir_part_depth(t->opts.part);
    if (!weir_parts_bring(of, weir_part_count(t->opts.part), depth)) return WEIR_OK;
    if (hops > WEIR_PARTS_DEPTH_MAX)
        return WEIR_ERR(WEIR_EINVAL,
                        "aggregate '%s' looks at edges %u hops from a target, further than parts reach, and targets of "
                        "this task are as of their labels; give all ranks the whole snapshot",
                        of->name, hops);
    return WEIR_ERR(WEIR_EINVAL,
                    "aggregate '%s' looks at edges %u hops from a target, which parts of depth %u do not have, and "
                    "targets of this task are as of their labels; make the parts with `weir partition --depth %u`",
                    of->name, hops, depth, hops);
}

/* Before any work: what trees cannot be learnt of, or with. */
static weir_err training_check_trees(const weir_train_opts *o) {
    if (o->model == WEIR_TRAIN_NETWORK || o->model == WEIR_TRAIN_BEST) return WEIR_OK;
    if (o->part)
        return WEIR_ERR(WEIR_EINVAL, "one rank learns the trees, and has only its part; train on the whole snapshot");
    if (o->model == WEIR_TRAIN_TREES && (o->reach.layers > WEIR_TREE_COLUMNS_HOPS_MAX || o->embedded_count))
        return WEIR_ERR(WEIR_EINVAL, "trees look two hops far, and know no embeddings of vertices; give one or two "
                                     "fan-outs, omit --embed-vertices, or take --model blend");
    if (weir_boost_available()) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "XGBoost was not there when this program was built, or is not there now; install "
                    "libxgboost-dev, and build again if that was not enough, or take --model network");
}

/* And what the shape shows, before anything is learnt. */
static weir_err training_check_columns(const weir_trained *t) {
    if (t->opts.model == WEIR_TRAIN_NETWORK || t->opts.model == WEIR_TRAIN_BEST) return WEIR_OK;
    if (weir_nn_outputs(t->shape) != 1)
        return WEIR_ERR(WEIR_EINVAL, "boosted trees answer yes-or-no questions only; take --model network");
    if (!weir_tree_columns_share(t->shape, WEIR_TREE_COLUMNS_HOPS_MAX))
        return WEIR_ERR(WEIR_EINVAL,
                        "trees read the newest edges of a vertex, and the network would look at others; take "
                        "--strategy recent, or --model network");
    return WEIR_OK;
}

static weir_err training_scores_open(weir_trained *t) {
    t->scores = weir_calloc((size_t)(t->targets->count - t->targets->ends[WEIR_TARGETS_TRAIN]), sizeof *t->scores);
    return t->scores ? WEIR_OK : WEIR_NOMEM(TRAINING_NO_MEMORY);
}

/* Where nobody says how many rows stay, all do that can, on a device that has a memory of its own. */
static double training_resident_share(const weir_trained *t) {
    if (t->opts.resident >= 0) return t->opts.resident;
    return !weir_nn_kernels(t->nn)->unified && t->targets->one_time ? 1 : 0;
}

static weir_err training_set_up(weir_trained *t) {
    const weir_targets_opts opts = {t->opts.task, t->opts.cut, t->opts.part ? t->comm : NULL};
    weir_err err = training_check_opts(&t->opts);
    if (!err) err = training_check_trees(&t->opts);
    if (!err && t->opts.folder) err = weir_folder_create(t->opts.folder);
    if (!err && !t->merged) err = weir_targets_open(t->opts.snapshot, &opts, &t->targets);
    if (!err && t->targets->count == t->targets->ends[WEIR_TARGETS_VALIDATION]) /* cut by times */
        err = WEIR_ERR(WEIR_EDATA,
                       "there are no targets for the test (%llu are too young: their labels may still "
                       "come); take a longer or an earlier span",
                       (unsigned long long)t->targets->young);
    if (!err) err = training_shape_open(t);
    if (!err) err = training_check_columns(t);
    if (!err) err = training_check_ends(t);
    if (!err) err = training_channels(t);
    if (!err && t->opts.trace) err = weir_train_trace_open(t->comm, t->opts.trace, t->opts.ahead, &t->trace);
    if (!err) t->fingerprint = weir_training_fingerprint(t);
    if (!err) err = weir_training_scales(t);
    if (err || t->opts.model == WEIR_TRAIN_TREES) return err ? err : training_scores_open(t);
    err = training_networks_open(t);
    if (!err) weir_snapshot_give_back(t->opts.snapshot); /* targets were found by what no batch reads */
    if (!err) err = training_network_open(t);
    if (!err && t->opts.local) err = training_dealer_open(t);
    if (!err && weir_comm_ranks(t->comm) > 1) err = weir_train_sums_open(t->nn, t->gradients, t->sum_channel, &t->sums);
    if (!err && t->sums) weir_train_sums_trace(t->sums, t->trace, weir_train_trace_sums(t->opts.ahead));
    if (!err) err = training_begin(t);
    const weir_train_cache_opts cache = {.shape = t->shape,
                                         .owners = weir_training_owners(t),
                                         .targets = t->targets,
                                         .batch = t->opts.batch,
                                         .negatives = t->opts.negatives,
                                         .policy = t->opts.cached,
                                         .share = t->opts.cache_share,
                                         .wire = t->opts.wire,
                                         .draw = weir_training_list_epoch,
                                         .context = t};
    /* Its rows have the scales that a checkpoint may have brought. */
    if (!err) err = weir_train_cache_open(&cache, t->comm, &t->cache);
    weir_train_cache_opts stay = cache;
    stay.policy = WEIR_TRAIN_CACHED_VIP;
    stay.share = training_resident_share(t);
    if (!err) err = weir_train_residents_open(&stay, weir_nn_kernels(t->nn), &t->residents);
    bool looks = cache.policy == WEIR_TRAIN_CACHED_AHEAD && cache.share > 0 && cache.owners.ranks > 1;
    return err || !looks ? err : weir_train_lookahead_open(&cache, t->opts.ahead, &t->lookahead);
}

/* --- epochs and the end ------------------------------------------------------------------------------------------- */

static weir_err training_validate(weir_trained *t, weir_train_epoch *epoch) {
    weir_train_metrics metrics;
    weir_err err = weir_training_judge(t, WEIR_TARGETS_VALIDATION, t->average ? t->average : t->params);
    if (!err)
        err = weir_err_prefix(weir_training_measure(t, weir_training_scores(t, WEIR_TARGETS_VALIDATION),
                                                    WEIR_TARGETS_VALIDATION, &metrics),
                              "validation of epoch %u", epoch->number);
    if (err) return err;
    epoch->validation = weir_nn_outputs(t->shape) == 1 ? metrics.average_precision : metrics.accuracy;
    epoch->best = epoch->validation > t->state.best;
    return WEIR_OK;
}

/* A mean of what epochs have come to, where each counts `average` of the one after it. The weights of all of them add
 * up to 1 from the first on: nothing leans towards the zeros that it began with. */
static void training_average(const weir_trained *t, uint32_t epoch) {
    const double keep = t->opts.average;
    if (!t->average) return;
    weir_nn_kernels(t->nn)->approach(weir_nn_kernels(t->nn), weir_nn_parameter_count(t->nn),
                                     (weir_real)((1 - keep) / (1 - pow(keep, (double)epoch))), t->params, t->average);
}

/* What learns again has no validation, and keeps its last epoch. */
static weir_err training_epoch(weir_trained *t) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    const bool again = t->merged;
    weir_train_epoch epoch = {.number = t->state.epochs + 1, .validation = (double)NAN, .best = again, .again = again};
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = weir_training_learn(t, &epoch);
    if (!err) err = weir_training_compare(t, &epoch);
    if (!err) training_average(t, epoch.number);
    if (!err && !again) err = training_validate(t, &epoch);
    if (err) return err;
    t->state.epochs = epoch.number;
    if (epoch.best) {
        t->state.best = epoch.validation;
        t->state.best_epoch = epoch.number;
        k->zero(k, t->best_params, weir_nn_parameter_count(t->nn) * sizeof *t->best_params);
        k->add(k, weir_nn_parameter_count(t->nn), t->average ? t->average : t->params, t->best_params);
    }
    epoch.elapsed_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
    /* What is ended between the two learns the epoch once more, and writes its line anew; the other way round the line
     * would be missing for ever. */
    err = weir_training_log_epoch(t, &epoch);
    weir_kill_point("train.between");
    if (!err) err = weir_training_state_save(t);
    if (!err && t->opts.on_epoch) err = t->opts.on_epoch(t->opts.context, &epoch);
    return err;
}

static bool training_is_over(const weir_trained *t) {
    const weir_training_state *s = &t->state;
    bool stale = t->opts.patience && s->epochs >= s->best_epoch + t->opts.patience;
    return s->epochs >= t->opts.epochs || (s->epochs > 0 && stale);
}

weir_err weir_training_calibrate(const weir_trained *t, const double *scores, weir_targets_part part,
                                 weir_calibration *calibration, weir_train_metrics *metrics) {
    const uint64_t begin = weir_targets_begin(t->targets, part), count = t->targets->ends[part] - begin;
    double *probabilities = weir_calloc(count, sizeof *probabilities);
    uint8_t *labels = weir_malloc(count);
    weir_err err = probabilities && labels ? WEIR_OK : WEIR_NOMEM(TRAINING_NO_MEMORY);
    for (uint64_t i = 0; !err && i < count; i++)
        labels[i] = t->targets->classes_of[begin + i] != 0;
    const weir_scored scored = {scores, labels, count}, calibrated = {probabilities, labels, count};
    if (!err && part == WEIR_TARGETS_VALIDATION) err = weir_calibration_fit(&scored, calibration);
    for (uint64_t i = 0; !err && i < count; i++)
        probabilities[i] = weir_calibrated(calibration, scored.scores[i]);
    if (!err) err = weir_eval_log_loss(&calibrated, &metrics->log_loss);
    if (!err) err = weir_eval_calibration_error(&calibrated, &metrics->calibration_error);
    metrics->interval = (weir_interval){(double)NAN, (double)NAN};
    if (!err && weir_training_has_both(metrics))
        err = weir_eval_average_precision_interval(&scored, t->opts.seed, &metrics->interval);
    weir_free(probabilities);
    weir_free(labels);
    return err;
}

weir_err weir_training_finish_part(weir_trained *t, weir_targets_part part) {
    const double *scores = weir_training_scores(t, part);
    WEIR_ASSERT(t->state.best_epoch > 0); /* TRAIN-R3 */
    weir_err err = weir_training_judge(t, part, t->best_params);
    if (!err) err = weir_training_measure(t, scores, part, &t->metrics[part]);
    if (err || weir_nn_outputs(t->shape) != 1) return err;
    return weir_training_calibrate(t, scores, part, &t->calibration, &t->metrics[part]);
}

weir_err weir_training_as_usage(weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (!weir_err_is(err, WEIR_EINVAL)) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EUSAGE, "%s", sentence);
}

weir_err weir_training_open(weir_comm *comm, const weir_train_opts *opts, weir_targets *merged,
                            weir_trained **trainedp) {
    *trainedp = NULL;
    weir_trained *t = weir_calloc(1, sizeof *t);
    if (!t) weir_targets_close(merged);
    if (!t) return weir_comm_fail(comm, WEIR_NOMEM(TRAINING_NO_MEMORY));
    t->targets = merged;
    t->merged = merged != NULL;
    t->opts = *opts;
    t->comm = comm;
    t->calibration = (weir_calibration){1, 0};
    weir_err err = weir_comm_fail(comm, weir_training_as_usage(training_set_up(t)));
    if (err) {
        weir_trained_close(t);
        return err;
    }
    *trainedp = t;
    return WEIR_OK;
}

weir_err weir_train_check(const weir_train_opts *opts) {
    weir_err err = training_check_opts(opts);
    return weir_training_as_usage(err ? err : training_check_trees(opts));
}

weir_err weir_training_run(weir_comm *comm, const weir_train_opts *opts, weir_targets *merged,
                           weir_trained **trainedp) {
    weir_trained *t;
    *trainedp = NULL;
    weir_err err = weir_training_open(comm, opts, merged, &t);
    if (err) return err;
    if (opts->model == WEIR_TRAIN_TREES) { /* no epochs */
        *trainedp = t;
        return WEIR_OK;
    }
    if (!training_is_over(t)) err = weir_comm_fail(comm, weir_training_stream_open(t));
    while (!err && !training_is_over(t)) /* all ranks come to the same answer, from the same sums */
        err = weir_comm_fail(comm, training_epoch(t));
    weir_batches_close(t->stream); /* TRAIN-E5: what has been prepared for an epoch that does not come is thrown away */
    t->stream = NULL;
    if (!err && !t->merged) err = weir_comm_fail(comm, weir_training_finish_part(t, WEIR_TARGETS_VALIDATION));
    if (!err && !t->merged && !opts->again) err = weir_comm_fail(comm, weir_training_finish_part(t, WEIR_TARGETS_TEST));
    weir_err untold = !err && t->trace ? weir_train_trace_write(t->trace) : WEIR_OK;
    if (untold) weir_log_error("train.trace", untold); /* the training is worth more than its trace */
    if (err) {
        weir_trained_close(t);
        return err;
    }
    *trainedp = t;
    return WEIR_OK;
}

void weir_trained_close(weir_trained *trained) {
    if (!trained) return;
    const weir_kernels *k = trained->nn ? weir_nn_kernels(trained->nn) : NULL;
    weir_train_sums_close(trained->sums);
    weir_train_trace_close(trained->trace);
    weir_adamw_close(trained->adamw);
    weir_nn_workspace_close(trained->workspace);
    if (k) {
        k->release(k, trained->params);
        k->release(k, trained->best_params);
        k->release(k, trained->average);
        k->release(k, trained->gradients);
        k->release(k, trained->dlogits);
        k->release(k, trained->class_weights);
        k->release(k, trained->loss);
    }
    weir_kernel_room_release(&trained->labels_there);
    weir_kernel_room_release(&trained->packed);
    weir_buf_free(&trained->packed_host);
    weir_nn_rows_close(trained->rows);
    weir_train_cache_close(trained->cache);
    weir_train_residents_close(trained->residents);
    weir_train_lookahead_close(trained->lookahead);
    weir_nn_learner_close(trained->learner);
    if (trained->whole != trained->nn) weir_nn_close(trained->whole);
    weir_nn_close(trained->nn);
    weir_train_shares_close(trained->shares);
    weir_nn_shape_free(trained->shape);
    weir_targets_close(trained->targets);
    weir_comm_channel_close(trained->sum_channel);
    for (uint32_t i = 0; i < WEIR_TRAIN_AHEAD_MAX * WEIR_TRAIN_CHANNELS; i++) {
        weir_comm_channel_close(trained->learn_channels[i / WEIR_TRAIN_CHANNELS][i % WEIR_TRAIN_CHANNELS]);
        weir_comm_channel_close(trained->judge_channels[i / WEIR_TRAIN_CHANNELS][i % WEIR_TRAIN_CHANNELS]);
    }
    weir_free(trained->logits);
    weir_free(trained->labels);
    weir_free(trained->scores);
    if (trained->dealer) weir_train_dealer_close(trained->dealer);
    weir_free(trained->dealer);
    weir_free(trained);
}

weir_trained_view weir_trained_look(const weir_trained *trained) {
    return (weir_trained_view){
        .nn = trained->whole,
        .shape = trained->shape,
        .targets = trained->targets,
        .scores = trained->scores,
        .metrics = trained->metrics,
        .calibration = trained->calibration,
        .best_epoch = trained->state.best_epoch,
        .again = trained->merged,
    };
}

static weir_err training_put(void *context, const weir_real *numbers, uint64_t count) {
    weir_real **at = context;
    memcpy(*at, numbers, count * sizeof *numbers);
    *at += count;
    return WEIR_OK;
}

weir_err weir_trained_params(const weir_trained *trained, weir_real *params) {
    const weir_train_sink sink = {training_put, &params};
    if (!trained->shares && !params) return WEIR_OK;
    return weir_train_shares_gather(trained->shares, trained->nn, trained->best_params, trained->comm, &sink);
}
