"""Match and score: from an event to the subscribers that want it, through any change."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidSubscription
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.score.exact import Exact
from tidings.score.preference import Preference

FILM = Event("e1", {"genre": "drama", "year": 2003}, published_at=0)


def drama(name: str, subscriber: str, prefrank: float | None = None) -> Subscription:
    return Subscription(name, subscriber, "genre = 'drama'", prefrank=prefrank)


def found(matcher: Matcher, event: Event = FILM) -> list[tuple[str, float, tuple[str, ...]]]:
    return [(match.subscriber, match.score, match.matched) for match in matcher.matches(event)]


def test_every_subscriber_that_wants_an_event_has_one_match() -> None:
    matcher = Matcher(
        [Subscriber("zoe"), Subscriber("addison"), Subscriber("carson")],
        [
            drama("s3", "zoe", 0.2),
            drama("s2", "addison", 0.7),
            Subscription("s1", "addison", "year > 2000", prefrank=0.4),
            Subscription("s4", "carson", "genre = 'comedy'", prefrank=0.9),
        ],
    )
    assert found(matcher) == [("addison", 0.7, ("s1", "s2")), ("zoe", 0.2, ("s3",))]


@pytest.mark.parametrize(
    ("scorer", "matched"),
    [("exact", ("whole",)), ("preference", ("whole",)), ("relaxed", ("half", "whole"))],
)
def test_only_partial_scorers_take_what_an_event_touches(
    scorer: str, matched: tuple[str, ...]
) -> None:
    half = Subscription("half", "u", "genre = 'drama' and year = 1999")
    matcher = Matcher([Subscriber("u", Policy(scorer=scorer))], [half, drama("whole", "u")])
    assert found(matcher) == [("u", 1.0, matched)]
    matcher.remove("whole")
    left = [("half",)] if "half" in matched else []
    assert [match.matched for match in matcher.matches(FILM)] == left


def test_a_subscription_is_silent_until_its_subscriber_comes() -> None:
    matcher = Matcher(subscriptions=[drama("s", "u", 0.5)])
    assert found(matcher) == []
    matcher.subscribe(Subscriber("u"))
    assert found(matcher) == [("u", 0.5, ("s",))]


def test_a_subscription_id_is_taken_once_and_unknown_ids_are_refused() -> None:
    matcher = Matcher([Subscriber("u")], [drama("s", "u")])
    with pytest.raises(InvalidSubscription, match="'s' already exists"):
        matcher.add(drama("s", "other"))
    with pytest.raises(InvalidSubscription, match="no subscription 't'"):
        matcher.remove("t")
    with pytest.raises(InvalidSubscription, match="no subscriber 'other'"):
        matcher.unsubscribe("other")
    assert found(matcher) == [("u", 1.0, ("s",))]


def test_a_subscriber_leaves_with_its_subscriptions() -> None:
    matcher = Matcher([Subscriber("u"), Subscriber("v")], [drama("s", "u"), drama("t", "v")])
    matcher.unsubscribe("u")
    assert list(matcher.subscriptions) == ["t"]
    matcher.subscribe(Subscriber("u"))
    assert [match.subscriber for match in matcher.matches(FILM)] == ["v"]


def test_preferences_rank_anew_when_they_or_the_subscriptions_change() -> None:
    """With s over t, t has 1 / 2; with t over r as well, 2 / 3; without s, 1 again."""
    recent = Subscription("t", "u", "year > 2000")
    matcher = Matcher([Subscriber("u")], [drama("s", "u"), recent])
    newer = Event("e2", {"year": 2003}, published_at=0)
    assert found(matcher, newer) == [("u", 1.0, ("t",))]
    matcher.subscribe(Subscriber("u", prefers=[("s", "t"), ("t", "r")]))
    assert found(matcher, newer) == [("u", 0.5, ("t",))]
    matcher.add(Subscription("r", "u", "genre = 'comedy'"))
    assert found(matcher, newer)[0][1] == pytest.approx(2 / 3)
    matcher.remove("s")
    assert found(matcher, newer) == [("u", 1.0, ("t",))]


def test_top_looks_at_all_subscriptions_also_of_nobody() -> None:
    matcher = Matcher(
        [Subscriber("u", prefers=[("a", "b")])],
        [drama("b", "u"), drama("a", "u"), drama("c", "nobody")],
    )
    assert matcher.top(FILM, 9, Preference()) == [("a", 1.0), ("c", 1.0), ("b", 0.5)]
    assert matcher.top(FILM, 2, Exact()) == [("a", 1.0), ("b", 1.0)]


GENRES = ("drama", "comedy")
changes = st.lists(
    st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.sampled_from("uv"), st.sampled_from(GENRES)),
    max_size=12,
)


@given(changes)
def test_any_changes_end_as_if_made_anew(changes: list[tuple[str, str, str]]) -> None:
    """A change adds a subscription, or removes the one of that id."""
    people = [Subscriber("u", prefers=[("s1", "s2")]), Subscriber("v", prefers=[("s2", "s3")])]
    matcher, there = Matcher(people), dict[str, Subscription]()
    for name, subscriber, genre in changes:
        if name in there:
            matcher.remove(name)
            del there[name]
        else:
            there[name] = Subscription(name, subscriber, f"genre = '{genre}'")
            matcher.add(there[name])
        for each, film in product(people, GENRES):
            matcher.top(Event("e", {"genre": film}, 0), 2, each.policy.scorer)
    fresh = Matcher(people, there.values())
    for genre in GENRES:
        event = Event("e", {"genre": genre}, published_at=0)
        assert found(matcher, event) == found(fresh, event)
