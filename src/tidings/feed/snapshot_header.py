"""The binary container of a snapshot of feeds: the kind of feeds, a header and columns."""

from collections.abc import Mapping
from typing import Any, Final

from tidings.compiled.array_types import AnyArray
from tidings.errors import StateError, shown
from tidings.formats.binary import Column, Frame, check

Arrays = dict[str, AnyArray]
# Version 4 had no content, version 5 no rules in columns.
FRAME: Final = Frame(b"tidings-feeds", 6, "a snapshot of feeds", older=(4, 5))


def pack(kind: str, header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Return the bytes of a snapshot."""
    return FRAME.pack({"kind": kind, "header": header}, columns)


def unpack(kind: str, state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the columns of a snapshot; one of another kind of feeds is refused."""
    about, columns = FRAME.unpack(state)
    check({"kind", "header"} <= about.keys(), FRAME.name, "its header names no kind of feeds")
    if about["kind"] != kind:
        other = shown(about["kind"]).strip("'")
        raise StateError(f"the snapshot is of {other} feeds, and these are {kind}")
    check(isinstance(about["header"], dict), FRAME.name, "its header is not an object")
    return about["header"], columns
