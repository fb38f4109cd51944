# SPDX-License-Identifier: Apache-2.0
"""with_dgl.py - batches by DGL's GraphBolt, layers by dgl.nn."""
import dgl
import dgl.graphbolt as gb
import dgl.nn
import torch

from network import FANOUTS

NAME = f"dgl {dgl.__version__}"


def sampled(indptr, neighbors, seeds, batch, workers):
    graph = gb.fused_csc_sampling_graph(torch.from_numpy(indptr), torch.from_numpy(neighbors))
    pipe = gb.ItemSampler(gb.ItemSet(seeds, names="seed_nodes"), batch_size=batch, shuffle=True)
    return gb.DataLoader(pipe.sample_neighbor(graph, list(reversed(FANOUTS))), num_workers=workers)


class Batches:
    """Each: the targets, the vertices whose rows are read, and a block for each layer."""

    def __init__(self, graph, batch, workers):
        self.loader = sampled(graph.indptr, graph.neighbors, graph.targets, batch, workers)

    def __iter__(self):
        for made in self.loader:
            yield made.seed_nodes, made.input_nodes, made.blocks


def convolution(rows, columns):
    return dgl.nn.SAGEConv(rows, columns, "mean")


def apply(layer, block, h):
    return layer(block, h)


def edges_of(hops):
    return sum(block.num_edges() for block in hops)
