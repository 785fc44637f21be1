"""The access-predicate index: every conjunction is posted under its most selective predicate."""

from tidings.index.access.index import Access

__all__ = ["Access"]
