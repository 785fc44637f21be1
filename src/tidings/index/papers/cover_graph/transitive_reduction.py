"""Immediate covers, kept exactly while things come and go: the transitive reduction of an order."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar


class Covering(Protocol):
    """What may cover others; `parents` immediately cover it, `children` it immediately covers."""

    parents: list[Any]
    children: list[Any]

    def covers(self, other: Any) -> bool:
        """Tell whether this covers the other."""


T = TypeVar("T", bound=Covering)


def link(one: T, over: Sequence[T], under: Sequence[T]) -> None:
    """Put in one that strictly covers all `under`, and that all `over` strictly cover."""
    parents = _without(over, (above for each in over for above in each.parents))
    children = _without(under, (below for each in under for below in each.children))
    for child in children:
        for parent in parents:
            if parent in child.parents:
                child.parents.remove(parent)
                parent.children.remove(child)
        _join(one, child)
    for parent in parents:
        _join(parent, one)


def unlink(one: Covering) -> None:
    """Take one out; what it stood between is joined where nothing else stands between."""
    for child in one.children:
        child.parents.remove(one)
    for parent in one.parents:
        parent.children.remove(one)
        for child in one.children:
            if not any(parent.covers(each) for each in child.parents):
                _join(parent, child)


def _join(parent: Covering, child: Covering) -> None:
    parent.children.append(child)
    child.parents.append(parent)


def _without(things: Sequence[T], less: Iterable[T]) -> list[T]:
    gone = set(less)
    return [each for each in things if each not in gone]
