"""Giving all processes the same model and the same state of the optimizer."""

from typing import Any, Dict, Iterable, List, Tuple, Union

import torch

from .collectives import broadcast_object
from .process import participant, rank

Named = Union[Dict[str, Any], Iterable[Tuple[str, torch.Tensor]]]


def broadcast_parameters(params: Named, root_rank: int = 0) -> None:
    """Copies the tensors of process `root_rank` into those of all: a state_dict() or named_parameters()."""
    items = params.items() if isinstance(params, dict) else params
    broadcast_tensors([value for _, value in items if isinstance(value, torch.Tensor)], root_rank)


def broadcast_tensors(tensors: List[torch.Tensor], root_rank: int) -> None:
    """The same for a list; tensors of one type and device travel as one."""
    groups: Dict[Tuple[torch.dtype, torch.device], List[torch.Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    with torch.no_grad():
        for (dtype, device), group in groups.items():
            sizes = [tensor.numel() for tensor in group]
            if rank() == root_rank:
                flat = torch.cat([tensor.detach().reshape(-1) for tensor in group]).cpu()
            else:
                flat = torch.empty(sum(sizes), dtype=dtype)
            participant().broadcast(flat, root_rank)
            if rank() != root_rank:
                for tensor, values in zip(group, flat.to(device).split(sizes)):
                    tensor.copy_(values.view_as(tensor))


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    """Gives all processes the state and the settings (such as the rate) of process `root_rank`."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank))
