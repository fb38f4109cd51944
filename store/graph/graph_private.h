/* SPDX-License-Identifier: Apache-2.0 */
/* graph_private.h - the graph as a whole: what the files above its shards share. */
#ifndef WEIR_STORE_GRAPH_PRIVATE_H
#define WEIR_STORE_GRAPH_PRIVATE_H

#include <weir/store/base/file.h>

#include "names.h"
#include "shard.h"

#define WEIR_GRAPH_FORMAT          4u
#define WEIR_GRAPH_IDENTITY        "identity" /* in a shard's folder */
#define WEIR_GRAPH_CREATING        "CREATING"
#define WEIR_GRAPH_FILLING         "FILLING"
#define WEIR_GRAPH_TRIM_SUFFIX     ".trim" /* beside a shard's folder */
#define WEIR_GRAPH_PATH_MAX        4096u
#define WEIR_GRAPH_DESCRIPTION_MAX (1u << 20) /* bytes of graph.yaml */
#define WEIR_GRAPH_SOURCES_MAX     256u
#define WEIR_SOURCE_NAME_MAX       250u

typedef struct weir_graph_source_row {
    char name[WEIR_SOURCE_NAME_MAX + 1];
    uint64_t identity;
} weir_graph_source_row;

/* The kinds of one owner's features, laid out for weir_row_*. */
typedef struct weir_graph_kinds {
    weir_value_kind *kinds;
    size_t count;
} weir_graph_kinds;

struct weir_graph {
    char *folder;
    const weir_schema *schema; /* borrowed */
    weir_file *lock;
    weir_engine_cache *blocks;
    weir_names *names;
    weir_deleted_filter *deleted;
    weir_clock *clock;
    uint64_t identity; /* of the store; 0: it was made by a version that gave none */
    bool is_new;       /* it is being made */
    weir_watermark *watermark;
    bool read_only;
    uint32_t event_window;
    weir_id_key id_key; /* never changes once there is graph.yaml */
    bool opened;        /* as a whole: only then there is something to seal */
    atomic_bool filling;
    atomic_int_fast64_t trimmed_us; /* the latest of its shards'; WEIR_TRIMMED_NEVER: none was */
    uint32_t shard_count;
    weir_shard *shards[WEIR_SHARDS_MAX];
    weir_graph_kinds *vertex_kinds;   /* one a vertex type */
    weir_graph_kinds *relation_kinds; /* one a relation    */

    weir_mutex mutex; /* GRAPH; guards the sources */
    weir_graph_source_row sources[WEIR_GRAPH_SOURCES_MAX];
    uint32_t source_count;
    atomic_uint_fast64_t submit_wait_us;
};

/* "FOLDER/name" into path.  WEIR_ELIMIT. */
weir_err weir_graph_path(const char *folder, const char *name, char path[WEIR_GRAPH_PATH_MAX]);
/* "FOLDER/shard-007".  */
weir_err weir_graph_shard_path(const char *folder, uint32_t shard, char path[WEIR_GRAPH_PATH_MAX]);

/* identity.c: writes whose a shard's folder is.  WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM. */
weir_err weir_graph_identity_write(const weir_graph *graph, uint32_t shard, const char *shard_folder);
/* WEIR_EDATA the folder is another shard's; WEIR_ECORRUPT the identity is missing or damaged. */
weir_err weir_graph_identity_check(const weir_graph *graph, uint32_t shard);
/* Around the making of a store; begin chooses the identity.  WEIR_ECORRUPT there are shards already: graph.yaml is
 * lost. */
weir_err weir_graph_creation_begin(weir_graph *graph);
weir_err weir_graph_creation_end(const weir_graph *graph);

/* filling.c: the mark that the store is being filled is on the disk before the first shard that is filled; read:
 * whether it is there. */
weir_err weir_graph_filling_begin(weir_graph *graph);
weir_err weir_graph_filling_read(weir_graph *graph);
/* The mark into another folder, for a checkpoint. */
weir_err weir_graph_filling_write(const char *folder);

/* checkpoint.c: a new folder with copies of the files of another, each on the disk. */
weir_err weir_graph_copy_folder(const char *from, const char *to);
/* repair_base.c: the shard of the checkpoint in a folder of them that has most of the store's events is copied to a new
 * folder; *foundp: there was one. One that is damaged, or of another store, is passed over. */
weir_err weir_graph_repair_base(weir_graph *graph, uint32_t shard, const char *checkpoints, const char *folder,
                                bool *foundp);
/* repair.c: FOLDER/shard-NNN with a suffix. */
weir_err weir_graph_repair_path(const weir_graph *graph, uint32_t shard, const char *suffix,
                                char path[WEIR_GRAPH_PATH_MAX]);
/* repair.c: what cannot be opened becomes shard-NNN.damaged; in its place is what a checkpoint has, or, with *emptyp,
 * nothing but the identity. */
weir_err weir_graph_repair_set_aside(weir_graph *graph, uint32_t shard, const char *checkpoints, bool *emptyp);
/* Removes what a crash has left of repairs. */
weir_err weir_graph_repair_clean(const weir_graph *graph);

/* description.c: FOLDER/graph.yaml, what the store is; replaced whole, durably. Called under the mutex or before there
 * are readers. */
weir_err weir_graph_describe(const weir_graph *graph);
/* Sets shard_count, id_key, event_window, identity and the sources.  WEIR_ENOTFOUND; WEIR_EVERSION; WEIR_ECORRUPT its
 * checksum is wrong, WEIR_ECONFIG right, and it is no description; WEIR_ELIMIT, WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_graph_read_description(weir_graph *graph);
/* FOLDER/schema.yaml: compares what is stored with the graph's; writes it when it is new or has grown.  WEIR_EDATA
 * says the first difference; WEIR_ECORRUPT it is lost or cannot be read; errors of files. */
weir_err weir_graph_check_schema(weir_graph *graph);

#endif /* WEIR_STORE_GRAPH_PRIVATE_H */
