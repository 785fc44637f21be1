"""The deliveries of every window, recomputed from the whole stream by semantics §6.

Plain functions that share no code with the windows, the feed and the diversifiers. Without decay
all values are fractions, so that equal means equal; with it they are rounded to 12 digits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from tidings.model.records import Event

Number = Fraction | float


@dataclass(frozen=True)
class Publication:
    """An event with its sequence number, and its score if it matches."""

    event: Event
    score: float | None

    @property
    def us(self) -> int:
        return self.event.published_us

    @property
    def sequence(self) -> int:
        return self.event.sequence or 0

    @property
    def id(self) -> str:
        return self.event.id


class Span(NamedTuple):
    """A length: of `matching` events, of `published` events, or of `time` in microseconds."""

    kind: str
    size: int


class Delivered(NamedTuple):
    """The checked fields of a delivery."""

    event: str
    rank: float
    position: int
    at_us: int


@dataclass(frozen=True)
class Taste:
    """k, sigma of PREF Def. 10 (None: no diversity), and the rate of exponential decay."""

    k: int
    sigma: float | None = None
    rate: float | None = None

    def rank(self, match: Publication, now_us: int) -> Number:
        score = match.score or 0.0
        if self.rate is None:
            return Fraction(str(score))
        return score * math.exp(-self.rate * (now_us - match.us) / 1e6)

    def best(self, matches: Sequence[Publication], now_us: int) -> list[Publication]:
        return sorted(matches, key=lambda m: (-level(self.rank(m, now_us)), -m.us, m.id))

    def divrank(self, matches: Sequence[Publication], now_us: int) -> Number:
        """Return the divrank of PREF Def. 10; without diversity, sigma is 1."""
        sigma = Fraction(str(1.0 if self.sigma is None else self.sigma))
        distances = [distance(one, other) for one, other in combinations(matches, 2)]
        div = sum(distances, Fraction(0)) / len(distances) if distances else Fraction(0)
        mean = sum((self.rank(match, now_us) for match in matches), Fraction(0)) / len(matches)
        return level(sigma * mean + (1 - sigma) * div)

    def choose(self, matches: Sequence[Publication], now_us: int) -> list[Publication]:
        """Return the k best, or the choice of PREF Alg. 1 with Def. 11."""
        if self.sigma is None or self.k == 1 or len(matches) < 2:
            return self.best(matches, now_us)[: self.k]
        pair = min(combinations(matches, 2), key=lambda p: self._pair(p, now_us))
        chosen = sorted(pair, key=lambda m: (m.us, m.id))
        while len(chosen) < min(self.k, len(matches)):
            rest = [match for match in matches if match not in chosen]
            chosen.append(min(rest, key=lambda m: self._next(m, chosen, now_us)))
        return chosen

    def _pair(self, pair: tuple[Publication, ...], now_us: int) -> tuple[object, ...]:
        times = [match.us for match in pair]
        ids = sorted(match.id for match in pair)
        return (-self.divrank(pair, now_us), -sum(times), -max(times), ids)

    def _next(
        self, match: Publication, chosen: list[Publication], now_us: int
    ) -> tuple[object, ...]:
        sigma = Fraction(str(self.sigma))
        nearest = min(distance(match, other) for other in chosen)
        value = sigma * self.rank(match, now_us) + (1 - sigma) * nearest
        return (-level(value), -match.us, match.id)


def level(value: Number) -> Number:
    """Return the value that comparisons use."""
    return value if isinstance(value, Fraction) else round(value, 12)


def distance(one: Publication, other: Publication) -> Fraction:
    """Return the overlap distance (PREF Def. 7), all weights 1."""
    left, right = one.event.attributes, other.event.attributes
    names = set(left) | set(right)
    equal = [n for n in names if n in left and n in right and left[n] == right[n]]
    return 1 - Fraction(len(equal), len(names)) if names else Fraction(0)


def matching(stream: Sequence[Publication]) -> list[Publication]:
    return [publication for publication in stream if publication.score is not None]


def within(
    span: Span | None, matches: Sequence[Publication], now: Publication
) -> list[Publication]:
    """Return the matches up to `now`, the last of them, that a window of this length holds."""
    if span is None:
        return list(matches)
    if span.kind == "matching":
        return list(matches[-span.size :])
    if span.kind == "published":
        return [match for match in matches if match.sequence > now.sequence - span.size]
    return [match for match in matches if match.us > now.us - span.size]


def _delivered(
    taste: Taste, ordered: Sequence[Publication], due: Sequence[Publication], at_us: int
) -> list[Delivered]:
    """Return the matches of an ordered list that are due, with their positions in it."""
    return [
        Delivered(match.id, round(float(taste.rank(match, at_us)), 9), position, at_us)
        for position, match in enumerate(ordered, start=1)
        if match in due
    ]


def continuous(
    stream: Sequence[Publication], taste: Taste, expires: Span | None, wait: bool
) -> list[Delivered]:
    """Deliver each match at once if it is among the best k unexpired ones."""
    out: list[Delivered] = []
    undecided: list[Publication] = []
    matches = matching(stream)
    for number, match in enumerate(matches, start=1):
        undecided.append(match)
        alive = within(expires, matches[:number], match)
        if wait and len(alive) < taste.k:
            continue
        out += _delivered(taste, taste.choose(alive, match.us), undecided, match.us)
        undecided = []
    return out


def overlapping(
    windows: Sequence[tuple[list[Publication], int]], taste: Taste, leave: bool, wait: bool
) -> list[Delivered]:
    """Choose from each window in turn, at its time; deliver events not delivered before."""
    out: list[Delivered] = []
    for window, at_us in windows:
        before = {delivery.event for delivery in out}
        candidates = [match for match in window if not (leave and match.id in before)]
        if not candidates or (wait and len(candidates) < taste.k):
            continue
        new = [match for match in window if match.id not in before]
        out += _delivered(taste, taste.choose(candidates, at_us), new, at_us)
    return out


def sliding(
    stream: Sequence[Publication], taste: Taste, span: Span, leave: bool, wait: bool
) -> list[Delivered]:
    """Choose from the last w after every match."""
    matches = matching(stream)
    windows = [(within(span, matches[: i + 1], m), m.us) for i, m in enumerate(matches)]
    return overlapping(windows, taste, leave, wait)


def jumping(
    stream: Sequence[Publication],
    taste: Taste,
    span: Span,
    step: Span,
    *,
    leave: bool,
    wait: bool,
    until_us: int,
) -> list[Delivered]:
    """Choose from the last w at every step; by time, from [end - w, end) at every multiple."""
    matches = matching(stream)
    windows: list[tuple[list[Publication], int]] = []
    if step.kind == "matching":
        for number in range(step.size, len(matches) + 1, step.size):
            now = matches[number - 1]
            windows.append((within(span, matches[:number], now), now.us))
    elif step.kind == "published":
        for end in range(step.size, stream[-1].sequence + 1, step.size):
            held = [m for m in matches if end - span.size < m.sequence <= end]
            windows.append((held, max((m.us for m in held), default=0)))
    else:
        first = min((m.us for m in matches), default=until_us) // step.size * step.size
        for end in range(first, until_us + 1, step.size):
            windows.append(([m for m in matches if end - span.size <= m.us < end], end))
    return overlapping(windows, taste, leave, wait)


def periodic(
    stream: Sequence[Publication],
    taste: Taste,
    span: Span,
    origin_us: int,
    wait: bool,
    until_us: int,
) -> list[Delivered]:
    """Choose once from each period that has ended; with `wait`, fewer than k go to the next."""
    matches = matching(stream)
    places = {
        "matching": lambda number, match: number,
        "published": lambda number, match: match.sequence - 1,
        "time": lambda number, match: match.us - origin_us,
    }
    periods = [places[span.kind](n, m) // span.size for n, m in enumerate(matches)]
    reached = {
        "matching": len(matches),
        "published": stream[-1].sequence if stream else 0,
        "time": until_us - origin_us,
    }[span.kind]
    out: list[Delivered] = []
    carried: list[Publication] = []
    for period in sorted(set(periods)):
        end = (period + 1) * span.size
        if end > reached:
            break
        carried += [m for m, its in zip(matches, periods, strict=True) if its == period]
        if wait and len(carried) < taste.k:
            continue
        at_us = end + origin_us if span.kind == "time" else max(m.us for m in carried)
        out += _delivered(taste, taste.choose(carried, at_us), carried, at_us)
        carried = []
    return out


def history(
    stream: Sequence[Publication], taste: Taste, span: Span, strict: bool, wait: bool
) -> list[Delivered]:
    """Deliver a match for a free place in H, or for a swap that improves it (PREF Def. 14)."""
    out: list[Delivered] = []
    top: list[Publication] = []
    held: list[Publication] = []
    matches = matching(stream)
    for number, match in enumerate(matches, start=1):
        alive = within(span, matches[:number], match)
        top = [member for member in top if member in alive]
        held = [waiting for waiting in held if waiting in alive]
        if len(top) + len(held) < taste.k:
            held.append(match)
            if wait and len(top) + len(held) < taste.k:
                continue
            due, top, held = held, top + held, []
        else:
            due, top = _swap(taste, top, match, strict)
        out += _delivered(taste, taste.best(top, match.us), due, match.us)
    return out


def _swap(
    taste: Taste, top: list[Publication], match: Publication, strict: bool
) -> tuple[list[Publication], list[Publication]]:
    """Return the deliveries, and H after them."""
    swaps = {out: [*(m for m in top if m != out), match] for out in top}
    values = {out: taste.divrank(swap, match.us) for out, swap in swaps.items()}
    oldest_first = sorted(sorted(top, key=lambda m: m.id, reverse=True), key=lambda m: m.us)
    best = max(oldest_first, key=lambda m: values[m])
    now = taste.divrank(top, match.us)
    better = values[best] > now if strict else values[best] >= now
    return ([match], swaps[best]) if better else ([], top)
