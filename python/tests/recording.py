"""Records and traces of optimizers and of DDP: mpirun -np N python3 recording.py"""

import json
import pathlib
import tempfile
import time
from typing import Any, Dict, List, Set

import torch

import sluice.torch as sluice
from reference import BATCH, joined_batch, loss_of, make_net, own_part

STEPS = 9
failures: List[str] = []


def check(what: str, holds: bool, detail: str = "") -> None:
    """After the end of Sluice, in process 0."""
    if not holds:
        failures.append(what)
        print(f"FAILED: {what} {detail}", flush=True)


def train(net: Any, optimizer: Any, recorder: Any) -> List[float]:
    """Returns the mean losses over the processes. Once, the others wait for the last one."""
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(net, own_part(joined_batch(step)))
        recorder.record_loss(loss)
        if step == STEPS // 2 and sluice.rank() == sluice.size() - 1:
            time.sleep(1)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return sluice.allreduce(torch.tensor(losses)).tolist()


def spans_of(trace: pathlib.Path) -> Set[str]:
    events = json.loads(trace.read_text())["traceEvents"]
    return {event["name"] for event in events if event["ph"] == "X"}


def check_record(what: str, run: pathlib.Path, losses: List[float]) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    summary: Dict[str, Any] = json.loads((run / "summary.json").read_text())
    check(f"{what}: a row per step", [row["step"] for row in rows] == list(range(1, STEPS + 1)))
    apart = max(abs(row["loss"] - loss) for row, loss in zip(rows, losses))
    check(f"{what}: rows have the mean loss", apart < 1e-6, str(apart))
    check(f"{what}: samples", rows[-1]["samples"] == STEPS * BATCH * summary["workers"])
    check(f"{what}: the summary counts steps", summary["iterations"] == STEPS, str(summary))
    several = summary["workers"] > 1
    check(f"{what}: messages", (summary["mechanism"]["messages"] > 0) == several, str(summary))
    spans = spans_of(run / "trace.json")
    kinds = {span.split()[0] for span in spans}
    compute = {"forward middle", "backward first", "backward last"}
    check(f"{what}: the trace shows compute", compute <= spans, str(spans))
    wanted = {"wait", "push", "sum"} if several else set()
    check(f"{what}: the trace shows waits, messages and sums", wanted <= kinds, str(kinds))


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    folder = pathlib.Path(sluice.broadcast_object(tempfile.mkdtemp()))
    settings = {"preset": "p3", "trace": "auto", "batch": BATCH}
    plain, parallel = make_net(), make_net()
    optimizer = sluice.DistributedOptimizer(
        torch.optim.SGD(plain.parameters(), 0.05),
        plain.named_parameters(),
        run=folder / "optimizer",
        **settings,
    )
    losses = train(plain, optimizer, optimizer)
    ddp = sluice.DistributedDataParallel(parallel, run=folder / "ddp", **settings)
    losses_of_ddp = train(ddp, torch.optim.SGD(ddp.parameters(), 0.05), ddp)
    leads = sluice.rank() == 0
    sluice.shutdown()
    if leads:
        check_record("optimizer", folder / "optimizer", losses)
        check_record("DDP", folder / "ddp", losses_of_ddp)
        print("failed" if failures else "passed")
    raise SystemExit(1 if failures else 0)


main()
