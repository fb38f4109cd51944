# SPDX-License-Identifier: Apache-2.0
"""forward_oracle.py FILE - the network of inference/nn in NumPy, on one batch as tests/unit/inference/nn/numpy_test.c
wrote it. Ends with 0 when its logits are those of the file, to 1e-5."""
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


def message(batch, step, node, h):
    mine = np.flatnonzero(np.array(step["parents"]) == node)
    if len(mine) == 0:
        return np.zeros(h.shape[1] + step["width"] + 9)
    before = batch["before_us"][batch["groups"][node]]
    ages = np.maximum(0, before - np.array(step["times"])[mine]) * 1e-6
    code = np.exp(-(((np.log1p(ages)[:, None] - CENTRES) / (CENTRES[1] - CENTRES[0])) ** 2))
    numbers = np.array(step["numbers"]).reshape(-1, step["width"])[mine] if step["width"] else np.zeros((len(mine), 0))
    children = h[np.array(step["children"])[mine]]
    return np.concatenate([children.mean(0), numbers.mean(0), code.mean(0), [np.log1p(len(mine))]])


def layer(batch, tensors, number, nodes, h):
    out = np.zeros((nodes, batch["hidden"]))
    for node in range(nodes):
        name = batch["types"][batch["node_types"][node]]["name"]
        x = h[node] @ tensors[f"layer{number}.{name}.self.weight"] + tensors[f"layer{number}.{name}.bias"][0]
        for step in batch["steps"]:
            if step["begin"] <= node < step["end"]:
                weight = tensors[f"layer{number}.{step['relation']}.{step['direction']}.weight"]
                x = x + message(batch, step, node, h) @ weight
        x = np.maximum(0, x)
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        out[node] = x * tensors[f"layer{number}.{name}.norm.gain"][0] + tensors[f"layer{number}.{name}.norm.bias"][0]
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        batch = json.load(file)
    tensors = {t["name"]: np.array(t["values"]).reshape(t["rows"], t["cols"]) for t in batch["tensors"]}
    h = encode(batch, tensors)[batch["input_of"]]
    layers = len(batch["hop_end"]) - 1
    for number in range(1, layers + 1):
        h = layer(batch, tensors, number, batch["hop_end"][layers - number], h)
    logits = h @ tensors["head.weight"] + tensors["head.bias"]
    expected = np.array(batch["logits"]).reshape(logits.shape)
    error = np.max(np.abs(logits - expected) / (1 + np.abs(logits)))
    print(f"largest error {error:.2g} of {logits.size} logits")
    return 0 if error < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
