"""MinHash signatures, bands and votes in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import by_rank, candidate, ids, windows
from tests.diversify.test_maxdivrel_lsh import TABLE_5_9

from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.plain.lsh import buckets, maxdivrel_lsh, signatures, token_hash, xxh64
from tidings.diversify.protocol import Candidate
from tidings.model.records import Event
from tidings.model.values import Range

LARGEST = 2**64 - 1


def grouped(signed: np.ndarray, rows: int) -> list[tuple[int, list[int]]]:
    return [(table, members) for (table, _), members in buckets(signed, rows).items()]


def test_table_5_9_has_shared_buckets_in_every_table() -> None:
    shared = [group for group in grouped(TABLE_5_9, 3) if len(group[1]) > 1]
    assert sorted(shared) == [
        (0, [0, 3]),
        (0, [1, 2]),
        (1, [0, 3]),
        (1, [1, 2, 4]),
        (2, [1, 4]),
        (2, [2, 3]),
        (3, [0, 4]),
        (3, [1, 3]),
    ]


def test_the_same_band_in_another_table_is_another_bucket() -> None:
    signed = np.array([[7, 7], [7, 8]], np.uint64)
    assert sorted(grouped(signed, 1)) == [(0, [0, 1]), (1, [0]), (1, [1])]


def test_an_event_without_tokens_has_the_largest_signature() -> None:
    assert signatures([Event("e", {}, 0)], 3).tolist() == [[LARGEST] * 3]
    assert signatures([], 3).shape == (0, 3)


def test_a_signature_is_that_of_the_set_of_tokens() -> None:
    one, same, other = signatures(
        [
            Event("a", {"tag": ["x", "y"], "year": 3}, 0),
            Event("b", {"year": 3.0, "tag": ["y", "x", "y"]}, 9),
            Event("c", {"tag": ["x", "y"], "year": 4}, 0),
        ],
        16,
    ).tolist()
    assert one == same
    assert one != other


def test_a_signature_of_a_union_is_the_smaller_of_its_parts() -> None:
    parts = [Event("a", {"x": 1}, 0), Event("b", {"y": "z"}, 0), Event("c", {"x": 1, "y": "z"}, 0)]
    left, right, union = signatures(parts, 32)
    assert union.tolist() == np.minimum(left, right).tolist()


def test_a_seed_changes_the_order_of_tokens() -> None:
    event = Event("a", {"x": 1}, 0)
    assert signatures([event], 4, seed=1).tolist() != signatures([event], 4).tolist()
    assert signatures([event], 4, seed=2**64).tolist() == signatures([event], 4).tolist()


def test_equal_rows_are_as_frequent_as_tokens_are_similar() -> None:
    """Three of five tokens are common; the standard error of 4000 rows is below 0.008."""
    one = Event("a", {"tag": ["p", "q", "r", "s"]}, 0)
    other = Event("b", {"tag": ["p", "q", "r", "t"]}, 0)
    left, right = signatures([one, other], 4000)
    assert np.mean(left == right) == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize(
    ("token", "text", "family"),
    [
        (("string", "1"), b"1", 0),
        (("number", 1.0), b"1.0", 1),
        (("boolean", True), b"True", 2),
        (("time", 5), b"5", 3),
        (("number", Range(20, 30)), b"20.0 30.0 overlaps", 1),
        (("number", Range(20, 30, mode="contained")), b"20.0 30.0 contained", 1),
    ],
)
def test_a_token_is_hashed_by_its_text_name_and_family(token, text, family):
    assert token_hash("a", token) == xxh64(text, (xxh64(b"a") + family) % 2**64)
    assert token_hash("b", token) != token_hash("a", token)


def test_the_best_of_each_bucket_gets_its_vote() -> None:
    window = [
        candidate("a", 0.5, x=1),
        candidate("b", 0.9, x=1),
        candidate("c", 0.7, x=2),
        candidate("d", 0.1, x=3),
    ]
    part = MaxDivRelLsh(tables=4, rows=2)
    assert ids(window, maxdivrel_lsh(part, window, 2)) == ["b", "c"]
    assert ids(window, maxdivrel_lsh(part, window, 4)) == ["b", "c", "d"]
    assert ids(window, maxdivrel_lsh(part, window, 5)) == ["b", "c", "a", "d"]


@given(windows(min_size=1), st.integers(1, 6), st.integers(0, 3))
def test_the_winners_are_those_of_most_buckets(window: list[Candidate], k: int, seed: int) -> None:
    part = MaxDivRelLsh(tables=5, rows=2, seed=seed)
    k = min(k, len(window))
    signed = signatures([one.event for one in window], 10, seed).tolist()

    def votes(one: int) -> int:
        """Count the tables in which no better candidate has the same band."""
        rivals = [i for i in range(len(window)) if by_rank(window[i]) < by_rank(window[one])]
        bands = [slice(start, start + 2) for start in range(0, 10, 2)]
        return sum(all(signed[i][band] != signed[one][band] for i in rivals) for band in bands)

    winners = [i for i in range(len(window)) if votes(i)]
    winners.sort(key=lambda i: (-votes(i), by_rank(window[i])))
    assert maxdivrel_lsh(part, window, k) == winners[:k]


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
