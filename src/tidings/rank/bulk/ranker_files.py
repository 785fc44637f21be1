"""The ways of ranking that files hold, by their names there."""

from collections.abc import Sequence
from typing import Any, Final

from tidings.compiled.array_file import Reader, Writer
from tidings.errors import InvalidPolicy
from tidings.rank.bulk.graph_ranker import SatisfiedGraph
from tidings.rank.bulk.preference_ranker import MostSpecific
from tidings.rank.bulk.protocol import Extent, Way
from tidings.rank.bulk.relaxed_ranker import HeaviestGroup

WRITTEN: Final[dict[str, Any]] = {
    "specific": MostSpecific,
    "weighed": HeaviestGroup,
    "graph": SatisfiedGraph,
}


def write_ways(writer: Writer, ways: Sequence[Way], numbers: int, owners: int) -> None:
    """Add the records of ways to a file, for so many subscriptions and owners."""
    names = {kind: name for name, kind in WRITTEN.items()}
    for way in ways:
        if type(way) not in names:
            raise InvalidPolicy(f"{type(way).__name__} ranks by functions, which no file can hold")
        made: Any = way
        made.write(writer.within(names[type(way)]), numbers, owners)
    writer.value("names", [names[type(way)] for way in ways])


def read_ways(reader: Reader, extent: Extent) -> list[Way]:
    """Return the ways of a file; each is there at most once."""
    names = reader.value("names")
    right = isinstance(names, list) and all(isinstance(each, str) for each in names)
    right = right and {*names} <= WRITTEN.keys() and len({*names}) == len(names)
    reader.require(right, "names", f"are not among {', '.join(WRITTEN)}")
    return [WRITTEN[name].read(reader.within(name), extent) for name in names]
