# SPDX-License-Identifier: Apache-2.0
"""forward_oracle.py FILE - the network of inference/nn in NumPy, on one batch as tests/unit/inference/nn/numpy_test.c
wrote it. Ends with 0 when its logits are those of the file, to 1e-5, or 5e-5 where the last layer answers, norms do not
stand behind each layer, layers feed forward, or a row that is normed is nearly one number."""
import json
import sys

import numpy as np

CENTRES = np.linspace(np.log1p(1.0), np.log1p(400 * 86400.0), 8)

NO_SLOT = 2**32 - 1  # a vertex without an embedding of its own


def encode(batch, tensors):
    h = np.zeros((len(batch["input_types"]), batch["hidden"]))
    for t, kind in enumerate(batch["types"]):
        rows = np.flatnonzero(np.array(batch["input_types"]) == t)
        if len(rows) == 0:
            continue
        out = np.zeros((len(rows), batch["hidden"]))
        if kind["width"]:
            numbers = np.array(kind["numbers"]).reshape(len(rows), kind["width"])
            out += numbers @ tensors[f"encode.{kind['name']}.weight"]
        slots = np.array(kind["slots"], dtype=int).reshape(len(rows), len(kind["categories"]))
        for c, category in enumerate(kind["categories"]):
            name = f"encode.{kind['name']}.{category}.embedding" if category else f"encode.{kind['name']}.embedding"
            known = slots[:, c] != NO_SLOT
            out[known] += tensors[name][slots[known, c]]
        h[rows] = np.maximum(0, out + tensors[f"encode.{kind['name']}.bias"])
    return h


def edges(batch, step, mine, node):
    """What is known of these edges of a node: numbers and the code of their age."""
    before = batch["before_us"][batch["groups"][node]]
    ages = np.maximum(0, before - np.array(step["times"])[mine]) * 1e-6
    code = np.exp(-(((np.log1p(ages)[:, None] - CENTRES) / (CENTRES[1] - CENTRES[0])) ** 2))
    numbers = np.array(step["numbers"]).reshape(-1, step["width"])[mine] if step["width"] else np.zeros((len(mine), 0))
    return np.concatenate([numbers, code], axis=1)


def attention(batch, own, heads, h, node, children, known, loops):
    gat = batch["network"] == "gat"
    if gat and loops:  # the vertex is one of its own neighbours, by an edge of which nothing is known
        children = np.concatenate([children, h[node : node + 1]])
        known = np.concatenate([known, np.zeros((1, known.shape[1]))])
    values = children @ own("weight")[: h.shape[1]]
    if gat and loops:
        query = (values[-1] * own("query.weight")[0]).reshape(heads, -1).sum(1)
    else:
        query = h[node] @ own("query.weight")
    beside = query + known @ own("edge.weight")
    a = own("score.weight").reshape(heads, -1)
    by_head = values.reshape(len(values), heads, -1)
    leaky = lambda z: np.where(z > 0, z, 0.2 * z)
    if gat:
        scores = leaky(np.einsum("ehc,hc->eh", by_head, a) + beside)
    else:
        scores = np.einsum("ehc,hc->eh", leaky(by_head + beside.reshape(by_head.shape)), a)
    shares = np.exp(scores - scores.max(0))
    shares /= shares.sum(0)
    return np.einsum("eh,ehc->hc", shares, by_head).reshape(-1)


def degree(batch, step, child, otherwise):
    """One more than the child's edges along the same relation, back if that is followed at the next hop."""
    behind = [s for s in batch["steps"] if s["hop"] == step["hop"] + 1 and s["relation"] == step["relation"]]
    back = [s for s in behind if s["direction"] != step["direction"]]
    again = [s for s in behind if s["direction"] == step["direction"] and step["relation"] == "aa"]
    for found in back + again:
        return 1 + np.sum(np.array(found["parents"]) == child)
    return otherwise


def gathered(batch, own, step, h, node, mine):
    """What the weight's first rows are applied to."""
    nodes = np.array(step["children"], dtype=int)[mine]
    children, network, loops = h[nodes], batch["network"], step["relation"] == "aa"
    if network == "gcn":
        d = 1 + len(mine)
        weights = np.array([1 / np.sqrt(d * degree(batch, step, child, d)) for child in nodes])
        return weights @ children + (h[node] / d if loops else 0)
    if network == "gin":
        total = children.sum(0) + ((1 + own("epsilon")[0, 0]) * h[node] if loops else 0)
        return np.maximum(0, total @ own("hidden.weight") + own("hidden.bias")[0])
    if len(mine) == 0:
        return np.zeros(h.shape[1] * (9 if network == "pna" else 1))
    if network == "max":
        return children.max(0)
    if network == "pna":
        says = np.concatenate([children.mean(0), children.max(0), np.sqrt(children.var(0) + 1e-5)])
        scale = np.log1p(len(mine))
        return np.concatenate([says, says * scale, says / scale])
    return children.mean(0)


