#!/usr/bin/python3
"""Measures the time of Gloo's all-reduce by its size, as allreduce.cc measures MPI_Allreduce.

    mpirun ... gloo_allreduce.py BYTES...

Rank 0 prints "gloo BYTES MICROSECONDS" for each.
"""
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import gloo

WARM_UP = 3


def repetitions(size):
    return min(max((64 << 20) // size, 5), 200)


def median_us(size):
    gradients, parameters, velocity = (torch.zeros(size // 4) for _ in range(3))
    times = []
    for _ in range(WARM_UP + repetitions(size)):
        begin = time.monotonic()
        dist.all_reduce(gradients)
        times.append(time.monotonic() - begin)
        velocity.mul_(0.9).add_(gradients, alpha=1 / dist.get_world_size())
        parameters.sub_(velocity, alpha=0.05)
    return statistics.median(times[WARM_UP:]) * 1e6


def main():
    rank, _ = gloo.join()
    for size in map(int, sys.argv[1:]):
        microseconds = median_us(size)
        if rank == 0:
            print(f"gloo {size} {microseconds:.1f}", flush=True)
    dist.barrier()


main()
