"""Runs programs in the lab, or beside each other on this machine, and reads what they print. Shared by the scripts of this folder."""
import dataclasses
import json
import subprocess
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
# Open MPI's ring, where its own choice would be another.
RING = ["env", "OMPI_MCA_coll_tuned_use_dynamic_rules=1", "OMPI_MCA_coll_tuned_allreduce_algorithm=4"]
LONGEST_S = 1800


class Failure(Exception):
    """A program could not be run, or failed; says what it said."""


def execute(words):
    """What the program prints. It runs in a folder of its own, which is removed."""
    words = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(words, cwd=folder, text=True, capture_output=True, timeout=LONGEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"ended with code {done.returncode}: {done.stderr.strip() or 'without a word'}")
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Lab:
    """Hosts with limited links, a process on each."""
    build: Path
    hosts: int
    rate: str

    @property
    def name(self):
        return self.rate

    def run(self, command, record="lab"):
        """`record` is the folder for what passed the links; by default it goes with the rest."""
        lab = [self.build / "sluice", "lab", "--hosts", self.hosts, "--rate", self.rate, "--run", record, "--log-level", "error"]
        return execute([*lab, "--", *command])


@dataclasses.dataclass(frozen=True)
class Loopback:
    """Processes of this machine, as mpirun connects them by itself."""
    hosts: int
    name = "loopback"

    def run(self, command):
        return execute(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", self.hosts, *command])


@dataclasses.dataclass(frozen=True)
class Replay:
    """A profile with its scales, for so many iterations."""
    profile: Path
    time_scale: float
    param_scale: float
    iterations: int

    def sluice(self, preset):
        return ["sluice", "train", "--preset", preset, "--model", f"replay:{self.profile}", "--iterations", self.iterations,
                *self.scales(), "--json", "--log-level", "error"]

    def ddp(self):
        return [BENCH / "peers/ddp_gloo.py", *self.words()]

    def words(self):
        """As the peers take them."""
        return [self.profile, self.time_scale, self.param_scale, self.iterations]

    def scales(self):
        return ["--time-scale", self.time_scale, "--param-scale", self.param_scale]


def iteration_ms(text):
    """Sluice and the peers alike print JSON with the mean time of an iteration, the first half of the run left out."""
    return json.loads(text)["iteration_us"] / 1000


def simulate(build, preset, replay, cluster):
    """The summary of `sluice simulate`."""
    return json.loads(execute([build / "sluice", "simulate", "--preset", preset, "--profile", replay.profile, "--cluster", cluster,
                               *replay.scales(), "--json", "--log-level", "error"]))
