"""Binary state is read back as written; other bytes are refused."""

import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import StateError, TidingsError
from tidings.formats.binary import Column, Frame

FRAME = Frame(b"mark", 2, "a thing")
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=5)


def test_what_is_packed_comes_back() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([0.1, -np.inf]),
        "c": np.zeros((0, 4), np.int64),
    }
    header, found = FRAME.unpack(FRAME.pack({"x": ["é", 1]}, arrays))
    assert header == {"x": ["é", 1]}
    assert list(found) == list(arrays)
    for name, each in arrays.items():
        assert found[name].dtype == each.dtype
        assert np.array_equal(found[name], each)


@given(TEXTS, TEXTS)
def test_texts_come_back(some: list[str], others: list[str]) -> None:
    columns: dict[str, Column] = {"some": some, "between": np.array([7]), "others": others}
    _, found = FRAME.unpack(FRAME.pack({}, columns))
    assert (found["some"], found["others"]) == (some, others)


def test_what_is_not_ours_is_refused() -> None:
    state = FRAME.pack({}, {"a": np.arange(3), "t": ["x"]})
    for wrong, reason in [
        (Frame(b"mark", 3, "").pack({}, {}), "a thing has version 3, but this release reads 2"),
        (Frame(b"kram", 2, "").pack({}, {}), "these bytes are not a thing"),
        (b"mark", "these bytes are not a thing"),
        (b"", "these bytes are not a thing"),
        (state + b"x", f"has {len(state) + 1} bytes, not {len(state)}"),
        (state[:-1], f"has {len(state) - 1} bytes, not {len(state)}"),
    ]:
        with pytest.raises(TidingsError, match=reason):
            FRAME.unpack(wrong)


@given(st.data())
def test_damage_is_refused_in_words_wherever_it_can_be_seen(data: st.DataObject) -> None:
    """Cut short, whatever is left; and a bit flipped in what lies before the columns.

    The last bits of a compressed header may mean nothing: then what is read is the same.
    """
    columns: dict[str, Column] = {"a": np.arange(3), "t": ["x", "yz"]}
    state, behind = FRAME.pack({"k": [1, "é"]}, columns), 24 + 24 + 3
    cut = data.draw(st.integers(0, len(state) - 1))
    with pytest.raises(TidingsError, match="a thing"):
        FRAME.unpack(state[:cut])
    flipped, at = bytearray(state), data.draw(st.integers(0, len(state) - behind - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        header, found = FRAME.unpack(bytes(flipped))
    except TidingsError as refused:
        assert "a thing" in str(refused)  # noqa: PT017
    else:
        assert (header, found["a"].tolist(), found["t"]) == (
            {"k": [1, "é"]},
            [0, 1, 2],
            ["x", "yz"],
        )


def framed(about: bytes, columns: bytes = b"", squeezed: bytes | None = None) -> bytes:
    """Write bytes with a header as it is given, and with a right checksum."""
    found = zlib.compress(about) if squeezed is None else squeezed
    body = len(found).to_bytes(8, "little") + found + columns
    return FRAME.mark + bytes([FRAME.version]) + zlib.crc32(body).to_bytes(4, "little") + body


def listed(*columns: Any) -> bytes:
    return json.dumps({"columns": columns, "header": {}}).encode()


HOSTILE = {
    "an object dtype": framed(listed(["a", "|O", [1]]), bytes(8)),
    "a dtype of fields": framed(listed(["a", "i4,O", [1]]), bytes(12)),
    "a negative length": framed(listed(["a", "<i8", [-1]])),
    "lengths that overflow": framed(listed(["a", "<i8", [2**32, 2**32]])),
    "an enormous length": framed(listed(["a", "|u1", [2**62]])),
    "many dimensions": framed(listed(["a", "|u1", [1] * 100]), bytes(1)),
    "a length that is true": framed(listed(["a", "|u1", [True]]), bytes(1)),
    "a name twice": framed(listed(["a", "|u1", [0]], ["a", "|u1", [0]])),
    "a name that is none": framed(listed([["a"], "|u1", [0]])),
    "no list of columns": framed(b'{"columns": 5, "header": {}}'),
    "no header": framed(b'{"columns": []}'),
    "another header": framed(b'{"columns": [], "header": 5}'),
    "no object": framed(b"[]"),
    "no JSON": framed(b"{"),
    "no UTF-8": framed(b'"\xff\xfe"'),
    "deep JSON": framed(b"[" * 100_000),
    "a number of many digits": framed(b"1" * 10_000),
    "a header cut short": framed(b"", squeezed=zlib.compress(listed())[:-3]),
    "offsets that fall": framed(listed(["a", "texts", [2, 1]]), struct.pack("<3q", 0, 9, 1) + b"x"),
    "offsets outside": framed(listed(["a", "texts", [1, 1]]), struct.pack("<2q", 0, 2**40) + b"x"),
    "offsets below": framed(listed(["a", "texts", [1, 1]]), struct.pack("<2q", -8, 1) + b"x"),
    "texts not UTF-8": framed(listed(["a", "texts", [1, 1]]), struct.pack("<2q", 0, 1) + b"\xff"),
    "a wrong checksum": FRAME.pack({}, {"a": np.arange(3)})[:-1] + b"\x09",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name: str) -> None:
    with pytest.raises(StateError, match=r"^a thing (is damaged|should have).*; start from"):
        FRAME.unpack(HOSTILE[name])


def test_a_bomb_is_refused() -> None:
    bomb = framed(b'{"columns": [], "header": {}, "x": "' + b" " * 300_000_000 + b'"}')
    with pytest.raises(StateError, match=r"^a thing (is damaged|should have).*; start from"):
        FRAME.unpack(bomb)


@given(st.data())
def test_no_flipped_bit_goes_unnoticed(data: st.DataObject) -> None:
    state = FRAME.pack({"k": [1, "é"]}, {"a": np.arange(3), "t": ["x", "yz"]})
    flipped, at = bytearray(state), data.draw(st.integers(0, len(state) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(StateError, match="a thing"):
        FRAME.unpack(bytes(flipped))


def test_a_header_that_compresses_well_is_read() -> None:
    header = {"x": [0] * 5_000_000}
    assert FRAME.unpack(FRAME.pack(header, {}))[0] == header


def test_bytes_within_have_their_own_checksum() -> None:
    inside = FRAME.pack({}, {"a": np.arange(3)})
    _, found = FRAME.unpack(FRAME.pack({}, {"inside": inside, "b": np.arange(2)}))
    assert (found["inside"], found["b"].tolist()) == (inside, [0, 1])
