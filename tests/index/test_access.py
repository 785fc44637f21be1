"""The access-predicate index: how it posts, how it merges, what it looks at and gives back."""

from random import Random
from typing import Any

from tidings.index.access import Access
from tidings.index.scan import Scan
from tidings.index.vocabulary import KNOWN, Vocabulary
from tidings.model import Event, Subscription


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
    where = " and ".join(chance.sample(parts, chance.randint(1, 3)))
    if chance.random() < 0.2:
        where += " or " + chance.choice(parts)
    return Subscription(f"s{number:05d}", "u", where, score=chance.randrange(4))


def event(number: int, chance: Random) -> Event:
    values: dict[str, Any] = {f"n{each}": chance.randrange(60) for each in range(3)}
    values |= {f"g{each}": f"w{chance.randrange(20)}" for each in range(3)}
    values["o"] = chance.randrange(60)
    values["m"] = [chance.randrange(10), chance.randrange(10)]
    return Event(f"e{number}", values, 0)


def compare(access: Access, scan: Scan, asked: Event) -> None:
    for k in (1, 5, 1000):
        assert access.top(asked, k) == scan.top(asked, k)
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
        if step % 150 == 0:
            compare(access, scan, event(step, chance))
    access.settle()
    assert len(access.segments) == 1
    compare(access, scan, event(-1, chance))
    for name in there:
        access.remove(name)
        scan.remove(name)
    compare(access, scan, event(-2, chance))
    assert access.segments == []


def test_many_events_a_call_give_the_answers_of_one_each() -> None:
    chance = Random(11)
    access = Access(wish(number, chance) for number in range(300))
    asked = [event(number, chance) for number in range(20)]
    single = [access.top(each, 4) for each in asked]
    assert access.top_many(asked, 4) == single
    access.settle()
    assert access.top_many(asked, 4) == single
    assert access.top_many([], 4) == []


def test_segments_are_few() -> None:
    access = Access(waiting=0)
    for number in range(500):
        access.add(wish(number, Random(number)))
        access.matching(event(number, Random(number)))
    assert len(access.segments) <= 10


def test_memory_is_given_back() -> None:
    chance = Random(3)
    access = Access()
    for number in range(2000):
        access.add(wish(number, chance))
    access.settle()
    full = access.nbytes
    for number in range(2000):
        if number % 10:
            access.remove(f"s{number:05d}")
    assert access.segments[0].nbytes < full / 4
    for number in range(0, 2000, 10):
        access.remove(f"s{number:05d}")
    vocabulary = access.vocabulary
    assert (access.segments, vocabulary._sides, vocabulary._entries) == ([], {}, {})


def test_the_rare_predicate_gives_access_and_equal_ones_share_a_number() -> None:
    chance = Random(1)
    access = Access(
        Subscription(f"s{each}", "u", f"common = 'x' and rare = {each}") for each in range(1000)
    )
    access.settle()
    access.matching(Event("e", {"common": "x", "rare": chance.randrange(1000)}, 0))
    assert access.counters()["subscriptions"] == 1
    assert len(access.vocabulary._entries) == 1001


def test_what_events_show_decides_at_the_next_settling() -> None:
    """`often` looks rare among the subscriptions, but every event has it."""
    access = Access(
        Subscription(f"s{each:03d}", "u", f"often = {each % 5} and seldom = {each % 3}")
        for each in range(300)
    )
    asked = Event("e", {"often": 1}, 0)
    access.settle()
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
    access.settle()
    found = access.top(Event("e", {"a": 1}, 0), 3)
    assert found == [("s1999", 1999.0), ("s1998", 1998.0), ("s1997", 1997.0)]
    assert access.counters()["subscriptions"] == 3


def test_epochs_may_begin_anew() -> None:
    access = Access([Subscription("s", "u", "a = 1 and b > 2")], waiting=0)
    asked = Event("e", {"a": 1, "b": 3}, 0)
    assert access.top(asked, 1) == [("s", 1.0)]
    access.vocabulary.marks.epoch[0] = 2_000_000_001
    for _ in range(3):
        assert access.top(asked, 1) == [("s", 1.0)]
    assert access.vocabulary.marks.epoch[0] == 3


def test_values_met_lately_are_few_and_forgotten_when_entries_change() -> None:
    vocabulary = Vocabulary()
    (first,) = Subscription("s", "u", "a like 'x%'").conjunctions[0]
    (second,) = Subscription("s", "u", "a like '%y'").conjunctions[0]
    vocabulary.use(first)
    for number in range(2 * KNOWN):
        vocabulary.say([Event("e", {"a": f"x{number}"}, 0)])
    assert len(vocabulary._sides["a"]["string"].known) <= KNOWN
    assert len(vocabulary.say([Event("e", {"a": "xy"}, 0)]).ids) == 1
    vocabulary.use(second)
    assert len(vocabulary.say([Event("e", {"a": "xy"}, 0)]).ids) == 2
    vocabulary.drop(first)
    assert len(vocabulary.say([Event("e", {"a": "xy"}, 0)]).ids) == 1
