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
KVSTORE_SPLIT = 1_000_000  # parameters from which on MXNet splits a layer
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
        # Behind a rule, mpirun says at length that something went wrong.
        said = done.stderr.split("-----")[0].strip() or done.stderr.strip() or "without a word"
        raise Failure(f"ended with code {done.returncode}: {said}")
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

    def summary(self, command):
        """Of a replay. Sluice and the peers alike print JSON with `iteration_us`: the mean, the first half of the run left out."""
        return json.loads(self.run(command))


@dataclasses.dataclass(frozen=True)
class Loopback:
    """Processes of this machine, as mpirun binds and connects them by itself."""
    hosts: int
    name = "loopback"

    def run(self, command):
        return execute(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", self.hosts, *command])


@dataclasses.dataclass(frozen=True)
class Replay:
    """A profile with its scales, for so many iterations; `settings` are further ones, for Sluice alone."""
    profile: Path
    time_scale: float
    param_scale: float
    iterations: int
    settings: tuple = ()

    def sluice(self, preset):
        return ["sluice", "train", "--model", f"replay:{self.profile}", "--iterations", self.iterations, *self._settings(preset)]

    def ddp(self):
        return [BENCH / "peers/ddp_gloo.py", *self.words()]

    def words(self):
        """As the peers take them."""
        return [self.profile, self.time_scale, self.param_scale, self.iterations]

    def simulate(self, build, preset, cluster):
        """The summary of the same in virtual time."""
        return json.loads(execute([build / "sluice", "simulate", "--profile", self.profile, "--cluster", cluster, *self._settings(preset)]))

    def _settings(self, preset):
        # The same layers are to be split as those of the whole model.
        split = max(1, round(KVSTORE_SPLIT * self.param_scale))
        return ["--preset", preset, "--time-scale", self.time_scale, "--param-scale", self.param_scale, "--kvstore-split", split,
                *self.settings, "--json", "--log-level", "error"]
