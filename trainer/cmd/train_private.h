/* SPDX-License-Identifier: Apache-2.0 */
/* train_private.h - what the files of `weir train` share. */
#ifndef WEIR_TRAINER_CMD_TRAIN_PRIVATE_H
#define WEIR_TRAINER_CMD_TRAIN_PRIVATE_H

#include <weir/store/cli/cli.h>
#include <weir/trainer/train/train.h>

typedef struct weir_cmd_train {
    const char *snapshot_folder, *models, *key; /* models and key: NULL, not wanted */
    bool baselines;
    weir_train_opts opts;
    uint32_t fanouts[WEIR_SAMPLE_HOPS_MAX];
    char masks[512]; /* the names in opts.cut point into it */
    weir_comm *comm;
    weir_snapshot *snapshot;
    struct weir_cmd_owners *owners; /* NULL: by the vertices' ids */
} weir_cmd_train;

/* Who owns what, of `weir partition`. */
typedef struct weir_cmd_owners weir_cmd_owners;
/* WEIR_EUSAGE other parts than ranks; WEIR_EDATA parts of another snapshot; WEIR_ECORRUPT, WEIR_ENOMEM. */
weir_err weir_cmd_owners_open(const char *folder, const weir_snapshot *snapshot, uint32_t ranks,
                              weir_cmd_owners **ownersp);
const uint32_t *const *weir_cmd_owners_of(const weir_cmd_owners *owners);
void weir_cmd_owners_close(weir_cmd_owners *owners); /* NULL is allowed */

/* On rank 0: the report to stdout and into the folder, the model into the register. */
weir_err weir_cmd_train_finish(const weir_cmd_train *c, const weir_trained *trained);

/* Instead of a training: the figures of --judge's model on the test targets, to stdout.  WEIR_EPERM, WEIR_ECORRUPT, …
 * what is wrong with the model; what the targets say. */
weir_err weir_cmd_train_judge(const weir_cli *cli, weir_cmd_train *c);

#endif /* WEIR_TRAINER_CMD_TRAIN_PRIVATE_H */
