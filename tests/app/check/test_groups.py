"""Problems of the same kind, by file and reason."""

from pathlib import Path

from tidings.app.check import Problem
from tidings.app.check.groups import group_problems

ONE, OTHER = Path("a.jsonl"), Path("b.jsonl")


def sizes(*problems: Problem) -> list[int]:
    return [len(group.problems) for group in group_problems(problems)]


def test_reasons_that_differ_in_ids_values_and_numbers_are_one_kind() -> None:
    reason = "subscription {}: subscriber {} is not in people.jsonl"
    same = [Problem(ONE, reason.format(f"s{n}", "'ann'"), n, f"s{n}") for n in range(1, 5)]
    assert sizes(*same) == [4]
    times = [Problem(ONE, f"'{n}x' is above the limit of {n},000", n) for n in range(3)]
    assert sizes(*same, *times) == [4, 3]


def test_other_files_and_other_reasons_are_other_kinds() -> None:
    problems = [
        Problem(ONE, "no id", 1),
        Problem(OTHER, "no id", 1),
        Problem(ONE, "no time", 2),
        Problem(ONE, "no id\nat all", 3),
    ]
    assert sizes(*problems) == [2, 1, 1]


def test_the_first_problem_stands_for_its_kind() -> None:
    (group,) = group_problems([Problem(ONE, "no id", 1), Problem(ONE, "no id", 2)])
    assert group.to_dict() == {**Problem(ONE, "no id", 1).to_dict(), "count": 2}
