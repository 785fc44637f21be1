"""The modified OpIndex: its operator lists, what it counts, and what it gives back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.papers.opindex.index import Op
from tidings.index.papers.opindex.operand_lists import OPERANDS, kind, operand
from tidings.model.conditions.predicate import OPERATORS, predicate
from tidings.model.records import Event, Subscription

TEXTS = ["", "a", "b", "ab", "ba", "aab", "abab", "\U0010ffff"]
words = st.sampled_from(TEXTS)


def test_every_operator_has_a_list() -> None:
    assert set(OPERANDS) == set(OPERATORS)


@pytest.mark.parametrize("operator", [*OPERATORS])
@given(st.data())
def test_a_list_gives_what_holds_also_after_removals(operator: str, data: st.DataObject) -> None:
    operands: st.SearchStrategy[object] = words
    if operator == "between":
        operands = st.tuples(words, words).map(lambda pair: tuple(sorted(pair)))
    if operator == "in":
        operands = st.frozensets(words, min_size=1)
    parts = [predicate("a", operator, each) for each in data.draw(st.sets(operands))]
    gone = data.draw(st.sets(st.sampled_from(parts))) if parts else set()
    lists = {kind(part): OPERANDS[kind(part)]() for part in parts}
    for part in parts:
        lists[kind(part)].add(operand(part), part)
    for part in gone:
        lists[kind(part)].remove(operand(part))
    key = data.draw(words)
    found = [part for each in lists.values() for part in each.holding(key)]
    expected = {
        part for part in set(parts) - gone if part.holds({"a": frozenset([("string", key)])})
    }
    assert len(found) == len(set(found))
    assert set(found) == expected
    for part in set(parts) - gone:
        lists[kind(part)].remove(operand(part))
    assert not any(map(len, lists.values()))


def test_predicates_are_found_once_and_conjunctions_counted() -> None:
    index = Op([Subscription("s", "u", "a > 1 and b like 'x%'"), Subscription("t", "u", "a > 1")])
    event = Event("e", {"a": [2, 3], "b": ["xa", "xb"]}, 0)
    assert [each.id for each in index.matching(event)] == ["s", "t"]
    assert index.counters() == {"predicates": 2, "subscriptions": 2}


def test_nothing_is_kept_of_what_is_removed() -> None:
    index = Op()
    wishes = [
        Subscription("s", "u", "a in (1, 2) and b like '%x%' or c != 3 and d between 1 and 2"),
        Subscription("t", "u", any=[["a in (1, 2)", 1], ["d < 'x'", 1], ["e like '%y'", 1]]),
    ]
    for each in wishes:
        index.add(each)
    for each in wishes:
        index.remove(each.id)
    kept = (index._subscriptions, index._nodes, index._lists, index._posted)
    assert kept == ({}, {}, {}, {})
