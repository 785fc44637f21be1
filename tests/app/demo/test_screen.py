import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console, RenderableType

from tidings import Event
from tidings.app.demo import screen as show
from tidings.app.demo.output import JsonLines, Lines, Screen, presenter
from tidings.app.demo.state import Board
from tidings.app.demo.subscribers import cast


def console(width: int = 80, *, terminal: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        height=40,
        force_terminal=terminal,
        color_system="standard" if terminal else "auto",
    )


def printed(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def drawn(what: RenderableType, width: int = 80) -> str:
    page = console(width)
    page.print(what)
    return printed(page)


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100, 140])
def test_everything_fits_the_width(board: Board, width: int) -> None:
    pages = [
        show.opening(58_788, cast()),
        show.progress(board, 12.3, "batch 2 of 2"),
        show.ending(board, 61, width),
        show.next_steps(Path("tidings-demo"), "tidings"),
    ]
    lines = [line for page in pages for line in drawn(page, width).splitlines()]
    assert max(map(len, lines)) <= width


def test_the_opening_says_what_will_happen_and_to_whom() -> None:
    said = drawn(show.opening(58_788, cast()), 140)
    assert "58,788 real films" in said
    for role in cast():
        assert role.likes in said
        assert role.gets in said


def test_standings_have_a_row_for_everybody(board: Board) -> None:
    said = drawn(show.standings(board.tallies.values(), 80))
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.strip()}
    for name, tally in board.tallies.items():
        assert rows[name][:2] == [f"{tally.matches:,}", f"{len(tally.delivered):,}"]


def test_a_feed_tells_position_rank_film_and_why(board: Board) -> None:
    tally = board.tallies["addison"]
    said = drawn(show.feed(tally, 140), 140).splitlines()
    assert len(said) == show.height(tally) - 1
    for line, text in zip(tally.lines, said[1:], strict=False):
        start = f"{line.position}. {line.rank:.2f} {show.named(line.film)}"
        assert one_line(text) == f"{start} {line.why}"
    plain, ours = tally.diversity
    assert f"diversity {ours:.2f}, plain {plain:.2f}: {show.named(tally.plain[0])}" in said[-1]


def test_a_feed_without_a_film_says_so(board: Board) -> None:
    assert "nothing yet" in drawn(show.feed(board.tallies["carson"], 80))


def test_a_title_is_not_taken_for_markup(board: Board) -> None:
    film = Event("m1", {"title": "[bold]Rec", "year": 2000}, 0)
    line = board.tallies["addison"].lines[0]._replace(film=film)
    assert "[bold]Rec (2000)" in drawn(show._films([line], 80, whole=False))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Graduate, The", "The Graduate (2000)"),
        ("Avventura, L'", "L'Avventura (2000)"),
        ("Hello, Dolly!", "Hello, Dolly! (2000)"),
    ],
)
def test_articles_go_to_the_front(title: str, expected: str) -> None:
    assert show.named(Event("m1", {"title": title, "year": 2000}, 0)) == expected


def test_the_ending_gives_all_numbers(board: Board) -> None:
    said = one_line(drawn(show.ending(board, 61.4, 80)))
    share = board.delivered / board.matches
    assert "400 films, 0.0 simulated days, 61 seconds." in said
    assert f"{board.matches} matches, {board.delivered} delivered ({share:.1%})" in said
    assert "2 refused, 1 late." in said


def test_the_ending_compares_the_two_who_differ(films: pa.Table) -> None:
    board = Board(cast(), films, [films.num_rows])
    board.published = films.num_rows
    said = one_line(drawn(show.ending(board, 1, 80)))
    assert "3 dramas by T. Burton: addison-burton, for whom they rank 0.9, got 0;" in said
    assert "carson, for whom they rank 0.5, got 0." in said


def test_the_next_steps_can_be_typed() -> None:
    said = drawn(show.next_steps(Path("out"), ".venv/bin/tidings"))
    assert ".venv/bin/tidings check out/run.toml" in said
    assert ".venv/bin/tidings run out/run.toml" in said


def test_where_counts_simulated_time(board: Board) -> None:
    assert show.where(board) == "400 of 400 films, day 1 01:06"


def told(on: Console, board: Board, *, json_lines: bool = False) -> str:
    telling = presenter(on, lambda: 7.0, json_lines=json_lines)
    telling.open(400, cast())
    telling.say("Starting Spark")
    telling.move(board)
    telling.end(board, Path("out"), "tidings")
    telling.close()
    return printed(on)


def test_a_pipe_gets_plain_lines(board: Board) -> None:
    said = told(console(), board)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", said)
    assert "   7 s  Starting Spark\n" in said
    counts = f"{board.delivered} of {board.matches} matches delivered"
    assert f"   7 s  400 of 400 films, day 1 01:06: {counts}\n" in said


def test_a_terminal_gets_a_live_view_in_colour(board: Board) -> None:
    said = told(console(terminal=True), board)
    assert "\x1b[1;36m" in said
    assert "\x1b[?25h" in said


def test_a_program_gets_json_lines(board: Board) -> None:
    lines = [json.loads(line) for line in told(console(), board, json_lines=True).splitlines()]
    assert lines[0]["films"] == 400
    assert lines[1] == {"batch": 2, **board.counts(), "seconds": 7.0}
    assert [line["subscriber"] for line in lines[2:-1]] == list(board.tallies)
    assert lines[-1] == {"written": "out", **board.counts(), "seconds": 7.0}


@pytest.mark.parametrize("kind", [Lines, Screen, JsonLines])
def test_an_interrupt_is_told(board: Board, kind: type[Lines] | type[Screen]) -> None:
    page = console()
    telling = kind(page, lambda: 7.0)
    telling.open(400, cast())
    telling.stop(board, Path("out"))
    telling.close()
    last = printed(page).splitlines()[-1]
    assert "out" in last
    assert "stopped" in last.lower()


def test_the_live_view_shows_as_many_feeds_as_fit(board: Board) -> None:
    page = console(terminal=True)
    screen = Screen(page, lambda: 0.0)
    screen.move(board)
    said = drawn(screen._draw())
    assert len(said.splitlines()) < page.height
    assert said.count("diversity ") >= 2
