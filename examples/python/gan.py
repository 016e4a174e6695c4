"""A generator learns to draw points on a ring, against a critic; each has an optimizer:

mpirun -np 2 --bind-to none python3 gan.py [--steps N] [--preset NAME]
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice

NOISE = 8
BATCH = 64


def make_net(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(width_in, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, width_out)
    )


def on_ring(count: int, generator: torch.Generator) -> torch.Tensor:
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    return torch.stack([angle.cos(), angle.sin()], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--preset", default="p3")
    settings = parser.parse_args()

    sluice.init()
    torch.manual_seed(1)
    draws, judges = make_net(NOISE, 2), make_net(2, 1)
    optimizers = []
    for net in (draws, judges):
        optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.99))
        optimizers.append(
            sluice.DistributedOptimizer(optimizer, net.named_parameters(), preset=settings.preset)
        )
        sluice.broadcast_parameters(net.state_dict(), root_rank=0)
    for_drawing, for_judging = optimizers

    own = torch.Generator().manual_seed(sluice.rank())
    for step in range(settings.steps):
        noise = torch.randn(BATCH, NOISE, generator=own)
        for_judging.zero_grad()
        real, drawn = judges(on_ring(BATCH, own)), judges(draws(noise).detach())
        (F.softplus(-real) + F.softplus(drawn)).mean().backward()
        for_judging.step()

        for_drawing.zero_grad()
        F.softplus(-judges(draws(noise))).mean().backward()
        for_drawing.step()
        if step % 100 == 0 or step == settings.steps - 1:
            with torch.no_grad():
                radius = draws(torch.randn(500, NOISE, generator=own)).norm(dim=1)
            off = sluice.allreduce((radius - 1).abs().mean()).item()
            if sluice.rank() == 0:
                print(f"step {step}: points are {off:.2f} off the ring", flush=True)
    counts = sluice.summary()
    if sluice.rank() == 0:
        print(f"{counts['sent_in_backward']} gradients left in the backward pass, {counts['sent_in_step']} after it")
    assert off < 0.5, "it has learned too little"


main()
