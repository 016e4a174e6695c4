"""What needs a newer PyTorch or a GPU: part of parallel.py. Says what it skips, and why."""

import importlib
import shutil

import torch

import sluice.torch as sluice
from reference import check, check_equal, joined_batch, loss_of, make_net, own_part, step_both


def sgd(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)


def train_both(
    alone: torch.nn.Module, together: torch.nn.Module, called: torch.nn.Module, preset: str = "p3"
) -> None:
    """One on joined batches, and the other with Sluice on this process's part, as it is called."""
    reference = sgd(alone)
    optimizer = sluice.DistributedOptimizer(
        sgd(together), together.named_parameters(), preset=preset
    )
    for step in range(4):
        step_both(step, (alone, reference), (called, optimizer))
    optimizer.wait()


def missing_for_inductor() -> str:
    try:
        importlib.import_module("setuptools.command.build_ext")
    except ImportError:
        return "setuptools"
    return "" if shutil.which("g++") else "g++"


def check_compiled() -> None:
    """A compiled model computes what the model computes."""
    if not hasattr(torch, "compile"):
        return skip("torch.compile", f"PyTorch {torch.__version__} has none, 2.0 does")
    backends = ["aot_eager", "inductor"]
    if missing := missing_for_inductor():
        skip("torch.compile with inductor", f"{missing} is missing")
        backends.remove("inductor")
    for backend in backends:
        alone, together = make_net(), make_net()
        train_both(alone, together, torch.compile(together, backend=backend))
        check_equal(f"torch.compile, {backend}", alone, together, 1e-5)


def check_hooks_after_accumulation() -> None:
    """A hook of the program that changes gradients when they are there: they travel with the change."""
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        return skip("hooks after accumulation", f"PyTorch {torch.__version__} has none, 2.1 does")

    def halve(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(0.5)

    alone, together = make_net(), make_net()
    for parameter in [*alone.parameters(), *together.parameters()]:
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(halve)
    train_both(alone, together, together)
    check_equal("hooks after accumulation", alone, together, 1e-6)


def check_on_gpu() -> None:
    if not torch.cuda.is_available():
        return skip("GradScaler and parameters on a GPU", "there is no GPU")
    torch.cuda.set_device(sluice.local_rank() % torch.cuda.device_count())
    check_scaler()
    check_parameters_on_gpu()
    check_local_steps_on_gpu()


def check_parameters_on_gpu() -> None:
    for preset in ("p3", "kvstore", "wfbp", "p3-allreduce"):
        alone, together = make_net().cuda(), make_net().cuda()
        train_both(alone, together, together, preset=preset)
        check_equal(f"on a GPU, {preset}", alone, together, 1e-5)
    alone, together = make_net().cuda(), make_net().cuda()
    model = sluice.DistributedDataParallel(together, find_unused_parameters=True)
    pairs = [(alone, sgd(alone)), (model, sgd(together))]
    for step in range(4):
        step_both(step, *pairs)
    check_equal("on a GPU, DDP", alone, together, 1e-5)


def check_local_steps_on_gpu() -> None:
    """DiLoCo's global parameters are those of the same steps in host memory."""
    results = []
    for device in ("cpu", "cuda"):
        net = make_net().to(device)
        optimizer = sgd(net)
        with sluice.DiLoCo(net, optimizer, sync_every=4, fragments=2, delay=1) as diloco:
            for step in range(9):
                optimizer.zero_grad()
                loss_of(net, own_part(joined_batch(step))).backward()
                optimizer.step()
        results.append(list(diloco.global_parameters().values()))
    largest = max((a.cpu() - b.cpu()).abs().max().item() for a, b in zip(*results))
    check("on a GPU, DiLoCo", largest <= 1e-5, f"(largest difference {largest:.2e})")


def check_scaler() -> None:
    """GradScaler looks at all gradients, so synchronize() comes first; it skips a step that overflows."""
    alone, together = make_net().cuda(), make_net().cuda()
    pairs = []
    for net in (alone, together):
        optimizer = sgd(net)
        if net is together:
            optimizer = sluice.DistributedOptimizer(optimizer, net.named_parameters())
        pairs.append((net, optimizer, torch.cuda.amp.GradScaler(init_scale=1024.0)))
    for step in range(4):
        batch = joined_batch(step)
        for net, optimizer, scaler in pairs:
            optimizer.zero_grad()
            part = own_part(batch) if net is together else batch
            loss = loss_of(net, part) * (float("inf") if step == 2 else 1.0)
            scaler.scale(loss).backward()
            if net is together:
                optimizer.synchronize()
            scaler.step(optimizer)
            scaler.update()
    check("the scale has dropped", pairs[0][2].get_scale() == pairs[1][2].get_scale() == 512.0)
    check_equal("GradScaler", alone, together, 1e-5)


def skip(what: str, why: str) -> None:
    if sluice.rank() == 0:
        print(f"skipped: {what}: {why}", flush=True)
