"""DiLoCo and LocalSGD against the reference of local steps: mpirun -np N python3 diloco.py"""

import copy
import gc
import io
import pathlib
import sys
from typing import Any, Callable, Dict, List

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice
from reference import BATCH, Batch, check, finish, joined_batch, own_part

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "nodes" / "golden"))
from local_steps import METHODS, train  # noqa: E402

STEPS = 16
STREAMING = {"sync_every": 6, "fragments": 3, "delay": 2, "mix": 0.5}
Make = Callable[[Any], torch.optim.Optimizer]


def small_net() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4))


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-3)


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, 5e-3, eps=1e-4)


def loss_of(net: nn.Module, batch: Batch) -> torch.Tensor:
    return F.cross_entropy(net(batch[0]), batch[1])


def local_step(net: nn.Module, optimizer: Any, step: int) -> None:
    optimizer.zero_grad()
    loss_of(net, own_part(joined_batch(step))).backward()
    optimizer.step()


def in_double(net: nn.Module, worker: int, step: int) -> torch.Tensor:
    samples, labels = joined_batch(step)
    part = slice(BATCH * worker, BATCH * (worker + 1))
    return loss_of(net, (samples[part].double(), labels[part]))


def difference(some: List[torch.Tensor], others: List[torch.Tensor]) -> float:
    return max((a.detach() - b.detach()).abs().max().item() for a, b in zip(some, others))


def distribute(net: nn.Module, inner: torch.optim.Optimizer, cadence: Dict[str, Any], **more: Any) -> Any:
    """With the settings of the reference."""
    names = {
        "every": "sync_every",
        "synchronous": "synchronous_first",
        "rate": "outer_rate",
        "momentum": "outer_momentum",
    }
    settings = {names.get(key, key): value for key, value in cadence.items()}
    if "rate" not in cadence:
        return sluice.LocalSGD(net, inner, **settings, **more)
    settings.setdefault("outer_momentum", 0.0)
    return sluice.DiLoCo(net, inner, **settings, **more)


def check_method(name: str, make: Make, cadence: Dict[str, Any], preset: str) -> None:
    """Global and own parameters are those of the reference after every step."""
    expected = train(small_net().double(), make, in_double, sluice.size(), STEPS, **cadence)
    net = small_net()
    optimizer = make(net.parameters())
    largest = 0.0
    with distribute(net, optimizer, cadence, preset=preset) as local:
        for step, shared, own in expected:
            local_step(net, optimizer, step)
            largest = max(
                largest,
                difference(list(local.global_parameters().values()), shared),
                difference(list(net.parameters()), own[sluice.rank()]),
            )
    check(f"{name} with {preset}", largest <= 1e-6, f"(largest difference {largest:.2e})")
    check_equal_everywhere(f"{name} with {preset}", local)


def check_equal_everywhere(what: str, local: Any) -> None:
    """To the bit, or processes would drift apart."""
    everywhere = sluice.allgather_object(list(local.global_parameters().values()))
    same = all(torch.equal(a, b) for one in everywhere for a, b in zip(one, everywhere[0]))
    check(f"{what}: global parameters are equal in all processes", same)


def check_background() -> None:
    """An exchange that has begun holds nobody up: process 0 goes on while the others have not begun."""
    net = small_net()
    optimizer = sgd(net.parameters())
    gc.collect()
    with sluice.DiLoCo(net, optimizer, sync_every=4, delay=3) as diloco:
        if sluice.rank() == 0:
            for step in range(6):
                local_step(net, optimizer, step)
            check("an outer step is not made sooner", sluice.summary()["outer_steps"] == 0)
        sluice.broadcast_object("process 0 has taken its steps")
        for step in range(0 if sluice.rank() else 6, 7):
            local_step(net, optimizer, step)
        check("an outer step is made in time", sluice.summary()["outer_steps"] == 1)
    check_equal_everywhere("background", diloco)


def check_checkpoint() -> None:
    """Saved while exchanges are in flight and loaded by new objects, training goes on as before."""
    net = small_net()
    optimizer = adamw(net.parameters())
    other = small_net()
    resumed = adamw(other.parameters())
    diloco = sluice.DiLoCo(net, optimizer, **STREAMING)
    later = sluice.DiLoCo(other, resumed, **STREAMING)
    with diloco:
        for step in range(9):  # one fragment has begun
            local_step(net, optimizer, step)
    file = io.BytesIO()
    torch.save([net.state_dict(), optimizer.state_dict(), diloco.state_dict()], file)
    file.seek(0)
    begun = sum(exchange["begun"] > 0 for exchange in diloco.state_dict()["exchanges"])
    check("an exchange has begun", begun == 1, str(begun))
    with later:
        for step in range(3):  # which is void, with an exchange that has begun
            local_step(other, resumed, step)
    for target, state in zip((other, resumed, later), torch.load(file)):
        target.load_state_dict(state)
    with diloco, later:
        for step in range(9, 20):
            local_step(net, optimizer, step)
            local_step(other, resumed, step)
    largest = max(
        difference(list(net.parameters()), list(other.parameters())),
        difference(list(diloco.global_parameters().values()), list(later.global_parameters().values())),
    )
    check("checkpoint", largest == 0, f"(largest difference {largest:.2e})")


