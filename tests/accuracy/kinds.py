#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a model finds of each kind of fraud, where the simulator's truth is known. Needs nothing but Python.

    weir simulate payments --days 75 --accounts 5000 --seed 1 --to file:out --truth truth.jsonl
    weir train snap --seed 1 --model best --predictions predictions.csv
    tests/accuracy/kinds.py truth.jsonl predictions.csv

For each kind: its frauds in the test, the average precision of these among all payments that are none (frauds of other
kinds are left out), how many are among the 50 highest scores of their day, and AUROC. A fraud counts whether or not it
was ever charged back: that is what labels cannot say.
"""
import argparse
import csv
import json
from collections import defaultdict

ALERTS = 50


def average_precision(ranked):
    """ranked: of each payment whether it is a fraud, the highest score first; ties keep the order of the file."""
    found, total = 0, 0.0
    for place, bad in enumerate(ranked, 1):
        if bad:
            found += 1
            total += found / place
    return total / found if found else float("nan")


def auroc(scores, bad):
    """Mean rank of the frauds, equal scores sharing theirs."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    ranks, at = [0.0] * len(order), 0
    while at < len(order):
        end = at
        while end < len(order) and scores[order[end]] == scores[order[at]]:
            end += 1
        for i in order[at:end]:
            ranks[i] = (at + 1 + end) / 2
        at = end
    positives = sum(bad)
    above = sum(rank for rank, is_bad in zip(ranks, bad) if is_bad) - positives * (positives + 1) / 2
    return above / (positives * (len(bad) - positives)) if 0 < positives < len(bad) else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("predictions")
    arguments = parser.parse_args()
    with open(arguments.truth) as lines:
        kind_of = {event["payment"]: event["kind"] for event in map(json.loads, lines)}
    with open(arguments.predictions, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "test"]
    by_day = defaultdict(list)
    for row in rows:
        by_day[row["time"][:10]].append(row)
    alerted = set()
    for day in by_day.values():
        day.sort(key=lambda row: -float(row["score"]))
        alerted.update(row["key"] for row in day[:ALERTS])
    print(f"{'kind':<14} {'frauds':>7} {'average precision':>18} {'AUROC':>7} {f'among {ALERTS} a day':>16}")
    for kind in sorted({kind_of[row["key"]] for row in rows if row["key"] in kind_of}) + ["all"]:
        mine = [row for row in rows if kind == "all" or kind_of.get(row["key"], kind) == kind]
        scores = [float(row["score"]) for row in mine]
        bad = [row["key"] in kind_of for row in mine]
        ranked = [is_bad for _, is_bad in sorted(zip(scores, bad), key=lambda pair: -pair[0])]
        found = sum(row["key"] in alerted for row in mine if row["key"] in kind_of)
        print(f"{kind:<14} {sum(bad):>7} {average_precision(ranked):>18.3f} {auroc(scores, bad):>7.3f} {found:>16}")


if __name__ == "__main__":
    main()
