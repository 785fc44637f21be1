"""Events as numbers of a vocabulary."""

import pytest

from tidings.index.access.event_encoder import encode_events
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Event
from tidings.model.values import Range


@pytest.fixture
def vocabulary() -> Vocabulary:
    """Terms 0 (a = 'x'), 1 (a starts with 'x'), 2 (n = 3); slot 0 for numbers of n."""
    vocabulary = Vocabulary()
    for part in (
        predicate("a", "=", "x"),
        predicate("a", "prefix", "x"),
        predicate("n", "=", 3),
        predicate("n", "between", (1, 5)),
    ):
        vocabulary.check(part)
    return vocabulary


def test_texts_are_cached_and_numbers_are_terms_and_values(vocabulary: Vocabulary) -> None:
    encoded, cached, most = encode_events(vocabulary, [Event("e", {"a": "x", "n": 3}, 0)])
    text, term = encoded.items.tolist()
    assert cached.terms[cached.start[text] : cached.start[text + 1]].tolist() == [0, 1]
    assert ~term == 2
    assert (encoded.slots.tolist(), encoded.upper.tolist()) == ([0], ordered(3.0).tolist())
    assert encoded.spans.tolist() == [0, 2, 0, 1]
    assert most >= 3
    assert len(encoded.probabilities) == 0


def test_unknown_attributes_and_texts_leave_no_trace(vocabulary: Vocabulary) -> None:
    unknown = Event("e", {"z": 1, "a": "nothing", "n": "three", "b": [1, "x"]}, 0)
    encoded = encode_events(vocabulary, [unknown]).events
    assert (len(encoded.items), len(encoded.slots)) == (0, 0)


def test_several_values_follow_each_other(vocabulary: Vocabulary) -> None:
    encoded = encode_events(vocabulary, [Event("e", {"n": [3, 7]}, 0)]).events
    assert encoded.slots.tolist() == [0, 0]
    assert sorted(encoded.upper.tolist()) == ordered([3.0, 7.0]).tolist()
    assert [~item for item in encoded.items] == [2]


@pytest.mark.parametrize(("mode", "swapped"), [("overlaps", False), ("contained", True)])
def test_a_range_that_must_be_contained_swaps_its_ends(
    vocabulary: Vocabulary, mode: str, swapped: bool
) -> None:
    encoded = encode_events(vocabulary, [Event("e", {"n": Range(2, 4, mode)}, 0)]).events
    ends = [encoded.lower.tolist(), encoded.upper.tolist()]
    assert ends == [
        ordered(4.0 if swapped else 2.0).tolist(),
        ordered(2.0 if swapped else 4.0).tolist(),
    ]
    assert len(encoded.items) == (0 if swapped else 1)


def test_probabilities_belong_to_the_items_then_to_the_values(vocabulary: Vocabulary) -> None:
    event = Event("e", {"a": "x", "n": 3}, 0, probabilities={"n": 0.25})
    encoded = encode_events(vocabulary, [event, Event("f", {"a": "x"}, 0)]).events
    assert encoded.probabilities.tolist() == [1.0, 0.25, 1.0, 0.25]
