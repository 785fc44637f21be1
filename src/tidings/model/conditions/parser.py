"""Conditions as SQL text: parsing and printing.

`genre = 'drama' and year >= 2003 and title like 'Big%'`

Common conditions are read by `fast_parser`. For others, `boolean` reads the structure and sqlglot
the comparisons; this module turns their syntax trees into predicates, and underlines in its errors
the text that it refuses.
"""

import math
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from tidings.errors import InvalidCondition, TidingsError, shown
from tidings.model.conditions.boolean import UNREADABLE, Conjunctions, Structure
from tidings.model.conditions.fast_parser import number, read_simple
from tidings.model.conditions.predicate import (
    FOLDED,
    NEGATIONS,
    PRESENCE,
    TRUE,
    Condition,
    Predicate,
    predicate,
)
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.validate import is_a, plain_text
from tidings.model.values import SECOND_US, format_time, key_us

_ROOM: Final = 400
"""Frames that are enough for the largest comparison, however it is damaged."""
POSSIBLE: Final = (
    "comparisons (= != < <= > >=) of an attribute with a number, string, boolean, "
    "date '…' or timestamp '…'; between; in (…); like 'x%', '%x', '%x%', and ilike; is null; "
    "true; and, or, not; an attribute whose name is a word of SQL in double quotes"
)
_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FOLDED: Final = {operator: folded for folded, operator in FOLDED.items()}
_FUNCTIONS: Final[dict[type[exp.Expr], str]] = {
    exp.StartsWith: "prefix",
    exp.EndsWith: "suffix",
    exp.Contains: "substring",
}
_TIMES: Final = (
    exp.DType.DATE,
    exp.DType.DATETIME,
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.TIMESTAMPTZ,
)
_CURLY: Final = "\u2018\u2019\u201c\u201d"
_WRITTEN_OUT: Final = 1e15
_SHOWN: Final = 120
_CLOSED: Final = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|\$\$.*?\$\$|/\*.*?\*/|--[^\n]*|(?!/\*|\$\$)[^'"`]""", re.DOTALL
)
_TOKEN: Final = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\w+|[^\w\s]""")
_LONG: Final = 100_000
_SIZE_RATIO: Final = 32
"""`size_bound` exceeds the size of a condition at most by this factor."""
_USES: Final = (
    "? = 1",
    "? < 1",
    "? in (1)",
    "? not in (1)",
    "? between 1 and 2",
    "? like 'x'",
    "? not ilike 'x'",
    "? is not null",
    "contains(?, 'x')",
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_COMPARISON_TOKENS: Final = 100
_NEEDLESS: Final = 6
_MEMBER_TOKENS: Final = 8
"""The most tokens of a comparison, and of a member of `in`."""


class _Conditions(DuckDB):
    """The SQL dialect of conditions; names may be in backticks, as in Spark and MySQL."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]

    class Parser(DuckDBParser):
        NO_PAREN_IF_COMMANDS = False

        def _warn_unsupported(self) -> None:
            self.raise_error("a statement is not a condition")  # sqlglot would only log it


_DIALECT: Final = _Conditions()
_WORDS: Final = {
    *(word for phrase in _Conditions.Tokenizer.KEYWORDS for word in phrase.upper().split()),
    *DuckDBParser.NO_PAREN_FUNCTION_PARSERS,
    "LAMBDA",
}
"""The keywords of sqlglot; any other word is an attribute in every position."""


def parse(text: object, limits: Limits = TRUSTED) -> Condition:
    """Parse an SQL condition into its disjunctive normal form.

    >>> render(parse("not (year < 2003 or genre in ('horror'))"))
    "year >= 2003 and genre != 'horror'"
    >>> parse("lower(genre) = 'drama'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tidings.errors.InvalidCondition: `lower(genre)` is not an attribute
      lower(genre) = 'drama'
      ^^^^^^^^^^^^
    possible: comparisons (= != < <= > >=) ...
    """
    check_limits(limits, InvalidCondition)
    text = plain_text(text) if is_a(text, str) else text  # type: ignore[arg-type]
    if type(text) is not str or not text.strip():
        raise InvalidCondition(f"{shown(text)} is not a condition; write {POSSIBLE}")
    if len(text) * 4 > limits.condition_bytes:
        size = len(text.encode(errors="replace"))
        limits.check("condition_bytes", size, "the size of the condition", InvalidCondition)
    # A list that may be too long is left to the parser, which counts its values.
    simple = None if text.count(",") >= limits.in_values else read_simple(text, _plain_name)
    if simple and len(text) <= limits.conjunction_predicates:
        return simple  # fewer characters than predicates allowed, so it is within all limits
    condition = simple or parse_any(text, limits)
    check_condition(condition, limits)
    return condition


