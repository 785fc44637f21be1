"""Encodes events as numbers of an index's vocabulary."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.index.access.kernels.records import CachedTerms, EncodedEvents
from tidings.index.access.terms import UNNAMED, FamilyTerms
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.records import Event
from tidings.model.values import Range, Token, tokens


class Encoding(NamedTuple):
    """Encoded events, the cached texts that they refer to, and the most terms one may stamp."""

    events: EncodedEvents
    cached: CachedTerms
    most_terms: int


def encode_events(vocabulary: Vocabulary, events: Sequence[Event]) -> Encoding:
    """Encode events; start again if another reader replaced the full cache meanwhile."""
    while True:
        cache = vocabulary.open_cache()
        encoder = _EventEncoder(vocabulary)
        for event in events:
            encoder.add(event)
        if vocabulary.cache is cache:
            vocabulary.events += len(events)
            encoded = encoder.encoded()
            most = int(np.diff(encoded.spans.reshape(-1, 4)[:, :2]).max(initial=0))
            return Encoding(encoded, cache.table, most * max(1, cache.longest))


class _Uncertain(NamedTuple):
    """A run of items or values whose probability is not 1."""

    column: "array[Any]"
    first: int
    last: int
    probability: float


class _EventEncoder:
    """Collects the items and values of one event after the other."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.items, self.slots = array("i"), array("i")
        self.values, self.spans = array("d"), array("q")
        self.lower: dict[int, float] = {}  # of values that are ranges
        self.uncertain: list[_Uncertain] = []

    def add(self, event: Event) -> None:
        """Encode one event."""
        first, first_value = len(self.items), len(self.slots)
        if event.probabilities:
            self._add_uncertain(event)
        else:
            self._add(event, event.attributes)
        if self._vocabulary.absent:
            terms = list(self._vocabulary.absent.items())
            self.items.extend(~term for name, term in terms if name not in event.attributes)
        self.spans.extend((first, len(self.items), first_value, len(self.slots)))

    # A call per value would cost as much as the rest.
    def _add(self, event: Event, attributes: Mapping[str, Any]) -> None:  # noqa: C901
        """Encode attributes; strings and numbers, which most values are, on the fast path."""
        add_item, encoders = self.items.append, self._vocabulary.encoders
        add_slot, add_value = self.slots.append, self.values.append
        for name, value in attributes.items():
            encoder = encoders.get(name)
            if encoder is None:
                if name not in self._vocabulary.attributes:
                    continue
                encoder = self._vocabulary.encoder(name)
            texts, slot, equal, lists, present = encoder
            kind = type(value)
            if present >= 0 and value != ():
                add_item(~present)
            if kind is str:
                text = texts.get(value)
                if text is None:
                    text = self._vocabulary.cache_text(name, value)
                if text:
                    add_item(text)
            elif kind is float or kind is int:
                if slot >= 0:
                    add_slot(slot)
                    add_value(value)
                if equal and (number := float(value)) in equal:
                    add_item(~equal[number])
                if lists is not None:
                    self.items.extend(~term for term in lists.holding(float(value)))
            else:
                self._add_tokens(name, event)

    def _add_uncertain(self, event: Event) -> None:
        for name, value in event.attributes.items():
            before = len(self.items), len(self.slots)
            self._add(event, {name: value})
            if name in event.probabilities:
                for column, first in zip((self.items, self.slots), before, strict=True):
                    run = _Uncertain(column, first, len(column), event.probabilities[name])
                    self.uncertain.append(run)

    def encoded(self) -> EncodedEvents:
        """Return everything that was added, as arrays."""
        values = np.array(self.values, np.float64)
        upper = lower = ordered(values)
        if self.lower:
            ends = values.copy()
            ends[list(self.lower)] = list(self.lower.values())
            lower = ordered(ends)
        return EncodedEvents(
            np.array(self.spans, np.int64),
            np.array(self.items, np.int32),
            np.array(self.slots, np.int32),
            upper,
            lower,
            self._probabilities(),
        )

    def _add_tokens(self, name: str, event: Event) -> None:
        """Encode the tokens of an attribute by family: the values of a slot must be adjacent."""
        values = sorted(tokens(event.attributes[name]), key=_family)
        for token in values:
            self._add_token(name, token)
        if not values and name in self._vocabulary.absent:  # an empty list
            self.items.append(~self._vocabulary.absent[name])

    def _add_token(self, name: str, token: Token) -> None:
        family, key = token
        terms = self._vocabulary.attributes[name].get(family)
        if terms is None:
            return
        if isinstance(key, str):
            text = self._vocabulary.encoder(name).texts.get(key)
            self.items.append(self._vocabulary.cache_text(name, key) if text is None else text)
            return
        if isinstance(key, Range):
            self._add_range(terms, key)
            return
        self.items.extend(~term for term in terms.satisfied(key))
        if terms.slot >= 0:
            self.slots.append(terms.slot)
            value = terms.codes.get(key, UNNAMED) if family == "boolean" else float(key)
            self.values.append(value)

    def _add_range(self, terms: FamilyTerms, key: Range) -> None:
        """Encode a range; one that must be contained has its ends exchanged, see `records`."""
        low, high = key.span
        overlaps = key.mode == "overlaps"
        if overlaps or low == high:
            with self._vocabulary.lock:
                self.items.extend(~term for term in terms.within(low, high))
        if not overlaps or low == high:  # it can be excluded by a value that it includes
            with self._vocabulary.lock:
                self.items.extend(~term for term in terms.listing(low, high))
        if terms.slot >= 0:
            self.lower[len(self.slots)] = low if overlaps else high
            self.slots.append(terms.slot)
            self.values.append(high if overlaps else low)

    def _probabilities(self) -> Float64s:
        if not self.uncertain:
            return np.empty(0)
        probabilities = np.ones(len(self.items) + len(self.slots))
        for run in self.uncertain:
            shift = 0 if run.column is self.items else len(self.items)
            probabilities[shift + run.first : shift + run.last] = run.probability
        return probabilities


def _family(token: Token) -> str:
    return token[0]
