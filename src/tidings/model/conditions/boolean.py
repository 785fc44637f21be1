"""The boolean structure of a condition: `and`, `or`, `not` and parentheses, without recursion.

A condition is split at its connectives into comparisons, which the caller reads, and their
predicates are combined into disjunctive normal form. The stack is a list, so the nesting of a
condition is bounded by `Limits`, and not by the stack of the caller.
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
"""Reads the tokens of one comparison, or of its negation if the second argument is true."""
Refuse = Callable[[str, int, int], NoReturn]
"""Raises an error with a reason, which underlines a range of the text."""

UNREADABLE: Final = "this cannot be read as a condition"
_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_CONNECTIVES: Final = (TokenType.AND, TokenType.OR)
_COMBINED: Final = 32
"""Conjunctions that one condition may try, as a multiple of the limit, if most are empty."""


class Clause(NamedTuple):
    """A part of the text in disjunctive normal form, and its range."""

    conjunctions: Conjunctions
    start: int
    end: int


@dataclass
class _Group:
    """The content of one pair of parentheses: terms of an `or`, each the operands of an `and`."""

    negated: bool
    depth: int
    opened: int
    closed: int
    terms: list[list[Clause]] = field(default_factory=lambda: [[]])


class Structure:
    """The structure of one condition; `refuse` raises errors that point at the text."""

    def __init__(self, tokens: Sequence[Token], limits: Limits, refuse: Refuse) -> None:
        self._tokens = tokens
        self._limits = limits
        self._refuse = refuse
        self._closed = self._brackets()
        self._read = self._combined = 0

    def conjunctions(self, read: Read) -> Conjunctions:
        """Return the disjunctive normal form; negations are pushed down to the comparisons."""
        group, outer, position = _Group(False, 0, 0, len(self._tokens)), list[_Group](), 0
        while True:
            start = position
            while position < group.closed and self._kind(position) is TokenType.NOT:
                position += 1
            nots = position - start
            negated, depth = group.negated != bool(nots % 2), group.depth + nots
            self._check_nesting(depth, start)
            if self._opens_group(position, group.closed):
                self._check_nesting(depth + 1, position)
                outer.append(group)
                group = _Group(negated, depth + 1, start, self._closed[position])
                position += 1
                continue
            end = self._comparison_end(position, group.closed)
            group.terms[-1].append(self._comparison(position, end, negated, read))
            position = end
            while position == group.closed:
                clause = self._together(group)
                if not outer:
                    return clause.conjunctions
                position, group = position + 1, outer.pop()
                group.terms[-1].append(clause)
            if self._kind(position) is TokenType.OR:
                group.terms.append([])
            position += 1

    def _kind(self, position: int) -> TokenType:
        return self._tokens[position].token_type

    def _brackets(self) -> dict[int, int]:
        """Return the position of the closing bracket for each opening one."""
        closed, opened = dict[int, int](), list[int]()
        for position, token in enumerate(self._tokens):
            if token.token_type in _OPENING:
                opened.append(position)
                self._check_nesting(len(opened), position)
            elif token.token_type in _CLOSING:
                if not opened:
                    self._unreadable(position)
                closed[opened.pop()] = position
        if opened:
            self._unreadable(len(self._tokens))
        return closed

    def _opens_group(self, position: int, closed: int) -> bool:
        """Return whether a parenthesis encloses a part of the structure, and not a value."""
        if position >= closed or self._kind(position) is not TokenType.L_PAREN:
            return False
        after = self._closed[position] + 1
        return after == closed or self._kind(after) in _CONNECTIVES

    def _comparison_end(self, position: int, closed: int) -> int:
        """Return the end of a comparison: the next connective that does not belong to `between`."""
        between = 0
        while position < closed:
            kind = self._kind(position)
            if kind is TokenType.OR or (kind is TokenType.AND and not between):
                return position
            between += (kind is TokenType.BETWEEN) - (kind is TokenType.AND)
            position = self._closed.get(position, position) + 1
        return position

    def _comparison(self, position: int, end: int, negated: bool, read: Read) -> Clause:
        if position == end:
            self._unreadable(position)
        self._read += 1
        start, stop = self._tokens[position].start, self._tokens[end - 1].end + 1
        if self._read > REPEATED * self._limits.predicates:
            self._check("predicates", self._read, "the number of predicates", start, stop)
        return Clause(read(self._tokens[position:end], negated), start, stop)

    def _together(self, group: _Group) -> Clause:
        if group.negated:
            clause = self._all([self._any(term) for term in group.terms])
        else:
            clause = self._any([self._all(term) for term in group.terms])
        if group.closed == len(self._tokens):
            return clause
        start, end = self._tokens[group.opened].start, self._tokens[group.closed].end + 1
        return clause._replace(start=start, end=end)

    def _any(self, clauses: Sequence[Clause]) -> Clause:
        if len(clauses) == 1:
            return clauses[0]
        start, end = clauses[0].start, clauses[-1].end
        count = sum(len(clause.conjunctions) for clause in clauses)
        self._check("conjunctions", count, "the number of conjunctions", start, end)
        conjunctions = [conj for clause in clauses for conj in clause.conjunctions]
        return Clause(conjunctions, start, end)

    def _all(self, clauses: Sequence[Clause]) -> Clause:
        """Distribute: combine each with each, and drop empty conjunctions unless all are empty."""
        # A run without alternatives is folded in one go, so a long `and` takes linear time.
        runs = groupby(clauses, key=lambda clause: len(clause.conjunctions) == 1)
        steps = chain.from_iterable([self._run(list(run))] if plain else run for plain, run in runs)
        clause = next(steps)
        for step in steps:
            clause = self._product(clause, step)
        return clause

    def _run(self, clauses: Sequence[Clause]) -> Clause:
        """Fold clauses of one conjunction each into one clause."""
        if len(clauses) == 1:
            return clauses[0]
        last_read = clauses[0]

        def parts() -> Iterator[Predicate]:
            nonlocal last_read
            for last_read in clauses:
                yield from last_read.conjunctions[0]

        start, end = clauses[0].start, clauses[-1].end
        try:
            return Clause([fold(parts())], start, end)
        except TidingsError as error:
            self._refuse(str(error), start, last_read.end)

    def _product(self, left: Clause, right: Clause) -> Clause:
        start, end = left.start, right.end
        count = len(left.conjunctions) * len(right.conjunctions)
        what = "the number of conjunctions after distribution"
        self._check("conjunctions", count, what, start, end)
        self._combined += count
        if self._combined > _COMBINED * self._limits.conjunctions:
            self._check("conjunctions", self._combined, what, start, end)
        conjunctions, size, empty = Conjunctions(), 0, ""
        for first, second in product(left.conjunctions, right.conjunctions):
            try:
                conjunctions.append(fold(first + second))
            except InvalidCondition as error:
                empty = str(error)
                continue
            size += len(conjunctions[-1])
            if size > REPEATED * self._limits.predicates:
                self._check("predicates", size, "the number of predicates", start, end)
        if not conjunctions:
            self._refuse(empty, start, end)
        return Clause(conjunctions, start, end)

    def _check_nesting(self, depth: int, position: int) -> None:
        if depth > self._limits.nesting:
            token = self._tokens[position]
            what = "this nests too deeply: the nesting of the condition"
            self._check("nesting", depth, what, token.start, token.end + 1)

    def _check(self, name: str, value: int, what: str, start: int, end: int) -> None:
        try:
            self._limits.check(name, value, what)
        except TidingsError as error:
            self._refuse(str(error), start, end)

    def _unreadable(self, position: int) -> NoReturn:
        """Refuse the token at a position, or the last one if the text ends too early."""
        if not self._tokens:
            self._refuse(UNREADABLE, 0, 1)
        token = self._tokens[min(position, len(self._tokens) - 1)]
        self._refuse(UNREADABLE, token.start, token.end + 1)
