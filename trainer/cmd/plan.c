/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - `weir train --plan`: what a training with these options would take, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "train_private.h"

static const char *const memory_names[WEIR_MEMORIES] = {
    [WEIR_MEMORY_PROGRAM] = "program",       [WEIR_MEMORY_FILES] = "files",       [WEIR_MEMORY_TARGETS] = "targets",
    [WEIR_MEMORY_PARAMETERS] = "parameters", [WEIR_MEMORY_OPTIMIZER] = "moments", [WEIR_MEMORY_BATCHES] = "batches",
    [WEIR_MEMORY_PASSES] = "passes",         [WEIR_MEMORY_READERS] = "readers",   [WEIR_MEMORY_CACHE] = "cache",
    [WEIR_MEMORY_LOADED] = "loaded",
};

/* What follows from a plan, for both ways to print it. */
typedef struct plan_summary {
    const weir_train_plan *plan;
    uint32_t largest;             /* the rank with the highest peak              */
    double peaks;                 /* of all ranks                                */
    double sent_step, sent_epoch; /* by the rank that sends most: asks and rows  */
    double sums_step, sums_epoch; /* by each rank, as a ring of ranks sums       */
    double epoch[2], all[2];      /* seconds: least and most                     */
} plan_summary;

/* A ring of ranks: each sends each number twice, but for its own share; what all tell all, once. */
static plan_summary plan_summarise(const weir_train_plan *plan, bool again) {
    plan_summary s = {.plan = plan};
    double others = (plan->ranks - 1) / (double)plan->ranks;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        const weir_train_plan_rank *of = &plan->of[rank];
        if (of->peak > plan->of[s.largest].peak) s.largest = rank;
        if (of->sent_step > s.sent_step) s.sent_step = of->sent_step;
        if (of->sent_epoch > s.sent_epoch) s.sent_epoch = of->sent_epoch;
        s.peaks += (double)of->peak;
    }
    s.sums_step = others * (2 * plan->summed_floats * sizeof(weir_real) + plan->told_bytes);
    s.sums_epoch = s.sums_step * (double)plan->first_steps +
                   others * 2 * (double)plan->targets[WEIR_TARGETS_VALIDATION] * sizeof(double);
    for (unsigned i = 0; i < 2; i++) {
        double step = i ? plan->step.most : plan->step.least, judge = i ? plan->judge.most : plan->judge.least;
        double validation = judge * (double)plan->validation, test = judge * (double)plan->test;
        s.epoch[i] = step * (double)plan->first_steps + validation;
        s.all[i] = plan->set_up_seconds + step * (double)plan->steps + validation * (plan->epochs + 1) + test;
        if (again) /* as many epochs, of the validation's targets, too */
            s.all[i] += plan->set_up_seconds + step * (double)plan->steps *
                                                   (1 + (double)plan->targets[WEIR_TARGETS_VALIDATION] /
                                                            (double)plan->targets[WEIR_TARGETS_TRAIN]);
    }
    return s;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void plan_put_rank(weir_json *json, const weir_train_plan_rank *of) {
    weir_json_object(json);
    weir_json_key_u64(json, "peak_bytes", of->peak);
    weir_json_key(json, "bytes");
    weir_json_object(json);
    for (weir_train_memory m = 0; m < WEIR_MEMORIES; m++)
        weir_json_key_u64(json, memory_names[m], of->memory[m]);
    weir_json_key_u64(json, "sorting", of->sorting);
    weir_json_object_end(json);
    weir_json_key_f64(json, "rows", of->rows);
    weir_json_key_f64(json, "remote_rows", of->remote_rows);
    weir_json_key_f64(json, "cached_rows", of->cached_rows);
    weir_json_key_f64(json, "edges", of->edges);
    weir_json_key_f64(json, "sent_step_bytes", of->sent_step);
    weir_json_key_f64(json, "sent_epoch_bytes", of->sent_epoch);
    weir_json_object_end(json);
}

static void plan_put_range(weir_json *json, const char *key, double least, double most) {
    weir_json_key(json, key);
    weir_json_array(json);
    weir_json_f64(json, least);
    weir_json_f64(json, most);
    weir_json_array_end(json);
}