def message(batch, tensors, number, step, node, h):
    """What a step adds to a node."""
    own = lambda name: tensors[f"layer{number}.{step['relation']}.{step['direction']}.{name}"]
    mine = np.flatnonzero(np.array(step["parents"]) == node)
    known = edges(batch, step, mine, node)
    says = np.concatenate([known.mean(0) if len(mine) else np.zeros(known.shape[1]), [np.log1p(len(mine))]])
    weight = own("weight")
    out = says @ weight[len(weight) - len(says) :]
    if batch["network"] not in ("attention", "gat"):
        return out + gathered(batch, own, step, h, node, mine) @ weight[: len(weight) - len(says)]
    loops = step["relation"] == "aa"
    if len(mine) == 0 and not (loops and batch["network"] == "gat"):
        return out
    heads = 1 if answers(batch, number) else batch["heads"]
    return out + attention(batch, own, heads, h, node, h[np.array(step["children"], dtype=int)[mine]], known, loops)


def answers(batch, number):
    """The last layer of a network without a head."""
    return batch["headless"] and number == len(batch["hop_end"]) - 1


LEAST = [1.0]  # deviation of a row, by which its norm divides what its numbers are rounded to


def norm(batch, tensors, number, node, x):
    own = f"layer{number}.{batch['types'][batch['node_types'][node]]['name']}.norm."
    deviation = np.sqrt(x.var() + 1e-5)
    LEAST[0] = min(LEAST[0], deviation)
    x = (x - x.mean()) / deviation
    return x * tensors[own + "gain"][0] + tensors[own + "bias"][0]


def layer(batch, tensors, number, nodes, h):
    out = []
    for node in range(nodes):
        name = batch["types"][batch["node_types"][node]]["name"]
        x = tensors[f"layer{number}.{name}.bias"][0]
        if f"layer{number}.{name}.self.weight" in tensors:
            x = x + h[node] @ tensors[f"layer{number}.{name}.self.weight"]
        for step in batch["steps"]:
            if step["begin"] <= node < step["end"]:
                x = x + message(batch, tensors, number, step, node, h)
        if not answers(batch, number):
            x = np.maximum(0, x)
            if batch["feed_forward"]:
                x = x @ tensors[f"layer{number}.{name}.dense.weight"] + tensors[f"layer{number}.{name}.dense.bias"][0]
        if not answers(batch, number) and batch["norm"] == "layer":
            x = norm(batch, tensors, number, node, x)
        out.append(x)
    return np.array(out)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        batch = json.load(file)
    tensors = {t["name"]: np.array(t["values"]).reshape(t["rows"], t["cols"]) for t in batch["tensors"]}
    h = encode(batch, tensors)[batch["input_of"]]
    layers, rows = len(batch["hop_end"]) - 1, []
    for number in range(1, layers + 1):
        below, h = h, layer(batch, tensors, number, batch["hop_end"][layers - number], h)
        if batch["residual"] and number > 1 and not answers(batch, number):
            h = h + (stream if batch["norm"] == "stream" else below)[: len(h)]
        if batch["norm"] == "stream" and not answers(batch, number):
            stream, h = h, np.array([norm(batch, tensors, number, node, x) for node, x in enumerate(h)])
        rows.append(h[: batch["hop_end"][0]])  # targets are the first nodes
    if batch["headless"]:
        logits = rows[-1]
    else:
        seen = {"none": rows[-1], "concat": np.concatenate(rows, axis=1), "max": np.max(rows, axis=0)}[batch["jump"]]
        logits = seen @ tensors["head.weight"] + tensors["head.bias"]
    expected = np.array(batch["logits"]).reshape(logits.shape)
    error = np.max(np.abs(logits - expected) / (1 + np.abs(logits)))
    print(f"largest error {error:.2g} of {logits.size} logits")
    plain = batch["norm"] == "layer" and not batch["headless"] and not batch["feed_forward"]
    print(f"least deviation {LEAST[0]:.2g}")
    # What is left of large sums is rounded as they are, and what a norm divides by little as what it divides.
    return 0 if error < (1e-5 if plain and LEAST[0] > 0.05 else 5e-5) else 1


if __name__ == "__main__":
    sys.exit(main())
