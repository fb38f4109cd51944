/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.c - `weir score` and `weir embed`: what a model says of every vertex of a snapshot, into a file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/inference/bulk/bulk.h>
#include <weir/inference/kernel/device.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>
#include <weir/store/schema/schema.h>

#define PATH_BYTES_MAX 4096u

extern const weir_command weir_command_score, weir_command_embed;

/* --- what both need ----------------------------------------------------------------------------------------------- */

typedef struct bulk_session {
    weir_snapshot *snapshot;
    const weir_kernels *kernels;
    weir_pack *pack;
    weir_recommend_model *recommender;
    weir_bulk_opts opts;
} bulk_session;

static weir_err bulk_open_device(const weir_cli *cli, bulk_session *s) {
    const char *device = weir_config_text(weir_cli_config(cli), WEIR_CONFIG_INFERENCE_DEVICE);
    weir_err missing, err = weir_kernels_open_or_cpu(device, 0, &s->kernels, &missing);
    return err || !missing ? err : weir_cli_output_sentence("", missing);
}

static weir_err bulk_open_model(const weir_cli *cli, bulk_session *s) {
    const weir_config *config = weir_cli_config(cli);
    weir_model_trust trust;
    weir_model *model = NULL;
    weir_err err = weir_model_trust_load(weir_config_text(config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
                                         !weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE), &trust);
    if (!err) err = weir_model_open(weir_cli_text(cli, "model"), &trust.opts, &model);
    if (!err && weir_recommend_is_of(model))
        return weir_recommend_model_open(model, "", weir_snapshot_schema(s->snapshot), &s->recommender);
    if (!err) err = bulk_open_device(cli, s);
    if (!err) err = weir_pack_open(model, s->kernels, &s->pack);
    weir_model_close(model);
    return err;
}

static weir_err bulk_need(const weir_cli *cli, const char *option, const char *what) {
    if (weir_cli_text(cli, option)) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "--%s is missing: %s", option, what);
}

static weir_err bulk_open(const weir_cli *cli, bulk_session *s) {
    uint64_t threads = 0;
    *s = (bulk_session){.opts = {.from_us = INT64_MIN, .to_us = INT64_MAX}};
    weir_err err = bulk_need(cli, "model", "the folder of the model that is asked");
    if (!err) err = bulk_need(cli, "out", "where to write");
    if (!err) err = weir_cli_time(cli, "as-of", &s->opts.as_of_us);
    if (!err) err = weir_cli_u64(cli, "threads", 1, WEIR_BULK_THREADS_MAX, &threads);
    if (!err)
        err = weir_snapshot_open(weir_cli_positional(cli, 0), &(weir_snapshot_opts){.verify = true}, &s->snapshot);
    if (!err) err = bulk_open_model(cli, s);
    s->opts.at_once = weir_cli_given(cli, "as-of");
    s->opts.threads = (uint32_t)threads;
    s->opts.snapshot = s->snapshot;
    s->opts.pack = s->pack;
    s->opts.recommender = s->recommender;
    return err;
}

static void bulk_close(bulk_session *s) {
    weir_recommend_model_drop(s->recommender);
    weir_pack_close(s->pack);
    if (s->kernels) s->kernels->close(s->kernels);
    weir_snapshot_close(s->snapshot);
}

/* One file, and a line about it. */
static weir_err bulk_write(const bulk_session *s, const char *path, const char *type) {
    const char *what = s->opts.scores ? "scores" : "embeddings";
    weir_bulk_opts opts = s->opts;
    weir_bulk_stats stats;
    weir_buf line = {0};
    opts.path = path;
    weir_err err = weir_bulk_run(&opts, &stats);
    if (err) return err;
    weir_buf_printf(&line, "%s: %" PRIu64 " %s of %s\n", path, stats.rows, what, type);
    if (stats.old)
        weir_buf_printf(&line, "left out: %" PRIu64 " from before the history that the snapshot covers\n", stats.old);
    if (stats.unknown)
        weir_buf_printf(&line, "left out: %" PRIu64 " that the model does not know, and cannot recommend\n",
                        stats.unknown);
    err = weir_buf_err(&line);
    if (!err) err = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return err;
}

/* --- weir score --------------------------------------------------------------------------------------------------- */

static weir_err bulk_run_score(weir_cli *cli) {
    bulk_session s;
    weir_err err = bulk_open(cli, &s);
    if (!err) err = weir_cli_time(cli, "from", &s.opts.from_us);
    if (!err) err = weir_cli_time(cli, "to", &s.opts.to_us);
    if (!err && s.opts.at_once && (weir_cli_given(cli, "from") || weir_cli_given(cli, "to")))
        err = WEIR_ERR(WEIR_EUSAGE, "--from and --to choose vertices by when they were put, each of which is scored as "
                                    "of then; omit --as-of, or them");
    s.opts.scores = true;
    const char *type = "what it recommends to";
    if (!err && s.pack) {
        const weir_nn_shape *shape = weir_pack_look(s.pack).shape;
        type = weir_nn_vertex(shape, weir_nn_target_type(shape))->name;
    }
    if (!err) err = bulk_write(&s, weir_cli_text(cli, "out"), type);
    bulk_close(&s);
    return err;
}

static const weir_option score_options[] = {
    {"model", 'm', "DIR", "folder of the model that is asked", NULL},
    {"out", 'o', "FILE",
     "FILE.csv, or FILE.npy with the keys of its rows in FILE.keys.csv; what is there is replaced when all is written",
     NULL},
    {"as-of", 0, "TIME", "score what lives then, all as of that time (default: each as of when it was put)", NULL},
    {"from", 0, "TIME", "score what was put from then on (default: from the beginning)", NULL},
    {"to", 0, "TIME", "score what was put before that (default: to the end)", NULL},
    {"threads", 0, "N", "threads that score; the bytes are the same for any number (default: one a core)", NULL},
    {0}};

