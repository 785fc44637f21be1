"""Boxes, the rest, or the access index: the k best subscriptions are those of a scan."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Event as Flag
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Engine, Event, Exact, InvalidEvent, InvalidForm, Relaxed, Subscription
from tidings.formats.arrow import TARGETS_BY_EVENT, read_events
from tidings.rank import target_index
from tidings.rank.matcher import Matcher
from tidings.rank.target_index import Targets, TopColumns, ranges_of

numbers = st.sampled_from([-1, 0, 0.5, 1, 2, 3])
ranges = st.one_of(
    st.tuples(st.sampled_from("abc"), st.sampled_from([">=", "<=", ">", "<", "="]), numbers).map(
        lambda part: f"{part[0]} {part[1]} {part[2]}"
    ),
    st.tuples(st.sampled_from("abc"), st.integers(-1, 1)).map(
        lambda part: f"{part[0]} between {part[1]} and {part[1] + 1}"
    ),
)
others = st.sampled_from(["d = 'x'", "d != 1", "e is null", "d in (1, 2)", "d = 1 or e = 2"])


@st.composite
def subscriptions(draw: Any) -> Subscription:
    name = draw(st.sampled_from([f"s{number}" for number in range(12)]))
    score = draw(st.sampled_from([None, 0.0, 0.5, 2.0]))
    entries = st.lists(st.tuples(ranges, st.sampled_from([0.0, 0.2, 0.7])), max_size=3)
    parts: list[tuple[str, float]] = draw(entries)
    if parts and draw(st.integers(0, 1)):
        return Subscription(name, "u", any=[list(part) for part in parts], score=score)
    texts = {text.split()[0]: text for text, _ in parts}  # bounds that fold may exclude each other
    if draw(st.integers(0, 3)) == 0:
        texts["other"] = f"({draw(others)})"
    return Subscription(name, "u", " and ".join(texts.values()) or "a >= 0", score=score)


values = st.one_of(numbers, numbers, numbers, st.sampled_from(["x", True, [0, 2], []]))
events = st.builds(
    lambda attributes, chance: Event(
        "e",
        attributes,
        published_at=0,
        probabilities={"a": 0.5} if chance and "a" in attributes else {},
    ),
    st.dictionaries(st.sampled_from("abcde"), values),
    st.integers(0, 9).map(lambda number: number == 0),
)
whole = st.fixed_dictionaries(dict.fromkeys("abc", numbers)).map(
    lambda attributes: Event("e", attributes, published_at=0)
)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build boxes for the first event, and always find them faster."""
    monkeypatch.setattr(target_index, "LEAST", 1)
    monkeypatch.setattr(target_index, "ASKED", 1)
    times = iter(range(1, 10**9))
    monkeypatch.setattr(target_index, "least_seconds", lambda _: next(times))


def matcher_of(some: list[Subscription], index: str) -> Matcher:
    return Matcher((), {one.id: one for one in some}.values(), index)


def told(matcher: Matcher) -> str:
    """Return why which structures answer targets."""
    assert matcher.targets is not None
    return "\n".join(map(str, matcher.targets.describe()))


def change(matcher: Matcher, new: Subscription) -> None:
    """Add a subscription, replace it, or remove it, each by whether it is there."""
    present = matcher.subscriptions.get(new.id)
    if present is None:
        matcher.add(new)
    elif present.score == new.score:
        matcher.remove(new.id)
    else:
        matcher.replace(new)


@settings(max_examples=60)
@given(
    some=st.lists(subscriptions(), min_size=1, max_size=12),
    more=st.lists(subscriptions(), max_size=4),
    asked=st.lists(events | whole, min_size=1, max_size=5),
    k=st.integers(1, 5),
    scorer=st.sampled_from([Exact(), Relaxed()]),
)
def test_the_best_are_those_of_a_scan(some, more, asked, k, scorer):
    fast, scan = matcher_of(some, "access"), matcher_of(some, "scan")
    assert fast.targets is not None
    for step in range(len(more) + 1):
        for matcher in (fast, scan) if step else ():
            change(matcher, more[step - 1])
        expected = [scan.top(event, k, scorer) for event in asked]
        for _ in range(3):  # by the access index, then by boxes if there are some
            assert fast.top_many(asked, k, scorer) == expected
            assert [fast.top(event, k, scorer) for event in asked] == expected
            fast.targets.settle()


cells = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
rows = st.fixed_dictionaries({"a": cells, "b": cells, "d": st.sampled_from([None, "x", "y"])})


def events_of(table: pa.Table) -> list[Event]:
    return [record for record in read_events(table) if isinstance(record, Event)]


