"""What a model and a preset would cost on a cluster."""

import json
import statistics
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch

from .. import _C
from .reduction import form_layers

Marks = List[Tuple[int, bool, float]]


def profile(
    model: torch.nn.Module,
    sample: Any,
    loss: Optional[Callable[[Any], torch.Tensor]] = None,
    steps: int = 5,
    name: str = "",
    path: Union[str, Path, None] = None,
) -> Dict[str, Any]:
    """Measures how long the layers of a model take for a batch: a profile, as `sluice profile` writes.

    Args:
        model: in host memory; its parameters stay as they are, and their gradients are lost.
        sample: a batch; a tuple has the arguments of the model.
        loss: makes a scalar of what the model returns; without it, the sum of a tensor.
        steps: of which each time is the median, after one that does not count.
        name: of the profile; without it, that of the model's class.
        path: a file to write the profile to.
    """
    inputs = sample if isinstance(sample, tuple) else (sample,)
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    if not named or any(p.device.type != "cpu" for _, p in named):
        raise ValueError("profile() measures models in host memory; for a GPU use `sluice profile`")
    reducer = _C.Reducer([p for _, p in named], 1.0, None, None)
    begins: List[Tuple[float, float, float]] = []
    for _ in range(steps + 1):
        model.zero_grad(set_to_none=True)
        begin = time.monotonic()
        output = model(*inputs)
        value = loss(output) if loss else output.sum()
        middle = time.monotonic()
        value.backward()
        begins.append((begin, middle, time.monotonic()))
    model.zero_grad(set_to_none=True)
    marks: Marks = reducer.marks()
    counts = [p.numel() for _, p in named]
    reads = [p for p, is_gradient, _ in marks if not is_gradient]
    names, members = form_layers([n for n, _ in named], reads)
    layer_of = {p: layer for layer, indices in enumerate(members) for p in indices}
    spans = [_spans(marks, layer_of, len(names), *moments) for moments in begins[1:]]
    result = {
        "name": name or type(model).__name__,
        "batch": next((len(x) for x in inputs if isinstance(x, torch.Tensor) and x.dim() > 0), 1),
        "device": "cpu",
        "source": f"sluice.torch.profile with PyTorch {torch.__version__}",
        "layers": [
            {
                "name": layer_name,
                "params": sum(counts[p] for p in members[layer]),
                "forward_us": statistics.median(1e6 * forward[layer] for forward, _ in spans),
                "backward_us": statistics.median(1e6 * backward[layer] for _, backward in spans),
            }
            for layer, layer_name in enumerate(names)
        ],
    }
    if path is not None:
        _C.write_profile(json.dumps(result), str(path))
    return result


def _spans(
    marks: Marks, layer_of: Dict[int, int], layers: int, begin: float, middle: float, end: float
) -> Tuple[List[float], List[float]]:
    """Seconds of each layer in the two passes. A forward pass of a layer ends where the next layer is
    read first, a backward pass with the layer's last gradient."""
    first_read: Dict[int, float] = {}
    last_gradient: Dict[int, float] = {}
    for parameter, is_gradient, moment in marks:
        if is_gradient and middle <= moment <= end:
            last_gradient[layer_of[parameter]] = moment
        elif not is_gradient and begin <= moment < middle:
            first_read.setdefault(layer_of[parameter], moment)
    forward, backward = [0.0] * layers, [0.0] * layers
    order = sorted(first_read, key=lambda layer: first_read[layer])
    starts = [begin, *(first_read[layer] for layer in order[1:]), middle]
    for layer, start, after in zip(order, starts, starts[1:]):
        forward[layer] = after - start
    before = middle
    for layer in sorted(last_gradient, key=lambda layer: last_gradient[layer]):
        backward[layer] = last_gradient[layer] - before
        before = last_gradient[layer]
    return forward, backward


def simulate(
    profile: Union[str, Path, Dict[str, Any]],
    cluster: Union[str, Path, Dict[str, Any]],
    preset: str = "p3",
    iterations: int = 20,
    trace: Union[str, Path, None] = None,
) -> Dict[str, Any]:
    """What an iteration would take on a cluster: the summary of `sluice simulate --json`.

    Args:
        profile: of profile(), or a file.
        cluster: a file, or its keys: {"hosts": 4, "bandwidth_gbps": 10}.
        preset: any of `sluice presets`.
        iterations: that count, after a warm-up.
        trace: a file to write a Chrome trace to.
    """
    layers = json.dumps(profile) if isinstance(profile, dict) else Path(profile).read_text()
    hosts = _toml(cluster) if isinstance(cluster, dict) else Path(cluster).read_text()
    result: Dict[str, Any] = json.loads(
        _C.simulate(layers, hosts, preset, iterations, str(trace or ""))
    )
    return result


def _toml(values: Dict[str, Any]) -> str:
    plain = [f"{key} = {json.dumps(v)}" for key, v in values.items() if not isinstance(v, dict)]
    tables = [f"[{key}]\n{_toml(v)}" for key, v in values.items() if isinstance(v, dict)]
    return "\n".join(plain + tables)
