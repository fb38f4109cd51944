/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served.c - `weir train --as-served`: a second training, of what was known when the test begins.
 *
 * The first one learns up to the test's first moment, as if all labels of the day before were known. A model that
 * serves knows no label that still takes its time: its training ends a maturity earlier.
 */
#include <weir/store/cli/cli.h>

#include "train_private.h"

/* The same test, and the same shares of what is left before it. */
static weir_train_opts served_opts(const weir_cmd_train *c, const weir_targets *targets) {
    weir_train_opts o = c->opts;
    o.folder = o.trace = NULL;
    o.resume = false;
    o.cut.split = WEIR_TARGETS_BY_TIMES;
    o.cut.known_us = o.cut.test_from_us = targets->from_us[WEIR_TARGETS_TEST];
    o.cut.test_to_us = targets->to_us[WEIR_TARGETS_TEST] + 1;
    o.cut.validation = c->opts.cut.validation / (1 - c->opts.cut.test);
    return o;
}

/* Too few are known: it is said, and is no reason to lose the model, as nothing is that befalls the second training.
 * All ranks come to the same answer. */
static weir_err served_look(const weir_cmd_train *c, const weir_train_opts *opts, weir_cmd_served *served) {
    const weir_targets_opts of = {opts->task, opts->cut, opts->part ? c->comm : NULL};
    weir_targets *targets = NULL;
    weir_err err = weir_targets_open(opts->snapshot, &of, &targets);
    weir_targets_close(targets);
    if (!weir_err_is(err, WEIR_EDATA)) return err;
    weir_err_sentence(err, served->why_not, sizeof served->why_not);
    return WEIR_OK;
}

weir_err weir_cmd_train_served(const weir_cmd_train *c, const weir_trained *trained, weir_cmd_served *served) {
    static const char say[] = "as served: learns again, of what was known when the test begins\n";
    const weir_train_opts opts = served_opts(c, weir_trained_look(trained).targets);
    served->known_us = opts.cut.known_us;
    weir_err err = weir_comm_fail(c->comm, served_look(c, &opts, served));
    if (err || served->why_not[0]) return err;
    if (weir_comm_rank(c->comm) == 0 && opts.model != WEIR_TRAIN_TREES)
        err = weir_comm_fail(c->comm, weir_cli_output(say, sizeof say - 1));
    if (err) return err;
    err = weir_train_run(c->comm, &opts, &served->trained); /* the same on all ranks */
    if (err) weir_err_sentence(err, served->why_not, sizeof served->why_not);
    return WEIR_OK;
}
