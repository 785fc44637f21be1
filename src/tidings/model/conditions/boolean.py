"""The boolean structure of a condition: `and`, `or`, `not` and parentheses, without recursion.

A condition is cut at its connectives into comparisons, which the caller reads, and what they say is
put together into disjunctive normal form. The stack is a list, so how deep a condition may nest is
a limit of its own, whatever stack the caller has left.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, product
from typing import Final, NamedTuple, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from tidings.errors import InvalidCondition, TidingsError
from tidings.model.conditions.predicate import REPEATED, Predicate, fold
from tidings.model.limits import Limits

Conjunctions = list[tuple[Predicate, ...]]
Read = Callable[[Sequence[Token], bool], Conjunctions]
"""Reads the tokens of one comparison; of its negation, if the second argument is true."""
Refuse = Callable[[str, int, int], NoReturn]
"""Raises an error that gives a reason and underlines a stretch of the text."""

UNREADABLE: Final = "this cannot be read as a condition"
_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_CONNECTIVES: Final = (TokenType.AND, TokenType.OR)
_COMBINED: Final = 32
"""How many times the limit of conjunctions one condition may combine, if most turn out empty."""


class Clause(NamedTuple):
    """A part of the text in disjunctive normal form, and the stretch where it stands."""

    conjunctions: Conjunctions
    start: int
    end: int


@dataclass
class _Group:
    """What one pair of parentheses holds so far: terms of an `or`, each of operands of an `and`."""

    negated: bool
    depth: int
    opened: int
    closed: int
    terms: list[list[Clause]] = field(default_factory=lambda: [[]])


class Structure:
    """Reads the structure of one condition; `refuse` points at what is wrong with the text."""

    def __init__(self, tokens: Sequence[Token], limits: Limits, refuse: Refuse) -> None:
        self._tokens = tokens
        self._limits = limits
        self._refuse = refuse
        self._closed = self._brackets()
        self._read = self._combined = 0

    def conjunctions(self, read: Read) -> Conjunctions:
        """Return the disjunctive normal form; negations are pushed down to the comparisons."""
        group, outer, at = _Group(False, 0, 0, len(self._tokens)), list[_Group](), 0
        while True:
            start = at
            while at < group.closed and self._kind(at) is TokenType.NOT:
                at += 1
            negated, depth = group.negated != bool((at - start) % 2), group.depth + at - start
            self._check_nesting(depth, start)
            if self._opens_group(at, group.closed):
                self._check_nesting(depth + 1, at)
                outer.append(group)
                group = _Group(negated, depth + 1, start, self._closed[at])
                at += 1
                continue
            end = self._comparison_end(at, group.closed)
            group.terms[-1].append(self._comparison(at, end, negated, read))
            at = end
            while at == group.closed:
                clause = self._together(group)
                if not outer:
                    return clause.conjunctions
                at, group = at + 1, outer.pop()
                group.terms[-1].append(clause)
            if self._kind(at) is TokenType.OR:
                group.terms.append([])
            at += 1

    def _kind(self, at: int) -> TokenType:
        return self._tokens[at].token_type

    def _brackets(self) -> dict[int, int]:
        """Return the place of the closing bracket for the place of each opening one."""
        closed, opened = dict[int, int](), list[int]()
        for at, token in enumerate(self._tokens):
            if token.token_type in _OPENING:
                opened.append(at)
                self._check_nesting(len(opened), at)
            elif token.token_type in _CLOSING:
                if not opened:
                    self._unreadable(at)
                closed[opened.pop()] = at
        if opened:
            self._unreadable(len(self._tokens))
        return closed

    def _opens_group(self, at: int, closed: int) -> bool:
        """Tell whether a parenthesis stands around a part of the structure, not around a value."""
        if at >= closed or self._kind(at) is not TokenType.L_PAREN:
            return False
        after = self._closed[at] + 1
        return after == closed or self._kind(after) in _CONNECTIVES

    def _comparison_end(self, at: int, closed: int) -> int:
        """Return where the comparison at a place ends: at a connective, but that of `between`."""
        between = 0
        while at < closed:
            kind = self._kind(at)
            if kind is TokenType.OR or (kind is TokenType.AND and not between):
                return at
            between += (kind is TokenType.BETWEEN) - (kind is TokenType.AND)
            at = self._closed.get(at, at) + 1
        return at

    def _comparison(self, at: int, end: int, negated: bool, read: Read) -> Clause:
        if at == end:
            self._unreadable(at)
        self._read += 1
        start, stop = self._tokens[at].start, self._tokens[end - 1].end + 1
        if self._read > REPEATED * self._limits.predicates:
            self._check("predicates", self._read, "the number of predicates", start, stop)
        return Clause(read(self._tokens[at:end], negated), start, stop)

    def _together(self, group: _Group) -> Clause:
        if group.negated:
            found = self._all([self._any(term) for term in group.terms])
        else:
            found = self._any([self._all(term) for term in group.terms])
        if group.closed == len(self._tokens):
            return found
        start, end = self._tokens[group.opened].start, self._tokens[group.closed].end + 1
        return found._replace(start=start, end=end)

    def _any(self, clauses: Sequence[Clause]) -> Clause:
        if len(clauses) == 1:
            return clauses[0]
        start, end = clauses[0].start, clauses[-1].end
        count = sum(len(clause.conjunctions) for clause in clauses)
        self._check("conjunctions", count, "the number of conjunctions", start, end)
        return Clause([each for clause in clauses for each in clause.conjunctions], start, end)

    def _all(self, clauses: Sequence[Clause]) -> Clause:
        """Combine each with each; what nothing can satisfy falls away, unless nothing is left."""
        # A run without alternatives is folded at once, so a long `and` takes linear time.
        runs = groupby(clauses, key=lambda clause: len(clause.conjunctions) == 1)
        steps = chain.from_iterable([self._run(list(run))] if plain else run for plain, run in runs)
        found = next(steps)
        for step in steps:
            found = self._product(found, step)
        return found

    def _run(self, clauses: Sequence[Clause]) -> Clause:
        """Fold clauses of one conjunction each into one."""
        if len(clauses) == 1:
            return clauses[0]
        seen = clauses[0]

        def parts() -> Iterator[Predicate]:
            nonlocal seen
            for seen in clauses:
                yield from seen.conjunctions[0]

        start, end = clauses[0].start, clauses[-1].end
        try:
            return Clause([fold(parts())], start, end)
        except TidingsError as error:
            self._refuse(str(error), start, seen.end)

    def _product(self, left: Clause, right: Clause) -> Clause:
        start, end = left.start, right.end
        count = len(left.conjunctions) * len(right.conjunctions)
        what = "the number of conjunctions after distribution"
        self._check("conjunctions", count, what, start, end)
        self._combined += count
        if self._combined > _COMBINED * self._limits.conjunctions:
            self._check("conjunctions", self._combined, what, start, end)
        found, size, empty = Conjunctions(), 0, ""
        for one, other in product(left.conjunctions, right.conjunctions):
            try:
                found.append(fold(one + other))
            except InvalidCondition as error:
                empty = str(error)
                continue
            size += len(found[-1])
            if size > REPEATED * self._limits.predicates:
                self._check("predicates", size, "the number of predicates", start, end)
        if not found:
            self._refuse(empty, start, end)
        return Clause(found, start, end)

    def _check_nesting(self, depth: int, at: int) -> None:
        if depth > self._limits.nesting:
            token = self._tokens[at]
            what = "this nests too deeply: the nesting of the condition"
            self._check("nesting", depth, what, token.start, token.end + 1)

    def _check(self, name: str, value: int, what: str, start: int, end: int) -> None:
        try:
            self._limits.check(name, value, what)
        except TidingsError as error:
            self._refuse(str(error), start, end)

    def _unreadable(self, at: int) -> NoReturn:
        """Refuse the token at a place; where the text ends too early, its last token."""
        if not self._tokens:
            self._refuse(UNREADABLE, 0, 1)
        token = self._tokens[min(at, len(self._tokens) - 1)]
        self._refuse(UNREADABLE, token.start, token.end + 1)
