/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nightly.c - `weir nightly`: from the living graph to a model that serves, if it is the better one.
 *
 *   checkpoint ─► snapshot ─► partition ─► train ─► judge it, and what serves, on the same targets ─► promote or keep
 *
 * The steps that need MPI or METIS are programs of their own; this one only starts them.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/signals.h>

#include "nightly_private.h"

extern const weir_command weir_command_nightly;

#define WORDS_OF_OUR_OWN 24u /* of a command line, at most */

/* folder: --data; then what is named lies in it, else it is a setting's. */
static weir_err place(const weir_night *night, const char *option, const char *name, weir_config_key key,
                      char path[WEIR_NIGHT_PATH_MAX]) {
    const char *given = option ? weir_cli_text(night->cli, option) : NULL, *data = weir_cli_text(night->cli, "data");
    if (given) return weir_night_path(path, given, NULL);
    if (data) return weir_night_path(path, data, name);
    return weir_night_path(path, weir_config_text(weir_cli_config(night->cli), key), NULL);
}

/* The store's sibling, with --data and without. */
static weir_err beside_store(const weir_night *night, const char *name, char path[WEIR_NIGHT_PATH_MAX]) {
    char folder[WEIR_NIGHT_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", night->store);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    return weir_night_path(path, slash ? folder : ".", name);
}

/* Keys beside the data count before those of the configuration; a key that is not there is none. */
static weir_err key_places(weir_night *night) {
    const char *otherwise = weir_config_text(weir_cli_config(night->cli), WEIR_CONFIG_MODELS_PUBLIC_KEYS);
    char beside[WEIR_NIGHT_PATH_MAX];
    weir_err err = place(night, "key", "models.key", WEIR_CONFIG_MODELS_SIGNING_KEY, night->key);
    if (!err) err = place(night, NULL, "models.pub", WEIR_CONFIG_MODELS_PUBLIC_KEYS, beside);
    if (!err) err = weir_night_path(night->public_keys, weir_public_keys_place(beside, otherwise), NULL);
    if (!err && !weir_cli_given(night->cli, "key") && !weir_path_exists(night->key)) night->key[0] = 0;
    return err;
}

static weir_err read_places(weir_night *night) {
    const char *nights = weir_cli_text(night->cli, "folder");
    weir_err err = place(night, NULL, "store", WEIR_CONFIG_STORE_PATH, night->store);
    if (!err) err = place(night, "models", "models", WEIR_CONFIG_MODELS_PATH, night->models);
    if (!err) err = beside_store(night, "checkpoints", night->checkpoints);
    if (!err)
        err = nights ? weir_night_path(night->nights, nights, NULL) : beside_store(night, "nights", night->nights);
    return err ? err : key_places(night);
}

static weir_err read_arguments(weir_cli *cli, weir_night *night) {
    *night = (weir_night){.cli = cli, .lock = -1, .ranks = 1, .keep = 7};
    night->server = weir_cli_text(cli, "server");
    night->server_key_file = weir_cli_text(cli, "api-key-file");
    night->force = weir_cli_given(cli, "force");
    night->dry_run = weir_cli_given(cli, "dry-run");
    night->accept_unsigned = !weir_config_bool(weir_cli_config(cli), WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE);
    weir_err err = weir_cli_u64(cli, "ranks", 1, WEIR_NIGHT_RANKS_MAX, &night->ranks);
    night->parts = night->ranks;
    if (!err) err = weir_cli_u64(cli, "parts", 1, WEIR_NIGHT_RANKS_MAX, &night->parts);
    if (!err) err = weir_cli_u64(cli, "keep", 1, WEIR_NIGHT_KEEP_MAX, &night->keep);
    if (!err) err = weir_cli_f64(cli, "tolerance", 0, 1, &night->tolerance);
    if (!err && night->parts != night->ranks)
        err = WEIR_ERR(WEIR_EUSAGE,
                       "%llu ranks cannot share %llu parts; each takes one: give --parts as --ranks, or leave it out",
                       (unsigned long long)night->ranks, (unsigned long long)night->parts);
    if (!err && weir_cli_positional_count(cli) + WORDS_OF_OUR_OWN > WEIR_NIGHT_WORDS_MAX)
        err = WEIR_ERR(WEIR_EUSAGE, "at most %u words may follow --", WEIR_NIGHT_WORDS_MAX - WORDS_OF_OUR_OWN);
    return err ? err : read_places(night);
}

/* Before anything is begun. */
static weir_err check_source(const weir_night *night) {
    const char *given = weir_cli_text(night->cli, "checkpoint");
    const char *source = given ? given : night->store;
    if ((night->server && !given) || weir_path_exists(source)) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND, "there is no %s in %s; name its folder with %s", given ? "checkpoint" : "store",
                    source, given ? "--checkpoint" : "--data");
}

