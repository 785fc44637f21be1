"""The bytes of a snapshot: a version, a JSON header and plain arrays behind it."""

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.errors import TidingsError

MAGIC: Final = b"tidings-feeds"
VERSION: Final = 2
Arrays = dict[str, npt.NDArray[Any]]


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Write a snapshot; the header is compressed, the arrays lie as they are."""
    shapes = [[name, each.dtype.str, list(each.shape)] for name, each in arrays.items()]
    text = json.dumps({"kind": kind, "arrays": shapes, "header": header}, separators=(",", ":"))
    squeezed = zlib.compress(text.encode(), level=6)
    front = [MAGIC, bytes([VERSION]), len(squeezed).to_bytes(8, "little"), squeezed]
    return b"".join(front + [np.ascontiguousarray(each).tobytes() for each in arrays.values()])


def unpack(kind: str, state: bytes) -> tuple[dict[str, Any], Arrays]:
    """Read a snapshot of this version and of the same kind of feeds; any other is refused."""
    start = len(MAGIC)
    if state[:start] != MAGIC:
        raise TidingsError("these bytes are no snapshot of feeds")
    if state[start] != VERSION:
        raise TidingsError(
            f"the snapshot has version {state[start]}, and this is version {VERSION}; "
            "take it over with the release that wrote it"
        )
    size = int.from_bytes(state[start + 1 : start + 9], "little")
    at = start + 9 + size
    about = json.loads(zlib.decompress(state[start + 9 : at]))
    if about["kind"] != kind:
        raise TidingsError(f"the snapshot is of {about['kind']} feeds, and these are {kind}")
    arrays: Arrays = {}
    for name, dtype, shape in about["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(state, dtype, count, at).reshape(shape)
        at += arrays[name].nbytes
    if at != len(state):
        raise TidingsError(f"the snapshot should have {at} bytes, and has {len(state)}")
    return about["header"], arrays
