"""The state machines of rules deliver what the definition delivers."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.rules.streams import MINUTE_US, chooser, pick, picks, policies

from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.plain import plain_rules
from tidings.window import Pick

LATER = 30 * 1_440 * MINUTE_US


@given(policies, picks(), st.data())
def test_every_split_and_restart_delivers_what_the_definition_delivers(
    policy: Policy, chosen: list[Pick], data: st.DataObject
) -> None:
    end = chosen[-1].at_us + LATER
    expected = plain_rules(policy.rules, chooser(policy), chosen, end)
    chain, due, left = RuleChain(policy.rules, chooser(policy)), list[Pick](), list(chosen)
    while left:
        size = data.draw(st.integers(1, len(left)))
        part, left = left[:size], left[size:]
        until = left[0].at_us if left else part[-1].at_us
        # The clock may tick up to the next pick, or stand still.
        now = data.draw(st.integers(part[-1].at_us, until))
        due += chain.offer(part, now)
        if data.draw(st.booleans()):
            state = json.loads(json.dumps(chain.snapshot()))
            chain = RuleChain(policy.rules, chooser(policy))
            chain.restore(state)
    due += chain.offer([], end)
    assert due == expected
    assert chain.deadline is None


@given(policies, picks())
def test_every_pick_is_delivered_or_has_a_verdict(policy: Policy, chosen: list[Pick]) -> None:
    chain = RuleChain(policy.rules, chooser(policy))
    due = [each.match.event.id for each in chain.offer(chosen, chosen[-1].at_us + LATER)]
    verdicts = chain.take_verdicts()
    dropped = [verdict.event for verdict in verdicts if verdict.fate == "dropped"]
    assert sorted(due + dropped) == sorted(each.match.event.id for each in chosen)
    assert {verdict.event for verdict in verdicts if verdict.fate == "released"} <= {
        verdict.event for verdict in verdicts if verdict.fate == "held"
    }
    assert chain.take_verdicts() == []


@given(policies, picks(), policies)
def test_other_rules_lose_nothing_that_is_held(
    policy: Policy, chosen: list[Pick], other: Policy
) -> None:
    old = RuleChain(policy.rules, chooser(policy))
    due, now = old.offer(chosen, chosen[-1].at_us), chosen[-1].at_us
    old.take_verdicts()
    held = {each.match.event.id for state in old.states for each in state.held()}
    new = RuleChain(other.rules, chooser(policy))
    new.adopt(old, now)
    later = new.offer([], now + LATER)
    known = {verdict.event for verdict in new.take_verdicts() if verdict.fate == "dropped"}
    assert held <= {each.match.event.id for each in later} | known
    assert not {each.match.event.id for each in due} & {each.match.event.id for each in later}


def test_a_quota_released_at_midnight_waits_for_the_end_of_the_quiet_hours() -> None:
    policy = Policy(k=5, rules=["quiet", {"name": "quota", "n": 2}])
    chain = RuleChain(policy.rules, chooser(policy))
    # Four on the first day, so that four are expected on the second.
    first = [pick(f"a{hour}", f"2026-11-14T{hour:02d}:00Z", 0.9) for hour in range(8, 12)]
    chain.offer(first, parse_time_us("2026-11-15T08:00Z"))
    assert chain.offer([pick("low", "2026-11-15T08:00Z", 0.1)], 0) == []
    assert chain.deadline == parse_time_us("2026-11-16T00:00Z")
    [released] = chain.offer([], parse_time_us("2026-11-17T00:00Z"))
    assert released.at_us == parse_time_us("2026-11-16T07:00Z")
    assert [(each.rule, each.fate) for each in chain.take_verdicts() if each.event == "low"] == [
        ("quota", "held"),
        ("quota", "released"),
        ("quiet", "held"),
        ("quiet", "released"),
    ]
