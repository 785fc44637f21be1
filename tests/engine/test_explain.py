"""Why an event was delivered, or why not."""

import pytest

from tidings import (
    Different,
    Engine,
    Event,
    Policy,
    Quiet,
    Quota,
    Relaxed,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)


@pytest.fixture
def engine() -> Engine:
    engine = Engine(remember=3)
    engine.subscribe(Subscriber("addison", Policy(k=1, window=Sliding(10))))
    engine.add(Subscription("s1", "addison", where="genre = 'drama'", prefrank=0.7))
    engine.add(
        Subscription("s2", "addison", where="genre = 'drama' and year >= 2003", prefrank=0.9)
    )
    return engine


def film(name: str, genre: str, year: int, at: int) -> Event:
    return Event(name, {"genre": genre, "year": year}, published_at=at)


def test_a_delivered_event_is_explained_by_what_holds(engine: Engine) -> None:
    engine.publish(film("e1", "drama", 2004, 0))
    found = engine.explain("addison", "e1")
    assert found.rank == 0.9
    assert found.delivery is not None
    assert found.delivery.position == 1
    assert [(reason.subscription, reason.matched, reason.score) for reason in found.reasons] == [
        ("s1", True, 0.7),
        ("s2", True, 0.9),
    ]
    assert found.reasons[1].holds == ("genre = 'drama'", "year >= 2003")
    assert str(found).startswith("e1 for addison: delivered with rank 0.9, at position 1\n")


def test_an_event_that_lost_says_its_rank(engine: Engine) -> None:
    engine.publish(film("e1", "drama", 2004, 0))
    engine.publish(film("e2", "drama", 1990, 1))
    found = engine.explain("addison", "e2")
    assert (found.rank, found.delivery) == (0.7, None)
    assert [str(each) for each in found.reasons[1].fails] == [
        "year >= 2003 (year is 1990, a number)"
    ]
    assert str(found).startswith(
        "e2 for addison: rank 0.7, not delivered yet: its window is open, and so far others rank "
        "higher\n  first of 1"
    )


def test_an_event_that_nothing_wants_says_what_failed(engine: Engine) -> None:
    found = engine.explain("addison", film("e3", "horror", 2004, 0))
    assert found.rank is None
    assert found.reasons[0].fails[0].to_dict() == {
        "predicate": "genre = 'drama'",
        "attribute": "genre",
        "value": "horror",
        "type": "string",
        "hint": None,
    }
    assert found.to_dict()["delivery"] is None
    assert "no subscription matches" in str(found)


def test_only_the_last_events_are_remembered(engine: Engine) -> None:
    for number in range(4):
        engine.publish(film(f"e{number}", "drama", 2000 + number, number))
    assert engine.explain("addison", "e1").rank == 0.7
    with pytest.raises(TidingsError, match="'e0' is not remembered"):
        engine.explain("addison", "e0")
    with pytest.raises(TidingsError, match="no subscriber 'bob'"):
        engine.explain("bob", "e1")


def offers() -> Engine:
    engine = Engine()
    for name, score in {"a": 3, "b": 2, "c": 2, "d": 1}.items():
        engine.add(Subscription(name, "shop", where="age between 20 and 30", score=score))
    engine.add(Subscription("e", "shop", where="age > 50 and town = 'Ulm'", score=9))
    return engine


@pytest.mark.parametrize(
    ("name", "position", "lacking"), [("a", 1, 0), ("b", 2, 0), ("c", 3, 0), ("d", 4, 1)]
)
def test_a_placement_says_what_is_lacking(name: str, position: int, lacking: float) -> None:
    visitor = Event("visitor", {"age": 25, "town": "Ulm"}, published_at=0)
    found = offers().explain_target(name, visitor, k=2)
    assert (found.position, found.kth_score, found.lacking) == (position, 2, lacking)
    assert ("of the best 2, with" in str(found)) == (position <= 2)
    assert ("it lacks 1" in str(found)) == (name == "d")
    assert ("it ties, and smaller ids go first" in str(found)) == (name == "c")


def test_a_subscription_without_a_place_says_what_failed() -> None:
    visitor = Event("visitor", {"age": 25, "town": "Ulm"}, published_at=0)
    found = offers().explain_target("e", visitor, k=2)
    assert (found.score, found.position, found.lacking) == (None, None, None)
    assert found.reason.holds == ("town = 'Ulm'",)
    assert [each.predicate for each in found.reason.fails] == ["age > 50"]
    assert "no position, since it does not match; the last of the best 2 has 2\n" in str(found)
    assert "has" not in str(offers().explain_target("e", visitor, k=9)).splitlines()[0]
    assert found.to_dict()["reason"]["fails"][0]["value"] == 25
    with pytest.raises(TidingsError, match="no subscription 'z'"):
        offers().explain_target("z", visitor)