/* What could not be promoted at the end is not trained. */
static weir_err check_register(const weir_night *night) {
    char serving[WEIR_MODEL_ID_MAX];
    return weir_night_find_serving(night, serving);
}

static weir_err rehearse(weir_night *night) {
    const char *name = weir_cli_text(night->cli, "name");
    snprintf(night->name, sizeof night->name, "%s", name ? name : "NIGHT");
    weir_err err = weir_night_path(night->folder, night->nights, night->name);
    return err ? err : weir_night_go(night);
}

static weir_err run(weir_cli *cli) {
    weir_night *night = weir_calloc(1, sizeof *night);
    if (!night) return WEIR_NOMEM("for a night");
    weir_err err = read_arguments(cli, night);
    if (!err && night->dry_run) {
        err = rehearse(night);
    } else if (!err) {
        err = check_source(night);
        if (!err) err = check_register(night);
        if (!err) err = weir_signals_install();
        if (!err) err = weir_night_open(night, weir_cli_text(cli, "name"), weir_cli_given(cli, "resume"));
        if (!err) err = weir_night_go(night);
        if (!err) err = weir_night_prune(night);
    }
    weir_night_close(night);
    weir_free(night);
    return err;
}

static const weir_option options[] = {
    {"data", 'd', "DIR", "folder of store and models (default: store.path and models.path)", NULL},
    {"models", 'm', "DIR", "register of models (default: models beside the data, or models.path)", NULL},
    {"folder", 'f', "DIR", "of the nights, a folder each (default: nights beside the store)", NULL},
    {"server", 's', "URL", "of a `weir serve` on the data: it is asked for a checkpoint (default: the store is read)",
     NULL},
    {"api-key-file", 0, "FILE", "holds the key of an admin of that server (default: none)", NULL},
    {"checkpoint", 'c', "DIR", "read this checkpoint (default: ask the server, or read the store)", NULL},
    {"ranks", 'n', "N", "train with so many, by mpirun (default: 1)", NULL},
    {"parts", 'p', "K", "of the graph, for several ranks (default: as many as ranks)", NULL},
    {"key", 'k', "FILE", "secret key that signs the model (default: models.key beside the data, or models.signing_key)",
     NULL},
    {"tolerance", 't', "X", "promote even if it is worse by so much (default: 0: only if it is better)", NULL},
    {"force", 0, NULL, "promote whatever the figures say", NULL},
    {"name", 0, "NAME", "of the night; one that was begun is gone on with (default: the time)", NULL},
    {"resume", 'r', NULL, "go on with the newest night if it was cut off, else begin one", NULL},
    {"keep", 0, "N", "nights; older ones are removed (default: 7)", NULL},
    {"dry-run", 0, NULL, "say what would be done, and do nothing", NULL},
    {0}};

const weir_command weir_command_nightly = {
    .name = "nightly",
    .summary = "train a model on the graph as it is now, and let it serve if it is the better one",
    .positional = "[-- OPTION...]",
    .positional_max = WEIR_NIGHT_WORDS_MAX,
    .description =
        "Checkpoint, snapshot, parts, training, comparison with the model that serves on the same held-out targets, "
        "promotion. What stands behind -- goes to `weir train`. A night that was cut off, even by kill -9, goes on "
        "where "
        "it was with --resume. Whatever fails, the old model goes on serving.",
    .example = "weir nightly --data weir-data --server http://127.0.0.1:8080\n"
               "weir nightly --data weir-data --ranks 4 --dry-run\n"
               "weir nightly --data weir-data -- --epochs 40 --hidden 128",
    .options = options,
    .run = run,
};
