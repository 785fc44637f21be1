"""The intake: each id once, numbers without gaps, times that are never late."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidings import Event
from tidings.errors import StoreError
from tidings.store import EngineStep, NewPublication, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import Checkpoint


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def event(name: str, at: float = 0, **attributes: object) -> NewPublication:
    return NewPublication(Event(name, attributes, at))


def forms(store: Store) -> list[tuple[int, str, str]]:
    page = [(number, json.loads(form or "null")) for number, form in store.publications.after(0)]
    return [(number, form["id"], form["published_at"]) for number, form in page]


def test_an_id_is_accepted_once(store: Store) -> None:
    accept = store.publications.accept
    assert accept([event("a", 1), event("b", 2), event("a", 3)], 0) == [True, True, False]
    assert accept([event("b", 4), event("c", 5)], 0) == [False, True]
    assert accept([event("a", 4)], 0) == [False]
    assert [(number, name) for number, name, _ in forms(store)] == [(1, "a"), (2, "b"), (3, "c")]
    assert store.publications.last() == 3


def test_an_event_without_a_time_is_never_late(store: Store) -> None:
    untimed = [NewPublication(Event(name, {}, 0), timed=False) for name in "ab"]
    store.publications.accept([untimed[0], event("later", 10), untimed[1]], 5_000_000)
    times = [time for _, _, time in forms(store)]
    assert times == ["1970-01-01T00:00:05Z", "1970-01-01T00:00:10Z", "1970-01-01T00:00:10Z"]


def test_writers_at_the_same_time_leave_no_gap(store: Store) -> None:
    def work(name: int) -> int:
        return sum(sum(store.publications.accept([event(f"{name % 3}-{n}")], 0)) for n in range(5))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(6))) == 15
    assert [number for number, _, _ in forms(store)] == list(range(1, 16))


def test_pages_are_bounded(store: Store) -> None:
    store.publications.accept([event(str(n)) for n in range(9)], 0)
    assert [publication.number for publication in store.publications.after(3, 2)] == [4, 5]
    assert [publication.number for publication in store.publications.after(3, 9, upto=5)] == [4, 5]


def test_an_id_that_no_database_holds_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="at most 1000 bytes"):
        store.publications.accept([event("x" * 1001)], 0)


def test_only_publications_before_a_checkpoint_are_pruned(store: Store) -> None:
    store.publications.accept([event("a"), event("b")], 0)
    assert store.publications.prune(1) == 0
    step = EngineStep(1, None, 0, 1)
    assert store.log.append(step, BatchAppend.of("local", 1, (), late=(), dead=()))
    store.log.save(Checkpoint(step, "{}"))
    assert store.publications.prune(1) == 1
    assert [publication.form is None for publication in store.publications.after(0)] == [
        True,
        False,
    ]
    assert store.publications.accept([event("a")], 0) == [False]
