"""What Sluice has done in this process."""

from typing import Any, Dict

from .process import reductions, settle


_KEYS = (
    "steps",
    "layers",
    "messages",
    "bytes",
    "chunks",
    "overtakings",
    "stops",
    "waits",
    "updates",
    "waited_s",
)


def summary() -> Dict[str, Any]:
    """Counts of this process, over the optimizers that exist.

    steps, layers; messages, bytes, chunks and overtakings (urgent ones that went first) sent, up to
    the last collective call; stops (operators that read a parameter whose update was due), waits (of
    these, those whose sum was not here yet), waited_s (how long), updates (calls of an optimizer).
    """
    settle()
    total: Dict[str, Any] = dict.fromkeys(_KEYS, 0)
    for reduction in reductions():
        for key, value in reduction.counts().items():
            total[key] = total.get(key, 0) + value
    return {key: value if key == "waited_s" else int(value) for key, value in total.items()}
