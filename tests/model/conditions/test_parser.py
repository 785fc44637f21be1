"""The condition language: printed and read back, normalised as SQL means it, refused in place."""

import contextlib
import operator
import os
import random
import re
import resource
import sys
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from tidings.errors import InvalidCondition, TidingsError
from tidings.model.conditions.parser import parse, parse_predicate, render
from tidings.model.conditions.predicate import Condition, Predicate, predicate
from tidings.model.limits import Limits
from tidings.model.records import Event

ODD_NAMES = [
    "genre", "Genre", "x y", "a.b", 'say "hi"', "it's", "select", "order", "and", "not", "null",
    "true", "date", "timestamp", "like", "between", "in", "interval", "show", "set", "if", "é",
    "1", "%", "--", "a\nb", "current_date", "exists", "cast", "values", "x;y", "*",
]  # fmt: skip
NAMES = st.sampled_from(ODD_NAMES) | st.text(min_size=1)
TEXTS = st.text("ab%_'\"\\!\n\r\0\U0010ffff") | st.text()
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18)
TIMES = st.datetimes(timezones=st.just(UTC))
TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    name, values = draw(NAMES), draw(st.sampled_from([NUMBERS, TEXTS, TIMES, st.booleans()]))
    chosen = draw(st.sampled_from([*TESTS, "between", "in", "prefix", "suffix", "substring"]))
    operand: Any = draw(values)
    if chosen == "between":
        operand = sorted([operand, draw(values)])
    elif chosen == "in":
        operand = [operand, *draw(st.lists(values, max_size=3))]
    elif chosen in ("prefix", "suffix", "substring"):
        operand = draw(TEXTS)
    try:
        return predicate(name, chosen, operand)
    except InvalidCondition:
        reject()


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    conjunctions = st.lists(predicates(), min_size=1, max_size=3).map(tuple)
    try:
        return Condition(tuple(draw(st.lists(conjunctions, min_size=1, max_size=3))))
    except InvalidCondition:
        reject()


@given(conditions())
@example(Condition(((predicate("x", "<=", sys.float_info.max),),)))
@example(Condition(((predicate("t", "=", {"time": "9999-12-31T23:59:59.999999Z"}),),)))
@example(Condition(((predicate("t", ">", {"time": "0001-01-01T00:00:00Z"}),),)))
def test_a_printed_condition_is_read_back_as_the_same(condition: Condition) -> None:
    assert parse(render(condition)) == condition


