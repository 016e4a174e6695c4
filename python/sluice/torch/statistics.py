"""What Sluice has done in this process."""

from typing import Any, Dict

from .process import reductions, settle


def summary() -> Dict[str, Any]:
    """Counts of this process, over all its optimizers.

    steps, layers; messages, bytes, chunks and overtakings (urgent ones that went first) sent, up to
    the last collective call; stops (operators that read a parameter whose update was due), waits (of
    these, those whose sum was not here yet), waited_s (how long), updates (calls of an optimizer).
    """
    settle()
    total: Dict[str, Any] = {}
    for reduction in reductions():
        for key, value in reduction.counts().items():
            total[key] = total.get(key, 0) + value
    return {key: value if key == "waited_s" else int(value) for key, value in total.items()}
