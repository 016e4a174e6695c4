"""A module whose gradients are those of all processes after every backward pass."""

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Iterator, List, Optional

import torch

from .compression import Compression
from .process import size
from .record import Path, record_of
from .reduction import Reduction
from .replicas import broadcast_tensors


class DistributedDataParallel(torch.nn.Module):
    """For scripts written for torch.nn.parallel.DistributedDataParallel.

    All processes begin with the parameters and buffers of process 0. After backward() p.grad is the
    mean over all processes, for any optimizer, and in training the buffers are those of process 0.
    Gradients leave while the backward pass goes on, and backward() waits for them;
    DistributedOptimizer waits later, in the next forward pass.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        broadcast_buffers: bool = True,
        find_unused_parameters: bool = False,
        preset: str = "wfbp",
        compression: str = Compression.none,
        run: Optional[Path] = None,
        trace: Optional[Path] = None,
        batch: int = 0,
        **ignored: Any,
    ) -> None:
        """`find_unused_parameters` has no effect: a parameter without a gradient in this process gets
        that of the others, and None if there is none. `run`, `trace` and `batch` are those of
        DistributedOptimizer. Further arguments of PyTorch's class, such as
        device_ids and bucket_cap_mb, have no effect either."""
        super().__init__()
        unknown = set(ignored) - _WITHOUT_EFFECT
        if unknown:
            raise TypeError(f"unknown arguments: {', '.join(sorted(unknown))}")
        self.module = module
        self._broadcast_buffers = broadcast_buffers and size() > 1
        self._behind = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sluice-buffers")
        broadcast_tensors([*module.parameters(), *module.buffers()], 0)
        names = {id(p): name for name, p in module.named_parameters()}
        self._reduction = Reduction(
            list(module.parameters()),
            names,
            preset,
            compression,
            1.0 / size(),
            after_backward=self._after_backward,
            record=record_of(run, trace, batch),
        )
        self._sending = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own."""
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward passes in it stay here and accumulate."""
        self._sending = False
        self._reduction.set_sending(False)
        try:
            yield
        finally:
            self._sending = True
            self._reduction.set_sending(True)

    def record_loss(self, loss: Any) -> None:
        """The mean loss of this process's batch, for the record: call it before backward(), in all
        processes. Does nothing without a record."""
        self._reduction.record_loss(loss)

    def _after_backward(self) -> None:
        self._reduction.finish()
        shared = self._share_buffers()
        self._reduction.store_sums()
        if shared:
            shared.result()

    def _share_buffers(self) -> "Optional[Future[None]]":
        """Copies those of process 0 into all while sums are on their way."""
        buffers = list(self.module.buffers())
        if not buffers or not self._broadcast_buffers or not self.module.training:
            return None
        stream = torch.cuda.current_stream() if torch.cuda.is_available() else None
        return self._behind.submit(_broadcast_on, stream, buffers)


def _broadcast_on(stream: Optional[torch.cuda.Stream], tensors: List[torch.Tensor]) -> None:
    """On another thread, but in order with what its caller has queued on this stream."""
    with torch.cuda.stream(stream):
        broadcast_tensors(tensors, 0)


_WITHOUT_EFFECT = {
    "bucket_cap_mb",
    "device_ids",
    "dim",
    "gradient_as_bucket_view",
    "output_device",
    "process_group",
    "static_graph",
}
