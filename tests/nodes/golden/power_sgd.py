#!/usr/bin/env python3
"""PowerSGD of some workers, in one process: a short reference in PyTorch.

    tests/nodes/golden/power_sgd.py > tests/nodes/golden/power_sgd.json

That file has the parameters of a linear regression after every step, and what each worker has kept back in the end.
"""
import json

import torch


def factored(matrix, rank):
    """As PyTorch's hook decides: factors that take less than half of their matrix."""
    return matrix.dim() > 1 and 2 * rank * (matrix.shape[0] + matrix[0].numel()) < matrix.numel()


def power_sgd(gradients, residuals, q, rank, decay):
    """The sum of the workers' gradients as their factors have it; residuals and q are those of the next step."""
    workers = len(gradients)
    if not factored(gradients[0], rank):
        return sum(gradients)
    matrices = [decay * r + g.reshape(g.shape[0], -1) for g, r in zip(gradients, residuals)]
    start = torch.linalg.qr(q)[0]
    p = torch.linalg.qr(sum(m @ start for m in matrices))[0]
    q.copy_(sum(m.T @ p for m in matrices))
    total = p @ q.T
    for matrix, residual in zip(matrices, residuals):
        residual.copy_(matrix - total / workers)
    return total.reshape(gradients[0].shape)


RUNS = {
    "rank 1": {"rank": 1, "decay": 1.0, "momentum": 0.9, "weight_decay": 0.001},
    "rank 2": {"rank": 2, "decay": 1.0, "momentum": 0.0, "weight_decay": 0.0},
    "what is lost decays": {"rank": 1, "decay": 0.5, "momentum": 0.0, "weight_decay": 0.0},
    "all dense": {"rank": 3, "decay": 1.0, "momentum": 0.9, "weight_decay": 0.0},
}
# Two matrices, of which the second is too small, each with a bias.
WORKERS, STEPS, INPUTS, OUTPUTS = 3, 6, 12, (11, 2)


def train(net, samples, targets, run, initial):
    parameters = [p.detach().clone().requires_grad_() for p in net.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.05, run["momentum"], weight_decay=run["weight_decay"])
    shape = parameters[0].shape
    residuals = [torch.zeros(shape, dtype=torch.float64) for _ in range(WORKERS)]
    q = initial[:, :run["rank"]].clone()
    for step in range(STEPS):
        gradients = []
        for worker in range(WORKERS):
            outputs = [torch.nn.functional.linear(samples[worker, step], w, b)
                       for w, b in zip(parameters[::2], parameters[1::2])]
            loss = 0.5 * (torch.cat(outputs) - targets[worker, step]).square().sum()
            gradients.append(torch.autograd.grad(loss, parameters))
        for i, parameter in enumerate(parameters):
            own = [g[i] for g in gradients]
            total = power_sgd(own, residuals, q, run["rank"], run["decay"]) if i == 0 else sum(own)
            parameter.grad = total / WORKERS
        optimizer.step()
        yield parameters, residuals


def flat(tensors):
    return [round(value, 8) for t in tensors for value in t.detach().flatten().tolist()]


def main():
    torch.manual_seed(1)
    # Each worker has one sample per step; sixteenths are exact in any precision.
    exact = lambda *shape: (torch.randn(*shape, dtype=torch.float64) * 16).round() / 16
    samples, targets = exact(WORKERS, STEPS, INPUTS), exact(WORKERS, STEPS, sum(OUTPUTS))
    net = torch.nn.ModuleList(torch.nn.Linear(INPUTS, n) for n in OUTPUTS).double()
    for p in net.parameters():
        p.data = exact(*p.shape) / 4
    initial = exact(INPUTS, 3)
    runs = {}
    for name, run in RUNS.items():
        steps = []
        for parameters, residuals in train(net, samples, targets, run, initial):
            steps.append(flat(parameters))
        runs[name] = {**run, "steps": steps, "residuals": [flat([r]) for r in residuals]}
    print(json.dumps({"inputs": INPUTS, "outputs": OUTPUTS, "initial": flat(net.parameters()),
                      "q": initial.T.tolist(), "samples": samples.tolist(), "targets": targets.tolist(), "runs": runs}))


if __name__ == "__main__":
    main()
