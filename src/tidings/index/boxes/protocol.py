"""What an index over several attributes is, and the boxes that all of them are built from.

A subscription is a box: an interval [low, high] for each attribute, [-inf, inf] where it has no
predicate. An event is a row of numbers, NaN where it lacks the attribute: no predicate holds there.
It may also have ranges and probabilities, see `Events`.

- exact: every predicate holds; the score is the subscription's own.
- relaxed: at least one predicate holds; the score is the aggregate (the sum, by default) of the
  weights of those that hold, rounded to 12 decimals.

Answers come by score, ties by smaller id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.errors import TidingsError, shown
from tidings.index import arguments
from tidings.model.values import Range

Answer = tuple[Int64s, Float64s]
Answers = tuple[Int64s, Float64s, Int64s]


class BoxIndex(Protocol):
    """Boxes with scores or weights; ids are their places in the arrays that were given.

    Answers are exactly those of `ExactScan` and `RelaxedScan`.
    """

    @property
    def name(self) -> str:
        """What it is called in the registry."""

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the index holds, those of the boxes among them."""

    def top(self, row: Any, k: int) -> Answer:
        """Give ids and scores of the k best for an event, a row or `Events` of one."""

    def top_many(self, rows: Any, k: int) -> Answers:
        """Give a row of ids and of scores for each event, and how many each has.

        Behind the last answer a row is filled up with -1 and NaN.
        """

    def counters(self) -> Mapping[str, int]:
        """Give what the last `top` or `top_many` looked at."""

    def describe(self) -> str:
        """Tell what the index is and what it holds."""


@dataclass(frozen=True)
class Boxes:
    """Lows and highs of shape (n, d), and what they are worth: scores (n) or weights (n, d)."""

    low: Float64s
    high: Float64s
    worth: Float64s

    def __len__(self) -> int:
        return len(self.low)

    @property
    def attributes(self) -> int:
        """The number of attributes, d."""
        return int(self.low.shape[1])

    @property
    def matching(self) -> str:
        """`exact` for scores, `relaxed` for weights."""
        return "exact" if self.worth.ndim == 1 else "relaxed"

    @property
    def nbytes(self) -> int:
        """The bytes of the three arrays."""
        return self.low.nbytes + self.high.nbytes + self.worth.nbytes

    def some(self, places: Any) -> "Boxes":
        """Give the boxes at places, in that order."""
        return Boxes(self.low[places], self.high[places], self.worth[places])

    def constrained(self) -> Bools:
        """Say of each box and attribute whether there is a predicate."""
        return (self.low > -np.inf) | (self.high < np.inf)

    def describe(self) -> str:
        """Tell how many there are, over how many attributes."""
        return f"{len(self):,} subscriptions over {self.attributes} attributes, {self.matching}"


def boxes_of(low: Any, high: Any, worth: Any) -> Boxes:
    """Check the arrays; NaN, an empty interval and a negative score or weight are refused by place.

    Arrays of float64 in C order are kept as they are, not copied: do not change them.
    """
    lows, highs = arguments.numbers("low", low), arguments.numbers("high", high)
    worths = arguments.numbers("worth", worth)
    shapes = f"{lows.shape}, {highs.shape} and {worths.shape}"
    if lows.ndim != 2 or highs.shape != lows.shape or lows.shape[1] == 0:
        raise TidingsError(f"low and high have one shape (n, d) with d at least 1, not {shapes}")
    if worths.shape not in (lows.shape, lows.shape[:1]):
        raise TidingsError(f"scores have shape (n,), weights that of low and high, not {shapes}")
    _refuse(~(np.isfinite(worths) & (worths >= 0)), worths, "is not a finite number >= 0")
    if (bad := ~(lows <= highs)).any():
        id, attribute = _first(bad)
        raise TidingsError(
            f"subscription {id}, attribute {attribute}: low {lows[id, attribute]} is above "
            f"high {highs[id, attribute]}"
        )
    return Boxes(lows, highs, worths)


def _refuse(bad: Bools, worths: Float64s, rule: str) -> None:
    if bad.any():
        place = _first(bad)
        what = "score" if len(place) == 1 else f"attribute {place[1]}: weight"
        raise TidingsError(f"subscription {place[0]}, {what} {worths[place]} {rule}")


def _first(bad: Bools) -> tuple[int, ...]:
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(bad)), bad.shape))


