"""Conditions of the simplest form: what is read without the parser is what the parser reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.model.conditions.fast_parser import read_simple
from tidings.model.conditions.parser import parse, parse_any, render
from tidings.model.conditions.predicate import Condition

NAMES = st.sampled_from(["x", "Year", "a_1", "_b", "date", "if", "not", "true", "and", "x.y"])
NUMBERS = ("1", "-1", "-0", "0.5", "-2.50", "007", "1e3", ".5", "1.", "9" * 400)
STRINGS = ("''", "'a'", "'and b = 2'", "'it''s'", r"'a\'", "'é'", "'a\nb'", "'--'", '"q"', "y")
OTHERS = ("true", "FALSE", "null", "date '2026-01-01'", "timestamp '2026-01-01T00:00:00Z'")
VALUES = st.sampled_from((*NUMBERS, *STRINGS, *OTHERS))
SPACES = st.sampled_from(["", " ", "  ", "\n", "\t", "\u00a0", " /* c */ "])
OPERATORS = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">=", "==", "like", "is"])
WORDS = (
    *("{0} is null{1}", "{0} IS{1} not  NULL", "true{1}", "{1}TRUE", "false", "{0} not{1}"),
    *("{0} like 'a%'", "{0}{1}not like '%a%'", "{0} ilike '%A'", "{0} not ILIKE 'É'{1}"),
    *("{0} like '%'", "{0} ilike '%%'", "{0} like 'a_'", "{0} like 'a!%' escape '!'"),
    *("{0} not like '%'", "{0} ilike''", "{0} ilike 'a%b'", "{0} like 3"),
)
JOINS = st.sampled_from([" and ", " AND ", "\nand\t", " or ", "and", " and and "])


@st.composite
def terms(draw: st.DrawFn) -> str:
    """Draw a comparison, a range or a list, of which many cannot be read."""
    name, space = draw(NAMES), draw(SPACES)
    if draw(st.integers(0, 3)) == 0:
        members = draw(st.lists(VALUES, max_size=4))
        comma = draw(st.sampled_from([", ", ",", " ,\n", " "]))
        negated = draw(st.sampled_from(["", "", "not ", "NOT\n"]))
        return f"{name} {negated}in{space}({space}{comma.join(members)}){draw(SPACES)}"
    if draw(st.booleans()):
        return f"{name}{space}{draw(OPERATORS)}{draw(SPACES)}{draw(VALUES)}{draw(SPACES)}"
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(WORDS)).format(name, draw(SPACES))
    word = draw(st.sampled_from(["between", "BETWEEN", "not between", "in"]))
    return f"{name} {word}{draw(SPACES)} {draw(VALUES)} and {draw(VALUES)}"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw terms with something between them."""
    text = draw(terms())
    for _ in range(draw(st.integers(0, 3))):
        text += draw(JOINS) + draw(terms())
    return draw(SPACES) + text


def parsed(text: str) -> Condition | None:
    try:
        return parse_any(text)
    except TidingsError:
        return None


@given(texts())
def test_what_is_read_is_what_the_parser_reads(text: str) -> None:
    found, due = read_simple(text, str.isidentifier), parsed(text)
    if found is not None and due is not None:
        assert found == due
        assert render(found) == render(due)


@given(texts())
def test_the_language_is_the_same_with_it(text: str) -> None:
    due = parsed(text)
    if due is None:
        with pytest.raises(TidingsError):
            parse(text)
    else:
        assert parse(text) == due
        assert render(parse(text)) == render(due)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        " x=1 ",
        "genre = 'drama' AND year >= 2003",
        "year between -1 and 2.5 and good = TRUE and x <> 'a b'",
        "x > 1 and x < 5 and x >= 2",
        "x in (1, 2)",
        "x IN('a' ,'b') and y = 1 and z in ( true )",
        "x in (3, -1.5, 3, 1)  ",
        "x in (1)and y = 1",
    ],
)
def test_the_simplest_conditions_are_read(text: str) -> None:
    assert read_simple(text, str.isidentifier) == parse_any(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "x = 1 and",
        "x = 1 or y = 2",
        "not x = 1",
        "(x = 1)",
        "x = 1 -- note",
        "x = 'it''s'",
        r"x = 'a\b'",
        "x = 1_000",
        "x = 1and y = 2",
        "1 = x",
        "x in ()",
        "x in (1,)",
        "x in (1, 'a')",
        "x in (1 2)",
        "x in ('a' 'b')",
        "x in ('it''s')",
        "x in (1) or y = 1",
        "x in (1, (2))",
        "x is true",
        "x in (1, 2",
        "x between 7 and 3",
        "x > 5 and x < 3",
        "good < true",
    ],
)
def test_all_else_is_left_to_the_parser(text: str) -> None:
    assert read_simple(text, str.isidentifier) is None


def test_a_name_that_is_not_plain_is_left_to_the_parser() -> None:
    assert read_simple("x = 1 and y = 2", {"x"}.__contains__) is None
