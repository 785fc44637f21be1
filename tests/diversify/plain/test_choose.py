"""Plain choices equal those of the compiled diversifiers, and run no kernel."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import candidate, large_windows

from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier, set_divrank
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.diversify.none import NoDiversity
from tidings.diversify.plain.choose import plain_choice, plain_divrank
from tidings.errors import InvalidPolicy
from tidings.model.records import Event

PARTS: list[Diversifier] = [make() for make in DIVERSIFIERS.values()]


class Unmeasurable(Jaccard):
    """A distance that refuses to be taken."""

    def between(self, one: Event, other: Event) -> float:
        raise AssertionError("a distance was taken")


class LastFirst(DivRank):
    """A diversifier that overrides the choice of a registered one."""

    def choose(self, candidates: Any, k: int) -> list[int]:
        return list(range(len(candidates)))[::-1][:k]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@given(candidates=large_windows(max_size=8), k=st.integers(1, 4))
def test_a_plain_choice_is_the_compiled_one(part, candidates, k):
    assert plain_choice(part, candidates, k) == part.choose(candidates, k)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_registered_diversifiers_are_not_called(part, monkeypatch):
    def refuse(*_: object) -> list[int]:
        raise AssertionError("the compiled diversifier was asked")

    monkeypatch.setattr(type(part), "choose", refuse)
    monkeypatch.setattr(type(part), "pick", refuse)
    candidates = [candidate(name, 0.5, n, a=n % 2) for n, name in enumerate("abcd")]
    assert 1 <= len(plain_choice(part, candidates, 2)) <= 2


def test_a_subclass_chooses_by_itself():
    candidates = [candidate(name, 0.5) for name in "abc"]
    assert plain_choice(LastFirst(), candidates, 2) == [2, 1]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@given(candidates=large_windows(max_size=8))
def test_the_rank_of_a_set_is_its_definition(part, candidates):
    expected = set_divrank(candidates, part.sigma, part.distance)
    assert plain_divrank(part, candidates) == expected


def test_ranks_alone_take_no_distance():
    pair = [candidate("a", 0.5), candidate("b", 0.7)]
    assert plain_divrank(NoDiversity(distance=Unmeasurable()), pair) == 0.6


def test_an_empty_set_has_rank_zero():
    assert plain_divrank(DivRank(), list[Candidate]()) == 0.0


def test_more_candidates_than_pairs_fit_memory_are_refused():
    many = [candidate("a", 0.5)] * 10_001
    with pytest.raises(InvalidPolicy, match="10,000 candidates"):
        plain_choice(DIVERSIFIERS["disc"](), many, 2)
