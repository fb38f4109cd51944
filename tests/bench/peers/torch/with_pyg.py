# SPDX-License-Identifier: Apache-2.0
"""with_pyg.py - layers by PyTorch Geometric, which has no sampler of its own here: batches by DGL's GraphBolt.

PyPI has no pyg-lib, and of torch-sparse sources only; without one of them NeighborLoader does not sample. A layer's
edges are a matrix in rows, which is what PyTorch's own product takes the means of fastest on a processor.
"""
import torch
import torch_geometric
from torch_geometric.nn import SAGEConv

import with_dgl

NAME = f"pyg {torch_geometric.__version__} with the sampler of {with_dgl.NAME}"


class Batches:
    """Each: the targets, the vertices whose rows are read, and a matrix for each layer."""

    def __init__(self, graph, batch, workers):
        self.loader = with_dgl.sampled(graph.indptr, graph.neighbors, graph.targets, batch, workers)

    def __iter__(self):
        for made in self.loader:
            yield made.seed_nodes, made.input_nodes, [matrix(part) for part in made.sampled_subgraphs]


def matrix(part):
    edges = part.sampled_csc
    size = (len(part.original_column_node_ids), len(part.original_row_node_ids))
    return torch.sparse_csr_tensor(edges.indptr, edges.indices, torch.ones(len(edges.indices)), size=size)


def convolution(rows, columns):
    return SAGEConv(rows, columns, aggr="mean")


def apply(layer, hop, h):
    return layer((h, h[: hop.shape[0]]), hop)


def edges_of(hops):
    return sum(hop.values().numel() for hop in hops)