def check_global_model() -> None:
    net = small_net()
    optimizer = sgd(net.parameters())
    diloco = sluice.DiLoCo(net, optimizer, sync_every=3)
    with diloco:
        for step in range(5):
            local_step(net, optimizer, step)
        own = copy.deepcopy(list(net.parameters()))
        with diloco.global_model() as shown:
            shared = diloco.global_parameters()
            same = all(torch.equal(p, shared[name]) for name, p in shown.named_parameters())
            check("the model has the global parameters", shown is net and same)
            refuses("a step with them", RuntimeError, "outside", lambda: local_step(net, optimizer, 5))
        check("then it has its own", difference(own, list(net.parameters())) == 0)
        check("they differ", difference(own, list(shared.values())) > 0)
    check("the optimizer's step is its own again", "step" not in vars(optimizer))


def trained(make_diloco: Callable[[nn.Sequential, Any], Any]) -> List[torch.Tensor]:
    net = small_net()
    optimizer = sgd(net.parameters())
    with make_diloco(net, optimizer) as diloco:
        for step in range(9):
            local_step(net, optimizer, step)
    return list(diloco.global_parameters().values())


def check_alike() -> None:
    """Other ways to say the same."""
    for fragments in (1, 3):

        def default(net: nn.Sequential, optimizer: Any) -> Any:
            return sluice.DiLoCo(net, optimizer, sync_every=3, fragments=fragments)

        def own(net: nn.Sequential, optimizer: Any) -> Any:
            outer = torch.optim.SGD(net.parameters(), 0.7, momentum=0.9, nesterov=True)
            return sluice.DiLoCo(net, optimizer, outer, 3, fragments=fragments)

        def modules(net: nn.Sequential, optimizer: Any) -> Any:
            parts = [net] if fragments == 1 else [net[0], net[2], net[4]]
            return sluice.DiLoCo(net, optimizer, sync_every=3, fragments=parts)

        expected = trained(default)
        check("an outer optimizer of the program", difference(trained(own), expected) == 0)
        check("fragments by modules", difference(trained(modules), expected) == 0)


def check_any_outer_optimizer() -> None:
    """After one exchange, an outer optimizer with the mean outer gradient."""
    net = small_net()
    first = small_net()
    optimizer = sgd(net.parameters())
    for step in range(2):
        local_step(net, optimizer, step)
    for p in first.parameters():
        p.grad = torch.zeros_like(p)
    for p, own in zip(first.parameters(), net.parameters()):
        p.grad = sluice.allreduce(p.detach() - own.detach())
    torch.optim.Adam(first.parameters(), 0.01, eps=1e-4).step()
    net = small_net()
    optimizer = sgd(net.parameters())
    outer = torch.optim.Adam(net.parameters(), 0.01, eps=1e-4)
    with sluice.DiLoCo(net, optimizer, outer, 2):
        for step in range(2):
            local_step(net, optimizer, step)
    largest = difference(list(net.parameters()), list(first.parameters()))
    check("Adam as the outer optimizer", largest <= 1e-6, f"(largest difference {largest:.2e})")


def check_hooks(early: bool) -> None:
    """Schedulers and closures; steps count inside the with statement only, and once."""
    net = small_net()
    optimizer = sgd(net.parameters())
    schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)] if early else []
    diloco = sluice.LocalSGD(net, optimizer, 2, synchronous_first=1)
    losses = []
    for _ in range(2):
        with diloco:
            schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
            for step in range(2):

                def evaluate() -> torch.Tensor:
                    optimizer.zero_grad()
                    loss = loss_of(net, own_part(joined_batch(step)))
                    loss.backward()
                    return loss

                losses.append(optimizer.step(evaluate))
                for scheduler in schedulers:
                    scheduler.step()
        local_step(net, optimizer, 9)
    check("a closure's loss is returned", all(loss is not None for loss in losses))
    check("steps count once, inside", diloco.state_dict()["steps"] == 4)
    refuses("entering twice", RuntimeError, "already", lambda: enter_twice(diloco))


def enter_twice(diloco: Any) -> None:
    with diloco, diloco:
        pass


