"""The printed plan and summary of a run."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tidings.app.config import SinkConfig, load_config
from tidings.app.output import dry_run_rows, print_plan, print_summary
from tidings.app.run.plan import read_plan
from tidings.app.run.summary import BatchSummary, RunSummary
from tidings.store.address import read_address

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies" / "pipeline.toml"


@pytest.fixture
def plan(tmp_path):
    sink = SinkConfig(tmp_path / "out", "jsonl")
    return read_plan(replace(load_config(EXAMPLE), engine="local", sink=sink))


def printed(function, *arguments):
    page = io.StringIO()
    function(Console(file=page, width=1000), *arguments)
    return page.getvalue()


def test_the_plan_is_one_line(plan):
    expected = f"{EXAMPLE} in one process: 6 subscribers, 13 subscriptions, 1 file of events\n"
    assert printed(print_plan, plan) == expected


def test_a_dry_run_on_spark_has_more_rows(plan):
    spark = replace(plan, config=replace(plan.config, engine="spark"))
    local_rows, spark_rows = (
        dict(dry_run_rows(each, [("id", "string")])) for each in (plan, spark)
    )
    assert set(spark_rows) - set(local_rows) == {"columns", "buckets", "trigger"}
    assert (local_rows["index"], spark_rows["index"]) == ("scan", "access, in files")


def test_a_run_without_new_events_says_how_to_start_over(plan):
    text = printed(print_summary, RunSummary(plan))
    assert "No new events since the last run; --fresh starts over.\n" in text


def test_the_summary_has_totals_quality_and_a_command(plan, tmp_path):
    quality = {
        "delivered": 2,
        "matches": 8,
        "share": 0.25,
        "mean_rank": 0.9,
        "mean_score": 0.5,
        "diversity": 0.75,
        "coverage": None,
        "held": 3,
        "released": 0,
        "dropped_by": {"different": 1, "quota": 1_200},
    }
    batch = BatchSummary(0, 10, 2, late=1, delivered={"bob": 1, "ann": 1}, quality=quality)
    lines = printed(print_summary, RunSummary.of(plan, [batch], seconds=2.0)).splitlines()
    assert "10 events, 2 deliveries, 1 late, 0 dead letters, 2.0 s" in lines
    assert (
        "25.0% of 8 matches delivered, mean rank 0.900 (of all matches 0.500), diversity 0.750"
        in lines
    )
    assert "rules: 3 held, 1 dropped by different, 1,200 dropped by quota" in lines
    out = tmp_path / "out"
    assert lines[-1] == f"Written to {out}. Read it with: cat {out}/deliveries/*.jsonl"


def test_a_run_may_deliver_what_an_earlier_one_has_matched(plan):
    names = ("share", "mean_score", "diversity", "coverage")
    quality = {"delivered": 2, "matches": 0, "mean_rank": 0.9, **dict.fromkeys(names)}
    batch = BatchSummary(0, 1, 2, delivered={"ann": 2}, quality=quality)
    lines = printed(print_summary, RunSummary.of(plan, [batch], seconds=2.0)).splitlines()
    assert "mean rank 0.900" in lines


def test_of_many_subscribers_those_with_the_most_deliveries_are_listed(plan):
    delivered = {f"u{number:04}": 1 + number % 50 for number in range(10_000)}
    batch = BatchSummary(0, 10, 2, delivered=delivered)
    summary = RunSummary.of(plan, [batch], seconds=2.0)
    lines = printed(print_summary, summary).splitlines()
    assert len(lines) < 30
    assert "and 9,980 more subscribers with 1 to 50 each; --json lists them all" in lines
    listed = [line.split()[0] for line in lines if line.strip().startswith("u0")]
    assert listed == [f"u{49 + 50 * number:04}" for number in range(20)]
    assert summary.to_dict()["subscribers"] == delivered


def test_notes_of_the_folder_are_printed_and_part_of_the_summary(plan):
    plan.folder.notes.append("the source was 'a' and is now 'b'")
    assert printed(print_plan, plan).endswith("note: the source was 'a' and is now 'b'\n")
    assert RunSummary(plan).to_dict()["notes"] == plan.folder.notes


def test_the_summary_says_where_dead_letters_are(plan, tmp_path):
    summary = RunSummary.of(plan, [BatchSummary(0, 10, 2, dead=3)], seconds=2.0)
    expected = f"3 dead letters with the reasons: {tmp_path}/out/dead_letters\n"
    assert expected in printed(print_summary, summary)
    address = read_address(tmp_path / "films.db")
    sink = SinkConfig(tmp_path / "out", "store", address)
    stored = replace(plan, config=replace(plan.config, sink=sink))
    summary = RunSummary.of(stored, [BatchSummary(0, 10, 2, dead=1)], seconds=2.0)
    expected = f"1 dead letter with the reasons: `tidings store letters {tmp_path}/films.db`\n"
    assert expected in printed(print_summary, summary)
