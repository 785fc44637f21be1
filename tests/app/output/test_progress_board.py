"""How a run does while it runs: words, JSON, or a board on a terminal."""

import io
import json

from rich.console import Console

from tidings.app.output.progress_board import Board, JsonLines, TextLines, batch_line, teller
from tidings.app.run.summary import Batch

MEASURES = {
    "events_per_second": 1234.5,
    "lag_seconds": 7200.0,
    "behind": {"maxOffsetsBehindLatest": 20.0},
    "state_bytes": 13_884,
}
BATCH = Batch(3, 50, 7, 2, 1, {"ann": 7}, MEASURES)


def console(*, terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def test_a_line_says_what_came_of_a_batch_and_how_fast_late_and_large():
    words = " ".join(batch_line(BATCH).split())
    assert words == (
        "batch 3 50 events 7 deliveries 2 late 1 dead letter 1,234 events/s lag 2 h "
        "maxOffsetsBehindLatest 20 state 13.9 kB"
    )
    assert batch_line(Batch(0, 1, 0)).split() == ["batch", "0", "1", "event", "0", "deliveries"]
    assert "lag" not in batch_line(Batch(0, 1, 0, measures={**MEASURES, "lag_seconds": None}))


def test_the_log_is_words_or_json_as_asked_and_words_where_there_is_no_terminal():
    for log, terminal, kind in (
        ("json", False, JsonLines),
        ("json", True, JsonLines),
        ("text", True, TextLines),
        (None, False, TextLines),
        (None, True, Board),
    ):
        with teller(console(terminal=terminal), log, "waiting") as found:
            assert type(found) is kind


def test_a_json_log_is_a_line_for_each_batch_with_all_figures():
    place = console()
    with teller(place, "json", "waiting") as found:
        found.batch(BATCH)
        found.say("Stopping")
    batch, said = map(json.loads, place.file.getvalue().splitlines())
    assert batch == {"level": "info", "message": "batch", **BATCH.to_dict()}
    assert (batch["batch"], batch["dead_letters"], batch["lag_seconds"]) == (3, 1, 7200.0)
    assert said == {"level": "info", "message": "Stopping"}


def test_a_board_adds_up_and_leaves_nothing_behind_but_lets_the_cursor_be_seen():
    place = console(terminal=True)
    with teller(place, None, "Spark is at work") as board:
        assert isinstance(board, Board)
        assert "Spark is at work" in str(board._text())
        board.batch(BATCH)
        board.batch(Batch(4, 50, 3))
        text = str(board._text())
        assert text.splitlines()[0].startswith("batch 4")
        assert text.splitlines()[1] == "2 batches: 100 events, 10 deliveries, 2 late, 1 dead letter"
        board.say("Stopping after this batch")
        assert str(board._text()).endswith("\nStopping after this batch")
    assert place.file.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in place.file.getvalue()
