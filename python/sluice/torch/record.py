"""What a run leaves behind: its folder and its trace, as of `sluice train`."""

import os
import pathlib
import sys
from typing import NamedTuple, Optional, Union

Path = Union[str, "os.PathLike[str]"]


class Record(NamedTuple):
    """What to keep of a run; nothing if both paths are empty."""

    run: str = ""
    trace: str = ""
    batch: int = 0

    def part(self, number: int) -> "Record":
        """That of an exchange which replaces earlier ones: the first has number 1."""
        if number == 1:
            return self
        return Record(_numbered(self.run, number), _numbered(self.trace, number), self.batch)


def record_of(run: Optional[Path], trace: Optional[Path], batch: int) -> Record:
    """Checks the arguments of DistributedOptimizer."""
    if batch < 0:
        raise ValueError("batch must not be negative")
    return Record(os.fspath(run or ""), os.fspath(trace or ""), batch)


def program_name() -> str:
    """What the record calls the model."""
    return pathlib.Path(sys.argv[0]).stem or "python"


def _numbered(path: str, number: int) -> str:
    if path in ("", "auto"):
        return path
    root, ending = os.path.splitext(path)
    return f"{root}-{number}{ending}"