@pytest.mark.parametrize("name", ODD_NAMES)
def test_every_name_is_printed_so_that_it_is_read_as_an_attribute(name: str) -> None:
    condition = Condition(((predicate(name, "=", 1), predicate(name, "prefix", "x")),))
    assert parse(render(condition)) == condition


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("genre = 'drama' AND year >= 2003", "genre = 'drama' and year >= 2003"),
        ("x > 1 and x <= 5", "x > 1 and x <= 5"),
        ("x >= 1 and x <= 5", "x between 1 and 5"),
        ("x >= 5 and 5 >= x", "x = 5"),
        ("5 < x", "x > 5"),
        ("'drama' = genre", "genre = 'drama'"),
        ("a <> 'it''s'", "a != 'it''s'"),
        ("title like 'Big%'", "title like 'Big%'"),
        ("title like '%Fish'", "title like '%Fish'"),
        ("title like '%g F%'", "title like '%g F%'"),
        ("title like 'Big'", "title = 'Big'"),
        ("title like '100!%%' escape '!'", "starts_with(title, '100%')"),
        ("ends_with(title, '_')", "ends_with(title, '_')"),
        ("a in (2, 1, 2.0)", "a in (1, 2)"),
        ("a not in (1, 2)", "a not in (1, 2)"),
        ("not a not in (1, 2)", "a in (1, 2)"),
        ("a not in (1)", "a != 1"),
        ("a not between 1 and 2", "a not between 1 and 2"),
        ("a not between 2 and 2", "a != 2"),
        ("not a between 'x' and 'y'", "a not between 'x' and 'y'"),
        ("a not like 'x'", "a != 'x'"),
        ("a not like 'x%'", "a not like 'x%'"),
        ("not (a like '%x' or a like '%y%')", "a not like '%x' and a not like '%y%'"),
        ("not starts_with(a, '100%')", "not starts_with(a, '100%')"),
        ("a ilike 'Big%'", "a ilike 'big%'"),
        ("a ilike 'STRAßE'", "a ilike 'strasse'"),
        ("a not ilike '%FISH'", "a not ilike '%fish'"),
        ("not a ilike '%x%'", "a not ilike '%x%'"),
        ("a ilike '2003%'", "a like '2003%'"),
        ("a ilike 'X!%!!!_' escape '!'", "a ilike 'x!%!!!_' escape '!'"),
        ("a ~~* 'x'", "a ilike 'x'"),
        ("a is null", "a is null"),
        ("a is not null and b isnull", "a is not null and b is null"),
        ("not a is null", "a is not null"),
        ("(a is null or a = 2) and a is not null", "a = 2 and a is not null"),
        ("true", "true"),
        ("TRUE and (true or a = 1)", "(true) or (true and a = 1)"),
        ("a and not b", "a = true and b != true"),
        ("day > date '2004-02-13'", "day > timestamp '2004-02-13T00:00:00Z'"),
        ("day = timestamp '2004-02-13T02:00:00+02:00'", "day = timestamp '2004-02-13T00:00:00Z'"),
        ("a = 1 and (b = 2 or c = 3)", "(a = 1 and b = 2) or (a = 1 and c = 3)"),
        ("show = 1 -- the rest\n and movie.year = -2", 'show = 1 and "movie.year" = -2'),
        ("(x < 3 or y = 1) and x > 5", "y = 1 and x > 5"),
        ("`order` = 1 and `has space` > 2", 'order = 1 and "has space" > 2'),
        ("`a.b` = '`' and `a``b` = 1", '"a.b" = \'`\' and "a`b" = 1'),
    ],
)
def test_conditions_read_as_sql_has_them(written: str, printed: str) -> None:
    assert render(parse(written)) == printed


NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
VALUES: dict[str, list[Any]] = {"n": [1, 2, 3], "m": [1, 2.5], "g": ["a", "b", "c"], "flag": [True]}
Tree = tuple[Any, ...]


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def leaves() -> st.SearchStrategy[Tree]:
    def on(name: str) -> st.SearchStrategy[Tree]:
        one = st.sampled_from(VALUES[name])
        compared = st.tuples(st.just("cmp"), st.just(name), st.sampled_from([*TESTS]), one)
        members = st.tuples(st.just("in"), st.just(name), st.lists(one, min_size=1, max_size=3))
        pair = st.lists(one, min_size=2, max_size=2).map(sorted)
        return compared | members | st.tuples(st.just("between"), st.just(name), pair)

    flag = st.tuples(st.just("cmp"), st.just("flag"), st.sampled_from(["=", "!="]), st.booleans())
    return on("n") | on("m") | on("g") | flag | st.just(("bare", "flag"))


TREES = st.recursive(
    leaves(),
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner)
    ),
    max_leaves=6,
)


def sql(tree: Tree) -> str:
    match tree:
        case ("not", inner):
            return f"not ({sql(inner)})"
        case ("and" | "or" as word, left, right):
            return f"({sql(left)}) {word} ({sql(right)})"
        case ("cmp", name, op, value):
            return f"{name} {op} {literal(value)}"
        case ("in", name, members):
            return f"{name} in ({', '.join(map(literal, members))})"
        case ("between", name, (low, high)):
            return f"{name} between {literal(low)} and {literal(high)}"
    return str(tree[1])


