"""The access index: its answers through any change, and what it looks at and holds."""

from collections.abc import Sequence
from random import Random

import pytest
from tests.index.access.workload import assert_same_answers, event, subscription

from tidings.index.access import Access
from tidings.index.access.query import LAST_EPOCH
from tidings.index.scan import Scan
from tidings.model.records import Event, Subscription


def test_thousands_of_changes_pass_through_segments() -> None:
    """Enough for grids with many cells, merges and reused numbers."""
    chance = Random(5)
    access, scan = Access(), Scan()
    present: list[str] = []
    for step in range(3000):
        new = subscription(step, chance)
        access.add(new)
        scan.add(new)
        present.append(new.id)
        if chance.random() < 0.4:
            removed = present.pop(chance.randrange(len(present)))
            access.remove(removed)
            scan.remove(removed)
        if step % 300 == 0:
            assert_same_answers(access, scan, event(step, chance))
    access.settle()
    assert len(access.snapshot.segments) == 1
    assert_same_answers(access, scan, event(-1, chance))
    for name in present:
        access.remove(name)
        scan.remove(name)
    assert_same_answers(access, scan, event(-2, chance))
    assert len(access.snapshot.segments) == 0


def test_many_changes_at_once_equal_those_one_by_one() -> None:
    chance = Random(8)
    first = [subscription(number, chance) for number in range(400)]
    other = [subscription(number, chance) for number in range(100, 250)]
    access, scan = Access(first), Scan(first)
    access.replace_many(other)
    access.remove_many([f"s{number:05d}" for number in range(80)])
    access.rescore_many({f"s{number:05d}": float(number % 3) for number in range(300, 400)})
    for one in other:
        scan.add(one)
    for number in range(80):
        scan.remove(f"s{number:05d}")
    for one in first[300:]:
        score = float(int(one.id[1:]) % 3)
        scan.add(Subscription(one.id, "u", where=one.where, any=one.any, score=score))
    for number in range(5):
        assert_same_answers(access, scan, event(number, chance))
    access.replace(first[120])
    access.rescore("s00200", 50)
    assert access.subscription(access.matching_many([]).hits.numbers.size - 1) is None
    scan.add(first[120])
    old = other[100]
    scan.add(Subscription(old.id, "u", where=old.where, any=old.any, score=50))
    assert_same_answers(access, scan, event(9, chance))
    assert len(access) == 320


def test_a_batch_gives_the_answers_of_single_events() -> None:
    chance = Random(11)
    access = Access(subscription(number, chance) for number in range(300))
    asked = [event(number, chance) for number in range(20)]
    single = [access.top(one, 4) for one in asked]
    assert access.top_many(asked, 4) == single
    access.settle()
    assert access.top_many(asked, 4) == single
    assert access.top_many([], 4) == []
    assert access.top_relaxed_many(asked, 4) == [access.top_relaxed(one, 4) for one in asked]


def test_a_rescored_subscription_is_built_when_it_is_read() -> None:
    """Also by an answer from before it was removed, and after everything was merged."""
    access = Access(Subscription(f"s{number:03d}", "u", "x = 1", score=1) for number in range(200))
    access.rescore_many({f"s{number:03d}": 1 + number for number in range(100)})
    access.rescore("s150", 500.0)
    subscriptions, one = access.snapshot.table.subscriptions, Event("e", {"x": 1}, 0)
    assert len(subscriptions.scores) == 101
    answer = access.matching_many([one])
    access.remove("s150")
    access.settle()
    scores = {item.id: item.score for item in answer.subscriptions(0)}
    assert scores == {
        f"s{number:03d}": 1 + number if number < 100 else 1 for number in range(200)
    } | {"s150": 500}
    assert len(subscriptions.scores) == 0
    assert len(access.snapshot.table.subscriptions.scores) == 100
    assert {item.id: item.score for item in access.matching(one)} == {
        name: score for name, score in scores.items() if name != "s150"
    }


def test_bytes_count_everything_that_is_held() -> None:
    """The table of ids, lists of pointers, and dicts with their contents."""
    access = Access(Subscription(f"s{number}", "u", f"x = {number}") for number in range(1000))
    snapshot, ids = access.snapshot, access._writer._ids
    segments = sum(segment.nbytes for segment in snapshot.segments)
    assert ids.nbytes >= 4 * 1000
    assert snapshot.table.nbytes >= 2 * (4 + 8) * 1000
    assert snapshot.vocabulary.nbytes >= (32 + 16) * 1000
    tables = ids.nbytes + snapshot.table.nbytes + snapshot.vocabulary.nbytes
    assert access.nbytes == segments + tables + snapshot.memtable.nbytes


