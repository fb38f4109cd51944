/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - `weir train`: a snapshot in, a model of the register out; on one rank, or under mpirun. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/kernel/device.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

#include "train_private.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

static weir_err train_read_numbers(const weir_cli *cli, weir_train_opts *o) {
    weir_err err = weir_cmd_learning_numbers(cli, o);
    if (!err) err = weir_cmd_train_u32(cli, "alerts", 1, 1000000, &o->alerts);
    if (!err) err = weir_cli_f64(cli, "test", 0.001, 0.9, &o->cut.test);
    if (!err) err = weir_cli_f64(cli, "resident", 0, 1, &o->resident);
    return err ? err : weir_cli_f64(cli, "cache", 0, 1000, &o->cache_share);
}

static weir_err train_read_masks(const weir_cli *cli, weir_cmd_train *c) {
    if (!weir_cli_given(cli, "masks")) return WEIR_OK;
    c->opts.cut.split = WEIR_TARGETS_BY_MASKS;
    return weir_snapshot_read_masks(weir_cli_text(cli, "masks"), c->masks, c->opts.cut.masks);
}

static weir_err train_read_per_class(const weir_cli *cli, weir_train_opts *o) {
    uint32_t count;
    if (!weir_cli_given(cli, "per-class")) return WEIR_OK;
    if (weir_cli_given(cli, "masks"))
        return WEIR_ERR(WEIR_EUSAGE,
                        "--masks and --per-class both say which target is in which part; give one of them");
    if (!weir_cmd_train_list(weir_cli_text(cli, "per-class"), 1, INT32_MAX, 2, o->cut.each, &count) || count != 2)
        return WEIR_ERR(WEIR_EUSAGE, "--per-class is two numbers, of training and validation, separated by a comma");
    o->cut.split = WEIR_TARGETS_BY_CLASS;
    o->cut.seed = o->seed;
    return WEIR_OK;
}

/* A fold is counted from 1. */
static weir_err train_read_split(const weir_cli *cli, weir_train_opts *o) {
    const char *split = weir_cli_text(cli, "split"), *fold = weir_cli_text(cli, "fold");
    const bool drawn = split && strcmp(split, "time") != 0;
    uint32_t numbers[2], count;
    char text[32];
    if (fold && !drawn)
        return WEIR_ERR(WEIR_EUSAGE, "--fold is of a draw; give --split random or --split stratified, too");
    if (split && o->cut.split != WEIR_TARGETS_BY_TIME)
        return WEIR_ERR(WEIR_EUSAGE,
                        "--split, --masks and --per-class all say which target is in which part; give one of them");
    if (!drawn) return WEIR_OK;
    if (weir_cli_given(cli, "judge"))
        return WEIR_ERR(WEIR_EUSAGE,
                        "--judge with a draw may test a model on what it has learnt from; its training has "
                        "reported its own test, and --masks name another");
    o->cut.split = WEIR_TARGETS_BY_DRAW;
    o->cut.stratified = strcmp(split, "stratified") == 0;
    o->cut.seed = o->seed;
    if (!fold) return WEIR_OK;
    if (weir_cli_given(cli, "test"))
        return WEIR_ERR(WEIR_EUSAGE, "--test and --fold both say how large the test is; give one of them");
    snprintf(text, sizeof text, "%s", fold);
    char *slash = strchr(text, '/');
    if (slash) *slash = ',';
    if (!slash || strlen(fold) >= sizeof text || !weir_cmd_train_list(text, 1, 1000, 2, numbers, &count) ||
        count != 2 || numbers[1] < 2 || numbers[0] > numbers[1])
        return WEIR_ERR(WEIR_EUSAGE, "--fold is I/K, the I-th of K folds, 2 or more: '3/5', not '%s'", fold);
    o->cut.fold = numbers[0] - 1;
    o->cut.folds = numbers[1];
    return WEIR_OK;
}

static weir_err train_check_served(const weir_cli *cli, const weir_cmd_train *c) {
    if (c->as_served && c->opts.cut.split != WEIR_TARGETS_BY_TIME)
        return WEIR_ERR(WEIR_EUSAGE, "--as-served is of a cut by time; omit it with --split, --masks and --per-class");
    if (c->as_served && (c->plan || weir_cli_given(cli, "judge")))
        return WEIR_ERR(WEIR_EUSAGE,
                        "--as-served is a second training beside a first; omit it with --plan and --judge");
    return WEIR_OK;
}

