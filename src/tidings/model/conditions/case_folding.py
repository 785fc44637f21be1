"""The texts behind a case-folded one: what `ilike` implies for the text as written.

Case folding replaces each character by one to three others, whatever its neighbours, and leaves
what is folded as it is. A *source* of a folded text is a text that folds to it: 'Straße' and
'STRASSE' are sources of 'strasse'.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

UNCERTAIN: Final = "\ud800"
"""Stands for a character that not all sources have; no text contains a lone surrogate."""
_BLOCK: Final = 256


class _CaseTable(NamedTuple):
    """The characters that folding changes, and what they become."""

    starting: dict[str, list[str]]  # by the first character of their foldings
    cased: frozenset[str]  # foldings of one character
    sequences: tuple[str, ...]  # foldings of several characters


@cache
def _case_table() -> _CaseTable:
    starting, foldings = defaultdict[str, list[str]](list), set[str]()
    for first in range(0, sys.maxunicode + 1, _BLOCK):
        block = "".join(map(chr, range(first, first + _BLOCK)))
        for char in block if block.casefold() != block else "":
            if (folded := char.casefold()) != char:
                starting[folded[0]].append(char)
                foldings.add(folded)
    cased = frozenset(folded for folded in foldings if len(folded) == 1)
    return _CaseTable(dict(starting), cased, tuple(foldings - cased))


def is_caseless(folded: str) -> bool:
    """Return whether a folded text, at any position, can only come from itself.

    >>> is_caseless("2003"), is_caseless("abc")
    (True, False)
    """
    if folded.isascii():
        return not any(map(str.isalpha, folded))
    return certain(folded, open_start=True, open_end=True) == folded


def certain(folded: str, *, open_start: bool = False, open_end: bool = False) -> str:
    """Return a folded text with UNCERTAIN for each character that some source has not.

    An open side continues: the folding of a source may begin before, or end after, the text.

    >>> certain("1a2").replace(UNCERTAIN, "?")
    '1?2'
    """
    table = _case_table()
    chars = [UNCERTAIN if char in table.cased else char for char in folded]
    for word in table.sequences:
        first = 1 - len(word) if open_start else 0
        last = len(folded) - (1 if open_end else len(word))
        for start in range(first, last + 1):
            low, high = max(start, 0), min(start + len(word), len(folded))
            if folded[low:high] == word[low - start : high - start]:
                chars[low:high] = UNCERTAIN * (high - low)
    return "".join(chars)


class _Step(NamedTuple):
    """The next character of a source, and how far its folding reaches in the folded text."""

    char: str
    end: int


def _steps(folded: str, at: int, *, open_end: bool) -> list[_Step]:
    """Return the characters that a source may continue with, in ascending order."""
    chars = sorted([folded[at], *_case_table().starting.get(folded[at], ())])
    steps = [(char, char.casefold()) for char in chars]
    return [
        _Step(char, min(at + len(word), len(folded)))
        for char, word in steps
        if folded.startswith(word, at) or (open_end and word.startswith(folded[at:]))
    ]


def least_source(folded: str, least: str, *, open_end: bool = False) -> str | None:
    """Return the smallest source that is not below `least`, or None.

    With `open_end`, the folding of the source may continue after the folded text.

    >>> least_source("ab", "Ab"), least_source("ab", "b")
    ('Ab', None)
    """
    at, passed = 0, list[int]()  # the position in `folded` before each character of `least`
    for char in least:
        if at == len(folded):
            break
        passed.append(at)
        step = next(
            (step for step in _steps(folded, at, open_end=open_end) if step.char == char), None
        )
        if step is None:
            break
        at = step.end
    else:
        return least + _smallest_rest(folded, at, open_end=open_end)
    if open_end and at == len(folded):
        return least
    # The longer the part that is shared with `least`, the smaller the source.
    for place in reversed(range(len(passed))):
        for char, end in _steps(folded, passed[place], open_end=open_end):
            if char > least[place]:
                return least[:place] + char + _smallest_rest(folded, end, open_end=open_end)
    return None


def _smallest_rest(folded: str, at: int, *, open_end: bool) -> str:
    chars = list[str]()
    while at < len(folded):
        char, at = _steps(folded, at, open_end=open_end)[0]
        chars.append(char)
    return "".join(chars)


def sources(folded: str) -> Iterator[str]:
    """Yield all sources of a text, which may be very many, in no order.

    >>> sorted(sources("a1"))
    ['A1', 'a1']
    """
    pending = [("", 0)]
    while pending:
        text, at = pending.pop()
        if at == len(folded):
            yield text
        else:
            pending += [(text + char, end) for char, end in _steps(folded, at, open_end=False)]
