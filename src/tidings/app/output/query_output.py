"""What `check`, `match` and `explain` print."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tidings.app.check import Problem, place
from tidings.app.check.review import Review
from tidings.app.output.console import columns, plural
from tidings.engine.explain import Explanation, Placement


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
    table = columns("File", "Holds", "Records>", "Problems>")
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
        table = columns("Event", "Subscriber", "Score>", "Matched by")
    else:
        table = columns("Event", "Place>", "Subscription", "Subscriber", "Score>")
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
