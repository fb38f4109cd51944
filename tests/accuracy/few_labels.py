#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GCN (Kipf and Welling 2017) and GAT (Velickovic et al. 2018) by their papers, in JAX, on splits of weir train.

    weir train cora --per-class 20,70 --seed 1 --predictions split.csv …
    tests/accuracy/few_labels.py gat FOLDER split.csv --seed 1

FOLDER has nodes.csv (id,label,…,nonzero) and edges.csv (src,dst,…), as weir snapshot import took them. Validation and
test are those of split.csv; what is in neither is learnt from. The epoch is kept that is best on validation. Needs
Python 3.9 with jax and numpy."""

import argparse
import csv

import jax
import jax.numpy as jnp
import numpy as np


def read(folder, split):
    """Rows that add up to 1, edges both ways with loops, classes, and the part of each paper: 0 is learnt from."""
    places, classes, words = {}, [], []
    with open(folder + "/nodes.csv", newline="") as file:
        for row in csv.DictReader(file):
            places[row["id"]] = len(classes)
            classes.append(int(row["label"]))
            words.append([int(word) for word in row["nonzero"].split()])
    numbers = np.zeros((len(classes), 1 + max(max(w, default=0) for w in words)), np.float32)
    for i, has in enumerate(words):
        numbers[i, has] = 1
    numbers /= np.maximum(numbers.sum(axis=1, keepdims=True), 1)
    edges = {(i, i) for i in range(len(classes))}
    with open(folder + "/edges.csv", newline="") as file:
        for row in csv.DictReader(file):
            a, b = places[row["src"]], places[row["dst"]]
            edges |= {(a, b), (b, a)}
    part = np.zeros(len(classes), int)
    with open(split, newline="") as file:
        for row in csv.DictReader(file):
            part[places[row["key"]]] = 1 if row["part"] == "validation" else 2
    to, origin = np.array(sorted(edges)).T
    return numbers, to, origin, np.array(classes), part


def drop(key, share, x):
    return jnp.where(jax.random.bernoulli(key, 1 - share, x.shape), x / (1 - share), 0)


def glorot(key, *shape):
    return jax.random.uniform(key, shape, minval=-1, maxval=1) * np.sqrt(6 / (shape[0] + shape[-1]))


class Gcn:
    """Two layers of width 16."""

    rate, epochs, input_dropout = 0.01, 200, 0.5

    def __init__(self, to, origin, count):
        degrees = np.bincount(to, minlength=count)
        self.to, self.origin, self.count = to, origin, count
        self.weights = jnp.array(1 / np.sqrt(degrees[to] * degrees[origin]))[:, None]

    def begin(self, key, columns, classes):
        one, two = jax.random.split(key)
        weights = {"w1": glorot(one, columns, 16), "w2": glorot(two, 16, classes)}
        return weights | {"c1": jnp.zeros(16), "c2": jnp.zeros(classes)}

    def decays(self, name):
        return name == "w1"

    def gather(self, x):
        return jax.ops.segment_sum(self.weights * x[self.origin], self.to, self.count)

    def forward(self, p, x, keys, options):
        x = drop(keys[0], options.input_dropout, x) if keys is not None else x
        h = jax.nn.relu(self.gather(x @ p["w1"]) + p["c1"])
        h = drop(keys[1], 0.5, h) if keys is not None else h
        return self.gather(h @ p["w2"]) + p["c2"]


class Gat:
    """Eight heads of width 8, and one head of the classes."""

    rate, epochs, input_dropout = 0.005, 600, 0.6

    def __init__(self, to, origin, count):
        self.to, self.origin, self.count = to, origin, count

    def begin(self, key, columns, classes):
        keys = jax.random.split(key, 6)
        return {
            "w1": glorot(keys[0], columns, 64),
            "a1": glorot(keys[1], 8, 8),
            "b1": glorot(keys[2], 8, 8),
            "c1": jnp.zeros(64),
            "w2": glorot(keys[3], 64, classes),
            "a2": glorot(keys[4], 1, classes),
            "b2": glorot(keys[5], 1, classes),
            "c2": jnp.zeros(classes),
        }

    def decays(self, name):
        return True

    def mix(self, h, a, b, key, options):
        """h: papers x heads x columns."""
        scores = jax.nn.leaky_relu((h * a).sum(-1)[self.to] + (h * b).sum(-1)[self.origin], 0.2)
        scores = jnp.exp(scores - jax.ops.segment_max(scores, self.to, self.count)[self.to])
        shares = scores / jax.ops.segment_sum(scores, self.to, self.count)[self.to]
        shares = drop(key, options.attention_dropout, shares) if key is not None else shares
        return jax.ops.segment_sum(shares[:, :, None] * h[self.origin], self.to, self.count).reshape(self.count, -1)

    def forward(self, p, x, keys, options):
        keys = [None] * 4 if keys is None else keys
        x = drop(keys[0], options.input_dropout, x) if keys[0] is not None else x
        h = (x @ p["w1"]).reshape(self.count, 8, 8)
        h = jax.nn.elu(self.mix(h, p["a1"], p["b1"], keys[1], options) + p["c1"])
        h = drop(keys[2], 0.6, h) if keys[2] is not None else h
        h = (h @ p["w2"]).reshape(self.count, 1, -1)
        return self.mix(h, p["a2"], p["b2"], keys[3], options) + p["c2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=["gcn", "gat"])
    parser.add_argument("folder")
    parser.add_argument("split")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--input-dropout", type=float)
    parser.add_argument("--attention-dropout", type=float, default=0.6)
    options = parser.parse_args()
    numbers, to, origin, classes, part = read(options.folder, options.split)
    net = {"gcn": Gcn, "gat": Gat}[options.network](to, origin, len(classes))
    options.input_dropout = net.input_dropout if options.input_dropout is None else options.input_dropout
    x, y = jnp.array(numbers), jnp.array(classes)
    learnt, validation, test = (np.flatnonzero(part == p) for p in range(3))
    key = jax.random.PRNGKey(options.seed)
    key, begin = jax.random.split(key)
    p = net.begin(begin, numbers.shape[1], classes.max() + 1)

    def loss(p, key):
        chances = jax.nn.log_softmax(net.forward(p, x, jax.random.split(key, 4), options))
        decay = sum((p[name] ** 2).sum() for name in p if net.decays(name))
        return -chances[learnt, y[learnt]].mean() + 5e-4 / 2 * decay

    @jax.jit
    def step(p, first, second, number, key):
        slope = jax.grad(loss)(p, key)
        first = {name: 0.9 * first[name] + 0.1 * slope[name] for name in p}
        second = {name: 0.999 * second[name] + 0.001 * slope[name] ** 2 for name in p}
        ahead = {name: first[name] / (1 - 0.9**number) for name in p}
        size = {name: jnp.sqrt(second[name] / (1 - 0.999**number)) + 1e-8 for name in p}
        return {name: p[name] - net.rate * ahead[name] / size[name] for name in p}, first, second

    @jax.jit
    def judge(p):
        chances = jax.nn.log_softmax(net.forward(p, x, None, options))
        right = chances.argmax(axis=1) == y
        return right[validation].mean(), -chances[validation, y[validation]].mean(), right[test].mean()

    first = {name: jnp.zeros_like(value) for name, value in p.items()}
    second = dict(first)
    best = (-1.0, 0.0)
    for epoch in range(1, net.epochs + 1):
        key, own = jax.random.split(key)
        p, first, second = step(p, first, second, epoch, own)
        right, log_loss, of_test = map(float, judge(p))
        if (right, -log_loss) > best:
            best, said = (right, -log_loss), (epoch, right, of_test)
    print("%s: best of epoch %d, accuracy %.3f of validation, %.3f of the test" % ((options.network,) + said))


if __name__ == "__main__":
    main()
