"""Horovod's collective calls with handles.

Each returns when its result is there: gradients, which are what is worth hiding, travel behind the
backward pass by themselves, and a call that has returned needs no other process to call in the same
order later. So a script that uses handles runs unchanged.
"""

from typing import Any, Generic, List, TypeVar

import torch

from . import collectives

T = TypeVar("T")


class Handle(Generic[T]):
    """Of a call whose result is there."""

    def __init__(self, result: T) -> None:
        self.result = result


def allreduce_async(*args: Any, **settings: Any) -> "Handle[torch.Tensor]":
    """allreduce(), with the result in a handle."""
    return Handle(collectives.allreduce(*args, **settings))


def allreduce_async_(*args: Any, **settings: Any) -> "Handle[torch.Tensor]":
    """allreduce_(), with the result in a handle."""
    return Handle(collectives.allreduce_(*args, **settings))


def grouped_allreduce_async(*args: Any, **settings: Any) -> "Handle[List[torch.Tensor]]":
    """grouped_allreduce(), with the result in a handle."""
    return Handle(collectives.grouped_allreduce(*args, **settings))


def grouped_allreduce_async_(*args: Any, **settings: Any) -> "Handle[List[torch.Tensor]]":
    """grouped_allreduce_(), with the result in a handle."""
    return Handle(collectives.grouped_allreduce_(*args, **settings))


def allgather_async(*args: Any, **settings: Any) -> "Handle[torch.Tensor]":
    """allgather(), with the result in a handle."""
    return Handle(collectives.allgather(*args, **settings))


def broadcast_async(*args: Any, **settings: Any) -> "Handle[torch.Tensor]":
    """broadcast(), with the result in a handle."""
    return Handle(collectives.broadcast(*args, **settings))


def broadcast_async_(*args: Any, **settings: Any) -> "Handle[torch.Tensor]":
    """broadcast_(), with the result in a handle."""
    return Handle(collectives.broadcast_(*args, **settings))


def poll(handle: "Handle[Any]") -> bool:
    """Whether synchronize() would return at once: always."""
    return True


def synchronize(handle: "Handle[T]") -> T:
    """The result of the call that returned the handle."""
    return handle.result
