"""Calls that all processes make together, in the same order.

Gradients travel on meanwhile. In a process that waits in join() a sum gets zeros.
"""

import io
from typing import Any, List, Optional

import torch

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
    op: Optional[str] = None,
) -> torch.Tensor:
    """The mean over all processes, or what `op` says: Average, Sum, Min, Max, Product.

    The tensors have the same shape and type in all processes. The result is a new tensor on the same
    device, without a gradient. `name` is for Horovod's scripts and has no effect.
    """
    op = _operation(average, op)
    if op == Average and not tensor.dtype.is_floating_point:
        raise ValueError(f"a mean of {tensor.dtype} is no {tensor.dtype}: use op=sluice.Sum")
    wide = torch.float32 if tensor.dtype in _AS_FLOAT else tensor.dtype
    numbers = tensor.detach().to("cpu", wide, copy=True).contiguous()
    participant().all_reduce(numbers, Sum if op == Average else op)
    if op == Average:
        numbers /= size()
    return numbers.to(tensor.device, tensor.dtype)


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[str] = None,
) -> torch.Tensor:
    """Like allreduce(), but in place."""
    with torch.no_grad():
        tensor.copy_(allreduce(tensor, average, name, op))
    return tensor


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    """The tensor of process `root_rank`. All have tensors of the same shape and type."""
    numbers = tensor.detach().to("cpu", copy=True).contiguous()
    participant().broadcast(numbers, _root(root_rank))
    return numbers.to(tensor.device)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    """Like broadcast(), but in place."""
    with torch.no_grad():
        tensor.copy_(broadcast(tensor, root_rank, name))
    return tensor


def allgather(tensor: torch.Tensor, name: Optional[str] = None) -> torch.Tensor:
    """The tensors of all processes, one after the other along their first dimension.

    They may differ in that dimension only.
    """
    if tensor.dim() == 0:
        raise ValueError("allgather needs a tensor with a first dimension: use tensor.reshape(1)")
    parts: List[torch.Tensor] = allgather_object(tensor.detach().cpu())
    return torch.cat(parts).to(tensor.device)


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
