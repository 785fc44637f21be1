"""Deliveries as columns are what the objects say, row by row; and what a hot subscriber costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_feeds import offers_of
from tests.feed.streams import WINDOWS, enrolled, plain_or_diverse, policies, streams
from tests.spark.match_stage.match_batches import parcel, rows

from tidings.feed.columnar import ranked_cohort
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import layout
from tidings.model.records import Event, Match
from tidings.model.values import format_time
from tidings.policy import Policy, Subscriber
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Bucket
from tidings.spark.state_stage.clock_marks import Tick


@settings(max_examples=60)
@given(data=st.data())
def test_columns_say_what_the_objects_say(data: st.DataObject) -> None:
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    table = TableFeeds()
    enrolled(table, {name: data.draw(policies(window, plain_or_diverse)) for name in "uvw"})
    stream = data.draw(streams("uvw"))
    made = table.offer_matches(*offers_of(table, stream))
    assert outcomes.delivered(made, table.tables) == outcomes.plainly_delivered(made.objects())
    if stream:
        due = table.advance_columns(stream[-1].now)
        assert outcomes.delivered(due, table.tables) == outcomes.plainly_delivered(due.objects())


def test_a_mean_score_does_not_depend_on_the_order() -> None:
    ranks = np.array([0.1, 0.7, 0.2, 0.3, 1e16, -1e16, 0.5])
    owners = np.array([0, 1, 0, 0, 0, 0, 0], np.int32)
    order = np.array([4, 6, 1, 0, 3, 5, 2])
    one = outcomes.accounts(["u", "v"], owners, ranks)
    assert one == outcomes.accounts(["u", "v"], owners[order], ranks[order])
    assert [(row["subscriber"], row["position"]) for row in one.to_pylist()] == [("u", 6), ("v", 1)]


def crowd(events: int, hot: int) -> tuple[Any, Any]:
    """Give a parcel in which one matches everything, and each of the others once."""
    published = [Event(f"e{n:05}", {}, n, n) for n in range(1, events + 1)]
    matches = [
        [Match(name, event, 0.5, ("s",)) for name in (["hot"] * (n < hot) + [f"u{n}"])]
        for n, event in enumerate(published)
    ]
    return parcel(published, matches), Tick(published[-1].published_us, events)


def passes(monkeypatch: pytest.MonkeyPatch, hot: int) -> tuple[int, int, Any]:
    """Count the passes of kernels over a micro-batch, and the bytes that it leaves."""
    window = {"name": "sliding", "length": 100}
    people = {f"u{n}": Subscriber(f"u{n}", Policy(k=2, window=window)) for n in range(2000)}
    people["hot"] = Subscriber("hot", Policy(k=2, window=window))
    calls: list[int] = []
    kernel = ranked_cohort.KERNELS[layout.SLIDING]

    def counted(world: Any, sink: Any, offers: Any) -> None:
        calls.append(len(offers[0]))
        kernel(world, sink, offers)

    monkeypatch.setitem(ranked_cohort.KERNELS, layout.SLIDING, counted)
    bucket = Bucket(people)
    made, tick = crowd(2000, hot)
    found = bucket.run([made], [tick])
    return len(calls), len(bucket.pack()), found


def test_who_matches_everything_takes_no_more_passes_and_no_more_state_than_its_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, small, _ = passes(monkeypatch, hot=100)
    many, large, found = passes(monkeypatch, hot=2000)
    got = [row["subscriber"] for row in rows(found, "delivery")]
    assert {f"u{n}" for n in range(2000)} <= set(got)
    assert len(got) == 4000
    assert many <= few + 4 <= 100
    assert large - small < 4096


@given(
    st.lists(st.integers(-63 * 10**15, 300 * 10**15) | st.integers(0, 99).map(lambda s: s * 10**6))
)
def test_times_are_printed_as_everywhere_else(times: list[int]) -> None:
    whole = np.unique(np.array(times, np.int64))
    assert outcomes._printed(whole).to_pylist() == [format_time(us) for us in whole.tolist()]
