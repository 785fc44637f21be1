"""The output of `init`: what was found in a file, with notes on what may be wrong."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidings.app.init import Proposal, propose
from tidings.app.init.columns import SampleColumn
from tidings.app.output.init_output import print_proposal
from tidings.app.terminal import SafeConsole
from tidings.model.dead_letter import BadRecord

Propose = Callable[..., Proposal]


@pytest.fixture
def proposed(tmp_path: Path) -> Propose:
    """Return a function that looks at rows of a CSV file."""

    def look(*rows: str, times: int = 30) -> Proposal:
        path = tmp_path / "films.csv"
        header, *others = rows
        lines = [line.format(n=n) for n in range(times) for line in others]
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return propose(path)

    return look


def printed(proposal: Proposal, *written: str) -> list[str]:
    """Return the lines that are printed, with single blanks, and without empty ones."""
    page = io.StringIO()
    paths = [Path(name) for name in written or ("films.toml", "films.jsonl")]
    print_proposal(SafeConsole(file=page, width=400), proposal, paths)
    lines = [" ".join(line.split()) for line in page.getvalue().splitlines()]
    return [line for line in lines if line.strip(" ─")]


PLAIN = ("id,seen_at,genre,year", "f{n},2026-01-{n:02}T10:00:00Z,drama,20{n:02}")


def dated(proposed: Propose) -> Proposal:
    return proposed(PLAIN[0], "f{n},2026-11-15T10:{n:02}:00Z,drama,20{n:02}")


def test_columns_are_listed_with_their_types_and_uses(proposed: Propose) -> None:
    lines = printed(dated(proposed))
    assert lines[0] == "Column Type Used as"
    assert lines[1].startswith("id string id")
    assert lines[2].endswith("published_at, the time")
    assert lines[3].split()[0] == "genre"
    assert "Looked at 30 events" in lines


def test_the_next_commands_can_be_copied(proposed: Propose) -> None:
    lines = printed(dated(proposed), "my films.toml", "w.jsonl")
    assert lines[-3:] == [
        "Wrote my films.toml and w.jsonl. Now run:",
        "tidings run 'my films.toml'",
        "tidings run 'my films.toml' --engine spark # the same on Spark",
    ]


def test_example_subscriptions_are_counted(proposed: Propose) -> None:
    proposal = dated(proposed)
    lines = printed(proposal)
    start = lines.index("Example subscription Matches")
    assert proposal.subscriptions
    for line, example in zip(lines[start + 1 :], proposal.subscriptions, strict=False):
        assert line == f"{example.subscription.to_dict()['where']} {example.matches:,}"


def test_a_row_that_cannot_be_read_is_named(proposed: Propose) -> None:
    proposal = dated(proposed)
    bad = [BadRecord({}, "it has 5 cells", 7), BadRecord({}, "other", 9)]
    assert "Looked at 30 events; 2 rows cannot be read, such as row 7: it has 5 cells" in printed(
        replace(proposal, unreadable=bad)
    )
    assert "Looked at 30 events; 1 row cannot be read, such as row 7: it has 5 cells" in printed(
        replace(proposal, unreadable=bad[:1])
    )


def test_columns_that_are_left_out_have_a_reason(proposed: Propose) -> None:
    proposal = replace(dated(proposed), left_out={"length": "durations"})
    assert "length is left out: no attribute holds durations; to use it, convert it" in printed(
        proposal
    )


@pytest.mark.parametrize(("count", "more"), [(40, None), (41, 1), (55, 15)])
def test_of_many_columns_the_first_are_listed(
    proposed: Propose, count: int, more: int | None
) -> None:
    columns = [SampleColumn(f"x{number}", [number], 1) for number in range(count)]
    lines = printed(replace(dated(proposed), columns=columns))
    assert sum(line.startswith("x") for line in lines) == min(count, 40)
    assert [line for line in lines if line.startswith("and ")] == (
        [] if more is None else [f"and {more} more columns"]
    )


def test_hostile_names_are_text(proposed: Propose) -> None:
    columns = [SampleColumn("[bold]x[/bold]", ["a"], 1)]
    assert any(
        "[bold]x[/bold]" in line for line in printed(replace(dated(proposed), columns=columns))
    )


def test_a_file_without_ids_and_times_gets_them(proposed: Propose) -> None:
    lines = printed(proposed("genre,stars", "drama,3", "comedy,4"))
    assert (
        "No column is a unique id, so the file and the row number are the id of an event." in lines
    )
    assert (
        "No column is a time, so events are published in the order of the rows, at the time when "
        "the file was last modified."
    ) in lines


def test_a_file_with_an_id_and_a_time_needs_no_notes(proposed: Propose) -> None:
    assert not any(line.startswith("No column") for line in printed(dated(proposed)))


NAMELESS = "Most columns have no name."


@pytest.mark.parametrize(
    ("names", "noted"),
    [
        (["column_1", "column_2", "x"], True),
        (["column_1", "x"], False),
        (["column_1", "column_a"], False),
        (["column_10"], True),
    ],
)
def test_a_title_above_the_header_is_suspected(
    proposed: Propose, names: list[str], noted: bool
) -> None:
    columns = [SampleColumn(name, ["a"], 1) for name in names]
    lines = printed(replace(dated(proposed), columns=columns))
    assert any(line.startswith(NAMELESS) for line in lines) == noted


def test_days_that_may_be_months_are_noted(proposed: Propose) -> None:
    """All days are up to 12, so that both readings are possible."""
    lines = printed(proposed("id,at,genre", "f{n},03/04/2026 10:{n:02},drama"))
    [note] = [line for line in lines if "is read as" in line]
    assert note.startswith("at is read as ")
    assert "so '03/04/2026 10:00' has the day" in note
    assert note.endswith("in the config.")


def test_days_above_twelve_can_be_read_in_one_way(proposed: Propose) -> None:
    lines = printed(proposed("id,at,genre", "f{n},23/04/2026 10:{n:02},drama"))
    assert not any("is read as" in line for line in lines)


def test_parts_of_a_time_should_be_joined(proposed: Propose) -> None:
    lines = printed(proposed("id,year,month,day,genre", "f{n},2026,11,15,drama"))
    [note] = [line for line in lines if "are parts of one time" in line]
    assert note.startswith("year, month and day are parts of one time")


def test_times_of_several_forms_are_noted(proposed: Propose) -> None:
    lines = printed(
        proposed("id,time,genre", "f{n},2026-11-15 10:{n:02},drama", "g{n},15.11.2026,drama")
    )
    [note] = [line for line in lines if "several forms" in line]
    assert note.startswith("time may be one, but its times have several forms ('2026-11-15 10:00'")


def test_separators_of_lists_are_shown(proposed: Propose) -> None:
    proposal: Any = dated(proposed)
    layout = replace(proposal.layout, lists={"genre": "|"})
    lines = printed(replace(proposal, layout=layout))
    assert "genre list, separated by | genre" in lines
