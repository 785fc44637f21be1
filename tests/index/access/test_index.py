"""The access-predicate index: how it posts, how it changes, what it looks at and gives back."""

from collections.abc import Iterator, Sequence
from math import fsum
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.errors import InvalidSubscription, TidingsError
from tidings.index.access import Access, merge, writer
from tidings.index.access.encoding import encode
from tidings.index.access.memtable import CHECKS, RECORDS
from tidings.index.access.scratch import LAST_EPOCH
from tidings.index.access.segment import Segment
from tidings.index.access.terms import TermCache
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.index.scan import Scan
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Event, Subscription, Weighted


def wish(number: int, chance: Random) -> Subscription:
    parts = [
        f"n{chance.randrange(3)} between {(low := chance.randrange(50))} and {low + 5}",
        f"g{chance.randrange(3)} = 'w{chance.randrange(20)}'",
        f"g{chance.randrange(3)} in ('w{chance.randrange(20)}', 'w{chance.randrange(20)}')",
        f"m = {chance.randrange(10)}",
        f"o >= {chance.randrange(50)}",
        f"g{chance.randrange(3)} like 'w{chance.randrange(4)}%'",
        f"g{chance.randrange(3)} <> 'w{chance.randrange(20)}'",
    ]
    name, score = f"s{number:05d}", chance.randrange(4)
    chosen = chance.sample(parts, chance.randint(1, 3))
    if chance.random() < 0.2:
        return Subscription(
            name, "u", any=[[each, chance.choice([0.1, 0.7, 2])] for each in chosen], score=score
        )
    where = " and ".join(chosen)
    if chance.random() < 0.2:
        where += " or " + chance.choice(parts)
    return Subscription(name, "u", where, score=score)


def event(number: int, chance: Random) -> Event:
    values: dict[str, Any] = {f"n{each}": chance.randrange(60) for each in range(3)}
    values |= {f"g{each}": f"w{chance.randrange(20)}" for each in range(3)}
    values["o"] = chance.randrange(60)
    values["m"] = [chance.randrange(10), chance.randrange(10)]
    return Event(f"e{number}", values, 0)


def compare(access: Access, scan: Scan, asked: Event) -> None:
    for k in (1, 5, 1000):
        assert access.top(asked, k) == scan.top(asked, k)
        assert access.top_relaxed(asked, k) == scan.top_relaxed(asked, k)
    assert access.matching(asked) == scan.matching(asked)
    assert access.touching(asked) == scan.touching(asked)


def test_thousands_come_and_go_through_segments() -> None:
    """Enough for grids with many cells, merges, rebuilds and reused numbers."""
    chance = Random(5)
    access, scan = Access(), Scan()
    there: list[str] = []
    for step in range(3000):
        new = wish(step, chance)
        access.add(new)
        scan.add(new)
        there.append(new.id)
        if chance.random() < 0.4:
            gone = there.pop(chance.randrange(len(there)))
            access.remove(gone)
            scan.remove(gone)
        if step % 300 == 0:
            compare(access, scan, event(step, chance))
    access.settle()
    assert len(access.snapshot.segments) == 1
    compare(access, scan, event(-1, chance))
    for name in there:
        access.remove(name)
        scan.remove(name)
    compare(access, scan, event(-2, chance))
    assert len(access.snapshot.segments) == 0


def test_many_changes_at_once_are_those_one_by_one() -> None:
    chance = Random(8)
    first = [wish(number, chance) for number in range(400)]
    other = [wish(number, chance) for number in range(100, 250)]
    access, scan = Access(first), Scan(first)
    access.replace_many(other)
    access.remove_many([f"s{number:05d}" for number in range(80)])
    access.rescore_many({f"s{number:05d}": float(number % 3) for number in range(300, 400)})
    for each in other:
        scan.add(each)
    for number in range(80):
        scan.remove(f"s{number:05d}")
    for each in first[300:]:
        score = float(int(each.id[1:]) % 3)
        scan.add(Subscription(each.id, "u", where=each.where, any=each.any, score=score))
    for number in range(5):
        compare(access, scan, event(number, chance))
    access.replace(first[120])
    access.rescore("s00200", 50)
    assert access.subscription(access.matching_many([]).hits.numbers.size - 1) is None
    scan.add(first[120])
    old = other[100]
    scan.add(Subscription(old.id, "u", where=old.where, any=old.any, score=50))
    compare(access, scan, event(9, chance))
    assert len(access) == 320