def parse_any(text: str, limits: Limits = TRUSTED) -> Condition:
    """Parse any condition by its tokens, at about 20 us per comparison."""
    # The result must not depend on the caller's stack. If that is nearly full, parse in a thread,
    # which starts with an empty one: sqlglot may take the error of a full one for wrong syntax.
    if not _is_deep():
        with suppress(RecursionError):
            return _parse(text, limits)
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(_parse, text, limits).result()


def _is_deep() -> bool:
    try:
        sys._getframe(max(1, sys.getrecursionlimit() - _ROOM))  # noqa: SLF001
    except ValueError:
        return False
    return True


def _parse(text: str, limits: Limits) -> Condition:
    def refuse(why: str, start: int, end: int) -> NoReturn:
        raise _error_at(text, why, start, end) from None

    tokens = _tokens(text, limits)
    if len(tokens) > 1 and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    structure = Structure(tokens, limits, refuse)
    conjunctions = structure.conjunctions(_Reader(text, limits).comparison)
    return Condition(tuple(conjunctions))


def check_condition(condition: Condition, limits: Limits = TRUSTED) -> None:
    """Refuse a condition that is above the limits, or would be when it is printed."""
    condition.check(limits)
    size = condition.size_bound()
    if size > limits.condition_bytes:
        what = "the size of the condition in disjunctive normal form"
        if size <= _SIZE_RATIO * limits.condition_bytes:
            size = len(render(condition).encode(errors="replace"))
        limits.check("condition_bytes", size, what, InvalidCondition)


def parse_predicate(text: object, limits: Limits = TRUSTED) -> Predicate:
    """Parse a condition that is a single predicate, as weighted predicates are."""
    conjunctions = parse(text, limits).conjunctions
    if len(conjunctions) > 1 or len(conjunctions[0]) > 1:
        raise InvalidCondition(
            f"{shown(text)} is more than one predicate; give each its own weight"
        )
    return conjunctions[0][0]


def _tokens(text: str, limits: Limits = TRUSTED) -> list[Token]:
    if len(text) > _LONG:
        # sqlglot takes about 5 us per token.
        count = sum(1 for _ in _TOKEN.finditer(text))
        most = 16 * limits.predicates + 2 * min(limits.in_values, text.count(","))
        if count > most:
            why = f"the condition has {count:,} words and signs; no more than {most:,} are read"
            raise _error_at(text, why, 0, 1)
    try:
        return _DIALECT.tokenize(text)
    except TokenError:
        start = _unclosed(text)
        why = "a quote or comment is opened and not closed" if start < len(text) else UNREADABLE
        raise _error_at(text, why, start, len(text)) from None


def _unclosed(text: str) -> int:
    """Return the position of the quote or comment that is not closed."""
    position = 0
    while closed := _CLOSED.match(text, position):
        position = closed.end()
    return position


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(before) + 1 for before in text.split("\n")[: line - 1]) + column


