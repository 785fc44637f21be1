import io
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console, RenderableType

from tidings import Event
from tidings.app.demo import screen
from tidings.app.demo.facts import RunFacts
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import title
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
def test_everything_fits_the_width_and_nothing_is_cut(
    state: DemoState, facts: RunFacts, width: int
) -> None:
    pages = [
        screen.introduction(58_788, demo_subscribers()),
        screen.progress(state, 12.3, "batch 2 of 2"),
        screen.result(state, facts),
        screen.next_steps(Path("tidings-demo"), "tidings", Path("tidings-demo/report.html")),
    ]
    text = "".join(drawn(page, width) for page in pages)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_the_table_has_room_for_the_longest_figures(
    state: DemoState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "age", lambda _seconds: "93 min")
    assert "…" not in drawn(screen.stats_table(state.stats.values()), 80)


def test_the_introduction_lists_the_subscribers() -> None:
    text = drawn(screen.introduction(58_788, demo_subscribers()), 140)
    assert "58,788 real films" in text
    for subscriber in demo_subscribers():
        assert subscriber.likes in text
        assert subscriber.gets in text


def test_the_table_has_a_row_per_subscriber(state: DemoState) -> None:
    text = drawn(screen.stats_table(state.stats.values()))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    for name, stats in state.stats.items():
        assert rows[name][:2] == [f"{stats.matches:,}", f"{stats.delivered:,}"]
    addison = state.stats["addison"].figures
    assert addison is not None
    first, tidings = addison.rank
    assert rows["addison"][2:5] == [f"{first:.0%}", "→", f"{tidings:.0%}"]
    assert rows["carson"][2:] == ["-", "-", "-"]
    assert rows["erin"][7].endswith("*")


def test_every_column_is_explained(state: DemoState) -> None:
    columns = [column.header for column in screen.stats_table([]).columns]
    assert columns == ["subscriber", *screen.COLUMNS]
    text = one_line(drawn(screen.legend(), 140))
    for name, explained in screen.COLUMNS.items():
        assert f"{name} {explained}" in text
    assert screen.FIRST_COME in text


def test_a_feed_shows_time_rank_film_and_reason(state: DemoState) -> None:
    stats = state.stats["addison"]
    lines = drawn(screen.feed(stats, fold=True), 140).splitlines()
    for (sent, reason), line in zip(stats.films, lines[1:], strict=True):
        assert one_line(line) == f"01:00 {sent.rank:.2f} {title(sent.film)} {reason}"


def test_a_feed_in_the_live_view_takes_a_line_per_film(state: DemoState) -> None:
    for stats in state.stats.values():
        lines = drawn(screen.feed(stats, fold=False), 30).splitlines()
        assert len(lines) == screen.height(stats) - 1


def test_an_empty_feed_is_marked(state: DemoState) -> None:
    assert "nothing sent yet" in drawn(screen.feed(state.stats["carson"], fold=True))


def test_a_title_is_not_read_as_markup(state: DemoState) -> None:
    film = Event("m1", {"title": "[bold]Rec", "year": 2000}, 0)
    listed = state.stats["addison"].films[0]
    news = screen.News("addison", listed._replace(sent=listed.sent._replace(film=film)))
    assert "[bold]Rec (2000)" in drawn(screen._news_table([news]))
    assert screen.news_line(news) == "to addison: [bold]Rec (2000)"


def test_the_result_has_all_totals(state: DemoState, facts: RunFacts) -> None:
    text = one_line(drawn(screen.result(state, facts)))
    share = state.delivered / state.matches
    assert "400 films, 0.0 simulated days, 61 seconds." in text
    assert f"{state.matches:,} matches, {state.delivered} sent ({share:.1%})" in text
    assert "2 refused, 1 late." in text
    assert f"agree on {state.delivered} of the {state.delivered} deliveries" in text


def test_ranks_above_one_are_explained(state: DemoState, facts: RunFacts) -> None:
    assert max(listed.sent.rank for listed in state.stats["bob"].films) > 1
    assert "That of bob goes above 1" in one_line(drawn(screen.result(state, facts)))


def test_the_result_compares_the_two_who_rank_burton_differently(
    films: pa.Table, facts: RunFacts
) -> None:
    state = DemoState(demo_subscribers(), films, [films.num_rows])
    state.published = films.num_rows
    text = one_line(drawn(screen.result(state, facts)))
    assert "3 dramas by T. Burton: addison-burton, who ranks them 0.9, got 0;" in text
    assert "carson, who ranks them 0.5, got 0." in text


def test_the_next_steps_are_commands() -> None:
    text = drawn(screen.next_steps(Path("out"), ".venv/bin/tidings", Path("out/report.html")))
    assert "\nout/report.html\n" in text
    assert ".venv/bin/tidings check out/run.toml" in text
    assert ".venv/bin/tidings run out/run.toml" in text


def test_the_position_includes_the_simulated_time(state: DemoState) -> None:
    assert screen.position(state) == "400 of 400 films, day 1 01:06"


def test_the_live_view_shows_the_message_until_the_first_film(state: DemoState) -> None:
    view = screen.LiveView(console(), lambda: 3.0)
    assert "Starting Spark (3 s)" in drawn(view("Starting Spark"))
    view.state = DemoState(state.subscribers, state.films, state.sizes)
    view.day = FirstDay(state.subscribers, state.events)
    assert len(drawn(view("Starting Spark")).splitlines()) == 1


def test_the_live_view_shows_the_first_day_while_spark_starts(
    state: DemoState, day: FirstDay
) -> None:
    page = console()
    view = screen.LiveView(page, lambda: 3.0)
    view.state, view.day = DemoState(state.subscribers, state.films, state.sizes), day
    for delivery in day.deliveries:
        owner = state.stats[delivery.subscriber].subscriber
        view.news.append(screen.News(owner.name, state.listed(owner, state.sent(delivery))))
    lines = drawn(view("Starting Spark")).splitlines()
    assert lines[1] == f"day 1 01:06: {state.delivered} of {state.matches:,} matches sent"
    assert title(view.news[-1].listed.sent.film) in lines[2]
    assert len(lines) < page.height


def test_the_live_view_shows_as_many_feeds_as_fit(state: DemoState) -> None:
    page = console()
    view = screen.LiveView(page, lambda: 0.0)
    view.state = state
    text = drawn(view(""))
    assert "batch 2 of 2" in text
    assert len(text.splitlines()) < page.height
    assert text.count(" of each ") >= 2
