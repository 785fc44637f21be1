"""The bytes of a snapshot of feeds: which kind of them, and what they hold."""

from collections.abc import Mapping
from typing import Any, Final

import numpy.typing as npt

from tidings.errors import StateError, shown
from tidings.formats.binary import Column, Frame, check

Arrays = dict[str, npt.NDArray[Any]]
FRAME: Final = Frame(b"tidings-feeds", 4, "a snapshot of feeds")


def pack(kind: str, header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Write a snapshot."""
    return FRAME.pack({"kind": kind, "header": header}, columns)


def unpack(kind: str, state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a snapshot of the same kind of feeds; any other is refused."""
    about, columns = FRAME.unpack(state)
    check({"kind", "header"} <= about.keys(), FRAME.name, "its header names no kind of feeds")
    if about["kind"] != kind:
        found = shown(about["kind"]).strip("'")
        raise StateError(f"the snapshot is of {found} feeds, and these are {kind}")
    check(isinstance(about["header"], dict), FRAME.name, "its header is no object")
    return about["header"], columns
