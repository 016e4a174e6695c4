"""Calls that all processes make together, in the same order.

Gradients travel on meanwhile. In a process that waits in join() a sum gets zeros.
"""

import io
from typing import Any, List, Optional, Sequence

import torch

from .compression import Compression, codec_of
from .process import participant, settle, size

Average = "average"
Sum = "sum"
Min = "min"
Max = "max"
Product = "product"

_AS_FLOAT = (torch.float16, torch.bfloat16)


def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: str = Compression.none,
    op: Optional[str] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """The mean over all processes, or what `op` says: Average, Sum, Min, Max, Product.

    The tensors have the same shape and type in all processes. The result is a new tensor on the same
    device. A gradient passes back through a mean or a sum. The factors multiply the tensor before and
    the result after the sum. `name` and `compression` are for Horovod's scripts and have no effect: a
    tensor that travels alone travels as it is.
    """
    op = _operation(average, op)
    codec_of(compression)
    if op not in (Average, Sum) or not _tracks(tensor):
        return _reduced(tensor, op, prescale_factor, postscale_factor)
    result: torch.Tensor = _AllReduce.apply(tensor, op, prescale_factor, postscale_factor)
    return result


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[str] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Like allreduce(), but in place, and without a gradient."""
    with torch.no_grad():
        op = _operation(average, op)
        tensor.copy_(_reduced(tensor, op, prescale_factor, postscale_factor))
    return tensor


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: str = Compression.none,
    op: Optional[str] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    """What allreduce() gives for each tensor, in one exchange for each type of element."""
    op = _operation(average, op)
    codec_of(compression)
    results: List[torch.Tensor] = list(tensors)
    for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
        members = [i for i, tensor in enumerate(tensors) if tensor.dtype == dtype]
        joined = torch.cat([tensors[i].reshape(-1).cpu() for i in members])
        whole = allreduce(
            joined, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor
        )
        parts = whole.split([tensors[i].numel() for i in members])
        for i, part in zip(members, parts):
            results[i] = part.reshape(tensors[i].shape).to(tensors[i].device)
    return results


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[str] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    """Like grouped_allreduce(), but in place, and without a gradient."""
    with torch.no_grad():
        reduced = grouped_allreduce(
            [tensor.detach() for tensor in tensors],
            op=_operation(average, op),
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return [tensor.copy_(value) for tensor, value in zip(tensors, reduced)]


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    """The tensor of process `root_rank`. All have tensors of the same shape and type.

    A gradient passes back to the tensor of that process: the sum of those of all.
    """
    if _tracks(tensor):
        result: torch.Tensor = _Broadcast.apply(tensor, _root(root_rank))
        return result
    return _sent(tensor, _root(root_rank))


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    """Like broadcast(), but in place, and without a gradient."""
    with torch.no_grad():
        tensor.copy_(_sent(tensor, _root(root_rank)))
    return tensor


def allgather(tensor: torch.Tensor, name: Optional[str] = None) -> torch.Tensor:
    """The tensors of all processes, one after the other along their first dimension.

    They may differ in that dimension only. A gradient passes back to the part of each process: the
    sum of those of all.
    """
    if tensor.dim() == 0:
        raise ValueError("allgather needs a tensor with a first dimension: use tensor.reshape(1)")
    if _tracks(tensor):
        result: torch.Tensor = _AllGather.apply(tensor)
        return result
    return torch.cat(allgather_object(tensor.detach().cpu())).to(tensor.device)


def broadcast_object(obj: Any = None, root_rank: int = 0, name: Optional[str] = None) -> Any:
    """The object of process `root_rank`, pickled on the way."""
    own = _pickled(obj) if participant().rank == root_rank else b""
    return _unpickled(participant().broadcast_bytes(own, _root(root_rank)))


def allgather_object(obj: Any, name: Optional[str] = None) -> List[Any]:
    """The objects of all processes, by rank."""
    return [_unpickled(part) for part in participant().gather_bytes(_pickled(obj))]


def barrier() -> None:
    """Returns when all processes have called it. All updates have been made then."""
    settle()
    participant().barrier()


def _tracks(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()


def _reduced(tensor: torch.Tensor, op: str, before: float, after: float) -> torch.Tensor:
    if op == Average and not tensor.dtype.is_floating_point:
        raise ValueError(f"a mean of {tensor.dtype} is no {tensor.dtype}: use op=sluice.Sum")
    wide = torch.float32 if tensor.dtype in _AS_FLOAT else tensor.dtype
    numbers = tensor.detach().to("cpu", wide, copy=True).contiguous()
    if before != 1.0:
        numbers *= before
    participant().all_reduce(numbers, Sum if op == Average else op)
    if op == Average:
        numbers /= size()
    if after != 1.0:
        numbers *= after
    return numbers.to(tensor.device, tensor.dtype)


def _sent(tensor: torch.Tensor, root_rank: int) -> torch.Tensor:
    numbers = tensor.detach().to("cpu", copy=True).contiguous()
    participant().broadcast(numbers, root_rank)
    return numbers.to(tensor.device)


class _AllReduce(torch.autograd.Function):
    """Every process has the sum, so its gradient is the sum of what all have."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, op: str, before: float, after: float) -> Any:
        ctx.settings = op, before, after
        return _reduced(tensor, op, before, after)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return _reduced(gradients[0], *ctx.settings), None, None, None


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int) -> Any:
        ctx.root_rank = root_rank
        return _sent(tensor, root_rank)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        total = _reduced(gradients[0], Sum, 1.0, 1.0)
        return total if participant().rank == ctx.root_rank else torch.zeros_like(total), None


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> Any:
        parts: List[torch.Tensor] = allgather_object(tensor.detach().cpu())
        ctx.lengths = [len(part) for part in parts]
        return torch.cat(parts).to(tensor.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        total = _reduced(gradients[0], Sum, 1.0, 1.0)
        return total.split(ctx.lengths)[participant().rank]


def _operation(average: Optional[bool], op: Optional[str]) -> str:
    if average is not None:
        if op is not None:
            raise ValueError("give op or average, not both")
        return Average if average else Sum
    op = op or Average
    if op not in (Average, Sum, Min, Max, Product):
        raise ValueError("op must be Average, Sum, Min, Max or Product")
    return op


def _root(root_rank: int) -> int:
    if not 0 <= root_rank < size():
        raise ValueError(f"root_rank is {root_rank}, but there are {size()} processes")
    return root_rank


def _pickled(obj: Any) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file)
    return file.getvalue()


def _unpickled(data: bytes) -> Any:
    file = io.BytesIO(data)
    try:
        return torch.load(file, map_location="cpu", weights_only=False)
    except TypeError:  # PyTorch before 1.13
        file.seek(0)
        return torch.load(file, map_location="cpu")
