"""What workers see of the events, added up."""

import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Event, Subscription
from tidings.model.diagnosis import diagnose
from tidings.spark.match_stage import event_watch as module
from tidings.spark.match_stage.event_watch import EventWatch, Observations, ObservationSum


class Accumulator:
    """An accumulator of Spark in one process."""

    def __init__(self, value: Observations, param: ObservationSum) -> None:
        self.value, self._param = value, param

    def add(self, observed: Observations) -> None:
        sent: Observations = pickle.loads(pickle.dumps(observed))
        self.value = self._param.addInPlace(self.value, sent)


class Session:
    """A session with only the part that a watch needs."""

    @property
    def sparkContext(self) -> "Session":  # noqa: N802
        return self

    def accumulator(self, value: Observations, param: Any) -> Accumulator:
        return Accumulator(value, param)


def watch() -> EventWatch:
    return EventWatch(Session())  # type: ignore[arg-type]


def events(*attributes: dict[str, Any]) -> list[Event]:
    return [Event(f"e{n}", values, published_at=n) for n, values in enumerate(attributes)]


WANTED = [
    Subscription(f"s{n}", "ann", where=where)
    for n, where in enumerate(["x = 1", "x = 'a'", "y = 2", "z = 1"], start=1)
]
ATTRIBUTES = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, 2, "a"]), min_size=1)


@given(st.lists(st.lists(ATTRIBUTES, max_size=3), min_size=1, max_size=4))
def test_batches_add_up_to_what_one_batch_shows(batches: list[list[dict[str, Any]]]) -> None:
    parts, whole = watch(), watch()
    for batch in batches:
        with parts.watching() as observed:
            observed.add_events(events(*batch))
    with whole.watching() as observed:
        for batch in batches:
            observed.add_events(events(*batch))
    assert parts.diagnose(WANTED) == whole.diagnose(WANTED)


def test_matched_subscriptions_are_known_unless_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = watch()
    with seen.watching() as observed:
        observed.add_events(events({"x": 1}))
        observed.add_matches([["s1"], ["s1", "s3"]])
    with seen.watching() as observed:
        observed.add_matches([])
    found = seen.diagnose(WANTED)
    assert (found.unmatched, found.examples) == (2, ("s2", "s4"))
    assert found == diagnose(WANTED, seen._seen.value.profile, {"s1", "s3"})
    monkeypatch.setattr(module, "MOST_MATCHED", 2)
    for names in (["s4"], ["s1"]):
        with seen.watching() as observed:
            observed.add_matches([names])
    assert seen.diagnose(WANTED).unmatched is None
    many = watch()
    with many.watching() as observed:
        observed.add_matches([["a", "b"], ["c"]])
        observed.add_matches([["a"]])
    assert many.diagnose(WANTED).unmatched is None


def test_what_a_task_saw_counts_also_if_it_ends_early() -> None:
    seen = watch()
    with suppress(RuntimeError), seen.watching() as observed:
        observed.add_events(events({"x": 1}))
        raise RuntimeError
    assert seen._seen.value.profile.events == 1
