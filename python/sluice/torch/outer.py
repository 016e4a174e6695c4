"""The outer side of local steps: global parameters, their fragments and their optimizer."""

import contextlib
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from .process import size
from .reduction import Reduction


class OuterReduction(Reduction):
    """Averages outer gradients. What it counts are outer steps, not those of an optimizer."""

    def __init__(
        self, parameters: Sequence[torch.Tensor], names: Dict[int, str], preset: str, compression: str
    ) -> None:
        super().__init__(parameters, names, preset, compression, 1.0 / size())
        self.outer_steps = 0
        self.waited_s = 0.0
        self.place()

    def wait_all(self) -> None:
        """Waits for the sums of the last exchange."""
        begin = time.perf_counter()
        super().wait_all()
        self.waited_s += time.perf_counter() - begin

    def counts(self) -> Dict[str, Any]:
        """What the exchange has done: see summary()."""
        counts = super().counts()
        counts["outer_exchanges"] = counts.pop("steps", 0)
        counts["outer_steps"] = self.outer_steps
        counts["waited_s"] += self.waited_s
        return counts


class Fragment:
    """The layers that are exchanged at the same time, with their global parameters.

    begin() sends the outer gradient, the global parameters less the process's own, and returns. All
    processes make the same outer step with the same mean, so their global parameters stay equal.
    """

    def __init__(
        self, named: Sequence[Tuple[str, torch.Tensor]], preset: str, compression: str
    ) -> None:
        """Collective. The global parameters begin as the process's own, which are `named`."""
        self.own = [parameter for _, parameter in named]
        self.shared = [_copy_of(parameter) for parameter in self.own]
        self.begun = 0  # after this step the exchange has begun; 0: none has
        self._kept: Optional[List[torch.Tensor]] = None  # means of an exchange in a checkpoint
        names = {id(shared): name for (name, _), shared in zip(named, self.shared)}
        self.reduction = OuterReduction(self.shared, names, preset, compression)

    def begin(self, step: int) -> None:
        """The exchange begins with the parameters after this step, and goes on behind the next ones."""
        for shared, own in zip(self.shared, self.own):
            shared.grad = shared.detach() - own.detach()
        self.reduction.finish()
        self._clear_gradients()
        self.begun = step

    def step(self, outer_optimizer: torch.optim.Optimizer, mix: float) -> None:
        """Makes the outer step when the mean is here, and the process takes over its result."""
        with self._means():
            outer_optimizer.step()
        self.begun, self._kept = 0, None
        self.reduction.outer_steps += 1
        with torch.no_grad():
            for shared, own in zip(self.shared, self.own):
                own.copy_(shared if mix == 0 else mix * own + (1 - mix) * shared)

    def follow(self) -> None:
        """The global parameters are the process's own."""
        with torch.no_grad():
            for shared, own in zip(self.shared, self.own):
                shared.copy_(own)

    def state(self) -> Dict[str, Any]:
        """The exchange that has begun, with its mean; waits for it."""
        means: List[torch.Tensor] = []
        if self.begun:
            with self._means():
                means = [shared.grad.clone() for shared in self.shared]  # type: ignore[union-attr]
        return {"begun": self.begun, "means": means}

    def load_state(self, state: Dict[str, Any]) -> None:
        """An exchange that has begun here is void."""
        if self.begun and self._kept is None:
            self.reduction.wait_all()
        self.begun, self._kept = state["begun"], None
        if self.begun:
            self._kept = [mean.to(s.device, s.dtype) for mean, s in zip(state["means"], self.shared)]

    @contextlib.contextmanager
    def _means(self) -> Iterator[None]:
        """In it the gradients of the global parameters are the means of the exchange that has begun."""
        if self._kept is None:
            self.reduction.wait_all()
            self.reduction.lend_sums(list(range(len(self.shared))))
        for shared, mean in zip(self.shared, self._kept or ()):
            shared.grad = mean
        try:
            yield
        finally:
            self.reduction.take_back()
            self._clear_gradients()

    def _clear_gradients(self) -> None:
        for shared in self.shared:
            shared.grad = None


def check_outer(rate: Optional[float], momentum: Optional[float]) -> None:
    """The settings of the default outer optimizer, as far as they are set."""
    if rate is not None and not 0 <= rate <= 1000:
        raise ValueError(f"outer_rate must be from 0 to 1000, not {rate}")
    if momentum is not None and not 0 <= momentum <= 1:
        raise ValueError(f"outer_momentum must be from 0 to 1, not {momentum}")


def default_outer_optimizer(
    shared: Sequence[torch.Tensor], rate: Optional[float], momentum: Optional[float]
) -> torch.optim.Optimizer:
    """SGD with Nesterov's momentum; where they are not set, as in DiLoCo's paper."""
    rate = 0.7 if rate is None else rate
    momentum = 0.9 if momentum is None else momentum
    return torch.optim.SGD(shared, lr=rate, momentum=momentum, nesterov=momentum > 0)


def adopt(optimizer: torch.optim.Optimizer, shared_of: Dict[int, torch.Tensor]) -> None:
    """Has a new optimizer of the model's own parameters update the global ones; `shared_of` is by
    id(parameter). Those that are not exchanged are left out."""
    missing = set(shared_of) - {id(p) for group in optimizer.param_groups for p in group["params"]}
    if missing:
        raise ValueError(
            f"outer_optimizer lacks {len(missing)} of the model's {len(shared_of)} parameters that are "
            "exchanged: give it model.parameters()"
        )
    if optimizer.state:
        raise ValueError("outer_optimizer has taken steps already: give a new one, and load states afterwards")
    for group in optimizer.param_groups:
        group["params"] = [shared_of[id(p)] for p in group["params"] if id(p) in shared_of]


def _copy_of(parameter: torch.Tensor) -> torch.Tensor:
    """In full precision, since an outer step may be small beside the parameters."""
    return parameter.detach().to(torch.float32, copy=True).requires_grad_()
