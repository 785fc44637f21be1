"""Diversifiers by name: each is read from its name, and chooses at most k, in order of choice."""

import pytest

from tidings.diversify.protocol import Candidate
from tidings.diversify.registry import DIVERSIFIERS
from tidings.errors import InvalidPolicy
from tidings.model import named_parts
from tidings.model.records import Event

CANDIDATES = [
    Candidate(Event(f"e{n}", {"genre": "ab"[n % 2], "n": n % 3}, n), (n % 4) / 4, (n % 4) / 4)
    for n in range(9)
]


@pytest.mark.parametrize("name", DIVERSIFIERS)
def test_a_diversifier_chooses_at_most_k_different_candidates(name: str) -> None:
    part = named_parts.read(DIVERSIFIERS, "diversifier", name)
    assert type(part) is DIVERSIFIERS[name]
    assert part.name == name
    for k in (1, 3, 9, 20):
        chosen = part.choose(CANDIDATES, k)
        assert len(chosen) == len({*chosen}) <= min(k, len(CANDIDATES))
        assert {*chosen} <= {*range(len(CANDIDATES))}
        assert len(chosen) >= 1
    assert part.choose([], 3) == []
    assert part.choose(CANDIDATES[:1], 3) == [0]


@pytest.mark.parametrize("name", DIVERSIFIERS)
def test_fewer_candidates_than_k_are_all_chosen(name: str) -> None:
    part = named_parts.read(DIVERSIFIERS, "diversifier", name)
    assert sorted(part.choose(CANDIDATES[:4], 5)) == [0, 1, 2, 3]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidPolicy) as error:
        named_parts.read(DIVERSIFIERS, "diversifier", "foo")
    assert str(error.value) == (
        f"unknown diversifier 'foo'; expected one of: {', '.join(DIVERSIFIERS)}"
    )
