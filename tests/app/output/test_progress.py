"""Progress of a run: text, JSON, or a live view on a terminal."""

import io
import json
from typing import Any

import pytest
from rich.console import Console
from rich.spinner import Spinner

from tidings.app.output.progress import (
    JsonReporter,
    LiveReporter,
    RunView,
    TextReporter,
    batch_line,
    open_reporter,
)
from tidings.app.run.summary import BatchSummary, RunSummary

MEASURES = {
    "events_per_second": 1234.5,
    "lag_seconds": 7200.0,
    "behind": {"maxOffsetsBehindLatest": 20.0},
    "state_bytes": 13_884,
}
BATCH = BatchSummary(3, 50, 7, 2, 1, {"ann": 7}, MEASURES)


def console(*, terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def view(message):
    return message


def test_a_line_has_the_counts_throughput_lag_and_state_size():
    assert " ".join(batch_line(BATCH).split()) == (
        "batch 3 50 events 7 deliveries 2 late 1 dead letter 1,234 events/s lag 2 h "
        "maxOffsetsBehindLatest 20 state 13.9 kB"
    )
    empty = BatchSummary(0, 1, 0)
    assert batch_line(empty).split() == ["batch", "0", "1", "event", "0", "deliveries"]
    no_lag = BatchSummary(0, 1, 0, measures={**MEASURES, "lag_seconds": None})
    assert "lag" not in batch_line(no_lag)


@pytest.mark.parametrize(
    ("log", "terminal", "kind"),
    [
        ("json", False, JsonReporter),
        ("json", True, JsonReporter),
        ("text", True, TextReporter),
        (None, False, TextReporter),
        (None, True, LiveReporter),
    ],
)
def test_the_log_option_selects_the_reporter(log, terminal, kind):
    with open_reporter(console(terminal=terminal), view, log) as reporter:
        assert type(reporter) is kind


def test_text_lines_follow_their_prefix():
    target = console()
    with open_reporter(target, view, prefix=lambda: "  7 s  ") as reporter:
        reporter.message("Starting")
        reporter.batch("one batch", {})
    assert target.file.getvalue() == "  7 s  Starting\n  7 s  one batch\n"


def test_a_json_log_has_a_record_per_batch_and_message():
    target = console()
    with open_reporter(target, view, "json") as reporter:
        reporter.batch(batch_line(BATCH), BATCH.to_dict())
        reporter.message("Stopping")
    batch, message = map(json.loads, target.file.getvalue().splitlines())
    assert batch.pop("time") <= message.pop("time")
    assert batch == {"level": "info", "message": "batch", **BATCH.to_dict()}
    assert (batch["batch"], batch["dead_letters"], batch["lag_seconds"]) == (3, 1, 7200.0)
    assert message == {"level": "info", "message": "Stopping"}


def test_json_without_messages_is_batches_only():
    target = console()
    reporter = JsonReporter(target, messages=False)
    reporter.message("Starting")
    reporter.batch("", {"batch": 1})
    assert target.file.getvalue() == '{"batch": 1}\n'


def test_the_live_view_shows_a_message_until_the_next_batch_and_then_disappears():
    target, drawn = console(terminal=True), []

    def draw(message):
        drawn.append(message)
        return message

    with open_reporter(target, draw) as reporter:
        assert isinstance(reporter, LiveReporter)
        reporter.message("Starting Spark")
        reporter.display.refresh()
        reporter.batch("", {})
        reporter.display.refresh()
    assert "Starting Spark" in drawn
    assert drawn[-1] == ""
    assert target.file.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in target.file.getvalue()


def test_a_warning_stays_when_the_live_view_is_gone():
    target = console(terminal=True)
    with open_reporter(target, view) as reporter:
        reporter.message("so far: no event has dst", "warning")
        reporter.batch("", {})
    assert "so far: no event has dst" in target.file.getvalue()


def test_the_view_of_a_run_has_the_last_batch_and_the_totals():
    plan: Any = None
    summary = RunSummary(plan)
    run_view = RunView(summary)
    assert isinstance(run_view("Starting Spark"), Spinner)
    assert run_view.text("Starting Spark") == "Starting Spark"
    summary.add(BATCH)
    summary.add(BatchSummary(4, 50, 3))
    last, totals, message = run_view.text("Stopping after this batch").splitlines()
    assert last.startswith("batch 4")
    assert totals == "2 batches: 100 events, 10 deliveries, 2 late, 1 dead letter"
    assert message == "Stopping after this batch"


def test_records_of_a_json_log_have_times_and_levels():
    target = console()
    reporter = JsonReporter(target, clock=lambda: 1_763_280_000.1239)
    reporter.message("Starting")
    reporter.message("no answer", "error")
    reporter.batch("", {"batch": 1})
    records = [json.loads(line) for line in target.file.getvalue().splitlines()]
    assert {record["time"] for record in records} == {"2025-11-16T08:00:00.123000Z"}
    assert [record["level"] for record in records] == ["info", "error", "info"]
