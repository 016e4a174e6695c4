#!/usr/bin/env python3
"""Local steps and outer steps of some workers, in one process: a short reference in PyTorch.

    tests/nodes/golden/local_steps.py > tests/nodes/golden/local_steps.json

That file has the global parameters after every outer step of a linear regression.
"""
import copy
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "codecs/golden"))
from make_golden import top_k


def fragments_of(net, fragments):
    """The fragment of each parameter. The largest layer comes first, each goes to the fragment with the
    fewest parameters."""
    layers = [list(module.parameters(recurse=False)) for module in net.modules()]
    sizes = [sum(p.numel() for p in layer) for layer in layers]
    dealt, of_layer = [0] * fragments, [0] * len(layers)
    for layer in sorted(range(len(layers)), key=lambda layer: -sizes[layer]):
        of_layer[layer] = dealt.index(min(dealt))
        dealt[of_layer[layer]] += sizes[layer]
    return [fragment for layer, fragment in zip(layers, of_layer) for _ in layer]


def replicas_of(net, make_inner, workers):
    """Those of the workers, the parameters of each, and their optimizers."""
    nets = [copy.deepcopy(net) for _ in range(workers)]
    own = [list(replica.parameters()) for replica in nets]
    return nets, own, [make_inner(parameters) for parameters in own]


def find_gradients(nets, inner, loss, step):
    for worker, replica in enumerate(nets):
        inner[worker].zero_grad()
        loss(replica, worker, step).backward()


def train(net, make_inner, loss, workers, steps, every, fragments=1, delay=0, mix=0.0, synchronous=0,
          rate=1.0, momentum=0.0):
    """Yields the step, the global parameters and those of each worker, after every step."""
    nets, own, inner = replicas_of(net, make_inner, workers)
    shared = [p.detach().clone().requires_grad_() for p in net.parameters()]
    outer = torch.optim.SGD(shared, rate, momentum, nesterov=momentum > 0)
    fragment_of = fragments_of(net, fragments)
    due, outer_gradients = {}, {}  # by fragment
    for step in range(1, steps + 1):
        find_gradients(nets, inner, loss, step)
        with torch.no_grad():
            if step <= synchronous:  # as algorithm bsp
                for replicas in zip(*own):
                    mean = sum(p.grad for p in replicas) / workers
                    for p in replicas:
                        p.grad.copy_(mean)
            for optimizer in inner:
                optimizer.step()
            if step <= synchronous:
                for s, p in zip(shared, own[0]):
                    s.copy_(p)
            for fragment in range(fragments):
                mine = [i for i, f in enumerate(fragment_of) if f == fragment]
                local, turn = step - synchronous, (fragment + 1) * every // fragments
                if local > 0 and local % every == turn % every:
                    due[fragment] = step + delay
                    outer_gradients[fragment] = [sum(shared[i] - p[i] for p in own) / workers for i in mine]
                if due.get(fragment) == step:
                    outer.zero_grad(set_to_none=True)
                    for i, gradient in zip(mine, outer_gradients[fragment]):
                        shared[i].grad = gradient
                    outer.step()
                    for i in mine:
                        for p in own:
                            p[i].copy_(mix * p[i] + (1 - mix) * shared[i])
        yield step, shared, own


def train_with_top_k(net, make_inner, loss, workers, steps, every, rate, block, kept, decay):
    """SparseLoCo: workers send the largest values of each layer, and keep what is left of the others."""
    nets, own, inner = replicas_of(net, make_inner, workers)
    shared = [p.detach().clone() for p in net.parameters()]
    residuals = [[torch.zeros_like(s) for s in shared] for _ in range(workers)]
    for step in range(1, steps + 1):
        find_gradients(nets, inner, loss, step)
        for optimizer in inner:
            optimizer.step()
        if step % every == 0:
            with torch.no_grad():
                for i, s in enumerate(shared):
                    sent = []
                    for p, residual in zip(own, residuals):
                        residual[i] = decay * residual[i] + s - p[i]
                        sent.append(top_k(residual[i].flatten(), block, kept).view_as(s))
                        residual[i] -= sent[-1]
                    s -= rate * sum(sent) / workers
                    for p in own:
                        p[i].copy_(s)
        yield step, shared, own


def train_in_pairs(net, make_inner, loss, workers, steps, every, rate, momentum, pull, pairs):
    """NoLoCo: each worker has global parameters of its own, and meets one other worker, or none."""
    nets, own, inner = replicas_of(net, make_inner, workers)
    shared = [[p.detach().clone() for p in net.parameters()] for _ in range(workers)]
    velocity = [[torch.zeros_like(p) for p in net.parameters()] for _ in range(workers)]
    for step in range(1, steps + 1):
        find_gradients(nets, inner, loss, step)
        for optimizer in inner:
            optimizer.step()
        if step % every == 0:
            before = copy.deepcopy(shared)
            with torch.no_grad():
                for worker in range(workers):
                    met = [pair for pair in pairs[str(step)] if worker in pair] or [[worker]]
                    for i, s in enumerate(shared[worker]):
                        gradient = sum(before[w][i] - own[w][i].detach() for w in met[0]) / len(met[0])
                        mean = sum(before[w][i] for w in met[0]) / len(met[0])
                        velocity[worker][i] = momentum * velocity[worker][i] - rate * gradient + pull * (mean - s)
                        s += velocity[worker][i]
                for p, s in zip(own, shared):
                    for mine, new in zip(p, s):
                        mine.copy_(new)
        yield step, [s for of_worker in shared for s in of_worker], own