/* Options that would be ignored silently. */
static weir_err train_check_shares(const weir_cli *cli, const weir_train_opts *o) {
    const char *times = weir_cli_text(cli, "learn");
    if (times && strcmp(times, "twice") == 0 && o->cut.split != WEIR_TARGETS_BY_TIME)
        return WEIR_ERR(WEIR_EUSAGE, "--learn twice is of a cut by time: --split, --masks and --per-class say what is "
                                     "learnt from; omit one of them");
    static const char *const shares[] = {"warm-up", "validation", "test"};
    const size_t own = o->cut.split == WEIR_TARGETS_BY_DRAW ? 1 : sizeof shares / sizeof shares[0];
    for (size_t i = 0; o->cut.split != WEIR_TARGETS_BY_TIME && i < own; i++) {
        if (weir_cli_given(cli, shares[i]))
            return WEIR_ERR(WEIR_EUSAGE,
                            "--%s is a share of a cut by time; omit it with --split, --masks and --per-class",
                            shares[i]);
    }
    return WEIR_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static weir_err train_print_epoch(void *context, const weir_train_epoch *e) {
    const weir_cmd_train *c = context;
    weir_buf line = {0};
    if (weir_comm_rank(c->comm) != 0) return WEIR_OK;
    if (e->again)
        weir_buf_printf(&line, "again %-3u loss %.4f                      ", e->number, e->loss);
    else
        weir_buf_printf(&line, "epoch %-3u loss %.4f  validation %.4f%s", e->number, e->loss, e->validation,
                        e->best ? " *" : "  ");
    weir_buf_printf(&line,
                    "  %.1f s: compute %.1f, not hidden %.1f, sums %.1f "
                    "(sample %.1f, exchange %.1f, encode %.1f, sum %.1f)\n",
                    (double)e->elapsed_us * 1e-6, (double)e->times.compute * 1e-6, (double)e->times.wait * 1e-6,
                    (double)(e->times.sum_wait + e->times.pull) * 1e-6, (double)e->times.sample * 1e-6,
                    (double)e->times.exchange * 1e-6, (double)(e->times.encode + e->times.bring) * 1e-6,
                    (double)(e->times.sum + e->times.pull) * 1e-6);
    if (e->lags)
        weir_buf_printf(
            &line,
            "          rank %u computes %.1f times as long on a target as the median rank, as before, and all "
            "wait for it: its machine is slower, or busy, or its targets have more edges\n",
            e->slowest, e->lag);
    weir_err err = weir_buf_err(&line);
    if (!err) err = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return err;
}

/* All ranks must have the same, or they would ask each other for the wrong rows. */
static weir_err train_check_same(const weir_cmd_train *c, const char *mine, const char *sentence) {
    uint32_t ranks = weir_comm_ranks(c->comm);
    size_t length = strlen(mine);
    weir_buf all = {0};
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM("to compare the ranks");
    if (!err) err = weir_comm_gather(c->comm, mine, length, &all, lengths);
    const char *at = all.bytes;
    for (uint32_t rank = 0; !err && rank < ranks; at += lengths[rank++])
        if (lengths[rank] != length || memcmp(at, mine, length) != 0)
            err = WEIR_ERR(WEIR_EDATA, "rank %u has %s", rank, sentence);
    weir_free(lengths);
    weir_buf_free(&all);
    return err;
}

/* This rank's part. What it is of is looked at before every byte of it is. */
static weir_err train_open_part(weir_cmd_train *c) {
    uint32_t rank = weir_comm_rank(c->comm), ranks = weir_comm_ranks(c->comm), parts = 0, index = 0;
    char path[4096], first[4096], name[32];
    weir_part *part = NULL;
    snprintf(name, sizeof name, "part-%u", rank);
    weir_err err = weir_path_join(path, sizeof path, c->parts_folder, name);
    if (!err) err = weir_path_join(first, sizeof first, c->parts_folder, "part-0");
    if (err) return err;
    weir_err missing = weir_part_open(path, &(weir_part_opts){.verify = false}, &part);
    if (weir_err_is(missing, WEIR_ENOTFOUND) && rank > 0) /* perhaps there are fewer parts than ranks */
        err = weir_part_open(first, &(weir_part_opts){.verify = false}, &part);
    if (missing && (err || !part)) return missing;
    parts = weir_part_count(part);
    index = weir_part_index(part);
    weir_part_close(part);
    if (parts != ranks)
        return WEIR_ERR(WEIR_EUSAGE, "%s has %u parts, but there are %u ranks; start as many by mpirun -n %u",
                        c->parts_folder, parts, ranks, parts);
    if (missing) return missing;
    if (index != rank)
        return WEIR_ERR(WEIR_EDATA, "%s is part %u of its cutting; give each folder the name it had", path, index);
    const bool looks_only = c->plan || weir_cli_given(c->cli, "check");
    err =
        weir_part_open(path, &(weir_part_opts){.verify = !looks_only, .load = c->opts.loaded && !looks_only}, &c->part);
    if (err) return err;
    c->opts.part = c->part;
    c->opts.snapshot = weir_part_snapshot(c->part);
    return train_check_same(c, weir_part_cutting(c->part),
                            "a part of another cutting; cut the snapshot again, or copy all parts of one cutting");
}

static weir_err train_open_graph(const weir_cli *cli, weir_cmd_train *c) {
    const bool looks_only = c->plan || weir_cli_given(cli, "check");
    c->opts.loaded = weir_cli_given(cli, "load");
    const weir_snapshot_opts opts = {.verify = weir_comm_rank(c->comm) == 0 && !looks_only,
                                     .load = c->opts.loaded && !looks_only};
    c->snapshot_folder = weir_cli_positional_count(cli) ? weir_cli_positional(cli, 0) : NULL;
    c->parts_folder = weir_cli_text(cli, "parts");
    if (c->snapshot_folder && c->parts_folder)
        return WEIR_ERR(WEIR_EUSAGE, "give the snapshot or --parts: each rank opens its own part, and nothing else");
    if (c->parts_folder) return train_open_part(c);
    if (!c->snapshot_folder)
        return WEIR_ERR(WEIR_EUSAGE, "the snapshot to train from is missing; name its folder, or give --parts");
    weir_err err = weir_snapshot_open(c->snapshot_folder, &opts, &c->whole);
    if (err) return err;
    char mine[64];
    c->opts.snapshot = c->whole;
    snprintf(mine, sizeof mine, "%016llx %lld", (unsigned long long)weir_schema_hash(weir_snapshot_schema(c->whole)),
             (long long)weir_snapshot_as_of_us(c->whole));
    return train_check_same(c, mine, "another snapshot; give all ranks the same");
}

/* What comes from other ranks: which rows are kept, and in how many bytes they come. */
static weir_err train_read_remote(const weir_cli *cli, weir_cmd_train *c) {
    static const char *const names[] = {[WEIR_TRAIN_CACHED_PATHS] = "paths",
                                        [WEIR_TRAIN_CACHED_DEGREE] = "degree",
                                        [WEIR_TRAIN_CACHED_HALO] = "halo",
                                        [WEIR_TRAIN_CACHED_SIMULATED] = "simulated",
                                        [WEIR_TRAIN_CACHED_AHEAD] = "ahead"};
    const char *name = weir_cli_text(cli, "cache-policy"), *wire = weir_cli_text(cli, "wire");
    const char *batches = weir_cli_text(cli, "batches");
    c->opts.local = batches && strcmp(batches, "local") == 0;
    for (unsigned i = 0; wire && i < WEIR_TRAIN_WIRES; i++)
        if (strcmp(wire, weir_train_wire_name((weir_train_wire)i)) == 0) c->opts.wire = (weir_train_wire)i;
    c->opts.cached = WEIR_TRAIN_CACHED_VIP;
    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (names[i] && strcmp(name, names[i]) == 0) c->opts.cached = (weir_train_cached)i;
    if (name && !weir_cli_given(cli, "cache"))
        return WEIR_ERR(WEIR_EUSAGE, "--cache-policy says which rows --cache keeps; give --cache X, too");
    if (wire && weir_comm_ranks(c->comm) == 1 && !weir_cli_given(cli, "ranks"))
        return WEIR_ERR(WEIR_EUSAGE, "--wire says how rows go between ranks, but there is one rank; omit it");
    if (c->opts.cache_share > 0 && weir_comm_ranks(c->comm) == 1)
        return WEIR_ERR(WEIR_EUSAGE, "--cache keeps rows of other ranks, but there is one rank; omit it");
    return WEIR_OK;
}

static weir_err train_read_plan(const weir_cli *cli, weir_cmd_train *c) {
    uint64_t ranks = 0;
    c->plan = weir_cli_given(cli, "plan");
    if (!c->plan && (weir_cli_given(cli, "json") || weir_cli_given(cli, "ranks")))
        return WEIR_ERR(WEIR_EUSAGE, "--json and --ranks are of --plan; a training has as many ranks as mpirun starts");
    if (c->plan && c->opts.cached == WEIR_TRAIN_CACHED_AHEAD)
        return WEIR_ERR(WEIR_EUSAGE,
                        "--plan looks at batches that do not follow each other, so it cannot tell what --cache-policy "
                        "ahead keeps; plan with vip, which asks for more");
    if (c->plan && c->opts.model != WEIR_TRAIN_NETWORK)
        return WEIR_ERR(WEIR_EUSAGE, "--plan is of a network; omit --model");
    if (c->plan && (c->opts.resume || weir_cli_given(cli, "judge")))
        return WEIR_ERR(WEIR_EUSAGE, "--plan is of a whole training; omit --resume and --judge");
    if (weir_cli_given(cli, "ranks") && (weir_cli_text(cli, "parts") || weir_comm_ranks(c->comm) > 1))
        return WEIR_ERR(WEIR_EUSAGE,
                        "--ranks pretends with a whole snapshot, in one process; start the ranks by mpirun, "
                        "or omit --parts");
    if (weir_cli_given(cli, "ranks") && c->opts.local)
        return WEIR_ERR(WEIR_EUSAGE, "--batches local needs to know what each rank owns; start the ranks by mpirun, or "
                                     "omit --ranks");
    weir_err err = weir_cli_u64(cli, "ranks", 1, WEIR_TRAIN_PLAN_RANKS_MAX, &ranks);
    c->pretend = (uint32_t)ranks;
    return err;
}

const char *const weir_cmd_train_models[WEIR_TRAIN_MODELS] = {"network", "trees", "blend", "best"};

/* What is judged says itself what it is. */
static weir_err train_read_model(const weir_cli *cli, weir_train_opts *o) {
    const char *name = weir_cli_text(cli, "model");
    for (weir_train_model m = 0; name && m < WEIR_TRAIN_MODELS; m++)
        if (strcmp(name, weir_cmd_train_models[m]) == 0) o->model = m;
    return o->model == WEIR_TRAIN_TREES ? weir_cmd_train_refuse_network(cli, "--model trees has none") : WEIR_OK;
}

static weir_err train_prepare(const weir_cli *cli, weir_cmd_train *c) {
    c->cli = cli;
    c->begun_us = weir_clock_wall_us(weir_clock_system());
    c->models = weir_cli_text(cli, "models");
    c->key = weir_cli_text(cli, "key");
    c->predictions = weir_cli_text(cli, "predictions");
    c->opts = weir_train_defaults();
    c->opts.folder = weir_cli_text(cli, "folder");
    c->opts.trace = weir_cli_text(cli, "trace");
    c->baselines = !weir_cli_given(cli, "no-baselines");
    c->as_served = weir_cli_given(cli, "as-served");
    c->opts.resume = weir_cli_given(cli, "resume");
    weir_err err = train_read_model(cli, &c->opts);
    if (!err) err = train_read_numbers(cli, &c->opts);
    if (!err) err = train_read_remote(cli, c);
    if (!err) err = train_read_masks(cli, c);
    if (!err) err = train_read_per_class(cli, &c->opts);
    if (!err) err = train_read_split(cli, &c->opts);
    if (!err) err = train_check_shares(cli, &c->opts);
    if (!err) err = train_read_plan(cli, c);
    if (!err) err = train_check_served(cli, c);
    if (!err && weir_cli_given(cli, "check") && (c->plan || weir_cli_given(cli, "judge")))
        err = WEIR_ERR(WEIR_EUSAGE, "--check is of a training; omit --plan and --judge");
    if (!err && weir_cli_given(cli, "against") && !weir_cli_given(cli, "judge"))
        err =
            WEIR_ERR(WEIR_EUSAGE, "--against names the model that one of --judge is compared with; give --judge, too");
    if (!err && c->predictions && (weir_cli_text(cli, "parts") || weir_cli_given(cli, "judge") || c->plan))
        err = WEIR_ERR(WEIR_EUSAGE, "--predictions is of a training on a whole snapshot, which has the keys of all "
                                    "targets; omit --parts, --judge and --plan");
    if (!err && c->opts.resume && !c->opts.folder)
        err = WEIR_ERR(WEIR_EUSAGE, "--resume continues from a checkpoint in --folder, which is missing; name it");
    if (!err) err = train_open_graph(cli, c);
    if (!err) err = weir_cmd_learning_places(cli, c);
    if (!err && weir_cli_given(cli, "judge")) return WEIR_OK; /* the task is the model's */
    return err ? err : weir_cmd_learning_task(cli, &c->opts);
}

static bool train_recommends(const weir_cmd_train *c) {
    return weir_schema_task_at(weir_snapshot_schema(c->opts.snapshot), c->opts.task)->kind == WEIR_SCHEMA_RECOMMEND;
}

weir_err weir_cmd_train_say_checked(const weir_cmd_train *c) {
    const char *name = weir_schema_task_at(weir_snapshot_schema(c->opts.snapshot), c->opts.task)->name;
    weir_buf line = {0};
    weir_buf_printf(&line, "the options are right; task %s %s\n", name,
                    train_recommends(c) ? "recommends" : "classifies");
    weir_err err = weir_buf_err(&line);
    if (!err && weir_comm_rank(c->comm) == 0) err = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return err;
}

/* Options that a task which classifies would ignore silently. */
static weir_err train_refuse_recommending(const weir_cli *cli, const weir_cmd_train *c) {
    static const char *const names[] = {"layers", "half-life",   "relations", "loss",
                                        "drawn",  "temperature", "horizons",  "threads"};
    for (size_t i = 0; !train_recommends(c) && i < sizeof names / sizeof names[0]; i++)
        if (weir_cli_given(cli, names[i]))
            return WEIR_ERR(WEIR_EUSAGE, "--%s is of a task that recommends, and this one classifies; omit it",
                            names[i]);
    return WEIR_OK;
}

/* Options that are refused take nothing away. All ranks together. */
static weir_err train_begin(const weir_cmd_train *c) {
    weir_err err = weir_train_check(&c->opts);
    if (!err && weir_comm_rank(c->comm) == 0) err = weir_cmd_train_begin_run(c, c->opts.resume);
    return weir_comm_fail(c->comm, err);
}

/* Where a rank has no GPU it learns the same network, only slower: that is said, and no error. */
static weir_err train_open_device(const weir_cli *cli, weir_cmd_train *c) {
    const char *device = weir_cli_text(cli, "device");
    const bool learns = !c->plan && !weir_cli_given(cli, "judge");
    char rank[32] = "";
    if (!learns && (device || weir_cli_given(cli, "resident")))
        return WEIR_ERR(WEIR_EUSAGE, "--%s is of a training; omit it with --plan and --judge",
                        device ? "device" : "resident");
    if (!device) return WEIR_OK;
    weir_err missing, err = weir_kernels_open_or_cpu(device, weir_comm_beside(c->comm), &c->opts.kernels, &missing);
    if (weir_comm_ranks(c->comm) > 1) snprintf(rank, sizeof rank, "rank %u: ", weir_comm_rank(c->comm));
    return err || !missing ? err : weir_cli_output_sentence(rank, missing);
}

static weir_err train_run(weir_cli *cli) {
    static weir_cmd_train c; /* large */
    weir_trained *trained = NULL;
    weir_alloc_return_large(); /* each pass begins with memory of its own, and --plan says how much that is */
    weir_err err = weir_comm_start(NULL, NULL, &c.comm);
    if (err) return err;
    err = train_prepare(cli, &c);
    if (!err) err = train_open_device(cli, &c);
    if (!err && !weir_cli_given(cli, "judge")) err = train_refuse_recommending(cli, &c);
    err = weir_comm_fail(c.comm, err);
    if (!err && weir_cli_given(cli, "judge")) {
        bool recommends;
        err = weir_comm_fail(c.comm, weir_cmd_train_recommend_judge(cli, &c, &recommends));
        if (!err && !recommends) err = weir_cmd_train_judge(cli, &c);
    } else if (!err && train_recommends(&c)) {
        err = weir_comm_fail(c.comm, weir_cmd_train_recommend(cli, &c));
    } else if (!err && weir_cli_given(cli, "check")) {
        err = weir_comm_fail(c.comm, weir_train_check(&c.opts));
        if (!err) err = weir_cmd_train_say_checked(&c);
    } else if (!err && c.plan) {
        err = weir_cmd_train_plan(cli, &c);
    } else if (!err) {
        c.opts.on_epoch = train_print_epoch;
        c.opts.context = &c;
        err = train_begin(&c);
        if (!err) err = weir_train_run(c.comm, &c.opts, &trained);
        if (!err && c.as_served) err = weir_cmd_train_served(&c, trained, &c.served);
        if (!err) err = weir_comm_fail(c.comm, weir_cmd_train_finish(&c, trained));
        weir_trained_close(c.served.trained);
        weir_trained_close(trained);
        if (!err) weir_comm_barrier(c.comm);
    }
    if (c.opts.kernels) c.opts.kernels->close(c.opts.kernels);
    weir_part_close(c.part);
    weir_snapshot_close(c.whole);
    weir_comm_stop(c.comm);
    return err;
}

static const weir_option options[] = {
    {"models", 'm', "DIR", "add the model to this folder of trained models (default: only print a report)", NULL},
    {"folder", 'f', "DIR",
     "write checkpoint, epochs.jsonl, curve.svg, report.json and run.json there; of a task that recommends no "
     "checkpoint and no curve.svg (default: write none)",
     NULL},
    {"predictions", 0, "FILE",
     "write key, time, label and score of each target of validation and test there, as CSV (default: do not)", NULL},
    {"trace", 0, "FILE", "write when each stage of each batch began and ended, for ui.perfetto.dev (default: do not)",
     NULL},
    {"parts", 'p', "DIR",
     "instead of a snapshot: parts made by weir partition, of which each rank opens its own, part-RANK (default: each "
     "rank opens the snapshot)",
     NULL},
    {"key", 'k', "FILE", "sign the model with this secret key, made by weir model keygen (default: do not sign it)",
     NULL},
    {"model", 0, "KIND",
     "what answers: a network; of a yes-or-no question also boosted trees over what stands around a target, or the "
     "mean of both; or whichever of them is best on validation, of those that can be had (default: network)",
     "network|trees|blend|best"},
#include "learning.def"
    {"batches", 0, "KIND",
     "global: drawn from all targets, and each rank computes what it has; local: all ranks compute as many of each, of "
     "what they have as far as possible (default: global)",
     "global|local"},
    {"test", 0, "X", "share of the targets, the latest (default: 0.15)", NULL},
    {"split", 0, "KIND",
     "time: what is later is for judging; of an import without times also random: --validation and --test of all are "
     "drawn by --seed, or stratified: the same shares of each class (default: time)",
     "time|random|stratified"},
    {"fold", 0, "I/K",
     "of a draw: the test is the I-th of K parts, and --validation a share of the others, so that K trainings of one "
     "--seed test each target once (default: --test says how large it is)",
     NULL},
    {"masks", 0, "A,B,C",
     "masks of an import for training, validation and test, instead of a cut by time; or the name of a split, which "
     "has all three",
     NULL},
    {"per-class", 0, "N,M", "draw N of each class to train on and M for validation; the rest is the test", NULL},
    {"cache", 0, "X",
     "rows of other ranks that a rank keeps, in vertices that a rank owns on average; where targets have times, what "
     "of a row does not change with them (default: 0)",
     NULL},
    {"cache-policy", 0, "NAME",
     "which rows: by the chance that a batch reads them, by walks, by degree, those next to its own, those that the "
     "first epochs read most, or, of graphs without times, at any time those that the coming batches read soonest "
     "(default: vip)",
     "vip|paths|degree|halo|simulated|ahead"},
    {"wire", 0, "KIND",
     "how the rows of vertices go between ranks: as they are, or rounded, with int8 to 127 steps of the row's largest "
     "number (default: floats)",
     "floats|half|int8"},
    {"layers", 0, "K", "of a task that recommends: how many steps away others count (default: 2)", NULL},
    {"half-life", 0, "TIME",
     "of a task that recommends: an edge counts half after so long; 0s: all alike (default: four horizons)", NULL},
    {"relations", 0, "NAME[=X],…",
     "of a task that recommends: what is looked at beside its own relation, and how much it weighs (default: every "
     "relation between the same types, 1)",
     NULL},
    {"loss", 0, "NAME",
     "of a task that recommends: softmax of cosines, or of products, or pairs of products as LightGCN was published "
     "(default: softmax)",
     "softmax|products|bpr"},
    {"drawn", 0, "HOW",
     "of a task that recommends: items to compare with are drawn as often as they are met, or evenly (default: as-met; "
     "evenly where edges do not fade, and of bpr)",
     "as-met|evenly"},
    {"temperature", 0, "X", "of a task that recommends: by which cosines are divided (default: 0.15)", NULL},
    {"horizons", 0, "N", "of a task that recommends: how many horizons validation and test have each (default: 1)",
     NULL},
    {"threads", 0, "N", "of a task that recommends: threads that learn (default: one a core)", NULL},
    {"alerts", 0, "N", "alerts a day, for precision at a budget (default: 50)", NULL},
    {"judge", 'j', "DIR", "train nothing: print how the model in this folder scores the test targets, as JSON", NULL},
    {"against", 0, "DIR",
     "of --judge: judge this model, too, on the same targets, and say how surely one is better (default: none)", NULL},
    {"plan", 0, NULL,
     "train nothing and write nothing: print what this would take, of memory, disk, bytes between ranks, steps and "
     "time",
     NULL},
    {"ranks", 0, "N", "with --plan, of a whole snapshot: as if mpirun started so many (default: those that there are)",
     NULL},
    {"json", 0, NULL, "print the plan as JSON", NULL},
    {"check", 0, NULL, "train nothing and write nothing: say whether the options are right for this snapshot", NULL},
    {"as-served", 0, NULL,
     "train a second time, of what was known when the test begins, and report how that model scores the test: as a "
     "server's would, whose newest labels are not known yet",
     NULL},
    {"load", 0, NULL,
     "copy edges and matrices of the snapshot or part into memory first, in large pages: batches are made in less "
     "time, and each rank needs so much more memory, which --plan tells (default: files are mapped)",
     NULL},
    {"device", 0, "NAME",
     "what computes the network: cpu, or cuda, a GPU that CUDA knows; where there is none the processor does, and a "
     "line says so (default: cpu)",
     "cpu|cuda"},
    {"resident", 0, "SHARE",
     "of the rank's input rows that lie in the memory of --device, those first that batches read most, so that no "
     "batch brings them: of snapshots without times. Without a device they are a second copy (default: 1 on a GPU, "
     "else 0)",
     NULL},
    {"no-baselines", 0, NULL, "do not train boosted trees beside the model; --model trees, blend and best need them",
     NULL},
    {"resume", 0, NULL, "continue from the checkpoint in --folder, if there is one", NULL},
    {0}};

const weir_command weir_command_train = {
    .name = "train",
    .summary = "train a model on a task of the schema from a snapshot",
    .positional = "[SNAPSHOT]",
    .positional_min = 0,
    .positional_max = 1,
    .description = "Trains on earlier targets, stops by later ones, and is measured on the latest. Under mpirun the "
                   "ranks share the work: the same batches, the same losses.",
    .example = "weir train tonight --folder run --models models\n"
               "weir train tonight --plan --ranks 4\n"
               "mpirun -n 4 weir-train tonight --folder run --models models --epochs 40\n"
               "mpirun -n 4 weir-train --parts parts --folder run --models models",
    .options = options,
    .run = train_run,
};
