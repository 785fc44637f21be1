"""The brute force, against a plain reading of `a >= b`."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.index.scan import Scan
from tidings.model.records import Event, Subscription

Bounds = dict[str, int]
bounds = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), min_size=1)
wanted = st.dictionaries(st.sampled_from(["s1", "s2", "s3", "s10"]), bounds)
attributes = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2))


def subscription(name: str, least: Bounds) -> Subscription:
    where = " and ".join(f"{attribute} >= {low}" for attribute, low in least.items())
    return Subscription(name, "u", where, score=sum(least.values()))


def held(least: Bounds, event: Bounds) -> list[bool]:
    return [name in event and event[name] >= low for name, low in least.items()]


@given(wanted, attributes)
def test_matching_needs_all_predicates_and_touching_some(
    wanted: dict[str, Bounds], attributes: Bounds
) -> None:
    scan = Scan(subscription(name, least) for name, least in wanted.items())
    event = Event("e", attributes, 0)
    matching = sorted(name for name, least in wanted.items() if all(held(least, attributes)))
    touching = sorted(name for name, least in wanted.items() if any(held(least, attributes)))
    assert [subscription.id for subscription in scan.matching(event)] == matching
    assert [subscription.id for subscription in scan.touching(event)] == touching


@given(wanted, st.sets(st.sampled_from(["s1", "s2", "s3", "s10"])))
def test_removed_subscriptions_are_not_found(wanted: dict[str, Bounds], removed: set[str]) -> None:
    scan = Scan()
    for name, least in wanted.items():
        scan.add(subscription(name, least))
    for name in removed & set(wanted):
        scan.remove(name)
    matching = scan.matching(Event("e", {"x": 2, "y": 2, "z": 2}, 0))
    assert [one.id for one in matching] == sorted(set(wanted) - removed)


@given(wanted, attributes, st.integers(1, 5))
def test_top_returns_the_best_scores_and_ties_by_id(
    wanted: dict[str, Bounds], attributes: Bounds, k: int
) -> None:
    scan = Scan(subscription(name, least) for name, least in wanted.items())
    scored = [
        (-sum(least.values()), name)
        for name, least in wanted.items()
        if all(held(least, attributes))
    ]
    expected = [(name, -minus) for minus, name in sorted(scored)[:k]]
    event = Event("e", attributes, 0)
    assert scan.top(event, k, lambda e, s: s.score if s.matches(e) else None) == expected