def test_fewer_than_k_leave_nothing_to_lack() -> None:
    visitor = Event("visitor", {"age": 25}, published_at=0)
    found = offers().explain_target("d", visitor, k=10)
    assert (found.position, found.kth_score, found.lacking) == (4, None, 0)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("dst = 'MIA'", "dst = 'MIA' (there is no dst; did you mean dest?)"),
        ("Dest = 'MIA'", "Dest = 'MIA' (there is no Dest; did you mean dest?)"),
        ("dest = 5", "dest = 5 (dest is 'ORD', a string; write dest = '5')"),
        ("dest = 'MIA'", "dest = 'MIA' (dest is 'ORD', a string)"),
        ("distance > '500'", "distance > '500' (distance is 733, a number; write distance > 500)"),
        ("departs > '2013-01-01'", "write departs > timestamp '2013-01-01T00:00:00Z')"),
        ("departs > '2013-01-01'", "(departs is 2013-01-02T00:00:00Z, a time; "),
        ("tags = 'c'", "tags = 'c' (tags is ['a', 'b'], a list of strings)"),
        ("gone = 1", "gone = 1 (there is no gone)"),
    ],
)
def test_a_predicate_that_fails_stands_beside_what_the_event_has(
    condition: str, words: str
) -> None:
    engine = Engine()
    engine.subscribe(Subscriber("ann"))
    engine.add(Subscription("s1", "ann", where=condition))
    departs = {"time": "2013-01-02T00:00:00Z"}
    attributes = {"dest": "ORD", "distance": 733, "departs": departs, "tags": ["a", "b"]}
    event = Event("e1", attributes, published_at=0)
    assert words in str(engine.explain("ann", event).reasons[0].fails[0])
    assert words in str(engine.explain_target("s1", event))


def test_a_subscriber_that_is_set_aside_is_told() -> None:
    def fails(_: object) -> float:
        raise RuntimeError("no")

    engine = Engine()
    engine.subscribe(Subscriber("ann", Policy(scorer=Relaxed(aggregate=fails))))
    engine.add(Subscription("s1", "ann", where="x = 1"))
    engine.publish(Event("e1", {"x": 1}, published_at=0))
    assert "set aside" in str(engine.explain("ann", "e1").note)


def ruled(*rules: object, feeds: str = "table", k: int = 10, remember: int = 10_000) -> Engine:
    """Return an engine whose subscriber ranks events by their attribute r, and has rules."""
    engine = Engine(feeds=feeds, remember=remember)
    engine.subscribe(Subscriber("ann", Policy(k=k, rules=rules)))
    for rank in range(1, 10):
        engine.add(Subscription(f"r{rank}", "ann", where=f"r = {rank}", prefrank=rank / 10))
    return engine


def at_hour(hour: float, name: str, rank: int, **more: str) -> Event:
    return Event(name, {"r": rank, "name": name, **more}, published_at=hour * 3600)


BOTH = pytest.mark.parametrize("feeds", ["plain", "table"])


@BOTH
def test_what_different_drops_names_the_near_one_and_the_distance(feeds: str) -> None:
    engine = ruled(Different(min=0.6), feeds=feeds)
    engine.publish_many([at_hour(1, "a", 5, genre="war"), at_hour(2, "b", 5, genre="war")])
    found = engine.explain("ann", "b")
    assert str(found).startswith(
        "b for ann: rank 0.5, dropped by different\n"
        "  dropped by different at 1970-01-01T02:00:00Z: its distance to a, got at "
        "1970-01-01T01:00:00Z, is 0.333333, below 0.6\n"
    )
    assert (found.rules[0].other, found.standing, found.note) == ("a", None, None)


@BOTH
def test_what_quota_holds_names_the_figures_and_what_took_its_place(feeds: str) -> None:
    engine = ruled(Quota(1, per="day"), feeds=feeds)
    # The first day has 4 choices with the ranks .9 .8 .7 .6; a quarter into the second day, 3 are
    # expected, of which 3/4 rank above .6.
    first = [at_hour(hour, f"a{hour}", 9 - hour) for hour in range(4)]
    engine.publish_many([*first, at_hour(30, "b", 6)])
    held = engine.explain("ann", "b")
    assert str(held).startswith(
        "b for ann: rank 0.6, not delivered yet: held by quota until 1970-01-03T00:00:00Z\n"
        "  held by quota at 1970-01-02T06:00:00Z until 1970-01-03T00:00:00Z: 2.25 better ones are "
        "expected, with 1 left of the quota\n"
    )
    engine.publish(at_hour(47, "c", 9))
    displaced = engine.explain("ann", "b")
    assert [(rule.fate, rule.other) for rule in displaced.rules] == [
        ("held", None),
        ("dropped", "c"),
    ]
    assert str(displaced.rules[1].reason) == "c took the last of the quota"
    spent = engine.explain("ann", "a3")
    assert str(spent.rules[0].reason) == (
        "1 has passed in the period that ends at 1970-01-02T00:00:00Z"
    )


