/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c - the thread that looks after what is stored, while events come in and questions are answered.
 *
 *   once a second   is a shard's file damaged?  for GRACE looks, because it may come back ──► a checkpoint has it, or
 *                   the shard is made anew from the logs
 *   once a day      every file is read from the disk, so that damage is found before a reader meets it
 *   when it is due  a shard is written anew without what no reader can be told of any more
 *
 * A repair that fails is tried again, later each time. What is being done, and why it cannot be, the graph's troubles
 * say: readiness is red anyway as long as the damage lasts.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "pipeline_private.h"

/* In looks, which are keep_us apart. */
#define GRACE      3
#define AGAIN_MIN  10
#define AGAIN_MAX  3600
#define BUSY_TRIES 30u /* one a look: a reader holds the shard for long */

#define OPENED_US      (3 * WEIR_US_PER_S) /* a shard's owner looks once a second whether it is to be opened again */
#define OPENED_MOST_US (600 * WEIR_US_PER_S)
#define SAY_US         (WEIR_US_PER_S / 2)
#define HELD_EVENTS    20000u       /* so much may be left to be read while the shard seals nothing */
#define PASSES         8u           /* then it is held all the same: it is fed faster than it can be read again */
#define SCRUB_BYTES    (64ll << 20) /* a second */
#define SCRUB_FIRST    24           /* the first scrub of a process begins after this part of the interval */
#define TRIM_REST      10           /* times as long as a trim took the next of its shard waits at least */

typedef struct keeper_shard {
    bool damaged;
    uint32_t restored; /* files that came out of checkpoints */
    int64_t since_us, next_us;
    int64_t opened_wait_us,
        again_wait_us;             /* the last wait for its owner, and after a repair that failed; 0: none yet */
    int64_t trim_us, trim_wait_us; /* not before is it asked whether it is to be trimmed */
} keeper_shard;

typedef struct keeper {
    weir_pipeline *pipeline;
    int64_t scrub_at_us, paced_us;
    keeper_shard shards[WEIR_SHARDS_MAX];
    /* of the repair in hand */
    uint32_t shard;
    int64_t said_us;
} keeper;

static int64_t keeper_now(void) {
    return weir_clock_mono_us(weir_clock_system());
}

static bool keeper_goes_on(void *context) {
    return !weir_pipeline_stopping(((keeper *)context)->pipeline);
}

/* --- repair ----------------------------------------------------------------------------------------------------- */

static bool keeper_counted(void *context, uint64_t read, uint64_t wanted) {
    keeper *k = context;
    if (keeper_now() - k->said_us < SAY_US) return keeper_goes_on(k);
    k->said_us = keeper_now();
    weir_graph_repair_say(k->pipeline->graph, k->shard,
                          WEIR_ERR(WEIR_EUNAVAILABLE, "it is made anew from the log: %llu of %llu events are read",
                                   (unsigned long long)read, (unsigned long long)wanted));
    return keeper_goes_on(k);
}

static weir_err keeper_add_missing(void *context, uint32_t source, uint32_t partition, uint64_t covered,
                                   uint64_t sealed) {
    (void)source, (void)partition;
    *(uint64_t *)context += sealed - covered;
    return WEIR_OK;
}

/* What is sealed meanwhile is less each time; the rest is read while nothing is. */
static weir_err keeper_replay(keeper *k, weir_graph_repair *repair, weir_replay *replay) {
    weir_err err = WEIR_OK;
    uint64_t missing = UINT64_MAX;
    for (uint32_t pass = 0; !err && pass < PASSES && missing > HELD_EVENTS; pass++) {
        err = weir_replay_run(replay);
        missing = 0;
        if (!err) err = weir_graph_repair_missing(repair, keeper_add_missing, &missing);
    }
    if (!err) err = weir_graph_repair_hold(repair);
    if (!err) err = weir_replay_run(replay);
    if (!err) err = weir_graph_repair_replace(repair, keeper_goes_on, k);
    weir_graph_repair_release(repair);
    return err;
}

static weir_err keeper_make_anew(keeper *k) {
    weir_graph_repair *repair;
    weir_replay *replay = NULL;
    weir_err err = weir_graph_repair_begin(k->pipeline->graph, k->shard, k->pipeline->checkpoints, &repair);
    if (!err) err = weir_replay_open(k->pipeline, repair, keeper_counted, k, &replay);
    if (!err) err = keeper_replay(k, repair, replay);
    for (uint32_t i = 0; i < BUSY_TRIES && weir_err_is(err, WEIR_EBUSY); i++) {
        if (!weir_pipeline_sleep(k->pipeline, k->pipeline->keep_us)) break;
        err = keeper_replay(k, repair, replay);
    }
    weir_replay_close(replay);
    weir_graph_repair_close(repair);
    return err;
}

/* *wholep: checkpoints had all that was damaged, or nothing is damaged any more. The shard's owner then opens it again
 * as soon as no reader holds it for long; there is nothing to be made anew. */
