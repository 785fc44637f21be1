"""Events in numbers: what they say in the vocabulary of an index."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.index.access.attribute_terms import UNNAMED, Side
from tidings.index.access.kernels.records import Phrases, Said
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.records import Event
from tidings.model.values import Range, Token, tokens


def hear(vocabulary: Vocabulary, events: Sequence[Event]) -> tuple[Said, Phrases, int]:
    """Give events in numbers, with the phrases, and how many entries one event may have at most."""
    while True:
        book = vocabulary.fresh_book()
        hearing = _Hearing(vocabulary)
        for event in events:
            hearing.add(event)
        if vocabulary.book is book:
            vocabulary.events += len(events)
            said = hearing.said()
            most = int(np.diff(said.spans.reshape(-1, 4)[:, :2]).max(initial=0))
            return said, book.table, most * max(1, book.longest)


class _Hearing:
    """Collects what events say, one after the other."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.heard, self.slots = array("i"), array("i")
        self.values, self.spans = array("d"), array("q")
        self.lower: dict[int, float] = {}  # of values that are ranges
        self.sure: list[tuple[array[Any], int, int, float]] = []  # where probabilities are not 1

    def add(self, event: Event) -> None:
        """Hear one event; strings and numbers, which are most values, without a detour."""
        first, first_value = len(self.heard), len(self.slots)
        if event.probabilities:
            self._add_unsure(event)
        else:
            self._add(event, event.attributes)
        self.spans.extend((first, len(self.heard), first_value, len(self.slots)))

    def _add(self, event: Event, attributes: Mapping[str, Any]) -> None:
        hear, ears = self.heard.append, self._vocabulary.ears
        slots, values = self.slots.append, self.values.append
        for name, value in attributes.items():
            ear = ears.get(name)
            if ear is None:
                if name not in self._vocabulary.attributes:
                    continue
                ear = self._vocabulary.ear(name)
            words, slot, equal = ear
            kind = type(value)
            if kind is str:
                phrase = words.get(value)
                if phrase is None:
                    phrase = self._vocabulary.phrase(name, value)
                if phrase:
                    hear(phrase)
            elif kind is float or kind is int:
                if slot >= 0:
                    slots(slot)
                    values(value)
                if equal and (number := float(value)) in equal:
                    hear(~equal[number])
            else:
                self._others(name, event)

    def _add_unsure(self, event: Event) -> None:
        for name, value in event.attributes.items():
            before = len(self.heard), len(self.slots)
            self._add(event, {name: value})
            if name in event.probabilities:
                self._note_unsure(before, event.probabilities[name])

    def said(self) -> Said:
        """Give it all in arrays."""
        values = np.array(self.values, np.float64)
        upper = lower = ordered(values)
        if self.lower:
            ends = values.copy()
            ends[list(self.lower)] = list(self.lower.values())
            lower = ordered(ends)
        return Said(
            np.array(self.spans, np.int64),
            np.array(self.heard, np.int32),
            np.array(self.slots, np.int32),
            upper,
            lower,
            self._sureness(),
        )

    def _others(self, name: str, event: Event) -> None:
        """Hear the tokens of an attribute, family by family: the values of a slot lie together."""
        for token in sorted(tokens(event.attributes[name]), key=_family):
            self._other(name, token)

    def _other(self, name: str, token: Token) -> None:
        """Hear a token of any family."""
        family, key = token
        side = self._vocabulary.attributes[name].get(family)
        if side is None:
            return
        if isinstance(key, str):
            words = self._vocabulary.ear(name).words
            phrase = words.get(key)
            self.heard.append(self._vocabulary.phrase(name, key) if phrase is None else phrase)
            return
        if isinstance(key, Range):
            self._range(side, key)
            return
        if key in side.equal:
            self.heard.append(~side.equal[key])
        if side.slot >= 0:
            self.slots.append(side.slot)
            named = side.codes.get(key, UNNAMED) if family == "boolean" else float(key)
            self.values.append(named)

    def _range(self, side: Side, key: Range) -> None:
        """Hear a range: contained in an interval it is its own ends, exchanged."""
        low, high = key.span
        overlaps = key.mode == "overlaps"
        if overlaps or low == high:
            with self._vocabulary.lock:
                self.heard.extend(~entry for entry in side.within(low, high))
        if side.slot >= 0:
            self.lower[len(self.slots)] = low if overlaps else high
            self.slots.append(side.slot)
            self.values.append(high if overlaps else low)

    def _note_unsure(self, before: tuple[int, int], chance: float) -> None:
        for of, first in zip((self.heard, self.slots), before, strict=True):
            self.sure.append((of, first, len(of), chance))

    def _sureness(self) -> Float64s:
        if not self.sure:
            return np.empty(0)
        found = np.ones(len(self.heard) + len(self.slots))
        for of, first, last, chance in self.sure:
            shift = 0 if of is self.heard else len(self.heard)
            found[shift + first : shift + last] = chance
        return found


def _family(token: Token) -> str:
    return token[0]
