"""Runs programs in the lab or directly on this machine, and reads their output. Shared by the scripts of this folder."""
import dataclasses
import json
import subprocess
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
# Open MPI's ring, where its default would be another algorithm.
RING = ["env", "OMPI_MCA_coll_tuned_use_dynamic_rules=1", "OMPI_MCA_coll_tuned_allreduce_algorithm=4"]
KVSTORE_SPLIT = 1_000_000  # MXNet splits layers with at least this many parameters
LONGEST_S = 1800


class Failure(Exception):
    """A program could not be run, or failed; contains its error output."""


def execute(words):
    """The output of the program. It runs in a temporary folder."""
    words = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(words, cwd=folder, text=True, capture_output=True, timeout=LONGEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        # After a rule, mpirun adds a long generic message.
        said = done.stderr.split("-----")[0].strip() or done.stderr.strip() or "without a message"
        raise Failure(f"ended with code {done.returncode}: {said}")
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Lab:
    """Hosts with rate-limited links, one process on each."""
    build: Path
    hosts: int
    rate: str

    @property
    def name(self):
        return self.rate

    def run(self, command, record="lab"):
        """`record` is the folder for the traffic of the links; by default it is removed."""
        lab = [self.build / "sluice", "lab", "--hosts", self.hosts, "--rate", self.rate, "--run", record, "--log-level", "error"]
        return execute([*lab, "--", *command])

    def summary(self, command):
        """The JSON that a replay prints. Sluice and its peers have `iteration_us` in it: the mean without the first half of the run."""
        return json.loads(self.run(command))


@dataclasses.dataclass(frozen=True)
class Loopback:
    """Processes of this machine, as mpirun binds and connects them by default."""
    hosts: int
    name = "loopback"

    def run(self, command):
        return execute(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", self.hosts, *command])


@dataclasses.dataclass(frozen=True)
class Replay:
    """A profile with its scales and a number of iterations; `settings` are further settings for Sluice only."""
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
        """The arguments of the peers."""
        return [self.profile, self.time_scale, self.param_scale, self.iterations]

    def simulate(self, build, preset, cluster):
        """The summary of the same run in virtual time."""
        return json.loads(execute([build / "sluice", "simulate", "--profile", self.profile, "--cluster", cluster, *self._settings(preset)]))

    def _settings(self, preset):
        # The same layers must be split as in the unscaled model.
        split = max(1, round(KVSTORE_SPLIT * self.param_scale))
        # With as many workers as the other presets; by default one host of ps-sync has its server.
        sharded = ["--servers", 0] if preset == "ps-sync" else []
        return ["--preset", preset, *sharded, "--time-scale", self.time_scale, "--param-scale", self.param_scale, "--kvstore-split", split,
                *self.settings, "--json", "--log-level", "error"]
