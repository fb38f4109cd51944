# SPDX-License-Identifier: Apache-2.0
"""epoch.py - what `weir bench epoch` measures, of DGL or PyTorch Geometric: epoch.py dgl|pyg GRAPH."""
import argparse
import importlib
import os
import time

import torch

from graph import Graph
from network import Learner, Network


def processors():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def epoch(learner, batches, graph, x, peer):
    """Seconds: of the clock, of processors, until a batch was sampled, and while rows were gathered; and the rest."""
    begin, cpu, sampling, gathering, edges, count, loss = time.perf_counter(), processors(), 0, 0, 0, 0, 0
    at = begin
    for targets, vertices, hops in batches:
        sampled = time.perf_counter()
        rows = x[vertices]
        gathered = time.perf_counter()
        loss += learner.step(rows, hops, peer.apply, graph.sides[targets])
        edges += peer.edges_of(hops)
        count += 1
        sampling += sampled - at
        gathering += gathered - sampled
        at = time.perf_counter()
    return at - begin, processors() - cpu, sampling, gathering, edges, count, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("dgl", "pyg"))
    parser.add_argument("graph")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--encoder", choices=("layer", "none"), default="none")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    peer = importlib.import_module(f"with_{given.peer}")

    graph = Graph(given.graph)
    x = torch.from_numpy(graph.x)
    learner = Learner(Network(x.shape[1], peer.convolution, given.encoder))
    batches = peer.Batches(graph, given.batch, given.workers)
    epoch(learner, batches, graph, x, peer)
    sums = [sum(column) for column in zip(*(epoch(learner, batches, graph, x, peer) for _ in range(given.rounds)))]
    whole, cpu, sampling, gathering, edges, count, loss = sums

    def say(what, value, unit, ratio=None):
        print(f"{given.peer:<10} {what:<36} {value:12.6g} {unit:<11}" + (f" {ratio:6.3f}" if ratio else ""))

    each = 1000 / count
    say("a batch", whole * each, "ms")
    say("batches", count / whole, "/s")
    say("a batch, time of processors", cpu * each, "ms")
    say("sample", sampling * each, "ms a batch", sampling / whole)
    say("gather", gathering * each, "ms a batch", gathering / whole)
    rest = whole - sampling - gathering
    say("compute and update", rest * each, "ms a batch", rest / whole)
    say("edges of a batch", edges / count, "edges")
    say("loss", loss / count, "")
    print(f"{given.peer:<10} sum of the graph {graph.sum()}")
    print(f"{given.peer:<10} {peer.NAME}, torch {torch.__version__}, {given.threads} threads, {given.workers} workers")


main()
