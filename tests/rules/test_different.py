"""The rule `different`: nothing that is nearly the same as what was got."""

import pytest
from tests.rules.streams import chooser, delivered, pick

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.different import Different

FIRST = pick("first", "2026-11-10T12:00Z", topic="fire", city="Rome", source="x")
AGAIN = pick("again", "2026-11-11T12:00Z", topic="fire", city="Rome", source="y")
OTHER = pick("other", "2026-11-12T12:00Z", topic="flood", city="Rome", source="z")
LATER = pick("later", "2026-11-17T12:00Z", topic="fire", city="Rome", source="y")


def test_near_events_are_dropped_for_a_time() -> None:
    policy = Policy(rules=[Different(min=0.5)])
    assert delivered(policy, [FIRST, AGAIN, OTHER, LATER], "2026-11-18") == [
        "first 2026-11-10T12:00:00Z",
        "other 2026-11-12T12:00:00Z",
        "later 2026-11-17T12:00:00Z",
    ]


def test_the_reason_names_the_nearest() -> None:
    policy = Policy(rules=[Different(min=0.5)])
    chain = RuleChain(policy.rules, chooser(policy))
    chain.offer([FIRST, AGAIN], 0)
    [verdict] = chain.take_verdicts()
    assert (verdict.event, verdict.fate, verdict.other) == ("again", "dropped", "first")
    assert str(verdict.reason) == (
        "its distance to first, got at 2026-11-10T12:00:00Z, is 0.333333, below 0.5"
    )


def test_what_is_held_has_not_been_got() -> None:
    policy = Policy(rules=["quiet", Different(min=0.5)])
    night = [
        pick("a", "2026-11-15T23:00Z", topic="fire", city="Rome", source="x"),
        pick("b", "2026-11-15T23:30Z", topic="fire", city="Rome", source="y"),
        pick("c", "2026-11-16T08:00Z", topic="fire", city="Rome", source="z"),
    ]
    names = [line.split()[0] for line in delivered(policy, night, "2026-11-17")]
    assert sorted(names) == ["a", "b"]


def test_a_paused_subscriber_gets_nothing_to_compare_with() -> None:
    policy = Policy(rules=[Different(min=0.5)])
    chain = RuleChain(policy.rules, chooser(policy))
    chain.paused = True
    assert len(chain.offer([FIRST], 0)) == 1  # due, and dropped behind the rules
    chain.paused = False
    assert len(chain.offer([AGAIN], 0)) == 1


def test_jaccard_compares_single_values() -> None:
    one = pick("one", "2026-11-10T12:00Z", genre=["drama", "war"])
    two = pick("two", "2026-11-10T13:00Z", genre=["drama", "war", "love"])
    overlap, jaccard = (
        Policy(rules=[Different(0.5, distance=each)]) for each in ("overlap", "jaccard")
    )
    assert len(delivered(overlap, [one, two], "2026-11-11")) == 2
    assert len(delivered(jaccard, [one, two], "2026-11-11")) == 1


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"min": 0}, "min is above 0 and at most 1, not 0"),
        ({"min": 1.5}, "min is above 0 and at most 1"),
        ({"min": "a"}, "min"),
        ({"within": 7}, "within is a duration such as 7d, not 7"),
        ({"within": 2**5_000}, "within is a duration such as 7d, not an integer of 5,001 bits"),
        ({"within": "soon"}, "within"),
        ({"distance": "far"}, "unknown distance 'far'"),
    ],
)
def test_bad_parameters_are_refused(form: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        Policy(rules=[{"name": "different", **form}])


def test_damaged_states_are_refused() -> None:
    state = Different().open(chooser(Policy()))
    event = FIRST.match.event.to_dict()
    for got in ([[1]], [["x", event]], [[2, event], [1, event]], [[1, {}]], None):
        with pytest.raises(InvalidForm):
            state.restore({"got": got})


@pytest.mark.parametrize("ticks", [False, True])
def test_a_longer_time_begins_with_what_the_shorter_one_remembers(ticks: bool) -> None:
    day, week = (
        RuleChain([Different(min=0.5, within=each)], chooser(Policy())) for each in ("1d", "7d")
    )
    day.offer([FIRST], FIRST.at_us)
    if ticks:  # the rule may forget what is too old when it compares
        day.offer([OTHER], OTHER.at_us)
    week.adopt(day, OTHER.at_us)
    again = pick("again", "2026-11-12T13:00Z", topic="fire", city="Rome", source="y")
    assert week.offer([again], again.at_us) == [again]


def test_a_rule_that_is_added_compares_what_is_published_from_then_on() -> None:
    chain = RuleChain([Different(min=0.5)], chooser(Policy()))
    chain.adopt(RuleChain([], chooser(Policy())), FIRST.at_us)
    assert len(chain.offer([FIRST, AGAIN], AGAIN.at_us)) == 2
    again = pick("again", "2026-11-12T13:00Z", topic="fire", city="Rome", source="z")
    restored = RuleChain([Different(min=0.5)], chooser(Policy()))
    restored.restore(chain.snapshot())
    assert restored.offer([again], again.at_us) == []
    assert restored.offer([FIRST], again.at_us) == [FIRST]


def test_an_event_exactly_as_old_as_the_time_does_not_count() -> None:
    state = Different(min=0.5, within="1d").open(chooser(Policy()))
    state.got(FIRST)
    assert AGAIN.at_us - FIRST.at_us == parse_time_us("1970-01-02")
    assert state.offer(AGAIN) == [AGAIN]
