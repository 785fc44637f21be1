"""Overlapping windows deliver an event once, and may ask whether another choice is needed."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from tidings.errors import InvalidForm
from tidings.model.records import Event, Match
from tidings.window.deliver_once import OnceOnly


@dataclass(frozen=True)
class Part:
    """The parameters that decide on delivery."""

    delivered: str = "keep"
    wait: bool = False
    name: ClassVar[str] = "sliding"


@dataclass
class BestScores:
    """A chooser of the k best scores; it tells of every choice by counting them."""

    k: int = 1
    steady: bool = True
    best_only: bool = True
    choices: int = 0

    def choose(self, matches, now_us):
        self.choices += 1
        return self.ranked(matches, now_us)[: self.k]

    def ranked(self, matches, now_us):
        del now_us
        return [(m, m.score) for m in sorted(matches, key=lambda m: -m.score)]

    def divrank(self, matches, now_us):
        raise NotImplementedError


def match(name: str, score: float) -> Match:
    return Match("u", Event(name, {}, 1), score, ())


A, B, C = match("a", 0.9), match("b", 0.5), match("c", 0.3)


def names(picks) -> list[tuple[str, int]]:
    return [(pick.match.event.id, pick.position) for pick in picks]


def test_an_event_is_delivered_once_and_keeps_its_position():
    once = OnceOnly(Part(), BestScores(k=2))
    assert names(once.deliver([A], 5)) == [("a", 1)]
    assert names(once.deliver([A, B], 6)) == [("b", 2)]
    assert names(once.deliver([A, B, C], 7)) == []


def test_delivered_events_hold_their_place_or_leave_it():
    for delivered, expected in (("keep", []), ("leave", [("b", 1)])):
        once = OnceOnly(Part(delivered), BestScores())
        assert names(once.deliver([A], 5)) == [("a", 1)]
        assert names(once.deliver([A, B], 6)) == expected


def test_the_described_window_has_delivered_events_too():
    once = OnceOnly(Part("leave"), BestScores())
    once.deliver([A], 2_000_000)
    (pick,) = once.deliver([A, B], 3_000_000)
    assert pick.window["size"] == 2
    assert pick.window["name"] == "sliding"
    assert pick.at_us == 3_000_000


def test_the_current_list_changes_nothing():
    once = OnceOnly(Part(), BestScores(k=2))
    assert names(once.current([A, B], 5)) == [("a", 1), ("b", 2)]
    assert names(once.deliver([A, B], 5)) == [("a", 1), ("b", 2)]
    assert names(once.current([A, B], 5)) == [("a", 1), ("b", 2)]


def test_an_empty_window_makes_no_choice():
    chooser = BestScores()
    assert OnceOnly(Part(), chooser).deliver([], 5) == []
    assert chooser.choices == 0


def test_wait_makes_no_choice_below_k_candidates():
    once = OnceOnly(Part("leave", wait=True), BestScores(k=2))
    assert once.deliver([A], 5) == []
    assert names(once.deliver([A, B], 6)) == [("a", 1), ("b", 2)]
    assert once.deliver([A, B, C], 7) == []


def test_forgotten_events_can_be_delivered_again():
    once = OnceOnly(Part(), BestScores())
    once.deliver([A], 5)
    once.forget([A, B])
    assert once.deliver([A], 6) == []
    once.forget([B])
    assert names(once.deliver([A], 7)) == [("a", 1)]


@pytest.mark.parametrize(
    ("part", "steady", "delivered", "expected"),
    [
        (Part("keep"), True, True, True),
        (Part("keep"), False, True, False),
        (Part("leave"), True, False, True),
        (Part("leave"), True, True, False),
        (Part("leave"), False, False, False),
    ],
)
def test_a_window_is_settled_if_time_cannot_bring_up_another(part, steady, delivered, expected):
    once = OnceOnly(part, BestScores(k=1, steady=steady))
    once.deliver([A, B], 5)
    assert once.settled([A, B, C], delivered) is expected


def test_a_window_is_settled_once_all_of_it_is_delivered():
    once = OnceOnly(Part(), BestScores(k=2, steady=False))
    once.deliver([A, B], 5)
    assert once.settled([A, B], delivered=True)
    assert not once.settled([A, B, C], delivered=True)


def test_a_window_with_too_few_candidates_is_settled():
    waiting = OnceOnly(Part(wait=True), BestScores(k=2, steady=False))
    assert waiting.settled([A], delivered=False)
    assert not waiting.settled([A, B], delivered=False)
    assert OnceOnly(Part(), BestScores(steady=False)).settled([], delivered=False)


def test_a_restored_window_delivers_nothing_again():
    once = OnceOnly(Part(), BestScores(k=2))
    once.deliver([B, A], 5)
    assert once.snapshot() == {"delivered": ["a", "b"]}
    restored = OnceOnly(Part(), BestScores(k=3))
    restored.restore(once.snapshot())
    assert names(restored.deliver([A, B, C], 6)) == [("c", 3)]


@pytest.mark.parametrize("state", [{}, {"delivered": "ab"}, {"delivered": [1]}])
def test_a_broken_snapshot_is_refused(state):
    with pytest.raises(InvalidForm, match="delivered"):
        OnceOnly(Part(), BestScores()).restore(state)
