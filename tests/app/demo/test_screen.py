import io
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console, RenderableType

from tidings import Event
from tidings.app.demo import screen
from tidings.app.demo.state import DemoState
from tidings.app.demo.subscribers import demo_subscribers


def console(width: int = 80) -> Console:
    return Console(file=io.StringIO(), width=width, height=40)


def drawn(renderable: RenderableType, width: int = 80) -> str:
    page = console(width)
    page.print(renderable)
    assert isinstance(page.file, io.StringIO)
    return page.file.getvalue()


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100, 140])
def test_everything_fits_the_width(state: DemoState, width: int) -> None:
    pages = [
        screen.introduction(58_788, demo_subscribers()),
        screen.progress(state, 12.3, "batch 2 of 2"),
        screen.result(state, 61, width),
        screen.next_steps(Path("tidings-demo"), "tidings"),
    ]
    lines = [line for page in pages for line in drawn(page, width).splitlines()]
    assert max(map(len, lines)) <= width


def test_the_introduction_lists_the_subscribers() -> None:
    text = drawn(screen.introduction(58_788, demo_subscribers()), 140)
    assert "58,788 real films" in text
    for subscriber in demo_subscribers():
        assert subscriber.likes in text
        assert subscriber.gets in text


def test_the_table_has_a_row_per_subscriber(state: DemoState) -> None:
    text = drawn(screen.stats_table(state.stats.values(), 80))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    for name, stats in state.stats.items():
        assert rows[name][:2] == [f"{stats.matches:,}", f"{len(stats.delivered):,}"]


def test_a_feed_shows_position_rank_film_and_reason(state: DemoState) -> None:
    stats = state.stats["addison"]
    lines = drawn(screen.feed(stats, 140), 140).splitlines()
    assert len(lines) == screen.height(stats) - 1
    for listed, line in zip(stats.films, lines[1:], strict=False):
        start = f"{listed.position}. {listed.rank:.2f} {screen.title(listed.film)}"
        assert one_line(line) == f"{start} {listed.reason}"
    plain, tidings = stats.diversity
    first = screen.title(stats.plain[0])
    assert f"diversity {tidings:.2f}, plain {plain:.2f}: {first}" in lines[-1]


def test_an_empty_feed_is_marked(state: DemoState) -> None:
    assert "nothing delivered yet" in drawn(screen.feed(state.stats["carson"], 80))


def test_a_title_is_not_read_as_markup(state: DemoState) -> None:
    film = Event("m1", {"title": "[bold]Rec", "year": 2000}, 0)
    listed = state.stats["addison"].films[0]._replace(film=film)
    assert "[bold]Rec (2000)" in drawn(screen._films([listed], 80, fold=False))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Graduate, The", "The Graduate (2000)"),
        ("Avventura, L'", "L'Avventura (2000)"),
        ("Hello, Dolly!", "Hello, Dolly! (2000)"),
    ],
)
def test_articles_move_to_the_front(title: str, expected: str) -> None:
    assert screen.title(Event("m1", {"title": title, "year": 2000}, 0)) == expected


def test_the_result_has_all_totals(state: DemoState) -> None:
    text = one_line(drawn(screen.result(state, 61.4, 80)))
    share = state.delivered / state.matches
    assert "400 films, 0.0 simulated days, 61 seconds." in text
    assert f"{state.matches} matches, {state.delivered} delivered ({share:.1%})" in text
    assert "2 refused, 1 late." in text


def test_the_result_compares_the_two_who_rank_burton_differently(films: pa.Table) -> None:
    state = DemoState(demo_subscribers(), films, [films.num_rows])
    state.published = films.num_rows
    text = one_line(drawn(screen.result(state, 1, 80)))
    assert "3 dramas by T. Burton: addison-burton, who ranks them 0.9, got 0;" in text
    assert "carson, who ranks them 0.5, got 0." in text


def test_the_next_steps_are_commands() -> None:
    text = drawn(screen.next_steps(Path("out"), ".venv/bin/tidings"))
    assert ".venv/bin/tidings check out/run.toml" in text
    assert ".venv/bin/tidings run out/run.toml" in text


def test_the_position_includes_the_simulated_time(state: DemoState) -> None:
    assert screen.position(state) == "400 of 400 films, day 1 01:06"


def test_the_live_view_shows_the_message_until_the_first_batch(state: DemoState) -> None:
    view = screen.LiveView(console(), lambda: 3.0)
    assert drawn(view("Starting Spark")) == "Starting Spark (3 s)\n"
    view.state = DemoState(state.subscribers, state.films, state.sizes)
    assert drawn(view("Waiting for the first batch")) == "Waiting for the first batch (3 s)\n"


def test_the_live_view_shows_as_many_feeds_as_fit(state: DemoState) -> None:
    page = console()
    view = screen.LiveView(page, lambda: 0.0)
    view.state = state
    text = drawn(view(""))
    assert "batch 2 of 2" in text
    assert len(text.splitlines()) < page.height
    assert text.count("diversity ") >= 2
