"""Output of `check`, `match` and `explain`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from tidings.app.check import Problem, location
from tidings.app.check.audit import group_problems
from tidings.app.check.review import PolicyUse, Review
from tidings.app.output.console import make_table, plural
from tidings.engine.explain import Explanation, Placement
from tidings.model.diagnosis import Diagnosis

_MOST_OF_A_KIND: Final = 3
_MOST_KINDS: Final = 40
_MOST_LINES: Final = 8
_MOST_POLICIES: Final = 20


def print_problems(console: Console, problems: Iterable[Problem]) -> None:
    """Print the first problems of each kind, and how many more there are."""
    groups = group_problems(problems)
    for group in groups[:_MOST_KINDS]:
        for problem in group.problems[:_MOST_OF_A_KIND]:
            _print_problem(console, problem)
        if unprinted := group.problems[_MOST_OF_A_KIND:]:
            console.print(Text(_others(group.path, unprinted), "bold red"), soft_wrap=True)
            console.print()
    if rest := groups[_MOST_KINDS:]:
        number = plural(sum(len(group.problems) for group in rest), "problem")
        line = f"and {number} of {plural(len(rest), 'other kind')}; --json lists them all"
        console.print(Text(line, "bold red"), soft_wrap=True)


def _print_problem(console: Console, problem: Problem) -> None:
    """Print the location and reason of a problem, unwrapped so that carets stay aligned."""
    console.print(Text(location(problem.path, problem.line), "bold red"), soft_wrap=True)
    for line in problem.reason.splitlines():
        style = "dim" if line.startswith("possible:") else ""
        console.print(Text(f"  {line}", style), soft_wrap=True)
    console.print()


def _others(path: Path, problems: Sequence[Problem]) -> str:
    """Return a line on the problems of a kind that are not printed."""
    lines = [str(problem.line) for problem in problems if problem.line is not None]
    more = ", ..." if len(lines) > _MOST_LINES else ""
    where = f", at {', '.join(lines[:_MOST_LINES])}{more}" if lines else ""
    return f"{path}: {len(problems):,} more like these{where}"


def print_review(console: Console, review: Review) -> None:
    """Print all problems, a table of the files, and the totals."""
    print_problems(console, review.problems)
    problems = Counter(problem.path for problem in review.problems)
    table = make_table("File", "Holds", "Records>", "Problems>")
    for file in review.checked:
        has_records = file.kind in ("events", "subscriptions", "subscribers")
        number = f"{file.records:,}" if has_records else ""
        style = "red" if problems[file.path] else "green"
        table.add_row(str(file.path), file.kind, number, Text(str(problems[file.path]), style))
    console.print(table)
    _print_policies(console, review.policies)
    for diagnosis in review.diagnoses:
        print_diagnosis(console, diagnosis.only("value"))  # the others are problems
    records = sum(file.records for file in review.checked)
    verdict, style = plural(len(review.problems), "problem"), "bold red"
    if not review.problems:
        verdict, style = "no problems", "bold green"
    files = plural(len(review.checked), "file")
    console.print(Text(f"{files}, {plural(records, 'record')}: ").append(verdict, style))


def _print_policies(console: Console, policies: Sequence[PolicyUse]) -> None:
    """Print the first policies in words, each with its subscribers."""
    for policy in policies[:_MOST_POLICIES]:
        names, more = (
            policy.subscribers[:_MOST_OF_A_KIND],
            len(policy.subscribers) - _MOST_OF_A_KIND,
        )
        users = ", ".join(names) + (f" and {more:,} more" if more > 0 else "")
        console.print(Text(users, "bold").append(f": {policy.words}", "not bold"), soft_wrap=True)
    if len(policies) > _MOST_POLICIES:
        rest = len(policies) - _MOST_POLICIES
        console.print(Text(f"and {rest:,} more policies; --json lists them all", "dim"))


def print_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    """Print what subscriptions ask for but events do not have, if anything."""
    if diagnosis:
        console.print(Text(f"note: {diagnosis.summary}", "yellow"), soft_wrap=True)
        for line in diagnosis.lines:
            console.print(Text(f"  {line}", "yellow"), soft_wrap=True)


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
