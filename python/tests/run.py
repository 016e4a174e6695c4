"""Runs a test program of this folder as several processes: run.py MPIRUN PROCESSES PROGRAM ARGUMENTS

The program may also be an example, by its path, or a diff: the script beside it is run with its changes. For failing.py it checks that all processes end within 10 s of the failure, with a code and what that process said.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

FOLDER = pathlib.Path(__file__).resolve().parent
LAUNCH = FOLDER.parents[1] / "tests" / "support" / "launch.sh"
# Settings of Open MPI, for versions up to 4 and from 5 on; other MPIs ignore them.
SETTINGS: Dict[str, str] = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl": "self,vader,tcp",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
ENDS_WITHIN_S = 10
MESSAGES: Dict[str, List[str]] = {
    "exception": ["Traceback", "failing.py", "ArithmeticError: the exception of rank 1"],
    "exit-0": ["has ended its training after 5 steps"],
    "exit-3": [],
}


def run(mpirun: str, processes: str, program: List[str]) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, str(FOLDER / program[0]), *program[1:]]
    command = ["sh", str(LAUNCH), mpirun, "-np", processes, *program]
    return subprocess.run(
        command, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=300
    )


def main() -> int:
    mpirun, processes, *program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if program[0].endswith(".diff"):
            program[0] = patched(pathlib.Path(program[0]), pathlib.Path(folder))
        return verdict_on(mpirun, processes, program)


def patched(diff: pathlib.Path, folder: pathlib.Path) -> str:
    script = diff.with_suffix(".py")
    result = folder / script.name
    subprocess.run(["patch", "--quiet", "-o", str(result), str(script), str(diff)], check=True)
    return str(result)


def verdict_on(mpirun: str, processes: str, program: List[str]) -> int:
    begin = time.time()
    outcome = run(mpirun, processes, program)
    end = time.time()
    print(outcome.stdout, outcome.stderr, f"{end - begin:.1f} s, code {outcome.returncode}")
    if program[0] != "failing.py":
        return outcome.returncode
    failed = re.search(r"fails at ([\d.]+)", outcome.stderr)
    lasted = end - float(failed.group(1)) if failed else float("inf")
    print(f"ended {lasted:.1f} s after the failure")
    found = all(message in outcome.stderr for message in MESSAGES[program[1]])
    return 0 if outcome.returncode != 0 and found and lasted < ENDS_WITHIN_S else 1


sys.exit(main())
