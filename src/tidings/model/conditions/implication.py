"""Implication between predicates and cover between conditions (PREF Def. 4).

A predicate denotes a set of values, and `p` implies `q` if the set of p is within that of q. Most
operators denote a union of half-open spans `[low, high)` of an ordered domain, so one inclusion
test serves them all. Domains: float64 numbers and times; false < true as 0 and 1; strings as tuples
of code points, with the end `(0x110000,)`.

The others are patterns: suffix, substring, the case-insensitive operators, and their negations.
With patterns P and Q, `P implies not Q` if they have no string in common, `not P implies not Q` if
Q implies P, and `not P implies Q` is false, since two patterns leave some string out.
"""

import math
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from tidings.errors import InvalidSubscription
from tidings.model.conditions.case_folding import certain, least_source, sources
from tidings.model.conditions.predicate import FOLDED, LIMITS, NEGATIONS, Predicate

Conjunctions = tuple[tuple[Predicate, ...], ...]
Span = tuple[Any, Any]
Text = tuple[int, ...]

_END: Final = sys.maxunicode + 1
_DOMAIN: Final[dict[str, Span]] = {
    **{family: (low, math.nextafter(high, math.inf)) for family, (low, high) in LIMITS.items()},
    "boolean": (0, 2),
    "string": ((), (_END,)),
}
_UNORDERED: Final = {"suffix": "suffix", "substring": "substring", **FOLDED}
_FEW_SOURCES: Final = 64
_PLAIN: Final = ("=", "between")
_FEW_PAIRS: Final = 16
"""Up to this many pairs of predicates are all compared; beyond, only those of one attribute."""
_FEW_SPANS: Final = 8
COMPARISONS: Final = 5_000_000
"""Steps for the subscriptions of one subscriber; more take many seconds and gigabytes."""


