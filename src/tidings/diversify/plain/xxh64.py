"""XXH64 after its specification, in Python integers."""

from struct import iter_unpack, unpack
from typing import Final

_ALL: Final = 2**64 - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxh64(text: bytes, seed: int = 0) -> int:
    """Return the 64-bit hash of bytes.

    >>> f"{xxh64(b''):016x} {xxh64(b'abc'):016x}"
    'ef46db3751d8e999 44bc2cf5ad770999'
    """
    body = len(text) // 32 * 32
    acc = _body(text[:body], seed) if body else seed + _P5
    return _end(_tail(text[body:], (acc + len(text)) & _ALL))


def _left(x: int, bits: int) -> int:
    return (x << bits | (x & _ALL) >> (64 - bits)) & _ALL


def _round(acc: int, lane: int) -> int:
    return _left((acc + lane * _P2) & _ALL, 31) * _P1 & _ALL


def _body(text: bytes, seed: int) -> int:
    accs = [acc & _ALL for acc in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for lanes in iter_unpack("<4Q", text):
        accs = [_round(acc, lane) for acc, lane in zip(accs, lanes, strict=True)]
    merged = sum(_left(acc, bits) for acc, bits in zip(accs, (1, 7, 12, 18), strict=True)) & _ALL
    for acc in accs:
        merged = ((merged ^ _round(0, acc)) * _P1 + _P4) & _ALL
    return merged


def _tail(text: bytes, acc: int) -> int:
    eights, rest = text[: len(text) // 8 * 8], text[len(text) // 8 * 8 :]
    for (lane,) in iter_unpack("<Q", eights):
        acc = (_left(acc ^ _round(0, lane), 27) * _P1 + _P4) & _ALL
    if len(rest) >= 4:
        acc = (_left(acc ^ unpack("<I", rest[:4])[0] * _P1 & _ALL, 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        acc = _left(acc ^ byte * _P5 & _ALL, 11) * _P1 & _ALL
    return acc


def _end(acc: int) -> int:
    acc = (acc ^ acc >> 33) * _P2 & _ALL
    acc = (acc ^ acc >> 29) * _P3 & _ALL
    return acc ^ acc >> 32
