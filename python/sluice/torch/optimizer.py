"""An optimizer whose gradients are those of all processes."""

import contextlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch

from .collectives import Average, Sum
from .compression import Compression
from .process import size
from .record import Path, Record, record_of
from .reduction import Reduction


class _Distributed:
    """Comes before the class of the user's optimizer."""

    param_groups: List[Dict[str, Any]]

    def _attach(
        self,
        names: Dict[int, str],
        preset: str,
        compression: str,
        op: str,
        passes: int,
        record: Record,
    ) -> None:
        self._base = type(self).__mro__[2]
        self._settings = (names, preset, compression, 1.0 if op == Sum else 1.0 / size())
        self._record = record
        self._reductions = 0  # so far
        self._passes = passes
        self._synchronized = False
        self._updating = False
        self._snapshot: List[Dict[str, Any]] = []
        self._groups: List[int] = []  # by parameter of the reduction
        self._reduction = self._make_reduction()

    def _all_parameters(self) -> List[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _make_reduction(self) -> Reduction:
        names, preset, compression, scale = self._settings
        self._reductions += 1
        reduction = Reduction(
            self._all_parameters(),
            names,
            preset,
            compression,
            scale,
            self._update,
            record=self._record.part(self._reductions),
        )
        reduction.expect_passes(self._passes)
        return reduction

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Like the optimizer's own, but it does not wait for the gradients of the others.

        A parameter is updated when it is read next, by the forward pass of the next step or by
        anything else. Its rate and other settings are those at the time of this call.
        """
        if self._updating:
            return self._base.step(self)  # type: ignore[attr-defined]
        # What schedulers look at.
        self._step_count = getattr(self, "_step_count", 0) + 1
        self._opt_called = True
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            if loss is not None:
                self._reduction.record_loss(loss)
        if self._synchronized:
            self._synchronized = False
            with self._plain():
                self._base.step(self)  # type: ignore[attr-defined]
            return loss
        self._finish()
        self._snapshot = [
            {
                key: value.clone() if isinstance(value, torch.Tensor) else value
                for key, value in group.items()
                if key != "params"
            }
            for group in self.param_groups
        ]
        self._reduction.arm()
        if size() == 1:  # all sums are here
            self._reduction.update_all()
        return loss

    # As if a scheduler had wrapped it already.
    step._with_counter = True  # type: ignore[attr-defined]
    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]

    def synchronize(self) -> None:
        """Waits until p.grad of all parameters is that of all processes: to clip gradients or to look
        at them. The next step() uses p.grad as it is then."""
        if self._synchronized:
            return
        self._finish()
        self._reduction.store_sums()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """For Horovod's scripts: around the step() after synchronize()."""
        if not self._synchronized:
            raise RuntimeError("call synchronize() before skip_synchronize()")
        yield

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward passes in it stay here and accumulate."""
        self._reduction.set_sending(False)
        try:
            yield
        finally:
            self._reduction.set_sending(True)

    def record_loss(self, loss: Any) -> None:
        """The mean loss of this process's batch, for the record: call it before step(), in all
        processes. A closure's loss is recorded without it. Does nothing without a record."""
        self._reduction.record_loss(loss)

    def wait(self) -> None:
        """Makes all updates that are due. Only needed before reads that PyTorch does not see as
        operators, such as torch.save() of a whole module."""
        self._reduction.update_all()

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Like the optimizer's own."""
        if self._synchronized:
            self._synchronized = False
        else:
            self._reduction.discard()
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]

    def state_dict(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        """Like the optimizer's own, after all updates."""
        self._reduction.update_all()
        return super().state_dict(*args, **kwargs)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Like the optimizer's own."""
        self._reduction.update_all()
        super().load_state_dict(*args, **kwargs)  # type: ignore[misc]

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Like the optimizer's own. All processes add the same, between two steps."""
        if hasattr(self, "_reduction"):
            self._reduction.update_all()
        super().add_param_group(param_group)  # type: ignore[misc]

    def _finish(self) -> None:
        """The gradients of this step are final; all of them leave."""
        if not self._sort():
            # Some were added or unfrozen: their gradients are here, but have no hooks yet.
            self._reduction.discard()
            self._reduction.update_all()
            self._reduction = self._make_reduction()
            self._sort()
        self._reduction.finish()

    def _sort(self) -> bool:
        """Finds the group of each parameter; whether the reduction has all of them."""
        index_of = self._reduction.index_of
        self._groups = [0] * len(self._reduction.parameters)
        for number, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                index = index_of(parameter)
                if index is not None:
                    self._groups[index] = number
                elif parameter.requires_grad:
                    return False
        return True

    def _update(self, indices: List[int]) -> None:
        """The sums of these parameters are here: the optimizer's own step, for them alone."""
        reduction = self._reduction
        parts: Dict[int, List[torch.Tensor]] = {}
        for index in indices:
            parts.setdefault(self._groups[index], []).append(reduction.parameters[index])
        groups = [dict(self._snapshot[number], params=part) for number, part in parts.items()]
        whole, self.param_groups = self.param_groups, groups
        reduction.lend_sums(indices)
        try:
            with self._plain():
                self._base.step(self)  # type: ignore[attr-defined]
        finally:
            reduction.take_back()
            self.param_groups = whole

    @contextlib.contextmanager
    def _plain(self) -> Iterator[None]:
        """An update may fall into a forward pass with any modes."""
        self._updating = True
        try:
            with torch.inference_mode(False), torch.no_grad(), torch.autocast(
                "cpu", enabled=False
            ):
                yield
        finally:
            self._updating = False


def DistributedOptimizer(  # noqa: N802  (Horovod's name)
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
    compression: str = Compression.none,
    backward_passes_per_step: int = 1,
    op: str = Average,
    gradient_predivide_factor: float = 1.0,
    preset: str = "p3",
    run: Optional[Path] = None,
    trace: Optional[Path] = None,
    batch: int = 0,
) -> torch.optim.Optimizer:
    """Makes an optimizer of torch.optim use the gradients of all processes, and returns it.

    Args:
        optimizer: any but LBFGS. It keeps its state; schedulers may exist already or be made later.
        named_parameters: model.named_parameters(). Parameters whose names agree up to the last dot
            travel as one layer.
        compression: one of Compression.
        backward_passes_per_step: backward passes that add up before a step.
        op: Average or Sum of the gradients.
        gradient_predivide_factor: for Horovod's scripts; only 1 is supported.
        preset: what is exchanged when and how; presets() has the names.
        run: the folder for the record of the run, as of `sluice train`: new or empty, or "auto" for
            a new one under runs/. Process 0 writes it in shutdown(); `sluice report` shows it.
        trace: the file for a trace, or "auto" for one in the folder of the run.
        batch: samples per step of each process, for the record.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise TypeError("LBFGS takes several steps with one closure, which cannot be distributed")
    if op not in (Average, Sum):
        raise ValueError("op must be Average or Sum")
    if gradient_predivide_factor != 1.0:
        raise ValueError("gradient_predivide_factor is not supported")
    if backward_passes_per_step < 1:
        raise ValueError("backward_passes_per_step must be at least 1")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is distributed already")
    record = record_of(run, trace, batch)
    names = {id(p): name for name, p in named_parameters or ()}
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {})
    optimizer.__dict__.pop("step", None)  # a scheduler has wrapped the optimizer's own
    optimizer._attach(names, preset, compression, op, backward_passes_per_step, record)  # type: ignore[attr-defined]
    return optimizer