class NumberedIds:
    """A stage that keeps the ids by number."""

    def __init__(self) -> None:
        self.present: dict[int, str] = {}

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        for number, one in zip(numbers, subscriptions, strict=True):
            assert number not in self.present
            self.present[number] = one.id

    def on_removed(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self.present[number]


def test_numbers_lead_to_subscriptions_and_listeners_follow() -> None:
    chance = Random(4)
    access, listener = Access(subscription(number, chance) for number in range(100)), NumberedIds()
    access.listen(listener)
    for step in range(100, 900):
        access.add(subscription(step, chance))
        if step % 3:
            access.remove(f"s{step - 60:05d}")
        if step % 200 == 0:
            access.settle()
        if step % 50 == 0:
            asked = [event(number, chance) for number in range(3)]
            answer = access.matching_many(asked)
            starts, numbers, *_ = answer.hits
            for position, published in enumerate(asked):
                own = numbers[starts[position] : starts[position + 1]].tolist()
                assert sorted(listener.present[one] for one in own) == [
                    one.id for one in access.matching(published)
                ]
                assert answer.subscriptions(position) == [access.subscription(one) for one in own]
    assert len(listener.present) == len(access)


def test_an_answer_keeps_subscriptions_that_were_removed() -> None:
    access = Access([Subscription("a", "u", "x = 1"), Subscription("b", "u", "x = 1")])
    answer = access.matching_many([Event("e", {"x": 1}, 0)])
    number = int(answer.hits.numbers[0])
    removed = answer.subscriptions(0)[0].id
    access.remove(removed)
    access.settle()
    access.add(Subscription("c", "u", "x = 1"))
    assert sorted(subscription.id for subscription in answer.subscriptions(0)) == ["a", "b"]
    present = access.subscription(number)
    assert present is None or present.id == "c"


def parts_that_hold(one: Subscription, asked: Event) -> list[int]:
    parts = [part for group in one.groups for part in group]
    return [
        number
        for number, part in enumerate(parts)
        if part.state == "active" and part.predicate.holds(asked.tokens)
    ]


@pytest.mark.parametrize("settle", [True, False])
def test_touching_many_returns_which_predicates_hold(settle: bool) -> None:
    chance = Random(21)
    wanted = [subscription(number, chance) for number in range(700)]
    access = Access(wanted[:600])
    for new in wanted[600:]:
        access.add(new)
    if settle:
        access.settle()
    asked = [event(number, chance) for number in range(4)]
    hits = access.touching_many(asked).hits
    for position, published in enumerate(asked):
        held = {}
        for place in range(hits.starts[position], hits.starts[position + 1]):
            name = access.subscription(int(hits.numbers[place])).id  # type: ignore[union-attr]
            first, last = hits.part_starts[place : place + 2]
            held[name] = sorted(hits.parts[first:last].tolist())
        expected = {one.id: parts_that_hold(one, published) for one in wanted}
        assert held == {name: parts for name, parts in expected.items() if parts}


def test_touching_counts_only_touched_subscriptions() -> None:
    access = Access(
        Subscription(f"s{number:03d}", "u", f"a = {number} or b between {number} and {number}.5")
        for number in range(500)
    )
    before = access.counters()["subscriptions"]
    assert len(access.touching(Event("e", {"a": 7, "b": 9.2}, 0))) == 2
    assert access.counters()["subscriptions"] - before == 2


def test_settling_drops_unused_predicates() -> None:
    access = Access(
        Subscription(f"s{number}", "u", f"a = {number} and b <> 'x'") for number in range(50)
    )
    access.remove_many([f"s{number}" for number in range(1, 50)])
    access.settle()
    assert access.snapshot.vocabulary.terms == 1
    assert access.top(Event("e", {"a": 0, "b": "y"}, 0), 2) == [("s0", 1.0)]
    assert access.top(Event("e", {"a": 0, "b": "x"}, 0), 2) == []


def test_the_rarest_predicate_is_the_access_predicate() -> None:
    access = Access(
        Subscription(f"s{number}", "u", f"common = 'x' and rare = {number}")
        for number in range(1000)
    )
    access.settle()
    access.matching(Event("e", {"common": "x", "rare": 77}, 0))
    assert access.counters()["subscriptions"] == 1
    assert access.snapshot.vocabulary.terms == 1001


def test_settling_uses_the_frequencies_of_events() -> None:
    """`often` looks rare among the subscriptions, but every event has it."""
    access = Access(
        Subscription(f"s{number:03d}", "u", f"often = {number % 5} and seldom = {number % 3}")
        for number in range(300)
    )
    asked = Event("e", {"often": 1}, 0)
    for _ in range(200):
        access.matching(asked)
    before = access.counters()["predicates"]
    access.matching(asked)
    first = access.counters()["predicates"] - before
    access.settle()
    before = access.counters()["predicates"]
    access.matching(asked)
    assert access.counters()["predicates"] - before == 0 < first


def test_the_top_is_found_without_testing_the_rest() -> None:
    access = Access(
        Subscription(f"s{number:04d}", "u", "a = 1", score=number) for number in range(2000)
    )
    asked = Event("e", {"a": 1}, 0)
    best = [(f"s{number}", float(number)) for number in (1999, 1998, 1997)]
    before = access.counters()["subscriptions"]
    assert access.top(asked, 3) == best
    assert access.counters()["subscriptions"] - before <= 64


def test_exhausted_epochs_start_again() -> None:
    access = Access([Subscription("s", "u", "a = 1 and b > 2")])
    asked = Event("e", {"a": 1, "b": 3}, 0)
    assert access.top(asked, 1) == [("s", 1.0)]
    access._idle[0]._epoch[0] = LAST_EPOCH + 1
    for _ in range(3):
        assert access.top(asked, 1) == [("s", 1.0)]
    assert access._idle[0]._epoch[0] < 10
