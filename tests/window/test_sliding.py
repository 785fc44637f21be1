"""Sliding delivery (PREF Def. 13, TKS 4.3): after every match, the chosen k of the last w."""

from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Publication, Span, Taste
from tests.window.streams import count, each_step, length, ranks, run, spans, streams, tastes

from tidings.window.sliding import Sliding


@given(streams(), tastes, spans, st.booleans(), st.booleans())
def test_deliveries_are_as_defined(
    stream: list[Publication], taste: Taste, span: Span, leave: bool, wait: bool
) -> None:
    delivered = "leave" if leave else "keep"
    window = Sliding(length(span), count(span), delivered=delivered, wait=wait)
    assert run(taste, window, stream) == reference.sliding(stream, taste, span, leave, wait)


@given(streams(), st.integers(1, 4), st.integers(1, 6))
def test_without_diversity_a_match_causes_at_most_one_delivery(
    stream: list[Publication], k: int, w: int
) -> None:
    """PREF Proposition 2."""
    assert all(len(new) <= 1 for new in each_step(Taste(k), Sliding(w), stream))


def test_an_older_event_is_delivered_when_a_better_one_leaves() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=1), Sliding(2), stream) == [["e1"], [], ["e2"]]


def test_a_delivered_event_stays_a_candidate_or_not() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=1), Sliding(3), stream) == [["e1"], [], []]
    left = Sliding(3, delivered="leave")
    assert each_step(Taste(k=1), left, stream) == [["e1"], ["e2"], ["e3"]]


def test_a_length_can_count_published_events() -> None:
    stream = ranks(0.9, None, None, 0.3)
    assert each_step(Taste(k=1), Sliding(3), stream) == [["e1"], [], [], []]
    published = Sliding(3, count="published")
    assert each_step(Taste(k=1), published, stream) == [["e1"], [], [], ["e4"]]


def test_an_event_as_old_as_the_duration_has_left() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=1), Sliding("2s"), stream) == [["e1"], [], ["e2"]]
    assert each_step(Taste(k=1), Sliding("2000001us"), stream) == [["e1"], [], []]


def test_wait_holds_matches_back_until_there_are_k() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=2), Sliding(3, wait=True), stream) == [[], ["e1", "e2"], []]


def test_of_equal_ranks_the_newer_wins() -> None:
    assert each_step(Taste(k=1), Sliding(3), ranks(0.5, 0.5)) == [["e1"], ["e2"]]
