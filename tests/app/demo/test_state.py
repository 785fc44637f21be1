import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.state import Batch, Board
from tidings.app.demo.subscribers import KIND, cast
from tidings.diversify import diversity
from tidings.formats.arrow import read_events


@pytest.fixture
def events(films: pa.Table) -> list[Event]:
    return [each for each in read_events(films.slice(0, 400)) if isinstance(each, Event)]


def test_all_numbers_add_up(board: Board, batches: list[Batch]) -> None:
    delivered = [row for batch in batches for row in batch.rows if row["kind"] == "delivery"]
    assert board.counts() == {
        "published": 400,
        "matches": board.matches,
        "delivered": len(delivered),
        "dead_letters": 2,
        "late": 1,
    }
    assert board.batches == 2
    assert 0 < len(delivered) < board.matches


def test_a_tally_counts_matches_and_ranks(board: Board, events: list[Event]) -> None:
    tally = board.tallies["carson"]
    dramas = [each for each in events if "drama" in each.attributes.get("genre", ())]
    assert tally.matches == len(dramas)
    assert tally.mean_ranks[0] == pytest.approx(0.7)
    assert tally.mean_ranks[1] == 0
    assert tally.share == 0


def test_lists_are_the_last_k(board: Board, batches: list[Batch]) -> None:
    for name, tally in board.tallies.items():
        rows = [row for batch in batches for row in batch.of("delivery", name)]
        last = {row["event"] for row in rows[-tally.role.k :]}
        assert {line.film.id for line in tally.lines} == last
        assert len(tally.delivered) == len(rows)


def test_the_newest_choice_comes_first(board: Board, batches: list[Batch]) -> None:
    rows = {row["event"]: row for batch in batches for row in batch.of("delivery", "erin")}
    order = [rows[line.film.id]["delivered_at"] for line in board.tallies["erin"].lines]
    assert order == sorted(order, reverse=True)
    assert [line.position for line in board.tallies["addison"].lines] == [1, 2]


def test_plain_publish_subscribe_sent_the_last_k_matches(board: Board, events: list[Event]) -> None:
    for tally in board.tallies.values():
        matched = [each for each in reversed(events) if board.rank(tally.role.name, each)]
        assert tally.plain == tuple(matched[: tally.role.k])


def test_diversity_is_kept_for_every_batch(board: Board) -> None:
    tally = board.tallies["addison"]
    assert len(tally.diversities) == 2
    assert tally.diversities[-1] == tally.diversity
    assert tally.diversity == (
        diversity(tally.plain, KIND),
        diversity([line.film for line in tally.lines], KIND),
    )
    assert board.tallies["carson"].diversities == ()


def test_why_names_what_counted(board: Board) -> None:
    assert {line.why for line in board.tallies["addison"].lines} <= {
        f"genre = '{genre}'" for genre in ("comedy", "romance", "drama")
    }
    for line in board.tallies["erin"].lines:
        assert set(line.why.split(" + ")) <= {
            "votes >= 10000",
            "rating >= 8.5",
            "genre = 'action'",
        }


def test_dramas_by_a_director_are_those_published(films: pa.Table) -> None:
    board = Board(cast(), films, [films.num_rows])
    assert board.dramas_by("T. Burton") == []
    board.published = films.num_rows
    titles = {film.attributes["title"] for film in board.dramas_by("T. Burton")}
    assert titles == {"Big Fish", "Ed Wood", "Edward Scissorhands"}
    assert {board.rank("carson", film) for film in board.dramas_by("T. Burton")} == {0.5}


def test_a_tally_has_a_form(board: Board) -> None:
    form = board.tallies["addison"].to_dict()
    assert form["delivered"] == len(board.tallies["addison"].delivered)
    assert [line["position"] for line in form["list"]] == [1, 2]
    assert board.tallies["carson"].to_dict()["mean_rank"] is None


def test_the_numbers_are_those_of_the_engine(board: Board, events: list[Event]) -> None:
    engine = Engine()
    for role in cast():
        engine.subscribe(role.subscriber)
        for each in role.subscriptions:
            engine.add(each)
    delivered = engine.publish_many(events)
    for name, tally in board.tallies.items():
        assert tally.delivered == {each.event for each in delivered if each.subscriber == name}