@settings(max_examples=40)
@given(
    some=st.lists(subscriptions(), min_size=1, max_size=12, unique_by=lambda one: one.id),
    dead=st.booleans(),
    asked=st.lists(rows, max_size=5),
    k=st.integers(1, 40),
    scorer=st.sampled_from(["exact", "relaxed", "preference"]),
)
def test_a_table_has_the_targets_of_its_rows(some, dead, asked, k, scorer):
    engine = Engine(index="access", default_policy=None)
    engine.add_many(some)
    columns = {name: [row[name] for row in asked] for name in ("a", "b", "d")}
    table = pa.table(
        {
            "id": pa.array([f"e{row}" for row in range(len(asked))], pa.string()),
            "published_at": pa.array([0] * len(asked), pa.timestamp("us")),
            "a": pa.array(columns["a"], pa.float64()),
            "b": pa.array(columns["b"], pa.float64()),
            "d": pa.array(columns["d"], pa.string()),
        }
    )
    targets = engine._stages.matcher.targets
    assert targets is not None
    for turn in range(3):  # by the access index, by boxes, and after one has died
        if turn == 2 and dead:
            engine.remove(some[0].id)
        expected = engine.target_many(events_of(table), k, scorer)
        found = engine.target_table(table, k, scorer)
        assert found.schema == TARGETS_BY_EVENT
        found.validate(full=True)
        assert found["event"].to_pylist() == table["id"].to_pylist()
        lists = zip(found["subscription"].to_pylist(), found["score"].to_pylist(), strict=True)
        assert [list(zip(*pair, strict=True)) for pair in lists] == expected
        targets.settle()


def test_boxes_answer_a_table_without_events(monkeypatch):
    engine = Engine(index="access", default_policy=None)
    engine.add_many([Subscription(f"s{n}", "u", f"a >= {n}", score=n) for n in range(100)])
    table = pa.table({"id": ["e1", "e2"], "published_at": [0, 0], "a": [2.5, None]})
    table = table.set_column(1, "published_at", table["published_at"].cast(pa.timestamp("us")))
    for _ in range(2):
        expected = engine.target_table(table, 2).to_pylist()
        targets = engine._stages.matcher.targets
        assert targets is not None
        targets.settle()
    monkeypatch.setattr(Engine, "target_many", None)
    assert engine.target_table(table, 2).to_pylist() == expected
    assert expected == [
        {"event": "e1", "subscription": ["s2", "s1"], "score": [2.0, 1.0]},
        {"event": "e2", "subscription": [], "score": []},
    ]
    assert engine.target_table(table.to_batches()[0], 1)["score"].to_pylist() == [[2.0], []]


def test_a_table_with_a_row_that_is_no_event_is_refused():
    engine = Engine(index="access")
    table = pa.table({"id": ["e1", None], "published_at": [0, 0]})
    with pytest.raises(InvalidEvent, match="id is missing"):
        engine.target_table(table)
    with pytest.raises(InvalidForm, match="published_at"):
        engine.target_table(table.select(["id"]))
    with pytest.raises(InvalidForm, match="Arrow table"):
        engine.target_table([])
    assert engine.target_table(table.slice(0, 0)).num_rows == 0


@settings(max_examples=30)
@given(
    bounds=st.lists(
        st.tuples(numbers, st.integers(0, 2), st.sampled_from([0.0, 0.5, 2.0])), min_size=2
    ),
    gone=st.integers(0, 3),
    asked=st.lists(st.dictionaries(st.sampled_from("ab"), numbers), min_size=1, max_size=5),
    k=st.integers(1, 5),
)
def test_ranges_of_one_attribute_are_intervals(bounds, gone, asked, k):
    some = [
        Subscription(f"s{n:02d}", "u", f"a between {low} and {low + wide}", score=score)
        for n, (low, wide, score) in enumerate(bounds)
    ]
    fast, scan = matcher_of(some, "access"), matcher_of(some, "scan")
    assert fast.targets is not None
    events = [Event("e", attributes, published_at=0) for attributes in asked]
    for removed in [None, *range(min(gone, len(some) - 1))]:
        for matcher in () if removed is None else (fast, scan):
            matcher.remove(f"s{removed:02d}")
        expected = [scan.top(event, k, Exact()) for event in events]
        assert fast.top_many(events, k, Exact()) == expected
        fast.targets.settle()
        assert fast.top_many(events, k, Exact()) == expected
        rows = np.array([[attributes.get("a", np.nan)] for attributes in asked], np.float64)
        columns = fast.targets.top_rows(rows_for(rows), k, Exact())
        assert columns is None or pairs_of(columns) == expected
    assert "intervals, since they are" in told(fast)


def rows_for(rows: Any) -> Callable[[Sequence[str]], Any]:
    return lambda _: rows


def pairs_of(columns: TopColumns) -> list[list[tuple[str, float]]]:
    names, starts = columns.subscription.to_pylist(), columns.starts.tolist()
    pairs = list(zip(names, columns.score.tolist(), strict=True))
    return [pairs[first:last] for first, last in pairwise(starts)]


