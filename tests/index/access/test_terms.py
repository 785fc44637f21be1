"""Terms of one attribute, and the cache of texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.access import Access
from tidings.index.access.terms import FamilyTerms, TermCache
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Event, Subscription

TEXTS = st.text("ab", max_size=4)
SHAPES = {
    "=": TEXTS,
    "prefix": TEXTS.filter(bool),
    "suffix": TEXTS.filter(bool),
    "substring": TEXTS.filter(bool),
    "<=": TEXTS,
}


@given(
    st.lists(
        st.sampled_from(sorted(SHAPES)).flatmap(
            lambda shape: st.tuples(st.just(shape), SHAPES[shape])
        ),
        unique=True,
        max_size=12,
    ),
    TEXTS,
)
def test_a_value_stamps_the_predicates_that_it_satisfies(
    predicates: list[tuple[str, str]], value: str
) -> None:
    terms = FamilyTerms()
    for term, (shape, operand) in enumerate(predicates):
        terms.add(shape, [operand], [term])
    tokens = Event("e", {"a": value}, 0).tokens
    expected = [
        term
        for term, (shape, operand) in enumerate(predicates)
        if predicate("a", shape, operand).holds(tokens)
    ]
    assert sorted(terms.satisfied(value)) == expected


@given(st.sets(st.integers(-9, 9)), st.integers(-9, 9), st.integers(0, 9))
def test_values_within_a_range_are_found(keys: set[int], low: int, length: int) -> None:
    terms = FamilyTerms()
    terms.add("=", [float(key) for key in keys], [key + 100 for key in keys])
    expected = [key + 100 for key in sorted(keys) if low <= key <= low + length]
    assert terms.within(low, low + length) == expected


@given(st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=30))
def test_cached_terms_are_read_by_number(texts: list[list[int]]) -> None:
    cache = TermCache()
    numbers = [cache.add(terms, -1, 0) for terms in texts]
    start, stored, *_ = cache.table
    for number, terms in zip(numbers, texts, strict=True):
        assert stored[start[number] : start[number + 1]].tolist() == terms
        assert (number == 0) == (not terms)
    assert cache.longest == max(map(len, texts), default=0)


def test_a_cache_keeps_the_arrays_that_readers_have() -> None:
    cache = TermCache()
    cache.add([1, 2], 3, 4)
    table = cache.table
    before = [column.copy() for column in table]
    for number in range(5000):
        cache.add([number], -1, 0)
    assert cache.table.start is not table.start
    assert table.terms[:2].tolist() == before[1][:2].tolist() == [1, 2]
    assert (table.slot[1], table.code[1]) == (3, 4)
    assert np.array_equal(cache.table.terms[2:5], [0, 1, 2])


def test_a_full_cache_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.index.access.terms.MOST_TEXTS", 100)
    access = Access([Subscription("s1", "u", "a like 'x%'")])
    caches: set[TermCache] = set()
    for number in range(500):
        assert len(access.matching(Event("e", {"a": f"x{number}y"}, 0))) == 1
        caches.add(access.snapshot.vocabulary.cache)
    assert 4 <= len(caches) <= 6
    access.add(Subscription("s2", "u", "a like '%y'"))
    assert len(access.matching(Event("e", {"a": "x499y"}, 0))) == 2
    access.remove("s1")
    assert [one.id for one in access.matching(Event("e", {"a": "x499y"}, 0))] == ["s2"]
