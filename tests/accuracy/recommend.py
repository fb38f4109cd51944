#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a data scientist would try first, on the users that `weir train` of a recommend task is judged by: what is
popular, items bought together (item-kNN), and matrix factorisation by BPR. Needs numpy and scipy.

    weir simulate clicks --days 40 --people 2000 --items 2400 --seed 2 --to file:stream
    tests/accuracy/recommend.py --clicks stream/clicks.jsonl --kind view --repeat
    tests/accuracy/recommend.py --csv edges.csv --horizon 1e-6      # src, dst, timestamp in days

The test is the last horizon and the validation the one before it; windows and neighbours of item-kNN, epochs of BPR and
the days that popularity looks back are chosen on the validation. Recall@20 and NDCG@20 are means over users.
"""
import argparse
import csv
import json

import numpy as np
import scipy.sparse as sp

CUT = 20
DISCOUNT = 1 / np.log2(np.arange(2, CUT + 2))


def read_clicks(path, kind):
    """Users, items, days and whether each is of the kind that is to be found."""
    users, items, times, wanted = [], [], [], []
    with open(path) as lines:
        for line in lines:
            event = json.loads(line)
            users.append(event["person"])
            items.append(event["item"])
            times.append(event["time"].rstrip("Z"))
            wanted.append(event["kind"] == kind)
    days = np.array(times, dtype="datetime64[us]").astype("int64") / 86400e6
    return users, items, days, np.array(wanted)


def read_csv(path):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    days = np.array([float(row["timestamp"]) for row in rows]) / 86400
    return [r["src"] for r in rows], [r["dst"] for r in rows], days, np.ones(len(rows), bool)


class Stream:
    def __init__(self, users, items, days, wanted, horizon, repeat):
        self.user_names, self.u = np.unique(users, return_inverse=True)
        self.item_names, self.i = np.unique(items, return_inverse=True)
        self.days, self.wanted, self.horizon, self.repeat = days, wanted, horizon, repeat
        self.shape = len(self.user_names), len(self.item_names)
        self.end = days.max()

    def matrix(self, before, look, kind_only=False):
        """Who has met what in the days before: ones."""
        take = (self.days < before) & (self.days >= before - look)
        if kind_only:
            take &= self.wanted
        m = sp.csr_matrix((np.ones(take.sum(), "f4"), (self.u[take], self.i[take])), self.shape)
        m.data[:] = 1
        return m

    def to_find(self, begin):
        """Of each user the items of the horizon; without repeat not those that it had."""
        take = (self.days >= begin) & (self.days <= begin + self.horizon) & self.wanted
        found = {}
        had = self.matrix(begin, np.inf, True)
        for user, item in set(zip(self.u[take], self.i[take])):
            if not self.repeat and item in had.indices[had.indptr[user]:had.indptr[user + 1]]:
                continue
            found.setdefault(user, set()).add(item)
        return found, None if self.repeat else had


def judge(scores_of, found, had):
    recalls, ndcgs = [], []
    users = sorted(found)
    for at in range(0, len(users), 256):
        scores = np.asarray(scores_of(users[at:at + 256]), dtype="f4").copy()
        for row, user in zip(scores, users[at:at + 256]):
            if had is not None:
                row[had.indices[had.indptr[user]:had.indptr[user + 1]]] = -np.inf
            best = np.argpartition(-row, CUT)[:CUT]
            best = best[np.argsort(-row[best], kind="stable")]
            hits = np.array([item in found[user] for item in best])
            recalls.append(hits.sum() / len(found[user]))
            ndcgs.append((hits * DISCOUNT).sum() / DISCOUNT[:min(CUT, len(found[user]))].sum())
    return np.mean(recalls), np.mean(ndcgs)


def popular(stream, begin, look):
    take = (stream.days < begin) & (stream.days >= begin - look) & stream.wanted
    counts = np.bincount(stream.i[take], minlength=stream.shape[1]).astype("f4")
    return lambda users: np.tile(counts, (len(users), 1))


def item_knn(stream, begin, look, own, neighbors):
    """Cosine of who has met two items in the last `look` days, of the nearest ones; a user is what it met in `own`."""
    met = stream.matrix(begin, look)
    norms = sp.diags(1 / np.sqrt(np.maximum(np.asarray(met.sum(0)).ravel(), 1)).astype("f4"))
    near = (norms @ (met.T @ met).tocsr() @ norms).tocsr()
    if not stream.repeat:
        near.setdiag(0)
    for item in range(stream.shape[1]):
        row = near.data[near.indptr[item]:near.indptr[item + 1]]
        if len(row) > neighbors:
            row[row < np.partition(row, -neighbors)[-neighbors]] = 0
    near.eliminate_zeros()
    history = stream.matrix(begin, own)
    return lambda users: (history[users] @ near).toarray()


def bpr(stream, begin, look, epochs, width=64, rate=0.05, decay=0.01, seed=1):
    """Matrix factorisation by pairs (Rendle et al. 2009), Adagrad; yields scores after each epoch."""
    met = stream.matrix(begin, look).tocoo()
    random = np.random.default_rng(seed)
    rows = [random.normal(0, 0.1, (n, width)).astype("f4") for n in stream.shape]
    squares = [np.full((n, width), 1e-6, "f4") for n in stream.shape]
    for _ in range(epochs):
        order = random.permutation(len(met.row))
        for at in range(0, len(order), 2048):
            chosen = order[at:at + 2048]
            u, i, j = met.row[chosen], met.col[chosen], random.integers(0, stream.shape[1], len(chosen))
            pu, qi, qj = rows[0][u], rows[1][i], rows[1][j]
            slope = 1 / (1 + np.exp((pu * (qi - qj)).sum(1, keepdims=True)))
            for side, index, move in ((0, u, slope * (qi - qj) - decay * pu), (1, i, slope * pu - decay * qi),
                                      (1, j, -slope * pu - decay * qj)):
                np.add.at(squares[side], index, move * move)
                np.add.at(rows[side], index, rate * move / np.sqrt(squares[side][index]))
        p, q = rows[0].copy(), rows[1].copy()
        yield lambda users: p[users] @ q.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clicks")
    parser.add_argument("--kind", default="view")
    parser.add_argument("--csv")
    parser.add_argument("--horizon", type=float, default=1.0, help="days")
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--epochs", type=int, default=20, help="of BPR; 0: without it")
    a = parser.parse_args()
    data = read_clicks(a.clicks, a.kind) if a.clicks else read_csv(a.csv)
    stream = Stream(*data, a.horizon, a.repeat)
    test, validation = stream.end - a.horizon, stream.end - 2 * a.horizon
    found = {begin: stream.to_find(begin) for begin in (validation, test)}
    looks = [a.horizon * x for x in (1, 2, 4, 7, 14, 30)] + [np.inf]

    def chosen(name, make, grid):
        best = grid[-1]
        if found[validation][0]:
            best = max(grid, key=lambda g: judge(make(validation, *g), *found[validation])[0])
        print(f"{name:10s} {best}: recall@20 %.4f NDCG@20 %.4f" % judge(make(test, *best), *found[test]), flush=True)

    print(f"{len(found[test][0])} users, {sum(map(len, found[test][0].values()))} items to be found")
    chosen("popular", lambda begin, look: popular(stream, begin, look), [(x,) for x in looks])
    knn = [(look, own, k) for look in looks[1:] for own in looks[3:] for k in (50, 200)]
    if not found[validation][0]:
        knn = [(np.inf, np.inf, 200)]
    chosen("item-kNN", lambda begin, look, own, k: item_knn(stream, begin, look, own, k), knn)
    if not a.epochs:
        return
    best = (0, 0, 0)
    for look in looks[3:] if found[validation][0] else []:
        for epoch, scores in enumerate(bpr(stream, validation, look, a.epochs), 1):
            best = max(best, (judge(scores, *found[validation])[0], look, epoch))
    _, look, epochs = best if best[0] else (0, np.inf, a.epochs)
    *_, scores = bpr(stream, test, look, epochs)
    print(f"BPR-MF     ({look}, {epochs}): recall@20 %.4f NDCG@20 %.4f" % judge(scores, *found[test]))


if __name__ == "__main__":
    main()
