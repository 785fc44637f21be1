"""All kinds of feeds deliver the same as plain feeds, field by field."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.rule_cases import comparable, rules
from tests.feed.streams import (
    DIVERSIFIERS,
    END,
    NO_DIVERSITY,
    WINDOWS,
    Step,
    enrolled,
    plain_or_diverse,
    policies,
    run,
    streams,
)

from tidings.errors import InvalidEvent, InvalidSubscription
from tidings.feed import FEEDS, Feeds
from tidings.feed.plain import PlainFeeds
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

NAMES = "uvwxyz"
every_kind = pytest.mark.parametrize("kind", FEEDS)
every_window = pytest.mark.parametrize("window", WINDOWS)


def subscribers(
    window: str, diversify: st.SearchStrategy[Any] = NO_DIVERSITY
) -> st.SearchStrategy[dict[str, Policy]]:
    """Return the policies of several subscribers, some of which share one."""
    two = st.tuples(policies(WINDOWS[window], diversify), policies(WINDOWS[window], diversify))
    indexes = st.lists(st.integers(0, 1), min_size=2, max_size=4)
    return st.builds(
        lambda both, drawn: {name: both[i] for name, i in zip(NAMES, drawn, strict=False)},
        two,
        indexes,
    )


any_policy = st.one_of(
    *(policies(window, plain_or_diverse) for window in WINDOWS.values()),
    *(policies(window, plain_or_diverse, rules) for window in WINDOWS.values()),
)
mixed = st.dictionaries(st.sampled_from(NAMES), any_policy, min_size=1)


@every_window
@pytest.mark.parametrize("diversify", DIVERSIFIERS)
@settings(max_examples=20)
@given(data=st.data())
def test_diverse_windows_deliver_like_plain_feeds(
    window: str, diversify: str, data: st.DataObject
) -> None:
    chosen = st.sampled_from(DIVERSIFIERS[diversify])
    policies_by_name, stream = data.draw(subscribers(window, chosen)), data.draw(streams(NAMES[:4]))
    both = [enrolled(kind(), policies_by_name) for kind in FEEDS.values()]
    later = data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    for step in stream:
        first, *rest = [run(feeds, [step]) for feeds in both]
        assert all(other == first for other in rest)
        now = Moment(step.now.us + later[0] * 500_000, step.now.sequence + later[1])
        for name in policies_by_name:
            first, *rest = [feeds.current(name, now) for feeds in both]
            assert all(other == first for other in rest)
    first, *rest = [feeds.advance(END) for feeds in both]
    assert all(other == first for other in rest)


@every_window
@settings(max_examples=150)
@given(data=st.data())
def test_ranked_windows_deliver_like_plain_feeds(window: str, data: st.DataObject) -> None:
    policies_by_name, stream = data.draw(subscribers(window)), data.draw(streams(NAMES[:4]))
    plain = enrolled(PlainFeeds(), policies_by_name)
    expected = [*run(plain, stream), *plain.advance(END)]
    for kind in FEEDS.values():
        feeds = enrolled(kind(), policies_by_name)
        assert [*run(feeds, stream), *feeds.advance(END)] == expected


@every_window
@settings(max_examples=60)
@given(data=st.data())
def test_the_current_list_is_that_of_plain_feeds_at_any_time(
    window: str, data: st.DataObject
) -> None:
    policies_by_name, stream = data.draw(subscribers(window)), data.draw(streams(NAMES[:4]))
    later = data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    both = [enrolled(kind(), policies_by_name) for kind in FEEDS.values()]
    for step in stream:
        now = Moment(step.now.us + later[0] * 500_000, step.now.sequence + later[1])
        for feeds in both:
            run(feeds, [step])
        for name in policies_by_name:
            first, *rest = [feeds.current(name, now) for feeds in both]
            assert all(other == first for other in rest)


@every_kind
@settings(max_examples=60)
@given(policies_by_name=mixed, stream=streams(NAMES), data=st.data())
def test_any_split_into_batches_delivers_the_same(
    kind: str, policies_by_name: dict[str, Policy], stream: list[Step], data: st.DataObject
) -> None:
    whole = enrolled(PlainFeeds(), policies_by_name)
    expected = whole.offer_many([offer for step in stream for offer in step.offers(whole)])
    feeds, left = enrolled(FEEDS[kind](), policies_by_name), list(stream)
    deliveries = []
    while left:
        size = data.draw(st.integers(1, len(left)))
        offers = [offer for step in left[:size] for offer in step.offers(feeds)]
        deliveries += feeds.offer_many(offers)
        left = left[size:]
    assert deliveries == expected
    assert feeds.advance(END) == whole.advance(END)


@every_kind
@settings(max_examples=100)
@given(policies_by_name=mixed, stream=streams(NAMES), data=st.data())
def test_a_snapshot_anywhere_has_the_same_future(
    kind: str, policies_by_name: dict[str, Policy], stream: list[Step], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    feeds, twin = enrolled(FEEDS[kind](), policies_by_name), FEEDS[kind]()
    run(feeds, stream[:cut])
    state = feeds.snapshot()
    twin.restore(state)
    assert twin.snapshot() == state
    assert len(twin) == len(policies_by_name)
    assert run(twin, stream[cut:]) == run(feeds, stream[cut:])
    assert twin.advance(END) == feeds.advance(END)
    assert twin.snapshot() == feeds.snapshot()


@every_kind
@settings(max_examples=100)
@given(stream=streams(NAMES), data=st.data())
def test_subscribers_come_and_go(kind: str, stream: list[Step], data: st.DataObject) -> None:
    plain, feeds = PlainFeeds(), FEEDS[kind]()
    both: list[Feeds] = [plain, feeds]
    for step in stream:
        for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=2)):
            gone = name in plain and data.draw(st.booleans())
            policy = data.draw(any_policy)
            for kind_feeds in both:
                if gone:
                    kind_feeds.drop(name)
                else:
                    kind_feeds.enrol(Subscriber(name, policy))
            assert (name in feeds) is (name in plain)
        assert run(feeds, [step]) == run(plain, [step])
    assert len(feeds) == len(plain)
    assert feeds.advance(END) == plain.advance(END)


@every_kind
@settings(max_examples=80)
@given(stream=streams(NAMES[:3]), data=st.data())
def test_rules_are_replaced_while_the_window_goes_on(
    kind: str, stream: list[Step], data: st.DataObject
) -> None:
    policy = data.draw(any_policy)
    both: list[Feeds] = [PlainFeeds(), FEEDS[kind]()]
    for feeds in both:
        enrolled(feeds, dict.fromkeys(NAMES[:3], policy))
    for step in stream:
        if data.draw(st.booleans()):
            changed = replace(policy, rules=data.draw(st.one_of(st.just([]), rules)))
            paused = data.draw(st.booleans())
            for feeds in both:
                feeds.replace(Subscriber("u", changed, paused=paused), step.now)
        first, second = [run(feeds, [step]) for feeds in both]
        assert first == second
        verdicts, others = [comparable(feeds.take_verdicts()) for feeds in both]
        assert verdicts == others
    first, second = [feeds.advance(END) for feeds in both]
    assert first == second


@every_kind
def test_unknown_subscribers_are_refused(kind: str) -> None:
    feeds = enrolled(FEEDS[kind](), {"u": Policy()})
    event = Event("e", {}, published_at=0, sequence=1)
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'v'"):
        feeds.offer_many([(Match("v", event, 0.5, ()), Moment(0, 1))])
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'v'"):
        feeds.drop("v")
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'v'"):
        feeds.current("v", Moment(0, 1))
    assert feeds.offer_many([]) == feeds.advance(Moment(0, 1)) == feeds.current("u", END) == []


@every_kind
@pytest.mark.parametrize("name", ["sliding", "history", "periodic"])
def test_windows_over_published_events_need_their_numbers(kind: str, name: str) -> None:
    window = {"name": name, "length": 3, "count": "published"}
    feeds = enrolled(FEEDS[kind](), {"u": Policy(window=window)})
    unnumbered = Event("e1", {}, published_at=0)
    with pytest.raises(InvalidEvent, match='event e1 has no sequence, which count="published"'):
        feeds.offer_many([(Match("u", unnumbered, 0.5, ()), Moment(0, 1))])
