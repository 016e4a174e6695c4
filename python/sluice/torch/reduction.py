"""What DistributedOptimizer and DistributedDataParallel share: parameters as layers of an exchange."""

import itertools
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from .. import _C
from .collectives import broadcast_object
from .compression import codec_of
from .process import participant, register
from .record import Record, program_name

next_number = itertools.count().__next__  # of whoever registers
# Whether layers with few parameters travel with their neighbours.
JOINS_LAYERS = True
# Those with updates that are due, and their owners: a program may drop an optimizer after its last step.
_held: "Dict[int, Tuple[Reduction, Any]]" = {}


def form_layers(
    names: Sequence[str], reads: Sequence[int]
) -> Tuple[List[str], List[List[int]]]:
    """Names of layers and the indices of their parameters, in the order of `reads`.

    The parameters of a module are a layer.
    """
    owners = [name.rpartition(".")[0] or "model" for name in names]
    of_owner: Dict[str, List[int]] = {owners[p]: [] for p in reads}
    for p, owner in enumerate(owners):
        of_owner.setdefault(owner, []).append(p)
    return list(of_owner), list(of_owner.values())


def _release() -> None:
    """Not in an update, since it may destroy an optimizer."""
    for number, (reduction, _) in list(_held.items()):
        if reduction._reducer.due() == 0:
            del _held[number]


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
        record: Record = Record(),
    ) -> None:
        """`names` is by id(parameter); `update` gets the indices of parameters whose sums are here."""
        if preset not in _C.presets():
            raise ValueError(f"no preset {preset!r} sums gradients; choose one of {_C.presets()}")
        self.number = next_number()
        self.has_updates = update is not None
        self.steps = 0
        self.parameters = _checked(parameters)
        _release()
        self._indices = {id(p): index for index, p in enumerate(self.parameters)}
        self._names = [names.get(id(p), f"parameter{i}.") for i, p in enumerate(self.parameters)]
        self._preset = preset
        self._codec = codec_of(compression)
        self._record = record
        self._loss: Optional[float] = None  # of the step that has begun
        self._members: Optional[List[List[int]]] = None  # by layer: parameters
        # The module's objects are unknown to Python's collector of cycles.
        self._update = None if update is None else weakref.WeakMethod(update)  # type: ignore[arg-type]
        on_layers = None if update is None else _weak(self._update_layers)
        self._reducer = _C.Reducer(
            self.parameters, scale, on_layers, after_backward and _weak(after_backward)
        )
        register(self)

    def index_of(self, parameter: torch.Tensor) -> Optional[int]:
        """Its place in `parameters`, if it is one of them."""
        return self._indices.get(id(parameter))

    def finish(self) -> None:
        """Backward is over: what has not left leaves now."""
        self.place()
        self._reducer.finish(self._loss)
        self._loss = None
        self.steps += 1

    def record_loss(self, loss: Any) -> None:
        """Of the step that has begun, for the record, if there is one."""
        if self._record.run or self._record.trace:
            self._loss = float(loss.detach() if isinstance(loss, torch.Tensor) else loss)

    def place(self) -> None:
        """Forms layers, in the order in which process 0 has read them. Collective; once."""
        if self._members is not None:
            return
        reads = broadcast_object([p for p, is_gradient, _ in self._reducer.marks() if not is_gradient])
        names, members = form_layers(self._names, reads)
        sizes, places, active = self._laid_out(members)
        run, trace, batch = self._record
        exchange = _C.GradientExchange(
            participant(),
            self._preset,
            self._codec,
            names,
            sizes,
            run,
            trace,
            program_name(),
            batch,
            JOINS_LAYERS,
            participant().size > 1 and self.parameters[0].device.type != "cpu",
        )
        self._reducer.place(exchange, places, active)
        self._members = members

    def lend_sums(self, indices: Sequence[int]) -> None:
        """p.grad of these parameters is the sum of all processes, until take_back()."""
        self._reducer.lend_sums(indices)

    def take_back(self) -> None:
        """Ends lend_sums()."""
        self._reducer.take_back()

    def store_sums(self) -> None:
        """Waits for the sums of the last step, and makes them the gradients of the parameters."""
        self._reducer.store_sums()

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
        """Makes the updates that are due."""
        self.update_all()
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