def true(tree: Tree, event: dict[str, list[Any]], negated: bool = False) -> bool:
    """Evaluate the tree itself: `not` goes down to the comparisons, which ask for some value."""

    def some(name: str, op: str, operand: Any) -> bool:
        kind = str if isinstance(operand, str) else bool if isinstance(operand, bool) else float
        own = [
            each
            for each in event.get(name, [])
            if (float if type(each) is int else type(each)) is kind
        ]
        return any(TESTS[op](each, operand) for each in own)

    match tree:
        case ("not", inner):
            return true(inner, event, not negated)
        case ("and" | "or" as word, left, right):
            both = (true(left, event, negated), true(right, event, negated))
            return all(both) if (word == "and") != negated else any(both)
        case ("cmp", name, op, value):
            return some(name, NEGATED[op] if negated else op, value)
        case ("in", name, members) if negated:
            return all(some(name, "!=", member) for member in members)
        case ("in", name, members):
            return any(some(name, "=", member) for member in members)
        case ("between", name, (low, high)) if negated:
            return some(name, "<", low) or some(name, ">", high)
        case ("between", name, (low, high)):
            each_alone = [{name: [value]} for value in event.get(name, [])]
            bounds = (("cmp", name, ">=", low), ("cmp", name, "<=", high))
            return any(all(true(bound, one) for bound in bounds) for one in each_alone)
    return some("flag", "!=" if negated else "=", True)


# Numbers have at most one value here, as bounds on several fold: that is judged with predicates.
STRINGS = st.lists(st.sampled_from("abc"), max_size=3)
ONE_NUMBER = st.sampled_from([[], [1], [2], [2.5], [4], ["a"], [True]])
EVENTS = st.fixed_dictionaries(
    {}, optional={"n": ONE_NUMBER, "m": ONE_NUMBER, "g": STRINGS, "flag": st.lists(st.booleans())}
)


@given(TREES, st.lists(EVENTS, min_size=1, max_size=5))
def test_the_normal_form_means_what_the_tree_means(
    tree: Tree, events: list[dict[str, Any]]
) -> None:
    try:
        condition = parse(sql(tree))
    except InvalidCondition as refused:
        if "nothing can satisfy it" not in str(refused):
            raise
        reject()
    for event in events:
        assert condition.holds(Event("e", event, 0).tokens) == true(tree, event)


def test_not_equal_of_a_list_means_that_some_value_differs() -> None:
    found = parse("not (a = 1)")
    assert [found.holds(Event("e", {"a": a}, 0).tokens) for a in ((1,), (1, 2))] == [False, True]


def underlined(refused: InvalidCondition, text: str) -> str:
    """Return what the caret line marks, once it agrees with the position."""
    lines = str(refused).split("\n")
    (at,) = [number for number, line in enumerate(lines) if re.fullmatch(r" *\^+", line)]
    marked = lines[at - 1][lines[at].index("^") : len(lines[at])]
    assert refused.position is not None
    assert text.startswith(marked, refused.position)
    return marked


