"""This process among those of the job."""

import atexit
import os
import sys
import weakref
from typing import Any, Dict, List, Optional, Protocol

import torch  # noqa: F401  (its libraries must be loaded before the module)

from .. import _C


class Registered(Protocol):
    """Whoever may have updates that are due, and counts what it does."""

    number: int

    def settle(self) -> None:
        """Makes the updates that are due."""

    def counts(self) -> Dict[str, Any]:
        """See summary()."""


_participant: Optional[_C.Participant] = None
_registered: "weakref.WeakSet[Registered]" = weakref.WeakSet()
_hooked = False


def init() -> None:
    """Joins the processes that mpirun, srun or a similar launcher started; alone it is one process.

    An exception that nobody catches then ends all processes. If the program uses mpi4py, import it
    first: ``from mpi4py import MPI``.
    """
    global _participant
    if _participant is None:
        _participant = _C.Participant()
        _install_hooks()


def shutdown() -> None:
    """Leaves the others, when all have come to this point. Done at exit, too."""
    global _participant
    if _participant is not None:
        settle()
        leaving, _participant = _participant, None
        leaving.leave()


def is_initialized() -> bool:
    """Whether init() has been called, and shutdown() has not."""
    return _participant is not None


def participant() -> _C.Participant:
    """The process's place in the job."""
    if _participant is None:
        raise RuntimeError("call sluice.init() first")
    return _participant


def rank() -> int:
    """The number of this process, from 0 to size()-1."""
    return participant().rank


def size() -> int:
    """The number of processes."""
    return participant().size


def local_rank() -> int:
    """The number of this process among those of its machine: which GPU to take, for instance."""
    return participant().local_rank


def local_size() -> int:
    """The number of processes on this machine."""
    return participant().local_size


def presets() -> List[str]:
    """The names for the argument `preset` of DistributedOptimizer."""
    return list(_C.presets())


def register(one: Registered) -> None:
    """Has its updates made before the end."""
    _registered.add(one)


def registered() -> List[Registered]:
    """All that are alive, the oldest first."""
    return sorted(_registered, key=lambda one: one.number)


def settle() -> None:
    """Makes all updates that are due."""
    for one in registered():
        one.settle()


def _install_hooks() -> None:
    global _hooked
    if _hooked:
        return
    _hooked = True
    report = sys.excepthook

    def end_all(*what: Any) -> None:
        report(*what)
        sys.stderr.flush()
        sys.stdout.flush()
        if _participant is not None:  # the others would wait for ever
            _participant.abort(1)

    sys.excepthook = end_all
    atexit.register(_leave_at_exit)
    os.register_at_fork(after_in_child=_forget)


def _leave_at_exit() -> None:
    leaving = _participant
    try:
        shutdown()
    except Exception:
        sys.excepthook(*sys.exc_info())
        if leaving is not None:
            leaving.abort(1)


_kept: List[Any] = []


def _forget() -> None:
    """A forked process, such as a worker of a DataLoader, is no process of the job."""
    global _participant
    _kept.append(_participant)  # its threads are not here: it must not be destroyed
    _participant = None
