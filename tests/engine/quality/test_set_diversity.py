"""Set diversity by the kernel equals the plain version."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import large_windows

from tidings.diversify import Distance, diversity
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Candidate
from tidings.engine.quality import CompiledSetDiversity, PlainSetDiversity, make_set_diversity
from tidings.errors import TidingsError
from tidings.model.records import Event

STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 11), st.sampled_from("gggggft")), max_size=40
)
DISTANCES = st.sampled_from([Overlap(), Jaccard(), Overlap({"a": 2.5})])


@given(large_windows(min_size=12, max_size=12), STEPS, DISTANCES, st.integers(2, 4))
def test_the_kernel_equals_the_plain_version(
    window: list[Candidate], steps: list[tuple[str, int, str]], distance: Distance, span: int
) -> None:
    """Deliveries, subscribers that leave, and totals in between."""
    fast, plain = CompiledSetDiversity(distance, span), PlainSetDiversity(distance, span)
    for name, number, what in steps:
        for sets in (fast, plain):
            if what == "g":
                sets.add(name, window[number].event)
            if what == "f":
                sets.forget(name)
        if what == "t":
            same(fast, plain)
    same(fast, plain)
    assert len(fast._hashes) == len(fast._slots) <= 3 * (span - 1)


def same(fast: CompiledSetDiversity, plain: PlainSetDiversity) -> None:
    assert fast.total()[1] == plain.total()[1]
    assert fast.total()[0] == pytest.approx(plain.total()[0])


@given(large_windows(min_size=2, max_size=6), DISTANCES)
def test_set_diversity_is_definition_8_for_one_subscriber(
    window: list[Candidate], part: Distance
) -> None:
    events = [member.event for member in window]
    sets = make_set_diversity(part)
    for event in events:
        sets.add("a", event)
    apart, pairs = sets.total()
    assert pairs == len(events) * (len(events) - 1) // 2
    assert apart / pairs == pytest.approx(diversity(events, part))


def test_many_subscribers_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.engine.quality.set_diversity.FLUSH", 7)
    fast, plain = CompiledSetDiversity(Overlap(), 3), PlainSetDiversity(Overlap(), 3)
    for i in range(200):
        event = Event(f"e{i}", {"x": i % 3, "y": i % 7}, i)
        for sets in (fast, plain):
            sets.add(f"p{i * i % 31}", event)
            sets.add(f"p{i % 5}", event)
            if i % 20 == 0:
                sets.forget(f"p{i % 5}")
    same(fast, plain)
    assert len(fast._hashes) < 100


def test_a_user_defined_distance_is_called() -> None:
    class Half(Overlap):
        def between(self, one: Any, other: Any) -> float:
            return 0.25

    sets = make_set_diversity(Half())
    assert isinstance(sets, PlainSetDiversity)
    for i in range(3):
        sets.add("a", Event(f"e{i}", {}, i))
    assert sets.total() == (0.75, 3)
    sets.forget("nobody")
    CompiledSetDiversity(Overlap()).forget("nobody")


def test_a_span_below_two_is_refused() -> None:
    with pytest.raises(TidingsError, match="span"):
        make_set_diversity(Overlap(), 1)
