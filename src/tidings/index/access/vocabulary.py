"""The predicates of an index as numbers: what an event stamps, and what it has to compare.

Equal predicates share one number. An interval, and `!=`, is kept as two numbers over the values of
a *slot* (an attribute and a family); everything else is an entry that an event stamps if it holds.

Numbers are given once: a vocabulary only grows, so that who reads an older state of the index
still understands it. A new vocabulary is made when most of one is no longer used.
"""

from math import nan
from sys import getsizeof
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.index.access.attribute import NUMBER, UNNAMED, Attribute, Ear, Side
from tidings.index.access.phrases import Book, doubled
from tidings.index.operators import kind
from tidings.index.operators import operand as operand_of
from tidings.kernels.access import Floats, Hits, Ints, Shorts
from tidings.predicate import Predicate

TRUST: Final = 50  # events that must be seen before they outweigh the guess
GUESSES: Final = {"=": 0.0, "prefix": 0.005, "suffix": 0.005, "substring": 0.01}
GUESS: Final = 0.025


Check = tuple[int, int, float, float, tuple[int, ...]]
"""One predicate: the number of its entry, or -1 and an interval of a slot; and members.

Without either, it is an `in`, and the members are the entries of its values. A high bound of NaN
asks for a value that differs from the low one.
"""

_PASSING: Final = ("ears", "lock", "book")
"""What a vocabulary does not take along to another process."""

STAMPED: Final = (-1, 0.0, 0.0, ())
"""What follows the entry of a predicate that is stamped."""