def check_summary() -> None:
    sent: List[int] = []
    results: List[List[torch.Tensor]] = []
    packed = (sluice.Compression.fp16, sluice.Compression.quantise8, sluice.Compression.quantise4)
    for compression in (sluice.Compression.none, *packed):
        net = small_net()
        optimizer = sgd(net.parameters())
        gc.collect()
        diloco = sluice.DiLoCo(net, optimizer, **STREAMING, compression=compression)
        with diloco:
            for step in range(12):
                local_step(net, optimizer, step)
        sluice.barrier()
        counts = sluice.summary()
        expected = {"local_steps": 12, "outer_exchanges": 6, "outer_steps": 5, "layers": 3, "steps": 0}
        check("steps are counted", {key: counts[key] for key in expected} == expected, str(counts))
        sent.append(counts["bytes"])
        check_equal_everywhere(f"compression {compression}", diloco)
        results.append(list(diloco.global_parameters().values()))
        del diloco
    check("bytes are sent", (sent[0] > 0) == (sluice.size() > 1), str(sent))
    halves = abs(sent[1] - sent[0] / 2) <= 0.1 * sent[0]
    check("compression halves them", halves, str(sent))
    check("fewer bits are fewer bytes", sluice.size() == 1 or sent[1] > sent[2] > sent[3], str(sent))
    for compression, found in zip(packed, results[1:]):
        largest = difference(results[0], found)
        limit = {sluice.Compression.quantise8: 0.05, sluice.Compression.quantise4: 0.3}.get(compression, 1e-2)
        check(f"{compression} changes little", largest <= limit, f"(largest difference {largest:.2e})")


def check_beginning() -> None:
    """All begin with process 0's parameters; those that are frozen are not exchanged."""
    torch.manual_seed(sluice.rank())
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).to(torch.bfloat16)
    net[0].weight.requires_grad_(False)
    optimizer = sgd(net.parameters())
    diloco = sluice.LocalSGD(net, optimizer, 2)
    states = sluice.allgather_object(str(net.state_dict()))
    check("all begin alike", len(set(states)) == 1)
    check("a frozen parameter is not exchanged", "0.weight" not in diloco.global_parameters())
    with diloco:
        for step in range(2):
            samples, labels = own_part(joined_batch(step))
            optimizer.zero_grad()
            loss_of(net, (samples.to(torch.bfloat16), labels)).backward()
            optimizer.step()
        shared = diloco.global_parameters()["2.weight"]
        check("global parameters have full precision", shared.dtype == torch.float32)
        check("processes take them over", torch.equal(net[2].weight, shared.to(torch.bfloat16)))
        optimizer.step()
        net[0].weight.requires_grad_(True)
        refuses("a parameter that came later", RuntimeError, "0.weight", optimizer.step)


def refuses(what: str, kind: type, text: str, call: Callable[[], Any]) -> None:
    try:
        call()
        check(f"{what} is refused", False)
    except kind as error:  # type: ignore[misc]
        check(f"the refusal of {what} is explained", text in str(error), str(error))


def check_errors() -> None:
    net = small_net()
    inner = sgd(net.parameters())
    outer = sgd(net.parameters())
    used = sgd(net.parameters())
    local_step(net, used, 0)
    for kind, text, settings in (
        (ValueError, "sync_every must be at least 1", {"sync_every": 0}),
        (TypeError, "whole number", {"sync_every": 2.5}),
        (ValueError, "at most 4 fragments", {"sync_every": 4, "fragments": 5}),
        (ValueError, "fragments must be at least 1", {"fragments": 0}),
        (ValueError, "in one of the fragments, but 2.weight is in 0", {"fragments": [net[0], net[4]]}),
        (ValueError, "delay of at most 3", {"sync_every": 4, "delay": 4}),
        (ValueError, "delay must be at least 0", {"delay": -1}),
        (ValueError, "mix must be", {"mix": 1.0}),
        (ValueError, "synchronous_first must", {"synchronous_first": -1}),
        (ValueError, "outer_rate must", {"outer_rate": -1.0}),
        (ValueError, "outer_momentum must", {"outer_momentum": float("nan")}),
        (ValueError, "choose one of", {"preset": "diloco"}),
        (ValueError, "Compression.none", {"compression": "gzip"}),
        (ValueError, "set them in your own", {"outer_optimizer": outer, "outer_rate": 0.5}),
        (ValueError, "lacks 5 of the model's 6", {"outer_optimizer": sgd([net[0].weight])}),
        (ValueError, "has taken steps", {"outer_optimizer": used}),
        (ValueError, "must be two", {"outer_optimizer": inner}),
    ):
        refuses(str(settings), kind, text, lambda: sluice.DiLoCo(net, inner, **settings))
    distributed = sluice.DistributedOptimizer(sgd(net.parameters()), net.named_parameters())
    refuses("its optimizer", ValueError, "torch.optim", lambda: sluice.DiLoCo(net, distributed))
    if sluice.size() > 1:
        other = 4 + sluice.rank()
        refuses("other settings", ValueError, "differ", lambda: sluice.DiLoCo(net, inner, sync_every=other))
    one, two = (sluice.DiLoCo(net, inner, sync_every=4, fragments=f) for f in (1, 2))
    state = one.state_dict()
    refuses("another state", ValueError, "other fragments", lambda: two.load_state_dict(state))


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    presets = ("p3-allreduce", "wfbp", "p3", "kvstore")
    for number, (name, (inner, cadence)) in enumerate(METHODS.items()):
        make = adamw if inner["optimizer"] == "adamw" else sgd
        check_method(name, make, cadence, presets[number % len(presets)])
    check_background()
    check_checkpoint()
    check_global_model()
    check_alike()
    check_any_outer_optimizer()
    check_hooks(early=True)
    check_hooks(early=False)
    check_beginning()
    check_summary()
    check_errors()
    finish()


main()
