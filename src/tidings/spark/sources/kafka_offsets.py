"""How far a batch reads each partition: offsets as checkpoints hold them, and the plan of a batch.

An offset is that of the next record to read. A partition that a checkpoint does not know is new,
and begins at 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from tidings.errors import SourceError
from tidings.formats.event_source import KAFKA

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]
Form = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Span(InputPartition):
    """The records of a partition from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """Name the partition in a line."""
        return f"{self.topic}-{self.partition}"


def to_form(offsets: Offsets) -> Form:
    """Give the JSON form, which is that of Spark's own source.

    >>> to_form({("films", 0): 7, ("films", 1): 9})
    {'films': {'0': 7, '1': 9}}
    """
    form: Form = {}
    for (topic, partition), offset in sorted(offsets.items()):
        form.setdefault(topic, {})[str(partition)] = offset
    return form


def from_form(form: Form) -> dict[Partition, int]:
    """Read the JSON form."""
    return {
        (topic, int(partition)): offset
        for topic, each in form.items()
        for partition, offset in each.items()
    }


def advance(start: Offsets, latest: Offsets, limit: int | None) -> dict[Partition, int]:
    """Give where a batch from `start` ends that takes `limit` records at most, of all that exist.

    Partitions that are gone are left out.
    """
    partitions = sorted(latest)
    begins = [_begin(start, each, latest[each]) for each in partitions]
    sizes = [latest[each] - begin for each, begin in zip(partitions, begins, strict=True)]
    taken = shares(sizes, limit)
    return {
        each: begin + share for each, begin, share in zip(partitions, begins, taken, strict=True)
    }


def spans(start: Offsets, end: Offsets) -> list[Span]:
    """Give what lies between two offsets, by partition."""
    return [
        Span(*each, _begin(start, each, end[each]), end[each])
        for each in sorted(end)
        if _begin(start, each, end[each]) < end[each]
    ]


def _begin(start: Offsets, partition: Partition, end: int) -> int:
    """Give where reading begins: at 0 in a partition that is new, or that was made anew."""
    begin = start.get(partition, 0)
    return begin if begin <= end else 0


def shares(sizes: Sequence[int], limit: int | None) -> list[int]:
    """Split a limit over backlogs: all of it is used, and nobody gets more than it has.

    Each gets one where that is possible, the largest first, and of the rest its proportion: so
    partitions that hold the same hours advance through them side by side, and none waits for all
    others.

    >>> shares([1, 300, 100], limit=41)
    [1, 29, 11]
    """
    total = sum(sizes)
    if limit is None or total <= limit:
        return list(sizes)
    filled = sorted((place for place, size in enumerate(sizes) if size), key=lambda at: -sizes[at])
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


def losses(start: Offsets, latest: Offsets) -> Iterator[str]:
    """Tell what was read before and cannot be gone on with."""
    for (topic, partition), offset in sorted(start.items()):
        end = latest.get((topic, partition))
        if end is None:
            yield f"partition {topic}-{partition}, read up to offset {offset}, is gone"
        elif end < offset:
            yield (
                f"partition {topic}-{partition} was read up to offset {offset} and now ends at "
                f"{end}: it was made anew or cut"
            )


def lost(words: str) -> SourceError:
    """Give the error of a loss, with what can be done."""
    return SourceError(
        f"{KAFKA}: {words}; records may be lost. To go on with what is there, set failOnDataLoss "
        "to false"
    )
