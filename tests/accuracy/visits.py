#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts a set of visits or ratings without times into what is learnt from, validation and test, as edges that
`weir snapshot import --edges FILE --recommend KIND --horizon 1s` takes: at second 1, 2 and 3. Needs nothing.

    tests/accuracy/visits.py gowalla/edges.csv --kind visit --validation 5 > edges.csv     # the test that it has
    tests/accuracy/visits.py lastfm2k/edges.csv --kind listens > edges.csv                 # the same
    tests/accuracy/visits.py ml100k/edges.csv --kind rates --test 10 > edges.csv           # filmtrust alike

What a row's column `split` calls test is the test; without such a column --test of 100 are drawn. Each pair counts
once.
"""
import argparse
import csv
import random
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges", help="CSV with src, dst, type and perhaps split")
    parser.add_argument("--kind", required=True, help="the type of edge that is recommended")
    parser.add_argument("--validation", type=float, default=10, help="share of 100 for validation (default: 10)")
    parser.add_argument("--test", type=float, default=0, help="share of 100 for the test (default: 0)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    with open(args.edges, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["type"] == args.kind]
    pairs = {(row["src"], row["dst"]): row.get("split") == "test" for row in rows}
    draw = random.Random(args.seed)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["src", "dst", "type", "src_type", "dst_type", "timestamp"])
    for (user, item), tested in pairs.items():
        chance = 100 * draw.random()
        second = 3 if tested or chance < args.test else 2 if chance < args.test + args.validation else 1
        out.writerow([user, item, args.kind, "user", "item", second])


if __name__ == "__main__":
    main()
