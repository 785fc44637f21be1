"""The protocol of indexes over several numeric attributes, and the boxes they are built from.

A subscription is a box: an interval [low, high] for each attribute, [-inf, inf] where it has no
predicate. An event is a row of numbers, NaN where it lacks the attribute: no predicate holds there.
It may also have ranges and probabilities, see `NumericEvents`.

- exact: every predicate holds; the score is the subscription's own.
- relaxed: at least one predicate holds; the score is the aggregate (the sum, by default) of the
  weights of those that hold, rounded to 12 decimals.

Answers are ordered by score, ties by smaller id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.errors import TidingsError, shown
from tidings.index import arguments
from tidings.model.values import Range


class BoxAnswer(NamedTuple):
    """The ids and scores of one event's best subscriptions, in order."""

    ids: Int64s
    scores: Float64s


class BoxAnswers(NamedTuple):
    """A row of ids and scores per event, padded with -1 and NaN, and the length of each row."""

    ids: Int64s
    scores: Float64s
    counts: Int64s


class BoxIndex(Protocol):
    """Boxes with scores or weights; an id is the box's position in the input arrays.

    Answers equal those of the scans.
    """

    @property
    def name(self) -> str:
        """The name in the registry."""

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the index holds, including those of the boxes."""

    def top(self, row: Any, k: int) -> BoxAnswer:
        """Return the k best for an event, a row or `NumericEvents` of one."""

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Return the k best for each event."""

    def counters(self) -> Mapping[str, int]:
        """Return counts of the visits of the last `top` or `top_many`."""

    def describe(self) -> str:
        """Return a sentence about the index and its contents."""


@dataclass(frozen=True)
class Boxes:
    """Lows and highs of shape (n, d), and their worth: scores (n) or weights (n, d)."""

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
        return total_bytes(self.low, self.high, self.worth)

    def take(self, positions: Any) -> "Boxes":
        """Return the boxes at some positions, in that order."""
        return Boxes(self.low[positions], self.high[positions], self.worth[positions])

    def constrained(self) -> Bools:
        """Return for each box and attribute whether there is a predicate."""
        return (self.low > -np.inf) | (self.high < np.inf)

    def describe(self) -> str:
        """Return the number of boxes and attributes, and the matching."""
        return f"{len(self):,} subscriptions over {self.attributes} attributes, {self.matching}"


def boxes_of(low: Any, high: Any, worth: Any) -> Boxes:
    """Return checked boxes; NaN, an empty interval and a negative worth are refused by position.

    Arrays of float64 in C order are kept, not copied: do not change them afterwards.
    """
    lows, highs = arguments.numbers("low", low), arguments.numbers("high", high)
    worths = arguments.numbers("worth", worth)
    shapes = f"{lows.shape}, {highs.shape} and {worths.shape}"
    if lows.ndim != 2 or highs.shape != lows.shape or lows.shape[1] == 0:
        raise TidingsError(f"low and high need one shape (n, d) with d at least 1, not {shapes}")
    if worths.shape not in (lows.shape, lows.shape[:1]):
        raise TidingsError(f"scores need the shape (n,), weights that of low, not {shapes}")
    if (wrong := ~(np.isfinite(worths) & (worths >= 0))).any():
        place = _first_position(wrong)
        label = "score" if len(place) == 1 else f"attribute {place[1]}: weight"
        raise TidingsError(
            f"subscription {place[0]}, {label} {worths[place]} is not a finite number >= 0"
        )
    if (empty := ~(lows <= highs)).any():
        id, attribute = _first_position(empty)
        raise TidingsError(
            f"subscription {id}, attribute {attribute}: low {lows[id, attribute]} is above "
            f"high {highs[id, attribute]}"
        )
    return Boxes(lows, highs, worths)


def _first_position(mask: Bools) -> tuple[int, ...]:
    return tuple(int(part) for part in np.unravel_index(int(np.argmax(mask)), mask.shape))


@dataclass(frozen=True)
class NumericEvents:
    """Events, one row each: a predicate [low, high] holds if low <= below and above <= high.

    For a point both are its number. For a range that must overlap, `below` is its high end and
    `above` its low end; for one that must be contained, the other way round. NaN is a missing
    value. `share` in [0, 1] is the probability by which an attribute's weight counts in relaxed
    matching.
    """

    below: Float64s
    above: Float64s
    share: Float64s

    def __len__(self) -> int:
        return len(self.below)

    def __getitem__(self, rows: slice) -> "NumericEvents":
        below = self.below[rows]
        return NumericEvents(below, self.above[rows] if self.ranged else below, self.share[rows])

    @property
    def attributes(self) -> int:
        """The number of attributes, d."""
        return int(self.below.shape[1])

    @property
    def ranged(self) -> bool:
        """Whether some event may be more than a point."""
        return self.below is not self.above

    @property
    def plain(self) -> bool:
        """Whether all events are points and certain."""
        return not self.ranged and bool((self.share == 1).all())


