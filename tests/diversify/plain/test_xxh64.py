"""XXH64 in Python integers equals the published test vectors of every branch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify.plain.xxh64 import xxh64

PRIME = 2654435761


def specified(size: int) -> bytes:
    """The first bytes of the text that the vectors of the specification hash."""
    state, text = PRIME, bytearray()
    for _ in range(size):
        text.append(state >> 56)
        state = state * 0x9E3779B185EBCA8D % 2**64
    return bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"asdf", 0x415872F599CEA71E),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
        (
            b"Call me Ishmael. Some years ago--never mind how long precisely-",
            0x02A2E85470D6FD96,
        ),
    ],
)
def test_published_hashes(text, expected):
    assert xxh64(text) == expected


@pytest.mark.parametrize(
    ("size", "seed", "expected"),
    [
        (0, PRIME, 0xAC75FDA2929B17EF),
        (1, 0, 0xE934A84ADB052768),
        (1, PRIME, 0x5014607643A9B4C3),
        (4, 0, 0x9136A0DCA57457EE),
        (14, 0, 0x8282DCC4994E35C8),
        (14, PRIME, 0xC3BD6BF63DEB6DF0),
        (222, 0, 0xB641AE8CB691C174),
        (222, PRIME, 0x20CB8AB7AE10C14A),
    ],
)
def test_hashes_of_the_specification_with_seeds(size, seed, expected):
    assert xxh64(specified(size), seed) == expected


@given(st.binary(max_size=80), st.integers(0, 2**64 - 1))
def test_a_hash_has_64_bits_and_depends_on_the_seed(text, seed):
    assert 0 <= xxh64(text, seed) < 2**64
    assert xxh64(text, seed) != xxh64(text, seed ^ 1)


@pytest.mark.parametrize("size", [1, 4, 8, 31, 32, 33, 63, 64, 69])
def test_every_byte_counts(size):
    text = bytes(size)
    changed = {xxh64(text[:i] + b"\1" + text[i + 1 :]) for i in range(size)}
    assert len(changed | {xxh64(text)}) == size + 1
