import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import GENRE_AND_DECADE, demo_subscribers
from tidings.diversify import diversity
from tidings.formats.arrow import read_events


@pytest.fixture
def events(films: pa.Table) -> list[Event]:
    return [event for event in read_events(films.slice(0, 400)) if isinstance(event, Event)]


def test_all_counts_add_up(state: DemoState, batches: list[OutcomeBatch]) -> None:
    delivered = [row for batch in batches for row in batch.rows if row["kind"] == "delivery"]
    assert state.counts() == {
        "published": 400,
        "matches": state.matches,
        "delivered": len(delivered),
        "dead_letters": 2,
        "late": 1,
    }
    assert state.batches == 2
    assert 0 < len(delivered) < state.matches


def test_matches_and_ranks_are_counted(state: DemoState, events: list[Event]) -> None:
    carson = state.stats["carson"]
    dramas = [event for event in events if "drama" in event.attributes.get("genre", ())]
    assert carson.matches == len(dramas)
    assert carson.mean_ranks.plain == pytest.approx(0.7)
    assert carson.mean_ranks.tidings == 0
    assert carson.share == 0


def test_lists_are_the_last_k(state: DemoState, batches: list[OutcomeBatch]) -> None:
    for name, stats in state.stats.items():
        rows = [row for batch in batches for row in batch.of("delivery", name)]
        last = {row["event"] for row in rows[-stats.subscriber.k :]}
        assert {listed.film.id for listed in stats.films} == last
        assert len(stats.delivered) == len(rows)


def test_the_newest_list_comes_first(state: DemoState, batches: list[OutcomeBatch]) -> None:
    rows = {row["event"]: row for batch in batches for row in batch.of("delivery", "erin")}
    order = [rows[listed.film.id]["delivered_at"] for listed in state.stats["erin"].films]
    assert order == sorted(order, reverse=True)
    assert [listed.position for listed in state.stats["addison"].films] == [1, 2]


def test_plain_publish_subscribe_sent_the_last_k_matches(
    state: DemoState, events: list[Event]
) -> None:
    for stats in state.stats.values():
        subscriber = stats.subscriber
        matched = [event for event in reversed(events) if state.rank(subscriber.name, event)]
        assert stats.plain == tuple(matched[: subscriber.k])


def test_diversity_is_kept_for_every_batch(state: DemoState) -> None:
    stats = state.stats["addison"]
    assert len(stats.diversities) == 2
    assert stats.diversities[-1] == stats.diversity
    assert stats.diversity == (
        diversity(stats.plain, GENRE_AND_DECADE),
        diversity([listed.film for listed in stats.films], GENRE_AND_DECADE),
    )
    assert state.stats["carson"].diversities == ()
    assert state.stats["carson"].mean_diversities == (0, 0)


def test_the_reason_names_the_predicates_that_counted(state: DemoState) -> None:
    assert {listed.reason for listed in state.stats["addison"].films} <= {
        f"genre = '{genre}'" for genre in ("comedy", "romance", "drama")
    }
    for listed in state.stats["erin"].films:
        assert set(listed.reason.split(" + ")) <= {
            "votes >= 10000",
            "rating >= 8.5",
            "genre = 'action'",
        }


def test_dramas_by_a_director_are_those_published(films: pa.Table) -> None:
    state = DemoState(demo_subscribers(), films, [films.num_rows])
    assert state.dramas_by("T. Burton") == []
    state.published = films.num_rows
    titles = {film.attributes["title"] for film in state.dramas_by("T. Burton")}
    assert titles == {"Big Fish", "Ed Wood", "Edward Scissorhands"}
    assert {state.rank("carson", film) for film in state.dramas_by("T. Burton")} == {0.5}


def test_stats_have_a_json_form(state: DemoState) -> None:
    form = state.stats["addison"].to_dict()
    assert form["delivered"] == len(state.stats["addison"].delivered)
    assert [listed["position"] for listed in form["list"]] == [1, 2]
    assert state.stats["carson"].to_dict()["mean_rank"] is None


def test_deliveries_are_those_of_the_engine(state: DemoState, events: list[Event]) -> None:
    engine = Engine()
    for owner in demo_subscribers():
        engine.subscribe(owner.subscriber)
        for subscription in owner.subscriptions:
            engine.add(subscription)
    deliveries = engine.publish_many(events)
    for name, stats in state.stats.items():
        expected = {delivery.event for delivery in deliveries if delivery.subscriber == name}
        assert stats.delivered == expected
