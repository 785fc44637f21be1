"""What became of a match: hand-computed cases, and the same as what the engine does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import (
    Continuous,
    DivRank,
    Engine,
    Event,
    Exponential,
    History,
    Jumping,
    MaxDivRel,
    MaxMin,
    Periodic,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
)
from tidings.diversify import DIVERSIFIERS
from tidings.engine import standing as module
from tidings.engine.standing import Standing


def engine_of(policy: Policy, feeds: str = "plain") -> Engine:
    engine = Engine(feeds=feeds)
    engine.subscribe(Subscriber("ann", policy))
    for rank in range(1, 10):
        engine.add(Subscription(f"r{rank}", "ann", where=f"r = {rank}", prefrank=rank / 10))
    return engine


def event(name: str, rank: int, at: int, **more: Any) -> Event:
    return Event(name, {"r": rank, **more}, published_at=at)


def standing(engine: Engine, name: str) -> Standing:
    explanation = engine.explain("ann", name)
    assert explanation.delivery is None
    assert explanation.note is None
    assert explanation.standing is not None
    return explanation.standing


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_a_lower_rank_loses_its_period(feeds: str) -> None:
    engine = engine_of(Policy(k=2, window=Periodic("10s")), feeds)
    engine.publish_many([event("a", 5, 1), event("b", 7, 2), event("c", 6, 3), event("d", 4, 4)])
    begun = standing(engine, "a")
    assert begun.state == "open"
    assert begun.verdict == "not delivered yet: its window is open, and so far others rank higher"
    assert standing(engine, "b").verdict == (
        "not delivered yet: its window is open, and it is among the chosen so far"
    )
    engine.advance(10)
    over = standing(engine, "a")
    assert (over.state, over.count, over.verdict) == (
        "passed",
        1,
        "not delivered: others rank higher",
    )
    assert over.lines[0] == (
        "window 1970-01-01T00:00:00Z to 1970-01-01T00:00:10Z: number 3 by rank (0.5) of 4; "
        "chosen: b (0.7), c (0.6)"
    )
    assert over.choices[0].decided_by == "rank"
    assert over.to_dict()["choices"][0]["chosen"][0] == {"event": "b", "rank": 0.7, "distance": 1.0}


def test_age_and_ids_decide_ties() -> None:
    engine = engine_of(Policy(k=1, window=Periodic("10s")))
    engine.publish_many([event("old", 5, 1), event("b", 5, 2), event("a", 5, 2)])
    engine.advance(10)
    assert [standing(engine, name).choices[0].decided_by for name in ("old", "b")] == ["age", "id"]
    assert standing(engine, "old").verdict == "not delivered: newer events rank at least as high"


def test_decay_is_age() -> None:
    policy = Policy(k=1, window=Periodic("10s"), decay=Exponential(rate=0.5))
    engine = engine_of(policy)
    engine.publish_many([event("better", 6, 1), event("worse", 2, 8), event("newer", 5, 9)])
    engine.advance(10)
    causes = [standing(engine, name).choices[0].decided_by for name in ("better", "worse")]
    assert causes == ["age", "rank"]


def test_similarity_names_the_nearest_of_the_chosen() -> None:
    """PREF Fig. 5: e1 and e4, then e5, then e6; e2 and e3 are dramas like e4."""
    policy = Policy(k=4, window=Periodic("1h"), diversify=DivRank(sigma=0.5))
    engine = Engine(feeds="plain")
    engine.subscribe(Subscriber("ann", policy))
    films = [(9, "comedy"), (8, "drama"), (8, "drama"), (8, "drama"), (7, "horror"), (6, "sci-fi")]
    for rank, genre in dict.fromkeys(films):
        where = f"genre = '{genre}'"
        engine.add(Subscription(genre, "ann", where=where, prefrank=rank / 10))
    for number, (_, genre) in enumerate(films, start=1):
        engine.publish(Event(f"e{number}", {"genre": genre}, published_at=number))
    engine.advance(3600)
    for name, place in {"e2": 4, "e3": 3}.items():
        choice = standing(engine, name).choices[0]
        assert [rival.event for rival in choice.chosen] == ["e1", "e4", "e5", "e6"]
        assert (choice.place, choice.decided_by) == (place, "similarity")
        assert choice.similar_to is not None
        assert (choice.similar_to.event, choice.similar_to.distance) == ("e4", 0.0)
        assert standing(engine, name).verdict == "not delivered: it was too similar to e4"


def test_kernels_choose_the_same_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(Policy(k=3, window=Sliding(9), diversify=DivRank(sigma=0.5)))
    engine.publish_many(event(f"e{n}", n * 7 % 9 + 1, n, g=n % 4) for n in range(12))
    lost = [f"e{n}" for n in range(12) if engine.explain("ann", f"e{n}").delivery is None]
    by_definition = [standing(engine, name) for name in lost]
    monkeypatch.setattr(module, "_FEW", 0)
    assert [standing(engine, name) for name in lost] == by_definition
    assert lost


LONG = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2), st.integers(0, 3)), max_size=30)
CHOICES = st.sampled_from(["none", DivRank(sigma=0.5), MaxMin(sigma=0.3)])
WITH_SHORTCUT = st.one_of(
    st.builds(
        Sliding, st.sampled_from([3, 5, "4s"]), st.just("matching"), st.sampled_from(["leave"])
    ),
    st.builds(Sliding, st.just(4), st.just("published"), st.just("leave")),
    st.builds(History, st.sampled_from([4, "5s"]), strict=st.booleans()),
)


@given(LONG, WITH_SHORTCUT, CHOICES, st.integers(1, 3))
def test_compiled_windows_lead_to_the_same_explanation(
    stream: list[tuple[int, int, int]], window: Any, diversify: Any, k: int
) -> None:
    engine = engine_of(Policy(k=k, window=window, diversify=diversify), "table")
    at = 0
    for number, (rank, gap, genre) in enumerate(stream):
        at += gap
        # Those of rank 9 match nothing, and count as published.
        engine.publish(event(f"e{number}", rank if rank < 9 else 99, at, g=genre))
    with pytest.MonkeyPatch.context() as patch:
        names = [f"e{number}" for number in range(len(stream))]
        by_definition = [engine.explain("ann", name) for name in names]
        patch.setattr(module, "_MANY", 0)
        assert [engine.explain("ann", name) for name in names] == by_definition


@given(LONG, st.integers(1, 9), CHOICES, st.integers(1, 3))
def test_other_periods_change_no_explanation(
    stream: list[tuple[int, int, int]], seconds: int, diversify: Any, k: int
) -> None:
    engine = engine_of(Policy(k=k, window=Periodic(f"{seconds}s"), diversify=diversify))
    at = 0
    for number, (rank, gap, genre) in enumerate(stream):
        at += gap
        engine.publish(event(f"e{number}", rank if rank < 9 else 99, at, g=genre))
    names = [f"e{number}" for number in range(len(stream))]
    from_its_period = [engine.explain("ann", name) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_period_of", lambda part, match, at: None)
        assert [engine.explain("ann", name) for name in names] == from_its_period


def test_the_first_and_the_last_of_sliding_windows_are_told() -> None:
    engine = engine_of(Policy(k=1, window=Sliding(3)))
    engine.publish_many([event("a", 9, 1), event("b", 5, 2)])
    assert standing(engine, "b").state == "open"
    engine.publish_many([event("c", 8, 3), event("d", 7, 4)])
    # a, b | a, b, c | b, c, d: then b leaves
    engine.publish(event("e", 1, 5))
    passed = standing(engine, "b")
    assert (passed.state, passed.count) == ("passed", 3)
    assert [[r.event for r in choice.chosen] for choice in passed.choices] == [["a"], ["c"]]
    assert [choice.place for choice in passed.choices] == [2, 3]
    assert passed.lines[0].startswith("first of 3 windows 1970-01-01T00:00:01Z to")


def test_a_continuous_window_decides_once() -> None:
    engine = engine_of(Policy(k=1, window=Continuous(expires=2)))
    engine.publish_many([event("a", 9, 1), event("b", 5, 2), event("c", 4, 3)])
    passed = standing(engine, "b")  # at c's arrival b is the best, but it is not new
    assert (passed.state, passed.count) == ("passed", 1)
    assert [rival.event for rival in passed.choices[0].chosen] == ["a"]


@pytest.mark.parametrize(
    ("sigma", "rank", "genre", "cause", "divrank", "swapped"),
    [
        (1.0, 7, "x", "rank", 0.85, 0.8),  # with c instead of b, (.9 + .7) / 2
        (0.5, 7, "z", "rank", 0.925, 0.9),  # c is as far from a as b is
        (0.5, 8, "x", "similarity", 0.925, 0.675),  # c shares the genre of a and the rank of b
    ],
)
def test_a_history_compares_sets(
    sigma: float, rank: int, genre: str, cause: str, divrank: float, swapped: float
) -> None:
    engine = engine_of(Policy(k=2, window=History(10), diversify=DivRank(sigma=sigma)))
    engine.publish_many([event("a", 9, 1, g="x"), event("b", 8, 2, g="y")])
    engine.publish(event("c", rank, 3, g=genre))
    passed = standing(engine, "c")
    (choice,) = passed.choices
    assert [rival.event for rival in choice.chosen] == ["a", "b"]
    assert (choice.decided_by, choice.divrank, choice.swapped) == (cause, divrank, swapped)
    assert passed.lines[0].endswith(f"; divrank {divrank:g}, with it at most {swapped:g}")


def test_a_strict_history_needs_a_gain() -> None:
    engine = engine_of(Policy(k=1, window=History(10, strict=True)))
    engine.publish_many([event("a", 9, 1), event("b", 9, 2)])
    assert standing(engine, "b").choices[0].decided_by == "rank"


@pytest.mark.parametrize(
    "window", [Sliding(5, wait=True), Continuous(wait=True), History(5, wait=True)]
)
def test_an_event_may_wait_for_others(window: Any) -> None:
    engine = engine_of(Policy(k=3, window=window))
    engine.publish_many([event("a", 5, 1), event("b", 6, 2)])
    waits = standing(engine, "a")
    assert (waits.state, waits.choices) == ("waiting", ())
    assert waits.verdict == "not delivered yet: it waits until there are k candidates"


@pytest.mark.parametrize(
    "window", [Sliding("5s", wait=True), Continuous("5s", wait=True), History("5s", wait=True)]
)
def test_an_event_may_wait_in_vain(window: Any) -> None:
    engine = engine_of(Policy(k=3, window=window))
    engine.publish(event("a", 5, 1))
    engine.advance(7)
    assert standing(engine, "a").verdict == (
        "not delivered: it left the window before there were k candidates"
    )


LENGTHS = st.sampled_from([1, 2, 3, "2s", "4s"])
FLAGS = st.booleans()
KEPT = st.sampled_from(["keep", "leave"])
COUNTS = st.sampled_from(["matching", "published"])
WINDOWS = st.one_of(
    st.builds(Continuous, expires=st.none() | LENGTHS, wait=FLAGS),
    st.builds(Periodic, length=LENGTHS, wait=FLAGS),
    st.builds(Periodic, length=st.integers(1, 3), count=COUNTS),
    st.builds(Sliding, length=LENGTHS, delivered=KEPT, wait=FLAGS),
    st.builds(Sliding, length=st.integers(1, 3), count=COUNTS),
    st.builds(Jumping, length=st.integers(2, 4), step=st.integers(1, 2), delivered=KEPT),
    st.builds(Jumping, length=st.sampled_from(["3s", "4s"]), step=st.sampled_from([2, "2s"])),
    st.builds(History, length=LENGTHS, strict=FLAGS, wait=FLAGS),
)
POLICIES = st.builds(
    Policy,
    k=st.integers(1, 3),
    window=WINDOWS,
    diversify=st.sampled_from(sorted(DIVERSIFIERS)),
    decay=st.sampled_from(["none", {"name": "exponential", "rate": 0.3}]),
)
STREAMS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), st.sampled_from("xyz")), min_size=1, max_size=9
)


def stream(steps: list[tuple[int, int, str]]) -> list[Event]:
    now, events = 0, []
    for number, (gap, rank, genre) in enumerate(steps):
        now += gap
        events.append(Event(f"e{number}", {"r": rank, "genre": genre}, published_at=now))
    return events


@given(POLICIES, STREAMS, st.integers(0, 9))
def test_explanations_agree_with_what_the_engine_does(
    policy: Policy, steps: list[tuple[int, int, str]], cut: int
) -> None:
    engine, events = engine_of(policy), stream(steps)
    early = engine.publish_many(events[:cut])
    matching = [event for event in events[:cut] if event.attributes["r"]]
    delivered = {delivery.event for delivery in early}
    states = {}
    for each in matching:
        if each.id not in delivered:
            found = standing(engine, each.id)
            states[each.id] = found.state
            for choice in found.choices:
                _check_choice(choice, each.id, policy, delivered)
    later = engine.publish_many(events[cut:]) + engine.advance(100)
    for delivery in later:
        if delivery.event in states:
            assert states[delivery.event] in ("open", "waiting"), delivery
    for name, state in states.items():
        assert state in ("passed", "open", "waiting", "expired"), name


def _check_choice(choice: Any, name: str, policy: Policy, delivered: set[str]) -> None:
    chosen = {rival.event for rival in choice.chosen}
    assert len(chosen) <= policy.k
    assert 1 <= choice.place <= choice.candidates
    assert (choice.decided_by is None) == (name in chosen)
    if policy.diversify.name == "none":
        assert choice.decided_by != "similarity"
        if policy.window.name != "history":
            assert (choice.place > policy.k) == (choice.decided_by is not None)
    if choice.decided_by == "similarity":
        assert choice.similar_to in choice.chosen
    if policy.window.name == "history":
        assert chosen <= delivered


@given(POLICIES, STREAMS)
def test_what_was_chosen_instead_was_delivered(
    policy: Policy, steps: list[tuple[int, int, str]]
) -> None:
    engine, events = engine_of(policy), stream(steps)
    deliveries = engine.publish_many(events) + engine.advance(1000)
    delivered = {delivery.event for delivery in deliveries}
    for event in events:
        if event.attributes["r"] and event.id not in delivered:
            found = standing(engine, event.id)
            if found.state == "passed" and policy.window.name != "continuous":
                chosen = {rival.event for choice in found.choices for rival in choice.chosen}
                assert chosen <= delivered


def test_diversifiers_that_choose_fewer_than_k_decide_by_similarity() -> None:
    for diversify in (MaxDivRel(alpha=0.5), MaxMin(sigma=0.0)):
        engine = engine_of(Policy(k=2, window=Periodic("10s"), diversify=diversify))
        engine.publish_many([event("a", 5, 1), event("b", 5, 2), event("c", 5, 3)])
        engine.advance(10)
        delivered = {each for each in "abc" if engine.explain("ann", each).delivery}
        lost = sorted({*"abc"} - delivered)
        causes = {standing(engine, each).choices[0].decided_by for each in lost}
        assert causes <= {"similarity", "age"}
