"""History-based filtering (PREF Def. 14): a match is delivered if it betters what was delivered."""

from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Publication, Span, Taste
from tests.window.streams import (
    count,
    each_step,
    films,
    length,
    policy,
    publications,
    ranks,
    run,
    spans,
    steps,
    streams,
    tastes,
)

from tidings.feed.single import Feed
from tidings.policy import Subscriber
from tidings.window import Moment
from tidings.window.history import History


@given(streams(), tastes, spans, st.booleans(), st.booleans())
def test_deliveries_are_as_defined(
    stream: list[Publication], taste: Taste, span: Span, strict: bool, wait: bool
) -> None:
    window = History(length(span), count(span), strict, wait)
    assert run(taste, window, stream) == reference.history(stream, taste, span, strict, wait)


@given(streams(), tastes, spans)
def test_a_match_causes_at_most_one_delivery_even_with_diversity(
    stream: list[Publication], taste: Taste, span: Span
) -> None:
    """PREF 5.3: only the newly published event can be delivered."""
    window = History(length(span), count(span))
    for publication, new in zip(stream, each_step(taste, window, stream), strict=True):
        assert new in ([], [publication.id])


def test_an_event_is_delivered_while_there_are_fewer_than_k() -> None:
    assert each_step(Taste(k=2), History(9), ranks(0.9, 0.1, 0.0)) == [["e1"], ["e2"], []]


def test_a_place_that_becomes_free_goes_to_the_next_match() -> None:
    assert each_step(Taste(k=1), History(2), ranks(0.9, 0.5, 0.1)) == [["e1"], [], ["e3"]]


def test_an_equal_event_is_delivered_unless_strict() -> None:
    stream = ranks(0.5, 0.5)
    assert each_step(Taste(k=1), History(9), stream) == [["e1"], ["e2"]]
    assert each_step(Taste(k=1), History(9, strict=True), stream) == [["e1"], []]


def test_of_equal_swaps_the_oldest_is_dropped() -> None:
    """e3 takes the place of e1: none is free when e1 leaves, with e5, and one when e2 does."""
    stream = ranks(0.5, 0.5, 0.5, 0.3, 0.3, 0.3)
    delivered = each_step(Taste(k=2), History(4), stream)
    assert delivered == [["e1"], ["e2"], ["e3"], [], [], ["e6"]]


def test_diversity_delivers_an_event_of_a_lower_rank() -> None:
    stream = publications((0, 0.9), (1, 0.8), (2, 0.6), genres="ccd")
    assert each_step(Taste(k=2), History(9), stream)[-1] == []
    assert each_step(Taste(k=2, sigma=0.5), History(9), stream)[-1] == ["e3"]


def test_equal_sums_in_thirds_are_equal() -> None:
    """With and without e4 in the place of e3, divrank is 4.4 / 6, by sums in another order."""
    stream = films(("c", "x", 0.8), ("d", "y", 0.7), ("c", "y", 0.9), ("e", "y", 0.4))
    taste = Taste(k=3, sigma=0.5)
    assert each_step(taste, History(9), stream)[-1] == ["e4"]
    assert each_step(taste, History(9, strict=True), stream)[-1] == []


def test_a_length_can_count_published_events() -> None:
    stream = ranks(0.9, None, None, 0.1)
    assert each_step(Taste(k=1), History(3), stream)[-1] == []
    assert each_step(Taste(k=1), History(3, count="published"), stream)[-1] == ["e4"]


def test_wait_holds_matches_back_until_there_are_k() -> None:
    stream = ranks(0.3, 0.9, 0.1, 0.5)
    waiting = History(9, wait=True)
    assert each_step(Taste(k=2), waiting, stream) == [[], ["e2", "e1"], [], ["e4"]]


def test_matches_held_back_are_not_in_the_current_list() -> None:
    feed = Feed(Subscriber("x", policy(Taste(k=2), History(9, wait=True))))
    current = [
        [publication.event for publication in feed.current(Moment(0, 0))]
        for _ in steps(feed, ranks(0.3, 0.9, 0.5))
    ]
    assert current == [[], ["e2", "e1"], ["e2", "e3"]]