static weir_err keeper_bring_back(keeper *k, keeper_shard *s, bool *wholep) {
    weir_graph *graph = k->pipeline->graph;
    uint32_t restored, left;
    weir_graph_repair_say(graph, k->shard,
                          WEIR_ERR(WEIR_EUNAVAILABLE, "its damaged files are looked for in the checkpoints"));
    weir_err err =
        weir_graph_repair_files(graph, k->shard, k->pipeline->checkpoints, keeper_goes_on, k, &restored, &left);
    weir_metric_add(WEIR_METRIC_STORE_RESTORED_FILES, restored);
    s->restored += restored;
    *wholep = !err && left == 0;
    if (!*wholep) return err;
    weir_graph_repair_say(graph, k->shard,
                          WEIR_ERR(WEIR_EUNAVAILABLE, "its files are whole; it is opened again as soon as no reader "
                                                      "holds it for long"));
    s->opened_wait_us = weir_pipeline_longer_wait(s->opened_wait_us, OPENED_US, OPENED_MOST_US);
    s->next_us = keeper_now() + s->opened_wait_us;
    return WEIR_OK;
}

static void keeper_repair(keeper *k, uint32_t shard) {
    weir_graph *graph = k->pipeline->graph;
    keeper_shard *s = &k->shards[shard];
    char sentence[WEIR_ERR_SENTENCE_MAX];
    k->shard = shard;
    k->said_us = 0;
    int64_t begun_us = keeper_now();
    bool whole = false;
    weir_err err = keeper_bring_back(k, s, &whole);
    if (whole) return;
    /* A disk without room for one file has none for a shard. */
    if (!weir_err_is(err, WEIR_EFULL) && !weir_err_is(err, WEIR_ENOMEM) && !weir_err_is(err, WEIR_ECLOSED)) {
        WEIR_LOG(WARN, "store.repair", "the shard has damaged files; it is made anew from the log",
                 WEIR_U64("shard", shard));
        if (err) weir_log_error("store.not_restored", err);
        err = keeper_make_anew(k);
    }
    if (weir_err_is(err, WEIR_ECLOSED)) return; /* the next start finds the damage again */
    if (!err) {
        *s = (keeper_shard){.trim_us = s->trim_us, .trim_wait_us = s->trim_wait_us};
        weir_metric_add(WEIR_METRIC_STORE_REPAIRS, 1);
        weir_graph_repair_say(graph, shard, WEIR_OK);
        WEIR_LOG(INFO, "store.repaired", "the shard was made anew; what was damaged lies beside it",
                 WEIR_U64("shard", shard), WEIR_F64("seconds", (double)(keeper_now() - begun_us) / WEIR_US_PER_S));
        return;
    }
    const int64_t look_us = k->pipeline->keep_us;
    s->again_wait_us = weir_pipeline_longer_wait(s->again_wait_us, AGAIN_MIN * look_us, AGAIN_MAX * look_us);
    s->next_us = keeper_now() + s->again_wait_us;
    weir_metric_add(WEIR_METRIC_STORE_REPAIR_FAILURES, 1);
    weir_log_error("store.not_repaired", err);
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_graph_repair_say(
        graph, shard,
        WEIR_ERR(weir_err_code(err), "it could not be made anew from the log, and that is tried again: %s", sentence));
}

static weir_err keeper_see_trouble(void *context, const weir_graph_trouble *trouble) {
    keeper *k = context;
    if (strcmp(trouble->part, "files") == 0 && weir_err_is(trouble->err, WEIR_ECORRUPT))
        k->shards[trouble->shard].damaged = true;
    return WEIR_OK;
}

/* false: the pipeline stops. */
static bool keeper_look(keeper *k) {
    weir_graph *graph = k->pipeline->graph;
    if (!k->pipeline->repairs) return true;
    for (uint32_t i = 0; i < weir_graph_shards(graph); i++)
        k->shards[i].damaged = false;
    (void)weir_graph_troubles(graph, keeper_see_trouble, k);
    for (uint32_t i = 0; i < weir_graph_shards(graph); i++) {
        keeper_shard *s = &k->shards[i];
        int64_t now_us = keeper_now();
        if (!s->damaged && s->since_us) {
            if (s->restored) {
                weir_metric_add(WEIR_METRIC_STORE_REPAIRS, 1);
                WEIR_LOG(INFO, "store.restored", "what was damaged of the shard came back from checkpoints",
                         WEIR_U64("shard", i), WEIR_U64("files", s->restored),
                         WEIR_F64("seconds", (double)(now_us - s->since_us) / WEIR_US_PER_S));
            }
            *s = (keeper_shard){.trim_us = s->trim_us, .trim_wait_us = s->trim_wait_us};
            weir_graph_repair_say(graph, i, WEIR_OK);
        }
        if (!s->damaged) continue;
        if (!s->since_us) {
            s->since_us = now_us;
            s->next_us = now_us + GRACE * k->pipeline->keep_us;
        }
        if (now_us >= s->next_us) keeper_repair(k, i);
    }
    return keeper_goes_on(k);
}

/* --- scrub ------------------------------------------------------------------------------------------------------ */

