/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_test.c - weir-train --batches local under mpirun, and one process beside it that learns from the same batches:
 * it has the whole snapshot, and deals each epoch's list as the ranks do, by the ids that are in the parts' folders.
 */
#include <math.h>
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "ranks.h"
#include "shell.h"
#include "train_fixture.h"
#include "training_private.h"

#define PAYS        600u
#define EPOCHS      3u
#define LOSS_WITHIN 1e-5

/* --- one process -------------------------------------------------------------------------------------------------- */

typedef struct alone {
    weir_trained *trained;
    weir_train_dealer dealer;
    uint32_t owner_of[PAYS]; /* of a pay, by its place in the snapshot */
    double losses[EPOCHS];
} alone;

static void owners_read(const weir_snapshot *snapshot, unsigned ranks, uint32_t owner_of[PAYS]) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, LEARN_PAY);
    assert_int_equal(v->count, PAYS);
    for (unsigned p = 0; p < ranks; p++) {
        char name[32];
        weir_part *part;
        snprintf(name, sizeof name, "parts/part-%u", p);
        assert_ok(weir_part_open(weir_test_path(name), &(weir_part_opts){0}, &part));
        const weir_snapshot_vertices *has = weir_snapshot_vertices_of(weir_part_snapshot(part), LEARN_PAY);
        for (uint64_t k = 0; k < has->own; k++)
            for (uint64_t i = 0; i < PAYS; i++)
                if (memcmp(&has->ids[k], &v->ids[i], sizeof v->ids[i]) == 0) owner_of[i] = p;
        weir_part_close(part);
    }
}

/* The list of global batches, dealt. */
static uint64_t draw(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp) {
    const alone *a = context;
    const uint64_t count = weir_training_list_epoch(a->trained, epoch, list, seedp);
    for (uint64_t i = 0; i < count; i++)
        a->dealer.owner_of[i] = a->owner_of[(uint64_t)a->trained->targets->targets[list[i]].vertex];
    weir_train_dealer dealer = a->dealer;
    weir_train_deal(&dealer, list, count);
    return count;
}

static void learn_alone(const char *snapshot_folder, unsigned ranks, double edge_dropout, alone *a) {
    static const uint32_t fanouts[] = {6, 6};
    weir_comm *comm = NULL;
    weir_snapshot *snapshot;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_ok(weir_snapshot_open(snapshot_folder, &(weir_snapshot_opts){0}, &snapshot));
    weir_train_opts opts = train_opts_of(snapshot);
    opts.reach.fanouts = fanouts;
    opts.rate = weir_train_defaults().rate;
    opts.edge_dropout = edge_dropout;
    opts.epochs = EPOCHS;
    owners_read(snapshot, ranks, a->owner_of);
    assert_ok(weir_training_open(comm, &opts, NULL, &a->trained));
    assert_ok(weir_train_dealer_open(PAYS, ranks, &a->dealer));
    weir_batches_opts stream = weir_training_stream_opts(a->trained, NULL);
    stream.channels = NULL;
    stream.draw = draw;
    stream.context = a;
    stream.epochs = EPOCHS;
    stream.drops = true;
    stream.thinned = edge_dropout;
    stream.unknown = opts.unknown;
    assert_ok(weir_batches_open(&stream, &a->trained->stream));
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        weir_train_epoch learnt = {.number = epoch + 1};
        assert_ok(weir_training_learn(a->trained, &learnt));
        a->losses[epoch] = learnt.loss;
    }
    weir_batches_close(a->trained->stream);
    weir_train_dealer_close(&a->dealer);
    weir_trained_close(a->trained);
    weir_snapshot_close(snapshot);
    weir_comm_stop(comm);
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static void learn_together(unsigned ranks, const char *edge_dropout, double losses[EPOCHS]) {
    char parts[4096], run[4096], *text = NULL, *at;
    size_t length;
    weir_test_output output;
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts"));
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    const char *const arguments[] = {"--parts",      parts,  "--task",         "bad",        "--folder",       run,
                                     "--epochs",     "3",    "--batch",        "64",         "--hidden",       "16",
                                     "--fanouts",    "6,6",  "--patience",     "0",          "--warm-up",      "0.05",
                                     "--validation", "0.25", "--test",         "0.25",       "--batches",      "local",
                                     "--learn",      "once", "--edge-dropout", edge_dropout, "--no-baselines", NULL};
    ranks_run(ranks, ranks_train_program(), arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    assert_ok(weir_file_load(weir_test_path("run/epochs.jsonl"), 1u << 20, &text, &length));
    at = text;
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
        at = strstr(at, "\"loss\":");
        assert_non_null(at);
        losses[epoch] = strtod(at + strlen("\"loss\":"), &at);
    }
    assert_null(strstr(at, "\"loss\":"));
    double handed = strtod(strstr(text, "\"handed_share\":") + strlen("\"handed_share\":"), NULL);
    assert_true(handed > 0); /* parts drawn at random are of unequal sizes */
    weir_free(text);
}

static void same_losses(unsigned ranks, unsigned depth, const char *edge_dropout) {
    static alone one;
    double losses[EPOCHS];
    char line[512], snapshot[4096];
    snprintf(line, sizeof line,
             "cd $folder && rm -rf parts run && $weir partition snapshot --parts %u --depth %u --method random --out "
             "parts >/dev/null",
             ranks, depth);
    shell(line);
    memset(&one, 0, sizeof one);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    learn_together(ranks, edge_dropout, losses);
    learn_alone(snapshot, ranks, strtod(edge_dropout, NULL), &one);
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
        if (!(fabs(losses[epoch] - one.losses[epoch]) <= LOSS_WITHIN * fabs(one.losses[epoch])))
            fail_msg("%u ranks, epoch %u: %.9g, and %.9g of one process", ranks, epoch + 1, losses[epoch],
                     one.losses[epoch]);
}

/* TRAIN-R1, of local batches. */
static void r1_local_batches_lose_what_one_process_does(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
    for (unsigned ranks = 2; ranks <= 5; ranks++)
        same_losses(ranks, ranks % 2, ranks < 4 ? "0" : "0.3");
}

WEIR_TESTS(WEIR_CASE(r1_local_batches_lose_what_one_process_does))