def range_events(rows: Any, probabilities: Any = 1.0) -> NumericEvents:
    """Return events from rows of numbers, NaN and `Range`s; probabilities are broadcast to them.

    >>> from tidings.model.values import Range
    >>> one = range_events([[Range(20, 30), 5.0, float("nan")]], [0.5, 1, 1])
    >>> one.below.tolist(), one.above.tolist(), one.share.tolist()
    ([[30.0, 5.0, nan]], [[20.0, 5.0, nan]], [[0.5, 1.0, 1.0]])
    """
    rule = "events are rows of at least one number or range"
    try:
        sides = arguments.numbers(rule, [[_sides(value) for value in row] for row in rows])
    except TidingsError:
        raise
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{rule}, not {shown(rows)}") from None
    if sides.ndim != 3:
        raise TidingsError(f"{rule}, not {shown(rows)}")
    below, above = (np.ascontiguousarray(sides[:, :, side]) for side in range(2))
    chances = arguments.numbers("probabilities", probabilities)
    try:
        share = np.ascontiguousarray(np.broadcast_to(chances, below.shape))
    except ValueError:
        raise TidingsError(
            f"probabilities of shape {chances.shape} do not fit events of shape {below.shape}"
        ) from None
    if (wrong := ~((share >= 0) & (share <= 1))).any():
        place = _first_position(wrong)
        raise TidingsError(
            f"event {place[0]}, attribute {place[1]}: probability {share[place]} is not in [0, 1]"
        )
    return NumericEvents(below, above, share)


def _sides(value: Any) -> tuple[float, float]:
    """Return the number that a low must not exceed, and the one that a high must reach."""
    if not isinstance(value, Range):
        return value, value
    low, high = value.span
    return (low, high) if value.mode == "contained" else (high, low)


def events_of(attributes: int, rows: Any) -> NumericEvents:
    """Return rows of numbers, or events, as events over `attributes` attributes."""
    if isinstance(rows, NumericEvents):
        events = _checked_events(rows)
    else:
        numbers = arguments.numbers("events", rows)
        events = NumericEvents(numbers, numbers, np.ones(numbers.shape))
    if events.below.ndim != 2 or events.attributes != attributes:
        raise TidingsError(
            f"events of shape {events.below.shape}: expected rows of {attributes} numbers"
        )
    return events


def _checked_events(events: NumericEvents) -> NumericEvents:
    """Return events whose arrays have the form that `range_events` gives them."""
    arrays: list[Any] = [events.below, events.above, events.share]
    for array in arrays:
        typed = isinstance(array, np.ndarray) and array.dtype == np.float64
        fits = typed and array.shape == arrays[0].shape
        if not fits or not (array.flags.c_contiguous and array.flags.aligned):
            raise TidingsError("events need three arrays of float64 of one shape; use range_events")
    return events


def event_of(attributes: int, row: Any) -> NumericEvents:
    """Return a row of numbers, or events of which there is one, as events."""
    events = events_of(attributes, row if isinstance(row, NumericEvents) else [row])
    if len(events) != 1:
        raise TidingsError(f"expected one event, not {len(events)}; use top_many for several")
    return events


def padded_answers(answers: list[BoxAnswer], k: int) -> BoxAnswers:
    """Return answers of different lengths as padded rows."""
    ids = np.full((len(answers), k), -1, np.int64)
    scores = np.full((len(answers), k), np.nan)
    counts = np.array([len(answer.ids) for answer in answers], np.int64)
    for row, answer in enumerate(answers):
        ids[row, : counts[row]], scores[row, : counts[row]] = answer
    return BoxAnswers(ids, scores, counts)


def one_by_one(
    top: Callable[[NumericEvents, int], BoxAnswer], events: NumericEvents, k: int
) -> BoxAnswers:
    """Answer the events one by one."""
    width = arguments.result_width(k, len(events))
    answers = [top(events[row : row + 1], width) for row in range(len(events))]
    return padded_answers(answers, width)
