"""The parts of an experiment: parameters, a run, and exhibits with claims that the run decides.

To add one, write a file in this folder, named after what it reproduces, with

1. a frozen dataclass of parameters, whose defaults are those of the paper;
2. `run(parameters, seed, progress)`, which returns one `Exhibit` per table or figure. All chance
   comes from `seed`, so that the same seed yields the same numbers. Columns of times are listed in
   `DataTable.timed`, and claims about times are `timed`: they are the only parts that may differ;
3. `EXPERIMENT = Experiment(...)`, with the parameters for a laptop and for tests;

and add `EXPERIMENT` to `registry.py`. The command line, the report and the contract tests find it
there. `rps_table_2.py` is a short example.

A claim is one sentence of the paper, or follows from one, that is true or false of the measured
numbers: `holds` is computed from them. Claims are about shapes, orders and ratios, and leave room
for noise where they are about times. `reason` explains a claim that does not hold, as far as it is
understood; the report shows it only then.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, Literal, TypeVar

Cell = str | int | float | None
Paper = Literal["RPS", "PREF", "TKS"]
Size = Literal["laptop", "full", "quick"]
Progress = Callable[[int, int, str], None]
"""Reports how many steps of how many are done, and what comes next."""

TITLES: Final[dict[Paper, str]] = {
    "RPS": "Scalable Ranked Publish/Subscribe (VLDB 2008)",
    "PREF": "Preference-Aware Publish/Subscribe Delivery with Diversity (DEBS 2009)",
    "TKS": "Top-k matching over data streams (thesis, 2015)",
}


@dataclass(frozen=True)
class Claim:
    """A sentence that must hold, what the paper reports, what was measured, and whether it holds.

    A claim about times is `timed`: another run measures others.
    """

    text: str
    paper: str
    ours: str
    holds: bool
    reason: str = ""
    timed: bool = False


@dataclass(frozen=True)
class DataTable:
    """The numbers behind an exhibit; `timed` names the columns of measured times."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    timed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.rows} - {len(self.columns)}
        if lengths or not set(self.timed) <= set(self.columns):
            raise ValueError(f"rows of {lengths} cells, or timed columns that {self.columns} lack")

    def reproducible(self) -> list[tuple[Cell, ...]]:
        """Return the rows without measured times: the same seed yields the same."""
        places = [place for place, name in enumerate(self.columns) if name not in self.timed]
        return [tuple(row[place] for place in places) for row in self.rows]


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of a paper, reproduced; `picture` is SVG in the form of the paper."""

    paper: Paper
    number: str
    title: str
    table: DataTable
    claims: tuple[Claim, ...]
    picture: str = ""
    note: str = ""

    @property
    def slug(self) -> str:
        """The name on the command line and of its files, such as rps-figure-6."""
        return slug_of(self.paper, self.number)

    @property
    def holds(self) -> bool:
        """Whether all claims hold."""
        return all(claim.holds for claim in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """Return the exhibit as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> "Exhibit":
        """Return the exhibit of a form that `to_dict` returned, also after JSON."""
        table = form["table"]
        rows = tuple(tuple(row) for row in table["rows"])
        numbers = DataTable(tuple(table["columns"]), rows, tuple(table["timed"]))
        claims = tuple(Claim(**claim) for claim in form["claims"])
        return cls(**{**form, "table": numbers, "claims": claims})


P = TypeVar("P")


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """A run that reproduces one or more tables and figures of a paper.

    `paper_parameters` are those of the paper and are used for `--full`, unless `full` differs:
    where the paper's size is out of reach. `quick` is for tests and takes a second or two; claims
    need not hold at that size.
    """

    name: str
    paper: Paper
    numbers: tuple[str, ...]
    run: Callable[[P, int, Progress], Sequence[Exhibit]]
    paper_parameters: P
    laptop: P
    quick: P
    full: P | None = None

    @property
    def slugs(self) -> tuple[str, ...]:
        """The names of its exhibits."""
        return tuple(slug_of(self.paper, number) for number in self.numbers)

    def parameters(self, size: Size) -> P:
        """Return the parameters of a run of this size."""
        if size == "full":
            return self.full or self.paper_parameters
        return self.laptop if size == "laptop" else self.quick


def slug_of(paper: str, number: str) -> str:
    """Return a name for the command line and for files.

    >>> slug_of("RPS", "Figure 6")
    'rps-figure-6'
    """
    return f"{paper}-{number}".lower().replace(" ", "-")


def display(value: Cell) -> str:
    """Return a cell as text: integers with separators, other numbers with three or four digits.

    >>> display(1234567), display(0.45678), display(1234.5), display(None), display("ir")
    ('1,234,567', '0.4568', '1,234', '-', 'ir')
    """
    if value is None:
        return "-"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def span(values: Sequence[float], digits: int = 1) -> str:
    """Return the smallest and the largest value as text, or one if both read the same."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"
