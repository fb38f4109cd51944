#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts a set of visits or ratings without times into what is learnt from, validation and test, as edges that
`weir snapshot import --edges FILE --recommend KIND --horizon 1s` takes: at second 1, 2 and 3. Needs nothing.

    tests/accuracy/visits.py gowalla/edges.csv --kind visit --validation 5 > edges.csv     # the test that it has
    tests/accuracy/visits.py lastfm2k/edges.csv --kind listens > edges.csv                 # the same
    tests/accuracy/visits.py ml100k/edges.csv --kind rates --test 10 > edges.csv           # filmtrust alike

What a row's column `split` calls test is the test; else --test of 100 of each user's are drawn, and
of what is left --validation of 100 of each user's: at least one, as LightGCN's authors cut their sets, so that users of
few visits count as much as they do in the test. A pair counts once, and a user of fewer than three is learnt from.
"""
import argparse
import csv
import random
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edges", help="CSV with src, dst, type and perhaps split")
    parser.add_argument("--kind", required=True, help="the type of edge that is recommended")
    parser.add_argument("--validation", type=float, default=10, help="share of 100 of a user's (default: 10)")
    parser.add_argument("--test", type=float, default=0, help="share of 100 of a user's (default: 0)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    with open(args.edges, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["type"] == args.kind]
    tested = {(row["src"], row["dst"]) for row in rows if row.get("split") == "test"}
    if tested and args.test:
        sys.exit("the file has a test of its own; omit --test")
    seconds = {pair: 3 if pair in tested else 1 for pair in [(row["src"], row["dst"]) for row in rows]}
    of_users = {}
    for user, item in seconds:
        of_users.setdefault(user, []).append(item)
    draw = random.Random(args.seed)
    for second, share in ((3, args.test), (2, args.validation)):
        for user, items in of_users.items():
            left = [item for item in items if seconds[user, item] == 1]
            count = max(1, round(len(left) * share / 100)) if share and len(left) >= 3 else 0
            for item in draw.sample(left, count):
                seconds[user, item] = second

    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["src", "dst", "type", "src_type", "dst_type", "timestamp"])
    for (user, item), second in seconds.items():
        out.writerow([user, item, args.kind, "user", "item", second])


if __name__ == "__main__":
    main()
