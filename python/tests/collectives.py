"""Collective calls, with and without handles, and their gradients: mpirun -np N python3 collectives.py"""

import inspect
from typing import Callable

import torch

import sluice.torch as sluice
from reference import check, finish


def check_collectives() -> None:
    rank, size = sluice.rank(), sluice.size()
    own = torch.arange(5, dtype=torch.float64) + rank
    check("sum", sluice.allreduce(own, op=sluice.Sum)[0].item() == size * (size - 1) / 2)
    check("minimum", sluice.allreduce(own, op=sluice.Min)[0].item() == 0)
    half = sluice.allreduce(torch.ones(2, dtype=torch.bfloat16))
    check("bfloat16", half.dtype == torch.bfloat16 and half.tolist() == [1, 1])
    large = sluice.allreduce(torch.full((300_000,), float(rank)), average=False)
    check("large", large[-1].item() == size * (size - 1) / 2)
    parts = sluice.allgather(torch.full((rank + 1, 2), rank))
    check("allgather", parts.shape[0] == size * (size + 1) / 2)
    check("allgather's order", parts[-1, 0].item() == size - 1)
    check("object", sluice.broadcast_object({"of": rank}, size - 1) == {"of": size - 1})
    check("broadcast", sluice.broadcast(torch.tensor([rank]), size - 1).item() == size - 1)
    sluice.barrier()


def check_handles() -> None:
    size, rank = sluice.size(), sluice.rank()
    total = size * (size - 1) / 2
    own = torch.full((3,), float(rank))
    first = sluice.allreduce_async(own, name="first", op=sluice.Sum)
    second = sluice.allgather_async(torch.full((rank + 1, 2), rank))
    third = sluice.broadcast_async(own, size - 1)
    check("poll", all(sluice.poll(one) for one in (first, second, third)))
    check("broadcast_async", sluice.synchronize(third).tolist() == [size - 1] * 3)
    check("allgather_async", len(sluice.synchronize(second)) == size * (size + 1) / 2)
    check("allreduce_async", sluice.synchronize(first).tolist() == [total] * 3)
    check("the argument stays", own.tolist() == [rank] * 3)
    sluice.synchronize(sluice.broadcast_async_(own, 0))
    check("broadcast_async_", own.tolist() == [0.0] * 3)
    own += rank
    sluice.synchronize(sluice.allreduce_async_(own, average=False))
    check("allreduce_async_", own.tolist() == [total] * 3)


def check_groups() -> None:
    size, rank = sluice.size(), sluice.rank()
    group = [
        torch.full((2, 2), float(rank)),
        torch.tensor(rank, dtype=torch.int64),
        torch.full((3,), 2.0 * rank),
    ]
    total = size * (size - 1) / 2
    sums = sluice.grouped_allreduce(group, op=sluice.Sum)
    check("shapes of a group", [s.shape for s in sums] == [t.shape for t in group])
    check("types of a group", [s.dtype for s in sums] == [t.dtype for t in group])
    check("sums of a group", [s.sum().item() for s in sums] == [4 * total, total, 6 * total])
    handle = sluice.grouped_allreduce_async([group[0], group[2]])
    means = [s.sum().item() for s in sluice.synchronize(handle)]
    check("means of a group", means == [4 * total / size, 6 * total / size])
    sluice.synchronize(sluice.grouped_allreduce_async_(group, op=sluice.Sum))
    check("a group in place", group[1].item() == total)


def check_factors() -> None:
    size = sluice.size()
    ones = torch.ones(2)
    scaled = sluice.allreduce(ones, op=sluice.Sum, prescale_factor=0.5, postscale_factor=4.0)
    check("factors", scaled.tolist() == [2.0 * size] * 2)
    plain = sluice.allreduce(ones, compression=sluice.Compression.fp16)
    check("compression", plain.tolist() == [1.0] * 2)


def check_gradients() -> None:
    """As if one process had computed the losses of all, and added them."""
    size, rank = sluice.size(), sluice.rank()
    weight = float(rank + 1)
    weights = size * (size + 1) / 2

    def gradient_of(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        x = torch.full((2,), float(rank), requires_grad=True)
        (weight * make(x)).sum().backward()
        return x.grad

    sums = gradient_of(lambda x: sluice.allreduce(x, op=sluice.Sum))
    check("gradient of a sum", sums.tolist() == [weights] * 2)
    means = gradient_of(lambda x: sluice.allreduce(x))
    check("gradient of a mean", torch.allclose(means, torch.full((2,), weights / size)))
    sent = gradient_of(lambda x: sluice.broadcast(x, 0))
    check("gradient of a broadcast", sent.tolist() == [weights if rank == 0 else 0.0] * 2)
    gathered = gradient_of(lambda x: sluice.allgather(x))
    check("gradient of what was gathered", gathered.tolist() == [weights] * 2)
    grouped = gradient_of(lambda x: sluice.grouped_allreduce([x, 2 * x], op=sluice.Sum)[1])
    check("gradient of a group", grouped.tolist() == [2 * weights] * 2)
    with torch.no_grad():
        x = torch.ones(2, requires_grad=True)
        check("no gradient", not sluice.allreduce(x).requires_grad)
    check("no gradient of a minimum", not sluice.allreduce(x, op=sluice.Min).requires_grad)


def check_help() -> None:
    """Whatever is public says what it does, and what it takes."""
    for name in sluice.__all__:
        thing = getattr(sluice, name)
        if isinstance(thing, str):
            continue
        check(f"help for {name}", bool(inspect.getdoc(thing)))
        if inspect.isfunction(thing):
            parameters = inspect.signature(thing).parameters.values()
            typed = all(p.annotation is not inspect.Parameter.empty for p in parameters)
            returns = inspect.signature(thing).return_annotation is not inspect.Signature.empty
            check(f"types of {name}", typed and returns)


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    check_collectives()
    check_handles()
    check_groups()
    check_factors()
    check_gradients()
    check_help()
    finish()


main()
