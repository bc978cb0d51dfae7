"""Muon: momentum steps whose matrix is made (nearly) orthogonal, so that every direction learns alike.

After K. Jordan's description (2024): the update U S V^T becomes about U V^T by five steps of an odd
polynomial, which drives singular values towards 1 and needs nothing but products of matrices.
"""
import torch

A, B, C = 3.4445, -4.7750, 2.0315       # x -> Ax + Bx^3 + Cx^5: steep at 0, near 1 from 0.7 to 1.2


def orthogonal(g):
    x = g.bfloat16()
    tall = x.shape[0] > x.shape[1]
    x = x.t() if tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        y = x @ x.t()
        x = A * x + (B * y + C * (y @ y)) @ x
    return (x.t() if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """For the matrices inside the layers; embeddings and vectors belong to another optimizer."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p].setdefault("momentum", torch.zeros_like(p))
                kept.lerp_(p.grad, 1 - group["momentum"])
                u = orthogonal(p.grad.lerp(kept, group["momentum"]))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(u, alpha=-group["lr"] * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)
