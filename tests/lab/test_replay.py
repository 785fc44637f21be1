"""Every variant delivers what an engine with that policy alone delivers, and measures the same."""

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.rule_cases import any_rules
from tests.feed.streams import WINDOWS, plain_or_diverse, policies

import tidings.lab.replay as module
from tidings.engine.engine import Engine
from tidings.formats.arrow import deliveries_to_table
from tidings.lab.recording import Recording, read_recording
from tidings.lab.replay import PartTables, replay
from tidings.lab.variants import Variant
from tidings.model.records import Delivery
from tidings.model.values import moment
from tidings.policy import Policy, Subscriber
from tidings.testing import SCORERS, workload

any_window = st.sampled_from(sorted(WINDOWS)).flatmap(WINDOWS.__getitem__)
any_policy = st.builds(
    changed,
    policies(any_window, plain_or_diverse, any_rules),
    scorer=st.sampled_from(SCORERS),
)


def plain_run(
    recording: Recording, variant: Variant, until_us: int | None = None
) -> tuple[Engine, list[Delivery]]:
    """Return an engine that has seen the recording with one policy, and its deliveries."""
    engine = Engine()
    for subscriber in recording.subscribers:
        engine.subscribe(
            Subscriber(
                subscriber.id, variant.policy_of(subscriber), subscriber.prefers, subscriber.paused
            )
        )
    assert engine.add_many(recording.subscriptions) == []
    deliveries = engine.publish_many(recording.events)
    if until_us is not None:
        deliveries += engine.advance(moment(until_us))
    return engine, deliveries


def rows(table: Any, policy: str) -> list[dict[str, Any]]:
    """Return the deliveries of one policy as rows of a table of deliveries."""
    others = ("policy", "score", "published_at")
    kept = [row for row in table.to_pylist() if row["policy"] == policy]
    kept.sort(key=lambda row: (row["subscriber"], row["sequence"]))
    return [{name: row[name] for name in row if name not in others} for row in kept]


def expected(deliveries: Sequence[Delivery]) -> list[dict[str, Any]]:
    ordered = sorted(deliveries, key=lambda each: (each.subscriber, each.sequence))
    table: list[dict[str, Any]] = deliveries_to_table(ordered).to_pylist()
    return table


def recorded(seed: int, events: int = 50, people: int = 5) -> Recording:
    made = workload(seed, events, people)
    people_ = [changed(one, paused=number == 1) for number, one in enumerate(made.subscribers)]
    return read_recording(made.events, made.subscriptions, people_)


def totals(tables: PartTables, policy: str) -> dict[str, Any]:
    kept = [row for row in tables.sums.to_pylist() if row["policy"] == policy]
    return {name: sum(row[name] for row in kept) for name in tables.sums.column_names[2:]}


@settings(max_examples=25)
@given(
    st.integers(0, 5),
    st.lists(any_policy, min_size=1, max_size=3),
    st.sampled_from([3, 16, 4096]),
    st.sampled_from([None, 10**13]),
)
def test_each_variant_delivers_what_an_engine_delivers(
    seed: int, chosen: list[Policy], chunk: int, until_us: int | None
) -> None:
    recording = recorded(seed)
    variants = [Variant("own"), *(Variant(f"p{i}", one) for i, one in enumerate(chosen))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        tables = replay(recording, variants, until_us)
    for variant in variants:
        engine, deliveries = plain_run(recording, variant, until_us)
        assert rows(tables.delivered, variant.name) == expected(deliveries)
        report, sums = engine.quality(), totals(tables, variant.name)
        assert sums["matches"] == report.matches
        assert sums["delivered"] == report.delivered
        assert _mean(sums, "scores", "matches") == pytest.approx(report.mean_score)
        assert _mean(sums, "ranks", "delivered") == pytest.approx(report.mean_rank)
        assert _mean(sums, "distances", "pairs") == pytest.approx(report.diversity)
        assert _mean(sums, "served", "wanted") == pytest.approx(report.coverage)
        age = _mean(sums, "ages_us", "delivered")
        assert age == (report.mean_age_s and pytest.approx(report.mean_age_s * 1e6))
        ruled = [row for row in tables.ruled.to_pylist() if row["policy"] == variant.name]
        fates = dict.fromkeys(("held", "released", "dropped"), 0)
        for row in ruled:
            fates[row["fate"]] += row["count"]
        assert fates == {
            "held": report.held,
            "released": report.released,
            "dropped": report.dropped,
        }


def _mean(sums: dict[str, Any], total: str, count: str) -> float | None:
    return sums[total] / sums[count] if sums[count] else None


def test_common_deliveries_are_counted_for_each_pair() -> None:
    recording = recorded(3)
    names = ["a", "b", "c"]
    variants = [Variant(name, Policy(k=k)) for name, k in zip(names, (1, 2, 30), strict=True)]
    tables = replay(recording, variants)
    sets = {
        name: {(row["subscriber"], row["event"]) for row in rows(tables.delivered, name)}
        for name in names
    }
    assert {(r["first"], r["second"]): r["count"] for r in tables.common.to_pylist()} == {
        (one, other): len(sets[one] & sets[other])
        for one, other in (("a", "b"), ("a", "c"), ("b", "c"))
    }


def test_the_score_of_a_delivery_is_that_of_its_match_before_decay() -> None:
    recording = recorded(1)
    fresh = Policy(k=9, decay={"name": "exponential", "rate": 0.1})
    tables = replay(recording, [Variant("plain", Policy(k=9)), Variant("fresh", fresh)])
    scores = {
        (row["subscriber"], row["event"]): row["rank"] for row in rows(tables.delivered, "plain")
    }
    for row in tables.delivered.to_pylist():
        if (row["subscriber"], row["event"]) in scores:
            assert row["score"] == scores[row["subscriber"], row["event"]]


def test_a_subscriber_whose_scorer_fails_is_set_aside_by_its_policy_only() -> None:
    recording = recorded(2)

    def fails(ranks: Any) -> float:
        raise ValueError("no")

    broken = Policy(scorer={"name": "relaxed", "aggregate": fails})
    tables = replay(recording, [Variant("fine", Policy()), Variant("broken", broken)])
    aside = tables.aside.to_pylist()
    assert {row["policy"] for row in aside} == {"broken"}
    assert "its scorer failed: ValueError: no" in aside[0]["reason"]
    assert rows(tables.delivered, "fine") == expected(
        plain_run(recording, Variant("fine", Policy()))[1]
    )
