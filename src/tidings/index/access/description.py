"""Descriptions of an access index: its segments, and why conjunctions are in lists or blocks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SegmentDescription:
    """A segment: how many conjunctions are in posting lists and in blocks, and how selective.

    `list_chance` and `block_chance` are the average shares of events that satisfy the most
    selective predicate of a conjunction, as estimated when the segment was built; None if that is
    unknown, as in an index file, or if there is no such conjunction.
    """

    subscriptions: int
    dead: int
    in_lists: int
    in_blocks: int
    columns: float
    """The average number of columns of a block: attributes and texts that its rows check."""
    list_chance: float | None
    block_chance: float | None
    nbytes: int

    def __str__(self) -> str:
        text = f"{self.in_lists:,} conjunctions in posting lists{_held(self.list_chance)}"
        if self.in_blocks:
            blocks = f"{self.in_blocks:,} in blocks of 64 with {self.columns:.1f} columns"
            text += f", {blocks}{_held(self.block_chance)}"
        return f"segment of {self.subscriptions:,} subscriptions, {self.dead:,} dead: {text}"


def _held(chance: float | None) -> str:
    """Return how often the best predicate holds, in brackets."""
    return "" if chance is None else f" (best predicate: {100 * chance:.2g} % of events)"


@dataclass(frozen=True)
class AccessDescription:
    """The segments of an access index, the larger ones first, and its memtable."""

    subscriptions: int
    segments: tuple[SegmentDescription, ...]
    memtable: int
    dead: int
    merging: bool
    merges: int
    nbytes: int

    def __str__(self) -> str:
        running = "a merge is running" if self.merging else "no merge is running"
        head = (
            f"access: {self.subscriptions:,} subscriptions in {self.nbytes:,} bytes; "
            f"memtable {self.memtable:,}; dead {self.dead:,}; {running}, {self.merges:,} done."
        )
        return "\n".join([head, *(f"  {segment}." for segment in self.segments)])
