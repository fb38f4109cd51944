/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - the whole store as a folder that can be copied away, and back.
 *
 *   seal ──► FOLDER.partial/{graph.yaml, schema.yaml, shard-*} ──► MANIFEST ──► rename to FOLDER
 *
 * Hard links cost nothing and are no second copy: a bit that flips in one file is flipped in both. So files are copied,
 * byte by byte, unless the caller wants links; then the file SHARED says so.
 *
 * Shards are sealed one after the other while events go on, so their offsets differ. That is no harm: each is complete
 * below its own, and a restored store reads the log from the least of them (GRAPH-S1, GRAPH-S4).
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/trust/trust.h>

#include "graph_private.h"

#define SHARED "SHARED" /* in a checkpoint whose files are the store's own */

/* What a crash has left of one under construction makes room. */
static weir_err checkpoint_begin(const char *folder, char partial[WEIR_GRAPH_PATH_MAX]) {
    if (weir_path_exists(folder)) return WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder", folder);
    int length = snprintf(partial, WEIR_GRAPH_PATH_MAX, "%s.partial", folder);
    if (length < 0 || length >= (int)WEIR_GRAPH_PATH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    return weir_path_exists(partial) ? weir_folder_remove(partial) : WEIR_OK;
}

typedef struct checkpoint_copy {
    const char *from, *to;
} checkpoint_copy;

static weir_err checkpoint_copy_entry(void *context, const char *name) {
    const checkpoint_copy *c = context;
    char from[WEIR_GRAPH_PATH_MAX], to[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(c->from, name, from);
    if (!err) err = weir_graph_path(c->to, name, to);
    return err ? err : weir_file_copy(from, to, UINT64_MAX);
}

weir_err weir_graph_copy_folder(const char *from, const char *to) {
    checkpoint_copy c = {from, to};
    weir_err err = weir_folder_create(to);
    if (!err) err = weir_folder_list(from, checkpoint_copy_entry, &c);
    return err ? err : weir_folder_sync(to);
}

/* graph.yaml has the secret that ids depend on: its copy is its owner's alone too. */
static weir_err checkpoint_copy_description(const char *from_folder, const char *to_folder) {
    char from[WEIR_GRAPH_PATH_MAX], to[WEIR_GRAPH_PATH_MAX], *text = NULL;
    size_t length;
    weir_err err = weir_graph_path(from_folder, "graph.yaml", from);
    if (!err) err = weir_graph_path(to_folder, "graph.yaml", to);
    if (!err) err = weir_file_load(from, WEIR_GRAPH_DESCRIPTION_MAX, &text, &length);
    if (!err) err = weir_file_replace_secret(to, text, length);
    weir_free(text);
    return err;
}

static weir_err checkpoint_copy_named(const char *from_folder, const char *to_folder, const char *name) {
    checkpoint_copy c = {from_folder, to_folder};
    return checkpoint_copy_entry(&c, name);
}

/* The identity of each comes last: the engine makes the folder, and its own files. */
static weir_err checkpoint_shards(weir_graph *graph, const char *partial, bool hard_links, uint64_t *sharedp) {
    char from[WEIR_GRAPH_PATH_MAX], to[WEIR_GRAPH_PATH_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        uint64_t shared = 0;
        err = weir_graph_shard_path(graph->folder, i, from);
        if (!err) err = weir_graph_shard_path(partial, i, to);
        if (!err) err = weir_engine_checkpoint(graph->shards[i]->engine, to, hard_links, &shared);
        if (!err && graph->identity) {
            err = checkpoint_copy_named(from, to, WEIR_GRAPH_IDENTITY);
            if (!err) err = weir_folder_sync(to);
        }
        *sharedp += shared;
        weir_kill_point("checkpoint.shard");
    }
    return err;
}

static weir_err checkpoint_say_shared(const weir_graph *graph, const char *partial, uint64_t files) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_buf text = {0};
    weir_err err = weir_graph_path(partial, SHARED, path);
    weir_buf_printf(&text, "%llu files here are hard links to files of the store %s: what damages one damages both.\n",
                    (unsigned long long)files, graph->folder);
    if (!err) err = weir_buf_err(&text);
    if (!err) err = weir_file_replace(path, text.bytes, text.length);
    weir_buf_free(&text);
    return err;
}

static weir_err checkpoint_write(weir_graph *graph, const char *folder, bool hard_links) {
    char partial[WEIR_GRAPH_PATH_MAX];
    uint64_t shared = 0;
    weir_err err = checkpoint_begin(folder, partial);
    if (err) return err;
    /* Asked before the seal: what is sealed now may be less than what the store has when it is filled. */
    bool filling = weir_graph_filling(graph);
    if (!graph->read_only) err = weir_graph_seal(graph);
    if (!err) err = weir_folder_create(partial);
    weir_mutex_lock(&graph->mutex); /* no source may be registered while the descriptions are copied */
    if (!err) err = checkpoint_copy_description(graph->folder, partial);
    if (!err) err = checkpoint_copy_named(graph->folder, partial, "schema.yaml");
    if (!err && filling) err = weir_graph_filling_write(partial);
    weir_mutex_unlock(&graph->mutex);
    if (!err) err = checkpoint_shards(graph, partial, hard_links, &shared);
    if (!err && shared) err = checkpoint_say_shared(graph, partial, shared);
    if (!err) err = weir_manifest_write(partial);
    weir_kill_point("checkpoint.whole");
    if (!err) err = weir_file_rename(partial, folder);
    if (err && weir_path_exists(partial)) weir_folder_remove(partial);
    return err;
}

weir_err weir_graph_checkpoint(weir_graph *graph, const char *folder) {
    return checkpoint_write(graph, folder, false);
}

weir_err weir_graph_checkpoint_linked(weir_graph *graph, const char *folder) {
    return checkpoint_write(graph, folder, true);
}

bool weir_graph_checkpoint_shares(const char *checkpoint) {
    char path[WEIR_GRAPH_PATH_MAX];
    return !weir_graph_path(checkpoint, SHARED, path) && weir_path_exists(path);
}

/* --- restore ---------------------------------------------------------------------------------------------------- */

static weir_err checkpoint_restore_entry(void *context, const char *name) {
    const checkpoint_copy *c = context;
    char from[WEIR_GRAPH_PATH_MAX], to[WEIR_GRAPH_PATH_MAX];
    if (strcmp(name, "graph.yaml") == 0) return checkpoint_copy_description(c->from, c->to);
    if (strncmp(name, "shard-", 6) != 0) {
        bool own = strcmp(name, "MANIFEST") == 0 || strcmp(name, SHARED) == 0; /* of the checkpoint, not of the store */
        return own ? WEIR_OK : checkpoint_copy_named(c->from, c->to, name);
    }
    weir_err err = weir_graph_path(c->from, name, from);
    if (!err) err = weir_graph_path(c->to, name, to);
    return err ? err : weir_graph_copy_folder(from, to);
}

weir_err weir_graph_restore(const char *checkpoint, const char *folder) {
    char partial[WEIR_GRAPH_PATH_MAX];
    weir_err err = checkpoint_begin(folder, partial);
    if (!err) err = weir_manifest_verify(checkpoint);
    if (err) return err;
    checkpoint_copy c = {checkpoint, partial};
    err = weir_folder_create(partial);
    if (!err) err = weir_folder_list(checkpoint, checkpoint_restore_entry, &c);
    if (!err) err = weir_folder_sync(partial);
    if (!err) err = weir_file_rename(partial, folder);
    if (err && weir_path_exists(partial)) weir_folder_remove(partial);
    return err;
}
