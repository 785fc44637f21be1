"""The indexes by name."""

from typing import Final

from tidings.index.access import Access
from tidings.index.papers.cover_graph import PreferentialGraph
from tidings.index.papers.opindex.index import Op
from tidings.index.protocol import Index
from tidings.index.scan import Scan

INDEXES: Final[dict[str, type[Index]]] = {
    "scan": Scan,
    "op": Op,
    "access": Access,
    "psg": PreferentialGraph,
}
