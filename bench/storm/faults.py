"""Faults that are made for real in the lab, and the training under `sluice launch` that meets them."""
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import lab

ENDS_WITHIN_S = 10  # a run that cannot go on, with the culprit's name
AGAIN_WITHIN_S = 60  # then it trains again, if its hosts are there
LASTS_S = 12  # a fault that does not end the run, and the outage of a link
MAX_RESTARTS = 5
ENDING = {"kill": "SIGKILL", "stop": "SIGSTOP", "cut": "link down"}
PASSING = {"slow": "link at a tenth", "full": "full disk"}
KINDS = {**ENDING, **PASSING}


@dataclasses.dataclass
class Fault:
    kind: str
    rank: int
    at: float = 0  # seconds since the start
    iteration: int = 0  # that had been done
    ended_s: float = None  # after the fault, with this line that names the culprit
    culprit: str = ""
    again_s: float = None  # until the first iteration after the restart
    lost: int = 0  # iterations that were done twice
    wrong: str = ""


class Weather:
    """What happens to the hosts, from the head of the lab."""

    def __init__(self, args):
        self.rate = args.rate
        self.folder = args.inside

    def begin(self, fault):
        {"kill": self.kill, "stop": self.stop, "cut": self.cut, "slow": self.slow, "full": self.fill}[fault.kind](fault.rank)

    def end(self, fault):
        """Of what lasts."""
        if fault.kind == "cut":
            run(["ip", "link", "set", f"port{fault.rank}", "up"])
        elif fault.kind == "slow":
            self.limit(fault.rank, self.rate)
        elif fault.kind == "full":
            (self.folder / "filler").unlink(missing_ok=True)

    def kill(self, rank):
        os.kill(process_of(rank), signal.SIGKILL)

    def stop(self, rank):
        os.kill(process_of(rank), signal.SIGSTOP)

    def cut(self, rank):
        run(["ip", "link", "set", f"port{rank}", "down"])

    def slow(self, rank):
        number, unit = re.fullmatch(r"([\d.]+)(\w+)", self.rate).groups()
        self.limit(rank, f"{float(number) / 10:g}{unit}")

    def limit(self, rank, rate):
        run(["tc", "qdisc", "change", "dev", f"port{rank}", "root", "handle", "1:", "tbf", "rate", rate, "burst", "131072", "latency", "50ms"])

    def fill(self, _):
        with open(self.folder / "filler", "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass


def run(words):
    subprocess.run([str(word) for word in words], check=True)


def process_of(rank):
    """The training process of a rank: no other process of the lab has its variable and our program."""
    marks = {f"{variable}={rank}".encode() for variable in ("OMPI_COMM_WORLD_RANK", "SLUICE_RANK")}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marks & set((folder / "environ").read_bytes().split(b"\0")) \
                    and os.readlink(folder / "exe").endswith("/sluice"):
                return int(folder.name)
        except OSError:
            continue
    raise lab.Failure(f"rank {rank} has no process")


class Run:
    """A training under `launch`, in a folder: what it says, and how far it is."""

    def __init__(self, args, training, folder=Path(), restarts=MAX_RESTARTS):
        self.begin = time.monotonic()
        self.folder = folder
        words = [args.build / "sluice", "launch", "-n", args.hosts, "--transport", args.transport, "--max-restarts", restarts, "--", "sluice",
                 *training]
        self.job = subprocess.Popen([str(word) for word in words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []  # (seconds since the start, text)
        self.out = []
        for stream, sink in ((self.job.stderr, self.note), (self.job.stdout, self.out.append)):
            threading.Thread(target=lambda stream=stream, sink=sink: [sink(line) for line in stream], daemon=True).start()

    def now(self):
        return time.monotonic() - self.begin

    def note(self, line):
        self.lines.append((self.now(), line.rstrip()))

    def said(self, since, *texts):
        """The first line since then that has all of these texts."""
        return next(((at, line) for at, line in list(self.lines) if at >= since and all(text in line for text in texts)), None)

    def said_since(self, since):
        return "".join(f"    {at:7.1f} {line}\n" for at, line in list(self.lines) if at >= since)

    def report(self, fault, training=""):
        """Prints what came of a fault, and what was said since if that was wrong."""
        print(f"{training}{fault.at:7.1f} s  {KINDS[fault.kind]} of rank {fault.rank}, iteration {fault.iteration}: "
              f"{fault.wrong or ('went on' if fault.again_s is None else f'trains again after {fault.again_s:.1f} s')}", file=sys.stderr)
        if fault.wrong:
            print(self.said_since(fault.at), file=sys.stderr)

    def ended(self):
        return self.job.poll() is not None

    def records(self):
        """That have begun, one of each start."""
        return {path for path in self.folder.glob("runs/*/metrics.jsonl") if path.stat().st_size}

    def record(self):
        """The folder of that of the last start."""
        return max(self.records(), key=lambda path: path.stat().st_mtime).parent

    def last_row(self):
        """Of this record."""
        rows = (self.record() / "metrics.jsonl").read_text().splitlines(keepends=True) if self.records() else []
        whole = [row for row in rows[-2:] if row.endswith("\n")]
        return json.loads(whole[-1]) if whole else {"step": 0, "time_s": 0}

    def iteration(self):
        """How many iterations are done since the last start."""
        return self.last_row()["step"]

    def record_begin(self):
        """When the clock of the record began, as the next row comes."""
        former = self.iteration()
        self.wait(lambda: self.iteration() > former, AGAIN_WITHIN_S)
        return self.now() - self.last_row()["time_s"]

    def summary(self):
        """When it has ended: of its last start; empty if that failed."""
        self.job.wait()
        time.sleep(0.2)  # for its last lines
        text = "".join(self.out)
        return json.loads(text[text.rfind("\n{") + 1:]) if self.job.returncode == 0 else {}

    def ends(self, fault):
        """Whether it ends after the fault, in time and with the culprit's name."""
        # Signs of life end when the process does; what others wait for is found out by heartbeats.
        ended = self.wait(lambda: self.said(fault.at, "launch: the job ended"), AGAIN_WITHIN_S)
        named = self.said(fault.at, f"rank {fault.rank}")
        fault.culprit = named[1] if named else ""
        if not ended:
            fault.wrong = "the run did not end"
            return False
        fault.ended_s = ended[0] - fault.at
        if fault.ended_s > ENDS_WITHIN_S:
            fault.wrong = f"the run did not end within {ENDS_WITHIN_S} s"
        elif not named:
            fault.wrong = "nobody named the culprit"
        return True

    def begins_again(self, fault, former):
        """Whether it trains again: there is another record than the former ones."""
        again = self.wait(lambda: self.records() - former, AGAIN_WITHIN_S)
        if again:
            fault.again_s = self.now() - fault.at
        elif not fault.wrong:
            fault.wrong = "the run was not started again"
        return again

    def goes_on(self, fault):
        """Whether another iteration is done after the fault."""
        if self.said(fault.at, "launch: the job ended"):
            fault.wrong = "the run did not go on"
        elif not self.wait(lambda: self.iteration() > fault.iteration, AGAIN_WITHIN_S):
            fault.wrong = "the run stands still"
        return not fault.wrong

    def wait(self, condition, seconds):
        """The first true value of the condition, or None."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = condition()
            if value or self.ended():
                return value
            time.sleep(0.02)
        return condition()