@BOTH
def test_a_delivered_event_shows_where_it_was_held(feeds: str) -> None:
    engine = ruled(Quiet("22:00", "07:00"), feeds=feeds, k=1)
    engine.publish_many([at_hour(23, "a", 5), at_hour(24, "b", 7)])
    (delivery,) = engine.advance(31 * 3600)
    found = engine.explain("ann", "b")
    assert found.delivery == delivery
    assert str(found).startswith(
        "b for ann: delivered with rank 0.7, at position 1\n"
        "  held by quiet at 1970-01-02T00:00:00Z until 1970-01-02T07:00:00Z: the hours are quiet\n"
        "  released by quiet at 1970-01-02T07:00:00Z: the quiet hours ended, and it was among the "
        "best of them\n"
    )
    assert [each["fate"] for each in found.to_dict()["rules"]] == ["held", "released"]
    lost = engine.explain("ann", "a").rules[-1]
    assert str(lost.reason) == "the quiet hours held better ones: b"


def test_what_passes_rules_or_was_never_chosen_is_explained_as_without_them() -> None:
    engine = ruled(Quota(5), k=1)
    engine.publish_many([at_hour(1, "a", 5), at_hour(2, "b", 4)])
    assert engine.explain("ann", "a").rules == ()
    assert str(engine.explain("ann", "a")).startswith("a for ann: delivered with rank 0.5")
    standing = engine.explain("ann", "b").standing
    assert standing is not None
    assert standing.verdict == "not delivered: others rank higher"


def test_the_pause_of_a_released_event_is_named_after_its_rules() -> None:
    engine = ruled(Quiet("22:00", "07:00"))
    engine.publish(at_hour(23, "a", 5))
    engine.pause("ann")
    assert engine.advance(31 * 3600) == []
    found = engine.explain("ann", "a")
    assert "dropped when it was due: the subscriber is paused" in str(found)
    assert [rule.fate for rule in found.rules] == ["held", "released"]


def test_forgotten_events_and_other_subscriptions_limit_the_answer() -> None:
    engine = ruled(Quota(1, pick="first"), remember=4)
    engine.publish_many([at_hour(hour, f"a{hour}", 5) for hour in range(5)])
    assert engine.explain("ann", "a4").note == (
        "its rules may have counted older events, which are no longer remembered"
    )
    engine.remove("r5")
    engine.publish(at_hour(5, "a5", 4))
    assert engine.explain("ann", "a5").note == (
        "its subscriptions or rules have changed; this is by the present ones"
    )


def test_what_rules_did_before_they_were_replaced_is_explained_by_the_old_ones() -> None:
    engine = ruled(Quota(1, pick="first"))
    engine.publish_many([at_hour(1, "a", 5), at_hour(2, "b", 4)])
    engine.replace(Subscriber("ann", Policy(rules=[Quota(2, pick="first"), Quiet("20:00")])))
    engine.publish_many([at_hour(3, "c", 3), at_hour(4, "d", 2), at_hour(24, "e", 1)])
    engine.replace(Subscriber("ann", Policy()))
    waiting = engine.explain("ann", "e")
    assert waiting.outcome == "held"
    assert waiting.fate == "not delivered yet: released by quiet, and due as time goes on"
    engine.advance(25 * 3600)
    found = {name: engine.explain("ann", name) for name in "abcde"}
    assert {name: (one.outcome, one.note) for name, one in found.items()} == {
        "a": ("delivered", None),
        "b": ("dropped", None),
        "c": ("delivered", None),
        "d": ("dropped", None),
        "e": ("delivered", None),
    }
    assert str(found["b"].rules[-1].reason).startswith("1 has passed in the period")
    assert str(found["d"].rules[-1].reason).startswith("2 have passed in the period")
    assert [verdict.fate for verdict in found["e"].rules] == ["held", "released"]
    assert str(found["e"].rules[-1].reason) == "the rules were replaced"


def test_a_pause_leaves_what_rules_did_explained() -> None:
    engine = ruled(Different(min=0.6, within="7d"))
    engine.publish(at_hour(1, "a", 5))
    engine.pause("ann")
    engine.publish(at_hour(2, "b", 4))
    engine.resume("ann")
    engine.publish_many([at_hour(3, "c", 4), at_hour(4, "d", 5), at_hour(5, "e", 4)])
    assert [engine.explain("ann", name).outcome for name in "abcde"] == [
        *("delivered", "dropped", "delivered", "dropped", "dropped")
    ]
    assert [engine.explain("ann", name).rules[-1].other for name in "de"] == ["a", "c"]


def test_very_many_changes_of_rules_are_not_remembered() -> None:
    engine = ruled(Quota(1, pick="first"))
    engine.publish_many([at_hour(1, "a", 5), at_hour(2, "b", 4)])
    for _ in range(501):
        engine.pause("ann")
        engine.resume("ann")
    assert engine.explain("ann", "b").note == (
        "its subscriptions or rules have changed; this is by the present ones"
    )
