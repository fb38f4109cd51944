/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk.c - chunks are taken by threads in their order, and written in that order by the caller's.
 *
 *   next: the chunk that a free thread takes     written: the one that the file wants next
 *
 * A thread that is far ahead waits, so that one slow chunk does not fill the memory with others.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "bulk_private.h"

#define BULK_BATCH  512u  /* of training, too: more is no faster */
#define BULK_AT_ONE 4096u /* as of one time: the more share a tree, the less is computed */
#define BULK_CHUNKS 32u   /* as of one time at least, of small types as well, so that all threads have some */
#define BULK_RING   2u    /* chunks of a thread that are made and not written */

typedef struct bulk_slot {
    weir_bulk_text text;
    bool ready;
} bulk_slot;

typedef struct bulk_crew {
    const weir_bulk_plan *plan;
    weir_mutex
        mutex; /* LEAF; guards the rest, but a slot's text is its thread's until it is ready, then the writer's */
    weir_cond moved;
    uint64_t chunks, next, written;
    uint32_t slot_count, thread_count;
    bool stops;
    weir_err_kept failed;
    bulk_slot *slots;
    weir_thread **threads;
} bulk_crew;

/* --- a worker ----------------------------------------------------------------------------------------------------- */

/* false: there is none, or somebody has failed. */
static bool crew_take(bulk_crew *crew, uint64_t *chunkp) {
    weir_mutex_lock(&crew->mutex);
    while (!crew->stops && crew->next < crew->chunks && crew->next - crew->written >= crew->slot_count)
        weir_cond_wait(&crew->moved, &crew->mutex);
    const bool some = !crew->stops && crew->next < crew->chunks;
    if (some) *chunkp = crew->next++;
    WEIR_ASSERT(crew->stops || crew->next - crew->written <= crew->slot_count);
    weir_mutex_unlock(&crew->mutex);
    return some;
}

static void crew_hand_in(bulk_crew *crew, uint64_t chunk, weir_err err) {
    weir_mutex_lock(&crew->mutex);
    if (err && !crew->failed.err) weir_err_kept_set(&crew->failed, err);
    if (err) crew->stops = true;
    crew->slots[chunk % crew->slot_count].ready = !err;
    weir_cond_broadcast(&crew->moved);
    weir_mutex_unlock(&crew->mutex);
}

/* BULK-B1: a chunk is the same lives, whoever takes it. */
static weir_err bulk_chunk(const weir_bulk_plan *plan, weir_bulk_pass *pass, uint64_t chunk, weir_target *targets,
                           weir_bulk_text *text) {
    const uint64_t begin = chunk * plan->batch, all = plan->vertices->lives.count;
    const uint64_t end = all - begin < plan->batch ? all : begin + plan->batch;
    const weir_bulk_score *scores = NULL;
    const float *rows = NULL;
    uint32_t count;
    weir_err err = weir_bulk_list(plan, begin, end, targets, &count);
    if (!err && count) err = weir_bulk_pass_run(pass, targets, count, &scores, &rows);
    return err ? err : weir_bulk_print(plan, targets, count, scores, rows, text);
}

static void crew_main(void *context) {
    bulk_crew *crew = context;
    const weir_bulk_plan *plan = crew->plan;
    weir_bulk_pass *pass = NULL;
    uint64_t chunk;
    weir_target *targets = weir_calloc(plan->batch, sizeof *targets);
    weir_err err = targets ? weir_bulk_pass_open(plan, &pass) : WEIR_NOMEM("for a thread that scores");
    while (crew_take(crew, &chunk)) {
        if (!err) err = bulk_chunk(plan, pass, chunk, targets, &crew->slots[chunk % crew->slot_count].text);
        crew_hand_in(crew, chunk, err);
    }
    weir_bulk_pass_close(pass);
    weir_free(targets);
}

/* --- the caller's thread ------------------------------------------------------------------------------------------ */

static weir_err crew_write(bulk_crew *crew, weir_bulk_files *files) {
    weir_err err = WEIR_OK;
    for (uint64_t chunk = 0; !err && chunk < crew->chunks; chunk++) {
        bulk_slot *slot = &crew->slots[chunk % crew->slot_count];
        weir_mutex_lock(&crew->mutex);
        while (!slot->ready && !crew->failed.err)
            weir_cond_wait(&crew->moved, &crew->mutex);
        if (crew->failed.err) err = weir_err_kept_get(&crew->failed);
        weir_mutex_unlock(&crew->mutex);
        if (!err) err = weir_bulk_files_add(files, &slot->text);
        weir_mutex_lock(&crew->mutex);
        slot->ready = false;
        crew->written++;
        if (err) crew->stops = true;
        weir_cond_broadcast(&crew->moved);
        weir_mutex_unlock(&crew->mutex);
    }
    return err;
}

