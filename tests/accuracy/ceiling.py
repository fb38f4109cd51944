#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The best that a model can reach against labels that are wrong now and then. Needs nothing but Python.

    weir simulate payments --days 75 --accounts 5000 --seed 1 --world moving --to file:out --truth truth.jsonl
    weir train snap --seed 1 --model best --predictions predictions.csv
    tests/accuracy/ceiling.py truth.jsonl predictions.csv        # of the targets of the test
    tests/accuracy/ceiling.py truth.jsonl out                    # of all payments whose labels have had their time

Some frauds are never charged back, and some honest payments are: a scorer that is right about every fraud still has an
average precision below 1 against the labels. This prints what it has.
"""
import argparse
import csv
import json
import os
from datetime import datetime, timedelta


def ceiling(labelled_frauds, frauds, labelled_honest, honest):
    """Average precision and AUROC, in closed form.

    A scorer that knows every fraud and nothing of how labels go wrong, which is chance, has two scores: one of the F
    frauds, of which P are labelled, and a lower one of the N honest payments, of which Q are. A group of equal scores
    is one threshold, as in `weir train` and scikit-learn. At the first, precision is P / F and recall P / (P + Q); at
    the second, all are found, with a precision of (P + Q) / (F + N). Average precision is the sum over thresholds of
    recall gained times precision:

        P / (P + Q) * P / F  +  Q / (P + Q) * (P + Q) / (F + N)

    AUROC is the chance that a labelled payment stands above one that is not, equal scores counting half: for certain
    if a labelled fraud meets an unlabelled honest payment, half if both are frauds or both honest, never otherwise.
    """
    labelled, rest = labelled_frauds + labelled_honest, frauds - labelled_frauds + honest - labelled_honest
    if not labelled or not rest:
        return float("nan"), float("nan")
    precision = labelled_frauds / frauds * labelled_frauds / labelled if frauds else 0.0
    precision += labelled_honest / labelled * labelled / (frauds + honest)
    above = labelled_frauds * (honest - labelled_honest)
    equal = labelled_frauds * (frauds - labelled_frauds) + labelled_honest * (honest - labelled_honest)
    return precision, (above + equal / 2) / (labelled * rest)


def untied(labelled_frauds, frauds, labelled_honest, honest):
    """Mean average precision of the same scorer if chance puts equals in an order, as scores of a model nearly do.

    The payment at place k of a group of M with L labelled ones is labelled with a chance of L / M, and then k - 1
    others of the group stand above it, of which a share of (L - 1) / (M - 1) is labelled.
    """
    total, above, labelled_above = 0.0, 0, 0
    for labelled, size in (labelled_frauds, frauds), (labelled_honest, honest):
        share = (labelled - 1) / (size - 1) if size > 1 else 0.0
        steps = range(1, size + 1) if labelled else ()
        total += sum((labelled_above + 1 + (k - 1) * share) / (above + k) for k in steps) * labelled / (size or 1)
        above, labelled_above = above + size, labelled_above + labelled
    return total / labelled_above if labelled_above else float("nan")


def read_lines(path):
    with open(path, encoding="ascii") as lines:
        yield from map(json.loads, lines)


def moment(text):
    return datetime.fromisoformat(text.rstrip("Z"))


def of_predictions(path):
    """Key and label of each target of the test."""
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row.get("part", "test") == "test":
                yield row["key"], float(row["label"]) > 0


def of_stream(folder, maturity):
    """The same of each payment whose chargeback had all its days to come, as `weir train` takes them."""
    reported, last = {}, datetime.min
    for event in read_lines(os.path.join(folder, "chargebacks.jsonl")):
        reported[event["payment"]] = last = moment(event["time"])
    payments = [(event["id"], moment(event["time"])) for event in read_lines(os.path.join(folder, "payments.jsonl"))]
    as_of = max(last, payments[-1][1])
    for key, time in payments:
        if time <= as_of - maturity:
            yield key, key in reported and reported[key] - time <= maturity


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("labels", help="predictions of weir train, or the folder of weir simulate --to file:FOLDER")
    parser.add_argument("--maturity", type=float, default=45, metavar="DAYS", help="of a label (default: 45)")
    arguments = parser.parse_args()
    frauds = {event["payment"] for event in read_lines(arguments.truth)}
    if os.path.isdir(arguments.labels):
        targets = of_stream(arguments.labels, timedelta(days=arguments.maturity))
    else:
        targets = of_predictions(arguments.labels)
    count = {(bad, labelled): 0 for bad in (True, False) for labelled in (True, False)}
    for key, labelled in targets:
        count[key in frauds, labelled] += 1
    bad, good = count[True, True] + count[True, False], count[False, True] + count[False, False]
    counts = count[True, True], bad, count[False, True], good
    precision, area = ceiling(*counts)
    print(f"{bad} frauds, {count[True, True]} of them labelled; {good} honest, {count[False, True]} of them labelled")
    print(f"right about every fraud: average precision {precision:.4f}, AUROC {area:.4f}")
    print(f"the same, equals in an order of chance: average precision {untied(*counts):.4f}")


if __name__ == "__main__":
    main()
