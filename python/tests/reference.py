"""Compares training with Sluice with one process that has the joined batch."""

from typing import Callable, List, Tuple

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice
from sluice.torch import reduction

BATCH = 6
reduction.JOINS_LAYERS = False  # all modules are tiny here, and should travel one by one
Batch = Tuple[torch.Tensor, torch.Tensor]


class Net(nn.Module):
    """With a tied weight, a parameter without a module, a frozen layer and one that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.middle = nn.Linear(16, 16)
        self.scale = nn.Parameter(torch.ones(16))
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.frozen = nn.Linear(16, 16)
        self.unused = nn.Linear(3, 3)
        self.last = nn.Linear(16, 4)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.middle(torch.tanh(self.first(x)))) * self.scale
        x = x + self.attention(x[:, None], x[:, None], x[:, None])[0][:, 0]
        x = F.linear(x, self.middle.weight)
        return self.last(self.frozen(x))


def make_net() -> Net:
    torch.manual_seed(0)
    return Net()


def joined_batch(step: int) -> Batch:
    generator = torch.Generator().manual_seed(step)
    count = BATCH * sluice.size()
    return (
        torch.randn(count, 8, generator=generator),
        torch.randint(0, 4, (count,), generator=generator),
    )


def own_part(batch: Batch) -> Batch:
    begin = BATCH * sluice.rank()
    return batch[0][begin : begin + BATCH], batch[1][begin : begin + BATCH]


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    """On the device of the model."""
    inputs, labels = (part.to(next(model.parameters()).device) for part in batch)
    return F.cross_entropy(model(inputs), labels)


Trained = Tuple[nn.Module, torch.optim.Optimizer]


def step_both(step: int, alone: Trained, together: Trained) -> None:
    """One on the joined batch, and the other with Sluice on this process's part."""
    batch = joined_batch(step)
    for (net, optimizer), part in ((alone, batch), (together, own_part(batch))):
        optimizer.zero_grad()
        loss_of(net, part).backward()
        optimizer.step()


def largest_difference(one: nn.Module, other: nn.Module) -> float:
    return max(
        (a.detach() - b.detach()).abs().max().item()
        for a, b in zip(one.parameters(), other.parameters())
    )


failures: List[str] = []


def check(what: str, holds: bool, detail: str = "") -> None:
    if not holds:
        failures.append(what)
        print(f"FAILED on rank {sluice.rank()} of {sluice.size()}: {what} {detail}", flush=True)


def check_equal(what: str, one: nn.Module, other: nn.Module, tolerance: float = 1e-6) -> None:
    difference = largest_difference(one, other)
    check(what, difference <= tolerance, f"(largest difference {difference:.2e})")


def finish() -> None:
    """The exit code of a test program, the same in all processes."""
    total = sum(sluice.allgather_object(len(failures)))
    if sluice.rank() == 0:
        print("failed" if total else "passed", total or "")
    sluice.shutdown()
    raise SystemExit(1 if total else 0)


Make = Callable[[List[torch.Tensor]], torch.optim.Optimizer]
