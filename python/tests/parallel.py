"""DistributedDataParallel against one process: mpirun -np N python3 parallel.py"""

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice
from newer import check_compiled, check_hooks_after_accumulation, check_on_gpu
from prediction import check_prediction
from reference import (
    check,
    check_equal,
    finish,
    joined_batch,
    loss_of,
    make_net,
    own_part,
    step_both,
)
from sluice.torch import reduction
from sluice.torch.reduction import Reduction


def check_training(accumulates: bool) -> None:
    alone, inner = make_net(), make_net()
    if sluice.rank() > 0:  # they begin with the parameters of rank 0
        with torch.no_grad():
            for parameter in inner.parameters():
                parameter.add_(1)
    model = sluice.DistributedDataParallel(inner, find_unused_parameters=True)
    reference = torch.optim.Adam(alone.parameters(), 1e-3, eps=1e-4)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-4)
    for step in range(4):
        reference.zero_grad()
        optimizer.zero_grad()
        if accumulates:
            batch = joined_batch(100 + step)
            loss_of(alone, batch).backward()
            with model.no_sync():
                loss_of(model, own_part(batch)).backward()
        batch = joined_batch(step)
        loss_of(alone, batch).backward()
        loss_of(model, own_part(batch)).backward()
        unused = all(parameter.grad is None for parameter in inner.unused.parameters())
        check("a parameter that nobody uses has no gradient", unused)
        for net in (alone, model):
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        reference.step()
        optimizer.step()
    check_equal(f"DDP, accumulates: {accumulates}", alone, inner)


def check_used_by_one() -> None:
    """A layer that only one process uses gets its gradient everywhere."""
    net = make_net()
    model = sluice.DistributedDataParallel(net, find_unused_parameters=True)
    hidden = net.first(own_part(joined_batch(0))[0])
    model.train()
    if sluice.rank() == 0:
        hidden = net.middle(hidden)
    F.mse_loss(net.last(hidden), torch.zeros(hidden.shape[0], 4)).backward()
    gradient = net.middle.bias.grad
    check("the gradient of one process is everywhere", gradient is not None)
    values = sluice.allgather_object(gradient)
    check("it is the same", all(torch.equal(value, values[0]) for value in values))


def check_buffers() -> None:
    """After a backward pass the buffers are those that process 0 had after the forward pass."""
    torch.manual_seed(sluice.rank())
    model = sluice.DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    norm = model.module[1]
    for _ in range(3):
        loss = model(torch.randn(5, 3)).sum()
        own = sluice.allgather_object((norm.running_mean.clone(), norm.running_var.clone()))
        apart = sluice.size() == 1 or not torch.equal(own[0][0], own[-1][0])
        check("each process has statistics of its own data", apart)
        loss.backward()
        first = torch.equal(norm.running_mean, own[0][0]) and torch.equal(norm.running_var, own[0][1])
        check("buffers are those of process 0", first)
    check("the count of batches, too", int(norm.num_batches_tracked) == 3)
    check_overlap("DDP with buffers", model._reduction, 3)
    with model.no_sync():
        model(torch.randn(5, 3)).sum().backward()
    check_apart("without synchronisation buffers stay apart", norm.running_mean)
    alone = sluice.DistributedDataParallel(nn.BatchNorm1d(3), broadcast_buffers=False)
    alone(torch.randn(5, 3)).sum().backward()
    check_apart("so they do with broadcast_buffers=False", alone.module.running_mean)


def check_apart(what: str, value: torch.Tensor) -> None:
    values = sluice.allgather_object(value)
    check(what, sluice.size() == 1 or not torch.equal(values[0], values[-1]))


def check_overlap(what: str, reduction: Reduction, steps: int) -> None:
    """All gradients but those of the first step, before which layers are unknown, left early."""
    counts = reduction.counts()
    early = counts["sent_in_backward"] == (steps - 1) * counts["layers"]
    check(f"{what}: gradients leave in the backward pass", early, str(counts))


def check_sync_batch_norm() -> None:
    """Statistics and gradients are those of the joined batch."""
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 4))
    torch.manual_seed(0)
    together = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 4))
    together = sluice.SyncBatchNorm.convert_sync_batchnorm(together)
    reference = torch.optim.SGD(alone.parameters(), 0.1, momentum=0.9)
    optimizer = sluice.DistributedOptimizer(
        torch.optim.SGD(together.parameters(), 0.1, momentum=0.9), together.named_parameters()
    )
    for step in range(4):
        step_both(step, (alone, reference), (together, optimizer))
    check_equal("SyncBatchNorm", alone, together, 1e-5)
    same = torch.allclose(alone[1].running_var, together[1].running_var, atol=1e-5)
    check("SyncBatchNorm's running variance", same)
    check_overlap("SyncBatchNorm", optimizer._reduction, 4)


def check_joined() -> None:
    """Tiny layers travel together, and nothing else changes."""
    for preset in ("p3", "wfbp"):
        nets = []
        chunks = []
        for joins in (False, True):
            torch.manual_seed(0)
            net = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(51)))
            reduction.JOINS_LAYERS = joins
            optimizer = sluice.DistributedOptimizer(
                torch.optim.SGD(net.parameters(), 0.05), net.named_parameters(), preset=preset
            )
            for step in range(3):
                optimizer.zero_grad()
                inputs, _ = own_part(joined_batch(step))
                net(inputs).square().sum().backward()
                optimizer.step()
            optimizer.wait()
            nets.append(net)
            chunks.append(optimizer._reduction.counts().get("chunks", 0))
        check_equal(f"joined layers with {preset}", *nets, 0.0 if preset == "p3" else 1e-6)
        few = chunks[1] <= chunks[0] / 20
        check(f"{preset} sends few chunks of tiny layers", few, str(chunks))
    reduction.JOINS_LAYERS = False


def long_layers() -> nn.Sequential:
    """So long that sums are used before the last one is here."""
    torch.manual_seed(0)
    wide = [layer for _ in range(4) for layer in (nn.Linear(700, 700), nn.Tanh())]
    return nn.Sequential(nn.Linear(8, 700), nn.Tanh(), *wide, nn.Linear(700, 4))


def check_long_layers() -> None:
    for wrapped in (False, True):
        alone, together = long_layers(), long_layers()
        model = sluice.DistributedDataParallel(together) if wrapped else together
        reference = torch.optim.SGD(alone.parameters(), 0.01, momentum=0.9)
        optimizer: torch.optim.Optimizer = torch.optim.SGD(
            together.parameters(), 0.01, momentum=0.9
        )
        if not wrapped:
            optimizer = sluice.DistributedOptimizer(
                optimizer, together.named_parameters(), preset="wfbp"
            )
        for step in range(4):
            step_both(step, (alone, reference), (model, optimizer))
        check_equal(f"long layers, DDP: {wrapped}", alone, together)


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    check_training(False)
    check_training(True)
    check_used_by_one()
    check_buffers()
    check_sync_batch_norm()
    check_joined()
    check_long_layers()
    check_compiled()
    check_hooks_after_accumulation()
    check_on_gpu()
    if sluice.rank() == 0:
        check_prediction()
    finish()


main()
