"""Encodes events that were read from columns: no call for each value, only for some texts."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.index.access.kernels.records import EncodedEvents
from tidings.index.access.terms import AttributeEncoder
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.attached_columns import AttributeColumns

_NOTHING: Final = 0
"""The item of a text that satisfies nothing; it is left out."""


def encode_attached(vocabulary: Vocabulary, columns: AttributeColumns) -> EncodedEvents:
    """Encode events as the encoder of single events does; the items of one may differ in order."""
    encoders = [_encoder(vocabulary, name) for name in columns.names]
    slots, numbers = _values(encoders, columns)
    parts = [
        *_texts(vocabulary, encoders, columns),
        *_equal_numbers(encoders, columns),
        *_presences(encoders, columns),
        *_absences(vocabulary, columns),
    ]
    rows, items = (np.concatenate(both) for both in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        rows, items = rows[order], items[order]
    item_starts = offsets(np.bincount(rows, minlength=columns.size))
    values = ordered(numbers)
    return EncodedEvents(
        _spans(item_starts, _kept_starts(encoders, columns)),
        items.astype(np.int32),
        slots,
        values,
        values,
        np.empty(0),
    )


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


def _encoder(vocabulary: Vocabulary, name: str) -> AttributeEncoder | None:
    encoder = vocabulary.encoders.get(name)
    if encoder is None and name in vocabulary.attributes:
        return vocabulary.encoder(name)
    return encoder


def _by_name(
    encoders: list[AttributeEncoder | None], read: Callable[[AttributeEncoder], Any], missing: Any
) -> AnyArray:
    values = [missing if encoder is None else read(encoder) for encoder in encoders]
    return np.array(values, np.array(missing).dtype)


def _slots(encoders: list[AttributeEncoder | None], columns: AttributeColumns) -> Int32s:
    """Return the slot of each number, or -1."""
    slots = _by_name(encoders, lambda encoder: encoder.slot, -1)
    return slots[columns.number_names].astype(np.int32)


def _values(
    encoders: list[AttributeEncoder | None], columns: AttributeColumns
) -> tuple[Int32s, Float64s]:
    slots = _slots(encoders, columns)
    compared = slots >= 0
    return slots[compared], columns.numbers[compared]


def _kept_starts(encoders: list[AttributeEncoder | None], columns: AttributeColumns) -> Int64s:
    """Return where the compared numbers of each event start."""
    return offsets(_slots(encoders, columns) >= 0)[columns.number_starts]


def _spans(items: Int64s, values: Int64s) -> Int64s:
    return np.stack([items[:-1], items[1:], values[:-1], values[1:]], axis=1).ravel()


Part = tuple[Int64s, Int64s]
"""Rows of events, ascending, and an item of each."""


def _texts(
    vocabulary: Vocabulary, encoders: list[AttributeEncoder | None], columns: AttributeColumns
) -> list[Part]:
    """Return the items of texts; most are looked up among the operands of `=` alone."""
    rows, names = columns.text_rows, columns.text_names
    by_equality = _by_name(encoders, lambda encoder: encoder.equal_texts is not None, False)
    by_cache = _by_name(encoders, lambda encoder: encoder.equal_texts is None, False)
    parts = list[Part]()
    terms_of = [
        None if one is None or one.equal_texts is None else one.equal_texts.get for one in encoders
    ]
    chosen = np.flatnonzero(by_equality[names])
    texts = map(columns.texts.__getitem__, columns.text[chosen].tolist())
    pairs = zip(names[chosen].tolist(), texts, strict=True)
    # The term -1 of a text that no `=` compares has the item 0.
    terms = np.array([terms_of[name](text, -1) for name, text in pairs], np.int64)
    parts.append(_part(rows[chosen], ~terms))
    if by_cache.any():
        chosen = np.flatnonzero(by_cache[names])
        texts = map(columns.texts.__getitem__, columns.text[chosen].tolist())
        items = [
            _cached(vocabulary, encoders[name], columns.names[name], text)
            for name, text in zip(names[chosen].tolist(), texts, strict=True)
        ]
        parts.append(_part(rows[chosen], np.array(items, np.int64)))
    return parts


def _cached(vocabulary: Vocabulary, encoder: AttributeEncoder | None, name: str, text: str) -> int:
    assert encoder is not None
    number = encoder.texts.get(text)
    return vocabulary.cache_text(name, text) if number is None else number


def _part(rows: Int64s, items: Int64s) -> Part:
    kept = items != _NOTHING
    return rows[kept], items[kept]


def _equal_numbers(
    encoders: list[AttributeEncoder | None], columns: AttributeColumns
) -> list[Part]:
    """Return the items of numbers that some `=` compares, or a `not in`."""
    compared = _by_name(encoders, lambda one: bool(one.equal) or one.lists is not None, False)
    if not compared.any():
        return []
    rows, items = list[int](), list[int]()
    chosen = np.flatnonzero(compared[columns.number_names])
    entries = zip(
        columns.number_rows[chosen].tolist(),
        columns.number_names[chosen].tolist(),
        columns.numbers[chosen].tolist(),
        strict=True,
    )
    for row, name, number in entries:
        encoder = encoders[name]
        assert encoder is not None
        terms = [encoder.equal[number]] if number in encoder.equal else []
        if encoder.lists is not None:
            terms += encoder.lists.holding(number)
        rows += [row] * len(terms)
        items += [~term for term in terms]
    return [(np.array(rows, np.int64), np.array(items, np.int64))]


def _presences(encoders: list[AttributeEncoder | None], columns: AttributeColumns) -> list[Part]:
    """Return the items of `is not null`."""
    present = _by_name(encoders, lambda encoder: encoder.present, -1)
    if not (present >= 0).any():
        return []
    return [
        (rows[terms >= 0], ~terms[terms >= 0])
        for rows, terms in (
            (columns.text_rows, present[columns.text_names]),
            (columns.number_rows, present[columns.number_names]),
        )
    ]


def _absences(vocabulary: Vocabulary, columns: AttributeColumns) -> list[Part]:
    """Return the items of `is null`, for the events without an attribute."""
    parts = list[Part]()
    for name, term in list(vocabulary.absent.items()):
        missing = np.ones(columns.size, np.bool_)
        if name in columns.names:
            number = columns.names.index(name)
            missing[columns.text_rows[columns.text_names == number]] = False
            missing[columns.number_rows[columns.number_names == number]] = False
        rows = np.flatnonzero(missing)
        parts.append((rows, np.full(len(rows), ~term)))
    return parts
