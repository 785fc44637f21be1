"""Encodes events by column: what a value means is looked up once for all events that have it."""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.index.access.kernels.records import EncodedEvents
from tidings.index.access.terms import AttributeEncoder
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.event_columns import NumberEntries, TextEntries


class _Run(NamedTuple):
    """Numbers of events, and what each of them gets."""

    event: Int64s
    number: Int32s


class EventEntries(Protocol):
    """A number of events by the entries of their attributes, whose names are numbers."""

    @property
    def names(self) -> Sequence[str]:
        """The names by number."""

    @property
    def entries(self) -> Sequence[TextEntries | NumberEntries]:
        """The texts and numbers of all events."""

    @property
    def size(self) -> int:
        """The number of events."""


def encode_columns(vocabulary: Vocabulary, events: EventEntries) -> EncodedEvents:
    """Return the events as numbers of a vocabulary."""
    encoders = {
        number: vocabulary.encoders.get(name) or vocabulary.encoder(name)
        for number, name in enumerate(events.names)
        if name in vocabulary.attributes
    }
    items, values = list[_Run](), list[tuple[_Run, Float64s]]()
    for entries in events.entries:
        items.append(_present(entries, encoders, len(events.names)))
        if isinstance(entries, TextEntries):
            items.append(_texts(vocabulary, entries, events.names, encoders))
        else:
            values.append(_values(entries, encoders, len(events.names)))
            items.append(_terms_of_numbers(entries, encoders))
    items += _absent(vocabulary, events)
    runs = [run for run, _ in values]
    item, item_starts = _by_event(items, events.size)
    slot, slot_starts = _by_event(runs, events.size)
    value = np.concatenate([np.zeros(0), *(value for _, value in values)])[_order(runs)]
    ends = (item_starts[:-1], item_starts[1:], slot_starts[:-1], slot_starts[1:])
    spans = np.stack(ends, axis=1).ravel()
    bounds = ordered(value)
    return EncodedEvents(spans, item, slot, bounds, bounds, np.empty(0))


def joined(parts: list[EncodedEvents]) -> EncodedEvents:
    """Return the events of several parts, one part after the other; none has probabilities."""
    if len(parts) == 1:
        return parts[0]
    items = offsets([len(part.items) for part in parts])
    values = offsets([len(part.slots) for part in parts])
    spans = [
        (part.spans.reshape(-1, 4) + np.array([item, item, value, value])).ravel()
        for part, item, value in zip(parts, items[:-1], values[:-1], strict=True)
    ]
    upper = np.concatenate([part.upper for part in parts])
    return EncodedEvents(
        np.concatenate(spans),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.slots for part in parts]),
        upper,
        upper,
        np.empty(0),
    )


def _present(
    entries: TextEntries | NumberEntries, encoders: Mapping[int, AttributeEncoder], names: int
) -> _Run:
    """Return the terms of attributes that some predicate wants to be present."""
    terms = np.full(names, -1, np.int32)
    for name, encoder in encoders.items():
        terms[name] = encoder.others.present if encoder.others else -1
    if (terms < 0).all():
        return _run([], [])
    term = terms[entries.name]
    has_term = term >= 0
    return _Run(entries.event[has_term], ~term[has_term])


def _texts(
    vocabulary: Vocabulary,
    entries: TextEntries,
    names: Sequence[str],
    encoders: Mapping[int, AttributeEncoder],
) -> _Run:
    """Return the numbers of texts, each pair of name and text looked up once.

    That is the term of the only predicate that a text can satisfy, or its number in the cache.
    """
    width = max(1, len(entries.texts))
    keys = entries.name.astype(np.int64) * width + entries.text
    pairs, places = np.unique(keys, return_inverse=True)
    name_of, text_of = np.divmod(pairs, width)
    numbers = np.zeros(len(pairs), np.int32)
    firsts = np.searchsorted(name_of, [*encoders])
    lasts = np.searchsorted(name_of, [*encoders], "right")
    for name, first, last in zip(encoders, firsts.tolist(), lasts.tolist(), strict=True):
        texts = [*map(entries.texts.__getitem__, text_of[first:last].tolist())]
        if (terms := encoders[name].equal_texts) is not None:
            # The term -1 of a text that no `=` compares becomes the number 0.
            numbers[first:last] = [~term for term in map(terms.get, texts, repeat(-1))]
            continue
        numbers[first:last] = [*map(encoders[name].texts.get, texts, repeat(-1))]
        for place in np.flatnonzero(numbers[first:last] < 0).tolist():
            numbers[first + place] = vocabulary.cache_text(names[name], texts[place])
    number = numbers[places]
    has_number = number != 0
    return _Run(entries.event[has_number], number[has_number])


