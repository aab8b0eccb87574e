"""story_optim.py - Muon: steps whose matrices have all singular values near one.

Momentum is made orthogonal by a few Newton-Schulz steps, all matrices of one shape at once. The
result is scaled to the usual size of an AdamW step, so that rate and decay mean the same."""
import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # steep at zero: five steps reach [0.7, 1.2] from 1e-3


def orthogonal(matrices, dtype, steps=5):
    """matrices: [count, rows, columns], rows <= columns."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.to(dtype)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose(-2, -1)
        x = a * x + (b * square + c * (square @ square)) @ x
    return x


class Muon:
    def __init__(self, parameters, rate, decay, momentum=0.95, dtype=torch.bfloat16):
        self.rate, self.decay, self.momentum, self.dtype = rate, decay, momentum, dtype
        shapes = {}
        for p in parameters:
            shapes.setdefault(tuple(p.shape), []).append(p)
        self.groups = [(group, torch.zeros(len(group), *shape, device=group[0].device))
                       for shape, group in shapes.items()]

    @torch.no_grad()
    def step(self):
        for group, moving in self.groups:
            gradient = torch.stack([p.grad for p in group])
            moving.mul_(self.momentum).add_(gradient)
            ahead = gradient + self.momentum * moving
            tall = ahead.shape[-2] > ahead.shape[-1]
            step = orthogonal(ahead.transpose(-2, -1) if tall else ahead, self.dtype).float()
            step = step.transpose(-2, -1) if tall else step
            scale = 0.2 * max(step.shape[-2:]) ** 0.5
            torch._foreach_mul_(group, 1 - self.rate * self.decay)
            torch._foreach_add_(group, list(step.contiguous().unbind(0)), alpha=-self.rate * scale)
