/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.h - every kind of file that Weir writes and reads, and by whom it is read. */
#ifndef WEIR_CRASH_FLIPS_KINDS_H
#define WEIR_CRASH_FLIPS_KINDS_H

#include <fnmatch.h>

#include "readers.h"

#define PATTERNS_MAX 4
#define READERS_MAX  4
#define FOLDERS_MAX  6
#define FILES_MAX    1024

typedef struct trial_reader {
    const char *name;
    void (*read)(trial *r);
} trial_reader;

typedef struct kind {
    const char *name;
    const char *patterns[PATTERNS_MAX]; /* of paths below the world's folder */
    trial_reader readers[READERS_MAX];
    const char *folders[FOLDERS_MAX]; /* what they need a copy of */
} kind;

static const kind kinds[] = {
    {"sorted file",
     {"d/store/shard-*/*.sst"},
     {{"serve", read_by_server}, {"live", read_while_it_serves}, {"store", read_store}},
     SERVER_FOLDERS},
    {"RocksDB's manifest",
     {"d/store/shard-*/MANIFEST-*"},
     {{"serve", read_by_server}, {"live", read_while_it_serves}, {"store", read_store}},
     SERVER_FOLDERS},
    {"RocksDB's CURRENT",
     {"d/store/shard-*/CURRENT"},
     {{"serve", read_by_server}, {"store", read_store}},
     SERVER_FOLDERS},
    {"RocksDB's options",
     {"d/store/shard-*/OPTIONS-*"},
     {{"serve", read_by_server}, {"store", read_store}},
     SERVER_FOLDERS},
    {"RocksDB's identity, logs and locks",
     {"d/store/shard-*/IDENTITY", "d/store/shard-*/LOG*", "d/store/shard-*/*.log", "*LOCK"},
     {{"serve", read_by_server}},
     SERVER_FOLDERS},
    {"graph.yaml, identity of a shard",
     {"d/store/graph.yaml", "d/store/shard-*/identity"},
     {{"serve", read_by_server}, {"live", read_while_it_serves}, {"store", read_store}},
     SERVER_FOLDERS},
    {"schema.yaml", {"d/store/schema.yaml"}, {{"serve", read_by_server}, {"store", read_store}}, SERVER_FOLDERS},
    {"positions", {"d/store/positions"}, {{"serve", read_by_server}, {"live", read_while_it_serves}}, SERVER_FOLDERS},
    {"event log: segment",
     {"d/eventlog/payments/*.seg", "d/eventlog/chargebacks/*.seg"},
     {{"serve", read_by_server}, {"rebuild", read_to_rebuild}, {"live", read_while_it_serves}, {"log", read_log}},
     SERVER_FOLDERS},
    {"event log: durable",
     {"d/eventlog/*/durable"},
     {{"serve", read_by_server}, {"rebuild", read_to_rebuild}, {"live", read_while_it_serves}, {"log", read_log}},
     SERVER_FOLDERS},
    {"event log: topic",
     {"d/eventlog/*/topic"},
     {{"serve", read_by_server}, {"rebuild", read_to_rebuild}, {"log", read_log}},
     SERVER_FOLDERS},
    {"dead letters",
     {"d/eventlog/dead-letters/*.seg"},
     {{"serve", read_by_server}, {"dlq", read_letters}},
     SERVER_FOLDERS},
    {"checkpoint", {"d/checkpoints/c/*"}, {{"restore", read_checkpoint}}, {"d/checkpoints"}},
    {"model",
     {"d/models/2*"},
     {{"serve", read_by_server}, {"live", read_while_it_serves}, {"verify", read_model}},
     SERVER_FOLDERS},
    {"models: current",
     {"d/models/current"},
     {{"serve", read_by_server}, {"live", read_while_it_serves}, {"verify", read_model}},
     SERVER_FOLDERS},
    {"models: public key", {"d/models.pub"}, {{"serve", read_by_server}, {"verify", read_model}}, SERVER_FOLDERS},
    {"models: secret key",
     {"d/models.key"},
     {{"train", read_secret_key}},
     {"d/nights/n/snapshot", "d/models", "d/models.key", "d/models.pub"}},
    {"API keys", {"d/keys"}, {{"serve", read_keys}}, SERVER_FOLDERS},
    {"snapshot",
     {"d/nights/n/snapshot/*"},
     {{"export", read_snapshot}, {"partition", read_snapshot_to_cut}, {"train", read_to_train}},
     {"d/nights/n/snapshot"}},
    {"part", {"parts/*"}, {{"train", read_to_train_on_part}}, {"parts"}},
    {"training's checkpoint",
     {"d/nights/n/train/checkpoint/*"},
     {{"resume", read_to_resume}},
     {"d/nights/n/snapshot", "d/nights/n/train"}},
    {"a night's state and figures",
     {"d/nights/n/night.json", "d/nights/n/train/*", "d/nights/n/*.log"},
     {{"serve", read_by_server}},
     SERVER_FOLDERS},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* --- the files of each kind ---------------------------------------------------------------------------------*/

typedef struct kind_files {
    char *paths[FILES_MAX];
    size_t count;
} kind_files;

static kind_files files[KINDS];

/* The first kind whose pattern matches. A star matches slashes too. */
static inline size_t kind_of(const char *path) {
    for (size_t k = 0; k < KINDS; k++)
        for (size_t p = 0; p < PATTERNS_MAX && kinds[k].patterns[p]; p++)
            if (fnmatch(kinds[k].patterns[p], path, 0) == 0) return k;
    return KINDS;
}

typedef struct walk {
    const char *root, *below;
} walk;

static inline weir_err kind_walk(void *context, const char *name) {
    const walk *w = context;
    char below[PATH_LENGTH], path[PATH_LENGTH];
    struct stat status;
    snprintf(below, sizeof below, "%s%s%s", w->below, *w->below ? "/" : "", name);
    snprintf(path, sizeof path, "%s/%s", w->root, below);
    assert_int_equal(stat(path, &status), 0);
    walk deeper = {w->root, below};
    if (S_ISDIR(status.st_mode)) return weir_folder_list(path, kind_walk, &deeper);
    if (status.st_size == 0) return WEIR_OK; /* nothing to damage */
    size_t k = kind_of(below);
    if (k == KINDS) fail_msg("%s is of no kind; give it a row in kinds.h", below);
    assert_true(files[k].count < FILES_MAX);
    files[k].paths[files[k].count++] = strdup(below);
    return WEIR_OK;
}

static inline int path_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of the folders that are damaged; every file has a kind, and every kind a file. */
static inline void kinds_find(const char *folder) {
    static const char *const roots[] = {"d", "parts"};
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_LENGTH];
        walk w = {folder, roots[i]};
        snprintf(path, sizeof path, "%s/%s", folder, roots[i]);
        assert_ok(weir_folder_list(path, kind_walk, &w));
    }
    for (size_t k = 0; k < KINDS; k++) {
        if (!files[k].count) fail_msg("there is no file of the kind '%s'", kinds[k].name);
        qsort(files[k].paths, files[k].count, sizeof *files[k].paths, path_order);
    }
}

static inline size_t kind_readers(const kind *k) {
    size_t count = 0;
    while (count < READERS_MAX && k->readers[count].read)
        count++;
    return count;
}

#endif /* WEIR_CRASH_FLIPS_KINDS_H */
