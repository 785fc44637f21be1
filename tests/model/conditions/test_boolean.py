"""The boolean structure: split at connectives, negations pushed down, combined, refused in place.

Comparisons are read by the tests themselves: a word is a flag, and `n < 3` is a bound.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token

from tidings.errors import InvalidCondition
from tidings.model.conditions.boolean import UNREADABLE, Conjunctions, Structure
from tidings.model.conditions.predicate import predicate
from tidings.model.limits import TRUSTED, Limits

OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}


class Refused(InvalidCondition):
    """A refusal with the part of the text that it underlines."""

    def __init__(self, reason: str, marked: str) -> None:
        super().__init__(reason)
        self.marked = marked


def read(tokens: Sequence[Token], negated: bool) -> Conjunctions:
    name, *bound = (token.text for token in tokens)
    if not bound:
        return [(predicate(name, "=", not negated),)]
    if bound[0].lower() == "between":
        low, high = float(bound[1]), float(bound[3])
        if negated:
            return [(predicate(name, "<", low),), (predicate(name, ">", high),)]
        return [(predicate(name, "between", (low, high)),)]
    sign = OPPOSITE[bound[0]] if negated else bound[0]
    return [(predicate(name, sign, float(bound[1])),)]


def conjunctions(text: str, limits: Limits = TRUSTED) -> Conjunctions:
    def refuse(reason: str, start: int, end: int) -> NoReturn:
        raise Refused(reason, text[start:end])

    return Structure(DuckDB().tokenize(text), limits, refuse).conjunctions(read)


def short(text: str) -> str:
    """Return the normal form of flags, as `a !b | c`."""
    return " | ".join(
        " ".join(part.attribute if part.operand else f"!{part.attribute}" for part in conjunction)
        for conjunction in conjunctions(text)
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a", "a"),
        ("not a", "!a"),
        ("not not a", "a"),
        ("a and b or c", "a b | c"),
        ("a or b and c", "a | b c"),
        ("a and (b or c)", "a b | a c"),
        ("(a or b) and (c or d)", "a c | a d | b c | b d"),
        ("not (a or b)", "!a !b"),
        ("not (a and b)", "!a | !b"),
        ("not (a and b or c)", "!a !c | !b !c"),
        ("not (a and not (b or c))", "!a | b | c"),
        ("not a and b", "!a b"),
        ("((a))", "a"),
        ("not ((a) or (not b))", "!a b"),
        ("a and a", "a"),
        ("a and b and (c or d) and e", "a b c e | a b d e"),
        ("a or (b or (c or d))", "a | b | c | d"),
    ],
)
def test_the_normal_form_keeps_the_written_order(text: str, form: str) -> None:
    assert short(text) == form


def test_the_and_of_between_connects_nothing() -> None:
    assert conjunctions("n between 1 and 3 and a") == [
        (predicate("n", "between", (1, 3)), predicate("a", "=", True))
    ]
    assert conjunctions("not n between 1 and 3 or a") == [
        (predicate("n", "<", 1),),
        (predicate("n", ">", 3),),
        (predicate("a", "=", True),),
    ]


def test_bounds_of_one_conjunction_fold() -> None:
    assert conjunctions("n > 1 and a and n <= 3") == [
        (*conjunctions("n > 1 and n <= 3")[0], predicate("a", "=", True))
    ]
    ((one,),) = conjunctions("n >= 1 and n <= 3")
    assert one == predicate("n", "between", (1, 3))


def test_combinations_that_nothing_satisfies_are_dropped() -> None:
    assert conjunctions("(n < 1 or n > 5) and (n < 2 or n > 4)") == [
        (predicate("n", "<", 1),),
        (predicate("n", ">", 5),),
    ]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("a and n < 1 and n > 5 and b", "a and n < 1 and n > 5"),
        ("a or (n < 1 and n > 5)", "n < 1 and n > 5"),
        ("(n < 1 or n < 2) and n > 5", "(n < 1 or n < 2) and n > 5"),
    ],
)
def test_a_part_that_nothing_satisfies_is_refused(text: str, marked: str) -> None:
    with pytest.raises(Refused, match="nothing can satisfy it") as refused:
        conjunctions(text)
    assert refused.value.marked == marked


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("a and", "and"),
        ("or a", "or"),
        ("a and or b", "or"),
        ("(a", "a"),
        ("a)", ")"),
        ("()", ")"),
        ("a and (b or)", ")"),
        ("not", "not"),
        ("", ""),
    ],
)
def test_a_missing_comparison_or_bracket_is_refused_at_its_place(text: str, marked: str) -> None:
    with pytest.raises(Refused) as refused:
        conjunctions(text)
    assert (str(refused.value), refused.value.marked) == (UNREADABLE, marked)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("(((a)))", "("),
        ("not not not a", "not"),
        ("not (not (a))", "not"),
        ("a and not ((b))", "("),
    ],
)
def test_nesting_is_limited_and_refused_where_it_begins(text: str, marked: str) -> None:
    assert conjunctions(text, Limits(nesting=4))
    with pytest.raises(Refused, match="this nests too deeply") as refused:
        conjunctions(text, Limits(nesting=2))
    assert refused.value.marked == marked


def test_deep_nesting_needs_no_stack() -> None:
    deep = Limits(nesting=256)
    assert conjunctions("(" * 256 + "a" + ")" * 256, deep) == conjunctions("a")
    assert conjunctions("not " * 256 + "a", deep) == conjunctions("a")


def test_the_number_of_conjunctions_is_limited() -> None:
    few = Limits(conjunctions=4)
    assert len(conjunctions("a or b or c or d", few)) == 4
    assert len(conjunctions("(a or b) and (c or d)", few)) == 4
    with pytest.raises(Refused, match="the number of conjunctions is 5") as refused:
        conjunctions("x and (a or b or c or d or e)", few)
    assert refused.value.marked == "a or b or c or d or e"
    with pytest.raises(Refused, match="conjunctions after distribution is 8") as refused:
        conjunctions("(a or b) and (c or d) and (e or f)", few)
    assert refused.value.marked == "(a or b) and (c or d) and (e or f)"


def test_the_number_of_predicates_is_limited_with_their_repetitions() -> None:
    few = Limits(predicates=1)
    assert len(conjunctions("a or b or c or d", few)) == 4
    with pytest.raises(Refused, match="the number of predicates is 5") as refused:
        conjunctions("a or b or c or d or e", few)
    assert refused.value.marked == "e"
    with pytest.raises(Refused, match="the number of predicates is 6") as refused:
        conjunctions("(a or b or c) and d", few)


def test_empty_combinations_count_against_a_limit_too() -> None:
    pair = "(n < 1 or n > 5)"
    assert conjunctions(" and ".join([pair] * 10), Limits(conjunctions=4))
    with pytest.raises(Refused, match="conjunctions after distribution is 132"):
        conjunctions(" and ".join([pair] * 40), Limits(conjunctions=4))


TREES = st.recursive(
    st.sampled_from("abc"),
    lambda trees: (
        st.tuples(st.just("not"), trees)
        | st.tuples(st.sampled_from(["and", "or"]), trees, trees, trees)
        | st.tuples(st.sampled_from(["and", "or"]), trees, trees)
    ),
    max_leaves=6,
)


def written(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    connective, *parts = tree
    if connective == "not":
        return f"not ({written(parts[0])})"
    return f" {connective} ".join(f"({written(part)})" for part in parts)


def true(tree: Any, flags: dict[str, bool]) -> bool:
    if isinstance(tree, str):
        return flags[tree]
    connective, *parts = tree
    values = [true(part, flags) for part in parts]
    if connective == "not":
        return not values[0]
    return all(values) if connective == "and" else any(values)


@given(TREES)
def test_the_normal_form_means_what_the_tree_means(tree: Any) -> None:
    found = conjunctions(written(tree))
    for values in product([False, True], repeat=3):
        flags = dict(zip("abc", values, strict=True))
        holds = any(all(flags[part.attribute] == part.operand for part in one) for one in found)
        assert holds == true(tree, flags)
