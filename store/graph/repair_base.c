/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair_base.c - what checkpoints give to a repair, so that it need not read the log from its beginning.
 *
 *   files    a checkpoint has the very file that is damaged: it comes back, and nothing has to be made anew
 *   a base   of the checkpoints of this store that are whole, the one whose shard has most events: the log has the
 *            rest. A damaged one is not believed, nor one that has more than the store has: that is of another life
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/graph/repair.h>
#include <weir/store/trust/trust.h>

#include "cold.h"
#include "graph_private.h"

typedef struct repair_choice {
    weir_graph *graph;
    uint32_t shard;
    const char *checkpoints;
    uint64_t below; /* only those that have fewer events: the others were tried */
    uint64_t events;
    char best[WEIR_GRAPH_PATH_MAX]; /* "": none */
} repair_choice;

/* Sources have numbers in the order in which they came, so those of a checkpoint are the first of the store's. */
static bool repair_is_of_store(const weir_graph *graph, const char *checkpoint) {
    weir_graph *described = weir_calloc(1, sizeof *described);
    char folder[WEIR_GRAPH_PATH_MAX];
    if (!described) return false;
    snprintf(folder, sizeof folder, "%s", checkpoint);
    described->folder = folder;
    weir_err err = weir_graph_read_description(described);
    bool same = !err && described->identity == graph->identity && described->shard_count == graph->shard_count &&
                memcmp(&described->id_key, &graph->id_key, sizeof graph->id_key) == 0 &&
                described->source_count <= graph->source_count;
    for (uint32_t i = 0; same && i < described->source_count; i++)
        same = strcmp(described->sources[i].name, graph->sources[i].name) == 0 &&
               described->sources[i].identity == graph->sources[i].identity;
    weir_free(described);
    return same;
}

typedef struct repair_sum {
    weir_offsets *sealed; /* of the store; NULL: it cannot be opened */
    uint64_t events;
} repair_sum;

static weir_err repair_sum_offset(void *context, const void *key, size_t key_length, const void *value,
                                  size_t value_length) {
    repair_sum *sum = context;
    uint32_t source, partition;
    uint64_t offset, sealed;
    weir_event_clock clock;
    if (!weir_shard_offset_read(key, key_length, value, value_length, &source, &partition, &offset, &clock))
        return WEIR_ERR(WEIR_ECORRUPT, "an offset of the checkpoint is damaged");
    if (sum->sealed && (!weir_offsets_get(sum->sealed, source, partition, &sealed) || offset > sealed))
        return WEIR_ERR(WEIR_EDATA, "the checkpoint has events that the store does not have");
    sum->events += offset;
    return WEIR_OK;
}

static weir_err repair_look_at(void *context, const char *name) {
    repair_choice *choice = context;
    char checkpoint[WEIR_GRAPH_PATH_MAX], path[WEIR_GRAPH_PATH_MAX];
    const weir_engine_opts opts = {.read_only = true};
    const weir_shard *shard = choice->graph->shards[choice->shard];
    repair_sum sum = {.sealed = shard ? shard->sealed : NULL};
    weir_engine *engine = NULL;
    weir_err err = weir_graph_path(choice->checkpoints, name, checkpoint);
    if (!err) err = weir_graph_shard_path(checkpoint, choice->shard, path);
    if (err || !weir_path_exists(path) || !repair_is_of_store(choice->graph, checkpoint)) return WEIR_OK;
    err = weir_engine_open(path, &opts, &engine);
    if (!err) err = weir_cold_scan_kind(engine, 'O', repair_sum_offset, &sum);
    weir_engine_close(engine);
    if (err || sum.events >= choice->below || sum.events <= choice->events) return WEIR_OK;
    choice->events = sum.events;
    memcpy(choice->best, checkpoint, sizeof choice->best);
    return WEIR_OK;
}

