"""Finished runs: what an experiment found, in a file with everything that it depends on."""

import inspect
import json
import re
import sys
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tidings import __version__
from tidings.lab.papers.experiment import Exhibit, Experiment, Size

_IMPORTED: Final = re.compile(r"^from (tidings\.lab[\w.]*) import", re.MULTILINE)
RUNS: Final = "runs"
"""The folder of finished runs, within the output folder."""


@dataclass(frozen=True)
class FinishedRun:
    """The findings of an experiment, and everything that its numbers depend on.

    `stamp` is a digest of its source: after a change of the experiment it is run again. `cpu_s` is
    processor time, which other load hardly changes, and `wall_s` what a clock showed.
    """

    experiment: str
    size: Size
    seed: int
    parameters: dict[str, Any]
    paper_parameters: dict[str, Any]
    stamp: str
    cpu_s: float
    wall_s: float
    exhibits: tuple[Exhibit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> "FinishedRun":
        """Return the run of a form that `to_dict` returned, also after JSON."""
        exhibits = tuple(Exhibit.from_dict(exhibit) for exhibit in form["exhibits"])
        return cls(**{**form, "exhibits": exhibits})

    def is_of(self, other: "FinishedRun") -> bool:
        """Return whether both runs were asked for in the same way, of the same source."""
        names = ("experiment", "size", "seed", "parameters", "stamp")
        return all(getattr(self, name) == getattr(other, name) for name in names)


def described_run(experiment: Experiment[Any], size: Size, seed: int) -> FinishedRun:
    """Return a run without results: its parameters, and the stamp of its present source."""
    # Through JSON, so that a run in memory equals the same run in a file.
    sizes = (experiment.parameters(size), experiment.paper_parameters)
    parameters, paper = (json.loads(json.dumps(asdict(form))) for form in sizes)
    stamp = _stamp(experiment)
    return FinishedRun(experiment.name, size, seed, parameters, paper, stamp, 0.0, 0.0, ())


def _stamp(experiment: Experiment[Any]) -> str:
    """Return a digest of the module of an experiment and of what it imports from the lab."""
    digest = sha256(__version__.encode())
    pending, modules = [experiment.run.__module__], set[str]()
    while pending:
        name = pending.pop()
        if name not in modules:
            modules.add(name)
            pending += _IMPORTED.findall(_source(name))
    for name in sorted(modules):
        digest.update(_source(name).encode())
    return digest.hexdigest()[:16]


def _source(module: str) -> str:
    return Path(inspect.getfile(sys.modules[module])).read_text(encoding="utf-8")


def read_run(
    experiment: Experiment[Any], folder: Path, size: Size, seed: int
) -> FinishedRun | None:
    """Return a run that finished before, with the same parameters, seed and source."""
    try:
        text = _run_path(folder, experiment.name).read_text(encoding="utf-8")
        run = FinishedRun.from_dict(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # missing, damaged, or of another version: it is run again
    return run if run.is_of(described_run(experiment, size, seed)) else None


def write_run(run: FinishedRun, folder: Path) -> None:
    """Write a run to its file, all at once."""
    path = _run_path(folder, run.experiment)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(run.to_dict(), indent=1), encoding="utf-8")
    temporary.replace(path)


def _run_path(folder: Path, name: str) -> Path:
    return folder / RUNS / f"{name}.json"