SGD = {"optimizer": "sgd", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.001}
ADAMW = {"optimizer": "adamw", "learning_rate": 0.02, "momentum": 0.0, "weight_decay": 0.01}
NESTEROV = {"rate": 0.7, "momentum": 0.9}
METHODS = {
    "local-sgd": (SGD, {"every": 4}),
    "post-local-sgd": (SGD, {"every": 3, "synchronous": 5}),
    "diloco": (ADAMW, {"every": 4, **NESTEROV}),
    "streaming-diloco": (ADAMW, {"every": 6, "fragments": 3, "delay": 2, "mix": 0.5, **NESTEROV}),
    "an exchange after every step": (SGD, {"every": 1, **NESTEROV}),
    "as many fragments as steps": (SGD, {"every": 3, "fragments": 3, "delay": 1}),
    "as elastic averaging": (SGD, {"every": 2, "rate": 0.6, "mix": 0.75}),
    "the longest delay": (ADAMW, {"every": 5, "fragments": 2, "delay": 4, **NESTEROV}),
    "synchronous, then streaming": (ADAMW, {"every": 4, "fragments": 2, "delay": 3, "mix": 0.25, "synchronous": 3,
                                            **NESTEROV}),
}
SPARSE_METHODS = {
    "sparseloco": (ADAMW, {"every": 4, "rate": 1.0, "block": 4, "kept": 2, "decay": 0.95}),
    "sparseloco, in other blocks": (SGD, {"every": 2, "rate": 0.8, "block": 5, "kept": 1, "decay": 0.5}),
}
# As Sluice draws them from seed 1.
PAIRS = {"3": [[0, 2]], "6": [[0, 1]], "9": [[0, 2]], "12": [[0, 2]], "15": [[1, 2]]}
PAIRED_METHODS = {
    "noloco": (ADAMW, {"every": 3, "rate": 0.7, "momentum": 0.5, "pull": 0.7, "pairs": PAIRS}),
}
WORKERS, STEPS, INPUTS, OUTPUTS = 3, 16, 4, (2, 3, 1)


def make_inner(settings):
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    if settings["optimizer"] == "adamw":
        return lambda parameters: torch.optim.AdamW(parameters, rate, weight_decay=decay)
    return lambda parameters: torch.optim.SGD(parameters, rate, settings["momentum"], weight_decay=decay)


def flat(parameters):
    return [round(value, 10) for p in parameters for value in p.detach().flatten().tolist()]


def main():
    torch.manual_seed(1)
    # Each worker has one sample per step; sixteenths are exact in any precision.
    samples = (torch.randn(WORKERS, STEPS, INPUTS, dtype=torch.float64) * 16).round() / 16
    targets = (torch.randn(WORKERS, STEPS, sum(OUTPUTS), dtype=torch.float64) * 16).round() / 16
    net = torch.nn.ModuleList(torch.nn.Linear(INPUTS, n, bias=False) for n in OUTPUTS).double()
    for p in net.parameters():
        p.data = (p.data * 16).round() / 16

    def loss(own, worker, step):
        sample, target = samples[worker, step - 1], targets[worker, step - 1]
        return 0.5 * (torch.cat([layer(sample) for layer in own]) - target).square().sum()

    runs = {}
    all_methods = [(train, METHODS), (train_with_top_k, SPARSE_METHODS), (train_in_pairs, PAIRED_METHODS)]
    for method, name, (inner, cadence) in ((m, name, of) for m, those in all_methods for name, of in those.items()):
        outer_steps, before = [], flat(net.parameters()) * (WORKERS if method is train_in_pairs else 1)
        for step, shared, own in method(net, make_inner(inner), loss, WORKERS, STEPS, **cadence):
            if step > cadence.get("synchronous", 0) and flat(shared) != before:
                outer_steps.append({"step": step, "global": flat(shared)})
            before = flat(shared)
        runs[name] = {"inner": inner, "cadence": cadence, "outer_steps": outer_steps, "own": [flat(p) for p in own]}
    print(json.dumps({"steps": STEPS, "outputs": OUTPUTS, "initial": flat(net.parameters()), "samples": samples.tolist(),
                      "targets": targets.tolist(), "runs": runs}))


if __name__ == "__main__":
    main()
