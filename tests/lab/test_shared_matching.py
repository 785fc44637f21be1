"""Matching that variants share: the ranks of each are those of a matcher of its own."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.index.access import Access
from tidings.lab.shared_matching import SharedHits, SharedMatcher
from tidings.lab.variants import Variant
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matches import Matches
from tidings.score.exact import Exact

EVENTS = [Event(f"e{n}", {"x": n % 3, "y": n % 2}, n) for n in range(8)]
SCORERS = ["exact", "preference", "relaxed"]
names = st.sampled_from(["ada", "bob", "cy"])
subscriptions = st.lists(
    st.tuples(names, st.integers(0, 2), st.integers(0, 1), st.sampled_from([0.2, 0.5, 1.0])),
    max_size=8,
)


def records(drawn: list[tuple[str, int, int, float]]) -> list[Subscription]:
    return [
        Subscription(f"s{n}", owner, where=f"x >= {x} and y = {y}", prefrank=rank, score=rank)
        for n, (owner, x, y, rank) in enumerate(drawn)
    ]


def people(own: str = "exact") -> list[Subscriber]:
    return [Subscriber(name, Policy(scorer=own)) for name in ("ada", "bob", "cy")]


def listed(matches: Matches) -> list[list[tuple[int, float, list[int]]]]:
    """Return the subscribers, ranks and matched subscriptions of each event."""
    found = []
    for event in range(len(matches.starts) - 1):
        places = range(matches.starts[event], matches.starts[event + 1])
        found.append(
            sorted(
                (
                    int(matches.subscribers[place]),
                    float(matches.ranks[place]),
                    sorted(
                        matches.matched[
                            matches.matched_starts[place] : matches.matched_starts[place + 1]
                        ].tolist()
                    ),
                )
                for place in places
            )
        )
    return found


@settings(max_examples=40)
@given(subscriptions, st.lists(st.sampled_from([*SCORERS, None]), min_size=1, max_size=5))
def test_each_variant_has_the_ranks_of_a_matcher_of_its_own(
    drawn: list[tuple[str, int, int, float]], scorers: Sequence[str | None]
) -> None:
    variants = [
        Variant(f"v{n}", None if scorer is None else Policy(k=n + 1, scorer=scorer))
        for n, scorer in enumerate(scorers)
    ]
    shared = SharedMatcher(people(), records(drawn), variants)
    matches = shared.match(EVENTS)
    assert len(matches) == shared.rankings == len({scorer or "exact" for scorer in scorers})
    for variant, number in zip(variants, shared.ranking_of, strict=True):
        [alone] = SharedMatcher(people(), records(drawn), [variant]).match(EVENTS)
        assert listed(matches[number]) == listed(alone)


@given(subscriptions)
def test_ranks_are_those_of_the_definition(drawn: list[tuple[str, int, int, float]]) -> None:
    variants = [Variant("own")]
    [matches] = SharedMatcher(people(), records(drawn), variants).match(EVENTS)
    for event, found in zip(EVENTS, listed(matches), strict=True):
        expected = []
        for number, name in enumerate(("ada", "bob", "cy")):
            own = [
                (n, rank)
                for n, (owner, x, y, rank) in enumerate(drawn)
                if owner == name and event.attributes["x"] >= x and event.attributes["y"] == y
            ]
            if own:
                best = max(rank for _, rank in own)
                expected.append((number, best, [n for n, _ in own]))
        assert found == expected


def test_variants_share_a_ranking_where_every_subscriber_has_the_same_scorer() -> None:
    variants = [
        Variant("own"),
        Variant("more", Policy(k=9, scorer="exact")),
        Variant("relaxed", Policy(scorer="relaxed")),
        Variant("again", Policy(scorer="relaxed", window={"name": "sliding", "length": 3})),
    ]
    assert SharedMatcher(people(), [], variants).ranking_of == [0, 0, 1, 1]
    mixed = [*people()[:2], Subscriber("cy", Policy(scorer="relaxed"))]
    assert SharedMatcher(mixed, [], variants).ranking_of == [0, 1, 2, 2]


def test_a_batch_is_looked_up_once() -> None:
    index = Access(records([("ada", 0, 0, 0.5)]))
    asked = list[str]()

    class Counting:
        def listen(self, listener: Any) -> None:
            index.listen(listener)

        def matching_many(self, events: Any) -> Any:
            asked.append("matching")
            return index.matching_many(events)

        def touching_many(self, events: Any) -> Any:
            asked.append("touching")
            return index.touching_many(events)

    hits = SharedHits(Counting())  # type: ignore[arg-type]
    first = hits.matching_many(EVENTS)
    assert hits.matching_many(EVENTS) is first
    assert hits.touching_many(EVENTS) is hits.touching_many(EVENTS)
    assert asked == ["matching", "touching"]
    equal = list(EVENTS)
    assert hits.matching_many(equal) is not first
    assert asked == ["matching", "touching", "matching"]


class Failing(Exact):
    """A scorer that fails for some events."""

    name = "failing"

    def prepare(self, subscriptions: Any, prefers: Any) -> Any:
        raise ValueError("not prepared")


def test_a_subscriber_whose_scorer_fails_is_set_aside_in_its_ranking_only() -> None:
    variants = [Variant("own", Policy(scorer=Failing())), Variant("exact", Policy(scorer="exact"))]
    matcher = SharedMatcher(people()[:1], records([("ada", 0, 0, 0.5)]), variants)
    failing, exact = matcher.match(EVENTS)
    assert not len(failing.ranks)
    assert len(exact.ranks)
    assert {number: [*failed] for number, failed in matcher.failed.items()} == {0: ["ada"], 1: []}
    assert matcher.failed[0]["ada"].startswith("its scorer failed: ")
    assert "not prepared" in matcher.failed[0]["ada"]


@pytest.mark.parametrize("count", [0, 1, 70])
def test_subscriptions_are_numbered_as_they_are_listed(count: int) -> None:
    listed_records = records([("ada", 0, 0, 0.5)] * count)[::-1]
    [matches] = SharedMatcher(people(), listed_records, [Variant("own")]).match(EVENTS[:1])
    assert sorted(matches.matched.tolist()) == list(range(count))
