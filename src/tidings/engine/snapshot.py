"""Snapshots of an engine: a version, a checksum, and the fields to restore."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from tidings.errors import StateError, shown
from tidings.formats.binary import check, damaged

VERSION: Final = 1
NAME: Final = "the snapshot of an engine"
_MOST_REPETITIONS: Final = 100
"""How often a list or object may be part of others, on average: snapshots share few of them."""
_ALWAYS_ALLOWED: Final = 100_000
_MOST_FIELDS: Final = 100


class FeedNames(Protocol):
    """The subscribers that have a feed."""

    def __len__(self) -> int: ...
    def __contains__(self, subscriber: str, /) -> bool: ...


class SnapshotFields(NamedTuple):
    """The fields of a snapshot, with checked types."""

    subscribers: list[Any]
    subscriptions: list[Any]
    kind: str
    feeds: bytes
    intake: Mapping[str, Any]
    owed: list[Any]
    owners_by_default: list[str]


def sealed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an engine, with a version and a checksum."""
    return {"version": VERSION, "checksum": _checksum(state), **state}


def opened(state: object) -> SnapshotFields:
    """Return the fields of a snapshot; refuse one that is damaged or has another version."""
    if not isinstance(state, Mapping):
        raise damaged(NAME, f"it is an object, not {shown(state)}")
    version = state.get("version")
    if version != VERSION or isinstance(version, bool):
        raise StateError(
            f"{NAME} has version {shown(version)}, but this release reads version {VERSION}; use "
            "the release that wrote it, or start without the snapshot"
        )
    _check_size(state)
    feeds = _typed(state, "feeds", Mapping)
    fields = SnapshotFields(
        _typed(state, "subscribers", list),
        _typed(state, "subscriptions", list),
        _typed(feeds, "kind", str),
        b64decode(_typed(feeds, "state", str), validate=True),
        _typed(state, "intake", Mapping),
        _typed(state, "owed", list) if "owed" in state else [],
        _names(state, "owners_by_default"),
    )
    check(state.get("checksum") == _checksum(state), NAME, "its checksum does not match its fields")
    return fields


def check_same(subscribers: Sequence[str], feeds: FeedNames) -> None:
    """Refuse a snapshot unless its subscribers are distinct and each has a feed."""
    same = len(feeds) == len(subscribers) == len(set(subscribers))
    same = same and all(subscriber in feeds for subscriber in subscribers)
    check(same, NAME, "feeds and subscribers differ")


def _check_size(state: Mapping[str, Any]) -> None:
    """Refuse lists that share others over and over: written as JSON, they would never end."""
    whole: Any = [state[name] for name in islice(state, _MOST_FIELDS)]
    sizes, opened, pending = dict[int, int](), set[int](), [whole]
    while pending:
        value = pending[-1]
        inner = [
            part
            for part in (dict.values(value) if isinstance(value, dict) else value)
            if isinstance(part, dict | list | tuple)
        ]
        if id(value) not in opened:
            opened.add(id(value))
            pending += [part for part in inner if id(part) not in opened]
            continue
        pending.pop()
        # What contains itself has no size yet; the checksum, which needs JSON, refuses it.
        sizes[id(value)] = 1 + sum(sizes.get(id(part), 0) for part in inner)
    most = _MOST_REPETITIONS * len(sizes) + _ALWAYS_ALLOWED
    check(sizes[id(whole)] <= most, NAME, "its parts are repeated too often")


def _names(state: Mapping[str, Any], name: str) -> list[str]:
    """Return an optional list of names."""
    names: list[Any] = _typed(state, name, list) if name in state else []
    check(all(isinstance(item, str) for item in names), NAME, f"{name} are not all names")
    return names


def _typed(state: Mapping[str, Any], name: str, kind: Any) -> Any:
    if name not in state:
        raise damaged(NAME, f"field {name!r} is missing")
    if not isinstance(state[name], kind):
        raise damaged(NAME, f"field {name!r} is {shown(state[name])}")
    return state[name]


def _checksum(state: Mapping[str, Any]) -> int:
    """Return the checksum of all fields except the bytes of the feeds, which have their own.

    Integers count as floats, since a database that keeps the snapshot may turn 1.0 into 1.
    """
    covered = {name: value for name, value in state.items() if name not in ("version", "checksum")}
    covered["feeds"] = state["feeds"]["kind"]
    plain = json.loads(json.dumps(covered), parse_int=float)
    return crc32(json.dumps(plain, sort_keys=True).encode())