@pytest.mark.parametrize(
    ("text", "marked", "why"),
    [
        ("a = 1 and and b = 2", "and", "cannot be read"),
        ("year >=", ">=", "cannot be read"),
        ("a = 1 b = 2", "b", "cannot be read"),
        ("(a = 1", "1", "cannot be read"),
        ("a = 1,\nb = 2", ",", "cannot be read"),
        ("a = 1 and\n  lower(b) = 'x'", "lower(b)", "`lower(b)` is not an attribute"),
        ("a = 1\nand b = 2 c", "c", "cannot be read"),
        ("a = 1 and upper(b)", "upper(b)", "`upper(b)` is not in the language"),
        ("f(g(a), b) or a = 1", "f(g(a), b)", "is not in the language"),
        ("a + 1 = 2", "a + 1", "`a + 1` is not an attribute"),
        ("1 = 1", "1", "`1` is not an attribute"),
        ('dest = "MIA"', '"MIA"', "write text in single quotes: 'MIA'"),
        ("dest = \u201cMIA\u201d", "\u201cMIA\u201d", "write text in single quotes: 'MIA'"),
        ("a = 1 and b = c", "c", "`c` is not a value"),
        ("a in (1, c)", "c", "`c` is not a value"),
        ("a = 1 and " * 99 + "b = c", "c", "`c` is not a value"),
        ("a = cast(b as date)", "b", "`b` is not a value"),
        ("a = 1 and b = null", "b", "null is not a value; write `is null`"),
        ("a = 1 and b is true", "b", "`is` takes null or not null"),
        ("a = 1 or not true", "true", "`not true` is never satisfied"),
        ("false or a = 1", "false", "`false` is never satisfied"),
        ("a is null and b = 1 and a > 2", "a is null and b = 1 and a > 2", "`is null` excludes"),
        ("t not like '%'", "t not like '%'", "every string is excluded"),
        ("t not in (true, false)", "t", "every boolean is excluded"),
        ("t not ilike 3", "t not ilike 3", "needs a string"),
        ("a = 1 and t like 'a%b'", "t like 'a%b'", "% at the ends only"),
        ("t like 'a_'", "t like 'a_'", "no _"),
        ("t like 3", "t like 3", "`like` needs a string"),
        ("a = 1 and t = 'abc", "'abc", "opened and not closed"),
        ("t = 'a\" b", "'a\" b", "opened and not closed"),
        ("a = 1 /* why", "/* why", "opened and not closed"),
        ("a = '`' and `b = 1", "`b = 1", "opened and not closed"),
        ("a = 1 and x = 1e999", "x = 1e999", "inf is not a finite number"),
        ("x between 7 and 3", "x between 7 and 3", "low 7 is above high 3"),
        ("a = 1 or (x > 5 and x < 3)", "x > 5 and x < 3", "low 5 is above high 3"),
        ("x > 3 and x <= 3", "x > 3 and x <= 3", "(a bound is strict)"),
        ("a = 1 and x in (1, 'b')", "x in (1, 'b')", "not number and string"),
        ("x between 1 and 'b'", "x between 1 and 'b'", "two numbers, strings or times"),
        ("x > true", "x", "booleans have no order"),
        ("x in (select y from z)", "x in (select y from z)", "`in` takes a list of values"),
        ("x in ()", "x", "`in` takes a list of values"),
        ("x = (select 1)", "1", "is not a value"),
        ("a = 1; b = 2", "a = 1; b = 2", "is not in the language"),
        ("a = 1; drop table b", "drop", "cannot be read"),
        ("select 1", "select", "cannot be read"),
        ("x = timestamp 'soon'", "x = timestamp 'soon'", "'soon' is not a time"),
        ("('x' = a) = true", "'x' = a", "is not an attribute"),
    ],
)
def test_a_refusal_names_the_place_and_the_reason(text: str, marked: str, why: str) -> None:
    with pytest.raises(InvalidCondition) as caught:
        parse(text)
    assert why in str(caught.value)
    assert underlined(caught.value, text) == marked
    assert "possible: comparisons" in str(caught.value)


@pytest.mark.parametrize("text", ["", " \n", None, 5])
def test_no_text_is_no_condition(text: object) -> None:
    with pytest.raises(InvalidCondition, match="is not a condition; write comparisons"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 65 + "a" + ")" * 65,
        "(" * 50_000 + "a" + ")" * 50_000,
        "(" * 9_999,
        "not " * 65 + "a",
        "not (" * 33 + "a" + ")" * 33,
        "x = " + "(" * 65 + "1" + ")" * 65,
        "x = " + "[" * 65 + "1" + "]" * 65,
    ],
)
def test_a_condition_that_nests_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(
        InvalidCondition, match=r"nests too deeply.*the limit nesting = 64"
    ) as caught:
        parse(text)
    assert len(str(caught.value)) < 999
    assert underlined(caught.value, text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(" * 64 + "a" + ")" * 64, "a = true"),
        ("not (" * 32 + "a" + ")" * 32, "a = true"),
        ("x = " + "(" * 64 + "1" + ")" * 64, "x = 1"),
        ("x in (" + "(" * 63 + "1" + ")" * 63 + ")", "x in (1)"),
        ("x in (1) and " * 64 + "x in (1)", "x in (1)"),
    ],
)
def test_what_nests_as_deeply_as_allowed_is_read_from_any_stack(text: str, printed: str) -> None:
    assert render(parse(text)) == printed
    assert render(deep_down(900, parse, text)) == printed