static weir_err crew_start(bulk_crew *crew, uint32_t threads) {
    weir_err err = WEIR_OK;
    crew->slot_count = BULK_RING * threads;
    crew->slots = weir_calloc(crew->slot_count, sizeof *crew->slots);
    crew->threads = weir_calloc(threads, sizeof *crew->threads);
    if (!crew->slots || !crew->threads) return WEIR_NOMEM("for threads that score");
    while (!err && crew->thread_count < threads) {
        char name[WEIR_THREAD_NAME_MAX + 1];
        snprintf(name, sizeof name, "bulk-%u", crew->thread_count);
        err = weir_thread_start(name, WEIR_ROLE_WORKER, crew_main, crew, &crew->threads[crew->thread_count]);
        crew->thread_count += !err;
    }
    return err;
}

static void crew_end(bulk_crew *crew) {
    weir_mutex_lock(&crew->mutex);
    crew->stops = true;
    weir_cond_broadcast(&crew->moved);
    weir_mutex_unlock(&crew->mutex);
    for (uint32_t i = 0; i < crew->thread_count; i++)
        weir_thread_join(crew->threads[i]);
    for (uint32_t i = 0; crew->slots && i < crew->slot_count; i++) {
        weir_buf_free(&crew->slots[i].text.table);
        weir_buf_free(&crew->slots[i].text.numbers);
    }
    weir_free(crew->slots);
    weir_free(crew->threads);
    weir_cond_destroy(&crew->moved);
    weir_mutex_destroy(&crew->mutex);
}

static weir_err bulk_fill(const weir_bulk_plan *plan, weir_bulk_files *files) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t lives = plan->vertices->lives.count;
    bulk_crew crew = {.plan = plan, .chunks = (lives + plan->batch - 1) / plan->batch};
    uint64_t threads = plan->opts->threads ? plan->opts->threads : cores > 0 ? (uint64_t)cores : 1;
    if (threads > WEIR_BULK_THREADS_MAX) threads = WEIR_BULK_THREADS_MAX;
    if (threads > crew.chunks) threads = crew.chunks; /* none of a graph without such vertices */
    weir_mutex_init(&crew.mutex, WEIR_RANK_LEAF, "chunks of rows");
    weir_cond_init(&crew.moved);
    weir_err err = threads ? crew_start(&crew, (uint32_t)threads) : WEIR_OK;
    if (!err) err = crew_write(&crew, files);
    crew_end(&crew);
    return err;
}

/* --- what is to be done ------------------------------------------------------------------------------------------- */

static weir_err bulk_embeds_recommender(const weir_bulk_opts *o, uint32_t type) {
    const weir_schema *schema = weir_snapshot_schema(o->snapshot);
    const weir_schema_task *task = weir_schema_task_at(schema, weir_recommend_model_shape(o->recommender)->task);
    const weir_schema_relation *r = weir_schema_relation_at(schema, task->relation);
    if (type == r->from || type == r->to) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND, "the model has no embedding of a %s: it recommends %s to %s",
                    weir_schema_vertex_at(schema, type)->name, weir_schema_vertex_at(schema, r->to)->name,
                    weir_schema_vertex_at(schema, r->from)->name);
}

weir_err weir_bulk_embeds(const weir_bulk_opts *o, uint32_t type) {
    const weir_schema *schema = weir_snapshot_schema(o->snapshot);
    if (o->recommender) return bulk_embeds_recommender(o, type);
    const weir_pack_contents of = weir_pack_look(o->pack);
    if (!of.nn)
        return WEIR_ERR(WEIR_ENOTFOUND, "the model has no embeddings: it is boosted trees; train one with `weir train "
                                        "--model network`, or blend");
    weir_err err = weir_nn_shape_fits(of.shape, schema);
    if (err) return err;
    if (type < weir_nn_types(of.shape) && weir_nn_hop_of(of.shape, type) < weir_nn_layers(of.shape)) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND,
                    "the model has no embedding of a %s: its network meets that type at the last hop only, or never",
                    weir_schema_vertex_at(schema, type)->name);
}

/* Whether edges have times; if none has, the targets of training were judged as of the snapshot's end (TRAIN-T3). */
static bool bulk_has_times(const weir_snapshot *snapshot) {
    const uint32_t relations = weir_schema_relation_count(weir_snapshot_schema(snapshot));
    for (uint32_t r = 0; r < relations; r++)
        if (weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->has_times) return true;
    return relations == 0;
}

/* It follows from the snapshot alone: chunks are the same for any number of threads (BULK-B1). */
static void bulk_plan_batch(weir_bulk_plan *plan) {
    const uint64_t share = plan->vertices->lives.count / BULK_CHUNKS;
    plan->batch = plan->opts->batch;
    if (plan->batch) return;
    plan->batch = plan->own_time || share < BULK_BATCH ? BULK_BATCH
                  : share < BULK_AT_ONE                ? (uint32_t)share
                                                       : BULK_AT_ONE;
}

