#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a data scientist gets in an afternoon: XGBoost on hand-made columns of simulated payments.

The targets are those of `weir train` on the same stream: payments whose chargebacks had their 45 days to come, without
the first 15 % of the time, cut by time into 70, 15 and 15 % of them. Columns come from `fraud_baseline --rows FILE`
(tests/tools/fraud_features.h; of a bank that moves with --moving), which knows nothing later than a payment. Rounds are
chosen by the validation part; "again" is as many rounds, learnt from training and validation.

Needs numpy, scikit-learn and xgboost.
"""

import argparse
import json

import numpy as np
import xgboost
from sklearn.metrics import average_precision_score, roc_auc_score

COLUMNS = 46
DAY_US = 86_400_000_000
MATURITY_US = 45 * DAY_US
SETS = {"row": 9, "row and counts": 37, "row, counts and two hops": 46}


def micros(text):
    """Of a time as the simulator writes it, 2026-01-05T00:00:24.201248Z."""
    return int(np.datetime64(text[:-1], "us").astype(np.int64))


def read_stream(folder):
    keys, times, reported, last = [], [], {}, 0
    with open(f"{folder}/payments.jsonl", encoding="ascii") as lines:
        for line in lines:
            keys.append(line[7 : line.index('"', 7)])
            at = line.index('"time":"') + 8
            times.append(line[at : line.index('"', at)])
    with open(f"{folder}/chargebacks.jsonl", encoding="ascii") as lines:
        for line in lines:
            message = json.loads(line)
            last = max(last, micros(message["time"]))
            if message["label"] == "fraud":
                reported[message["payment"]] = micros(message["time"])
    times = np.array([t[:-1] for t in times], "datetime64[us]").astype(np.int64)
    return np.array(keys), times, reported, max(last, int(times[-1]))


def make_targets(keys, times, reported, as_of_us):
    """Positions of the targets in their order, their labels, and where training and validation end."""
    mature = np.flatnonzero(times <= as_of_us - MATURITY_US)
    first, last = times[mature[0]], times[mature[-1]]
    mature = mature[times[mature] >= first + int(0.15 * float(last - first))]
    came = np.array([reported.get(k, np.iinfo(np.int64).max) for k in keys[mature]])
    labels = came - times[mature] <= MATURITY_US
    count = len(mature)
    return mature, labels.astype(np.int8), int(0.7 * float(count)), int(0.85 * float(count))


def learn(rows, labels, train, validation, seed):
    parts = [slice(0, train), slice(train, validation), slice(validation, len(labels))]
    matrices = [xgboost.DMatrix(rows[part], labels[part]) for part in parts]
    options = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.1,
        "subsample": 0.8,
        "colsample_bytree": 0.8,
        "min_child_weight": 5,
        "eval_metric": "aucpr",
        "seed": seed,
        "nthread": 2,
    }
    booster = xgboost.train(
        options, matrices[0], 300, evals=[(matrices[1], "validation")], early_stopping_rounds=30, verbose_eval=False
    )
    rounds = booster.best_iteration + 1
    once = booster.predict(matrices[2], iteration_range=(0, rounds))
    known = xgboost.DMatrix(rows[:validation], labels[:validation])
    again = xgboost.train(options, known, rounds, verbose_eval=False).predict(matrices[2])
    return {"once": once, "again": again}, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", help="what weir simulate payments --to file:FOLDER has written")
    parser.add_argument("rows", help="columns of all payments: fraud_baseline --warm 0 --test 0 --rows FILE")
    parser.add_argument("--seeds", type=int, default=3, help="of the trees, each a row (default: 3)")
    arguments = parser.parse_args()

    rows = np.fromfile(arguments.rows, np.float32).reshape(-1, COLUMNS)
    keys, times, reported, as_of_us = read_stream(arguments.folder)
    if len(rows) != len(keys):
        parser.error(f"{arguments.rows} has {len(rows)} rows and the stream {len(keys)} payments; use the same options")
    at, labels, train, validation = make_targets(keys, times, reported, as_of_us)
    tested = labels[validation:]
    print(f"test: {len(tested)} targets, {tested.sum()} positive; training: {train}, {labels[:train].sum()} positive")
    for name, width in SETS.items():
        for seed in range(1, arguments.seeds + 1):
            scores, rounds = learn(rows[at, :width], labels, train, validation, seed)
            for how, scored in scores.items():
                precision, area = average_precision_score(tested, scored), roc_auc_score(tested, scored)
                figures = f"average precision {precision:.3f}  AUROC {area:.3f}"
                print(f"{name:28} seed {seed} {how:5}  {figures}  {rounds} rounds")


if __name__ == "__main__":
    main()
