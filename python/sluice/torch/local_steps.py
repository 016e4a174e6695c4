"""Processes that take steps of their own and exchange after many of them: DiLoCo and LocalSGD."""

import contextlib
import functools
import types
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from .cadence import checked_cadence, deal
from .collectives import allgather_object
from .compression import Compression
from .optimizer import _Distributed
from .outer import Fragment, adopt, check_outer, default_outer_optimizer
from .process import register, size
from .reduction import Reduction, form_layers, next_number
from .replicas import broadcast_tensors

Fragments = Union[int, Iterable[torch.nn.Module]]
Named = Tuple[str, torch.Tensor]


class DiLoCo:
    """Each process takes steps with its own gradients; after every `sync_every` of them all processes
    move the global parameters together, and go on from there.

        with sluice.DiLoCo(model, inner_optimizer, sync_every=30) as diloco:
            for batch in batches:
                inner_optimizer.zero_grad()
                loss_of(model, batch).backward()
                inner_optimizer.step()
        with diloco.global_model():
            evaluate(model)

    The outer gradient of a process is the global parameters less its own. Its mean over all processes
    is the gradient of the outer optimizer, which moves the global parameters; every process takes
    them over. The state of the inner optimizer stays in its process.

    With a delay the exchange goes on behind the next local steps. Its outer step is made exactly
    `delay` of them later: not sooner if the mean is there, and if it is late, step() waits. So results
    do not depend on the network.

    It acts on the steps of the inner optimizer inside the with statement. All processes take the same
    number of them.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: Optional[torch.optim.Optimizer] = None,
        sync_every: int = 30,
        *,
        outer_rate: Optional[float] = None,
        outer_momentum: Optional[float] = None,
        fragments: Fragments = 1,
        delay: int = 0,
        mix: float = 0.0,
        synchronous_first: int = 0,
        preset: str = "p3-allreduce",
        compression: str = Compression.none,
    ) -> None:
        """Collective. All processes begin with the parameters and buffers of process 0.

        Args:
            model: what is trained. Its parameters that require a gradient are exchanged, its buffers
                are not.
            inner_optimizer: any of torch.optim, of the local steps: AdamW in the paper.
            outer_optimizer: one of model.parameters(), which then updates the global parameters
                instead; by default SGD with Nesterov's momentum.
            sync_every: local steps between two exchanges of a fragment.
            outer_rate: of the default outer optimizer: 0.7 unless set.
            outer_momentum: likewise; 0.9 unless set.
            fragments: parts of the model that are exchanged in turn, each once in `sync_every` steps:
                their number, at most `sync_every`, or the modules that they are.
            delay: local steps between an exchange and its outer step, fewer than `sync_every`.
            mix: share of its own parameters that a process keeps when it takes over.
            synchronous_first: so many steps at the start use the mean gradient of all processes.
            preset: how outer gradients are summed; presets() has the names.
            compression: one of Compression, for outer gradients.
        """
        modules = list(fragments) if isinstance(fragments, Iterable) else None
        turns = fragments if modules is None else len(modules)
        self._cadence = checked_cadence(sync_every, turns, delay, mix, synchronous_first)
        _check_optimizers(inner_optimizer, outer_optimizer, outer_rate, outer_momentum)
        check_outer(outer_rate, outer_momentum)
        cadences = allgather_object(self._cadence)
        if cadences != [self._cadence] * len(cadences):
            raise ValueError(f"the settings differ between processes: {cadences}")
        self.number = next_number()
        self._model = model
        self._inner = inner_optimizer
        self._steps = 0
        self._entry: Optional[object] = None  # of the with statement
        self._hook: Optional[Callable[..., Any]] = None  # stands for the inner optimizer's step
        self._hidden: Optional[Callable[..., Any]] = None  # by the hook, if a scheduler's
        self._shows_global = False
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._named = named
        if not named:
            raise ValueError("no parameter of the model requires a gradient")
        parts = _dealt(named, self._cadence.fragments) if modules is None else _of(modules, named)
        broadcast_tensors([*model.parameters(), *model.buffers()], 0)
        self._fragments: List[Tuple[int, Fragment]] = [
            (turn, Fragment(part, preset, compression))
            for turn, part in enumerate(parts)
            if part
        ]
        self._shared = {id(p): s for _, f in self._fragments for p, s in zip(f.own, f.shared)}
        if outer_optimizer is None:
            in_order = [self._shared[id(p)] for _, p in named]
            outer_optimizer = default_outer_optimizer(in_order, outer_rate, outer_momentum)
        else:
            adopt(outer_optimizer, self._shared)
        #: Of the global parameters. Its rate may be changed, also by a scheduler.
        self.outer_optimizer = outer_optimizer
        self._gradients: Optional[Reduction] = None  # of a synchronous step
        self._settings = (preset, compression)
        register(self)

    def __enter__(self) -> "DiLoCo":
        if self._entry is not None:
            raise RuntimeError("this object is in a with statement already")
        plain = self._inner.step
        entry = object()
        weak = weakref.ref(self)  # a scheduler may keep what it has wrapped

        @functools.wraps(getattr(plain, "__func__", plain))
        def step(_: Any, *args: Any, **kwargs: Any) -> Any:
            owner = weak()
            if owner is None or owner._entry is not entry:
                return plain(*args, **kwargs)
            return owner._step(plain, *args, **kwargs)

        self._entry = entry
        self._hook = types.MethodType(step, self._inner)  # schedulers expect a method
        self._hidden = self._inner.__dict__.get("step")
        self._inner.step = self._hook  # type: ignore[method-assign]
        return self

    def __exit__(self, *unused: Any) -> None:
        if self._inner.__dict__.get("step") is self._hook:  # else a scheduler has wrapped it
            del self._inner.step
            if self._hidden is not None:
                self._inner.step = self._hidden  # type: ignore[method-assign]
        self._entry = self._hook = self._hidden = None

    @contextlib.contextmanager
    def global_model(self) -> Iterator[torch.nn.Module]:
        """In it the model has the global parameters, as of the last outer step: to evaluate or to save
        it. Afterwards it has those of this process again."""
        if self._shows_global:
            raise RuntimeError("the model has the global parameters already")
        own = [p.detach().clone() for _, p in self._named]
        self._show(self.global_parameters().values())
        self._shows_global = True
        try:
            yield self._model
        finally:
            self._shows_global = False
            self._show(own)

    def global_parameters(self) -> Dict[str, torch.Tensor]:
        """By name, in float32. Later outer steps change these tensors."""
        return {name: self._shared[id(p)].detach() for name, p in self._named}

    def state_dict(self) -> Dict[str, Any]:
        """Global parameters, the outer optimizer and exchanges that have begun: waits for those.

        It is the same in all processes. To go on exactly as before, each process also keeps the states
        of its own model and inner optimizer.
        """
        return {
            "steps": self._steps,
            "global_parameters": {n: s.clone() for n, s in self.global_parameters().items()},
            "outer_optimizer": self.outer_optimizer.state_dict(),
            "exchanges": [fragment.state() for _, fragment in self._fragments],
        }

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes what state_dict() gave, with the same model and fragments. All processes load the same.

        The model's own parameters stay as they are."""
        mine, theirs = self.global_parameters(), state_dict["global_parameters"]
        if list(mine) != list(theirs) or len(state_dict["exchanges"]) != len(self._fragments):
            raise ValueError("the state is one of another model, or of other fragments")
        self._steps = state_dict["steps"]
        for name, shared in mine.items():
            shared.copy_(theirs[name])
        self.outer_optimizer.load_state_dict(state_dict["outer_optimizer"])
        for (_, fragment), state in zip(self._fragments, state_dict["exchanges"]):
            fragment.load_state(state)

    def settle(self) -> None:
        """Nothing is due: outer steps wait for their local steps."""

    def counts(self) -> Dict[str, Any]:
        """See summary()."""
        return {"local_steps": max(0, self._steps - self._cadence.synchronous)}

    def _step(self, plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._shows_global:
            raise RuntimeError("a step under global_model() would be lost: take it outside")
        if self._steps < self._cadence.synchronous:
            return self._synchronous_step(plain, *args, **kwargs)
        result = plain(*args, **kwargs)
        self._steps += 1
        self._exchange()
        return result

    def _synchronous_step(
        self, plain: Callable[..., Any], closure: Optional[Callable[[], Any]] = None, **kwargs: Any
    ) -> Any:
        """The gradients are means of all processes, and the global parameters are those of each."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._gradients is None:
            names = {id(p): name for name, p in self._named}
            parameters = [p for _, p in self._named]
            self._gradients = Reduction(parameters, names, *self._settings, 1.0 / size())
            self._gradients.set_sending(False)  # they leave in step()
        self._gradients.finish()
        self._gradients.store_sums()
        plain(**kwargs)
        for _, fragment in self._fragments:
            fragment.follow()
        self._steps += 1
        if self._steps == self._cadence.synchronous:
            self._gradients = None
        return loss

    def _exchange(self) -> None:
        """Begins what has its turn, then makes the outer steps that are due."""
        for turn, fragment in self._fragments:
            if self._cadence.begins_at(self._steps, turn):
                self._check_parameters()
                fragment.begin(self._steps)
        for _, fragment in self._fragments:
            if fragment.begun and self._steps == fragment.begun + self._cadence.delay:
                fragment.step(self.outer_optimizer, self._cadence.mix)

    def _check_parameters(self) -> None:
        for name, parameter in self._model.named_parameters():
            if parameter.requires_grad and id(parameter) not in self._shared:
                raise RuntimeError(
                    f"{name} requires a gradient, but did not when this object was made, and would never "
                    "be exchanged: make the object when all parameters that are trained require one"
                )

    def _show(self, values: Iterable[torch.Tensor]) -> None:
        with torch.no_grad():
            for (_, parameter), value in zip(self._named, values):
                parameter.copy_(value)


class LocalSGD(DiLoCo):
    """Each process takes steps with its own gradients; after every `sync_every` of them the parameters
    become the mean over all processes. Otherwise like DiLoCo."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        sync_every: int = 8,
        *,
        fragments: Fragments = 1,
        delay: int = 0,
        mix: float = 0.0,
        synchronous_first: int = 0,
        preset: str = "p3-allreduce",
        compression: str = Compression.none,
    ) -> None:
        """Collective. The arguments are those of DiLoCo."""
        super().__init__(
            model,
            optimizer,
            sync_every=sync_every,
            outer_rate=1.0,
            outer_momentum=0.0,
            fragments=fragments,
            delay=delay,
            mix=mix,
            synchronous_first=synchronous_first,
            preset=preset,
            compression=compression,
        )


