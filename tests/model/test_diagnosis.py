"""Subscriptions compared with events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Event, Subscription
from tidings.model import diagnosis as module
from tidings.model.diagnosis import diagnose
from tidings.model.profile import Profile

EVENT = Event("e1", {"dest": "MIA", "distance": 1089}, published_at=0)


def profile_of(*events: Event) -> Profile:
    profile = Profile()
    for event in events:
        profile.add(event)
    return profile


def subscriptions(*conditions: str) -> list[Subscription]:
    return [Subscription(f"s{n}", "ann", where=text) for n, text in enumerate(conditions, start=1)]


def test_columns_that_were_renamed_are_told() -> None:
    found = diagnose(subscriptions("departs > '2013-01-01'", "ref = 'x'"), profile_of(EVENT))
    renamed = {"departs": "published_at", "ref": "ref_"}
    first, second = found.with_renamed(renamed).findings
    assert first.advice.startswith("the config reads departs as published_at; add departs = ")
    assert second.advice == "the config reads ref as ref_"
    assert found.with_renamed({}) == found


def test_findings_are_grouped_and_counted() -> None:
    found = diagnose(
        subscriptions(
            *("dst = 'MIA'", "dst = 'ORD' and dest = 'MIA'", "dest = 5", "dest = 6 or dest = 7"),
            *("dest = 'MAI'", "dest = 'MIA'", "dest = 'MAI' and distance > 5"),
        ),
        profile_of(EVENT),
    )
    assert (found.events, found.subscriptions, found.unmatched) == (1, 7, None)
    assert found.counts == {"attribute": 1, "type": 1, "value": 1}
    assert found.lines == [
        "dst = 'MIA': no event has the attribute dst; did you mean dest? (2 subscriptions: s1, s2)",
        "dest = 5: dest holds strings, not numbers; write dest = '5' (2 subscriptions: s3, s4)",
        "dest = 'MAI': no event has such a value; did you mean 'MIA'? (2 subscriptions: s5, s7)",
    ]
    assert found.summary == "7 subscriptions, 1 event: check these conditions"
    assert [finding.flaw for finding in found.only("type").findings] == ["type"]
    assert len(found.only("value").lines) == 1
    form = found.to_dict()
    assert form["findings"][0]["subscriptions"] == ["s1", "s2"]
    assert form["findings"][0]["flaw"] == "attribute"


def test_many_findings_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FINDINGS", 2)
    wanted = subscriptions(*(f"a{n} = 1" for n in range(5)), *["b = 1"] * 9)
    found = diagnose(wanted, profile_of(EVENT), matched=set())
    assert found.lines == [
        "b = 1: no event has the attribute b (9 subscriptions: s6, s7, s8, ...)",
        "a0 = 1: no event has the attribute a0 (1 subscription: s1)",
        "... and 4 more of this kind",
    ]
    few = diagnose(wanted, profile_of(EVENT, EVENT), matched=set(), tried=1)
    assert few.summary.startswith("14 subscriptions, 2 events: none of 1 tried matched 14")
    assert found.summary == (
        "14 subscriptions, 1 event: none matched 14 subscriptions: s1, s2, s3, ..."
    )


def test_what_has_matched_is_settled_unless_parts_of_it_may_match() -> None:
    wanted = subscriptions("gone = 1", "gone = 1 or dest = 'MIA'", "dest = 'ORD' or gone = 'x'")
    profile = profile_of(EVENT)
    found = diagnose(wanted, profile, matched={"s1", "s2", "s3"})
    assert (found.unmatched, found.examples) == (0, ())
    assert [finding.subscriptions for finding in found.findings] == [("s2", "s3")]
    parts = diagnose(wanted[:1], profile, {"s1"}, counts_parts=lambda _: True)
    assert len(parts.findings) == 1
    assert not diagnose(wanted[:1], profile, {"s1"})
    assert str(diagnose(wanted[:1], profile, {"s1"})) == (
        "1 subscription, 1 event: nothing to report"
    )


VALUES = st.sampled_from([1, 2, "a", "b"])
CONDITIONS = st.lists(
    st.sampled_from(["x = 1", "x = 'a'", "y = 2", "x = 3 or y = 'b'", "z = 1 and x = 1"]),
    max_size=module.NAMED,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["x", "y"]), VALUES), max_size=4),
    CONDITIONS,
)
def test_a_subscription_without_a_finding_has_only_predicates_that_held(
    attributes: list[dict[str, Any]], conditions: list[str]
) -> None:
    events = [Event(f"e{n}", values, published_at=n) for n, values in enumerate(attributes)]
    wanted = subscriptions(*conditions) if any(attributes) else []
    matched = {each.id for each in wanted if any(each.matches(event) for event in events)}
    found = diagnose(wanted, profile_of(*events), matched)
    named = {name for finding in found.findings for name in finding.subscriptions}
    for each in wanted:
        parts = [part for conj in each.conjunctions for part in conj]
        fails = any(not any(part.holds(event.tokens) for event in events) for part in parts)
        assert fails == (each.id in named) or (each.id in matched and fails)
    assert found.unmatched == len(wanted) - len(matched)
