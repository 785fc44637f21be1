"""Predicates as numbers: shared, counted, written to files, and dropped when unused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.access.workload import events, subscriptions

from tidings.compiled.array_file import Reader, Stored, Writer, described
from tidings.index.access.encoding import encode
from tidings.index.access.query import encode_events
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.index.access.writer import compacted
from tidings.model.conditions.predicate import predicate


def test_equal_predicates_share_one_check() -> None:
    vocabulary = Vocabulary()
    one = vocabulary.check(predicate("a", "=", "x"))
    assert vocabulary.check(predicate("a", "=", "x")) == one
    members = vocabulary.check(predicate("a", "in", ["x", "y"]))[4]
    assert sorted(members) == [one[0], one[0] + 1]
    assert vocabulary.terms == 2


@pytest.mark.parametrize(
    ("operator", "operand", "slot"),
    [("=", 3, -1), ("between", (3, 3), -1), ("between", (1, 3), 0), ("<=", 3, 0), ("!=", 3, 0)],
)
def test_intervals_and_differences_have_a_slot(operator: str, operand: object, slot: int) -> None:
    term, at, *_ = Vocabulary().check(predicate("a", operator, operand))
    assert (term >= 0, at) == (slot < 0, slot)


@given(st.lists(st.floats(-1e300, 1e300)))
def test_ordered_integers_have_the_order_of_floats(values: list[float]) -> None:
    integers = ordered(np.array(values))
    assert np.array_equal(np.argsort(integers, kind="stable"), np.argsort(values, kind="stable"))


def test_chances_follow_the_events() -> None:
    vocabulary = Vocabulary()
    often, seldom = (vocabulary.check(predicate(name, "=", 1))[0] for name in ("often", "seldom"))
    vocabulary.events = 1000
    vocabulary.counts.terms[often] = 900
    chances = vocabulary.chances(np.array([often, seldom]))
    assert chances[0] > 0.8
    assert chances[1] < 0.1


def test_a_compacted_vocabulary_has_only_used_predicates() -> None:
    vocabulary = Vocabulary()
    encode(subscriptions(300, 1), range(300), vocabulary)
    kept = subscriptions(20, 2)
    encoded, fresh = compacted(encode(kept, range(20), vocabulary), vocabulary)
    alone = Vocabulary()
    encode(kept, range(20), alone)
    assert (fresh.terms, fresh.slots) == (alone.terms, alone.slots)
    assert fresh.terms < vocabulary.terms
    assert set(encoded.term[encoded.term >= 0]) | set(encoded.members) == set(range(fresh.terms))


def test_a_text_is_cached_until_its_attribute_changes() -> None:
    vocabulary = Vocabulary()
    vocabulary.check(predicate("a", "prefix", "x"))
    vocabulary.encoder("a")
    first = vocabulary.cache_text("a", "xy")
    assert vocabulary.encoder("a").texts == {"xy": first}
    vocabulary.check(predicate("a", "suffix", "y"))
    assert vocabulary.encoder("a").texts == {}


def read_back(vocabulary: Vocabulary) -> Vocabulary:
    writer = Writer()
    vocabulary.write(writer)
    arrays = {
        name: Stored(described(array.dtype), list(array.shape), memoryview(array.tobytes()))
        for name, array in writer.arrays.items()
    }
    return Vocabulary.read(Reader("a vocabulary", writer.header, arrays))


def test_a_vocabulary_is_written_and_read() -> None:
    vocabulary, asked = Vocabulary(), events(20, 4)
    encode(subscriptions(300, 4), range(300), vocabulary)
    vocabulary.check(predicate("flag", "!=", True))
    vocabulary.check(predicate("g0", "between", ("w1", "w3")))
    read = read_back(vocabulary)
    assert (read.terms, read.slots) == (vocabulary.terms, vocabulary.slots)
    before, after = (encode_events(one, asked).events._asdict() for one in (vocabulary, read))
    for name, column in before.items():
        assert np.array_equal(column, after[name]), name
    new = predicate("g0", "!=", "never seen")
    assert read.check(new) == vocabulary.check(new)
