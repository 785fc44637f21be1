"""One subscriber's feed: decay, window and diversity turn matches into deliveries."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.window.reference import Publication
from tests.window.streams import ranks, steps, streams

from tidings.errors import InvalidEvent
from tidings.feed.single import Feed, PolicyChooser
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.testing import DECAYS, DIVERSIFIERS, WINDOWS
from tidings.window import Moment

HALVES = {"name": "exponential", "rate": 0.6931471805599453}


def match(name: str, score: float, at: float = 0, **attributes: str) -> Match:
    return Match("x", Event(name, attributes, published_at=at, sequence=1), score, ("s1", "s2"))


def feed(**policy: Any) -> Feed:
    return Feed(Subscriber("x", Policy(**policy)))


def test_a_delivery_has_all_its_fields() -> None:
    [delivery] = feed(k=1).offer(match("e1", 0.9, at=60), Moment(60_000_000, 1))
    assert delivery.to_dict() == {
        "subscriber": "x",
        "event": "e1",
        "rank": 0.9,
        "position": 1,
        "window": {
            "name": "continuous",
            "start": "1970-01-01T00:01:00Z",
            "end": "1970-01-01T00:01:00Z",
            "size": 1,
        },
        "matched": ["s1", "s2"],
        "sequence": 1,
        "delivered_at": "1970-01-01T00:01:00Z",
    }


def test_the_rank_is_as_fresh_as_the_decision() -> None:
    """A period's end is 2 s after the first event and 1 s after the second."""
    fading = feed(k=2, decay=HALVES, window={"name": "periodic", "length": "2s"})
    fading.offer(match("e1", 0.8, at=0), Moment(0, 1))
    fading.offer(match("e2", 0.3, at=1), Moment(1_000_000, 2))
    delivered = fading.advance(Moment(5_000_000, 2))
    assert [(delivery.event, round(delivery.rank, 9)) for delivery in delivered] == [
        ("e1", 0.2),
        ("e2", 0.15),
    ]


@pytest.mark.parametrize(("score", "winner"), [(0.41, "new"), (0.39, "old")])
def test_a_newer_event_wins_by_its_fresh_rank(score: float, winner: str) -> None:
    chooser = PolicyChooser(Policy(k=1, decay=HALVES))
    [(chosen, _)] = chooser.choose([match("old", 0.8), match("new", score, at=1)], 1_000_000)
    assert chosen.event.id == winner


def test_keys_still_order_matches_that_have_faded_to_zero() -> None:
    chooser = PolicyChooser(Policy(k=1, decay={"name": "exponential", "rate": 1000}))
    old = [match("a", 0.1), match("b", 0.9)]
    [(chosen, rank)] = chooser.choose(old, 10_000_000)
    assert (chosen.event.id, rank) == ("b", 0.0)
    assert [match.event.id for match, _ in chooser.ranked(old, 10_000_000)] == ["b", "a"]


def test_the_divrank_of_a_set_is_that_of_the_policy() -> None:
    same = [match("a", 0.8, genre="c"), match("b", 0.6, genre="c")]
    other = [match("a", 0.8, genre="c"), match("d", 0.6, genre="d")]
    plain = PolicyChooser(Policy())
    assert plain.divrank(same, 0) == plain.divrank(other, 0) == 0.7
    diverse = PolicyChooser(Policy(diversify={"name": "divrank", "sigma": 0.5}))
    assert (diverse.divrank(same, 0), diverse.divrank(other, 0)) == (0.35, 0.85)


@given(
    streams(),
    st.integers(1, 3),
    st.sampled_from(WINDOWS),
    st.sampled_from(DECAYS),
    st.sampled_from(DIVERSIFIERS),
    st.data(),
)
def test_every_policy_delivers_once_in_sequence_also_through_a_restart(
    stream: list[Publication], k: int, window: Any, decay: Any, diversify: Any, data: st.DataObject
) -> None:
    policy = {"k": k, "window": window, "decay": decay, "diversify": diversify}
    whole = [delivery for step in steps(feed(**policy), stream) for delivery in step]
    cut = data.draw(st.integers(0, len(stream)))
    before, after = feed(**policy), feed(**policy)
    split = [delivery for step in steps(before, stream[:cut]) for delivery in step]
    after.restore(json.loads(json.dumps(before.snapshot())))
    split += [delivery for step in steps(after, stream[cut:]) for delivery in step]
    assert split == whole
    assert [delivery.sequence for delivery in whole] == list(range(1, len(whole) + 1))
    assert len({delivery.event for delivery in whole}) == len(whole)


def test_the_current_list_can_be_read_repeatedly() -> None:
    sliding = feed(k=2, window={"name": "sliding", "length": 3})
    stream = ranks(0.3, 0.9, 0.5)
    assert [len(step) for step in steps(sliding, stream)] == [1, 1, 1]
    before = sliding.snapshot()
    current = sliding.current(Moment(stream[-1].us, 3))
    assert [(d.event, d.position, d.sequence) for d in current] == [
        ("e2", 1, 0),
        ("e3", 2, 0),
    ]
    assert sliding.current(Moment(stream[-1].us, 3)) == current
    assert sliding.snapshot() == before


def test_windows_over_published_events_need_their_numbers() -> None:
    published = feed(window={"name": "sliding", "length": 3, "count": "published"})
    unnumbered = Match("x", Event("e1", {}, published_at=0), 0.5, ())
    with pytest.raises(InvalidEvent, match='event e1 has no sequence, which count="published"'):
        published.offer(unnumbered, Moment(0, 1))
