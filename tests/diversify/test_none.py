"""No diversity: the k highest ranks (PREF Def. 6)."""

from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import by_rank, candidate, ids, names, windows

from tidings.diversify.none import NoDiversity
from tidings.diversify.protocol import Candidate
from tidings.model.records import Event


@given(windows(), st.integers(1, 7))
def test_it_is_the_k_best(window: list[Candidate], k: int) -> None:
    best = sorted(window, key=by_rank)[:k]
    assert ids(window, NoDiversity().choose(window, k)) == names(best)


def test_ties_go_to_the_newer_then_to_the_smaller_id() -> None:
    window = [
        candidate("b", 0.5, 1),
        candidate("z", 0.5, 2),
        candidate("a", 0.5, 1),
        candidate("y", 0.9, 0),
    ]
    assert ids(window, NoDiversity().choose(window, 4)) == ["y", "z", "a", "b"]


def test_ids_are_compared_as_text() -> None:
    window = [candidate("e9", 0.5), candidate("e10", 0.5)]
    assert ids(window, NoDiversity().choose(window, 1)) == ["e10"]


def test_the_key_decides_where_ranks_have_decayed_to_zero() -> None:
    window = [Candidate(Event(name, {}, 0), 0.0, key) for name, key in (("a", -900), ("b", -800))]
    assert ids(window, NoDiversity().choose(window, 1)) == ["b"]
