"""What Sluice has done in this process."""

from typing import Any, Dict

from .process import registered


_KEYS = (
    "steps",
    "local_steps",
    "outer_exchanges",
    "outer_steps",
    "layers",
    "messages",
    "bytes",
    "chunks",
    "overtakings",
    "gradients_summed_locally",
    "stops",
    "waits",
    "updates",
    "sent_in_backward",
    "sent_in_step",
    "waited_s",
)


def summary() -> Dict[str, Any]:
    """Counts of this process, over the optimizers that exist.

    steps; local_steps (of DiLoCo and LocalSGD), outer_exchanges and outer_steps (of their fragments:
    begun, and made); layers; messages, bytes, chunks and overtakings (urgent ones that went first) sent;
    gradients_summed_locally (parts of those of other processes of the machine, added before they left it);
    sent_in_backward and sent_in_step (layers whose gradient left during the backward pass, and after
    it); stops (operators that read a parameter whose update was due), waits (of these, those whose
    sum was not here yet), waited_s (how long; also for outer steps), updates (calls of an optimizer).
    """
    total: Dict[str, Any] = dict.fromkeys(_KEYS, 0)
    for one in registered():
        for key, value in one.counts().items():
            total[key] = total.get(key, 0) + value
    return {key: value if key == "waited_s" else int(value) for key, value in total.items()}
