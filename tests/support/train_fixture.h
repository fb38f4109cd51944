/* SPDX-License-Identifier: Apache-2.0 */
/* train_fixture.h - trainings in this process on the worlds of learn_fixture.h. */
#ifndef TRAIN_FIXTURE_H
#define TRAIN_FIXTURE_H

#include <weir/trainer/train/train.h>

#include "learn_fixture.h"

static inline weir_train_opts train_opts_of(const weir_snapshot *snapshot) {
    static const uint32_t fanouts[] = {8, 8};
    weir_train_opts o = weir_train_defaults();
    o.snapshot = snapshot;
    o.task = LEARN_TASK_BAD;
    o.reach.fanouts = fanouts;
    o.reach.layers = 2;
    o.hidden = 16;
    o.epochs = 5;
    o.batch = 64;
    o.rate = 0.01;
    o.cut.warm_up = 0.05;
    o.cut.validation = o.cut.test = 0.25;
    return o;
}

static inline weir_trained *train_run(const weir_train_opts *opts) {
    weir_comm *comm = NULL;
    weir_trained *trained = NULL;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_ok(weir_train_run(comm, opts, &trained));
    weir_comm_stop(comm);
    return trained;
}

static inline void train_refused(const weir_train_opts *opts, weir_code code, const char *text) {
    weir_comm *comm = NULL;
    weir_trained *trained = NULL;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_err(weir_train_run(comm, opts, &trained), code, text);
    assert_null(trained);
    weir_comm_stop(comm);
}

#endif /* TRAIN_FIXTURE_H */
