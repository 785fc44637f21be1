"""Output of `check`, `match` and `explain`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tidings.app.check import Problem, location
from tidings.app.check.review import Review
from tidings.app.output.console import make_table, plural
from tidings.engine.explain import Explanation, Placement


def print_problems(console: Console, problems: Iterable[Problem]) -> None:
    """Print the location and reason of each problem, unwrapped so that carets stay aligned."""
    for problem in problems:
        console.print(Text(location(problem.path, problem.line), "bold red"), soft_wrap=True)
        for line in problem.reason.splitlines():
            style = "dim" if line.startswith("possible:") else ""
            console.print(Text(f"  {line}", style), soft_wrap=True)
        console.print()


def print_review(console: Console, review: Review) -> None:
    """Print all problems, a table of the files, and the totals."""
    print_problems(console, review.problems)
    problems = Counter(problem.path for problem in review.problems)
    table = make_table("File", "Holds", "Records>", "Problems>")
    for file in review.checked:
        has_records = file.kind in ("events", "subscriptions", "subscribers")
        number = str(file.records) if has_records else ""
        style = "red" if problems[file.path] else "green"
        table.add_row(str(file.path), file.kind, number, Text(str(problems[file.path]), style))
    console.print(table)
    records = sum(file.records for file in review.checked)
    verdict, style = plural(len(review.problems), "problem"), "bold red"
    if not review.problems:
        verdict, style = "no problems", "bold green"
    files = plural(len(review.checked), "file")
    console.print(Text(f"{files}, {plural(records, 'record')}: ").append(verdict, style))


def print_matches(console: Console, direction: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print the subscribers (feed) or the best subscriptions (target) of each event."""
    if direction == "feed":
        table = make_table("Event", "Subscriber", "Score>", "Matched by")
    else:
        table = make_table("Event", "Place>", "Subscription", "Subscriber", "Score>")
    previous = None
    for row in rows:
        event = row["event"] if row["event"] != previous else ""
        previous = row["event"]
        score = f"{row['score']:.4g}"
        if direction == "feed":
            table.add_row(event, row["subscriber"], score, ", ".join(row["matched"]))
        else:
            names = (row["subscription"], row["subscriber"])
            table.add_row(event, str(row["position"]), *names, score)
    if rows:
        console.print(table)
    console.print(Text(plural(len(rows), "match") if rows else "no matches", "bold"))


def print_explanation(console: Console, explanation: Placement | Explanation) -> None:
    """Print the verdict, then the predicates that held and failed."""
    verdict, *reasons = str(explanation).splitlines()
    console.print(Text(verdict, "bold"), soft_wrap=True)
    for reason in reasons:
        console.print(Text(reason), soft_wrap=True)