def deep_down(frames: int, call: Callable[..., Any], *given: Any) -> Any:
    """Call a function from a deeper stack frame."""
    return call(*given) if frames <= 0 else deep_down(frames - 1, call, *given)


@pytest.mark.parametrize("limits", [Limits.trusted(), Limits.public()])
def test_nesting_has_the_limit_that_is_given(limits: Limits) -> None:
    deepest = "(" * limits.nesting + "a" + ")" * limits.nesting
    assert parse(deepest, limits) == parse("a")
    with pytest.raises(InvalidCondition, match="the limit nesting"):
        parse(f"({deepest})", limits)


def chain(count: int, word: str) -> str:
    return f" {word} ".join(f"a{number} > {number}" for number in range(count))


@pytest.mark.slow
def test_ten_thousand_predicates_are_read_from_any_stack() -> None:
    text = "flag and " + chain(9_999, "and")
    found = deep_down(900, parse, text)
    assert len(found.conjunctions[0]) == 10_000
    assert parse(render(found)) == found
    for more in (text + " and b = 1", chain(10_001, "and")):
        with pytest.raises(InvalidCondition, match="10,001, above the limit conjunction_pre"):
            parse(more)
    alternatives = " or ".join(f"({chain(100, f'and x{n}.')})" for n in range(102))
    with pytest.raises(InvalidCondition, match="10,099, above the limit predicates = 10,000"):
        parse(alternatives)


def test_a_thousand_alternatives_are_read() -> None:
    found = parse(chain(1_024, "or"))
    assert len(found.conjunctions) == 1_024
    assert parse(render(found)) == found
    with pytest.raises(InvalidCondition, match="1,025, above the limit conjunctions = 1,024"):
        parse(chain(1_025, "or"))


def test_a_condition_that_unfolds_too_far_is_refused() -> None:
    pairs = [f"(a{n} = 1 or b{n} = 1)" for n in range(40)]
    unfolded = parse(" and ".join(pairs[:10]))
    assert len(unfolded.conjunctions) == 1_024
    assert parse(render(unfolded)) == unfolded
    dual = "not (" + " or ".join(pair.replace("or", "and") for pair in pairs) + ")"
    for text in (" and ".join(pairs), dual):
        with pytest.raises(InvalidCondition, match="2,048, above the limit conjunctions"):
            parse(text)
    with pytest.raises(InvalidCondition, match="above the limit conjunctions = 32"):
        parse(" and ".join(pairs[:6]), Limits.public())


def test_alternatives_that_exclude_each_other_are_not_combined_for_ever() -> None:
    same = "(" + " or ".join(f"x = {n}" for n in range(32)) + ")"
    assert len(parse(" and ".join([same] * 20)).conjunctions) == 32
    with pytest.raises(InvalidCondition, match="above the limit conjunctions"):
        parse(" and ".join([same] * 100))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("a = '" + "x" * 8_000 + "'", "condition_bytes"),
        (" and ".join(f"a{n} = 1" for n in range(65)), "conjunction_predicates"),
        ("x in (" + ", ".join(map(str, range(1_001))) + ")", "in_values"),
        ("not x in (" + ", ".join(map(str, range(1_001))) + ")", "in_values"),
        (" or ".join(f"a{n}" for n in range(33)), "conjunctions"),
        ("a = '" + "x" * 2_000 + "' and (b or c) and (d or e)", "condition_bytes"),
    ],
)
def test_the_limits_of_strangers_are_kept(text: str, limit: str) -> None:
    parse(text)
    with pytest.raises(InvalidCondition, match=f"above the limit {limit} = "):
        parse(text, Limits.public())


