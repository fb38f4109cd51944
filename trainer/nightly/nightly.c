/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nightly.c - `weir nightly`: from the living graph to a model that serves, if it is surely the better one.
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

#define NIGHTLY_OWN_WORDS 24u /* of the longest command line, without those behind -- */
#define NIGHTLY_DEPTH_MAX 7u  /* of weir partition */

/* What an option names; else it lies in --data; else a setting says where. */
static weir_err nightly_place(const weir_night *night, const char *option, const char *name, weir_config_key key,
                              char path[WEIR_NIGHT_PATH_MAX]) {
    const char *given = option ? weir_cli_text(night->cli, option) : NULL, *data = weir_cli_text(night->cli, "data");
    if (given) return weir_night_path(path, given, NULL);
    if (data) return weir_night_path(path, data, name);
    return weir_night_path(path, weir_config_text(weir_cli_config(night->cli), key), NULL);
}

static weir_err nightly_read_places(weir_night *night) {
    const char *nights = weir_cli_text(night->cli, "folder");
    const char *public_keys = weir_config_text(weir_cli_config(night->cli), WEIR_CONFIG_MODELS_PUBLIC_KEYS);
    char beside_data[WEIR_NIGHT_PATH_MAX];
    weir_err err = nightly_place(night, NULL, "store", WEIR_CONFIG_STORE_PATH, night->store);
    if (!err) err = nightly_place(night, "models", "models", WEIR_CONFIG_MODELS_PATH, night->models);
    if (!err) err = weir_path_beside(night->checkpoints, sizeof night->checkpoints, night->store, "checkpoints");
    if (!err && nights) err = weir_night_path(night->nights, nights, NULL);
    if (!err && !nights) err = weir_path_beside(night->nights, sizeof night->nights, night->store, "nights");

    /* Keys beside the data count before those of the configuration; a secret key that is not there is none. */
    if (!err) err = nightly_place(night, "key", "models.key", WEIR_CONFIG_MODELS_SIGNING_KEY, night->key);
    if (!err) err = nightly_place(night, NULL, "models.pub", WEIR_CONFIG_MODELS_PUBLIC_KEYS, beside_data);
    if (!err) err = weir_night_path(night->public_keys, weir_public_keys_place(beside_data, public_keys), NULL);
    if (!err && !weir_cli_given(night->cli, "key") && !weir_path_exists(night->key)) night->key[0] = 0;
    return err;
}

static weir_err nightly_read_arguments(weir_cli *cli, weir_night *night) {
    *night = (weir_night){.cli = cli, .lock = -1, .ranks = 1, .depth = 1, .keep = 7};
    night->server = weir_cli_text(cli, "server");
    night->server_key_file = weir_cli_text(cli, "api-key-file");
    night->force = weir_cli_given(cli, "force");
    night->dry_run = weir_cli_given(cli, "dry-run");
    night->accept_unsigned = !weir_config_bool(weir_cli_config(cli), WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE);
    weir_err err = weir_cli_u64(cli, "ranks", 1, WEIR_NIGHT_RANKS_MAX, &night->ranks);
    night->parts = night->ranks;
    if (!err) err = weir_cli_u64(cli, "parts", 1, WEIR_NIGHT_RANKS_MAX, &night->parts);
    if (!err) err = weir_cli_u64(cli, "depth", 0, NIGHTLY_DEPTH_MAX, &night->depth);
    if (!err) err = weir_cli_u64(cli, "keep", 1, WEIR_NIGHT_KEEP_MAX, &night->keep);
    if (!err) err = weir_cli_f64(cli, "tolerance", 0, 1, &night->tolerance);
    if (!err && night->parts != night->ranks)
        err = WEIR_ERR(WEIR_EUSAGE,
                       "%llu ranks cannot share %llu parts; each rank takes one: give --parts as --ranks, or omit it",
                       (unsigned long long)night->ranks, (unsigned long long)night->parts);
    if (!err && weir_cli_positional_count(cli) + NIGHTLY_OWN_WORDS > WEIR_CHILD_WORDS_MAX)
        err = WEIR_ERR(WEIR_EUSAGE, "at most %u words may follow --", WEIR_CHILD_WORDS_MAX - NIGHTLY_OWN_WORDS);
    return err ? err : nightly_read_places(night);
}

