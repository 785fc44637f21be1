"""Plain feeds: one object for each subscriber, and a failing one is set aside."""

from dataclasses import dataclass
from typing import Any

import pytest

from tidings.errors import InvalidEvent, InvalidSubscription, TidingsError
from tidings.feed.plain import PlainFeeds
from tidings.feed.policy_key import feed_form
from tidings.feed.single import Feed
from tidings.feed.snapshot_header import pack
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.score.decay import NoDecay
from tidings.window import Moment

SECOND = 1_000_000
SLIDING = Policy(k=1, window={"name": "sliding", "length": 2})
PERIODIC = Policy(k=1, window={"name": "periodic", "length": "10s"})
FORM = feed_form(SLIDING)
STATE = Feed(Subscriber("ada", SLIDING)).snapshot()


@dataclass(frozen=True)
class Failing(NoDecay):
    """A decay that fails after the first second."""

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        if now_us > SECOND:
            raise ValueError("stale")
        return score


FAILING = Policy(k=1, decay=Failing(), window={"name": "sliding", "length": 2})


def feeds_of(**policies: Policy) -> PlainFeeds:
    feeds = PlainFeeds()
    for name, policy in policies.items():
        feeds.enrol(Subscriber(name, policy))
    return feeds


def offer(subscriber: str, number: int, score: float = 0.5) -> tuple[Match, Moment]:
    event = Event(f"e{number}", {}, number, number)
    return Match(subscriber, event, score, ("s",)), Moment(event.published_us, number)


def sent(deliveries) -> list[tuple[str, str, int]]:
    return [(delivery.subscriber, delivery.event, delivery.sequence) for delivery in deliveries]


def test_every_subscriber_has_a_feed_of_its_own():
    feeds = feeds_of(ada=SLIDING, bob=SLIDING)
    assert len(feeds) == 2
    assert "ada" in feeds
    assert "eve" not in feeds
    offers = [offer("bob", 1), offer("ada", 1), offer("bob", 2)]
    assert sent(feeds.offer_many(offers)) == [("bob", "e1", 1), ("ada", "e1", 1), ("bob", "e2", 2)]


def test_time_moves_feeds_in_the_order_of_enrolment():
    feeds = feeds_of(bob=PERIODIC, ada=PERIODIC)
    assert feeds.offer_many([offer("ada", 1), offer("bob", 2)]) == []
    assert feeds.advance(Moment(10 * SECOND - 1, 2)) == []
    assert sent(feeds.advance(Moment(10 * SECOND, 2))) == [("bob", "e2", 1), ("ada", "e1", 1)]


def test_the_current_list_changes_nothing():
    feeds = feeds_of(ada=PERIODIC)
    feeds.offer_many([offer("ada", 1)])
    now = Moment(3 * SECOND, 1)
    assert sent(feeds.current("ada", now)) == sent(feeds.current("ada", now)) == [("ada", "e1", 0)]
    assert sent(feeds.advance(Moment(10 * SECOND, 1))) == [("ada", "e1", 1)]


def test_an_unknown_subscriber_is_refused_before_anything_changes():
    feeds = feeds_of(ada=SLIDING)
    before = feeds.snapshot()
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'eve'"):
        feeds.offer_many([offer("ada", 1), offer("eve", 1)])
    with pytest.raises(InvalidSubscription, match="eve"):
        feeds.drop("eve")
    with pytest.raises(InvalidSubscription, match="eve"):
        feeds.current("eve", Moment(0, 0))
    assert feeds.snapshot() == before


def test_an_event_without_a_sequence_is_refused_before_anything_changes():
    window = {"name": "sliding", "length": 2, "count": "published"}
    feeds = feeds_of(ada=Policy(window=window), bob=SLIDING)
    before = feeds.snapshot()
    unnumbered = Match("ada", Event("e", {}, 1), 0.5, ())
    with pytest.raises(InvalidEvent, match="sequence"):
        feeds.offer_many([offer("bob", 1), (unnumbered, Moment(SECOND, 1))])
    assert feeds.snapshot() == before