@dataclass(frozen=True)
class Events:
    """Events, a row each: a predicate [low, high] holds where low <= below and above <= high.

    Both are the number of a point; of a range that shall overlap `below` is its high end and
    `above` its low one, of a range that shall be contained the other way round. NaN: it is missing.
    `share` in [0, 1] is the probability by which an attribute's weight counts in relaxed matching.
    """

    below: Float64s
    above: Float64s
    share: Float64s

    def __len__(self) -> int:
        return len(self.below)

    def __getitem__(self, rows: slice) -> "Events":
        below = self.below[rows]
        return Events(below, self.above[rows] if self.ranged else below, self.share[rows])

    @property
    def attributes(self) -> int:
        """The number of attributes, d."""
        return int(self.below.shape[1])

    @property
    def ranged(self) -> bool:
        """Whether some event is more than a point."""
        return self.below is not self.above

    @property
    def plain(self) -> bool:
        """Whether all are points, and certain."""
        return not self.ranged and bool((self.share == 1).all())


def range_events(rows: Any, probabilities: Any = 1.0) -> Events:
    """Give rows of numbers, NaN and `Range`s as events; probabilities are a number, a row or rows.

    >>> from tidings.model.values import Range
    >>> one = range_events([[Range(20, 30), 5.0, float("nan")]], [0.5, 1, 1])
    >>> one.below.tolist(), one.above.tolist(), one.share.tolist()
    ([[30.0, 5.0, nan]], [[20.0, 5.0, nan]], [[0.5, 1.0, 1.0]])
    """
    what = "events are rows of at least one number or range"
    try:
        sides = arguments.numbers(what, [[_sides(value) for value in row] for row in rows])
    except TidingsError:
        raise
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{what}, not {shown(rows)}") from None
    if sides.ndim != 3:
        raise TidingsError(f"{what}, not {shown(rows)}")
    below, above = (np.ascontiguousarray(sides[:, :, side]) for side in range(2))
    chances = arguments.numbers("probabilities", probabilities)
    try:
        share = np.ascontiguousarray(np.broadcast_to(chances, below.shape))
    except ValueError:
        raise TidingsError(
            f"probabilities of shape {chances.shape} do not fit events of shape {below.shape}"
        ) from None
    if (bad := ~((share >= 0) & (share <= 1))).any():
        at = _first(bad)
        raise TidingsError(
            f"event {at[0]}, attribute {at[1]}: probability {share[at]} is not in [0, 1]"
        )
    return Events(below, above, share)


def _sides(value: Any) -> tuple[float, float]:
    """Give what a low must not exceed, and what a high must reach."""
    if not isinstance(value, Range):
        return value, value
    low, high = value.span
    return (low, high) if value.mode == "contained" else (high, low)


def events_of(attributes: int, rows: Any) -> Events:
    """Give rows of numbers as events, and events as they are, if they have so many attributes."""
    if isinstance(rows, Events):
        events = _checked_events(rows)
    else:
        numbers = arguments.numbers("events", rows)
        events = Events(numbers, numbers, np.ones(numbers.shape))
    if events.below.ndim != 2 or events.attributes != attributes:
        raise TidingsError(
            f"events of shape {events.below.shape}: rows of {attributes} numbers are wanted"
        )
    return events


def _checked_events(events: Events) -> Events:
    """Refuse events whose arrays are not as `range_events` makes them."""
    arrays: list[Any] = [events.below, events.above, events.share]
    for each in arrays:
        right = isinstance(each, np.ndarray) and each.dtype == np.float64
        if not right or each.shape != arrays[0].shape or not each.flags.c_contiguous:
            raise TidingsError("events are three arrays of float64 of one shape; use range_events")
    return events


def event_of(attributes: int, row: Any) -> Events:
    """Give a row of numbers, or events of which there is one, as events."""
    events = events_of(attributes, row if isinstance(row, Events) else [row])
    if len(events) != 1:
        raise TidingsError(f"{len(events)} events; one is wanted, or ask for many")
    return events


def filled(answers: list[Answer], k: int) -> Answers:
    """Lay answers of different lengths out as rows."""
    ids = np.full((len(answers), k), -1, np.int64)
    scores = np.full((len(answers), k), np.nan)
    counts = np.array([len(each) for each, _ in answers], np.int64)
    for row, (found, score) in enumerate(answers):
        ids[row, : len(found)], scores[row, : len(found)] = found, score
    return ids, scores, counts


def one_by_one(top: Callable[[Events, int], Answer], events: Events, k: int) -> Answers:
    """Answer one event after the other."""
    most = arguments.width(k, len(events))
    return filled([top(events[at : at + 1], most) for at in range(len(events))], most)