def test_a_wrong_id_is_refused_and_nothing_changes() -> None:
    access = Access([Subscription("a", "u", "x = 1"), Subscription("b", "u", "x = 1")])
    one = Event("e", {"x": 1}, 0)
    for change in (
        lambda: access.remove("c"),
        lambda: access.remove_many(["a", "c"]),
        lambda: access.remove_many(["a", "a"]),
        lambda: access.add(Subscription("a", "u", "x = 2")),
        lambda: access.add_many([Subscription("c", "u", "x = 1"), Subscription("c", "u", "x = 2")]),
        lambda: access.rescore_many({"a": 3, "c": 1}),
        lambda: access.rescore_many({"a": 3, "b": -1}),
    ):
        with pytest.raises(InvalidSubscription):
            change()
        assert access.top(one, 3) == [("a", 1.0), ("b", 1.0)]


def test_many_events_a_call_give_the_answers_of_one_each() -> None:
    chance = Random(11)
    access = Access(wish(number, chance) for number in range(300))
    asked = [event(number, chance) for number in range(20)]
    single = [access.top(each, 4) for each in asked]
    assert access.top_many(asked, 4) == single
    access.settle()
    assert access.top_many(asked, 4) == single
    assert access.top_many([], 4) == []
    assert access.top_relaxed_many(asked, 4) == [access.top_relaxed(each, 4) for each in asked]


def test_a_rescored_subscription_is_made_when_asked_for() -> None:
    """Also by an answer from before it went, and after everything was built anew."""
    access = Access(Subscription(f"s{each:03d}", "u", "x = 1", score=1) for each in range(200))
    access.rescore_many({f"s{each:03d}": 1 + each for each in range(100)})
    access.rescore("s150", 500.0)
    subscriptions, one = access.snapshot.table.subscriptions, Event("e", {"x": 1}, 0)
    assert len(subscriptions.scores) == 101
    found = access.matching_many([one])
    access.remove("s150")
    access.settle()
    scores = {each.id: each.score for each in found.subscriptions(0)}
    assert scores == {f"s{each:03d}": 1 + each if each < 100 else 1 for each in range(200)} | {
        "s150": 500
    }
    assert len(subscriptions.scores) == 0
    assert len(access.snapshot.table.subscriptions.scores) == 100
    assert {each.id: each.score for each in access.matching(one)} == {
        name: score for name, score in scores.items() if name != "s150"
    }


