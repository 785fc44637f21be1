"""The predicates of an index as numbers: what an event stamps, and what it has to compare.

Equal predicates share one number. An interval, and `!=`, is kept as two numbers over the values of
a *slot* (an attribute and a family); everything else is an entry that an event stamps if it holds.

Numbers are given once: a vocabulary only grows, so that who reads an older state of the index
still understands it. A new vocabulary is made when most of one is no longer used.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from sys import getsizeof
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.errors import shown
from tidings.index.access.attribute_terms import NUMBER, UNNAMED, Attribute, Ear, Side
from tidings.index.access.kernels.records import Hits
from tidings.index.access.term_cache import Book, doubled
from tidings.index.operand_lists import list_kind, list_operand
from tidings.model.conditions.predicate import Predicate

TRUST: Final = 50  # events that must be seen before they outweigh the guess
GUESSES: Final = {"=": 0.0, "prefix": 0.005, "suffix": 0.005, "substring": 0.01}
GUESS: Final = 0.025
LONG: Final = 1024
"""What longer texts say is not remembered, so that the memory that this takes is bounded."""


Check = tuple[int, int, float, float, tuple[int, ...]]
"""One predicate: the number of its entry, or -1 and an interval of a slot; and members.

Without either, it is an `in`, and the members are the entries of its values. A high bound of NaN
asks for a value that differs from the low one.
"""

FAMILIES: Final = ("number", "string", "boolean", "time")
"""The families of values, by their numbers in files."""

SHAPES: Final = ("<", "<=", ">", ">=", "between", "prefix", "suffix", "substring")
"""The lists of operands of strings, other than `=`, by their numbers in files."""

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

    def write(self, writer: Writer) -> None:
        """Add all predicates to a file; how often they held is not written."""
        sides = [
            (name, family, side)
            for name, attribute in self.attributes.items()
            for family, side in attribute.items()
        ]
        writer.texts("attributes", [name for name, _, _ in sides])
        families = [FAMILIES.index(family) for _, family, _ in sides]
        writer.array("families", np.array(families, np.int32))
        writer.array("slots", np.array([side.slot for _, _, side in sides], np.int32))
        equal = [(family, side.equal) for _, family, side in sides]
        writer.array("entries", _values([each for _, each in equal], np.int32))
        _write_keys(writer.within("equal"), equal)
        named = [(family, side.codes) for _, family, side in sides]
        writer.array("codes", _values([each for _, each in named], np.float64))
        _write_keys(writer.within("named"), named)
        _write_others(writer.within("others"), [side.others for _, _, side in sides])

    @classmethod
    def read(cls, reader: Reader) -> "Vocabulary":
        """Return the vocabulary of a file, which has seen no events. O(predicates).

        Entries and slots have each number once, so their numbers are below their counts.
        """
        made = cls()
        names = reader.texts("attributes").strings().to_pylist()
        families = reader.numbers("families", len(names), len(FAMILIES)).tolist()
        slots = reader.array("slots", np.int32, len(names))
        reader.within_bounds("slots", slots, MOST, -1)
        used = slots[slots >= 0]
        reader.permutation("slots", used, len(used))
        sides = [Side(slot=slot) for slot in slots.tolist()]
        kinds = [FAMILIES[each] for each in families]
        entries = reader.array("entries", np.int32)
        for side, equal in zip(
            sides, _read_keys(reader.within("equal"), kinds, entries), strict=True
        ):
            side.equal = equal
        codes = reader.array("codes", np.float64)
        reader.finite("codes", codes, MOST)
        for side, named in zip(
            sides, _read_keys(reader.within("named"), kinds, codes), strict=True
        ):
            side.codes = named
        more = _read_others(reader.within("others"), sides, kinds)
        everything = np.concatenate([entries, more])
        reader.permutation("entries", everything, len(everything))
        for name, family, side in zip(names, kinds, sides, strict=True):
            attribute = made.attributes.setdefault(name, {})
            reader.require(family not in attribute, "families", f"has {shown(name)} twice")
            attribute[family] = side
        made._make_room(len(everything), len(used))
        made._codes = int(codes.max(initial=-1)) + 1
        return made

    def _make_room(self, entries: int, slots: int) -> None:
        """Count so many entries and slots as known, of which nothing was seen."""
        self.entries, self.slots = entries, slots
        room, slot_room = max(64, entries), max(16, slots)
        self.hits = Hits(np.zeros(room, np.int32), np.zeros(slot_room, np.int32))
        self._uses, self._guess = np.zeros(room, np.int32), np.zeros(room, np.float32)
        self._born = np.zeros(room, np.int64)
        self._slot_uses = np.zeros(slot_room, np.int32)
        self._slot_born = np.zeros(slot_room, np.int64)

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
        return self.entry_of(name, side, list_kind(part), list_operand(part)), *STAMPED

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
            if name in self.ears and len(text) <= LONG:
                self.ears[name].words[text] = number
            return number

    def fresh_book(self) -> Book:
        """Give the book to write to: another, if it is full."""
        if self.book.full:
            with self.lock:
                self.book = Book()
                self.ears.clear()
        return self.book

    def note_uses(self, entries: Int32s, slots: Int32s) -> None:
        """Count what new subscriptions use: before events come, that tells what is common."""
        entries, slots = entries[entries >= 0], slots[slots >= 0]
        self._uses += np.bincount(entries, minlength=len(self._uses)).astype(np.int32)
        self._slot_uses += np.bincount(slots, minlength=len(self._slot_uses)).astype(np.int32)

    def chances(self, entries: npt.NDArray[Any]) -> Float64s:
        """Estimate how often entries hold: what was seen, or what subscriptions suggest."""
        guess = np.maximum(self._guess[entries], self._uses[entries] / self._total)
        events = np.maximum(self.events - self._born[entries], 0)
        found: Float64s = (self.hits.entries[entries] + TRUST * guess) / (events + TRUST)
        return found

    def slot_chances(self, slots: npt.NDArray[Any]) -> Float64s:
        """Estimate how often slots have a value."""
        guess = self._slot_uses[slots] / self._total
        events = np.maximum(self.events - self._slot_born[slots], 0)
        found: Float64s = (self.hits.slots[slots] + TRUST * guess) / (events + TRUST)
        return found

    def kept(self, entries: Int32s, slots: Int32s, codes: Float64s) -> "tuple[Vocabulary, Moves]":
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

    entries: Int32s
    slots: Int32s


def ordered(values: Any) -> Int64s:
    """Give whole numbers that have the order of the floats; -0.0 is 0.0."""
    bits = (np.atleast_1d(np.asarray(values, np.float64)) + 0.0).view(np.int64)
    found: Int64s = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return found


Keyed = tuple[str, Mapping[Any, Any]]
"""A family, and something by keys of it."""


def _values(given: Sequence[Mapping[Any, Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.array([value for each in given for value in each.values()], dtype)


def _write_keys(writer: Writer, given: Sequence[Keyed]) -> None:
    """Write the keys of dicts, one behind the other: texts, and numbers for all other families."""
    writer.array("sizes", np.array([len(each) for _, each in given], np.int32))
    writer.texts("texts", [key for of, each in given if of == "string" for key in each])
    numbers = [float(key) for of, each in given if of != "string" for key in each]
    writer.array("numbers", np.array(numbers, np.float64))


def _read_keys(
    reader: Reader, families: Sequence[str], values: npt.NDArray[Any]
) -> Iterator[dict[Any, Any]]:
    """Return a dict for each family given, with its keys and the next of the values."""
    sizes = reader.numbers("sizes", len(families), MOST).tolist()
    texts = reader.texts("texts").strings().to_pylist()
    numbers = reader.array("numbers", np.float64)
    right = not np.isnan(numbers).any()
    reader.require(right, "numbers", "are not all numbers")
    wanted = sum(size for size, family in zip(sizes, families, strict=True) if family == "string")
    fits = (wanted, sum(sizes) - wanted) == (len(texts), len(numbers))
    reader.require(fits and sum(sizes) == len(values), "sizes", "do not add up")
    text = number = at = 0
    for size, family in zip(sizes, families, strict=True):
        if family == "string":
            keys, text = texts[text : text + size], text + size
        else:
            keys = numbers[number : number + size].tolist()
            keys, number = [*map(bool, keys)] if family == "boolean" else keys, number + size
        found = dict(zip(keys, values[at : at + size].tolist(), strict=True))
        reader.require(len(found) == size, "sizes", "count some key twice")
        yield found
        at += size


def _write_others(writer: Writer, given: Sequence[Mapping[tuple[str, Any], int]]) -> None:
    """Write operands of strings by shape; an interval has its high end in the other column."""
    found = [
        (number, SHAPES.index(shape), operand, entry)
        for number, each in enumerate(given)
        for (shape, operand), entry in each.items()
    ]
    pairs = [each if isinstance(each, tuple) else (each, "") for _, _, each, _ in found]
    writer.array("sides", np.array([each for each, _, _, _ in found], np.int32))
    writer.array("shapes", np.array([each for _, each, _, _ in found], np.int32))
    writer.texts("operands", [low for low, _ in pairs])
    writer.texts("highs", [high for _, high in pairs])
    writer.array("entries", np.array([each for _, _, _, each in found], np.int32))


def _read_others(reader: Reader, sides: Sequence[Side], families: Sequence[str]) -> Int32s:
    """Put the operands of strings into their sides; return their entries."""
    entries = reader.array("entries", np.int32)
    size = len(entries)
    owners = reader.numbers("sides", size, len(sides))
    shapes = reader.numbers("shapes", size, len(SHAPES))
    operands = reader.texts("operands", size).strings().to_pylist()
    highs = reader.texts("highs", size).strings().to_pylist()
    for shape in np.unique(shapes).tolist() if size else ():
        chosen = np.flatnonzero(shapes == shape)
        chosen = chosen[np.argsort(owners[chosen], kind="stable")]
        of, firsts = np.unique(owners[chosen], return_index=True)
        for side, group in zip(of.tolist(), np.split(chosen, firsts[1:]), strict=True):
            reader.require(families[side] == "string", "sides", "are not all of strings")
            keys = [operands[at] for at in group.tolist()]
            if SHAPES[shape] == "between":
                keys = [(low, highs[at]) for low, at in zip(keys, group.tolist(), strict=True)]
            sides[side].fill(SHAPES[shape], keys, entries[group].tolist())
    known = sum(len(side.others) for side in sides)
    reader.require(known == size, "operands", "has an operand twice")
    return entries
