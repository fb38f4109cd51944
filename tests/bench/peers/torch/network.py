# SPDX-License-Identifier: Apache-2.0
"""network.py - Weir's network in PyTorch (inference/nn), around layers that DGL or PyTorch Geometric bring.

What Weir computes beyond it, the ages of edges and their number, is left out.
"""
import torch
from torch import nn

HIDDEN, FANOUTS = 256, (15, 10, 5)  # of the hops, from the targets on
RATE, DECAY, NORM_MAX = 3e-3, 1e-2, 5.0  # weir_train_defaults


class Network(nn.Module):
    def __init__(self, features, convolution, encoder):
        super().__init__()
        self.encode = nn.Linear(features, HIDDEN) if encoder == "layer" else None
        below = [HIDDEN if self.encode else features] + [HIDDEN] * (len(FANOUTS) - 1)
        self.layers = nn.ModuleList(convolution(width, HIDDEN) for width in below)
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in FANOUTS)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, x, hops, apply):
        h = torch.relu(self.encode(x)) if self.encode else x
        for layer, norm, hop in zip(self.layers, self.norms, hops):
            h = norm(torch.relu(apply(layer, hop, h)))
        return self.head(h).squeeze(1)


class Learner:
    """One step after the other: AdamW whose decay leaves biases and gains alone, as Weir's does."""

    def __init__(self, network):
        weights = [p for p in network.parameters() if p.dim() > 1]
        others = [p for p in network.parameters() if p.dim() == 1]
        self.network = network
        self.optimiser = torch.optim.AdamW(
            [{"params": weights, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}], lr=RATE
        )

    def step(self, x, hops, apply, sides):
        logits = self.network(x, hops, apply)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, sides)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), NORM_MAX)
        self.optimiser.step()
        return loss.item()