/* The disk and the processor are the server's: what it reads in a second is bounded, and damage is looked at first. */
static bool keeper_pace(void *context, uint64_t bytes) {
    keeper *k = context;
    int64_t due_us = k->paced_us + (int64_t)bytes * WEIR_US_PER_S / SCRUB_BYTES, now_us = keeper_now();
    weir_metric_add(WEIR_METRIC_STORE_SCRUBBED_BYTES, bytes);
    const int64_t look_us = k->pipeline->keep_us;
    while (now_us < due_us && weir_pipeline_sleep(k->pipeline, due_us - now_us < look_us ? due_us - now_us : look_us)) {
        if (!keeper_look(k)) return false;
        now_us = keeper_now();
    }
    k->paced_us = keeper_now();
    return keeper_goes_on(k);
}

static void keeper_scrub(keeper *k) {
    int64_t begun_us = keeper_now();
    k->paced_us = begun_us;
    weir_err err = weir_graph_scrub(k->pipeline->graph, keeper_pace, k);
    k->scrub_at_us = begun_us + k->pipeline->scrub_us;
    if (!keeper_goes_on(k)) return; /* it has not read all */
    if (err) weir_log_error("store.scrub", err);
    WEIR_LOG(INFO, "store.scrubbed", err ? "every file was read, and not all are whole" : "every file was read",
             WEIR_F64("seconds", (double)(keeper_now() - begun_us) / WEIR_US_PER_S));
    weir_metric_set(WEIR_METRIC_STORE_SCRUB_TIME, weir_clock_wall_us(k->pipeline->clock) / WEIR_US_PER_S);
}

/* --- trim --------------------------------------------------------------------------------------------------------- */

/* What is damaged is repaired first: the trim ends, and is begun again when all is well. */
static bool keeper_trim_pace(void *context, uint64_t bytes) {
    keeper *k = context;
    int64_t due_us = k->paced_us + (int64_t)bytes * WEIR_US_PER_S / SCRUB_BYTES, now_us = keeper_now();
    if (now_us < due_us) (void)weir_pipeline_sleep(k->pipeline, due_us - now_us);
    k->paced_us = keeper_now();
    return keeper_goes_on(k) && !weir_graph_health(k->pipeline->graph);
}

static void keeper_trim(keeper *k, uint32_t shard) {
    int64_t begun_us = keeper_now();
    k->paced_us = begun_us;
    weir_err err = weir_graph_trim(k->pipeline->graph, shard, keeper_trim_pace, k);
    if (!keeper_goes_on(k)) return;
    keeper_shard *s = &k->shards[shard];
    const int64_t look_us = k->pipeline->keep_us, took_us = keeper_now() - begun_us;
    if (err) {
        s->trim_wait_us = weir_pipeline_longer_wait(s->trim_wait_us, AGAIN_MIN * look_us, AGAIN_MAX * look_us);
        weir_metric_add(WEIR_METRIC_STORE_TRIM_FAILURES, 1);
        weir_log_error("store.not_trimmed", err);
    } else {
        s->trim_wait_us = 0;
        weir_metric_add(WEIR_METRIC_STORE_TRIMS, 1);
        WEIR_LOG(INFO, "store.trimmed", "the shard was written anew without what no reader can be told of any more",
                 WEIR_U64("shard", shard), WEIR_F64("seconds", (double)took_us / WEIR_US_PER_S));
    }
    s->trim_us = keeper_now() + (err ? s->trim_wait_us : TRIM_REST * took_us);
}

static void keeper_main(void *context) {
    keeper *k = context;
    weir_pipeline *pipeline = k->pipeline;
    weir_graph *graph = pipeline->graph;
    k->scrub_at_us = keeper_now() + pipeline->scrub_us / SCRUB_FIRST;
    while (weir_pipeline_sleep(pipeline, pipeline->keep_us)) {
        if (!keeper_look(k)) break;
        if (pipeline->scrub_us && keeper_now() >= k->scrub_at_us) keeper_scrub(k);
        /* One trim at a time: each needs room on the disk for as much as stays. */
        for (uint32_t i = 0; i < weir_graph_shards(graph) && keeper_goes_on(k); i++)
            if (keeper_now() >= k->shards[i].trim_us && weir_graph_trim_due(graph, i) && !weir_graph_health(graph))
                keeper_trim(k, i);
    }
    weir_free(k);
}

weir_err weir_keeper_start(weir_pipeline *pipeline) {
    if (!pipeline->repairs && !pipeline->scrub_us && !weir_graph_trims(pipeline->graph)) return WEIR_OK;
    keeper *k = weir_calloc(1, sizeof *k);
    if (!k) return WEIR_NOMEM("while looking after the store");
    k->pipeline = pipeline;
    weir_err err = weir_thread_start("keeper", WEIR_ROLE_INGEST, keeper_main, k, &pipeline->keeper);
    if (err) weir_free(k);
    return err;
}

void weir_keeper_stop(weir_pipeline *pipeline) {
    weir_thread_join(pipeline->keeper);
    pipeline->keeper = NULL;
}
