"""The words that the HTML and the Markdown form of the report share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidings.lab.papers.experiment import Claim, Exhibit, display
from tidings.lab.papers.finished_run import FinishedRun

NO_REASON: Final = "No reason is known; this needs a closer look."
TIMED: Final = "measured time, which differs from run to run"
SIZES: Final = {
    "laptop": "the sizes for a laptop",
    "full": "full sizes",
    "quick": "tiny sizes, at which claims need not hold",
}
ABOUT: Final = (
    "Each exhibit has the paper's claim, the paper's figures, ours, and whether the claim holds, "
    "computed from our numbers. Times are not compared with the hardware of that day: shapes, "
    "orders and ratios are. The same seed yields the same numbers, except for measured times."
)


@dataclass(frozen=True)
class Tally:
    """How many tables and figures there are, and how many claims, of which some hold."""

    exhibits: int
    claims: int
    held: int

    @classmethod
    def of(cls, exhibits: Sequence[Exhibit]) -> "Tally":
        """Count claims."""
        claims = [claim for exhibit in exhibits for claim in exhibit.claims]
        return cls(len(exhibits), len(claims), sum(claim.holds for claim in claims))

    def __str__(self) -> str:
        failed = self.claims - self.held
        verb = "does not" if failed == 1 else "do not"
        exhibits = f"{self.exhibits} tables and figures" if self.exhibits != 1 else "1 exhibit"
        return f"{exhibits}, {self.claims} claims: {self.held} hold, {failed} {verb}"


def exhibits_of(runs: Iterable[FinishedRun]) -> list[Exhibit]:
    """Return all exhibits in order."""
    return [exhibit for run in runs for exhibit in run.exhibits]


def verdict(claim: Claim) -> str:
    """Return whether a claim holds, in words."""
    return "holds" if claim.holds else "does not hold"


def reason(claim: Claim) -> str:
    """Return why a claim does not hold, as far as it is known."""
    return claim.reason or NO_REASON


def claim_text(claim: Claim) -> str:
    """Return the sentence of a claim, with a remark if it is about times."""
    return f"{claim.text} ({TIMED})" if claim.timed else claim.text


def summary(runs: Sequence[FinishedRun]) -> str:
    """Return the first sentence of the report: counts, size, seed and duration."""
    how = f"Run with {SIZES[runs[0].size]} and seed {runs[0].seed}" if runs else "Nothing was run"
    return f"{Tally.of(exhibits_of(runs))}. {how}, in {duration(runs)}."


def duration(runs: Iterable[FinishedRun]) -> str:
    """Return how long runs took, in words."""
    times = [(run.cpu_s / 60, run.wall_s / 60) for run in runs]
    cpu, wall = (sum(seconds) for seconds in zip(*times, strict=True)) if times else (0.0, 0.0)
    return f"{cpu:.1f} minutes of processor time and {wall:.1f} minutes by the clock"


def overview_row(exhibit: Exhibit) -> tuple[str, str, str]:
    """Return the number of an exhibit, its title, and how many claims hold."""
    tally = Tally.of([exhibit])
    return f"{exhibit.paper} {exhibit.number}", exhibit.title, f"{tally.held} of {tally.claims}"


def parameters_text(run: FinishedRun) -> str:
    """Return the parameters of a run, with the paper's where these differ."""
    return "; ".join(
        f"{name} {_shown(value)}"
        + (
            ""
            if value == run.paper_parameters[name]
            else f" (paper: {_shown(run.paper_parameters[name]) or 'all'})"
        )
        for name, value in run.parameters.items()
    )


def _shown(value: Any) -> str:
    """Return a parameter as text; a list of lists has brackets, and no value means all."""
    if isinstance(value, list):
        return ", ".join(
            f"({_shown(item)})" if isinstance(item, list) else _shown(item) for item in value
        )
    if isinstance(value, dict):
        known = ((key, item) for key, item in value.items() if item is not None)
        return ", ".join(f"{key}: {_shown(item)}" for key, item in known)
    return str(value) if isinstance(value, bool) else display(value)
