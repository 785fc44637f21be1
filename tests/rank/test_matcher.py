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


def ranked(matcher: Matcher, event: Event = FILM) -> list[tuple[str, float, tuple[str, ...]]]:
    return [(match.subscriber, match.score, match.matched) for match in matcher.matches(event)]


def test_every_ownerthat_wants_an_event_has_one_match() -> None:
    matcher = Matcher(
        [Subscriber("zoe"), Subscriber("addison"), Subscriber("carson")],
        [
            drama("s3", "zoe", 0.2),
            drama("s2", "addison", 0.7),
            Subscription("s1", "addison", "year > 2000", prefrank=0.4),
            Subscription("s4", "carson", "genre = 'comedy'", prefrank=0.9),
        ],
    )
    assert ranked(matcher) == [("addison", 0.7, ("s1", "s2")), ("zoe", 0.2, ("s3",))]


@pytest.mark.parametrize(
    ("scorer", "matched"),
    [("exact", ("whole",)), ("preference", ("whole",)), ("relaxed", ("half", "whole"))],
)
def test_only_partial_scorers_take_what_an_event_touches(
    scorer: str, matched: tuple[str, ...]
) -> None:
    half = Subscription("half", "u", "genre = 'drama' and year = 1999")
    matcher = Matcher([Subscriber("u", Policy(scorer=scorer))], [half, drama("whole", "u")])
    assert ranked(matcher) == [("u", 1.0, matched)]
    matcher.remove("whole")
    left = [("half",)] if "half" in matched else []
    assert [match.matched for match in matcher.matches(FILM)] == left


def test_a_subscription_has_no_effect_before_its_subscriber() -> None:
    matcher = Matcher(subscriptions=[drama("s", "u", 0.5)])
    assert ranked(matcher) == []
    matcher.subscribe(Subscriber("u"))
    assert ranked(matcher) == [("u", 0.5, ("s",))]


def test_duplicate_and_unknown_ids_are_refused() -> None:
    matcher = Matcher([Subscriber("u")], [drama("s", "u")])
    with pytest.raises(InvalidSubscription, match="'s' already exists"):
        matcher.add(drama("s", "other"))
    with pytest.raises(InvalidSubscription, match="no subscription 't'"):
        matcher.remove("t")
    with pytest.raises(InvalidSubscription, match="no subscriber 'other'"):
        matcher.unsubscribe("other")
    assert ranked(matcher) == [("u", 1.0, ("s",))]


def test_a_ownerleaves_with_its_subscriptions() -> None:
    matcher = Matcher([Subscriber("u"), Subscriber("v")], [drama("s", "u"), drama("t", "v")])
    matcher.unsubscribe("u")
    assert list(matcher.subscriptions) == ["t"]
    matcher.subscribe(Subscriber("u"))
    assert [match.subscriber for match in matcher.matches(FILM)] == ["v"]


def test_ranks_follow_changed_preferences_and_subscriptions() -> None:
    """With s over t, t has 1 / 2; with t over r as well, 2 / 3; without s, 1 again."""
    recent = Subscription("t", "u", "year > 2000")
    matcher = Matcher([Subscriber("u")], [drama("s", "u"), recent])
    newer = Event("e2", {"year": 2003}, published_at=0)
    assert ranked(matcher, newer) == [("u", 1.0, ("t",))]
    matcher.subscribe(Subscriber("u", prefers=[("s", "t"), ("t", "r")]))
    assert ranked(matcher, newer) == [("u", 0.5, ("t",))]
    matcher.add(Subscription("r", "u", "genre = 'comedy'"))
    assert ranked(matcher, newer)[0][1] == pytest.approx(2 / 3)
    matcher.remove("s")
    assert ranked(matcher, newer) == [("u", 1.0, ("t",))]


def test_top_includes_subscriptions_without_a_subscriber() -> None:
    matcher = Matcher(
        [Subscriber("u", prefers=[("a", "b")])],
        [drama("b", "u"), drama("a", "u"), drama("c", "unknown")],
    )
    assert matcher.top(FILM, 9, Preference()) == [("a", 1.0), ("c", 1.0), ("b", 0.5)]
    assert matcher.top(FILM, 2, Exact()) == [("a", 1.0), ("b", 1.0)]


GENRES = ("drama", "comedy")
changes = st.lists(
    st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.sampled_from("uv"), st.sampled_from(GENRES)),
    max_size=12,
)


@given(changes)
def test_any_changes_end_like_a_new_matcher(changes: list[tuple[str, str, str]]) -> None:
    """A change adds a subscription, or removes the one of that id."""
    subscribers = [Subscriber("u", prefers=[("s1", "s2")]), Subscriber("v", prefers=[("s2", "s3")])]
    matcher, present = Matcher(subscribers), dict[str, Subscription]()
    for name, subscriber, genre in changes:
        if name in present:
            matcher.remove(name)
            del present[name]
        else:
            present[name] = Subscription(name, subscriber, f"genre = '{genre}'")
            matcher.add(present[name])
        for owner, film in product(subscribers, GENRES):
            matcher.top(Event("e", {"genre": film}, 0), 2, owner.policy.scorer)
    fresh = Matcher(subscribers, present.values())
    for genre in GENRES:
        event = Event("e", {"genre": genre}, published_at=0)
        assert ranked(matcher, event) == ranked(fresh, event)


@pytest.mark.parametrize("index", ["scan", "access"])
def test_matches_are_counted_by_subscription(index: str) -> None:
    subscribers = [Subscriber("u"), Subscriber("v", Policy(scorer="relaxed"))]
    half = Subscription("half", "v", "genre = 'drama' and year = 1999")
    others = [drama("s", "u"), Subscription("never", "u", "year < 0")]
    matcher = Matcher(subscribers, [half, *others], index=index)
    films = [FILM, Event("e2", {"genre": "comedy"}, 1), Event("e3", {"genre": "drama"}, 2)]
    assert matcher.match_counts(films) == {"half": 2, "s": 2, "never": 0}
    assert matcher.match_counts([]) == {"half": 0, "s": 0, "never": 0}


def test_a_plan_names_the_index_and_the_reason() -> None:
    few = Matcher(subscriptions=[Subscription("s", "u", "a = 1")]).describe()
    assert (few.index, few.access, few.targets) == ("scan", None, ())
    assert str(few).startswith("1 subscription, 0 subscribers: the index 'scan', since there are")
    chosen = Matcher(subscriptions=[Subscription("s", "u", "a = 1")], index="access").describe()
    assert chosen.reason == "it was asked for"
    assert chosen.to_dict()["access"]["subscriptions"] == 1
    assert "target by exact: access, since few events were asked for." in str(chosen)
    assert Matcher(index="op").describe().index == "op"


def test_a_plan_says_why_the_scan_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Subscription("s", "u", "a = 1"), Subscription("t", "u", "a = 1")
    for module_limit, value in (("MANY", 2), ("SEVERAL", 1), ("SCANNED", 1), ("BATCHED", 1)):
        monkeypatch.setattr(f"tidings.rank.matcher.{module_limit}", value)
    many, slow, batched = Matcher(subscriptions=[one, two]), Matcher(subscriptions=[one]), Matcher()
    slow.top_many([Event("e", {"a": 1}, 0), Event("f", {"a": 1}, 0)], 1, Exact())
    batched.add(one)
    batched.note_batch(64)
    reasons = [matcher.describe().reason for matcher in (many, slow, batched)]
    wanted = ["there were 2 subscriptions or more", "scans had taken long"]
    assert reasons == [*wanted, "many events came together"]