class Work:
    """A budget of steps; one step is about one comparison of two predicates."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int) -> None:
        """Spend steps; refuse more than are left."""
        self._left -= steps
        if self._left < 0:
            raise InvalidSubscription(
                "the scorer preference compares every two subscriptions of a subscriber; those of "
                f"this one take more than {COMPARISONS:,} comparisons of predicates"
            )


def covers(general: Conjunctions, special: Conjunctions, work: Work | None = None) -> bool:
    """Return whether each predicate of `general` is implied by a single predicate of `special`.

    For disjunctions, each conjunction of `special` must be covered by one of `general`.
    """
    return all(any(_covers(wide, narrow, work) for wide in general) for narrow in special)


def strictly_covers(general: Conjunctions, special: Conjunctions, work: Work | None = None) -> bool:
    """Return whether `general` covers `special` without being covered by it."""
    if len(general) == len(special) == 1 and len(general[0]) == len(special[0]) == 1:
        wide, narrow = general[0][0], special[0][0]
        return implies(narrow, wide) and not implies(wide, narrow)
    return covers(general, special, work) and not covers(special, general, work)


def _covers(wide: tuple[Predicate, ...], narrow: tuple[Predicate, ...], work: Work | None) -> bool:
    if len(wide) * len(narrow) <= _FEW_PAIRS:
        if work:
            work.take(1)
        return _few_cover(wide, narrow)
    if work:
        work.take(1 + (len(wide) + len(narrow)) // 2)
    known, parts = set(narrow), dict[str, list[Predicate]]()
    for part in narrow:
        parts.setdefault(part.attribute, []).append(part)
    return all(
        goal in known or _implied(goal, parts.get(goal.attribute, []), work) for goal in wide
    )


def _few_cover(wide: tuple[Predicate, ...], narrow: tuple[Predicate, ...]) -> bool:
    """Compare every predicate with every other: loops take a third of the time of generators."""
    for goal in wide:
        attribute, is_true = goal.attribute, goal.operator == "true"
        for part in narrow:
            # Only `true` is implied by predicates of other attributes.
            if (part.attribute == attribute or is_true) and implies(part, goal):
                break
        else:
            return False
    return True


def _implied(goal: Predicate, parts: Sequence[Predicate], work: Work | None) -> bool:
    if work:
        work.take(len(parts))
    return any(implies(part, goal) for part in parts)


def implies(p: Predicate, q: Predicate) -> bool:
    """Return whether every value that satisfies `p` satisfies `q`; complete for all operators.

    >>> from tidings.model.conditions.predicate import predicate
    >>> implies(predicate("x", "<", 5), predicate("x", "!=", 7))
    True
    >>> implies(predicate("x", "prefix", "abc"), predicate("x", "substring", "b"))
    True
    """
    if p.family == "any" or q.family == "any":
        return _presence_implies(p, q)
    if p.attribute != q.attribute or p.family != q.family:
        return False
    if p.operator == q.operator and p.operator in _PLAIN:
        return _plainly_implies(p, q)
    if p.operator == q.operator == "in" and p.family == "string":
        return bool(p.operand <= q.operand)
    pattern, goal = _pattern(p), _pattern(q)
    if pattern is not None and goal is not None:
        return _pattern_implies(pattern, goal)
    if pattern is not None:
        return _pattern_implies_spans(pattern, _gaps(_spans(q), q.family))
    spans = _spans(p)
    return within(spans, _spans(q)) if goal is None else _spans_imply(spans, goal)


def _presence_implies(p: Predicate, q: Predicate) -> bool:
    """Compare two predicates of which one is `is null`, `is not null` or `true`."""
    if q.operator == "true" or p.attribute != q.attribute:
        return q.operator == "true"
    return p.operator == q.operator or (q.operator == "is not null" and p.operator != "is null")


def _plainly_implies(p: Predicate, q: Predicate) -> bool:
    """Compare two single values or two intervals: a fast path for most pairs."""
    if p.operator == "=":
        return bool(p.operand == q.operand)
    (low, high), (least, most) = p.operand, q.operand
    first, last = LIMITS.get(p.family, (low, high))
    return bool(max(low, first) >= least and min(high, last) <= most)


def spans(p: Predicate) -> tuple[Span, ...] | None:
    """Return the set of p as sorted spans that neither overlap nor touch; None if it is not one.

    Two predicates of one attribute and family with spans are equivalent if their spans are equal;
    two without spans, if they are equal.

    >>> from tidings.model.conditions.predicate import predicate
    >>> spans(predicate("x", "in", [True])) == spans(predicate("x", "!=", False))
    True
    """
    pattern = _pattern(p)
    if pattern is not None and pattern.folded and pattern.shape == "=":
        few = list(islice(sources(pattern.text), _FEW_SOURCES + 1))
        if len(few) <= _FEW_SOURCES:  # `x ilike 'a'` is `x in ('a', 'A')`
            p = Predicate(p.attribute, "not in" if pattern.negated else "in", p.family, few)
            pattern = None
    return tuple(_spans(p)) if pattern is None and p.family != "any" else None


def _spans(p: Predicate) -> list[Span]:
    """Return the set of p as sorted spans that neither overlap nor touch."""
    first, last = _DOMAIN[p.family]
    operator = NEGATIONS.get(p.operator, p.operator)
    if operator in _UNORDERED:
        return [(first, last)]  # an empty pattern
    if operator == "between":
        low, high = map(_bound, p.operand)
        spans = [(max(low, first), min(_next(high), last))]
    elif operator == "in":
        spans = [(key, _next(key)) for key in sorted(map(_bound, p.operand))]
    else:
        key = _bound(p.operand)
        spans = {
            "prefix": [(key, _after_prefix(key) if operator == "prefix" else last)],
            "<": [(first, key)],
            "<=": [(first, _next(key))],
            ">": [(_next(key), last)],
            ">=": [(key, last)],
        }.get(operator, [(key, _next(key))])
    joined = _joined(spans)
    negated = p.operator == "!=" or p.operator in NEGATIONS
    return _gaps(joined, p.family) if negated else joined


def one_value(span: Span, family: str) -> bool:
    """Return whether a span of a family's domain holds a single value."""
    low, high = span
    return bool(high == (low + 1 if family == "boolean" else _next(low)))


def value(bound: Any) -> Any:
    """Return the value at the lower end of a span."""
    return _text(bound) if isinstance(bound, tuple) else bound


def _bound(key: Any) -> Any:
    return tuple(map(ord, key)) if isinstance(key, str) else key


def _next(key: Any) -> Any:
    """Return the smallest value above `key` in its domain."""
    if isinstance(key, tuple):
        return (*key, 0)
    return key + 1 if isinstance(key, bool) else math.nextafter(key, math.inf)


def _after_prefix(text: Text) -> Text:
    """Return the smallest string above all that start with `text`."""
    while text and text[-1] == _END - 1:
        text = text[:-1]
    return (*text[:-1], text[-1] + 1) if text else (_END,)


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for low, high in spans:
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        elif low < high:
            joined.append((low, high))
    return joined


def _gaps(spans: list[Span], family: str) -> list[Span]:
    """Return the complement of `spans` within the domain of `family`."""
    first, last = _DOMAIN[family]
    lows = [first, *(high for _, high in spans)]
    highs = [*(low for low, _ in spans), last]
    return [(low, high) for low, high in zip(lows, highs, strict=True) if low < high]


def within(inner: Sequence[Span], outer: Sequence[Span]) -> bool:
    """Return whether every span of `inner` lies in one of `outer`, sorted and disjoint."""
    if len(outer) <= _FEW_SPANS:
        return all(any(low <= a and b <= high for low, high in outer) for a, b in inner)
    lows = [low for low, _ in outer]
    return all((after := bisect_right(lows, a)) and b <= outer[after - 1][1] for a, b in inner)


