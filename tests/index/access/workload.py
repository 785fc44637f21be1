"""Random subscriptions and events in which matches, ties and repeated values are common."""

from random import Random
from typing import Any

from tidings.index.access import Access
from tidings.index.scan import Scan
from tidings.model.records import Event, Subscription


def subscription(number: int, chance: Random) -> Subscription:
    """Draw a subscription with up to three predicates of all kinds, some of them weighted."""
    parts = [
        f"n{chance.randrange(3)} between {(low := chance.randrange(50))} and {low + 5}",
        f"g{chance.randrange(3)} = 'w{chance.randrange(20)}'",
        f"g{chance.randrange(3)} in ('w{chance.randrange(20)}', 'w{chance.randrange(20)}')",
        f"m = {chance.randrange(10)}",
        f"o >= {chance.randrange(50)}",
        f"g{chance.randrange(3)} like 'w{chance.randrange(4)}%'",
        f"g{chance.randrange(3)} <> 'w{chance.randrange(20)}'",
        f"g{chance.randrange(3)} ilike 'W{chance.randrange(4)}%'",
        f"g{chance.randrange(3)} not like '%{chance.randrange(10)}'",
        f"m not in ({chance.randrange(10)}, {chance.randrange(10)})",
        f"n{chance.randrange(3)} not between {chance.randrange(20)} and 25",
        chance.choice(["m is not null", "p is null", "g1 is null", "true"]),
    ]
    name, score = f"s{number:05d}", chance.randrange(4)
    chosen = chance.sample(parts, chance.randint(1, 3))
    if "g1 is null" in chosen:  # beside it, no other predicate on g1 can hold
        chosen = [part for part in chosen if part == "g1 is null" or not part.startswith("g1 ")]
    if chance.random() < 0.2:
        weighted = [[part, chance.choice([0.1, 0.7, 2])] for part in chosen]
        return Subscription(name, "u", any=weighted, score=score)
    where = " and ".join(chosen)
    if chance.random() < 0.2:
        where += " or " + chance.choice(parts)
    return Subscription(name, "u", where, score=score)


def subscriptions(count: int, seed: int) -> list[Subscription]:
    chance = Random(seed)
    return [subscription(number, chance) for number in range(count)]


def event(number: int, chance: Random) -> Event:
    """Draw an event with numbers, texts, and an attribute with two values."""
    values: dict[str, Any] = {f"n{which}": chance.randrange(60) for which in range(3)}
    values |= {f"g{which}": f"w{chance.randrange(20)}" for which in range(3)}
    values["o"] = chance.randrange(60)
    values["m"] = [chance.randrange(10), chance.randrange(10)]
    for name in chance.sample(["g1", "m", "n2"], chance.randint(0, 1)):
        del values[name]
    return Event(f"e{number}", values, 0)


def events(count: int, seed: int) -> list[Event]:
    chance = Random(seed)
    return [event(number, chance) for number in range(count)]


def assert_same_answers(access: Access, scan: Scan, asked: Event) -> None:
    """Compare an index with the scan, for all kinds of queries."""
    for k in (1, 5, 1000):
        assert access.top(asked, k) == scan.top(asked, k)
        assert access.top_relaxed(asked, k) == scan.top_relaxed(asked, k)
    assert access.matching(asked) == scan.matching(asked)
    assert access.touching(asked) == scan.touching(asked)
