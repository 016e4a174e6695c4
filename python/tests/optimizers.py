"""All optimizers with all presets against one process: mpirun -np N python3 optimizers.py"""

import sys
from typing import Dict

import torch

import sluice.torch as sluice
from reference import Make, check, check_equal, finish, make_net, step_both

STEPS = 4
OPTIMIZERS: Dict[str, Make] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda p: torch.optim.Adam(p, 1e-3, eps=1e-4),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, 1e-3, eps=1e-4, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-4),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-3, eps=1e-4),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 1e-3, eps=1e-4),
    "Adadelta": lambda p: torch.optim.Adadelta(p, 0.1, eps=1e-4),
    "NAdam": lambda p: torch.optim.NAdam(p, 1e-3, eps=1e-4),
    "RAdam": lambda p: torch.optim.RAdam(p, 1e-3, eps=1e-4),
    "Adamax": lambda p: torch.optim.Adamax(p, 1e-3, eps=1e-4),
    "ASGD": lambda p: torch.optim.ASGD(p, 0.05),
    "Rprop": lambda p: torch.optim.Rprop(p, 1e-4, step_sizes=(1e-6, 1e-3)),
}


def train(preset: str, name: str) -> None:
    alone, together = make_net(), make_net()
    reference = OPTIMIZERS[name](list(alone.parameters()))
    optimizer = sluice.DistributedOptimizer(
        OPTIMIZERS[name](list(together.parameters())), together.named_parameters(), preset=preset
    )
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.9) for o in (reference, optimizer)]
    for step in range(STEPS):
        step_both(step, (alone, reference), (together, optimizer))
        for schedule in schedules:
            schedule.step()
    check_equal(f"{name} with {preset}", alone, together)
    check(f"{name} with {preset} takes steps", optimizer._reduction.counts()["steps"] == STEPS)


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    for preset in sys.argv[1:] or sluice.presets():
        for name in OPTIMIZERS:
            train(preset, name)
    finish()


main()
