"""Continuous delivery (TKS 4.3): a match is delivered at once if it is among the best k."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Publication, Span, Taste
from tests.window.streams import (
    each_step,
    films,
    length,
    match_of,
    moment_of,
    policy,
    ranks,
    run,
    spans,
    streams,
    tastes,
)

from tidings.feed.single import PolicyChooser
from tidings.window.continuous import Continuous

unpublished = spans.filter(lambda span: span.kind != "published")


@given(streams(), tastes, st.none() | unpublished, st.booleans())
def test_deliveries_are_as_defined(
    stream: list[Publication], taste: Taste, expires: Span | None, wait: bool
) -> None:
    window = Continuous(None if expires is None else length(expires), wait)
    assert run(taste, window, stream) == reference.continuous(stream, taste, expires, wait)


@pytest.mark.parametrize(
    ("scores", "delivered"),
    [
        ((0.1, 0.2, 0.3), [["e1"], ["e2"], ["e3"]]),
        ((0.3, 0.2, 0.1), [["e1"], [], []]),
        ((0.3, 0.3), [["e1"], ["e2"]]),
    ],
)
def test_rising_ranks_are_all_delivered_and_falling_ones_are_not(
    scores: tuple[float, ...], delivered: list[list[str]]
) -> None:
    """The situation of TKS 4.3; of equal ranks, the newer wins."""
    assert each_step(Taste(k=1), Continuous(), ranks(*scores)) == delivered


def test_an_expired_match_blocks_nothing() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=1), Continuous(expires="2s"), stream) == [["e1"], [], []]
    assert each_step(Taste(k=1), Continuous(expires=1), stream) == [["e1"], ["e2"], ["e3"]]


def test_an_older_match_is_not_delivered_when_a_better_one_expires() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    assert each_step(Taste(k=1), Continuous(expires=2), stream) == [["e1"], [], []]


def test_wait_holds_matches_back_until_there_are_k() -> None:
    stream = ranks(0.3, 0.9, 0.1, 0.5)
    waiting = Continuous(wait=True)
    assert each_step(Taste(k=2), waiting, stream) == [[], ["e2", "e1"], [], ["e4"]]


def test_a_match_that_expires_while_held_back_is_not_delivered() -> None:
    stream = ranks(0.9, 0.5, 0.3)
    waiting = Continuous(expires="1s", wait=True)
    assert each_step(Taste(k=2), waiting, stream) == [[], [], []]


def test_without_diversity_only_the_best_k_are_kept() -> None:
    window = Continuous().open(PolicyChooser(policy(Taste(k=2), Continuous())))
    for publication in ranks(0.1, 0.9, 0.5, 0.7, 0.2):
        window.offer(match_of(publication), moment_of(publication))
    kept = [entry[1]["event"]["id"] for entry in window.snapshot()["entries"]]
    assert kept == ["e2", "e4"]


def test_with_diversity_a_match_may_be_chosen_later() -> None:
    """e1 is not among the best two of three, but e4 is far from it and wins with it."""
    stream = films(("c", "x", 0.9), ("c", "y", 0.9), ("d", "x", 0.5), ("d", "y", 0.9))
    delivered = each_step(Taste(k=2, sigma=0.3), Continuous(), stream)
    assert delivered == [["e1"], ["e2"], ["e3"], ["e4"]]