static void plan_write_json(const plan_summary *s, weir_buf *out) {
    const weir_train_plan *plan = s->plan;
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_u64(&json, "ranks", plan->ranks);
    weir_json_key_bool(&json, "pretended", plan->pretended);
    weir_json_key_u64(&json, "epochs", plan->epochs);
    weir_json_key_u64(&json, "train", plan->targets[WEIR_TARGETS_TRAIN]);
    weir_json_key_u64(&json, "validation", plan->targets[WEIR_TARGETS_VALIDATION]);
    weir_json_key_u64(&json, "test", plan->targets[WEIR_TARGETS_TEST]);
    weir_json_key_u64(&json, "steps_first_epoch", plan->first_steps);
    weir_json_key_u64(&json, "steps", plan->steps);
    weir_json_key_u64(&json, "validation_batches", plan->validation);
    weir_json_key_u64(&json, "test_batches", plan->test);
    weir_json_key_u64(&json, "parameters", plan->parameters);
    weir_json_key_u64(&json, "embeddings", plan->embeddings);
    weir_json_key_u64(&json, "checkpoint_bytes", plan->checkpoint_bytes);
    weir_json_key_u64(&json, "model_bytes", plan->model_bytes);
    weir_json_key_f64(&json, "summed_floats_step", plan->summed_floats);
    weir_json_key_f64(&json, "told_bytes_step", plan->told_bytes);
    weir_json_key_f64(&json, "sums_sent_step_bytes", s->sums_step);
    weir_json_key_f64(&json, "sums_sent_epoch_bytes", s->sums_epoch);
    weir_json_key_u64(&json, "sampled_batches", plan->sampled);
    weir_json_key_u64(&json, "sampled_validation_batches", plan->sampled_judged);
    weir_json_key_f64(&json, "set_up_seconds", plan->set_up_seconds);
    plan_put_range(&json, "step_seconds", plan->step.least, plan->step.most);
    weir_json_key_f64(&json, "step_seconds_deviation", plan->step.spread);
    plan_put_range(&json, "epoch_seconds", s->epoch[0], s->epoch[1]);
    plan_put_range(&json, "all_seconds", s->all[0], s->all[1]);
    weir_json_key(&json, "of");
    weir_json_array(&json);
    for (uint32_t rank = 0; rank < plan->ranks; rank++)
        plan_put_rank(&json, &plan->of[rank]);
    weir_json_array_end(&json);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

/* --- text --------------------------------------------------------------------------------------------------------- */

typedef struct plan_text {
    char of[24];
} plan_text;

static plan_text plan_size(double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    plan_text text;
    unsigned unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    snprintf(text.of, sizeof text.of, unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

static plan_text plan_time(double seconds) {
    plan_text text;
    if (seconds < 100) snprintf(text.of, sizeof text.of, "%.2g s", seconds);
    if (seconds >= 100) snprintf(text.of, sizeof text.of, seconds < 600 ? "%.1f min" : "%.0f min", seconds / 60);
    return text;
}

static void plan_write_memory(const plan_summary *s, weir_buf *out) {
    const weir_train_plan_rank *of = &s->plan->of[s->largest];
    weir_buf_printf(out, "memory   %s of rank %u, the largest; %s of all ranks\n", plan_size((double)of->peak).of,
                    s->largest, plan_size(s->peaks).of);
    for (weir_train_memory m = 0; m < WEIR_MEMORIES; m++)
        if (of->memory[m])
            weir_buf_printf(out, "  %-10s  %10s%s\n", memory_names[m], plan_size((double)of->memory[m]).of,
                            m == WEIR_MEMORY_FILES ? "  mapped; a machine's ranks share what is the same file" : "");
    weir_buf_printf(out, "  %-10s  %10s  before there are batches\n", "sorting", plan_size((double)of->sorting).of);
}

static void plan_write_wire(const plan_summary *s, weir_buf *out) {
    const weir_train_plan *plan = s->plan;
    double rows = 0, remote = 0, cached = 0;
    if (plan->ranks == 1) return;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        rows += plan->of[rank].rows / plan->ranks;
        remote += plan->of[rank].remote_rows / plan->ranks;
        cached += plan->of[rank].cached_rows / plan->ranks;
    }
    weir_buf_printf(out, "rows     a rank reads %.0f a step: asks others for %.0f, has %.0f in its cache\n", rows,
                    remote, cached);
    weir_buf_printf(out, "wire     a rank sends up to %s of asks and rows a step, and %s of sums; %s and %s an epoch\n",
                    plan_size(s->sent_step).of, plan_size(s->sums_step).of, plan_size(s->sent_epoch).of,
                    plan_size(s->sums_epoch).of);
}

static void plan_write_text(const plan_summary *s, const weir_cmd_train *c, weir_buf *out) {
    const weir_train_plan *plan = s->plan;
    weir_buf_printf(out, "%u rank%s%s, batches of %u, at most %u epochs; nothing was trained or written\n", plan->ranks,
                    plan->ranks == 1 ? "" : "s", plan->pretended ? " (of one process that pretends)" : "",
                    c->opts.batch, plan->epochs);
    weir_buf_printf(out,
                    "steps    %" PRIu64 " in the first epoch, %" PRIu64 " in all; %" PRIu64
                    " more batches to judge validation each time, %" PRIu64 " for the test\n",
                    plan->first_steps, plan->steps, plan->validation, plan->test);
    plan_write_memory(s, out);
    weir_buf_printf(out, "disk     %s a checkpoint, of which there are two for a while; %s a model\n",
                    plan_size((double)plan->checkpoint_bytes).of, plan_size((double)plan->model_bytes).of);
    plan_write_wire(s, out);
    weir_buf_printf(out, "time     %s to %s a step (deviation %s), of %u that were tried on this machine%s\n",
                    plan_time(plan->step.least).of, plan_time(plan->step.most).of, plan_time(plan->step.spread).of,
                    plan->sampled,
                    plan->ranks > 1 && plan->pretended ? ", without what ranks wait for each other" : "");
    weir_buf_printf(
        out, "         %s to %s an epoch, %s to %s in all, if no epoch is spared; baselines and writing come on top\n",
        plan_time(s->epoch[0]).of, plan_time(s->epoch[1]).of, plan_time(s->all[0]).of, plan_time(s->all[1]).of);
    weir_buf_printf(out, "         least: all that is prepared ahead is hidden behind the slowest stage; most: none of "
                         "it is\n");
}

weir_err weir_cmd_train_plan(const weir_cli *cli, const weir_cmd_train *c) {
    weir_train_plan *plan;
    weir_buf out = {0};
    weir_err err = weir_train_plan_make(c->comm, &c->opts, c->pretend, &plan);
    if (err) return err;
    const plan_summary s = plan_summarise(plan, weir_train_learns_again(&c->opts));
    if (weir_cli_given(cli, "json")) {
        plan_write_json(&s, &out);
    } else {
        plan_write_text(&s, c, &out);
    }
    err = weir_buf_err(&out);
    if (!err && weir_comm_rank(c->comm) == 0) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    weir_train_plan_free(plan);
    return weir_comm_fail(c->comm, err);
}
