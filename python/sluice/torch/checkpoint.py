"""Checkpoints of a script with a loop of its own."""

import collections
import json
import os
import random
import types
from typing import Any, Dict, Union

import torch

from .. import _C
from .process import participant, settle

_STRUCTURE = "structure"
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def save_checkpoint(
    folder: Union[str, "os.PathLike[str]"], iteration: int, keep: int = 3, **states: Any
) -> None:
    """Writes all that the script needs to go on after `iteration` iterations. Collective.

    Makes the updates that are due, writes `folder`/iteration-N, and returns when it is on the disk.
    Each process writes its own part, so all must share the folder. If one cannot, RuntimeError is
    raised in all, and the checkpoints before are still there. The states of the generators of random
    numbers of torch and of Python go with it.

    Args:
        folder: for the checkpoints of this run.
        iteration: the first that was not run, which load_checkpoint() returns.
        keep: so many of the last stay.
        states: by name, whatever has state_dict() and load_state_dict(): model, optimizer, scheduler,
            DiLoCo, GradScaler.
    """
    if iteration < 0 or keep < 1:
        raise ValueError("expected an iteration of at least 0 and at least 1 checkpoint to keep")
    settle()
    tensors: Dict[str, torch.Tensor] = {}
    whole = {name: _with_state(name, one).state_dict() for name, one in states.items()}
    structure = {
        "states": _pack(whole, "", tensors),
        "random": _pack(_random_states(), "random", tensors),
    }
    text = json.dumps(structure).encode()
    tensors[_STRUCTURE] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    _C.save_checkpoint(participant(), os.fspath(folder), iteration, tensors, keep)


def load_checkpoint(folder: Union[str, "os.PathLike[str]"], **states: Any) -> int:
    """Gives the states what the newest sound checkpoint in the folder has of them. Collective.

    Returns its iteration, or 0 if there is none, so a script begins with this call whether it was
    started before or not. The same states and as many processes as saved it are needed; the folder
    may also be that of one checkpoint. What is torn is passed over, and said.
    """
    for name, one in states.items():
        _with_state(name, one)
    settle()
    loaded = _C.load_checkpoint(participant(), os.fspath(folder))
    if loaded is None:
        return 0
    iteration, tensors = loaded
    structure = json.loads(bytes(tensors[_STRUCTURE].tolist()).decode())
    whole = _unpack(structure["states"], tensors)
    if set(whole) != set(states):
        raise ValueError(
            f"{os.fspath(folder)}: has the states of {', '.join(sorted(whole)) or 'nothing'}, "
            f"and those of {', '.join(sorted(states)) or 'nothing'} are asked for"
        )
    for name, one in states.items():
        one.load_state_dict(whole[name])
    _set_random_states(_unpack(structure["random"], tensors))
    return int(iteration)


def _with_state(name: str, one: Any) -> Any:
    if not hasattr(one, "state_dict") or not hasattr(one, "load_state_dict"):
        raise TypeError(f"{name} has no state_dict() and load_state_dict()")
    return one


def _random_states() -> Dict[str, Any]:
    states = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_random_states(states: Dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _pack(value: Any, path: str, tensors: Dict[str, torch.Tensor]) -> Any:
    """The value as JSON, in which tensors are the names of those that are put into `tensors`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        tensors[path] = value.detach().to("cpu", copy=True).contiguous()
        return {"tensor": path}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, collections.Counter) else "dict"
        # Some schedulers have functions in their state, which the new one has as well.
        entries = [(key, one) for key, one in value.items() if not isinstance(one, _FUNCTIONS)]
        return {
            kind: [
                [_pack(key, path, tensors), _pack(one, f"{path}/{key}" if path else str(key), tensors)]
                for key, one in entries
            ]
        }
    if isinstance(value, (list, tuple)):
        parts = [_pack(one, f"{path}/{i}", tensors) for i, one in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    raise TypeError(
        f"{path}: a checkpoint has numbers, texts, tensors and containers of them, not {type(value).__name__}"
    )


def _unpack(packed: Any, tensors: Dict[str, torch.Tensor]) -> Any:
    if not isinstance(packed, dict):
        return packed
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind in ("dict", "counter"):
        entries = {_unpack(key, tensors): _unpack(one, tensors) for key, one in content}
        return collections.Counter(entries) if kind == "counter" else entries
    parts = [_unpack(one, tensors) for one in content]
    return tuple(parts) if kind == "tuple" else parts
