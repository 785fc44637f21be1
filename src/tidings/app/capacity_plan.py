"""`tidings plan`: calibrate, plan and print."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from tidings.app.output.console import make_table, open_console, plural
from tidings.app.terminal import json_line
from tidings.errors import InvalidForm, prefix_errors, shown
from tidings.formats.json_text import read_json
from tidings.lab.capacity.calibrate import CASES, Case, Progress, calibrate
from tidings.lab.capacity.model import (
    Calibration,
    CapacityPlan,
    Costs,
    Demand,
    make_plan,
    read_calibration,
)
from tidings.model import validate
from tidings.policy import Policy

_QUANTITY: Final = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kMG]?)(?:/s)?")
_FACTORS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_GB: Final = 10**9
_CALIBRATION_BYTES: Final = 1_000_000


def read_quantity(text: str) -> float:
    """Return a number such as 5k/s or 100M.

    >>> read_quantity("100M"), read_quantity("1.5k/s"), read_quantity("20")
    (100000000.0, 1500.0, 20.0)
    """
    quantity = _QUANTITY.fullmatch(text.strip().replace(",", ""))
    if quantity is None:
        raise InvalidForm(f"a quantity is a number such as 20, 5k, 100M or 2G, not {shown(text)}")
    return float(quantity[1]) * _FACTORS[quantity[2]]


def plan_capacity(
    demand: Demand,
    calibration: Path | None,
    *,
    cases: Sequence[Case] = CASES,
    as_json: bool = False,
) -> None:
    """Print the plan for a demand, with costs from a file, or measured now and written to it."""
    measured = _calibration(demand.policy, calibration, cases)
    plan, costs = make_plan(measured, demand), measured.costs
    console = open_console()
    if as_json:
        form = {"plan": plan.to_dict(), "costs": costs.to_dict()}
        console.out(json_line(form), highlight=False)
    else:
        _print(console, demand, plan, costs)


def _calibration(policy: Policy, file: Path | None, cases: Sequence[Case]) -> Calibration:
    if file is not None and file.exists():
        with prefix_errors(f"{file}: ", raised=InvalidForm):
            try:
                return read_calibration(read_json(validate.file_bytes(file, _CALIBRATION_BYTES)))
            except (OSError, ValueError, RecursionError) as error:
                raise InvalidForm(f"the calibration cannot be read: {error}") from None
    with _progress(open_console(stderr=True)) as show:
        calibration, _ = calibrate(policy, cases, show)
    if file is not None:
        file.write_text(json_line(calibration.to_dict()) + "\n", encoding="utf-8")
    return calibration


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """Yield a function that shows how many runs of the calibration are finished."""
    with console.status("Calibrating") as status:
        yield lambda done, total: status.update(f"Calibrating: {done} of {plural(total, 'run')}")


def _print(console: Console, demand: Demand, plan: CapacityPlan, costs: Costs) -> None:
    table = make_table("what it takes", "planned>", "because")
    for row in _rows(demand, plan, costs):
        table.add_row(*row)
    console.print(table)
    most, reason = plan.breaks_first
    console.print(
        f"At {most:,.0f} events/s these cores are busy all the time. Most of it goes to {reason}.",
        markup=False,
        highlight=False,
    )


def _cores(plan: CapacityPlan) -> str:
    """Return the cores, and between which numbers the calibration leaves them open."""
    if plan.fewest_cores == plan.most_cores:
        return f"{plan.cores:,}"
    return f"{plan.cores:,} ({plan.fewest_cores:,} to {plan.most_cores:,})"


def _rows(demand: Demand, plan: CapacityPlan, costs: Costs) -> list[tuple[str, str, str]]:
    return [
        (
            "cores",
            _cores(plan),
            (
                f"a trigger of {demand.trigger_s:g} s takes {plan.trigger_s:,.1f} s of processor "
                "time, and cores are to be busy for 70 % of theirs"
            ),
        ),
        (
            "memory",
            f"{plan.memory_bytes / _GB:,.1f} GB",
            (
                f"index {plan.index_bytes / _GB:,.1f} GB, state {plan.state_bytes / _GB:,.1f} GB "
                "twice, and 1 GiB per core"
            ),
        ),
        (
            "disk",
            f"{plan.disk_bytes / _GB:,.1f} GB",
            "two versions of the index, three of the state",
        ),
        ("parts", f"{plan.parts:,}", "at most 8 GiB of index each"),
        ("buckets", f"{plan.buckets:,}", "at most 5,000 subscribers each, two per core"),
        (
            "first index",
            f"{plan.build_s / 60:,.0f} min",
            f"{costs.build_us:,.0f} us per subscription on one core; parts are built side by side",
        ),
        (
            "fixed share",
            f"{plan.fixed_share:.0%}",
            (
                "of a trigger: Spark, and reading and writing the state; beside it "
                f"{costs.event_us:,.1f} us per event, {costs.bucket_us:,.1f} us for each bucket "
                f"that it reaches, and {costs.match_us:,.1f} us per match at 100,000 "
                f"subscriptions, {costs.growth_us:,.1f} more each time they double"
            ),
        ),
    ]
