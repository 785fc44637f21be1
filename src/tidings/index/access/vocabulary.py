"""The predicates of an index as numbers: terms that an event stamps, and slots that it compares.

Equal predicates share one number. An interval, and what lies outside of one, is kept as two bounds
over the values of a *slot* (an attribute and a family of values). A negation of anything else is a
slot and the term that not all of its values may stamp. Everything else is a term, which an event
stamps if it holds.

A vocabulary only grows, so that a reader of an older snapshot still understands its numbers. A new
one is built when most of it is no longer used.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, repeat
from sys import getsizeof
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer, parsed
from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int32s, Int64s
from tidings.errors import shown
from tidings.index.access.kernels.records import AMONG, BETWEEN, OUTSIDE, UNLIKE, HitCounts
from tidings.index.access.terms import (
    INT_BYTES,
    UNNAMED,
    AttributeEncoder,
    FamilyTerms,
    OtherTerms,
    TermCache,
    doubled,
)
from tidings.index.operand_lists import list_kind, list_operand
from tidings.model.conditions.predicate import NEGATIONS, PRESENCE, Predicate

TRUST: Final = 50  # events after which observed frequencies outweigh the guess
GUESSES: Final = {
    "=": 0.0,
    "prefix": 0.005,
    "suffix": 0.005,
    "substring": 0.01,
    "iequal": 0.0,
    "iprefix": 0.005,
    "isuffix": 0.005,
    "isubstring": 0.01,
    "in": 0.0,
    "is null": 0.5,
    "is not null": 0.9,
    "true": 1.0,
}
GUESS: Final = 0.025
LONG: Final = 1024
"""Longer texts are not cached, which bounds the memory of the cache."""


Check = tuple[int, int, float, float, tuple[int, ...], int]
"""One predicate: term, slot, low, high, members, kind (see `records`).

