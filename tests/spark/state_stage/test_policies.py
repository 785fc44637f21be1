"""Subscribers that leave or change their policies during a stream, against the engine."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, rows, sent
from tests.spark.state_stage.test_bucket import Packed, run_batch

from tidings import Different, Engine, Event, Quiet, Quota
from tidings.index_files.manifest import RefusedRecord
from tidings.index_files.overlay_matcher import in_memory_matcher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.stage import match_by_bucket
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import Tick

NAMES = "uvw"
any_policy = st.one_of(*(policies(window, plain_or_diverse) for window in WINDOWS.values()))


@dataclass
class ChangingPolicies:
    """Policies that count their changes."""

    policies: dict[str, Policy] = field(default_factory=dict)
    version: int = 0
    forgetful: bool = False
    changed: dict[str, int] = field(default_factory=dict)
    refused: Sequence[RefusedRecord] = ()
    paused: set[str] = field(default_factory=set)

    def policy(self, name: str) -> Policy | None:
        return self.policies.get(name)

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        return [*map(self.policies.get, names)]

    @property
    def some_paused(self) -> bool:
        return bool(self.paused)

    def is_paused(self, name: str) -> bool:
        return name in self.paused

    def changed_since(self, version: int) -> set[str] | None:
        if self.forgetful:
            return None
        return {name for name, at in self.changed.items() if at > version}

    def change(self, name: str, policy: Policy | None) -> None:
        self.version += 1
        self.changed[name] = self.version
        if policy is None:
            del self.policies[name]
        else:
            self.policies[name] = policy


def owned(name: str) -> list[Subscription]:
    places = enumerate(("a", "b"), start=1)
    return [Subscription(f"{name}{x}", name, where=f"x = '{x}'", prefrank=n / 3) for n, x in places]


class Both:
    """An engine and a bucket, packed after each batch, with the same subscribers."""

    def __init__(self, policies: dict[str, Policy], *, forgetful: bool) -> None:
        self.engine, self.matcher = Engine(), Matcher()
        self.policies = ChangingPolicies(forgetful=forgetful)
        self.states: dict[int, Packed] = {}
        self.expected: dict[str, Any] = {}
        self.tables: list[Any] = []
        for name, policy in policies.items():
            self.change(name, policy)

    def change(self, name: str, policy: Policy | None) -> None:
        enrolled = name in self.policies.policies
        if policy is None:
            self.engine.unsubscribe(name)
            self.matcher.unsubscribe(name)
        elif enrolled:
            self.engine.replace(Subscriber(name, policy))
            self.matcher.subscribe(Subscriber(name, policy))
        else:
            self.engine.subscribe(Subscriber(name, policy))
            self.matcher.subscribe(Subscriber(name, policy))
            for subscription in owned(name):
                self.engine.add(subscription)
                self.matcher.add(subscription)
        self.policies.change(name, policy)

    def publish(self, events: list[Event]) -> None:
        self._note(self.engine.publish_many(events))
        self._run(*sent(self.matcher, events, NAMES))

    def pause(self, name: str, *, paused: bool) -> None:
        (self.engine.pause if paused else self.engine.resume)(name)
        (self.policies.paused.add if paused else self.policies.paused.discard)(name)

    def end(self, at: int) -> None:
        self._note(self.engine.advance(at))
        self._run([], [Tick(at * 1_000_000, 0)])

    def _note(self, delivered: Any) -> None:
        for delivery in delivered:
            self.expected.setdefault(delivery.subscriber, []).append(delivery.to_dict())

    def _run(self, batches: Any, ticks: Any) -> None:
        self.tables += run_batch(self.states, 0, Bucket(self.policies), (batches, ticks))


@settings(max_examples=60)
@given(data=st.data())
def test_changes_between_batches_have_the_effect_they_have_in_the_engine(
    data: st.DataObject,
) -> None:
    drawn = {name: data.draw(any_policy) for name in NAMES}
    both = Both(drawn, forgetful=data.draw(st.booleans()))
    at = 0
    for turn in range(data.draw(st.integers(1, 6))):
        events = []
        for place in range(data.draw(st.integers(1, 5))):
            at += data.draw(st.sampled_from([0, 1, 3]))
            number = 10 * turn + place + 1
            value = {"x": data.draw(st.sampled_from("abc"))}
            events.append(Event(f"e{number:03}", value, at, number))
        both.publish(events)
        name = data.draw(st.sampled_from(NAMES))
        enrolled = name in both.policies.policies
        policy = data.draw(st.none() | any_policy) if enrolled else data.draw(any_policy)
        if data.draw(st.booleans()):
            both.change(name, policy)
        for enrolled_name in both.policies.policies:
            both.pause(enrolled_name, paused=data.draw(st.booleans()))
    both.end(10**6)
    assert deliveries(both.tables) == both.expected


SLIDING = Policy(window={"name": "sliding", "length": 3})
DIVERSE = Policy(window={"name": "sliding", "length": 3}, diversify="divrank")
HISTORY = Policy(window={"name": "history", "length": 3})
LATE = BucketSettings(lateness_us=10_000_000)


def after_waiting(before: dict[str, Policy], name: str, policy: Policy | None) -> Any:
    """Return the outcomes of waiting matches after the policy of one subscriber changed."""
    policies, event = ChangingPolicies(before), Event("e", {"x": "a"}, 0, 1)
    bundles = bundle_subscribers(
        (Subscriber(each, held) for each, held in before.items()),
        (subscription for name in before for subscription in owned(name)),
    )
    bucket = Bucket(policies, LATE)
    waiting = match_by_bucket(in_memory_matcher(bundles), [event], 1, prune=False).batches[0]
    assert not deliveries([bucket.run([waiting], [Tick(0, 1)])])
    blob = bucket.pack()
    policies.change(name, policy)
    again = Bucket(policies, LATE)
    again.unpack(blob, bucket.clock)
    return again.run([], [Tick(20_000_000, 1)])


def test_waiting_matches_of_a_removed_subscriber_are_dropped() -> None:
    table = after_waiting({"u": SLIDING, "v": SLIDING}, "u", None)
    assert deliveries([table]).keys() == {"v"}
    assert [row["subscriber"] for row in rows(table, "account")] == ["v"]


@pytest.mark.parametrize("now", [DIVERSE, HISTORY])
def test_matches_that_arrived_without_attributes_are_not_compared(now: Policy) -> None:
    table = after_waiting({"u": SLIDING, "v": SLIDING}, "u", now)
    assert [row["subscriber"] for row in rows(table, "account")] == ["v"]


def test_a_new_rule_takes_waiting_matches_of_which_only_the_id_is_known() -> None:
    """They pass `different`, and what is published after the change is not compared with them."""
    policies, twin = ChangingPolicies({"u": SLIDING}), {"x": "a", "y": 1}
    bundles = bundle_subscribers([Subscriber("u", SLIDING)], owned("u"))
    bucket = Bucket(policies, LATE)
    old = match_by_bucket(in_memory_matcher(bundles), [Event("e1", twin, 0, 1)], 1, prune=False)
    assert not deliveries([bucket.run([old.batches[0]], [Tick(0, 1)])])
    blob = bucket.pack()
    ruled = replace(SLIDING, rules=[Different(min=0.5)])
    policies.change("u", ruled)
    again = Bucket(policies, LATE)
    again.unpack(blob, bucket.clock)
    bundles = bundle_subscribers([Subscriber("u", ruled)], owned("u"))
    events = [Event("e2", twin, 5, 2), Event("e3", twin, 6, 3)]
    new = match_by_bucket(in_memory_matcher(bundles), events, 1, prune=False)
    table = again.run([new.batches[0]], [Tick(30_000_000, 3)])
    assert [delivery["event"] for delivery in deliveries([table])["u"]] == ["e1", "e2"]
    [dropped] = rows(table, "dropped")
    assert dropped["event"] == "e3"


def test_matches_that_arrived_with_attributes_are_taken_by_a_new_policy() -> None:
    table = after_waiting({"u": SLIDING, "v": DIVERSE}, "u", DIVERSE)
    assert deliveries([table]).keys() == {"u", "v"}


def test_the_version_of_listed_policies_is_a_fingerprint() -> None:
    one, other = Policy(k=1), Policy(k=2)
    before = {name: Subscriber(name, one) for name in "uv"}
    same = {name: Subscriber(name, Policy(k=1, scorer="exact")) for name in "vu"}
    changed = before | {"v": Subscriber("v", other)}
    assert ListedPolicies.of(before).version == ListedPolicies.of(same).version
    assert ListedPolicies.of(before).version != ListedPolicies.of(changed).version
    assert ListedPolicies.of(before).version != ListedPolicies.of({"u": before["u"]}).version
    assert ListedPolicies.of(before).policy("u") is one
    assert ListedPolicies.of(before).policy("x") is None
    assert ListedPolicies.of(before).changed_since(0) is None


def test_what_is_due_while_paused_is_an_outcome_with_the_reason() -> None:
    both = Both({name: Policy() for name in NAMES}, forgetful=False)
    both.pause("u", paused=True)
    both.publish([Event("e1", {"x": "a"}, 0, 1)])
    both.end(10)
    rows = pa.concat_tables(both.tables).to_pylist()
    dropped = [row for row in rows if row["kind"] == "dropped"]
    assert [(row["subscriber"], row["event"]) for row in dropped] == [("u", "e1")]
    assert dropped[0]["reason"] == "the subscriber is paused"
    assert both.engine.quality().dropped == 1
    assert deliveries(both.tables) == both.expected


def test_what_rules_do_is_counted_as_the_engine_counts_it() -> None:
    rules = [Quota(1, per="10s", pick="first"), Quiet("00:00:30", "00:01:00")]
    both = Both({name: Policy(rules=rules) for name in NAMES}, forgetful=False)
    both.publish([Event(f"e{n}", {"x": "a"}, 7 * n, n) for n in range(1, 6)])
    both.end(61)
    quality, rows = both.engine.quality(), pa.concat_tables(both.tables).to_pylist()
    sums = {
        kind: sum(row["position"] for row in rows if row["kind"] == kind)
        for kind in ("held", "released")
    }
    dropped = [row["reason"].partition(":")[0] for row in rows if row["kind"] == "dropped"]
    assert (
        sums == {"held": quality.held, "released": quality.released} == {"held": 3, "released": 3}
    )
    assert quality.dropped_by == {"quota": 3}
    assert dropped == 3 * ["quota"]
    assert deliveries(both.tables) == both.expected


def test_paused_subscribers_travel_with_their_policies() -> None:
    policies = ListedPolicies.of({"u": Subscriber("u", paused=True), "v": Subscriber("v")})
    copy = pickle.loads(pickle.dumps(policies))
    assert [copy.is_paused(name) for name in "uvw"] == [True, False, False]
