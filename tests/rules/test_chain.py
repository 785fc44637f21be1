"""The state machines of rules deliver what the definition delivers."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.streams import MINUTE_US, chooser, pick, picks, policies

from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.plain import RuleChange, plain_rules
from tidings.rules.quota import Quota
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


@given(policies, picks(), st.data())
def test_other_rules_deliver_what_the_definition_delivers(
    policy: Policy, chosen: list[Pick], data: st.DataObject
) -> None:
    end = chosen[-1].at_us + LATER
    chain, due, changes = RuleChain(policy.rules, chooser(policy)), list[Pick](), list[RuleChange]()
    for number, each in enumerate(chosen, start=1):
        until = chosen[number].at_us if number < len(chosen) else end
        now = data.draw(st.integers(each.at_us, until))
        due += chain.offer([each], now)
        for other in data.draw(st.lists(policies, max_size=2)):
            changes.append(RuleChange(number, now, other.rules))
            old, chain = chain, RuleChain(other.rules, chooser(policy))
            chain.adopt(old, now)
            state = json.loads(json.dumps(chain.snapshot()))
            chain.restore(state)
    due += chain.offer([], end)
    assert due == plain_rules(policy.rules, chooser(policy), chosen, end, changes=changes)
    # Of several rules in a row, the last has what the others did before it came.
    verdicts = chain.take_verdicts()
    dropped = {verdict.event: verdict.rule for verdict in verdicts if verdict.fate == "dropped"}
    assert sorted([*(each.match.event.id for each in due), *dropped]) == sorted(
        each.match.event.id for each in chosen
    )
    holds = Counter[tuple[str, str]]()
    for verdict in verdicts:
        holds[verdict.event, verdict.rule] += {"held": 1, "released": -1, "dropped": 0}[
            verdict.fate
        ]
    assert all(
        count == 0 or (count == 1 and dropped.get(event) == rule)
        for (event, rule), count in holds.items()
    )


NIGHT = [pick(f"e{n}", f"2026-11-15T23:{n:02d}Z", n / 10) for n in range(1, 6)]


@pytest.mark.parametrize("diversify", ["none", {"name": "divrank", "sigma": 1.0}])
def test_the_k_best_of_the_night_come_when_its_rule_goes(diversify: object) -> None:
    policy = Policy(k=2, diversify=diversify, rules=["quiet"])
    old, new = RuleChain(policy.rules, chooser(policy)), RuleChain((), chooser(policy))
    assert old.offer(NIGHT[:4], NIGHT[3].at_us) == []
    new.adopt(old, NIGHT[4].at_us)
    due = new.offer([], NIGHT[4].at_us)
    assert sorted(each.match.event.id for each in due) == ["e3", "e4"]
    assert {each.at_us for each in due} == {NIGHT[4].at_us}
    fates = [(verdict.event, verdict.fate) for verdict in new.take_verdicts()]
    for fate, events in (("dropped", ["e1", "e2"]), ("released", ["e3", "e4"])):
        assert sorted(event for event, each in fates if each == fate) == events


def test_a_smaller_quota_gets_the_best_of_what_a_larger_one_held() -> None:
    busy = [pick(f"a{n}", f"2026-11-14T{n:02d}:00Z", 0.9) for n in range(4, 24)]
    policy = Policy(rules=[Quota(3)])
    old, new = RuleChain(policy.rules, chooser(policy)), RuleChain([Quota(1)], chooser(policy))
    old.offer(busy, busy[-1].at_us)
    today = [pick("low", "2026-11-15T01:00Z", 0.1), pick("high", "2026-11-15T02:00Z", 0.5)]
    assert old.offer(today, today[-1].at_us) == []
    new.adopt(old, parse_time_us("2026-11-15T23:59Z"))
    due = new.offer([], parse_time_us("2026-11-17"))
    assert [each.match.event.id for each in due] == ["high"]


def test_what_other_rules_let_pass_is_not_got_in_a_pause() -> None:
    policy = Policy(rules=["quiet", "different"])
    old, new = (RuleChain(rules, chooser(policy)) for rules in (policy.rules, policy.rules[:1]))
    same = [pick(name, f"2026-11-15T23:{name}Z", genre="drama") for name in ("10", "20")]
    old.offer(same[:1], same[0].at_us)
    new.adopt(old, same[0].at_us)
    new.paused = True
    assert len(new.offer([], same[0].at_us)) == 1  # due, and dropped behind the rules
    new.paused = False
    assert len(new.offer(same[1:], same[1].at_us)) == 1


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
    assert [
        (verdict.rule, verdict.fate) for verdict in chain.take_verdicts() if verdict.event == "low"
    ] == [
        ("quota", "held"),
        ("quota", "released"),
        ("quiet", "held"),
        ("quiet", "released"),
    ]