A term; or term -1 and two bounds in a slot; or term -1 and slot -1 for an `in`, whose members are
terms; or term -1, a slot, and as the only member the term that some value must not stamp. A plain
tuple, since millions are made while subscriptions are added.
"""

FAMILIES: Final = ("number", "string", "boolean", "time", "any")
"""The families of values, by their numbers in files; "any" has the terms of `PRESENCE`."""

SHAPES: Final = (
    *("<", "<=", ">", ">=", "between", "prefix", "suffix", "substring"),
    *("iequal", "iprefix", "isuffix", "isubstring", "in", "is null", "is not null", "true"),
)
"""The predicates other than `=` that are terms, by their numbers in files."""

STAMPED: Final = (-1, 0.0, 0.0, (), BETWEEN)
"""The rest of a check that is a term."""


class Renumbering(NamedTuple):
    """The new numbers of old terms and slots; -1 for those that are gone."""

    terms: Int32s
    slots: Int32s


class Vocabulary:
    """Numbers for predicates, and how often these held.

    One writer adds predicates. Readers take the lock only to encode a text that is not cached.
    """

    def __init__(self) -> None:
        self.attributes: dict[str, dict[str, FamilyTerms]] = {}  # by name, then by family
        self.encoders: dict[str, AttributeEncoder] = {}  # dropped when the attribute changes
        self.absent: dict[str, int] = {}  # terms of `is null` by attribute, and of `true`
        self.lock = Lock()
        self.cache = TermCache()
        self.terms = self.slots = self._codes = self.events = 0
        self.counts = HitCounts(np.zeros(64, np.int32), np.zeros(16, np.int32))
        self._uses = np.zeros(64, np.int32)
        self._guess = np.zeros(64, np.float32)
        self._born = np.zeros(64, np.int64)
        self._slot_uses = np.zeros(16, np.int32)
        self._slot_born = np.zeros(16, np.int64)

    def write(self, writer: Writer) -> None:
        """Write all predicates to a file, without how often they held."""
        families = [
            (name, family, terms)
            for name, attribute in self.attributes.items()
            for family, terms in attribute.items()
        ]
        writer.texts("attributes", [name for name, _, _ in families])
        numbers = [FAMILIES.index(family) for _, family, _ in families]
        writer.array("families", np.array(numbers, np.int32))
        writer.array("slots", np.array([terms.slot for _, _, terms in families], np.int32))
        equal = [(family, terms.equal) for _, family, terms in families]
        writer.array("entries", _values([keys for _, keys in equal], np.int32))
        _write_keys(writer.within("equal"), equal)
        codes = [(family, terms.codes) for _, family, terms in families]
        writer.array("codes", _values([keys for _, keys in codes], np.float64))
        _write_keys(writer.within("named"), codes)
        _write_others(writer.within("others"), [terms.others for _, _, terms in families])

    @classmethod
    def read(cls, reader: Reader) -> "Vocabulary":
        """Return the vocabulary of a file, which has seen no events. O(predicates).

        Terms and slots must be permutations, so their numbers are below their counts.
        """
        vocabulary = cls()
        names = reader.texts("attributes").strings().to_pylist()
        numbers = reader.numbers("families", len(names), len(FAMILIES)).tolist()
        slots = reader.array("slots", np.int32, len(names))
        reader.within_bounds("slots", slots, MOST, -1)
        used = slots[slots >= 0]
        reader.permutation("slots", used, len(used))
        families = [FAMILIES[number] for number in numbers]
        all_terms = [FamilyTerms(slot=slot) for slot in slots.tolist()]
        equal_terms = reader.array("entries", np.int32)
        equal = _read_keys(reader.within("equal"), families, equal_terms)
        codes = reader.array("codes", np.float64)
        reader.finite("codes", codes, MOST)
        named = _read_keys(reader.within("named"), families, codes)
        for terms, keys, code_of in zip(all_terms, equal, named, strict=True):
            terms.equal, terms.codes = keys, code_of
        other_terms = _read_others(reader.within("others"), all_terms, families)
        every = np.concatenate([equal_terms, other_terms])
        reader.permutation("entries", every, len(every))
        for name, family, terms in zip(names, families, all_terms, strict=True):
            attribute = vocabulary.attributes.setdefault(name, {})
            reader.require(family not in attribute, "families", f"has {shown(name)} twice")
            attribute[family] = terms
            vocabulary._note_absent(name, terms)
        vocabulary._reserve(len(every), len(used))
        vocabulary._codes = int(codes.max(initial=-1)) + 1
        return vocabulary

    def _reserve(self, terms: int, slots: int) -> None:
        """Set the number of terms and slots, none of which was seen in an event."""
        self.terms, self.slots = terms, slots
        room, slot_room = max(64, terms), max(16, slots)
        self.counts = HitCounts(np.zeros(room, np.int32), np.zeros(slot_room, np.int32))
        self._uses, self._guess = np.zeros(room, np.int32), np.zeros(room, np.float32)
        self._born = np.zeros(room, np.int64)
        self._slot_uses = np.zeros(slot_room, np.int32)
        self._slot_born = np.zeros(slot_room, np.int64)

    def check(self, part: Predicate) -> Check:
        """Return the check of a predicate, adding it if it is new."""
        operator, operand = part.operator, part.operand
        name, family = part.attribute, part.family
        try:
            terms = self.attributes[name][family]
        except KeyError:
            terms = self.family_terms(name, family)
        if operator == "=":
            term = terms.equal.get(operand)
            return self.term(name, terms, "=", operand) if term is None else term, *STAMPED
        if operator == "between" and family != "string":
            low, high = operand
            if low == high:
                return self.term(name, terms, "=", low), *STAMPED
            slot = terms.slot if terms.slot >= 0 else self.slot(name, terms)
            return -1, slot, low, high, (), BETWEEN
        if operator == "in":
            members = tuple([self.term(name, terms, "=", member) for member in operand])
            return -1, -1, 0.0, 0.0, members, AMONG
        if operator == "!=":
            code = self._code(terms, part)
            return -1, self.slot(name, terms), code, code, (), OUTSIDE
        if operator in NEGATIONS:
            return self._negation(part, terms)
        return self.term(name, terms, list_kind(part), list_operand(part)), *STAMPED

    def terms_of(self, name: str, family: str, shape: str, operands: Sequence[Any]) -> list[int]:
        """Return the terms of predicates of one attribute and shape, adding those that are new."""
        terms = self.family_terms(name, family)
        equal = shape == "="
        known: Mapping[Any, int] = terms.equal if equal else terms.others
        keys = operands if equal else [(shape, operand) for operand in operands]
        numbers = [*map(known.get, keys, repeat(-1))]
        if -1 not in numbers:
            return numbers
        pairs = zip(operands, numbers, strict=True)
        new = dict.fromkeys([operand for operand, number in pairs if number < 0])
        self._add_terms(name, terms, shape, [*new])
        return [*map(known.__getitem__, keys)]

    def _negation(self, part: Predicate, terms: FamilyTerms) -> Check:
        slot, operator = self.slot(part.attribute, terms), NEGATIONS[part.operator]
        if operator == "between" and part.family != "string":
            return -1, slot, *part.operand, (), OUTSIDE
        term = self.term(part.attribute, terms, operator, part.operand)
        return -1, slot, 0.0, 0.0, (term,), UNLIKE

    def encoder(self, name: str) -> AttributeEncoder:
        """Return the encoder of an attribute."""
        with self.lock:
            if name not in self.encoders:
                numbers = self.attributes[name].get("number", FamilyTerms())
                strings = self.attributes[name].get("string", FamilyTerms())
                presence = self.attributes[name].get("any", FamilyTerms()).others
                others = OtherTerms(
                    numbers.lists.get("in"), presence.get(("is not null", None), -1)
                )
                self.encoders[name] = AttributeEncoder(
                    {},
                    numbers.slot,
                    numbers.equal,
                    None if others == (None, -1) else others,
                    None if strings.lists or strings.slot >= 0 else strings.equal,
                )
            return self.encoders[name]

    def cache_text(self, name: str, text: str) -> int:
        """Return the number of a string in the cache, kept until the attribute changes."""
        with self.lock:
            terms = self.attributes[name].get("string", FamilyTerms())
            # Only texts that some negation compares have a code, which takes 5 us.
            code = int(ordered(terms.codes.get(text, UNNAMED))[0]) if terms.slot >= 0 else 0
            number = self.cache.add(terms.satisfied(text), terms.slot, code)
            if name in self.encoders and len(text) <= LONG:
                self.encoders[name].texts[text] = number
            return number

    def open_cache(self) -> TermCache:
        """Return the cache to write to: an empty one, if it is full."""
        if self.cache.full:
            with self.lock:
                self.cache = TermCache()
                self.encoders.clear()
        return self.cache

    def count_uses(self, terms: Int32s, slots: Int32s) -> None:
        """Count the predicates of new subscriptions; they suggest frequencies before events do."""
        terms, slots = terms[terms >= 0], slots[slots >= 0]
        self._uses += np.bincount(terms, minlength=len(self._uses)).astype(np.int32)
        self._slot_uses += np.bincount(slots, minlength=len(self._slot_uses)).astype(np.int32)

    def chances(self, terms: AnyArray) -> Float64s:
        """Estimate how often terms hold: the guess counts like TRUST events of its frequency."""
        guess = np.maximum(self._guess[terms], self._uses[terms] / self._total)
        events = np.maximum(self.events - self._born[terms], 0)
        chances: Float64s = (self.counts.terms[terms] + TRUST * guess) / (events + TRUST)
        return chances

    def slot_chances(self, slots: AnyArray, guess: Any = None) -> Float64s:
        """Estimate how often slots have a value; without a guess, by how often they are used."""
        if guess is None:
            guess = self._slot_uses[slots] / self._total
        events = np.maximum(self.events - self._slot_born[slots], 0)
        chances: Float64s = (self.counts.slots[slots] + TRUST * guess) / (events + TRUST)
        return chances

    def kept(
        self, terms: Int32s, slots: Int32s, codes: Float64s
    ) -> "tuple[Vocabulary, Renumbering]":
        """Return a vocabulary of the used predicates, and the new numbers."""
        fresh = Vocabulary()
        fresh._codes = self._codes
        moves = Renumbering(np.full(self.terms, -1, np.int32), np.full(self.slots, -1, np.int32))
        is_used = np.zeros(self.terms + 1, np.bool_)  # the last one stands for any later term
        is_used[terms] = True
        used = _Used(is_used, set(slots.tolist()), set(codes.tolist()))
        for name, attribute in list(self.attributes.items()):
            for family, held in list(attribute.items()):
                self._copy_used(fresh, moves, name, family, held, used)
        for old, new, move in (
            (self._born, fresh._born, moves.terms),
            (self._slot_born, fresh._slot_born, moves.slots),
        ):
            alive = np.flatnonzero(move >= 0)
            new[move[alive]] = old[alive]
        fresh.events = self.events
        return fresh, moves

    @property
    def nbytes(self) -> int:
        """Bytes of arrays and dicts; the texts belong to the subscriptions."""
        arrays: list[Any] = [*self.counts, self._uses, self._guess, self._born]
        arrays += [self._slot_uses, self._slot_born, self.cache]
        families = [terms for held in self.attributes.values() for terms in held.values()]
        texts = [encoder.texts for encoder in list(self.encoders.values())]
        held: int = sum(part.nbytes for part in [*arrays, *families])
        dicts = [self.attributes, self.encoders, self.absent, *self.attributes.values(), *texts]
        return held + sum(map(getsizeof, dicts)) + INT_BYTES * sum(map(len, texts))

    @property
    def _total(self) -> int:
        total: int = self._uses.sum() + self._slot_uses.sum()
        return max(1, int(total))

    def family_terms(self, name: str, family: str) -> FamilyTerms:
        """Return one family of an attribute, adding it if it is new."""
        attribute = self.attributes.get(name)
        if attribute is None or family not in attribute:
            with self.lock:
                attribute = self.attributes.setdefault(name, {})
                attribute[family] = FamilyTerms()
                self.encoders.pop(name, None)
        return attribute[family]

    def term(self, name: str, terms: FamilyTerms, shape: str, key: Any) -> int:
        """Return the term of a predicate, adding it if it is new."""
        key_of = key if shape == "=" else (shape, key)
        known: Mapping[Any, int] = terms.equal if shape == "=" else terms.others
        if key_of not in known:
            self._add_terms(name, terms, shape, [key])
        return known[key_of]

    def _add_terms(
        self, name: str, terms: FamilyTerms, shape: str, operands: Sequence[Any]
    ) -> None:
        """Add predicates that are new."""
        with self.lock:
            first, last = self.terms, self.terms + len(operands)
            while last > len(self._uses):
                self._grow()
            self._guess[first:last] = GUESSES.get(shape, GUESS)
            self._born[first:last] = self.events
            self.terms = last
            terms.add(shape, operands, range(first, last))
            if shape in ("is null", "true"):
                self.absent[name] = first
            self.encoders.pop(name, None)

    def _note_absent(self, name: str, terms: FamilyTerms) -> None:
        for shape in ("is null", "true"):
            if (term := terms.others.get((shape, None))) is not None:
                self.absent[name] = term

    def slot(self, name: str, terms: FamilyTerms) -> int:
        """Return the slot of a family, which gets one if it has none."""
        if terms.slot < 0:
            with self.lock:
                slot = self.slots
                if slot >= len(self._slot_uses):
                    self._slot_uses = doubled(self._slot_uses)
                    self._slot_born = doubled(self._slot_born)
                    self.counts = self.counts._replace(slots=doubled(self.counts.slots))
                self._slot_born[slot] = self.events
                self.slots, terms.slot = slot + 1, slot
                self.encoders.pop(name, None)
        return terms.slot

    def _code(self, terms: FamilyTerms, part: Predicate) -> float:
        if part.family in ("number", "time"):
            return float(part.operand)
        if part.operand not in terms.codes:
            with self.lock:
                terms.codes[part.operand] = float(self._codes)
                self._codes += 1
                self.encoders.pop(part.attribute, None)
        return terms.codes[part.operand]

    def _grow(self) -> None:
        self._uses, self._guess = doubled(self._uses), doubled(self._guess)
        self._born = doubled(self._born)
        self.counts = self.counts._replace(terms=doubled(self.counts.terms))

    def _copy_used(
        self,
        fresh: "Vocabulary",
        moves: Renumbering,
        name: str,
        family: str,
        held: FamilyTerms,
        used: "_Used",
    ) -> None:
        """Copy the used terms and the slot of a family, with how often they held."""
        by_shape = {"=": held.equal.copy()}
        for (shape, operand), term in list(held.others.items()):
            by_shape.setdefault(shape, {})[operand] = term
        for shape, terms in by_shape.items():
            old = np.fromiter(terms.values(), np.int64, len(terms))
            is_used = used.terms.take(old, mode="clip")
            if not is_used.any():
                continue
            new = fresh.terms_of(name, family, shape, [*compress(terms, is_used.tolist())])
            moves.terms[old[is_used]] = new
            fresh.counts.terms[new] = self.counts.terms[old[is_used]]
        if held.slot in used.slots:
            copy = fresh.family_terms(name, family)
            slot = moves.slots[held.slot] = fresh.slot(name, copy)
            fresh.counts.slots[slot] = self.counts.slots[held.slot]
            copy.codes = {key: code for key, code in list(held.codes.items()) if code in used.codes}


class _Used(NamedTuple):
    """The terms, slots and codes that some subscription uses."""

    terms: Bools  # by number, whether it is used
    slots: set[int]
    codes: set[float]


def ordered(values: Any) -> Int64s:
    """Return integers that have the order of the floats; -0.0 is 0.0.

    The bits of a float are in order if it is positive, and in reverse order if it is negative.
    """
    bits = (np.atleast_1d(np.asarray(values, np.float64)) + 0.0).view(np.int64)
    result: Int64s = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return result


def unordered(integers: Int64s) -> Float64s:
    """Return the floats of integers that `ordered` returned.

    >>> unordered(ordered([-1.5, 0.0, 2.0])).tolist()
    [-1.5, 0.0, 2.0]
    """
    bits = np.where(integers < 0, integers ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), integers)
    return bits.view(np.float64)


FamilyKeys = tuple[str, Mapping[Any, Any]]
"""A family, and a dict whose keys are values of it."""


def _values(dicts: Sequence[Mapping[Any, Any]], dtype: Any) -> AnyArray:
    return np.array([value for keys in dicts for value in keys.values()], dtype)


def _write_keys(writer: Writer, families: Sequence[FamilyKeys]) -> None:
    """Write the keys of dicts one after the other: texts, or numbers for all other families."""
    writer.array("sizes", np.array([len(keys) for _, keys in families], np.int32))
    writer.texts("texts", [key for family, keys in families if family == "string" for key in keys])
    numbers = [float(key) for family, keys in families if family != "string" for key in keys]
    writer.array("numbers", np.array(numbers, np.float64))


def _read_keys(
    reader: Reader, families: Sequence[str], values: AnyArray
) -> Iterator[dict[Any, Any]]:
    """Yield a dict for each family: its keys, and the next of the values."""
    sizes = reader.numbers("sizes", len(families), MOST).tolist()
    texts = reader.texts("texts").strings().to_pylist()
    numbers = reader.array("numbers", np.float64)
    right = not np.isnan(numbers).any()
    reader.require(right, "numbers", "are not all numbers")
    strings = sum(size for size, family in zip(sizes, families, strict=True) if family == "string")
    fits = (strings, sum(sizes) - strings) == (len(texts), len(numbers))
    reader.require(fits and sum(sizes) == len(values), "sizes", "do not add up")
    text = number = first = 0
    for size, family in zip(sizes, families, strict=True):
        if family == "string":
            keys, text = texts[text : text + size], text + size
        else:
            keys = numbers[number : number + size].tolist()
            keys, number = [*map(bool, keys)] if family == "boolean" else keys, number + size
        pairs = dict(zip(keys, values[first : first + size].tolist(), strict=True))
        reader.require(len(pairs) == size, "sizes", "count some key twice")
        yield pairs
        first += size


def _write_others(writer: Writer, families: Sequence[Mapping[tuple[str, Any], int]]) -> None:
    """Write operands by shape."""
    rows = [
        (number, SHAPES.index(shape), operand, term)
        for number, terms in enumerate(families)
        for (shape, operand), term in terms.items()
    ]
    pairs = [_operand_texts(operand) for _, _, operand, _ in rows]
    writer.array("sides", np.array([number for number, _, _, _ in rows], np.int32))
    writer.array("shapes", np.array([shape for _, shape, _, _ in rows], np.int32))
    writer.texts("operands", [low for low, _ in pairs])
    writer.texts("highs", [high for _, high in pairs])
    writer.array("entries", np.array([term for _, _, _, term in rows], np.int32))


def _operand_texts(operand: Any) -> tuple[str, str]:
    """Return an operand as two texts: an interval as its ends, a list as JSON."""
    if isinstance(operand, tuple):
        return operand
    return (json.dumps(sorted(operand)) if isinstance(operand, frozenset) else operand or "", "")


def _read_operand(reader: Reader, shape: str, family: str, texts: tuple[str, str]) -> Any:
    """Return the operand that was written as two texts; refuse one that its family cannot have."""
    if shape == "in":
        kind: type = str if family == "string" else float
        try:
            members = parsed(texts[0].encode())
        except ValueError:
            members = None
        right = isinstance(members, list) and all(type(member) is kind for member in members)
        reader.require(right and family != "any" and members, "operands", "has no list of values")
        return frozenset(members)
    home = "any" if shape in PRESENCE else "string"
    reader.require(family == home, "sides", "are not all of the right family")
    return None if shape in PRESENCE else texts if shape == "between" else texts[0]


def _read_others(
    reader: Reader, all_terms: Sequence[FamilyTerms], families: Sequence[str]
) -> Int32s:
    """Add operands to their families; return their terms."""
    terms = reader.array("entries", np.int32)
    size = len(terms)
    owners = reader.numbers("sides", size, len(all_terms))
    shapes = reader.numbers("shapes", size, len(SHAPES))
    operands = reader.texts("operands", size).strings().to_pylist()
    highs = reader.texts("highs", size).strings().to_pylist()
    for shape in np.unique(shapes).tolist() if size else ():
        rows = np.flatnonzero(shapes == shape)
        rows = rows[np.argsort(owners[rows], kind="stable")]
        numbers, firsts = np.unique(owners[rows], return_index=True)
        for number, group in zip(numbers.tolist(), np.split(rows, firsts[1:]), strict=True):
            texts = [(operands[row], highs[row]) for row in group.tolist()]
            keys = [_read_operand(reader, SHAPES[shape], families[number], text) for text in texts]
            all_terms[number].fill(SHAPES[shape], keys, terms[group].tolist())
    distinct = sum(len(family.others) for family in all_terms)
    reader.require(distinct == size, "operands", "has an operand twice")
    return terms