const weir_command weir_command_score = {
    .name = "score",
    .summary = "write what a model says of every vertex of a snapshot",
    .positional = "SNAPSHOT",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "A row for each vertex that the model scores, in the order of the snapshot: key, time, score (log odds) and "
        "calibrated probability; of several classes the likeliest one and its probability. Each is scored as a "
        "server did when it was put, with what was there by then; of a task that judges at labels, and of a graph "
        "without times, as of the snapshot's time.",
    .example = "weir score tonight --model models/20261121T021458Z-1a2b3c4d --out scores.csv\n"
               "weir score tonight --model models/20261121T021458Z-1a2b3c4d --from 2026-11-20 --out day.npy",
    .options = score_options,
    .run = bulk_run_score,
};

/* --- weir embed --------------------------------------------------------------------------------------------------- */

static bool bulk_ends_in(const char *path, const char *ending) {
    const size_t length = strlen(path), less = strlen(ending);
    return length > less && strcmp(path + length - less, ending) == 0;
}

/* A file of each type into a folder. */
static weir_err bulk_embed_all(bulk_session *s, const char *folder) {
    const weir_schema *schema = weir_snapshot_schema(s->snapshot);
    char path[PATH_BYTES_MAX], name[WEIR_SCHEMA_NAME_BYTES_MAX + sizeof ".npy"];
    weir_err none = WEIR_OK, err = WEIR_OK;
    uint32_t written = 0;
    for (uint32_t type = 0; !err && type < weir_schema_vertex_count(schema); type++) {
        const char *of = weir_schema_vertex_at(schema, type)->name;
        none = weir_bulk_embeds(&s->opts, type);
        if (none) continue;
        s->opts.type = type;
        snprintf(name, sizeof name, "%s.npy", of);
        if (!written++) err = weir_folder_create(folder);
        if (!err) err = weir_path_join(path, sizeof path, folder, name);
        if (!err) err = bulk_write(s, path, of);
    }
    return err || written ? err : none;
}

/* The only type that the model has embeddings of. */
static weir_err bulk_embed_find(bulk_session *s) {
    const weir_schema *schema = weir_snapshot_schema(s->snapshot);
    weir_err none = WEIR_OK;
    uint32_t found = 0;
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++) {
        weir_err err = weir_bulk_embeds(&s->opts, type);
        none = err ? err : none;
        if (err) continue;
        s->opts.type = type;
        found++;
    }
    if (found > 1)
        return WEIR_ERR(WEIR_EUSAGE, "the model has embeddings of %u types; name one by --type, or a folder by --out",
                        found);
    return found ? WEIR_OK : none;
}

static weir_err bulk_embed_type(const weir_cli *cli, bulk_session *s) {
    const char *name = weir_cli_text(cli, "type");
    if (!name) return bulk_embed_find(s);
    s->opts.type = weir_schema_vertex_find(weir_snapshot_schema(s->snapshot), name);
    if (s->opts.type != WEIR_SCHEMA_NONE) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "the snapshot's schema has no vertex type '%s'", name);
}

static weir_err bulk_run_embed(weir_cli *cli) {
    bulk_session s;
    weir_err err = bulk_open(cli, &s);
    const char *out = weir_cli_text(cli, "out");
    const bool file = !err && (bulk_ends_in(out, ".csv") || bulk_ends_in(out, ".npy"));
    if (!err && bulk_ends_in(out, ".parquet"))
        err = WEIR_ERR(WEIR_EUSAGE, "Parquet is not written; name a file that ends in .csv or .npy, or a folder");
    if (!err && (file || weir_cli_given(cli, "type"))) err = bulk_embed_type(cli, &s);
    if (!err && !file && weir_cli_given(cli, "type"))
        err = WEIR_ERR(WEIR_EUSAGE, "--type is of one file, whose name ends in .csv or .npy; of a folder omit it");
    if (!err && file)
        err = bulk_write(&s, out, weir_schema_vertex_at(weir_snapshot_schema(s.snapshot), s.opts.type)->name);
    if (!err && !file) err = bulk_embed_all(&s, out);
    bulk_close(&s);
    return err;
}

static const weir_option embed_options[] = {
    {"model", 'm', "DIR", "folder of the model that is asked", NULL},
    {"out", 'o', "OUT",
     "FILE.csv, or FILE.npy with the keys of its rows in FILE.keys.csv, of one type; else a folder, with TYPE.npy and "
     "TYPE.keys.csv of each; what is there is replaced when all is written",
     NULL},
    {"type", 't', "TYPE", "vertex type of a file (default: the only one that the model has embeddings of)", NULL},
    {"as-of", 0, "TIME",
     "all as of that time, of what lives then (default: what is scored as of when it was put, all else as of the "
     "snapshot's time)",
     NULL},
    {"threads", 0, "N", "threads that compute; the bytes are the same for any number (default: one a core)", NULL},
    {0}};

const weir_command weir_command_embed = {
    .name = "embed",
    .summary = "write the embedding of every vertex of a snapshot",
    .positional = "SNAPSHOT",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "A row for each living vertex of a type, in the order of the snapshot: what GET /v1/embeddings answers, the "
        "output of the last layer that the model has of the type. Of a model that recommends: vectors of users and "
        "items whose products are its scores; their last numbers are what trends weigh, and the trend. A model of "
        "boosted trees has no embeddings.",
    .example = "weir embed tonight --model models/20261121T021458Z-1a2b3c4d --out vectors\n"
               "weir embed tonight --model models/20261121T021458Z-1a2b3c4d --type account --out accounts.npy",
    .options = embed_options,
    .run = bulk_run_embed,
};
