"""Indexes over subscriptions, by name."""

from collections.abc import Callable
from typing import Final

from tidings.index.access import Access
from tidings.index.protocol import Index
from tidings.index.scan import Scan
from tidings.model.named_parts import LazyPart

INDEXES: Final[dict[str, Callable[..., Index]]] = {
    "scan": Scan,
    "op": LazyPart("tidings.index.papers.opindex:OpIndex"),
    "access": Access,
    "psg": LazyPart("tidings.index.papers.cover_graph:PreferentialGraph"),
}
