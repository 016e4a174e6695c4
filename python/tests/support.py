"""What scripts do besides plain steps, against one process: mpirun -np N python3 support.py"""

import copy
import io
from typing import Any, Callable, List

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import sluice.torch as sluice
from reference import (
    BATCH,
    check,
    check_equal,
    finish,
    joined_batch,
    loss_of,
    make_net,
    own_part,
)

PRESET = "p3"
Loop = Callable[[Any, Any, Callable[[int], Any], bool], None]


def sgd(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)


def distribute(optimizer: torch.optim.Optimizer, net: nn.Module, **settings: Any) -> Any:
    settings.setdefault("preset", PRESET)
    return sluice.DistributedOptimizer(optimizer, net.named_parameters(), **settings)


def compare(loop: Loop, tolerance: float = 1e-6, **settings: Any) -> None:
    """Runs the loop alone on joined batches, and with Sluice on this process's part."""
    alone, together = make_net(), make_net()
    loop(alone, sgd(alone), joined_batch, False)
    optimizer = distribute(sgd(together), together, **settings)
    loop(together, optimizer, lambda step: own_part(joined_batch(step)), True)
    check_equal(loop.__name__, alone, together, tolerance)


def plain_step(net: Any, optimizer: Any, batch: Any) -> None:
    optimizer.zero_grad()
    loss_of(net, batch).backward()
    optimizer.step()


def clipping(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, batches(step)).backward()
        if is_distributed:
            optimizer.synchronize()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        if is_distributed and step % 2 == 0:
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()


def accumulation(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):
        optimizer.zero_grad(set_to_none=True)
        for part in range(3):
            (loss_of(net, batches(10 * step + part)) / 3).backward()
        optimizer.step()


def accumulation_without_sync(
    net: Any, optimizer: Any, batches: Any, is_distributed: bool
) -> None:
    for step in range(3):
        optimizer.zero_grad()
        if is_distributed:
            with optimizer.no_sync():
                loss_of(net, batches(2 * step)).backward()
        else:
            loss_of(net, batches(2 * step)).backward()
        loss_of(net, batches(2 * step + 1)).backward()
        optimizer.step()


