#!/usr/bin/python3
"""Replays a profile on torch.distributed with Gloo, the way DistributedDataParallel works.

The replay is that of `sluice train --model replay:`. Gradients go into buckets in the order in which backward makes them; a full
bucket is summed over all ranks while backward continues; the step ends when all sums are done. Bucket sizes are DDP's (1 MiB for the
first, 25 MiB for the others), scaled like the parameters.

    mpirun ... ddp_gloo.py PROFILE TIME_SCALE PARAM_SCALE ITERATIONS

Rank 0 prints JSON: the mean time of an iteration in microseconds, without the first half of them.
"""
import json
import sys
import time

import torch
import torch.distributed as dist

import gloo

MIB = 1024 * 1024


def buckets_of(sizes, scale):
    """Lists of layers, last layer first."""
    buckets, limit, filled = [[]], 1 * MIB * scale, 0
    for layer in reversed(range(len(sizes))):
        if not sizes[layer]:
            continue
        buckets[-1].append(layer)
        filled += 4 * sizes[layer]
        if filled >= limit:
            buckets.append([])
            limit, filled = 25 * MIB * scale, 0
    return [bucket for bucket in buckets if bucket]


def sleep_until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


def main():
    path, time_scale, param_scale, iterations = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    rank, _ = gloo.join()

    with open(path) as file:
        layers = json.load(file)["layers"]
    sizes = [max(1, round(layer["params"] * param_scale)) if layer["params"] else 0 for layer in layers]
    forward = sum(layer["forward_us"] for layer in layers) * time_scale * 1e-6
    backward = [layer["backward_us"] * time_scale * 1e-6 for layer in layers]
    buckets = buckets_of(sizes, param_scale)
    last_of = {bucket[-1]: torch.zeros(sum(sizes[layer] for layer in bucket)) for bucket in buckets}

    dist.barrier()
    for iteration in range(iterations):
        if iteration == iterations // 2:
            half = time.monotonic()
        moment = time.monotonic() + forward
        sleep_until(moment)
        sums = []
        for layer in reversed(range(len(layers))):
            moment += backward[layer]
            sleep_until(moment)
            if layer in last_of:
                sums.append(dist.all_reduce(last_of[layer], async_op=True))
        for pending in sums:
            pending.wait()
    elapsed = time.monotonic() - half
    dist.barrier()
    if rank == 0:
        print(json.dumps({"iteration_us": elapsed * 1e6 / (iterations - iterations // 2)}))


main()