def test_enrolling_again_empties_the_feed():
    feeds = feeds_of(ada=SLIDING)
    feeds.offer_many([offer("ada", 1)])
    feeds.enrol(Subscriber("ada", SLIDING))
    assert feeds.snapshot() == feeds_of(ada=SLIDING).snapshot()


def test_a_dropped_feed_is_forgotten():
    feeds = feeds_of(ada=SLIDING, bob=SLIDING)
    feeds.drop("ada")
    assert "ada" not in feeds
    assert feeds.snapshot() == feeds_of(bob=SLIDING).snapshot()


def test_a_failing_subscriber_is_set_aside_and_the_others_go_on(caplog):
    feeds = feeds_of(ada=FAILING, bob=SLIDING)
    offers = [offer(name, number) for number in (1, 2, 3) for name in ("ada", "bob")]
    assert sent(feeds.offer_many(offers)) == [("ada", "e1", 1)] + [
        ("bob", f"e{number}", number) for number in (1, 2, 3)
    ]
    assert list(feeds.set_aside) == ["ada"]
    assert "stale" in feeds.set_aside["ada"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert feeds.current("ada", Moment(0, 0)) == []
    feeds.enrol(Subscriber("ada", FAILING))
    assert feeds.set_aside == {}


def test_a_list_that_fails_on_demand_sets_aside_too():
    feeds = feeds_of(ada=FAILING)
    feeds.offer_many([offer("ada", 1)])
    assert feeds.current("ada", Moment(9 * SECOND, 1)) == []
    assert "stale" in feeds.set_aside["ada"]
    feeds.drop("ada")
    assert feeds.set_aside == {}


@pytest.mark.parametrize("step", ["advance", "snapshot"])
def test_a_feed_that_fails_without_a_match_is_set_aside(step: str, monkeypatch):
    feeds = feeds_of(ada=PERIODIC, bob=PERIODIC)
    feeds.offer_many([offer("ada", 1), offer("bob", 1)])
    right: Any = getattr(Feed, step)

    def fails(feed: Feed, *arguments: Any) -> Any:
        if feed.subscriber.id == "ada":
            raise ValueError("broken")
        return right(feed, *arguments)

    monkeypatch.setattr(Feed, step, fails)
    if step == "advance":
        assert sent(feeds.advance(Moment(10 * SECOND, 1))) == [("bob", "e1", 1)]
    else:
        feeds.snapshot()
    assert list(feeds.set_aside) == ["ada"]


def test_a_snapshot_reads_back_and_goes_on():
    feeds = feeds_of(ada=SLIDING, bob=PERIODIC)
    feeds.offer_many([offer("ada", 1), offer("bob", 1), offer("ada", 2, 0.25)])
    twin = feeds_of(eve=SLIDING)
    twin.restore(feeds.snapshot())
    assert "eve" not in twin
    assert twin.snapshot() == feeds.snapshot()
    later = [offer("ada", 3, 0.1), offer("bob", 12)]
    assert sent(twin.offer_many(later)) == sent(feeds.offer_many(later))
    assert twin.snapshot() == feeds.snapshot()


@pytest.mark.parametrize(
    ("feeds_form", "reason"),
    [
        ([["ada", FORM, STATE], ["ada", FORM, STATE]], "subscriber 'ada' occurs twice"),
        ([["ada", FORM]], "field 'feeds' must be a list of lists of 3"),
        ([["ada", {"k": 1}, STATE]], "a policy has k, decay, window, diversify"),
        ([["ada", FORM, {"window": {}}]], "field 'delivered' is missing"),
    ],
)
def test_a_broken_snapshot_is_refused_and_changes_nothing(feeds_form, reason):
    feeds = feeds_of(bob=SLIDING)
    before = feeds.snapshot()
    with pytest.raises(TidingsError, match=reason):
        feeds.restore(pack("plain", {"feeds": feeds_form}, {}))
    with pytest.raises(TidingsError):
        feeds.restore(before[:-1])
    assert feeds.snapshot() == before
