"""Processes with different numbers of batches."""

import gc

from .collectives import allgather_object
from .process import participant, registered, settle
from .reduction import Reduction


def join(device: int = -1) -> int:
    """Call it when this process has no more batches; returns when no process has.

    Until then it takes part in the steps of the others with zeros, and makes the same updates. A mean
    still counts all processes. Returns the rank that took most steps. Needs exactly one
    DistributedOptimizer. Meanwhile the others may call allreduce() for sums and means, to which this
    process adds zeros, barrier(), and broadcast() from one of themselves; other collective calls are
    errors. If the rate changes from step to step, give all processes the model of the returned rank
    afterwards. `device` is for Horovod's scripts and has no effect.
    """
    settle()
    gc.collect()  # a scheduler ties an optimizer that is gone to itself
    stepping = [one for one in registered() if isinstance(one, Reduction) and one.has_updates]
    if len(stepping) != 1:
        raise RuntimeError(f"join() needs one DistributedOptimizer, but there are {len(stepping)}")
    reduction = stepping[0]
    own_steps = reduction.steps
    reduction.place()
    participant().join()
    while reduction.step_aside():
        reduction.arm()
        reduction.update_all()
    participant().end_join()
    steps = allgather_object(own_steps)
    return max(range(len(steps)), key=lambda rank: (steps[rank], rank))