def _few(low: Text, high: Text) -> Iterator[str] | None:
    """Return the strings of a finite span `[t, t + n NULs)`; None for an infinite one."""
    extra = high[len(low) :]
    if high[: len(low)] != low or any(extra):
        return None
    return (_text((*low, *extra[:n])) for n in range(len(extra)))


def _text(bound: Text) -> str:
    return "".join(map(chr, bound))


class _Pattern(NamedTuple):
    """A set of strings that is not a union of spans; "=" is for case-folded texts only."""

    shape: str
    text: str
    folded: bool
    negated: bool


def _pattern(p: Predicate) -> _Pattern | None:
    """Return the pattern of a predicate; None for one that has spans, as an empty pattern has."""
    operator = NEGATIONS.get(p.operator, p.operator)
    shape = _UNORDERED.get(operator)
    if shape is None or not (p.operand or shape == "="):
        return None
    return _Pattern(shape, p.operand, operator in FOLDED, operator != p.operator)


def _pattern_implies(pattern: _Pattern, goal: _Pattern) -> bool:
    if pattern.negated:
        return goal.negated and _contains(pattern, goal)
    return not _overlap(pattern, goal) if goal.negated else _contains(goal, pattern)


def _spans_imply(spans: Sequence[Span], goal: _Pattern) -> bool:
    if goal.negated:
        return not any(_meets(low, high, goal) for low, high in spans)
    return all(_all_match(low, high, goal) for low, high in spans)


def _pattern_implies_spans(pattern: _Pattern, gaps: Sequence[Span]) -> bool:
    """Return whether a pattern lies within spans, by the gaps between them."""
    if pattern.negated:
        return all(_all_match(low, high, pattern) for low, high in gaps)
    return not any(_meets(low, high, pattern) for low, high in gaps)


def _has_shape(text: str, shape: str, operand: str) -> bool:
    if shape == "=":
        return text == operand
    if shape == "prefix":
        return text.startswith(operand)
    return text.endswith(operand) if shape == "suffix" else operand in text


def _matches(text: str, pattern: _Pattern) -> bool:
    """Return whether a string matches the pattern, whether or not that is negated."""
    return _has_shape(text.casefold() if pattern.folded else text, pattern.shape, pattern.text)


def _meets(low: Text, high: Text, pattern: _Pattern) -> bool:
    """Return whether some string of the span matches; an infinite one has all `t + anything`."""
    if pattern.shape in ("=", "prefix"):
        least = least_source(pattern.text, _text(low), open_end=pattern.shape == "prefix")
        return least is not None and _bound(least) < high
    few = _few(low, high)
    return few is None or any(_matches(text, pattern) for text in few)


def _all_match(low: Text, high: Text, pattern: _Pattern) -> bool:
    """Return whether every string of the span matches the pattern."""
    few = _few(low, high)
    if few is not None:
        return all(_matches(text, pattern) for text in few)
    return pattern.shape in ("prefix", "substring") and _all_have(low, high, pattern)


def _all_have(low: Text, high: Text, pattern: _Pattern) -> bool:
    """Walk the span: strings that share `low` up to the end of the pattern in it match it too."""
    while low < high:
        text = _text(low)
        if not _matches(text, pattern):
            return False
        low = _after_prefix(low[: _match_end(text, pattern)])
    return True


def _match_end(text: str, pattern: _Pattern) -> int:
    """Return how many characters of a matching text are enough to match a prefix or substring."""
    if not pattern.folded:
        return text.index(pattern.text) + len(pattern.text)
    end = text.casefold().index(pattern.text) + len(pattern.text)
    for count, char in enumerate(text, 1):
        end -= len(char.casefold())
        if end <= 0:
            return count
    return len(text)


def _contains(wide: _Pattern, narrow: _Pattern) -> bool:
    """Return whether every string that matches `narrow` matches `wide`."""
    known = narrow.text
    if wide.folded:
        known = known.casefold()
    elif narrow.folded:
        open_start = narrow.shape in ("suffix", "substring")
        open_end = narrow.shape in ("prefix", "substring")
        known = certain(known, open_start=open_start, open_end=open_end)
    if narrow.shape == "=" or wide.shape in (narrow.shape, "substring"):
        return _has_shape(known, wide.shape, wide.text)
    return False


def _overlap(one: _Pattern, other: _Pattern) -> bool:
    """Return whether some string matches both patterns."""
    text, operand = one.text, other.text
    if one.folded or other.folded:
        text, operand = text.casefold(), operand.casefold()
    if one.shape == "=":
        return _has_shape(text, other.shape, operand)
    if other.shape == "=":
        return _has_shape(operand, one.shape, text)
    if one.shape != other.shape or one.shape == "substring":
        return True
    return _has_shape(text, one.shape, operand) or _has_shape(operand, one.shape, text)
