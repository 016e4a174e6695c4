#!/usr/bin/python3
"""What sluice.torch costs a program of one process: steps with and without it, by turns.

    PYTHONPATH=build/python bench/python/overhead.py [--model resnet18] [--batch 16] [--steps 5] [--turns 5] [--optimizer sgd]

Prints the medians of a step in milliseconds, and their difference.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import models
import sluice.torch as sluice


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18", choices=sorted(models.MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--optimizer", default="sgd", choices=("sgd", "adam"))
    return parser.parse_args()


def stepper(args, distributed):
    """A function that takes a step."""
    net, samples, labels = models.make(args.model, args.batch)
    if args.optimizer == "sgd":
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(net.parameters(), 1e-4)
    if distributed:
        optimizer = sluice.DistributedOptimizer(optimizer, net.named_parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(samples), labels).backward()
        optimizer.step()

    return step


def timed(step, steps):
    begin = time.monotonic()
    for _ in range(steps):
        step()
    return (time.monotonic() - begin) * 1e3 / steps


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(False)
    plain = stepper(args, False)
    alone = [timed(plain, args.steps) for _ in range(args.turns + 1)][1:]
    sluice.init()
    ours = stepper(args, True)
    timed(ours, args.steps)
    # The gate is in the process from here on, so the plain steps pay for it, too: compare with `alone`.
    with_sluice = [timed(ours, args.steps) for _ in range(args.turns)]
    before, after = statistics.median(alone), statistics.median(with_sluice)
    print(f"{args.model} {args.optimizer}: alone {before:.3f} ms, with Sluice {after:.3f} ms: "
          f"{after - before:+.3f} ms, {100 * (after / before - 1):+.1f} %")


main()
