"""Recent publications: those that the pipeline has processed, and replays that are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.service.recent_publications import _REPLAYS, Interest, RecentPublications, Replays
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.publications import NewPublication


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def publish(store: Store, *names: str) -> None:
    store.publications.accept(
        [NewPublication(Event(name, {"n": len(name)}, published_at=0)) for name in names], 1
    )


def step(store: Store, upto: int, clock_us: int | None = None) -> EngineStep:
    """Note that the pipeline has processed publications up to a number."""
    taken = EngineStep(store.log.last().number + 1, clock_us, 0, upto)
    nothing = BatchAppend.of("q", taken.number, [], late=[], dead=[])
    assert store.log.append(taken, nothing)
    return taken


def ids(recent: RecentPublications) -> list[str]:
    return [event.id for event in recent.events()]


def test_only_what_is_processed_is_recent(store: Store) -> None:
    recent = RecentPublications(store, 10)
    assert recent.stream() == (EngineStep(), [])
    publish(store, "a", "b", "c")
    assert ids(recent) == []
    last = step(store, 2)
    assert recent.stream().step == last
    assert ids(recent) == ["a", "b"]
    step(store, 3)
    assert ids(recent) == ["a", "b", "c"]


@settings(max_examples=20)
@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=5))
def test_the_last_publications_are_kept(
    tmp_path_factory: pytest.TempPathFactory, most: int, sizes: list[int]
) -> None:
    """However many come between two looks."""
    with open_store(str(tmp_path_factory.mktemp("recent") / "t.db")) as store:
        recent, names = RecentPublications(store, most), list[str]()
        for size in sizes:
            new = [f"e{len(names) + number}" for number in range(size)]
            names += new
            publish(store, *new)
            step(store, len(names))
            assert ids(recent) == names[-most:]


def test_events_are_parsed_once(store: Store) -> None:
    recent = RecentPublications(store, 10)
    publish(store, "a", "b")
    step(store, 1)
    [first] = recent.events()
    step(store, 2)
    again, _ = recent.events()
    assert again is first


@pytest.mark.parametrize("form", ["{", "null", "[]", '{"id": ""}', '{"id": "b"}', None])
def test_a_damaged_publication_is_left_out(store: Store, form: str | None) -> None:
    publish(store, "a", "b", "c")
    step(store, 3)
    sql = "UPDATE publications SET form = ? WHERE id = 'b'"
    store.database.write(lambda session: session.run(sql, form))
    recent = RecentPublications(store, 10)
    assert ids(recent) == ["a", "c"]
    assert ids(recent) == ["a", "c"]


def interest(name: str, where: str = "n = 1", k: int = 1) -> Interest:
    policy = Policy(k=k)
    return Interest(Subscriber(name, policy), [Subscription("s", name, where=where)])


@pytest.fixture
def replays(store: Store) -> Replays:
    publish(store, "a", "b", "cc")
    step(store, 2)
    return Replays(RecentPublications(store, 10), "0s")


def test_a_replay_is_kept_whatever_the_policy(replays: Replays) -> None:
    [first], [second] = replays.of(interest("ada", k=1)), replays.of(interest("ada", k=5))
    assert second is first
    [other] = replays.of(interest("ada", where="n = 2"))
    assert other is not first
    assert replays.of(interest("ada"), interest("ada", where="n = 2")) == [first, other]


def test_interests_of_several_subscribers_are_told_apart(replays: Replays) -> None:
    ada, bob = replays.of(interest("ada"), interest("bob"))
    assert ada is not bob


def test_preferences_make_another_replay(replays: Replays) -> None:
    owner = Subscriber("ada", Policy(), prefers=[("s", "t")])
    parts = [Subscription(name, "ada", where="n = 1") for name in "st"]
    [plain] = replays.of(Interest(Subscriber("ada", Policy()), parts))
    [preferring] = replays.of(Interest(owner, parts))
    assert plain is not preferring


def test_after_a_step_a_replay_goes_on_with_what_is_new(store: Store, replays: Replays) -> None:
    [first] = replays.of(interest("ada"))
    step(store, 3)
    [second], [third] = replays.of(interest("ada")), replays.of(interest("ada"))
    assert second is not first
    assert third is second


def test_the_replays_that_were_not_asked_for_go_first(replays: Replays) -> None:
    [kept] = replays.of(interest("ada"))
    [lost] = replays.of(interest("bob"))
    for number in range(_REPLAYS - 1):
        replays.of(interest(f"u{number}"))
        assert replays.of(interest("ada"))[0] is kept
    assert replays.of(interest("bob"))[0] is not lost
    assert len(replays._replays) == _REPLAYS
