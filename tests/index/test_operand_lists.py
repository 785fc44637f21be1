"""Operator lists against the predicates themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.operand_lists import OPERANDS, list_kind, list_operand
from tidings.model.conditions.predicate import OPERATORS, PRESENCE, predicate

TEXTS = ["", "a", "A", "b", "aB", "ba", "aab", "abab", "\U0010ffff"]
words = st.sampled_from(TEXTS)


def test_every_operator_has_a_list() -> None:
    assert set(OPERANDS) | set(PRESENCE) == set(OPERATORS)


@pytest.mark.parametrize("operator", [*OPERANDS])
@given(st.data())
def test_a_list_returns_the_predicates_that_hold(operator: str, data: st.DataObject) -> None:
    operands: st.SearchStrategy[object] = words
    if operator.endswith("between"):
        operands = st.tuples(words, words).map(lambda pair: tuple(sorted(pair)))
    elif operator.endswith("in"):
        operands = st.frozensets(words, min_size=1)
    elif operator.startswith("not "):
        operands = words.filter(bool)
    drawn = data.draw(st.sets(operands))
    predicates = list(dict.fromkeys(predicate("a", operator, operand) for operand in drawn))
    removed = data.draw(st.sets(st.sampled_from(predicates))) if predicates else set()
    lists = {list_kind(part): OPERANDS[list_kind(part)]() for part in predicates}
    for part in predicates:
        lists[list_kind(part)].add(list_operand(part), part)
    for part in removed:
        lists[list_kind(part)].remove(list_operand(part))
    key = data.draw(words)
    holding = [part for operands in lists.values() for part in operands.holding(key)]
    left = set(predicates) - removed
    assert len(holding) == len(set(holding))
    assert set(holding) == {
        part for part in left if part.holds({"a": frozenset([("string", key)])})
    }
    for part in left:
        lists[list_kind(part)].remove(list_operand(part))
    assert not any(map(len, lists.values()))
