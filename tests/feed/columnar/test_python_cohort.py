"""Feeds of a policy that kernels cannot run: objects, of which a failing one is emptied."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.score.decay import NoDecay
from tidings.window import Moment
from tidings.window.sliding import Sliding

SECOND = 1_000_000


@dataclass(frozen=True)
class Failing(NoDecay):
    """A decay that fails from the third second on."""

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        if now_us >= 3 * SECOND:
            raise ValueError("stale")
        return score


@dataclass(frozen=True)
class OwnWindow(Sliding):
    """A window of a user, which time may move."""


def cohort_of(window: object = None, numbers: tuple[int, ...] = (4, 7)) -> PythonCohort:
    window = {"name": "sliding", "length": 3} if window is None else window
    cohort = PythonCohort(Policy(k=1, decay=Failing(), window=window))
    cohort.enrol_many(np.array(numbers), [f"u{number}" for number in numbers])
    return cohort


def offer(cohort: PythonCohort, row: int, second: int) -> list[str]:
    event = Event(f"e{second}", {}, second, second)
    match = Match(f"u{row}", event, 0.5, ())
    return [one.event for one in cohort.offer(row, match, Moment(event.published_us, second))]


def test_rows_are_the_numbers_of_subscribers():
    cohort = cohort_of(numbers=())
    assert cohort.enrol(9, "ada") == 9
    assert cohort.enrol_many(np.array([2, 5]), ["bob", "eve"]).tolist() == [2, 5]
    assert len(cohort) == 3
    assert cohort.feeds[5].subscriber.id == "eve"
    cohort.drop(9)
    assert sorted(cohort.feeds) == [2, 5]


def test_a_match_reaches_one_feed():
    cohort = cohort_of()
    assert offer(cohort, 4, 1) == ["e1"]
    assert [one.event for one in cohort.current(4, Moment(SECOND, 1))] == ["e1"]
    assert cohort.current(7, Moment(SECOND, 1)) == []


def test_a_feed_that_fails_is_emptied_and_noted():
    cohort = cohort_of()
    assert offer(cohort, 4, 1) == offer(cohort, 7, 1) == ["e1"]
    assert offer(cohort, 4, 3) == []
    assert list(cohort.failed) == [4]
    assert "stale" in cohort.failed[4]
    assert cohort.current(4, Moment(SECOND, 1)) == []
    assert [one.event for one in cohort.current(7, Moment(SECOND, 1))] == ["e1"]
    cohort.drop(4)
    assert cohort.failed == {}


def test_an_emptied_feed_starts_again():
    cohort = cohort_of()
    offer(cohort, 4, 1)
    cohort.reset(4)
    assert cohort.feeds[4].subscriber.id == "u4"
    assert offer(cohort, 4, 1) == ["e1"]


@pytest.mark.parametrize(
    ("window", "timed"),
    [
        ({"name": "periodic", "length": "2s"}, True),
        ({"name": "jumping", "length": "2s", "step": "1s"}, True),
        ({"name": "sliding", "length": 3}, False),
        ({"name": "continuous"}, False),
        (OwnWindow(3), True),
    ],
    ids=str,
)
def test_time_moves_only_windows_that_depend_on_it(window, timed):
    cohort = cohort_of(window)
    assert cohort.timed is timed
    moved = list(cohort.advance(Moment(0, 0)))
    assert moved == ([(4, []), (7, [])] if timed else [])


def test_deliveries_due_by_time_come_by_row():
    cohort = cohort_of({"name": "periodic", "length": "2s"})
    assert offer(cohort, 7, 1) == []
    due = [
        (row, [delivery.event for delivery in sent])
        for row, sent in cohort.advance(Moment(2 * SECOND, 1))
    ]
    assert due == [(4, []), (7, ["e1"])]


def test_a_snapshot_of_some_feeds_reads_back():
    cohort = cohort_of()
    offer(cohort, 4, 1)
    offer(cohort, 7, 2)
    state = json.loads(json.dumps(cohort.snapshot(np.array([7]))))
    assert list(state) == ["u7"]
    twin = cohort_of()
    twin.restore(state)
    assert twin.snapshot(np.array([7])) == state
    assert twin.snapshot(np.array([4])) == cohort_of().snapshot(np.array([4]))


def test_a_feed_whose_snapshot_fails_is_saved_empty(monkeypatch):
    cohort = cohort_of()
    offer(cohort, 4, 1)

    def fails() -> dict[str, object]:
        raise ValueError("broken")

    monkeypatch.setattr(cohort.feeds[4], "snapshot", fails)
    assert cohort.snapshot(np.array([4])) == cohort_of().snapshot(np.array([4]))
    assert "broken" in cohort.failed[4]


def test_a_broken_snapshot_is_refused():
    with pytest.raises(TidingsError):
        cohort_of().restore({"u4": {"delivered": -1, "window": {}}})