def test_a_condition_is_refused_that_would_be_printed_at_excessive_length() -> None:
    name = "n" * 100_000
    with pytest.raises(InvalidCondition, match=r"normal form .*above the limit condition_bytes"):
        parse(f"{name} and (" + " or ".join(f"b = {n}" for n in range(12)) + ")")


@pytest.mark.parametrize(
    "text",
    [
        "x between {:1} and 2",
        "x = 1e",
        "x = {",
        "x = \N{SUPERSCRIPT TWO}",
        "x = " + "9" * 5_000,
        "x > 1 and (y or x = " + "9" * 5_000 + ")",
        "x = " + "1" * 400 + ".5",
        "if x = 1",
        "show x or (show y",
        "()",
        "a or ()",
        ")",
        ";",
        "; a = 1",
        "a = 1;;",
        "(a = 1;)",
        "a = 1; or b = 2",
        "-- nothing",
        "x in (" + "1," * 200_001 + "1)",
        "f(" + "a, " * 50_000 + "a)",
        "x = " + "- " * 50_000 + "1",
        "x = " + "1 + " * 50_000 + "1",
        "x = case when " * 300,
        "a." * 50_000 + "a = 1",
    ],
    ids=lambda text: text[:30],
)
def test_what_sqlglot_stumbles_over_is_refused(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidCondition):
        parse(text)
    assert not caplog.records


@pytest.mark.parametrize("text", ["a = 1 and b = 2", "a = 1 or a = 2"])
def test_a_weighted_predicate_is_a_single_one(text: str) -> None:
    with pytest.raises(InvalidCondition, match="is more than one predicate; give each its own"):
        parse_predicate(text)


SCRAPS = "a b 1 -1 's' '%' = < ( ) , ; . $1 and or not in like between is null true\n select date '"


@given(st.integers())
def test_any_scraps_of_sql_are_read_or_refused_in_place(seed: int) -> None:
    chance = random.Random(seed)
    text = " ".join(chance.choices(SCRAPS.split(" "), k=chance.randint(1, 9)))
    try:
        found = parse(text)
    except InvalidCondition as refused:
        if refused.position not in range(len(text) + 1):
            raise
    else:
        assert parse(render(found)) == found


GARBAGE = [
    *("'", '"', "`", "(", ")", ",", "-", "--", "/*", "*/", "$$", "\\", ";", ".", "{", "[", "\0"),
    *("=", "<", "!=", "x", "1", " ", "\n", "x ", "1.", "1e", "not ", "x = ", "x in (", "x and "),
    *("'' ", "' ", "x = 'a", "((x)", ", 1", "x between ", "case when ", "::", "é", "a.b.", "@x "),
]
ENDLESS = ["x = ", "x in (", "x between 1 and ", "'", "x", "-", "x = 1 and y"]


@pytest.mark.slow
def test_long_garbage_is_refused_soon() -> None:
    """In a child whose time on a core is bounded: what hangs ends it by a signal."""
    texts = [sign * (50_000 // len(sign.encode())) for sign in GARBAGE]
    texts += [start + " " * 900_000 + "z" for start in ENDLESS]
    texts += ["x = " + "1" * 900_000 + "z", "x = -" + "1" * 900_000, "x " * 3 + "a" * 900_000]
    pid = os.fork()
    if not pid:
        status = 1
        try:
            for text in texts:
                # The limit counts what the process has used so far.
                used = resource.getrusage(resource.RUSAGE_SELF)
                most = int(used.ru_utime + used.ru_stime) + 6
                resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
                with contextlib.suppress(TidingsError):
                    parse(text)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
