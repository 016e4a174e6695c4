"""Sluice for PyTorch scripts, with Horovod's names.

    import sluice.torch as sluice

    sluice.init()
    optimizer = sluice.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), preset="p3")
    sluice.broadcast_parameters(model.state_dict(), root_rank=0)
    sluice.broadcast_optimizer_state(optimizer, root_rank=0)

Start the script as several processes: ``mpirun -np 4 python3 train.py``. Gradients leave while the
backward pass goes on. ``step()`` does not wait: a layer is updated when the next forward pass reads
it. For a script written for PyTorch's DDP there is :class:`DistributedDataParallel`. Where the network
is slow for the model, :class:`DiLoCo` and :class:`LocalSGD` exchange after many steps only.
"""

from .checkpoint import load_checkpoint, save_checkpoint
from .collectives import (
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allgather_object,
    allreduce,
    allreduce_,
    barrier,
    broadcast,
    broadcast_,
    broadcast_object,
    grouped_allreduce,
    grouped_allreduce_,
)
from .compression import Compression
from .handles import (
    allgather_async,
    allreduce_async,
    allreduce_async_,
    broadcast_async,
    broadcast_async_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    poll,
    synchronize,
)
from .join import join
from .local_steps import DiLoCo, LocalSGD
from .optimizer import DistributedOptimizer
from .parallel import DistributedDataParallel
from .prediction import profile, simulate
from .process import (
    init,
    is_initialized,
    local_rank,
    local_size,
    presets,
    rank,
    shutdown,
    size,
)
from .replicas import broadcast_optimizer_state, broadcast_parameters
from .statistics import summary
from .sync_batch_norm import SyncBatchNorm

__all__ = [
    "Average",
    "Compression",
    "DiLoCo",
    "DistributedDataParallel",
    "DistributedOptimizer",
    "LocalSGD",
    "Max",
    "Min",
    "Product",
    "Sum",
    "SyncBatchNorm",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "init",
    "is_initialized",
    "join",
    "load_checkpoint",
    "local_rank",
    "local_size",
    "poll",
    "presets",
    "profile",
    "rank",
    "save_checkpoint",
    "shutdown",
    "simulate",
    "size",
    "summary",
    "synchronize",
]
