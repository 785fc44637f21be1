"""What the commands print: tables and plain words for people; colours on a terminal only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidings.audit import Problem, place
from tidings.audit.review import Review
from tidings.explain import Explanation, Placement
from tidings.run.account import Account, Batch
from tidings.run.plan import Plan

_PIPE: Final = 1000


def screen(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Give a console as wide as the terminal; into a file or a pipe, rows stay whole."""
    console = Console(stderr=stderr, quiet=quiet)
    return console if console.is_terminal else Console(stderr=stderr, quiet=quiet, width=_PIPE)


def plural(number: int, noun: str) -> str:
    """Give a number with its noun.

    >>> plural(1, "event"), plural(30, "delivery"), plural(1200, "match")
    ('1 event', '30 deliveries', '1,200 matches')
    """
    if number == 1:
        return f"1 {noun}"
    ending = "ies" if noun.endswith("y") else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun.removesuffix('y') if noun.endswith('y') else noun}{ending}"


def show_problems(console: Console, problems: Iterable[Problem]) -> None:
    """Print where each problem is and what it is; lines stay whole, so that carets point right."""
    for problem in problems:
        console.print(Text(place(problem.path, problem.line), "bold red"), soft_wrap=True)
        for line in problem.reason.splitlines():
            style = "dim" if line.startswith("possible:") else ""
            console.print(Text(f"  {line}", style), soft_wrap=True)
        console.print()


def show_review(console: Console, review: Review) -> None:
    """Print all problems, a table of the files, and a count."""
    show_problems(console, review.problems)
    bad = Counter(problem.path for problem in review.problems)
    table = _table("File", "Holds", "Records>", "Problems>")
    for file in review.checked:
        number = (
            str(file.records) if file.kind in ("events", "subscriptions", "subscribers") else ""
        )
        problems = Text(str(bad[file.path]), "red" if bad[file.path] else "green")
        table.add_row(str(file.path), file.kind, number, problems)
    console.print(table)
    records = sum(file.records for file in review.checked)
    found, style = plural(len(review.problems), "problem"), "bold red"
    if not review.problems:
        found, style = "no problems", "bold green"
    files = plural(len(review.checked), "file")
    console.print(Text(f"{files}, {plural(records, 'record')}: ").append(found, style))


def show_matches(console: Console, direction: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print who matches each event (feed), or the best subscriptions of each (target)."""
    if direction == "feed":
        table = _table("Event", "Subscriber", "Score>", "Matched by")
    else:
        table = _table("Event", "Place>", "Subscription", "Subscriber", "Score>")
    before = None
    for row in rows:
        event = row["event"] if row["event"] != before else ""
        before = row["event"]
        score = f"{row['score']:.4g}"
        if direction == "feed":
            table.add_row(event, row["subscriber"], score, ", ".join(row["matched"]))
        else:
            names = (row["subscription"], row["subscriber"])
            table.add_row(event, str(row["position"]), *names, score)
    if rows:
        console.print(table)
    console.print(Text(plural(len(rows), "match") if rows else "no matches", "bold"))


def show_explanation(console: Console, found: Placement | Explanation) -> None:
    """Print the verdict, and below it what held and what failed."""
    verdict, *reasons = str(found).splitlines()
    console.print(Text(verdict, "bold"), soft_wrap=True)
    for reason in reasons:
        console.print(Text(reason), soft_wrap=True)


def show_plan(console: Console, plan: Plan) -> None:
    """Print what a run is about to do."""
    engine = "on Spark" if plan.config.engine == "spark" else "in one process"
    people = plural(len(plan.subscribers), "subscriber")
    wishes = plural(len(plan.subscriptions), "subscription")
    files = plural(len(plan.config.source.files()), "file")
    line = Text(str(plan.config.path), "bold").append(f" {engine}", "not bold")
    console.print(
        line.append(f": {people}, {wishes}, {files} of events", "not bold"), soft_wrap=True
    )
    file = plan.config.source.older_than_before()
    if plan.config.engine == "spark" and file is not None:
        words = f"note: Spark takes the oldest file first, and {file} is older than its predecessor"
        console.print(Text(words, "yellow"), soft_wrap=True)


def waiting(console: Console, plan: Plan) -> AbstractContextManager[object]:
    """Show on a terminal that Spark is at work, which takes seconds before anything is done."""
    spark = plan.config.engine == "spark"
    return console.status("Spark is at work; its start takes a while") if spark else nullcontext()


def show_batch(console: Console, batch: Batch) -> None:
    """Print a line on a batch that is done."""
    line = f"  batch {batch.number:<4} {plural(batch.events, 'event'):>14}"
    line += f"   {plural(batch.deliveries, 'delivery'):>16}"
    line += f"   {batch.late:,} late" if batch.late else ""
    line += f"   {plural(batch.dead, 'dead letter')}" if batch.dead else ""
    console.print(Text(line, "dim"), soft_wrap=True)


def show_account(console: Console, account: Account) -> None:
    """Print what a run did, and where it is written."""
    if account.delivered:
        table = _table("Subscriber", "Deliveries>")
        for name, number in account.delivered.items():
            table.add_row(name, f"{number:,}")
        console.print(table)
    if not account.batches:
        console.print("No file is new since the last run; --fresh starts anew.")
    facts = [
        plural(account.events, "event"),
        plural(sum(account.delivered.values()), "delivery"),
        f"{account.late:,} late",
        plural(account.dead, "dead letter"),
        f"{account.seconds:.1f} s",
    ]
    console.print(Text(", ".join(facts), "bold"))
    sink = account.plan.config.sink
    if account.plan.refused:
        words = f"{plural(len(account.plan.refused), 'record')} refused: {sink.path}/refused.jsonl"
        console.print(Text(words, "red"), soft_wrap=True)
    where = sink.path / "deliveries"
    how = f"cat {where}/*.jsonl" if sink.format == "jsonl" else f'pandas.read_parquet("{where}")'
    console.print(Text(f"Written to {sink.path}. Read it with: {how}"), soft_wrap=True)


def _table(*names: str) -> Table:
    """Make a table; a name that ends with > is that of a column of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in names:
        right = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if right else "left", overflow="fold")
    return table
