"""XXH64 equals published test vectors and the plain version."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify.kernels.hashing import PackedAttributes, hash_values, wrapping, xxh64
from tidings.diversify.plain.diversifiers import xxh64 as plain

NONE = np.empty(0, np.int64)
PUBLISHED = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"as": 0x1C330FB2D66BE179,
    b"asd": 0x631C37CE72A97393,
    b"asdf": 0x415872F599CEA71E,
    b"abc": 0x44BC2CF5AD770999,
    b"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02A2E85470D6FD96,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}
SEEDS = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@wrapping
def hash_bytes(text: bytes, seed: Any) -> Any:
    return xxh64(text, 0, len(text), seed)


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_test_vectors(text: bytes) -> None:
    assert int(hash_bytes(text, np.uint64(0))) == plain(text) == PUBLISHED[text]


@given(st.binary(max_size=140), SEEDS)
def test_the_kernel_equals_the_plain_version(text: bytes, seed: int) -> None:
    assert int(hash_bytes(text, np.uint64(seed))) == plain(text, seed)


def test_every_length_of_tail() -> None:
    for size in range(101):
        text = bytes(range(100, 100 + size))
        assert int(hash_bytes(text, np.uint64(size))) == plain(text, size)


def hashed(names: bytes, texts: bytes, families: bytes, sizes: list[int]) -> tuple[object, object]:
    out = np.empty(sum(sizes), np.uint64)
    pairs = np.empty((len(sizes), 2), np.uint64)
    plainly = not families and set(sizes) == {1}
    counts = NONE if plainly else np.array(sizes, np.int64)
    packed = PackedAttributes(names, texts, families, counts, ord("|"))
    hash_values((*packed,), out, pairs)
    return out.tolist(), pairs.tolist()


def test_a_value_is_seeded_by_the_name_of_its_attribute() -> None:
    tokens, pairs = hashed(b"a|bc", b"x|", b"", [1, 1])
    assert tokens == [plain(b"x", plain(b"a")), plain(b"", plain(b"bc"))]
    assert pairs == [[plain(b"a"), tokens[0]], [plain(b"bc"), tokens[1]]]


def test_a_family_changes_the_seed_which_wraps_around() -> None:
    tokens, _ = hashed(b"a", b"x", bytes([3]), [1])
    assert tokens == [plain(b"x", (plain(b"a") + 3) % 2**64)]


def test_a_mark_does_not_depend_on_the_order_of_values() -> None:
    _, one = hashed(b"a", b"x|y|z", bytes(3), [3])
    _, other = hashed(b"a", b"z|x|y", bytes(3), [3])
    assert one == other
    marks = {
        hashed(b"a", texts, bytes(size), [size])[1][0][1]  # type: ignore[index]
        for texts, size in ((b"", 0), (b"x", 1), (b"y", 1), (b"x|y", 2), (b"x|y|z", 3))
    }
    assert len(marks) == 5
    assert hashed(b"a", b"", b"", [0])[1] != hashed(b"b", b"", b"", [0])[1]