weir_err weir_graph_repair_base(weir_graph *graph, uint32_t shard, const char *checkpoints, const char *folder,
                                bool *foundp) {
    char from[WEIR_GRAPH_PATH_MAX];
    repair_choice *choice = weir_calloc(1, sizeof *choice);
    if (!choice) return WEIR_NOMEM("while looking at the checkpoints");
    *choice = (repair_choice){.graph = graph, .shard = shard, .checkpoints = checkpoints, .below = UINT64_MAX};
    weir_err err = WEIR_OK;
    *foundp = false;
    while (!err && !*foundp && weir_path_exists(checkpoints)) {
        choice->best[0] = 0;
        choice->events = 0;
        err = weir_folder_list(checkpoints, repair_look_at, choice);
        if (err || !choice->best[0]) break;
        choice->below = choice->events;
        weir_err copy_err = weir_manifest_verify(choice->best);
        if (!copy_err) copy_err = weir_graph_shard_path(choice->best, choice->shard, from);
        if (!copy_err) copy_err = weir_graph_copy_folder(from, folder);
        *foundp = !copy_err;
        if (!copy_err) {
            WEIR_LOG(INFO, "store.repair_from", "the repair begins from a checkpoint",
                     WEIR_TEXT("checkpoint", choice->best), WEIR_U64("events", choice->events));
        } else {
            weir_log_error("store.repair_not_from", copy_err);
            if (weir_path_exists(folder)) err = weir_folder_remove(folder);
        }
    }
    weir_free(choice);
    return err;
}

/* --- single files ----------------------------------------------------------------------------------------------- */

typedef struct repair_copies {
    const weir_graph *graph;
    uint32_t shard;
    const char *checkpoints;
    char **folders;
    size_t count;
} repair_copies;

/* Names come in their order, and mostly tell the time: the last one stands first. What is a hard link of the damaged
 * file has the same damage. */
static weir_err repair_add_copy(void *context, const char *name) {
    repair_copies *c = context;
    char checkpoint[WEIR_GRAPH_PATH_MAX], path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(c->checkpoints, name, checkpoint);
    if (!err) err = weir_graph_shard_path(checkpoint, c->shard, path);
    if (err || weir_graph_checkpoint_shares(checkpoint) || !weir_path_exists(path) ||
        !repair_is_of_store(c->graph, checkpoint))
        return WEIR_OK;
    char **folders = weir_realloc_array(c->folders, c->count + 1, sizeof *folders), *folder = weir_strdup(path);
    if (folders) c->folders = folders;
    if (!folders || !folder) {
        weir_free(folder);
        return WEIR_NOMEM("while looking at the checkpoints");
    }
    memmove(folders + 1, folders, c->count * sizeof *folders);
    folders[0] = folder;
    c->count++;
    return WEIR_OK;
}

weir_err weir_graph_repair_files(weir_graph *graph, uint32_t shard, const char *checkpoints,
                                 weir_graph_repair_go_on go_on, void *context, uint32_t *restoredp, uint32_t *leftp) {
    repair_copies c = {.graph = graph, .shard = shard, .checkpoints = checkpoints};
    char aside[WEIR_GRAPH_PATH_MAX];
    *restoredp = 0;
    *leftp = UINT32_MAX;
    weir_err err = weir_graph_repair_path(graph, shard, ".repair", aside);
    if (!err && checkpoints && weir_path_exists(checkpoints)) err = weir_folder_list(checkpoints, repair_add_copy, &c);
    if (!err && c.count > 0) {
        const weir_engine_copies copies = {(const char *const *)c.folders, c.count, aside, go_on, context};
        if (weir_path_exists(aside)) err = weir_folder_remove(aside);
        if (!err) err = weir_folder_create(aside);
        if (!err) err = weir_engine_restore(graph->shards[shard]->engine, &copies, restoredp, leftp);
        weir_err left = weir_path_exists(aside) ? weir_folder_remove(aside) : WEIR_OK;
        if (left) weir_log_error("graph.repair_left", left); /* the next repair, or the next start, removes it */
    }
    for (size_t i = 0; i < c.count; i++)
        weir_free(c.folders[i]);
    weir_free(c.folders);
    return err;
}
