"""Audits of records: locations, duplicate ids, orphans and preferences."""

import json
from pathlib import Path

from tidings.app.check import Problem
from tidings.app.check.audit import group_problems
from tidings.app.check.review import review

EVENT = {"id": "e1", "published_at": 0, "attributes": {"year": 3}}
ANN = {"id": "ann", "policy": {"k": 2}}
S1 = {"id": "s1", "subscriber": "ann", "where": "year > 3"}


def write(folder, **files):
    for name, forms in files.items():
        text = "".join(f"{form if isinstance(form, str) else json.dumps(form)}\n" for form in forms)
        (folder / f"{name}.jsonl").write_text(text)
    return [folder / f"{name}.jsonl" for name in files]


def problems(paths):
    return [
        (problem.path.name, problem.line, problem.id, problem.reason)
        for problem in review(paths).problems
    ]


def test_a_bad_record_is_named_by_its_line(tmp_path):
    bad = {"id": "s2", "subscriber": "ann", "where": "lower(genre) = 'drama'"}
    paths = write(tmp_path, subscriptions=["", S1, bad, "", "{"])
    (condition, invalid) = problems(paths)
    assert condition[:3] == ("subscriptions.jsonl", 3, "s2")
    assert condition[3].startswith(
        "subscription s2: `lower(genre)` is not an attribute\n"
        "  lower(genre) = 'drama'\n  ^^^^^^^^^^^^\npossible: "
    )
    assert invalid[:3] == ("subscriptions.jsonl", 5, None)
    assert invalid[3].startswith("invalid JSON: Expecting property name")


def test_rows_of_csv_are_counted_without_the_header(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("id,published_at,year\ne1,0,1\ne2,0\ne3,soon,1\ne4,0,1\ne1,0,1\n")
    assert [problem[1:3] for problem in problems([path])] == [(2, None), (3, "e3"), (5, "e1")]


def test_an_id_is_used_once(tmp_path):
    paths = write(tmp_path, a=["", EVENT], b=[EVENT], c=[S1, S1 | {"where": "year > 4"}])
    assert problems(paths) == [
        ("b.jsonl", 1, "e1", f"event e1: the id is already used in {tmp_path}/a.jsonl:2"),
        ("c.jsonl", 2, "s1", f"subscription s1: the id is already used in {tmp_path}/c.jsonl:1"),
    ]


def test_subscriptions_of_a_refused_subscriber_are_refused(tmp_path):
    subscriptions, subscribers = write(
        tmp_path,
        subscriptions=[
            S1,
            S1 | {"id": "s2", "subscriber": "bob"},
            S1 | {"id": "s3", "subscriber": "cid"},
        ],
        subscribers=[ANN, {"id": "cid", "policy": {"k": 0}}],
    )
    assert problems([subscriptions]) == []
    assert [
        problem[1:]
        for problem in problems([subscriptions, subscribers])
        if problem[0] == "subscriptions.jsonl"
    ] == [
        (3, "s3", "subscription s3: subscriber cid was refused"),
    ]


def test_preferences_are_over_own_subscriptions_and_without_a_cycle(tmp_path):
    subscriptions, subscribers = write(
        tmp_path,
        subscriptions=[S1, S1 | {"id": "s2", "subscriber": "bob"}],
        subscribers=[
            ANN | {"prefers": [["s1", "s2"], ["s1", "s9"]]},
            {"id": "bob", "prefers": []},
            {"id": "cid", "prefers": [["a", "b"], ["b", "a"]]},
        ],
    )
    assert [problem[3] for problem in problems([subscribers, subscriptions])] == [
        "subscriber ann: prefers names s2, which belongs to bob",
        "subscriber ann: prefers names unknown subscription s9",
        "subscriber cid: preferences form a cycle: a > b > a",
    ]
    assert len(problems([subscribers])) == 1


def test_a_table_with_an_unknown_column_is_one_problem(tmp_path):
    path = tmp_path / "subscriptions.csv"
    path.write_text("id,subscriber,where,colour\ns1,ann,year > 3,red\n")
    ((name, line, _, reason),) = problems([path])
    assert (name, line) == ("subscriptions.csv", None)
    assert reason.startswith("unknown column colour; expected one of: id")


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