def _values(
    entries: NumberEntries, encoders: Mapping[int, AttributeEncoder], names: int
) -> tuple[_Run, Float64s]:
    """Return the slots of numbers that some predicate compares, and the numbers."""
    slots = np.full(names, -1, np.int32)
    for name, encoder in encoders.items():
        slots[name] = encoder.slot
    slot = slots[entries.name]
    has_slot = slot >= 0
    return _Run(entries.event[has_slot], slot[has_slot]), entries.value[has_slot]


def _terms_of_numbers(entries: NumberEntries, encoders: Mapping[int, AttributeEncoder]) -> _Run:
    """Return the terms of numbers that some predicate names, in `=` or in a list."""
    named = [name for name, encoder in encoders.items() if encoder.equal or encoder.others]
    rows = np.flatnonzero(np.isin(entries.name, named)) if named else np.zeros(0, np.int64)
    rows = rows[np.argsort(entries.name[rows], kind="stable")]
    names, firsts = np.unique(entries.name[rows], return_index=True)
    places, terms = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for name, of_name in zip(names.tolist(), np.split(rows, firsts[1:]), strict=False):
        encoder, values = encoders[name], entries.value[of_name].tolist()
        equal = np.fromiter(map(encoder.equal.get, values, repeat(-1)), np.int32, len(values))
        places.append(of_name[equal >= 0])
        terms.append(equal[equal >= 0])
        if encoder.others and encoder.others.lists:
            held = [[*encoder.others.lists.holding(value)] for value in values]
            places.append(np.repeat(of_name, [*map(len, held)]))
            terms.append(np.array([*chain.from_iterable(held)], np.int32))
    rows = np.concatenate(places)
    order = np.argsort(rows, kind="stable")  # of one number, the term of `=` comes first
    return _Run(entries.event[rows[order]], ~np.concatenate(terms)[order])


def _absent(vocabulary: Vocabulary, events: EventEntries) -> list[_Run]:
    """Return the terms of attributes that some predicate wants to be absent, and of `true`."""
    numbers, runs = {name: number for number, name in enumerate(events.names)}, list[_Run]()
    for name, term in list(vocabulary.absent.items()):
        lacking = np.ones(events.size, np.bool_)
        for entries in events.entries if name in numbers else ():
            lacking[entries.event[entries.name == numbers[name]]] = False
        rows = np.flatnonzero(lacking)
        runs.append(_Run(rows, np.full(len(rows), ~term, np.int32)))
    return runs


def _run(events: Sequence[int], numbers: Sequence[int]) -> _Run:
    return _Run(np.array(events, np.int64), np.array(numbers, np.int32))


def _order(runs: Sequence[_Run]) -> Int64s:
    """Return the order of the events of all runs; within an event, that of the runs."""
    if len(runs) == 1:  # its events ascend
        return np.arange(len(runs[0].event))
    events = np.concatenate([np.zeros(0, np.int64), *(run.event for run in runs)])
    return np.argsort(events, kind="stable")


def _by_event(runs: Sequence[_Run], count: int) -> tuple[Int32s, Int64s]:
    """Return the numbers of all runs, event by event, and where those of each event start."""
    runs = runs or [_run([], [])]
    numbers = np.concatenate([run.number for run in runs])[_order(runs)]
    events = np.concatenate([run.event for run in runs])
    return numbers, offsets(np.bincount(events, minlength=count))
