#!/usr/bin/env python3
"""A plain PyTorch loop on a GPU that the processes share, alone or as DDP over Gloo. Started by mpirun, in a lab or not.

    ddp.py MODEL BATCH ITERATIONS ddp|alone
"""
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import gloo


def main():
    model_name, batch, iterations, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rank, _ = gloo.join()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    model = getattr(torchvision.models, model_name)(weights=None).cuda()
    if mode == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    samples = torch.randn(batch, 3, 224, 224).cuda()
    answers = torch.randint(0, 1000, (batch,)).cuda()

    def step():
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(samples), answers).backward()
        optimiser.step()
        torch.cuda.synchronize()

    for _ in range(max(2, iterations // 2)):
        step()
    dist.barrier()
    begin = time.monotonic()
    for _ in range(iterations):
        step()
    mean = (time.monotonic() - begin) / iterations
    if rank == 0:
        print(json.dumps({"iteration_us": mean * 1e6}), flush=True)
    dist.barrier()


main()
