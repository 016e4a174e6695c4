"""What DistributedOptimizer and DistributedDataParallel share: parameters as layers of an exchange."""

import itertools
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from .. import _C
from .collectives import broadcast_object
from .compression import is_half
from .process import participant, register

_numbers = itertools.count()
# Those with updates that are due, and their owners: a program may drop an optimizer after its last step.
_held: "Dict[int, Tuple[Reduction, Any]]" = {}


def _release() -> None:
    """Not in an update, since it may destroy an optimizer."""
    for number, (reduction, _) in list(_held.items()):
        if reduction._reducer.due() == 0:
            del _held[number]


def defer() -> None:
    """From now on gradients leave after the backward pass only."""
    _C.defer_gradients()


class Reduction:
    """Sums the gradients of some parameters over all processes, step by step."""

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        names: Dict[int, str],
        preset: str,
        compression: str,
        scale: float,
        update: Optional[Callable[[List[int]], None]] = None,
        after_backward: Optional[Callable[[], None]] = None,
    ) -> None:
        """`names` is by id(parameter); `update` gets the indices of parameters whose sums are here."""
        if preset not in _C.presets():
            raise ValueError(f"no preset {preset!r} sums gradients; choose one of {_C.presets()}")
        self.number = next(_numbers)
        self.has_updates = update is not None
        self.steps = 0
        self.parameters = _checked(parameters)
        _release()
        self._known = {id(p) for p in self.parameters}
        self._names = [names.get(id(p), f"parameter{i}.") for i, p in enumerate(self.parameters)]
        self._preset = preset
        self._half = is_half(compression)
        self._members: Optional[List[List[int]]] = None  # by layer: parameters
        self._sums: List[torch.Tensor] = []
        # The module's objects are unknown to Python's collector of cycles.
        self._update = None if update is None else weakref.WeakMethod(update)  # type: ignore[arg-type]
        on_layers = None if update is None else _weak(self._update_layers)
        self._reducer = _C.Reducer(
            self.parameters, scale, on_layers, after_backward and _weak(after_backward)
        )
        register(self)

    def knows(self, parameter: torch.Tensor) -> bool:
        """Whether it is one of its parameters."""
        return id(parameter) in self._known

    def finish(self) -> None:
        """Backward is over: what has not left leaves now."""
        self.place()
        self._reducer.finish()
        self.steps += 1

    def place(self) -> None:
        """Forms layers, in the order in which process 0 has read them. Collective; once."""
        if self._members is not None:
            return
        reads = broadcast_object(self._reducer.reads())
        owners = [name.rpartition(".")[0] or "model" for name in self._names]
        order = list(dict.fromkeys([owners[p] for p in reads] + owners))
        members: List[List[int]] = [[] for _ in order]
        for p, owner in enumerate(owners):
            members[order.index(owner)].append(p)
        sizes, places, active = self._laid_out(members)
        exchange = _C.GradientExchange(participant(), self._preset, self._half, order, sizes)
        self._reducer.place(exchange, places, active)
        self._members = members
        self._sums = [self._reducer.sum_of(p) for p in range(len(self.parameters))]

    def sum_of(self, index: int) -> Optional[torch.Tensor]:
        """The sum of the gradients of a parameter, as a gradient of it; valid until the next step."""
        if not self._reducer.is_used(index):
            return None
        parameter = self.parameters[index]
        return self._sums[index].to(parameter.device, parameter.dtype)

    def arm(self) -> None:
        """From now on the parameters are updated when they are read."""
        _release()
        _held[self.number] = (self, self._update and self._update())
        self._reducer.arm()

    def update_all(self) -> None:
        """Updates all parameters whose sums are due."""
        if self._members is not None:
            self._reducer.update_all()

    def settle(self) -> None:
        """Before a collective call: nothing of a step may be in flight."""
        if self._members is not None:
            self._reducer.finish_early()
            self._reducer.update_all()
        _release()

    def wait_all(self) -> None:
        """Waits for the sums of the last step."""
        self._reducer.wait_all()

    def step_aside(self) -> bool:
        """Takes a step without data; whether some process had data."""
        self.place()
        return bool(self._reducer.step_aside())

    def discard(self) -> None:
        """The gradients so far are void."""
        self._reducer.discard()

    def set_sending(self, on: bool) -> None:
        """Whether gradients leave in backward passes."""
        self._reducer.set_sending(on)

    def expect_passes(self, passes: int) -> None:
        """After how many backward passes a gradient leaves."""
        self._reducer.expect_passes(passes)

    def counts(self) -> Dict[str, Any]:
        """What the exchange has done: see summary()."""
        return dict(self._reducer.counts())

    def _update_layers(self, layers: Iterable[int]) -> None:
        assert self._members is not None and self._update is not None
        update = self._update()
        if update is not None:
            update([p for layer in layers for p in self._members[layer]])

    def _laid_out(
        self, members: List[List[int]]
    ) -> Tuple[List[int], List[Tuple[int, int, int]], int]:
        """Sizes of the layers; layer, offset and flag of each parameter; the flag of the first layer
        that counts who takes part. A flag of a parameter counts who has a gradient for it."""
        sizes: List[int] = []
        places = [(0, 0, 0)] * len(self.parameters)
        active = 0
        at = 0
        for layer, indices in enumerate(members):
            begin = at
            flag = at + sum(self.parameters[p].numel() for p in indices)
            for p in indices:
                places[p] = (layer, at, flag)
                at += self.parameters[p].numel()
                flag += 1
            if layer == 0:
                active, flag = flag, flag + 1
            at = flag
            sizes.append(at - begin)
        return sizes, places, active


def _weak(method: Callable[..., None]) -> Callable[..., None]:
    """Calls a method of an object that may be gone."""
    weak = weakref.WeakMethod(method)  # type: ignore[arg-type]

    def call(*args: Any) -> None:
        target = weak()
        if target is not None:
            target(*args)

    return call


def _checked(parameters: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    unique = list({id(p): p for p in parameters if p.requires_grad}.values())
    if not unique:
        raise ValueError("no parameter requires a gradient")
    for parameter in unique:
        if parameter.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise TypeError(f"gradients travel as float32: a parameter of {parameter.dtype} is not supported")
        if parameter.layout != torch.strided:
            raise TypeError("parameters must be dense")
    return unique
