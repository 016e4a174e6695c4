"""pip installs the whole package, with a module that is built already: installing.py MODULE"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
USE = """
import importlib.metadata, sluice.torch as sluice
sluice.init()
print(sluice.__file__, importlib.metadata.version("sluice"), sluice.rank(), sluice.size())
"""


def files_of(package: pathlib.Path) -> set:
    return {str(file.relative_to(package)) for file in package.rglob("*.py")} | {"py.typed"}


def main() -> None:
    missing = [name for name in ("pip", "setuptools") if importlib.util.find_spec(name) is None]
    if missing:
        return print(f"skipped: {missing} missing")
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "source", pathlib.Path(folder) / "target"
        shutil.copytree(ROOT / "python" / "sluice", source / "python" / "sluice")
        shutil.copy(ROOT / "setup.py", source)
        pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps"]
        subprocess.run(
            [*pip, "--target", str(target), "."],
            cwd=source,
            env={**os.environ, "SLUICE_MODULE": sys.argv[1]},
            check=True,
        )
        lacking = files_of(ROOT / "python" / "sluice") - files_of(target / "sluice")
        assert not lacking, f"not installed: {lacking}"
        used = subprocess.run(
            [sys.executable, "-c", USE],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(target)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    print(used)
    place, version, rank, size = used.split()
    assert place.startswith(str(target)) and version and (rank, size) == ("0", "1"), used


main()