/* Before anything is begun: what is read has to be there, and what could not be promoted at the end is not trained. */
static weir_err nightly_check(const weir_night *night) {
    const char *checkpoint = weir_cli_text(night->cli, "checkpoint");
    const char *source = checkpoint ? checkpoint : night->store;
    char serving[WEIR_MODEL_ID_MAX];
    if ((checkpoint || !night->server) && !weir_path_exists(source))
        return WEIR_ERR(WEIR_ENOTFOUND, "there is no %s in %s; name its folder with %s",
                        checkpoint ? "checkpoint" : "store", source, checkpoint ? "--checkpoint" : "--data");
    return weir_night_find_serving(night, serving);
}

static weir_err nightly_run(weir_cli *cli) {
    const char *name = weir_cli_text(cli, "name");
    weir_night *night = weir_calloc(1, sizeof *night);
    if (!night) return WEIR_NOMEM("for a night");
    weir_err err = nightly_read_arguments(cli, night);
    if (!err && night->dry_run) {
        snprintf(night->name, sizeof night->name, "%s", name ? name : "NIGHT");
        err = weir_night_place(night);
        if (!err) err = weir_night_go(night);
    } else if (!err) {
        err = nightly_check(night);
        if (!err) err = weir_signals_install();
        if (!err) err = weir_night_open(night, name, weir_cli_given(cli, "resume"));
        if (!err) err = weir_night_go(night);
        if (!err) err = weir_night_prune(night);
    }
    weir_night_close(night);
    weir_free(night);
    return err;
}

static const weir_option options[] = {
    {"data", 'd', "DIR", "folder of the store and the models (default: store.path and models.path)", NULL},
    {"models", 'm', "DIR", "folder of the trained models (default: models beside the data, or models.path)", NULL},
    {"folder", 'f', "DIR", "folder of the nights (default: nights beside the store)", NULL},
    {"server", 's', "URL",
     "ask this `weir serve`, which runs on the data, for a checkpoint (default: read the store itself)", NULL},
    {"api-key-file", 0, "FILE", "file with an admin's API key of that server (default: none)", NULL},
    {"checkpoint", 'c', "DIR", "read this checkpoint (default: ask the server, or read the store)", NULL},
    {"ranks", 'n', "N", "train with N ranks, by mpirun (default: 1)", NULL},
    {"parts", 'p', "K", "cut the graph into K parts for several ranks (default: as many as ranks)", NULL},
    {"depth", 0, "N",
     "how many steps from its own vertices a part has edges; ranks ask each other for those beyond (default: 1)", NULL},
    {"key", 'k', "FILE", "secret key that signs the model (default: models.key beside the data, or models.signing_key)",
     NULL},
    {"tolerance", 't', "X", "promote a model that is worse by up to X (default 0: only one that is surely better)",
     NULL},
    {"force", 0, NULL, "promote the new model whatever its figures", NULL},
    {"name", 0, "NAME", "name of the night; one that was begun continues (default: the time)", NULL},
    {"resume", 'r', NULL, "continue the newest night if it was cut off, else begin one", NULL},
    {"keep", 0, "N", "keep the newest N nights and remove older ones (default: 7)", NULL},
    {"dry-run", 0, NULL, "print what would be done, and do nothing", NULL},
    {0}};

const weir_command weir_command_nightly = {
    .name = "nightly",
    .summary =
        "train a model on the graph as it is now, and promote it if it is surely better than the one that serves",
    .positional = "[-- OPTION...]",
    .positional_max = WEIR_CHILD_WORDS_MAX,
    .description =
        "Checkpoint, snapshot, parts, training, comparison with the model that serves on the same held-out targets, "
        "promotion. What follows -- goes to `weir train`. A night that was cut off, even by kill -9, continues where "
        "it "
        "was with --resume. Whatever fails, the old model goes on serving.",
    .example = "weir nightly --data weir-data --server http://127.0.0.1:8080\n"
               "weir nightly --data weir-data --ranks 4 --dry-run\n"
               "weir nightly --data weir-data -- --epochs 40 --hidden 128",
    .options = options,
    .run = nightly_run,
};
