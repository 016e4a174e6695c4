#!/usr/bin/python3
"""Trains a model of models.py as one of several processes, with Sluice's package or with PyTorch's DDP.

    mpirun ... train.py SYSTEM MODEL BATCH ITERATIONS

SYSTEM is ddp (over Gloo), the name of a preset for DistributedOptimizer, or sluice-ddp for Sluice's DistributedDataParallel. Rank 0
prints JSON: the median time of an iteration in microseconds, without the first half of them.
"""
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import models


def main():
    system, name, batch, iterations = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(False)
    net, samples, labels = models.make(name, batch)
    if system == "ddp":
        import gloo
        rank, _ = gloo.join()
        net = torch.nn.parallel.DistributedDataParallel(net)
    else:
        import sluice.torch as sluice
        sluice.init()
        rank = sluice.rank()
        if system == "sluice-ddp":
            net = sluice.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    if system not in ("ddp", "sluice-ddp"):
        optimizer = sluice.DistributedOptimizer(optimizer, net.named_parameters(), preset=system)
    moments = []
    for _ in range(iterations + 1):
        moments.append(time.monotonic())
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(samples), labels).backward()
        optimizer.step()
    spans = [after - before for before, after in zip(moments, moments[1:])]
    if rank == 0:
        print(json.dumps({"iteration_us": 1e6 * statistics.median(spans[iterations // 2:])}))


main()