def _error_at(text: str, what: str, start: int, end: int) -> InvalidCondition:
    """Return an error that underlines a part of `text` and lists what is possible."""
    start = min(max(0, start), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start:].split("\n", 1)[0]
    before = start - line_start
    cut = max(0, before - _SHOWN // 2)
    line, before = line[cut : cut + _SHOWN], before - cut
    marks = " " * before + "^" * max(1, min(end - start, len(line) - before))
    return InvalidCondition(f"{what}\n  {line}\n  {marks}\npossible: {POSSIBLE}", start)


class _Reader:
    """A reader of the comparisons in one text, which it quotes in errors."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._parser = _DIALECT.parser()
        self._range = (0, len(text))

    def comparison(self, tokens: Sequence[Token], negated: bool) -> Conjunctions:
        """Return the predicates of one comparison, or of its negation; it is parsed by sqlglot."""
        self._range = (tokens[0].start, tokens[-1].end + 1)
        tokens = _bare(tokens)
        self._check_size(tokens)
        if tokens[-1].token_type is TokenType.SEMICOLON:
            raise _error_at(self._text, UNREADABLE, tokens[-1].start, tokens[-1].end + 1)
        node = self.tree(tokens)
        while isinstance(node, exp.Paren | exp.Not):
            negated = negated != isinstance(node, exp.Not)
            node = node.this
        try:
            return self._leaf(node, negated=negated)
        except TidingsError as error:
            if isinstance(error, InvalidCondition) and error.position is not None:
                raise
            self._refuse(node, str(error))

    def tree(self, tokens: list[Token]) -> exp.Expr:
        """Return the syntax tree of one comparison."""
        try:
            trees = self._parser.parse_into(exp.Condition, tokens, self._text)
        except ParseError as error:
            details = error.errors[0] if error.errors else {}
            end = _offset(self._text, details.get("line", 1), details.get("col", 1))
            length = len(details.get("highlight") or "x")
            raise _error_at(self._text, UNREADABLE, end - length, end) from None
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - sqlglot fails in many ways on invalid SQL
            trees = []
        if not trees or not isinstance(trees[0], exp.Expr):
            raise _error_at(self._text, UNREADABLE, *self._range) from None
        return exp.Block(expressions=trees) if len(trees) > 1 else trees[0]

    def _check_size(self, tokens: Sequence[Token]) -> None:
        """Refuse too many tokens for one comparison before sqlglot parses them."""
        if len(tokens) <= _COMPARISON_TOKENS:
            return
        members = 0
        if any(token.token_type is TokenType.IN for token in tokens[:_COMPARISON_TOKENS]):
            members = 1 + sum(token.token_type is TokenType.COMMA for token in tokens)
        what = "the number of values of one `in`"
        self._limits.check("in_values", members, what, InvalidCondition)
        if len(tokens) > _COMPARISON_TOKENS + members * _MEMBER_TOKENS:
            raise _error_at(self._text, "this is too long for one comparison", *self._range)

    def _leaf(self, node: exp.Expr, *, negated: bool) -> Conjunctions:
        if type(node) in _COMPARISONS:
            return [(self._comparison(node, negated=negated),)]
        if isinstance(node, exp.Between):
            return self._between(node, negated=negated)
        if isinstance(node, exp.In):
            return self._in(node, negated=negated)
        if isinstance(node, exp.Column):
            return [(predicate(self._attribute(node), "!=" if negated else "=", True),)]
        if isinstance(node, exp.Is):
            return [(self._is(node, negated=negated),)]
        if isinstance(node, exp.Boolean):
            if bool(node.this) == negated:
                self._refuse(node, f"`{'not ' * negated}{self._quote(node)}` is never satisfied")
            return [(TRUE,)]
        return [(self._pattern(node, negated=negated),)]

    def _is(self, node: exp.Is, *, negated: bool) -> Predicate:
        value = node.expression
        while isinstance(value, exp.Paren):
            value = value.this
        if not isinstance(value, exp.Null):
            self._refuse(node, "`is` takes null or not null")
        name = node.this.this if isinstance(node.this, exp.Paren) else node.this
        return predicate(self._attribute(name), "is not null" if negated else "is null")

    def _comparison(self, node: exp.Expr, *, negated: bool) -> Predicate:
        operator = _COMPARISONS[type(node)]
        left, right = node.this, node.expression
        if not isinstance(left, exp.Column) and isinstance(right, exp.Column):
            left, right, operator = right, left, _MIRRORED[operator]
        operator = _NEGATED[operator] if negated else operator
        return predicate(self._attribute(left), operator, self._literal(right))

    def _between(self, node: exp.Expr, *, negated: bool) -> Conjunctions:
        name = self._attribute(node.this)
        low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
        return [(predicate(name, "not between" if negated else "between", (low, high)),)]

    def _in(self, node: exp.In, *, negated: bool) -> Conjunctions:
        if node.args.get("query") or not node.expressions:
            self._refuse(node, "`in` takes a list of values")
        name = self._attribute(node.this)
        members = [self._literal(member) for member in node.expressions]
        return [(predicate(name, "not in" if negated else "in", members),)]

    def _pattern(self, node: exp.Expr, *, negated: bool) -> Predicate:
        escape: object = None
        if isinstance(node, exp.Escape):
            escape, node = self._literal(node.expression), node.this
        operand: object
        if isinstance(node, exp.Like | exp.ILike):
            operator, operand = self._like(node, escape)
            operator = operator if isinstance(node, exp.Like) else _FOLDED[operator]
        elif type(node) in _FUNCTIONS:
            operator, operand = _FUNCTIONS[type(node)], self._literal(node.expression)
        else:
            self._refuse(node, f"`{self._quote(node)}` is not in the language")
        if negated != bool(node.args.get("negate")):
            operator = _NEGATED.get(operator, f"not {operator}")
        return predicate(self._attribute(node.this), operator, operand)

    def _like(self, node: exp.Like | exp.ILike, escape: object) -> tuple[str, str]:
        """Read a pattern: `%` is allowed at the ends only; `escape` makes it a plain character."""
        pattern = self._literal(node.expression)
        if not isinstance(pattern, str):
            self._refuse(node, "`like` needs a string")
        marks = re.findall(rf"{re.escape(str(escape))}.|." if escape else ".", pattern, re.DOTALL)
        before, after = marks[:1] == ["%"], marks[-1:] == ["%"] and len(marks) > 1
        inner = marks[int(before) : len(marks) - int(after)]
        if "%" in inner or "_" in inner:
            self._refuse(node, "`like` takes % at the ends only, and no _")
        operator = {
            (False, False): "=",
            (False, True): "prefix",
            (True, False): "suffix",
            (True, True): "substring",
        }[(before, after)]
        return operator, "".join(mark[-1] for mark in inner)

    def _attribute(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            self._refuse(node, f"`{self._quote(node)}` is not an attribute")
        return ".".join(part.name for part in node.parts)

    def _literal(self, node: exp.Expr) -> object:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            return -self._number(node.this)
        if isinstance(node, exp.Literal):
            return node.this if node.is_string else self._number(node)
        if isinstance(node, exp.Cast) and node.to.this in _TIMES and node.this.is_string:
            return {"time": node.this.name}
        if isinstance(node, exp.Column):
            text = _quoted(".".join(part.name for part in node.parts).strip(_CURLY), "'")
            why = f"`{self._quote(node)}` is not a value, but the name of an attribute"
            self._refuse(node, f"{why}; write text in single quotes: {text}")
        if isinstance(node, exp.Null):
            self._refuse(node, "null is not a value; write `is null` or `is not null`")
        self._refuse(node, f"`{self._quote(node)}` is not a value")

    def _number(self, node: exp.Literal) -> int | float:
        if node.is_string:
            self._refuse(node, f"`{self._quote(node)}` is not a number")
        try:
            return number(node.this)
        except ValueError:
            self._refuse(node, f"`{shown(node.this)}` is not a number")

    def _refuse(self, node: exp.Expr, why: str) -> NoReturn:
        raise _error_at(self._text, why, *self._span(node)) from None

    def _quote(self, node: exp.Expr) -> str:
        if not any("start" in part.meta for part in node.walk()):
            return node.sql(_Conditions).lower()
        start, end = self._span(node)
        return self._text[start:end]

    def _span(self, node: exp.Expr) -> tuple[int, int]:
        """Return the range of the text with the named parts of `node`, or of its parent."""
        spans = [part.meta for part in node.walk() if "start" in part.meta]
        if not spans:
            return self._span(node.parent) if node.parent else self._range
        start, end = min(s["start"] for s in spans), max(s["end"] for s in spans) + 1
        inside = self._text[start:end]
        closing = inside.count("(") - inside.count(")")
        return start, end + max(0, closing)


def _bare(tokens: Sequence[Token]) -> list[Token]:
    """Drop repeated parentheses beyond two, since sqlglot recurses over each."""
    if len(tokens) < _NEEDLESS:
        return list(tokens)
    unclosed = list[int]()  # positions of the opening parentheses that are not closed yet
    pairs = dict[int, int]()
    for position, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            unclosed.append(position)
        elif token.token_type is TokenType.R_PAREN and unclosed:
            pairs[unclosed.pop()] = position
    needless = {
        position
        for opened, closed in pairs.items()
        if pairs.get(opened + 1) == closed - 1 and pairs.get(opened + 2) == closed - 2
        for position in (opened, closed)
    }
    return [token for position, token in enumerate(tokens) if position not in needless]


def render(condition: Condition) -> str:
    """Print a condition so that parsing it returns the same condition."""
    if not is_a(condition, Condition):
        raise InvalidCondition(f"{shown(condition)} is not a condition; parse its text first")
    parts = [
        " and ".join(render_predicate(part) for part in conj) for conj in condition.conjunctions
    ]
    return parts[0] if len(parts) == 1 else " or ".join(f"({part})" for part in parts)


def render_predicate(part: Predicate) -> str:
    """Print one predicate.

    >>> render_predicate(predicate("year", ">", 2003))
    'year > 2003'
    """
    if part.operator == "true":
        return "true"
    name = render_name(part.attribute)
    if part.operator in PRESENCE:
        return f"{name} {part.operator}"
    positive = NEGATIONS.get(part.operator, part.operator)
    negated = "not " if part.operator in NEGATIONS else ""
    if part.operator == "between":
        return _render_between(name, part)
    if positive == "between":
        low, high = (render_key(part.family, bound) for bound in part.operand)
        return f"{name} not between {low} and {high}"
    if positive == "in":
        members = ", ".join(render_key(part.family, key) for key in sorted(part.operand))
        return f"{name} {negated}in ({members})"
    if positive in FOLDED:
        return f"{name} {negated}ilike {_folded_pattern(positive, part.operand)}"
    if positive in _FUNCTION_NAMES:
        return _render_pattern(name, positive, part.operand, negated)
    return f"{name} {part.operator} {render_key(part.family, part.operand)}"


def render_name(attribute: str) -> str:
    """Print the name of an attribute, in quotes where it needs them.

    >>> render_name("year"), render_name("release year")
    ('year', '"release year"')
    """
    return attribute if _plain_name(attribute) else _quoted(attribute, '"')


@lru_cache(maxsize=4096)
def _plain_name(name: str) -> bool:
    """Return whether the parser reads `name` without quotes as an attribute in every position."""
    if not _NAME.fullmatch(name):
        return False
    if name.upper() not in _WORDS:
        return True
    return all(_stands_alone(name, use.replace("?", name)) for use in _USES)


def _stands_alone(name: str, text: str) -> bool:
    """Return whether `name` is the only attribute of a comparison, with or without parentheses."""
    try:
        trees = [_Reader(use, TRUSTED).tree(_tokens(use)) for use in (text, f"({text})")]
    except InvalidCondition:
        return False
    columns = [
        [part.name for part in tree.walk() if isinstance(part, exp.Column)] for tree in trees
    ]
    return columns == [[name], [name]]


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


_AROUND: Final = {"prefix": ("", "%"), "suffix": ("%", ""), "substring": ("%", "%")}
_FUNCTION_NAMES: Final = {"prefix": "starts_with", "suffix": "ends_with", "substring": "contains"}


def _render_pattern(name: str, operator: str, operand: str, negated: str) -> str:
    """Print as `like`, or as a function if the operand has wildcards of `like`."""
    if not operand or "%" in operand or "_" in operand:
        return f"{negated}{_FUNCTION_NAMES[operator]}({name}, {_quoted(operand, chr(39))})"
    before, after = _AROUND[operator]
    return f"{name} {negated}like {_quoted(before + operand + after, chr(39))}"


def _folded_pattern(operator: str, operand: str) -> str:
    """Print a pattern of `ilike`; wildcards in the operand are escaped."""
    before, after = _AROUND.get(FOLDED[operator], ("", ""))
    escaped = re.sub("[!%_]", r"!\g<0>", operand) if re.search("[%_]", operand) else operand
    pattern = _quoted(before + escaped + after, "'")
    return pattern if escaped == operand else f"{pattern} escape '!'"


def _render_between(name: str, part: Predicate) -> str:
    low, high = part.operand
    if part.family == "string":
        return f"{name} between {render_key('string', low)} and {render_key('string', high)}"
    if low == high:
        return f"{name} = {render_key(part.family, low)}"
    above, below = _bound(part.family, low, math.inf), _bound(part.family, high, -math.inf)
    if low == -math.inf:
        return f"{name} <{below}"
    if high == math.inf:
        return f"{name} >{above}"
    if above.startswith("= ") and below.startswith("= "):
        return f"{name} between {above[2:]} and {below[2:]}"
    return f"{name} >{above} and {name} <{below}"


def _bound(family: str, bound: float, inwards: float) -> str:
    """Print `= bound`, or the neighbouring strict bound if that one is shorter."""
    if not math.isfinite(bound):
        return ""
    closed = render_key(family, bound)
    strict = math.nextafter(bound, -inwards)
    if family == "time":
        whole = key_us(bound) / SECOND_US == bound
        return f"= {closed}" if whole else f" {render_key(family, strict)}"
    opened = render_key(family, strict)
    rounder = math.isfinite(strict) and len(opened) < len(closed)
    return f" {opened}" if rounder else f"= {closed}"


def render_key(family: str, key: Any) -> str:
    """Print a value of a family, in its comparable form."""
    if family == "string":
        return _quoted(str(key), "'")
    if family == "boolean":
        return "true" if key else "false"
    number = float(key)
    if family == "time":
        return f"timestamp '{format_time(key_us(number))}'"
    return str(int(number)) if number.is_integer() and abs(number) < _WRITTEN_OUT else repr(number)
