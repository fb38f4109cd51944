# SPDX-License-Identifier: Apache-2.0
"""graph.py - the arrays of a snapshot that `weir bench epoch --graph` has made, and their sum, as it forms it."""
import os

import numpy as np
import torch

FACTOR = np.uint64(0x9E3779B97F4A7C15)
CHUNK = 1 << 22  # so that what the sum needs beside the arrays stays small


class Graph:
    def __init__(self, folder):
        def array(*path):
            return np.load(os.path.join(folder, "snapshot", *path))

        self.indptr = array("relations", "edge", "out", "indptr.npy")
        self.neighbors = array("relations", "edge", "out", "neighbors.npy")
        self.x = array("vertices", "node", "matrix.x.npy")
        train = array("vertices", "node", "mask.train.npy")
        side = np.zeros(len(self.x), dtype=np.float32)
        side[array("labels", "side", "targets.npy")] = array("labels", "side", "values.npy")
        self.targets = torch.from_numpy(np.flatnonzero(train))
        self.sides = torch.from_numpy(side)

    def sum(self):
        total = np.uint64(0)
        with np.errstate(over="ignore"):
            sources = np.repeat(np.arange(1, len(self.indptr), dtype=np.uint64), np.diff(self.indptr))
            for at in range(0, len(self.neighbors), CHUNK):
                end = self.neighbors[at : at + CHUNK].view(np.uint64)
                total += ((sources[at : at + CHUNK] * FACTOR) ^ end).sum(dtype=np.uint64)
            bits = self.x.reshape(-1).view(np.uint32)
            for at in range(0, len(bits), CHUNK):
                total += (bits[at : at + CHUNK].astype(np.uint64) * FACTOR).sum(dtype=np.uint64)
        return f"{int(total):016x}"