static weir_err bulk_plan_model(weir_bulk_plan *plan) {
    const weir_bulk_opts *o = plan->opts;
    plan->of = weir_pack_look(o->pack);
    const uint32_t task = weir_schema_task_find(plan->schema, weir_nn_task(plan->of.shape));
    if (task == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EVERSION, "the model answers task '%s', which the snapshot's schema does not have",
                        weir_nn_task(plan->of.shape));
    weir_err err = weir_nn_shape_fits(plan->of.shape, plan->schema);
    if (err) return err;
    const weir_schema_task *of = weir_schema_task_at(plan->schema, task);
    if (o->scores) plan->type = weir_nn_target_type(plan->of.shape);
    err = o->scores ? WEIR_OK : weir_bulk_embeds(o, plan->type);
    if (err) return err;
    plan->hop = o->scores ? 0 : weir_nn_hop_of(plan->of.shape, plan->type);
    plan->columns = o->scores ? 2 : weir_nn_hidden(plan->of.shape);
    plan->own_time = !o->at_once && plan->hop == 0 && of->moment == WEIR_SCHEMA_AT_PUT && bulk_has_times(o->snapshot);
    if (o->scores && weir_nn_outputs(plan->of.shape) > 1)
        plan->values = &weir_schema_label_at(plan->schema, of->label)->values;
    if (plan->values && plan->values->count != weir_nn_outputs(plan->of.shape))
        return WEIR_ERR(WEIR_EVERSION, "the model tells %u classes apart, and the snapshot's label has %u values",
                        weir_nn_outputs(plan->of.shape), plan->values->count);
    return WEIR_OK;
}

static weir_err bulk_plan_recommender(weir_bulk_plan *plan) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(plan->opts->recommender);
    const weir_schema_task *task = weir_schema_task_at(plan->schema, shape->task);
    if (plan->opts->scores)
        return WEIR_ERR(WEIR_EUSAGE, "the model recommends, and scores nothing; `weir embed` writes the vectors that "
                                     "its scores are products of");
    const weir_schema_relation *relation = weir_schema_relation_at(plan->schema, task->relation);
    if (relation->from == relation->to)
        return WEIR_ERR(WEIR_EUSAGE,
                        "relation '%s' joins a '%s' to a '%s', each of which has two vectors, as who is recommended to "
                        "and as what is; `weir embed` writes one a vertex",
                        relation->name, weir_schema_vertex_at(plan->schema, relation->from)->name,
                        weir_schema_vertex_at(plan->schema, relation->to)->name);
    plan->items = plan->type == relation->to;
    plan->columns = shape->width + 1;
    return weir_bulk_embeds(plan->opts, plan->type);
}

static weir_err bulk_plan_time(weir_bulk_plan *plan) {
    const weir_bulk_opts *o = plan->opts;
    const int64_t end_us = weir_snapshot_as_of_us(o->snapshot);
    plan->as_of_us = o->at_once ? o->as_of_us : end_us;
    if (plan->as_of_us <= end_us && plan->as_of_us >= weir_snapshot_from_us(o->snapshot)) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "the snapshot does not cover that time; `weir snapshot show` says what it covers");
}

static weir_err bulk_plan_open(const weir_bulk_opts *o, weir_bulk_plan *plan) {
    const size_t length = strlen(o->path);
    const char *ending = length > strlen(".csv") ? o->path + length - strlen(".csv") : "";
    *plan = (weir_bulk_plan){.opts = o,
                             .schema = weir_snapshot_schema(o->snapshot),
                             .type = o->type,
                             .living = !o->scores,
                             .npy = strcmp(ending, ".npy") == 0};
    if (!plan->npy && strcmp(ending, ".csv") != 0)
        return WEIR_ERR(WEIR_EUSAGE, "%s ends in neither .csv nor .npy, which say what is written; name it so",
                        o->path);
    weir_err err = o->recommender ? bulk_plan_recommender(plan) : bulk_plan_model(plan);
    if (!err && o->scores && !plan->own_time && (o->from_us != INT64_MIN || o->to_us != INT64_MAX))
        err =
            WEIR_ERR(WEIR_EUSAGE, "all are asked as of one time here, by --as-of, or because the task judges at labels "
                                  "or no edge has a time; omit --from and --to");
    if (!err && !plan->own_time) err = bulk_plan_time(plan);
    if (err) return err;
    plan->vertices = weir_snapshot_vertices_of(o->snapshot, plan->type);
    bulk_plan_batch(plan);
    return o->recommender ? WEIR_OK : weir_bulk_pass_fit(plan);
}

weir_err weir_bulk_run(const weir_bulk_opts *opts, weir_bulk_stats *statsp) {
    weir_bulk_plan plan;
    weir_bulk_files *files = NULL;
    *statsp = (weir_bulk_stats){.rows = 0};
    weir_err err = bulk_plan_open(opts, &plan);
    if (!err) err = weir_bulk_count(&plan, statsp);
    if (!err) err = weir_bulk_files_open(&plan, statsp->rows, &files);
    if (!err) err = bulk_fill(&plan, files);
    return weir_bulk_files_end(files, err);
}
