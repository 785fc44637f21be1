"""Events that arrive as columns, and become objects only where something asks for one.

Most steps of a batch need the ids, times and numbers of its events, and the entries of their
attributes: all of these are columns already. An object for each event, with a dict of its
attributes, would cost more than matching it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, overload

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
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
