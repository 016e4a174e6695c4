#!/usr/bin/python3
"""Trains a model of models.py as one of several processes, with Sluice's package or with PyTorch's DDP.

    mpirun ... train.py SYSTEM MODEL BATCH ITERATIONS

SYSTEM is ddp (over Gloo), ddp+bf16, ddp+fp16 or ddp+powersgd (with that hook), alone (no exchange), the name of a preset for
DistributedOptimizer, or sluice-ddp for Sluice's DistributedDataParallel (sluice-ddp+p3: with that preset). Trains on the GPU if there
is one, with SGD, and a GPT with AdamW. Rank 0 prints JSON: the mean time of an iteration in microseconds, without the first half of them.
"""
import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import models


def distributed(net, hook):
    """DDP, which may compress gradients. PowerSGD is of rank 4 and begins after 10 iterations, with all gradients in one bucket: each
    bucket takes several sums, and over Gloo those of different buckets get mixed up."""
    if hook == "powersgd":
        torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 1 << 40
        net = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1 << 20)
    else:
        net = torch.nn.parallel.DistributedDataParallel(net)
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    if hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=10)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif hook:
        net.register_comm_hook(None, getattr(default_hooks, f"{hook}_compress_hook"))
    return net


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main():
    name, batch, iterations = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    system, _, hook = sys.argv[1].partition("+")
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    if system in ("ddp", "alone"):
        import gloo
        rank, _ = gloo.join()
    else:
        import sluice.torch as sluice
        sluice.init()
        rank = sluice.rank()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
    net, samples, labels = (thing.to(device) for thing in models.make(name, batch))
    if system == "ddp":
        net = distributed(net, hook)
    elif system == "sluice-ddp":
        net = sluice.DistributedDataParallel(net, **({"preset": hook} if hook else {}))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4) if name == "gpt" else torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    if system not in ("ddp", "alone", "sluice-ddp"):
        optimizer = sluice.DistributedOptimizer(optimizer, net.named_parameters(), preset=system)
    # Without an exchange nothing else makes them share a GPU at the same time.
    gloo.dist.barrier() if system in ("ddp", "alone") else sluice.barrier()
    for iteration in range(iterations):
        if iteration == iterations // 2:
            synchronize(device)
            begin = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(samples), labels).backward()
        optimizer.step()
    synchronize(device)  # sums of the last step may be on their way, as those before `begin` were
    if rank == 0:
        print(json.dumps({"iteration_us": 1e6 * (time.monotonic() - begin) / (iterations - iterations // 2)}))


main()
