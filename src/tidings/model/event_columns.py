"""Events as columns, before and after they become objects.

Most steps of a batch need the ids, times and numbers of its events, and the entries of their
attributes: all of these are columns already. An object for each event, with a dict of its
attributes, would cost more than matching it, so `ColumnEvents` builds objects only if something
asks for one.

Where objects are made, an event has its attributes as a mapping, which any code may read. Code that
takes many events at once reads them faster from the columns they came from, `AttributeColumns`:

    text_starts    0        2     3        texts of event e: text_starts[e] to text_starts[e + 1]
    text_names     0   2    0              names and texts are places in lists of different ones
    texts          5   1    5

and so the numbers. Columns are attached to the events of a batch while it passes through the
stages, and detached at its end: an event that is kept must not keep those of all others.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, overload

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets, run_indexes
from tidings.model.records import Event

UNNUMBERED: Final = -1
"""The sequence, in columns, of an event that has none."""


class TextEntries(NamedTuple):
    """Attributes that are text: entry i gives event `event[i]` the attribute `name[i]`.

    Its value is `texts[text[i]]`. Events ascend; names are numbers of `ColumnEvents.names`.
    """

    event: Int64s
    name: Int32s
    text: Int32s
    texts: Sequence[str]

    def between(self, first: int, last: int) -> "TextEntries":
        """Return the entries of some events, which are numbered from 0 on."""
        rows = slice(*np.searchsorted(self.event, [first, last]).tolist())
        return TextEntries(self.event[rows] - first, self.name[rows], self.text[rows], self.texts)


class NumberEntries(NamedTuple):
    """Attributes that are numbers, in the same way; an integer is the nearest float."""

    event: Int64s
    name: Int32s
    value: Float64s

    def between(self, first: int, last: int) -> "NumberEntries":
        """Return the entries of some events, which are numbered from 0 on."""
        rows = slice(*np.searchsorted(self.event, [first, last]).tolist())
        return NumberEntries(self.event[rows] - first, self.name[rows], self.value[rows])


class ColumnEvents(Sequence[Event]):
    """Events by column; `build` returns them as objects, and is called if one is asked for.

    No event has an attribute twice, or content.
    """

    def __init__(
        self,
        ids: Sequence[str],
        us: Int64s,
        sequence: Int64s,
        names: Sequence[str],
        entries: Sequence[TextEntries | NumberEntries],
        build: Callable[[], Sequence[Event]],
    ) -> None:
        self.ids, self.us, self.sequence = ids, us, sequence
        self.names, self.entries, self._build = names, entries, build

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.ids)

    @cached_property
    def objects(self) -> Sequence[Event]:
        """The events as objects."""
        return self._build()

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> "Sequence[Event]": ...

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self.objects[index]
        first, last, step = index.indices(len(self))
        if step != 1:
            return self.objects[index]
        if (first, last) == (0, len(self)):
            return self
        last = max(first, last)
        return ColumnEvents(
            self.ids[first:last],
            self.us[first:last],
            self.sequence[first:last],
            self.names,
            [entries.between(first, last) for entries in self.entries],
            lambda: self.objects[first:last],
        )


def ids_of(events: Sequence[Event]) -> Sequence[str]:
    """Return the ids of events."""
    if isinstance(events, ColumnEvents):
        return events.ids
    return [event.id for event in events]


def times_of(events: Sequence[Event]) -> Int64s:
    """Return the times of publication in microseconds."""
    if isinstance(events, ColumnEvents):
        return events.us
    return np.array([event.published_us for event in events], np.int64)


def sequences_of(events: Sequence[Event]) -> Int64s:
    """Return the numbers of events in their stream, UNNUMBERED for those without one."""
    if isinstance(events, ColumnEvents):
        return events.sequence
    numbers = [UNNUMBERED if event.sequence is None else event.sequence for event in events]
    return np.array(numbers, np.int64)


def contents_of(events: Sequence[Event]) -> list[str]:
    """Return the content of events as JSON text, empty where there is none."""
    if isinstance(events, ColumnEvents):
        return [""] * len(events)
    return [event.content_json or "" for event in events]


_PLACE: Final = "_place"


class AttributeColumns(NamedTuple):
    """The attributes of events, each a text or a number; no event has a name twice."""

    names: Sequence[str]
    texts: Sequence[str]
    text_starts: Int64s
    text_names: Int32s
    text: Int32s
    number_starts: Int64s
    number_names: Int32s
    numbers: Float64s

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.text_starts) - 1

    @property
    def text_rows(self) -> Int64s:
        """The event of each text."""
        return np.repeat(np.arange(self.size), np.diff(self.text_starts))

    @property
    def number_rows(self) -> Int64s:
        """The event of each number."""
        return np.repeat(np.arange(self.size), np.diff(self.number_starts))

    @property
    def entries(self) -> Sequence[TextEntries | NumberEntries]:
        """The attributes by event, the texts first."""
        return (
            TextEntries(self.text_rows, self.text_names, self.text, self.texts),
            NumberEntries(self.number_rows, self.number_names, self.numbers),
        )

    def take(self, rows: Int64s) -> "AttributeColumns":
        """Return the columns of some events, in the order in which they are listed."""
        if len(rows) == self.size and bool((np.diff(rows) == 1).all()):
            return self
        texts, numbers = np.diff(self.text_starts)[rows], np.diff(self.number_starts)[rows]
        text_places = run_indexes(self.text_starts[rows], texts)
        number_places = run_indexes(self.number_starts[rows], numbers)
        return self._replace(
            text_starts=offsets(texts),
            text_names=self.text_names[text_places],
            text=self.text[text_places],
            number_starts=offsets(numbers),
            number_names=self.number_names[number_places],
            numbers=self.numbers[number_places],
        )


class ColumnsBuilder:
    """Collects the columns of a batch of events.

    It is not `complete` once some attribute is neither a text nor a number.
    """

    def __init__(self) -> None:
        self.complete = True
        self._names: dict[str, int] = {}
        self._texts: list[str] = []
        self._text_parts: list[tuple[Int64s, Int32s, Int32s]] = []
        self._number_parts: list[tuple[Int64s, Int32s, Float64s]] = []

    def names(self, names: Iterable[str]) -> Int32s:
        """Return the numbers of names."""
        numbers = self._names
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)

    def add_texts(
        self, rows: Int64s, names: Int32s, texts: Sequence[str], codes: Int64s | Int32s
    ) -> None:
        """Add texts by the events that have them; `codes` are places in `texts`."""
        shifted = (codes + len(self._texts)).astype(np.int32)
        self._texts += texts
        self._text_parts.append((rows, names, shifted))

    def add_numbers(self, rows: Int64s, names: Int32s, numbers: Float64s) -> None:
        """Add numbers by the events that have them."""
        self._number_parts.append((rows, names, numbers))

    def columns(self, count: int) -> AttributeColumns:
        """Return the columns of `count` events."""
        text_starts, text_names, text = _by_row(self._text_parts, count, np.int32)
        number_starts, number_names, numbers = _by_row(self._number_parts, count, np.float64)
        return AttributeColumns(
            [*self._names],
            self._texts,
            text_starts,
            text_names,
            text,
            number_starts,
            number_names,
            numbers,
        )


def _by_row(parts: Sequence[tuple[Any, ...]], count: int, dtype: Any) -> tuple[Any, ...]:
    """Join parts of rows, names and values, in the order of the rows."""
    if not parts:
        return np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype)
    rows, names, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        names, values = names[order], values[order]
    return offsets(np.bincount(rows, minlength=count)), names, values


def attach(columns: AttributeColumns, events: Sequence[Event]) -> None:
    """Attach columns to their events."""
    for row, event in enumerate(events):
        event.__dict__[_PLACE] = (columns, row)


def detach(events: Iterable[Event]) -> None:
    """Detach the columns of events that have any."""
    for event in events:
        event.__dict__.pop(_PLACE, None)


def attached(events: Sequence[Event]) -> list[AttributeColumns] | None:
    """Return the columns of consecutive runs of events; None if some events have none."""
    if not events or _PLACE not in events[0].__dict__:
        return None
    places = [event.__dict__.get(_PLACE) for event in events]
    if None in places:
        return None
    columns, rows = zip(*places, strict=True)
    owners, numbers = np.fromiter(map(id, columns), np.int64), np.array(rows, np.int64)
    firsts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist()]
    runs = zip(firsts, np.split(numbers, firsts[1:]), strict=True)
    return [columns[first].take(run) for first, run in runs]