class Vocabulary:
    """Numbers for predicates, and how often they held.

    Words are added by one writer. Readers take the lock only to learn what a value says that was
    not met lately.
    """

    def __init__(self) -> None:
        self.attributes: dict[str, Attribute] = {}
        self.ears: dict[str, Ear] = {}  # made anew after a change
        self.lock = Lock()
        self.book = Book()
        self.entries = self.slots = self._codes = self.events = 0
        self.hits = Hits(np.zeros(64, np.int32), np.zeros(16, np.int32))
        self._uses = np.zeros(64, np.int32)
        self._guess = np.zeros(64, np.float32)
        self._born = np.zeros(64, np.int64)
        self._slot_uses = np.zeros(16, np.int32)
        self._slot_born = np.zeros(16, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in self.__dict__.items() if name not in _PASSING}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.ears, self.lock, self.book = {}, Lock(), Book()

    def use(self, part: Predicate) -> Check:
        """Give the check of a predicate, which is learnt if it is new."""
        operator, operand = part.operator, part.operand
        name, family = part.attribute, part.family
        try:
            side = self.attributes[name][family]
        except KeyError:
            side = self.side_of(name, family)
        if operator == "=":
            entry = side.equal.get(operand)
            return self.entry_of(name, side, "=", operand) if entry is None else entry, *STAMPED
        if operator == "between" and family != "string":
            low, high = operand
            if low == high:
                return self.entry_of(name, side, "=", low), *STAMPED
            slot = side.slot if side.slot >= 0 else self.slot_of(name, side)
            return -1, slot, low, high, ()
        if operator == "in":
            members = tuple([self.entry_of(name, side, "=", each) for each in operand])
            return -1, -1, 0.0, 0.0, members
        if operator == "!=":
            return -1, self.slot_of(name, side), self._code(side, part), nan, ()
        return self.entry_of(name, side, kind(part), operand_of(part)), *STAMPED

    def ear(self, name: str) -> Ear:
        """Give the ear of an attribute."""
        with self.lock:
            if name not in self.ears:
                numbers = self.attributes[name].get("number", Side())
                self.ears[name] = Ear({}, numbers.slot, numbers.equal)
            return self.ears[name]

    def phrase(self, name: str, text: str) -> int:
        """Give the phrase of a string, and remember it until the attribute changes."""
        with self.lock:
            side = self.attributes[name].get("string", Side())
            code = int(ordered(side.codes.get(text, UNNAMED))[0])
            number = self.book.add(side.entries(text), side.slot, code)
            if name in self.ears:
                self.ears[name].words[text] = number
            return number

    def fresh_book(self) -> Book:
        """Give the book to write to: another, if it is full."""
        if self.book.full:
            with self.lock:
                self.book = Book()
                self.ears.clear()
        return self.book

    def note_uses(self, entries: Shorts, slots: Shorts) -> None:
        """Count what new subscriptions use: before events come, that tells what is common."""
        entries, slots = entries[entries >= 0], slots[slots >= 0]
        self._uses += np.bincount(entries, minlength=len(self._uses)).astype(np.int32)
        self._slot_uses += np.bincount(slots, minlength=len(self._slot_uses)).astype(np.int32)

    def chances(self, entries: npt.NDArray[Any]) -> Floats:
        """Estimate how often entries hold: what was seen, or what subscriptions suggest."""
        guess = np.maximum(self._guess[entries], self._uses[entries] / self._total)
        events = np.maximum(self.events - self._born[entries], 0)
        found: Floats = (self.hits.entries[entries] + TRUST * guess) / (events + TRUST)
        return found

    def slot_chances(self, slots: npt.NDArray[Any]) -> Floats:
        """Estimate how often slots have a value."""
        guess = self._slot_uses[slots] / self._total
        events = np.maximum(self.events - self._slot_born[slots], 0)
        found: Floats = (self.hits.slots[slots] + TRUST * guess) / (events + TRUST)
        return found

    def kept(self, entries: Shorts, slots: Shorts, codes: Floats) -> "tuple[Vocabulary, Moves]":
        """Give a vocabulary of what is still used, and what became of the old numbers."""
        made = Vocabulary()
        moves = Moves(np.full(self.entries, -1, np.int32), np.full(self.slots, -1, np.int32))
        used, used_slots = set(entries.tolist()), set(slots.tolist())
        named = set(codes.tolist())
        made._codes = self._codes
        for name, attribute in list(self.attributes.items()):
            for family, side in list(attribute.items()):
                self._keep(made, moves, (name, family, side), (used, used_slots, named))
        return made, moves

    @property
    def nbytes(self) -> int:
        """Bytes of arrays and dicts; the texts belong to the subscriptions."""
        arrays: list[Any] = [*self.hits, self._uses, self._guess, self._born]
        arrays += [self._slot_uses, self._slot_born, self.book]
        sides = [side for each in self.attributes.values() for side in each.values()]
        words = [ear.words for ear in list(self.ears.values())]
        held: int = sum(each.nbytes for each in [*arrays, *sides])
        dicts = [self.attributes, self.ears, *self.attributes.values(), *words]
        return held + sum(map(getsizeof, dicts)) + NUMBER * sum(map(len, words))

    @property
    def _total(self) -> int:
        total: int = self._uses.sum() + self._slot_uses.sum()
        return max(1, int(total))

    def side_of(self, name: str, family: str) -> Side:
        """Give one family of an attribute, which is made if it is new."""
        attribute = self.attributes.get(name)
        if attribute is None or family not in attribute:
            with self.lock:
                attribute = self.attributes.setdefault(name, {})
                attribute[family] = Side()
                self.ears.pop(name, None)
        return attribute[family]

    def entry_of(self, name: str, side: Side, shape: str, key: Any) -> int:
        """Give the number of a predicate that is stamped, which is learnt if it is new."""
        found = side.equal.get(key) if shape == "=" else side.others.get((shape, key))
        if found is not None:
            return int(found)
        with self.lock:
            entry = self.entries
            if entry >= len(self._uses):
                self._grow()
            self._guess[entry] = GUESSES.get(shape, GUESS)
            self._born[entry] = self.events
            self.entries = entry + 1
            side.add(shape, key, entry)
            self.ears.pop(name, None)
        return entry

    def slot_of(self, name: str, side: Side) -> int:
        """Give the slot of a side, which gets one if it has none."""
        if side.slot < 0:
            with self.lock:
                slot = self.slots
                if slot >= len(self._slot_uses):
                    self._slot_uses = doubled(self._slot_uses)
                    self._slot_born = doubled(self._slot_born)
                    self.hits = Hits(self.hits.entries, doubled(self.hits.slots))
                self._slot_born[slot] = self.events
                self.slots, side.slot = slot + 1, slot
                self.ears.pop(name, None)
        return side.slot

    def _code(self, side: Side, part: Predicate) -> float:
        if part.family in ("number", "time"):
            return float(part.operand)
        if part.operand not in side.codes:
            with self.lock:
                side.codes[part.operand] = float(self._codes)
                self._codes += 1
                self.ears.pop(part.attribute, None)
        return side.codes[part.operand]

    def _grow(self) -> None:
        self._uses, self._guess = doubled(self._uses), doubled(self._guess)
        self._born = doubled(self._born)
        self.hits = Hits(doubled(self.hits.entries), self.hits.slots)

    def _keep(
        self,
        made: "Vocabulary",
        moves: "Moves",
        of: tuple[str, str, Side],
        used: tuple[set[int], set[int], set[float]],
    ) -> None:
        name, family, side = of
        named = [(("=", key), entry) for key, entry in list(side.equal.items())]
        named += list(side.others.items())
        for (shape, key), entry in named:
            if entry in used[0]:
                new = made.entry_of(name, made.side_of(name, family), shape, key)
                moves.entries[entry] = new
                made.hits.entries[new] = self.hits.entries[entry]
        if side.slot in used[1]:
            twin = made.side_of(name, family)
            slot = moves.slots[side.slot] = made.slot_of(name, twin)
            made.hits.slots[slot] = self.hits.slots[side.slot]
            twin.codes = {key: code for key, code in list(side.codes.items()) if code in used[2]}


class Moves(NamedTuple):
    """The new numbers of old entries and slots; -1 for what is gone."""

    entries: Shorts
    slots: Shorts


def ordered(values: Any) -> Ints:
    """Give whole numbers that have the order of the floats; -0.0 is 0.0."""
    bits = (np.atleast_1d(np.asarray(values, np.float64)) + 0.0).view(np.int64)
    found: Ints = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return found
