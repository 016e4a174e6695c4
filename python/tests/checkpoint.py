"""Scripts that go on from a checkpoint, against those that were never stopped: mpirun -np N python3 checkpoint.py"""

import pathlib
import random
import shutil
import tempfile
from typing import Any, Callable, Dict, List

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice
from reference import check, finish, joined_batch, own_part

STEPS = 9


def make_net() -> nn.Sequential:
    """With buffers, and with random numbers."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)
    )


class Run:
    """A net in training with all of its states; each process has noise of its own."""

    def __init__(self, make: Callable[[Any], torch.optim.Optimizer], preset: str) -> None:
        self.net = make_net()
        torch.manual_seed(7 + sluice.rank())
        random.seed(sluice.rank())
        self.optimizer = sluice.DistributedOptimizer(
            make(self.net.parameters()), self.net.named_parameters(), preset=preset
        )
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [2, 5])
        self.states: Dict[str, Any] = {
            "model": self.net,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
        }

    def step(self, step: int) -> None:
        samples, labels = own_part(joined_batch(step))
        self.optimizer.zero_grad()
        noise = torch.randn_like(samples) * random.random()
        F.cross_entropy(self.net(samples + noise), labels).backward()
        self.optimizer.step()
        self.scheduler.step()


class LocalRun:
    """The same with local steps; an exchange may be on its way."""

    def __init__(self) -> None:
        self.net = make_net()
        torch.manual_seed(7 + sluice.rank())
        self.inner = torch.optim.AdamW(self.net.parameters(), 1e-2)
        self.diloco = sluice.DiLoCo(self.net, self.inner, sync_every=3, delay=1)
        self.diloco.__enter__()
        self.states: Dict[str, Any] = {"model": self.net, "inner": self.inner, "diloco": self.diloco}

    def step(self, step: int) -> None:
        samples, labels = own_part(joined_batch(step))
        self.inner.zero_grad()
        F.cross_entropy(self.net(samples), labels).backward()
        self.inner.step()


def values_of(run: Any) -> List[torch.Tensor]:
    return [value.clone() for value in run.net.state_dict().values()]


def compare(what: str, make: Callable[[], Any], folder: pathlib.Path, stops: List[int]) -> None:
    """Runs without a stop, and with a new start after each of these iterations."""
    calm = make()
    for step in range(STEPS):
        calm.step(step)
    for stop in [*stops, STEPS]:
        run = make()
        begin = sluice.load_checkpoint(folder, **run.states)
        check(f"{what}: goes on where it stopped", begin in (0, *stops), str(begin))
        for step in range(begin, stop):
            run.step(step)
        sluice.save_checkpoint(folder, stop, **run.states)
    same = all(torch.equal(a, b) for a, b in zip(values_of(calm), values_of(run)))
    check(f"{what}: has the bits of a run that was never stopped", same)


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.05, momentum=0.9)


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, 1e-2)


def raised(kind: type, call: Callable[[], Any]) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    return ""


def keeps_and_passes_over(folder: pathlib.Path) -> None:
    run = Run(sgd, "p3")
    check("there is nothing yet", sluice.load_checkpoint(folder, **run.states) == 0)
    for step in range(4):
        run.step(step)
        sluice.save_checkpoint(folder, step + 1, keep=2, **run.states)
    names = sorted(path.name for path in folder.iterdir())
    check("the last two stay", names == ["iteration-3", "iteration-4"], str(names))
    sluice.barrier()
    torn = folder / "iteration-4" / f"host-{sluice.size() - 1}.safetensors"
    if sluice.rank() == 0:
        torn.write_bytes(torn.read_bytes()[:-1])
    sluice.barrier()
    check("the one before a torn one is taken", sluice.load_checkpoint(folder, **run.states) == 3)
    check("one may be named", sluice.load_checkpoint(folder / "iteration-3", **run.states) == 3)
    told = raised(ValueError, lambda: sluice.load_checkpoint(folder, model=run.net))
    check("other states are refused", "model, optimizer, scheduler" in told, told)


class Odd:
    """Has a state that is no data."""

    def state_dict(self) -> Dict[str, Any]:
        return {"thing": object()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Never called."""


def refuses(folder: pathlib.Path) -> None:
    told = raised(TypeError, lambda: sluice.save_checkpoint(folder, 1, step=3))
    check("a state must be one", "step has no state_dict()" in told, told)
    odd = Odd()
    told = raised(TypeError, lambda: sluice.save_checkpoint(folder, 1, odd=odd))
    check("no object is pickled", "odd/thing" in told and "not object" in told, told)
    file = folder.parent / "file"
    if sluice.rank() == 0:
        file.write_text("")
    sluice.barrier()
    told = raised(RuntimeError, lambda: sluice.save_checkpoint(file, 1, net=make_net()))
    check("all are told if it cannot be written", "checkpoint" in told and "rank" in told, told)


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    root = pathlib.Path(sluice.broadcast_object(tempfile.mkdtemp()))
    compare("sgd, p3", lambda: Run(sgd, "p3"), root / "p3", [4])
    compare("adam, wfbp", lambda: Run(adam, "wfbp"), root / "wfbp", [1, 6])
    compare("diloco", LocalRun, root / "diloco", [5])
    keeps_and_passes_over(root / "kept")
    refuses(root / "refused")
    sluice.barrier()
    if sluice.rank() == 0:
        shutil.rmtree(root)
    finish()


main()
