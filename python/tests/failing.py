"""One process fails in a way given as an argument; all must end: mpirun -np 3 python3 failing.py HOW"""

import sys
import time

import torch
from torch import nn

import sluice.torch as sluice


def main(how: str) -> None:
    torch.set_num_threads(1)
    sluice.init()
    net = nn.Linear(4, 4)
    optimizer = sluice.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), 0.1), net.named_parameters()
    )
    for step in range(1_000_000):
        if step == 5 and sluice.rank() == 1:
            print(f"fails at {time.time()}", file=sys.stderr, flush=True)
            if how == "exception":
                raise ArithmeticError("the exception of rank 1")
            sys.exit(0 if how == "exit-0" else 3)
        optimizer.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()


main(sys.argv[1])
