"""Positions of partitions whose records are numbered, and the ranges that a batch reads.

An offset is that of the next record to read. A partition that is not in the checkpoint is new and
starts at 0.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidings.errors import SourceError

_LOG: Final = logging.getLogger(__name__)
Partition = tuple[str, int]
Offsets = Mapping[Partition, int]
OffsetForm = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Span:
    """The records of a partition from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """Name of the partition in messages."""
        return f"{self.topic}-{self.partition}"


def to_form(offsets: Offsets) -> OffsetForm:
    """Return the JSON form, which is that of Spark's own source.

    >>> to_form({("films", 0): 7, ("films", 1): 9})
    {'films': {'0': 7, '1': 9}}
    """
    form: OffsetForm = {}
    for (topic, partition), offset in sorted(offsets.items()):
        form.setdefault(topic, {})[str(partition)] = offset
    return form


def from_form(form: Mapping[str, Any]) -> dict[Partition, int]:
    """Return the offsets of a JSON form."""
    return {
        (topic, int(partition)): offset
        for topic, offsets in form.items()
        for partition, offset in offsets.items()
    }


def advance(start: Offsets, latest: Offsets, limit: int | None) -> dict[Partition, int]:
    """Return where a batch of at most `limit` records from `start` ends.

    Partitions that no longer exist are left out.
    """
    partitions = sorted(latest)
    begins = [_begin(start, partition, latest[partition]) for partition in partitions]
    backlogs = [latest[name] - begin for name, begin in zip(partitions, begins, strict=True)]
    sizes = shares(backlogs, limit)
    return {
        partition: begin + size
        for partition, begin, size in zip(partitions, begins, sizes, strict=True)
    }


def spans(start: Offsets, end: Offsets) -> list[Span]:
    """Return the spans between two offsets, by partition."""
    return [
        Span(*partition, _begin(start, partition, end[partition]), end[partition])
        for partition in sorted(end)
        if _begin(start, partition, end[partition]) < end[partition]
    ]


def _begin(start: Offsets, partition: Partition, end: int) -> int:
    """Return where reading starts: at 0 in a partition that is new or was created again."""
    begin = start.get(partition, 0)
    return begin if begin <= end else 0


def shares(sizes: Sequence[int], limit: int | None) -> list[int]:
    """Split a limit over backlogs: all of it is used, and no share exceeds its backlog.

    Each backlog gets one if possible, the largest first, and then its proportion of the rest. So
    partitions that cover the same hours advance side by side, and none waits for all others.

    >>> shares([1, 300, 100], limit=41)
    [1, 29, 11]
    """
    total = sum(sizes)
    if limit is None or total <= limit:
        return list(sizes)
    filled = sorted(
        (place for place, size in enumerate(sizes) if size), key=lambda place: -sizes[place]
    )
    first = set(filled[:limit])
    ones = [int(place in first) for place in range(len(sizes))]
    rests = [size - one for size, one in zip(sizes, ones, strict=True)]
    more = _proportions(rests, limit - len(first))
    return [one + rest for one, rest in zip(ones, more, strict=True)]


def _proportions(sizes: Sequence[int], limit: int) -> Iterator[int]:
    """Split a limit that is below the sum by sizes, rounded so that the parts add up to it."""
    total, before = sum(sizes), 0
    for size in sizes:
        after = before + size
        yield after * limit // total - before * limit // total
        before = after


def describe_losses(start: Offsets, latest: Offsets) -> Iterator[str]:
    """Yield a description of each partition that cannot be continued."""
    for (topic, partition), offset in sorted(start.items()):
        end = latest.get((topic, partition))
        if end is None:
            yield f"partition {topic}-{partition}, read up to offset {offset}, no longer exists"
        elif end < offset:
            yield (
                f"partition {topic}-{partition} was read up to offset {offset} and now ends at "
                f"{end}: it was created again or truncated"
            )


def plan_batch(
    start: Mapping[str, Any],
    latest: Mapping[str, Any],
    limit: int | None,
    source: str,
    *,
    strict: bool,
) -> OffsetForm:
    """Return where a batch of at most `limit` records ends; a loss is an error if `strict`."""
    begin, end = from_form(start), from_form(latest)
    for loss in describe_losses(begin, end):
        if strict:
            raise data_loss(source, loss)
        _LOG.warning("%s; the remaining records are read", loss)
    return to_form(advance(begin, end, limit))


def data_loss(source: str, reason: str) -> SourceError:
    """Return the error for a loss, with the way out."""
    return SourceError(
        f"{source}: {reason}; records may be lost. To continue with the rest, set failOnDataLoss "
        "to false"
    )
