"""The bytes of a snapshot of feeds: which kind of them, and what they hold."""

from collections.abc import Mapping
from typing import Any, Final

import numpy.typing as npt

from tidings.errors import TidingsError
from tidings.frame import Column, Frame

Arrays = dict[str, npt.NDArray[Any]]
FRAME: Final = Frame(b"tidings-feeds", 3, "a snapshot of feeds")


def pack(kind: str, header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Write a snapshot."""
    return FRAME.pack({"kind": kind, "header": header}, columns)


def unpack(kind: str, state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a snapshot of the same kind of feeds; any other is refused."""
    about, columns = FRAME.unpack(state)
    if about["kind"] != kind:
        raise TidingsError(f"the snapshot is of {about['kind']} feeds, and these are {kind}")
    return about["header"], columns
