/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - which store a shard's folder belongs to, and which of its shards it is.
 *
 *   FOLDER/graph.yaml            store: "9f31c2d4e5f60718"
 *   FOLDER/shard-001/identity    store 9f31c2d4e5f60718 shard 1 of 2 check 6a09e667f3bcc908
 *   FOLDER/CREATING              while the store is made: what lies beside it without a graph.yaml was never in use
 *
 * A vertex is looked for in the shard that its id names: in two folders that were exchanged, or in one of another
 * store, every answer would be wrong, and all would look well. So each is compared when it is opened. And what
 * describes a store is never made anew over one: a new graph.yaml could have another number of shards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "graph_private.h"

#define IDENTITY_BYTES_MAX 128u

/* --- a shard ---------------------------------------------------------------------------------------------------- */

static size_t identity_text(uint64_t store, uint32_t shard, uint32_t shards, char text[IDENTITY_BYTES_MAX]) {
    int length = snprintf(text, IDENTITY_BYTES_MAX, "store %016" PRIx64 " shard %u of %u", store, shard, shards);
    length += snprintf(text + length, IDENTITY_BYTES_MAX - (size_t)length, " check %016llx\n",
                       (unsigned long long)weir_xxh3(text, (size_t)length, 0));
    WEIR_ASSERT(length > 0 && length < (int)IDENTITY_BYTES_MAX);
    return (size_t)length;
}

weir_err weir_graph_identity_write(const weir_graph *graph, uint32_t shard, const char *shard_folder) {
    char path[WEIR_GRAPH_PATH_MAX], text[IDENTITY_BYTES_MAX];
    WEIR_ASSERT(graph->identity && shard < graph->shard_count);
    size_t length = identity_text(graph->identity, shard, graph->shard_count, text);
    weir_err err = weir_graph_path(shard_folder, WEIR_GRAPH_IDENTITY, path);
    return err ? err : weir_file_replace(path, text, length);
}

static weir_err identity_other_shard(const weir_graph *graph, uint32_t shard, const char *path, const char *text) {
    char expected[IDENTITY_BYTES_MAX];
    char words[3][17];
    bool read = sscanf(text, "store %16[0-9a-f] shard %9[0-9] of %9[0-9]", words[0], words[1], words[2]) == 3;
    uint64_t store = read ? strtoull(words[0], NULL, 16) : 0;
    uint32_t index = read ? (uint32_t)strtoul(words[1], NULL, 10) : 0;
    uint32_t shards = read ? (uint32_t)strtoul(words[2], NULL, 10) : 0;
    if (read) identity_text(store, index, shards, expected);
    if (!read || strcmp(text, expected) != 0)
        return WEIR_ERR(WEIR_ECORRUPT, "%s is damaged; restore a checkpoint, or fill a new data folder from the log",
                        path);
    return WEIR_ERR(WEIR_EDATA,
                    "%s says shard %u of %u of store %016" PRIx64 ", and this is shard %u of %u of store %016" PRIx64
                    ": folders were exchanged or copied; put each where it belongs",
                    path, index, shards, store, shard, graph->shard_count, graph->identity);
}

weir_err weir_graph_identity_check(const weir_graph *graph, uint32_t shard) {
    char folder[WEIR_GRAPH_PATH_MAX], path[WEIR_GRAPH_PATH_MAX], expected[IDENTITY_BYTES_MAX], *text = NULL;
    size_t length, expected_length = identity_text(graph->identity, shard, graph->shard_count, expected);
    weir_err err = weir_graph_shard_path(graph->folder, shard, folder);
    if (!err) err = weir_graph_path(folder, WEIR_GRAPH_IDENTITY, path);
    if (!err && !weir_path_exists(path))
        return WEIR_ERR(WEIR_ECORRUPT,
                        "%s is missing, so shard %u of the store is not there or is another's; bring it back from a "
                        "copy, restore a checkpoint, or fill a new data folder from the log",
                        path, shard);
    if (!err) err = weir_file_load(path, IDENTITY_BYTES_MAX, &text, &length);
    if (!err && (length != expected_length || memcmp(text, expected, length) != 0))
        err = identity_other_shard(graph, shard, path, text);
    weir_free(text);
    return err;
}

/* --- the store -------------------------------------------------------------------------------------------------- */

static weir_err identity_find_shard(void *context, const char *name) {
    char *found = context;
    if (!found[0] && strncmp(name, "shard-", 6) == 0) snprintf(found, WEIR_GRAPH_PATH_MAX, "%s", name);
    return WEIR_OK;
}

static weir_err identity_remove_begun(void *context, const char *name) {
    const weir_graph *graph = context;
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(graph->folder, name, path);
    if (!err && strncmp(name, "shard-", 6) == 0) return weir_folder_remove(path);
    return !err && strcmp(name, WEIR_GRAPH_FILLING) == 0 ? weir_file_remove(path) : err;
}

weir_err weir_graph_creation_begin(weir_graph *graph) {
    char marker[WEIR_GRAPH_PATH_MAX], found[WEIR_GRAPH_PATH_MAX] = "";
    weir_err err = weir_graph_path(graph->folder, WEIR_GRAPH_CREATING, marker);
    if (!err) err = weir_folder_list(graph->folder, identity_find_shard, found);
    if (err) return err;
    if (found[0] && !weir_path_exists(marker))
        return WEIR_ERR(WEIR_ECORRUPT,
                        "%s has %s and no graph.yaml: that is lost, not new; bring it back from a checkpoint, or fill "
                        "a new data folder from the log",
                        graph->folder, found);
    err = weir_file_replace(marker, "", 0);
    if (!err)
        err = weir_folder_list(graph->folder, identity_remove_begun, graph); /* of a creation that was cut short */
    while (!graph->identity)
        graph->identity = weir_rng_fresh_seed();
    return err;
}

weir_err weir_graph_creation_end(const weir_graph *graph) {
    char marker[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(graph->folder, WEIR_GRAPH_CREATING, marker);
    return err || !weir_path_exists(marker) ? err : weir_file_remove(marker);
}
