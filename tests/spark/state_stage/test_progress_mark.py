"""Ticks alone: the pulse says the same as the bucket, and when the bucket has to be asked."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, sent

from tidings import Event, TidingsError
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.progress_mark import Pulse

ticks = st.lists(st.builds(Tick, st.integers(0, 30).map(lambda s: s * 10**6), st.integers(0, 30)))


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_pulse_rests_only_where_the_bucket_has_nothing_to_say(
    window: str, data: st.DataObject
) -> None:
    person = Subscriber("u", data.draw(policies(WINDOWS[window], plain_or_diverse)))
    matcher = Matcher([person], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    terms = Terms(data.draw(st.sampled_from([0, 4_000_000])))
    bucket = Bucket(matcher.subscribers, terms)
    gaps = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    events = [Event(f"e{n}", {"x": 1}, sum(gaps[: n + 1]), n + 1) for n in range(len(gaps))]
    bucket.run(*sent(matcher, events, "u"))
    for some in data.draw(st.lists(ticks.filter(bool), max_size=4)):
        before = bucket.pulse
        assert Pulse.unpack(before.pack()) == before
        rested = before.after(some, terms.lateness_us)
        found = bucket.run([], some)
        if rested is not None:
            assert found.num_rows == 0
            assert rested == bucket.pulse


def test_a_pulse_is_small_and_says_when_the_period_ends() -> None:
    person = Subscriber("u", Policy(window={"name": "periodic", "length": "10s"}))
    matcher = Matcher([person], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    bucket = Bucket(matcher.subscribers)
    bucket.run(*sent(matcher, [Event("e", {"x": 1}, 3, 1)], "u"))
    pulse: Any = bucket.pulse
    assert len(pulse.pack()) < 200
    assert pulse.due_us == 10_000_000
    for second in range(4, 10):
        pulse = pulse.after([Tick(second * 1_000_000, second)], 0)
    assert pulse.after([Tick(10_000_000, 0)], 0) is None
    again = Bucket(matcher.subscribers)
    again.unpack(bucket.pack(), pulse)
    assert again.watermark_us == 9_000_000
    assert deliveries([again.run([], [Tick(10_000_000, 0)])]).keys() == {"u"}


def test_what_waits_for_the_watermark_is_due() -> None:
    person = Subscriber("u", Policy(window={"name": "sliding", "length": 3}))
    matcher = Matcher([person], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    bucket = Bucket(matcher.subscribers, Terms(5_000_000))
    bucket.run(*sent(matcher, [Event("e", {"x": 1}, 3, 1)], "u"))
    assert bucket.pulse.after([Tick(7_000_000, 1)], 5_000_000) is not None
    assert bucket.pulse.after([Tick(8_000_000, 1)], 5_000_000) is None


def test_a_bucket_that_never_ran_has_to_be_asked() -> None:
    assert Pulse().after([Tick(5, 1)], 0) is None


@pytest.mark.parametrize(
    "wrong", [b"", b"{", b"[]", b"7", b"{}", b'{"ticks": 3}', b'{"ticks": [], "of": 9}']
)
def test_a_pulse_that_is_not_ours_is_refused(wrong: bytes) -> None:
    with pytest.raises(TidingsError, match="the pulse of a bucket is damaged"):
        Pulse.unpack(wrong)
