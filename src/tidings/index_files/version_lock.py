"""Versions that a process needs for as long as it lives: a batch job has no batch to pin them to.

A hold is a file that its process has locked. The system lets go of a lock when the process ends,
however it ends, so a hold never outlives it.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

_HOLDS: Final = "holds"
_NEW: Final = ".new-"
_HOLD: Final = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")


@cache
def hold(folder: Path, version: int) -> int:
    """Keep a version of a folder until this process ends; give the open file that does it."""
    holds = folder / _HOLDS
    holds.mkdir(parents=True, exist_ok=True)
    name = f"{version}-{uuid4().hex}"
    made = holds / f"{_NEW}{name}"
    file = os.open(made, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    fcntl.flock(file, fcntl.LOCK_SH)
    made.rename(holds / name)  # locked before anybody can find it
    return file


def held(folder: Path) -> Iterator[int]:
    """Give the versions that processes hold, and remove what those that are gone have left."""
    for path in (folder / _HOLDS).glob("[0-9]*-*"):
        found = _HOLD.fullmatch(path.name)
        if found is None or path.is_dir():  # not ours
            continue
        if _locked(path):
            yield int(found[1])
        else:
            path.unlink(missing_ok=True)


def _locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
