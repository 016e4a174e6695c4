"""How often processes exchange, and what they make of it: pure arithmetic, as of `sluice train`."""

import operator
from typing import Any, List, NamedTuple, Sequence


class Cadence(NamedTuple):
    """Each fragment is exchanged once in `every` local steps; its outer step is `delay` steps later."""

    every: int
    fragments: int = 1
    delay: int = 0
    mix: float = 0.0  # share of its own parameters that a process keeps
    synchronous: int = 0  # so many steps at the start use the mean gradient of all

    def begins_at(self, step: int, fragment: int) -> bool:
        """Whether the exchange of this fragment begins after this step. The first step is 1."""
        turn = (fragment + 1) * self.every // self.fragments
        local = step - self.synchronous
        return local > 0 and local % self.every == turn % self.every


def checked_cadence(
    sync_every: Any, fragments: Any, delay: Any, mix: float, synchronous_first: Any
) -> Cadence:
    """Raises ValueError, or TypeError for what is no whole number."""
    every = _whole("sync_every", sync_every, 1)
    fragments = _whole("fragments", fragments, 1)
    delay = _whole("delay", delay, 0)
    synchronous = _whole("synchronous_first", synchronous_first, 0)
    if fragments > every:
        raise ValueError(
            f"fragments={fragments} and sync_every={every} do not go together: one fragment at most is "
            f"exchanged after a local step, and each once in {every} of them; take at most {every} "
            "fragments, or a larger sync_every"
        )
    if delay >= every:
        raise ValueError(
            f"delay={delay} and sync_every={every} do not go together: a fragment's outer step is taken "
            f"before its next exchange begins; take a delay of at most {every - 1}"
        )
    if not 0 <= mix < 1:
        raise ValueError(
            f"mix must be from 0 to less than 1, not {mix}: it is the share of its own parameters that "
            "a process keeps, and with 1 the processes would never hear of each other"
        )
    return Cadence(every, fragments, delay, float(mix), synchronous)


def deal(sizes: Sequence[int], fragments: int) -> List[int]:
    """The fragment of each layer, given their sizes. Fragments are of about equal size: the largest
    layer first, each to the fragment with the fewest parameters so far."""
    dealt = [0] * fragments
    of_layer = [0] * len(sizes)
    for layer in sorted(range(len(sizes)), key=lambda layer: -sizes[layer]):
        fewest = dealt.index(min(dealt))
        of_layer[layer] = fewest
        dealt[fewest] += sizes[layer]
    return of_layer


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