def test_a_listener_hears_the_new_score() -> None:
    heard = list[Subscription]()

    class Ear:
        def on_added(self, _: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
            heard.extend(subscriptions)

        def on_removed(self, numbers: Sequence[int]) -> None:
            assert len(numbers) == 1

    access = Access([Subscription("a", "u", "x = 1")])
    access.listen(Ear())
    access.rescore("a", 7)
    assert [each.score for each in heard] == [None, 7.0]


def test_bytes_count_what_is_kept() -> None:
    """The table of ids, lists of pointers, and dicts with what is in them."""
    access = Access(Subscription(f"s{each}", "u", f"x = {each}") for each in range(1000))
    snapshot, ids = access.snapshot, access._writer._ids
    segments = sum(segment.nbytes for segment in snapshot.segments)
    assert ids.nbytes >= 4 * 1000
    assert snapshot.table.nbytes >= 2 * (4 + 8) * 1000
    assert snapshot.vocabulary.nbytes >= (32 + 16) * 1000
    tables = ids.nbytes + snapshot.table.nbytes + snapshot.vocabulary.nbytes
    assert access.nbytes == segments + tables + snapshot.memtable.nbytes


class Side:
    """A stage that keeps who has which number."""

    def __init__(self) -> None:
        self.there: dict[int, str] = {}

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        for number, each in zip(numbers, subscriptions, strict=True):
            assert number not in self.there
            self.there[number] = each.id

    def on_removed(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self.there[number]


def test_numbers_lead_to_subscriptions_and_a_listener_knows_them() -> None:
    chance = Random(4)
    access, side = Access(wish(number, chance) for number in range(100)), Side()
    access.listen(side)
    for step in range(100, 900):
        access.add(wish(step, chance))
        if step % 3:
            access.remove(f"s{step - 60:05d}")
        if step % 200 == 0:
            access.settle()
        if step % 50 == 0:
            asked = [event(number, chance) for number in range(3)]
            found = access.matching_many(asked)
            starts, numbers, *_ = found.hits
            for at, each in enumerate(asked):
                mine = numbers[starts[at] : starts[at + 1]].tolist()
                assert sorted(side.there[one] for one in mine) == [
                    one.id for one in access.matching(each)
                ]
                assert found.subscriptions(at) == [access.subscription(one) for one in mine]
    assert len(side.there) == len(access)


def test_an_answer_keeps_its_subscriptions_when_they_are_gone() -> None:
    access = Access([Subscription("a", "u", "x = 1"), Subscription("b", "u", "x = 1")])
    found = access.matching_many([Event("e", {"x": 1}, 0)])
    number = int(found.hits.numbers[0])
    gone = found.subscriptions(0)[0].id
    access.remove(gone)
    access.settle()
    access.add(Subscription("c", "u", "x = 1"))
    assert sorted(each.id for each in found.subscriptions(0)) == ["a", "b"]
    there = access.subscription(number)
    assert there is None or there.id == "c"


def parts_that_hold(each: Subscription, asked: Event) -> list[int]:
    parts = [part for group in each.groups for part in group]
    return [
        at
        for at, part in enumerate(parts)
        if part.state == "active" and part.predicate.holds(asked.tokens)
    ]


@pytest.mark.parametrize("settle", [True, False])
def test_touching_many_says_which_predicates_hold(settle: bool) -> None:
    chance = Random(21)
    wishes = [wish(number, chance) for number in range(700)]
    access = Access(wishes[:600])
    for new in wishes[600:]:
        access.add(new)
    if settle:
        access.settle()
    asked = [event(number, chance) for number in range(4)]
    hits = access.touching_many(asked).hits
    for at, each in enumerate(asked):
        held = {}
        for place in range(hits.starts[at], hits.starts[at + 1]):
            name = access.subscription(int(hits.numbers[place])).id  # type: ignore[union-attr]
            held[name] = sorted(
                hits.parts[hits.part_starts[place] : hits.part_starts[place + 1]].tolist()
            )
        assert held == {one.id: right for one in wishes if (right := parts_that_hold(one, each))}


def test_touching_looks_only_at_what_is_touched() -> None:
    access = Access(
        Subscription(f"s{each:03d}", "u", f"a = {each} or b between {each} and {each}.5")
        for each in range(500)
    )
    before = access.counters()["subscriptions"]
    assert len(access.touching(Event("e", {"a": 7, "b": 9.2}, 0))) == 2
    assert access.counters()["subscriptions"] - before == 2


def test_memory_is_given_back() -> None:
    chance = Random(3)
    empty = Access().nbytes
    access = Access(wish(number, chance) for number in range(2000))
    access.settle()
    full = access.nbytes
    for number in range(2000):
        if number % 10:
            access.remove(f"s{number:05d}")
    assert access.nbytes - empty < full / 2
    access.remove_many([f"s{number:05d}" for number in range(0, 2000, 10)])
    assert access.nbytes == empty
    assert access.snapshot.vocabulary.attributes == {}


def test_a_vocabulary_forgets_what_nobody_uses() -> None:
    access = Access(Subscription(f"s{each}", "u", f"a = {each} and b <> 'x'") for each in range(50))
    access.remove_many([f"s{each}" for each in range(1, 50)])
    access.settle()
    assert access.snapshot.vocabulary.terms == 1
    assert access.top(Event("e", {"a": 0, "b": "y"}, 0), 2) == [("s0", 1.0)]
    assert access.top(Event("e", {"a": 0, "b": "x"}, 0), 2) == []


def test_the_rare_predicate_gives_access_and_equal_ones_share_a_number() -> None:
    access = Access(
        Subscription(f"s{each}", "u", f"common = 'x' and rare = {each}") for each in range(1000)
    )
    access.settle()
    access.matching(Event("e", {"common": "x", "rare": 77}, 0))
    assert access.counters()["subscriptions"] == 1
    assert access.snapshot.vocabulary.terms == 1001


def test_what_events_show_decides_at_the_next_settling() -> None:
    """`often` looks rare among the subscriptions, but every event has it."""
    access = Access(
        Subscription(f"s{each:03d}", "u", f"often = {each % 5} and seldom = {each % 3}")
        for each in range(300)
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


def test_the_top_is_found_without_the_rest() -> None:
    access = Access(Subscription(f"s{each:04d}", "u", "a = 1", score=each) for each in range(2000))
    asked, best = (
        Event("e", {"a": 1}, 0),
        [(f"s{each}", float(each)) for each in (1999, 1998, 1997)],
    )
    before = access.counters()["subscriptions"]
    assert access.top(asked, 3) == best
    assert access.counters()["subscriptions"] - before <= 64


def test_epochs_may_begin_anew() -> None:
    access = Access([Subscription("s", "u", "a = 1 and b > 2")])
    asked = Event("e", {"a": 1, "b": 3}, 0)
    assert access.top(asked, 1) == [("s", 1.0)]
    access._idle[0]._epoch[0] = LAST_EPOCH + 1
    for _ in range(3):
        assert access.top(asked, 1) == [("s", 1.0)]
    assert access._idle[0]._epoch[0] < 10


def test_values_met_lately_are_few_and_forgotten_when_entries_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidings.index.access.terms.MOST_TEXTS", 100)
    access = Access([Subscription("s1", "u", "a like 'x%'")])
    caches: set[TermCache] = set()
    for number in range(500):
        assert len(access.matching(Event("e", {"a": f"x{number}y"}, 0))) == 1
        caches.add(access.snapshot.vocabulary.cache)
    assert 4 <= len(caches) <= 6
    access.add(Subscription("s2", "u", "a like '%y'"))
    assert len(access.matching(Event("e", {"a": "x499y"}, 0))) == 2
    access.remove("s1")
    assert [each.id for each in access.matching(Event("e", {"a": "x499y"}, 0))] == ["s2"]


def test_a_subscription_too_large_for_the_tail_is_a_segment() -> None:
    large = [Weighted(predicate("a", "=", number), 0.5) for number in range(CHECKS + 1)]
    access = Access()
    access.add(Subscription("s", "u", any=large))
    assert len(access.snapshot.segments) == 1
    assert access.top_relaxed(Event("e", {"a": [1, 2, 299]}, 0), 1) == [("s", 1.5)]
    hits = access.touching_many([Event("e", {"a": [1, 2, 299]}, 0)]).hits
    assert sorted(hits.parts.tolist()) == [1, 2, 299]


@given(st.lists(st.floats(-1e300, 1e300)))
def test_ordered_numbers_have_the_order_of_floats(values: list[float]) -> None:
    found = ordered(np.array(values))
    assert np.array_equal(np.argsort(found, kind="stable"), np.argsort(values, kind="stable"))
    assert ordered(-0.0) == ordered(0.0)


@given(st.lists(st.floats(0, 1e100) | st.sampled_from([0.1, 0.2, 0.7, 1e16, 1.0])))
def test_sums_are_those_of_fsum(values: list[float]) -> None:
    partials, size = np.zeros(len(values) + 1), 0
    for value in values:
        size = sum_add(partials, size, value)
    assert sum_total(partials, size) == fsum(values)


def states(chance: Random) -> Iterator[tuple[list[str], list[Subscription]]]:
    """Draw changes: who goes, and who comes."""
    there: list[str] = []
    for step in range(120):
        come = [wish(100 * step + number, chance) for number in range(chance.choice([1, 5, 90]))]
        gone = [there.pop(chance.randrange(len(there))) for _ in range(min(len(there), 20))]
        there += [each.id for each in come]
        yield gone, come


@pytest.mark.slow
def test_who_reads_while_it_changes_sees_one_state(  # noqa: C901 - readers and a writer
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every answer is that of a state between the one before the question and the one after it."""
    monkeypatch.setattr(writer, "SMALL", 300)  # so that the thread has work
    chance = Random(17)
    asked = [event(number, chance) for number in range(4)]
    access, scan = Access(), Scan()
    right = [[(scan.top(each, 9), scan.matching(each)) for each in asked]]
    changes = list(states(Random(6)))
    for gone, come in changes:
        for name in gone:
            scan.remove(name)
        for new in come:
            scan.add(new)
        right.append([(scan.top(each, 9), scan.matching(each)) for each in asked])
    done, wrong = [0], list[Any]()

    def read() -> None:
        while done[0] < len(changes) and not wrong:
            first = done[0]
            tops, found = access.top_many(asked, 9), access.matching_many(asked)
            allowed = right[first : done[0] + 2]
            if tops not in [[top for top, _ in each] for each in allowed]:
                wrong.append(("tops", first))
            got = [sorted(found.subscriptions(at), key=lambda one: one.id) for at in range(4)]
            if got not in [[matching for _, matching in each] for each in allowed]:
                wrong.append(("matching", first))

    readers = [Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for gone, come in changes:
        access._writer.change(gone, come)
        done[0] += 1
    for reader in readers:
        reader.join()
    access.close()
    assert wrong == []
    assert access.top_many(asked, 9) == [top for top, _ in right[-1]]
    assert "no merge is running" in access.describe()


def test_a_rebuild_that_fails_is_told_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SMALL", 10)

    def fail(_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(merge.MergeJob, "build", fail)
        access = Access(wish(number, Random(number)) for number in range(100))
        access.add_many([wish(number, Random(number)) for number in range(100, 190)])
        access.close()
        with pytest.raises(TidingsError, match="no room"):
            access.add(wish(500, Random(5)))
    scan = Scan(wish(number, Random(number)) for number in range(190))
    access.settle()
    compare(access, scan, event(1, Random(1)))


def told_once(access: Access, gone: Sequence[str], come: Sequence[Subscription]) -> bool:
    """Make a change, if need be after a failure was told; wait for what it brings about."""
    told = False
    try:
        access._writer.change(gone, come)
    except TidingsError:
        told = True
        access._writer.change(gone, come)
    waiting = Thread(target=access.close, daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()
    return told


@pytest.mark.parametrize("step", ["copy_tombstones", "merged_snapshot", "Thread"])
@pytest.mark.parametrize("small", [10, 10**6])
def test_a_swap_that_fails_is_told_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, step: str, small: int
) -> None:
    """Wherever it fails, in the thread or while a change waits: nobody hangs, and it goes on."""
    monkeypatch.setattr(writer, "SMALL", small)
    every = [wish(number, Random(number)) for number in range(300)]
    access, scan = Access(every[:100]), Scan(every[150:])

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(writer, step, fail)
        told = [
            told_once(access, [], every[100:200]),
            told_once(access, [each.id for each in every[:150]], []),
            told_once(access, [], every[200:]),
        ]
    assert any(told) == ((step, small) != ("Thread", 10**6))
    assert "no merge is running" in access.describe()
    compare(access, scan, event(1, Random(1)))
    told_once(access, [every[299].id], [every[299]])
    access.settle()
    assert len(access.snapshot.segments) == 1
    compare(access, scan, event(1, Random(1)))


def test_a_segment_that_finds_no_room_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(wish(number, Random(number)) for number in range(100))
    access.add_many([wish(number, Random(number)) for number in range(100, 130)])
    scan = Scan(wish(number, Random(number)) for number in range(130))
    words, table, homes = access.snapshot.vocabulary, access.snapshot.table, access._writer._homes
    made = Segment(encode([wish(7, Random(7))], [7], words), words)
    before = table.home.tolist(), table.place.tolist()

    def fail(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(np, "arange", fail)
        with pytest.raises(MemoryError):
            access._writer._housed(access.snapshot, [*access.snapshot.segments, made])
    assert (table.home.tolist(), table.place.tolist()) == before
    assert access._writer._homes is homes
    compare(access, scan, event(1, Random(1)))


def test_an_id_that_is_given_twice_is_named() -> None:
    access = Access([Subscription("s0", "u", "a = 1")])
    two = [Subscription("s1", "u", f"a = {number}") for number in range(2)]
    for gone, come, name in (([], two, "s1"), (["s0", "s0"], [], "s0")):
        with pytest.raises(InvalidSubscription, match=f"'{name}' occurs twice; .* an id once"):
            access._writer.change(gone, come)
    assert len(access) == 1


def test_segments_are_few_and_the_tail_is_short() -> None:
    with Access() as access:
        for number in range(3 * RECORDS):
            access.add(wish(number, Random(number)))
        assert access.snapshot.memtable.count <= RECORDS
        assert 1 <= len(access.snapshot.segments) <= 3


def test_a_vocabulary_gives_equal_predicates_one_check() -> None:
    vocabulary = Vocabulary()
    (one,) = Subscription("s", "u", "a = 'x'").conjunctions[0]
    (other,) = Subscription("t", "u", "a = 'x'").conjunctions[0]
    assert vocabulary.check(one) == vocabulary.check(other)
    assert vocabulary.terms == 1
