# SPDX-License-Identifier: Apache-2.0
"""sample.py - what `weir bench sample` measures, of DGL: 15, 10 and 5 edges, distinct vertices numbered, one core."""
import argparse
import os
import time

import numpy as np
import torch

import with_dgl

parser = argparse.ArgumentParser()
parser.add_argument("graph")
parser.add_argument("--batches", type=int, default=30)
parser.add_argument("--rounds", type=int, default=3)
given = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(1)

BATCH = 1024
indptr, neighbors = (np.load(os.path.join(given.graph, name)) for name in ("indptr.npy", "neighbors.npy"))
rates, times = [], []
for _ in range(given.rounds + 1):
    seeds = torch.randint(len(indptr) - 1, (given.batches * BATCH,))
    begin, cpu, edges = time.perf_counter(), time.process_time(), 0
    for made in with_dgl.sampled(indptr, neighbors, seeds, BATCH, 0):
        edges += sum(len(part.sampled_csc.indices) for part in made.sampled_subgraphs)
    rates.append(edges / (time.perf_counter() - begin) / 1e6)
    times.append(edges / (time.process_time() - cpu) / 1e6)
for what, of in (("edges sampled", rates), ("edges sampled, time of the processor", times)):
    print(f"{'dgl':<10} {what:<40} {sorted(of[1:])[given.rounds // 2]:10.1f} M edges/s")
