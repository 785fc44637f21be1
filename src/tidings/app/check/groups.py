"""Groups of similar problems, so that a thousand records with one fault are reported once."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidings.app.check.audit import Problem

_VALUES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9][\w.,:+\-]*")


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of one file whose reasons differ in values only."""

    path: Path
    problems: list[Problem]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the first problem stands for all."""
        return {**self.problems[0].to_dict(), "count": len(self.problems)}


def group_problems(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Return problems by file and kind of reason, in order of the first of each kind."""
    groups: dict[tuple[Path, str], ProblemGroup] = {}
    for problem in problems:
        key = problem.path, _kind(problem)
        groups.setdefault(key, ProblemGroup(problem.path, [])).problems.append(problem)
    return list(groups.values())


def _kind(problem: Problem) -> str:
    """Return the first line of a reason without the id of the record, values and numbers."""
    line = problem.reason.partition("\n")[0]
    if problem.id:
        line = re.sub(rf"(?<!\w){re.escape(problem.id)}(?!\w)", "", line)
    return _VALUES.sub("", line)