def _check_optimizers(
    inner: torch.optim.Optimizer,
    outer: Optional[torch.optim.Optimizer],
    outer_rate: Optional[float],
    outer_momentum: Optional[float],
) -> None:
    if isinstance(inner, _Distributed):
        raise ValueError(
            "the inner optimizer is a DistributedOptimizer, which exchanges in every step: give the "
            "optimizer of torch.optim"
        )
    if outer is None:
        return
    if outer is inner:
        raise ValueError("the inner and the outer optimizer must be two: they have states of their own")
    if outer_rate is not None or outer_momentum is not None:
        raise ValueError(
            "outer_rate and outer_momentum are of the default outer optimizer: set them in your own"
        )


def _dealt(named: Sequence[Named], fragments: int) -> List[List[Named]]:
    """The parameters of a module stay together."""
    _, layers = form_layers([name for name, _ in named], [])
    sizes = [sum(named[p][1].numel() for p in layer) for layer in layers]
    parts: List[List[Named]] = [[] for _ in range(fragments)]
    for layer, fragment in zip(layers, deal(sizes, fragments)):
        parts[fragment] += [named[p] for p in layer]
    return parts


def _of(modules: Sequence[torch.nn.Module], named: Sequence[Named]) -> List[List[Named]]:
    """The parameters of these modules, which are all that there are, each in one of them."""
    of_module = [{id(p) for p in module.parameters()} for module in modules]
    for name, parameter in named:
        count = sum(id(parameter) in own for own in of_module)
        if count != 1:
            raise ValueError(f"each parameter must be in one of the fragments, but {name} is in {count}")
    return [[(name, p) for name, p in named if id(p) in own] for own in of_module]
