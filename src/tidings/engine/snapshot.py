"""The snapshot of an engine: a version, a checksum, and the fields that are restored."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from tidings.errors import StateError, shown
from tidings.formats.binary import check, damaged

VERSION: Final = 1
NAME: Final = "the snapshot of an engine"


class Names(Protocol):
    """Who has a feed."""

    def __len__(self) -> int: ...
    def __contains__(self, subscriber: str, /) -> bool: ...


class Opened(NamedTuple):
    """The fields of a snapshot, each of the right type."""

    subscribers: list[Any]
    subscriptions: list[Any]
    kind: str
    feeds: bytes
    intake: Mapping[str, Any]
    owed: list[Any]


def sealed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an engine with a version and a checksum."""
    return {"version": VERSION, "checksum": _checksum(state), **state}


def opened(state: object) -> Opened:
    """Return the fields of a snapshot; one that is damaged or of another version is refused."""
    check(isinstance(state, Mapping), NAME, f"it is an object, not {shown(state)}")
    assert isinstance(state, Mapping)
    version = state.get("version")
    if version != VERSION or isinstance(version, bool):
        raise StateError(
            f"{NAME} has version {shown(version)}, and this is version {VERSION}; take it over "
            "with the release that wrote it, or begin anew"
        )
    feeds = _typed(state, "feeds", Mapping)
    found = Opened(
        _typed(state, "subscribers", list),
        _typed(state, "subscriptions", list),
        _typed(feeds, "kind", str),
        b64decode(_typed(feeds, "state", str), validate=True),
        _typed(state, "intake", Mapping),
        _typed(state, "owed", list) if "owed" in state else [],
    )
    check(state.get("checksum") == _checksum(state), NAME, "its checksum is not that of its fields")
    return found


def check_same(subscribers: Sequence[str], feeds: Names) -> None:
    """Refuse a snapshot unless each subscriber is there once, and has a feed."""
    same = len(feeds) == len(subscribers) == len(set(subscribers))
    check(same and all(each in feeds for each in subscribers), NAME, "feeds and subscribers differ")


def _typed(state: Mapping[str, Any], name: str, kind: Any) -> Any:
    if name not in state:
        raise damaged(NAME, f"field {name!r} is missing")
    check(isinstance(state[name], kind), NAME, f"field {name!r} is {shown(state[name])}")
    return state[name]


def _checksum(state: Mapping[str, Any]) -> int:
    """Return the checksum of all fields but the bytes of the feeds, which have their own.

    Whole numbers count as floats, so that 1.0 may come back as 1 from where the snapshot was kept.
    """
    kept = {name: each for name, each in state.items() if name not in ("version", "checksum")}
    kept["feeds"] = state["feeds"]["kind"]
    plain = json.loads(json.dumps(kept), parse_int=float)
    return crc32(json.dumps(plain, sort_keys=True).encode())