def autocast(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Parameters and their gradients stay in 32 bits."""
    for step in range(4):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(net, batches(step))
        loss.backward()
        optimizer.step()
    check("autocast leaves parameters", net.first.weight.dtype == torch.float32)


def early_schedule(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """The rate changes before the update of the last layer."""
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for step in range(5):
        plain_step(net, optimizer, batches(step))
        schedule.step()


def freezing(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(6):
        net.first.weight.requires_grad_(step not in (2, 3))
        net.frozen.weight.requires_grad_(step >= 4)
        optimizer.zero_grad(set_to_none=True)
        loss_of(net, batches(step)).backward()
        optimizer.step()


def closure(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):

        def evaluate() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(net, batches(step))
            loss.backward()
            return loss

        check("a closure's loss is returned", optimizer.step(evaluate) is not None)


def checkpointing(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):
        samples, labels = batches(step)
        optimizer.zero_grad()
        hidden = checkpoint(net.first, samples.clone().requires_grad_())
        hidden = checkpoint(net.middle, torch.tanh(hidden))
        F.cross_entropy(net.last(hidden), labels).backward()
        optimizer.step()


def reads_between_steps(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Whatever reads a parameter sees it updated."""
    for step in range(6):
        plain_step(net, optimizer, batches(step))
        if step == 1:
            with torch.inference_mode():
                net(batches(step)[0])
        elif step == 2:
            net.load_state_dict(net.state_dict())
        elif step == 3:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        elif step == 4:
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.data.mul_(0.9)


def own_function(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):
        samples, labels = batches(step)
        optimizer.zero_grad()
        hidden = torch.tanh(Product.apply(samples, net.first.weight))
        F.cross_entropy(Product.apply(hidden, net.last.weight), labels).backward()
        optimizer.step()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        x, weight = context.saved_tensors
        return gradient @ weight, gradient.t() @ x


def metrics(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    for step in range(4):
        plain_step(net, optimizer, batches(step))
        if is_distributed:
            check("allreduce", sluice.allreduce(torch.ones(3)).tolist() == [1, 1, 1])


def metrics_in_backward(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Some gradients have left, and some have not."""
    for step in range(4):
        optimizer.zero_grad()
        samples, labels = batches(step)
        hidden = net.first(samples)
        if is_distributed:
            hidden.register_hook(lambda gradient: sluice.allreduce(gradient) * 0 + gradient)
        F.cross_entropy(net.last(torch.tanh(hidden)), labels).backward()
        optimizer.step()


def metrics_before_step(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Gradients have left, but step() has not been called."""
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(net, batches(step))
        loss.backward()
        if is_distributed:
            sluice.allreduce(loss.detach())
        optimizer.step()


def uses_layers_by_turns(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """A parameter without a gradient is not updated, not even by its momentum."""
    for step in range(6):
        samples, labels = batches(step)
        optimizer.zero_grad(set_to_none=True)
        hidden = net.first(samples)
        hidden = net.middle(hidden) if step % 2 == 0 else hidden
        F.cross_entropy(net.last(torch.tanh(hidden)), labels).backward()
        optimizer.step()


def new_group(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    extra = nn.Parameter(torch.full((4,), 0.5))
    net.extra = extra
    for step in range(4):
        if step == 2:
            optimizer.add_param_group({"params": [extra], "lr": 0.1})
        samples, labels = batches(step)
        optimizer.zero_grad()
        extra.grad = None
        F.cross_entropy(net(samples) * extra, labels).backward()
        optimizer.step()


def penalty(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Reads parameters outside of modules."""
    for step in range(4):
        optimizer.zero_grad()
        used = [p for n, p in net.named_parameters() if "unused" not in n and p.requires_grad]
        (loss_of(net, batches(step)) + 1e-2 * sum(p.norm() for p in used)).backward()
        optimizer.step()


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4 * BATCH * sluice_size

    def __getitem__(self, index: int) -> Any:
        generator = torch.Generator().manual_seed(index)
        return torch.randn(8, generator=generator), index % 4


sluice_size = 1


def loader_workers(net: Any, optimizer: Any, batches: Any, is_distributed: bool) -> None:
    """Forks of a process are no processes of the job."""
    count = sluice.size()
    if is_distributed:
        sampler = torch.utils.data.distributed.DistributedSampler(
            Numbers(), count, sluice.rank(), shuffle=False
        )
        loader = torch.utils.data.DataLoader(Numbers(), BATCH, sampler=sampler, num_workers=1)
    else:
        loader = torch.utils.data.DataLoader(Numbers(), BATCH * count, num_workers=1)
    for batch in loader:
        plain_step(net, optimizer, batch)


def gan(together: bool) -> List[nn.Module]:
    """Two optimizers; the generator's backward pass also reaches the discriminator."""
    torch.manual_seed(3)
    generator = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8))
    critic = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    for_generator, for_critic = sgd(generator), sgd(critic)
    if together:
        for_generator = distribute(for_generator, generator)
        for_critic = distribute(for_critic, critic)
    steps = 6
    for step in range(steps):
        real, labels = own_part(joined_batch(step)) if together else joined_batch(step)
        noise = torch.stack([labels.float(), -labels.float()], 1)
        for_critic.zero_grad()
        F.softplus(-critic(real)).mean().backward()
        F.softplus(critic(generator(noise).detach())).mean().backward()
        for_critic.step()
        for_generator.zero_grad()
        F.softplus(-critic(generator(noise))).mean().backward()
        for_generator.step()
    for optimizer in (for_generator, for_critic) if together else ():
        early = optimizer._reduction.counts()["sent_in_backward"]
        check("gan: gradients leave in the backward pass", early == (steps - 1) * 2, str(early))
    return [generator, critic]


def check_gan() -> None:
    for one, other in zip(gan(False), gan(True)):
        check_equal("gan", one, other)


def check_replicas() -> None:
    """Processes that begin differently are made equal, with their optimizers."""
    torch.manual_seed(sluice.rank())
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(net.parameters(), 0.1 * (sluice.rank() + 1))
    for _ in range(sluice.rank() + 1):
        optimizer.zero_grad()
        net(torch.randn(4, 3)).pow(2).sum().backward()
        optimizer.step()
    optimizer = distribute(optimizer, net)
    root = sluice.size() - 1
    sluice.broadcast_parameters(net.state_dict(), root_rank=root)
    sluice.broadcast_optimizer_state(optimizer, root_rank=root)
    states = sluice.allgather_object((net.state_dict(), optimizer.state_dict()))
    texts = set()
    for state in states:
        texts.add(str(state))
    check("replicas are equal", len(texts) == 1)
    check("the rate is root's", optimizer.param_groups[0]["lr"] == 0.1 * (root + 1))


def check_join() -> None:
    """Process r has r batches fewer; a mean still counts all processes."""
    rank, size = sluice.rank(), sluice.size()
    alone, together = make_net(), make_net()
    reference = sgd(alone)
    optimizer = distribute(sgd(together), together)
    for step in range(4):
        joined = joined_batch(step)
        reference.zero_grad()
        for r in range(size):
            if step < 4 - r:
                part = joined[0][r * BATCH :][:BATCH], joined[1][r * BATCH :][:BATCH]
                (loss_of(alone, part) / size).backward()
        reference.step()
        if step < 4 - rank:
            plain_step(together, optimizer, own_part(joined))
            active = sluice.allreduce(torch.ones(1), op=sluice.Sum).item()
            check("who has joined adds zeros", active == sum(step < 4 - r for r in range(size)))
    if rank == 0 and size > 1:
        try:
            sluice.allgather(torch.ones(1))
            check("an allgather without the joined is refused", False)
        except RuntimeError as error:
            check("the refusal is explained", "in join()" in str(error), str(error))
    check("the first rank is the last", sluice.join() == 0)
    check_equal("join", alone, together)


def check_checkpoint() -> None:
    """Saved after some steps and loaded by new objects, training goes on as before."""
    net = make_net()
    optimizer = distribute(torch.optim.AdamW(net.parameters(), 1e-3), net)
    for step in range(3):
        plain_step(net, optimizer, own_part(joined_batch(step)))
    file = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file)
    other = make_net()
    resumed = distribute(torch.optim.AdamW(other.parameters(), 1.0), other)
    other.load_state_dict(saved["model"])
    resumed.load_state_dict(saved["optimizer"])
    for step in range(3, 6):
        plain_step(net, optimizer, own_part(joined_batch(step)))
        plain_step(other, resumed, own_part(joined_batch(step)))
    optimizer.wait()
    check_equal("checkpoint", net, other)


def check_compression() -> None:
    for preset in ("p3", "p3-allreduce"):
        for compression, limit in (("fp16", 1e-2), ("bf16", 1e-2), ("quantise8", 2e-2), ("quantise4", 0.2)):
            net, exact = make_net(), make_net()
            kind = getattr(sluice.Compression, compression)
            optimizer = distribute(sgd(net), net, preset=preset, compression=kind)
            reference = distribute(sgd(exact), exact)
            for step in range(3):
                plain_step(net, optimizer, own_part(joined_batch(step)))
                plain_step(exact, reference, own_part(joined_batch(step)))
            check_equal(f"compression {compression}, {preset}", net, exact, limit)


def check_errors() -> None:
    net = make_net()
    for what, settings in (("preset", {"preset": "asp"}), ("op", {"op": "adasum"})):
        try:
            distribute(sgd(net), net, **settings)
            check(f"a wrong {what} is refused", False)
        except ValueError as error:
            check(f"a wrong {what} is explained", "choose" in str(error) or "must" in str(error))
    optimizer = distribute(sgd(net), net)
    for step in range(2):
        plain_step(net, optimizer, own_part(joined_batch(step)))
    try:
        for _ in range(2):
            loss_of(net, own_part(joined_batch(2))).backward()
        check("an unexpected pass is refused", False)
    except RuntimeError as error:
        check("an unexpected pass is explained", "backward_passes_per_step" in str(error))
    optimizer.zero_grad()


def check_summary() -> None:
    net = make_net()
    optimizer = distribute(sgd(net), net)
    for step in range(3):
        plain_step(net, optimizer, own_part(joined_batch(step)))
    sluice.barrier()
    counts = sluice.summary()
    check("steps are counted", counts["steps"] == 3, str(counts))
    check("updates are made", counts["updates"] > 0, str(counts))
    check("the gate stops operators", (counts["stops"] > 0) == (sluice.size() > 1), str(counts))
    check("messages were sent", (counts["messages"] > 0) == (sluice.size() > 1), str(counts))


def main() -> None:
    global sluice_size
    torch.set_num_threads(1)
    sluice.init()
    sluice_size = sluice.size()
    for loop in (
        clipping,
        accumulation_without_sync,
        early_schedule,
        freezing,
        closure,
        checkpointing,
        reads_between_steps,
        own_function,
        metrics,
        metrics_in_backward,
        metrics_before_step,
        uses_layers_by_turns,
        new_group,
        penalty,
        loader_workers,
    ):
        compare(loop)
    compare(autocast, tolerance=1e-3)  # 16 bits round the gradients of parts in another way
    compare(accumulation, backward_passes_per_step=3)
    compare(accumulation)
    check_join()
    check_gan()
    check_replicas()
    check_checkpoint()
    check_compression()
    check_summary()
    check_errors()
    finish()


main()
