"""Events as hashes."""

import subprocess
import sys
from datetime import UTC, datetime
from itertools import product
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import large_windows, sets

from tidings.diversify import Submatrix, distances
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.hashed_distances import (
    as_submatrix,
    has_kernel,
    hash_events,
    hash_in_process,
    token_rows,
)
from tidings.diversify.plain.diversifiers import token_hash, xxh64
from tidings.diversify.protocol import Candidate, Distance
from tidings.model.records import Event
from tidings.model.values import Range, token

DRAMA = Event("e", {"genre": ["drama", "comedy"], "year": 2003, "title": "Big Fish"}, 0)


def hashes_of(event: Event) -> list[int]:
    return list(token_rows([event])[1].tolist())


def rows(event: Event, distance: object) -> dict[int, int]:
    starts, keys, marks, _ = hash_events([event], distance)  # type: ignore[arg-type]
    assert starts.tolist() == [0, len(keys)]
    return dict(zip(keys.tolist(), marks.tolist(), strict=True))


@given(large_windows(min_size=2, max_size=2))
def test_marks_are_equal_if_values_are_equal_as_sets(pair: list[Candidate]) -> None:
    one, other = (value.event for value in pair)
    left, right = rows(one, Overlap()), rows(other, Overlap())
    assert len(left) == len(one.attributes)
    both = sets(one).keys() & sets(other).keys()
    assert len(left.keys() & right.keys()) == len(both)
    equal = [name for name in both if one.tokens[name] == other.tokens[name]]
    assert len(left.items() & right.items()) == len(equal)


@given(large_windows(min_size=2, max_size=4), st.sampled_from([Overlap(), Jaccard()]))
def test_hashes_of_the_process_are_equal_where_the_others_are(
    crowd: list[Candidate], distance: Overlap | Jaccard
) -> None:
    events = [value.event for value in crowd]
    shared, own = hash_events(events, distance), hash_in_process(events, distance)
    assert shared.starts.tolist() == own.starts.tolist()
    keys, own_keys = (each.keys[:, None] == each.keys for each in (shared, own))
    marks, own_marks = (each.marks[:, None] == each.marks for each in (shared, own))
    assert (keys == own_keys).all()
    assert ((keys & marks) == (own_keys & own_marks)).all()


def test_hashes_of_the_process_tell_families_and_numbers_apart() -> None:
    values = ["", 0, -0.0, -1, -2, True, False, [1, 2], [2, 1, 1], [1], 1, Range(0, 1), 2.0**61, []]
    events = [Event(f"e{n}", {"a": value}, 0) for n, value in enumerate(values)]
    marks = [hash_in_process(events, Overlap()).marks, hash_events(events, Overlap()).marks]
    own, shared = (mark[:, None] == mark for mark in marks)
    assert (own == shared).all()


@given(large_windows(min_size=1, max_size=3))
def test_tokens_hash_alike_alone_and_together(crowd: list[Candidate]) -> None:
    events = [value.event for value in crowd]
    starts, hashes = token_rows(events)
    for i, event in enumerate(events):
        expected = {
            token_hash(name, value) for name, values in event.tokens.items() for value in values
        }
        row = hashes[starts[i] : starts[i + 1]]
        assert set(row.tolist()) == expected == set(hashes_of(event))
        assert len(row) == len(expected)


def test_equal_values_hash_alike_and_others_do_not() -> None:
    same = [2003, 2003.0, np.int64(2003)]
    others = ["2003", True, Range(2003, 2003), datetime(2003, 1, 1, tzinfo=UTC), 2004]
    hashes = [
        token_hash("year", Event("e", {"x": value}, 0).tokens["x"].__iter__().__next__())
        for value in same + others
    ]
    assert len(set(hashes[: len(same)])) == 1
    assert len(set(hashes)) == 1 + len(others)


def test_ranges_hash_alike_for_any_number_types() -> None:
    whole, other = Range(20, 30), Range(20.0, 30.0)
    assert whole == other
    assert token_hash("x", token(whole)) == token_hash("x", token(other))
    assert token_hash("x", token(whole)) != token_hash("x", token(Range(20, 30, mode="contained")))


def test_an_empty_list_is_an_attribute_without_tokens() -> None:
    event = Event("e", {"genre": []}, 0)
    assert len(rows(event, Overlap())) == 1
    assert len(hashes_of(event)) == 0


def test_weights_are_parallel_to_attributes() -> None:
    part = Overlap({"year": 2.5})
    plain = hash_events([DRAMA], Overlap())
    weighted = hash_events([DRAMA], part)
    assert len(plain.weights) == 0
    assert sorted(weighted.weights) == [1.0, 1.0, 2.5]
    year = rows(Event("y", {"year": 1}, 0), Overlap())
    assert weighted.weights[list(weighted.keys).index(next(iter(year)))] == 2.5