def boxes_of(count: int) -> Matcher:
    some = [
        Subscription(f"s{n:03d}", "u", f"a >= {n % 7} and b <= {n % 5}", score=float(n % 3))
        for n in range(count)
    ]
    return Matcher((), some, "access")


def answers(matcher: Matcher) -> list[Any]:
    asked = [Event("e", {"a": n % 7, "b": n % 5}, published_at=0) for n in range(20)]
    found = matcher.top_many(asked, 5, Exact())
    assert matcher.targets is not None
    matcher.targets.settle()
    return found


def test_boxes_are_used_and_described():
    matcher = boxes_of(100)
    assert matcher.targets is not None
    assert "exact: access, since few events were asked for" in told(matcher)
    first = answers(matcher)
    assert "exact: 100 boxes, since they are" in told(matcher)
    assert "relaxed: access" in told(matcher)
    assert answers(matcher) == first


def test_kept_pairs_are_dropped_when_they_are_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(target_index, "MOST_KEPT", 2)
    matcher = boxes_of(100)
    first = answers(matcher)
    assert [answers(matcher) for _ in range(3)] == [first] * 3


def test_boxes_are_built_again_when_many_are_newer():
    matcher = boxes_of(40)
    answers(matcher)
    matcher.add_many(Subscription(f"t{n}", "u", "a >= 0", score=9.0) for n in range(20))
    assert matcher.targets is not None
    assert "many subscriptions are newer" in told(matcher)
    assert answers(matcher)[0][0] == ("t0", 9.0)
    assert "60 boxes" in told(matcher)


def test_boxes_that_are_slower_are_not_used(monkeypatch: pytest.MonkeyPatch):
    times = iter(range(10**9, 0, -1))
    monkeypatch.setattr(target_index, "least_seconds", lambda _: next(times))
    matcher = boxes_of(40)
    assert answers(matcher) == answers(matcher)
    assert matcher.targets is not None
    assert "exact: access, since boxes are" in told(matcher)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [("d = 'x'", "0 of 40 conditions are ranges"), ("a >= 1", "too much memory")],
)
def test_what_boxes_do_not_suit_is_said(monkeypatch, condition, reason):
    monkeypatch.setattr(target_index, "MOST_CELLS", 10)
    matcher = Matcher((), [Subscription(f"s{n}", "u", condition) for n in range(40)], "access")
    answers(matcher)
    assert matcher.targets is not None
    assert reason in told(matcher)


def test_a_change_that_fails_makes_the_boxes_unknown(monkeypatch: pytest.MonkeyPatch):
    matcher = boxes_of(40)
    first = answers(matcher)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(matcher._access, "add_many", fail)
        with pytest.raises(MemoryError):
            matcher.add(Subscription("t", "u", "a >= 0", score=9.0))
    assert matcher.targets is not None
    assert "exact: access" in told(matcher)
    assert answers(matcher) == first


def test_boxes_that_cannot_be_built_yet_are_built_later(monkeypatch: pytest.MonkeyPatch):
    def cannot_start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    matcher = boxes_of(40)
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", cannot_start)
        first = answers(matcher)
    assert "exact: access" in told(matcher)
    assert answers(matcher) == first
    assert "exact: 40 boxes, since they are" in told(matcher)


def test_answers_beside_changes_are_those_before_or_after():
    matcher, stop, wrong = boxes_of(60), Flag(), list[Any]()
    answers(matcher)
    event = Event("e", {"a": 6, "b": 0}, published_at=0)
    old, new = ("s000", 0.0), ("s000", 7.0)
    best = {score: matcher.top(event, 60, Exact()) for score in (0.0,)}[0.0]
    assert old in best

    def ask() -> None:
        while not stop.is_set():
            found = matcher.top(event, 60, Exact())
            if (old in found) == (new in found) or len(found) != len(best):
                wrong.append(found)

    readers = [Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(40):
        score = 7.0 if step % 2 == 0 else 0.0
        matcher.replace(Subscription("s000", "u", "a >= 0 and b <= 0", score=score))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_ranges_are_conjunctions_of_numbers():
    assert ranges_of(Subscription("s", "u", "a > 1 and a <= 2 and b = 3")) is not None
    for condition in ("a > 1 or b > 1", "a = 'x'", "a != 1", "a = 1 and b is null"):
        assert ranges_of(Subscription("s", "u", condition)) is None
    twice = Subscription("s", "u", any=[["a >= 1", 1], ["a >= 2", 1]])
    assert ranges_of(twice) is None


def test_few_events_build_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(target_index, "ASKED", 1000)
    matcher = boxes_of(40)
    answers(matcher)
    assert isinstance(matcher.targets, Targets)
    assert "few events" in told(matcher)