def test_only_registered_distances_have_kernels() -> None:
    class Other(Overlap):
        pass

    assert has_kernel(Overlap())
    assert has_kernel(Overlap({"a": 1}))
    assert has_kernel(Jaccard())
    assert not has_kernel(Other())


def test_cached_hashes_do_not_change_an_event() -> None:
    event = Event("e", {"a": 1}, 0)
    before = (repr(event), event.to_dict(), hash(event))
    hash_events([event], Overlap())
    hashes_of(event)
    assert (repr(event), event.to_dict(), hash(event)) == before
    assert event == Event("e", {"a": 1}, 0)


@pytest.mark.slow
def test_hashes_are_the_same_in_every_process() -> None:
    code = (
        "from tidings.diversify.hashed_distances import *; from tidings.model.records import Event;"
        "from tidings.diversify.distance import Overlap;"
        "e = Event('e', {'genre': ['drama', 'comedy'], 'year': 2003}, 0);"
        "print(hash_events([e], Overlap())[1:3], sorted(token_rows([e])[1].tolist()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path()},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def path() -> str:
    return ":".join(sys.path)


TEXTS = st.text("a\0\x01é\U0001f600", max_size=40)
SCALARS = TEXTS | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False, width=16)


@given(st.dictionaries(TEXTS.filter(bool), TEXTS | st.lists(SCALARS, max_size=3)))
def test_any_attributes_hash_as_defined(attributes: dict[str, object]) -> None:
    finite = {name: value for name, value in attributes.items() if "inf" not in repr(value)}
    event = Event("e", finite, 0)
    expected = [token_hash(name, value) for name, all_ in event.tokens.items() for value in all_]
    assert sorted(hashes_of(event)) == sorted(expected)
    assert len(rows(event, Overlap())) == len(finite)


def test_hashes_never_change() -> None:
    event = Event("e", {"genre": "drama"}, 0)
    assert hashes_of(event) == [xxh64(b"drama", xxh64(b"genre"))]
    assert rows(event, Overlap()) == {xxh64(b"genre"): hashes_of(event)[0]}
    number = Event("e", {"year": 2003}, 0)
    assert hashes_of(number) == [xxh64(b"2003.0", xxh64(b"year") + 1)]


WEIGHTS = {"a": 0.1, "b": 0.7, "c": 3.0, "d": 0.0, "e": 1e-9}
KNOWN = st.sampled_from([Overlap(), Jaccard(), Overlap(WEIGHTS), Overlap({"a": 0, "b": 0})])


def expected(events: list[Event], distance: Distance) -> list[list[float]]:
    return [[distance.between(event, other) for other in events] for event in events]


@given(large_windows(), KNOWN)
def test_a_matrix_equals_the_distances_to_the_last_bit(
    window: list[Candidate], distance: Distance
) -> None:
    events = [member.event for member in window]
    assert distances(events, distance).tolist() == expected(events, distance)


@pytest.mark.parametrize("distance", [Overlap(), Jaccard(), Overlap({"a7": 0.3, "a200": 5})])
@pytest.mark.parametrize("attributes", [3, 64, 65, 253])
def test_sparse_events_with_more_than_64_attributes(distance: Distance, attributes: int) -> None:
    chance = Random(attributes)
    names = [f"a{i}" for i in range(attributes)]
    events = [
        Event(
            f"e{i}", {n: chance.randrange(3) for n in chance.sample(names, chance.randrange(4))}, 0
        )
        for i in range(60)
    ]
    assert distances(events, distance).tolist() == expected(events, distance)


class Length:
    """A user-defined distance."""

    name: ClassVar[str] = "length"

    def between(self, one: Event, other: Event) -> float:
        return abs(len(one.attributes) - len(other.attributes)) / 10


def test_user_defined_distances_are_called() -> None:
    events = [Event(f"e{i}", dict.fromkeys("abc"[:i], 1), 0) for i in range(4)]
    matrix = distances(events, Length())
    for i, j in product(range(4), repeat=2):
        assert matrix[i, j] == abs(i - j) / 10


def test_a_matrix_is_the_submatrix_of_all_its_rows() -> None:
    matrix = np.arange(9, dtype=float).reshape(3, 3)
    assert as_submatrix(matrix).members.tolist() == [0, 1, 2]
    assert as_submatrix(matrix.T).matrix.tolist() == matrix.T.tolist()
    some = Submatrix(matrix, np.array([2, 0]))
    assert as_submatrix(some) is some
