"""Who goes and whose policy changes while a stream runs: the engine says what that means."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, rows, sent
from tests.spark.state_stage.test_bucket import Kept, taken

from tidings import Engine, Event
from tidings.index_files.overlay_matcher import in_memory_matcher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.bucketize import addressed
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.policies import roster

NAMES = "uvw"
any_policy = st.one_of(*(policies(each, plain_or_diverse) for each in WINDOWS.values()))


@dataclass
class Changing:
    """A roster that counts its changes."""

    policies: dict[str, Policy] = field(default_factory=dict)
    version: int = 0
    forgetful: bool = False
    changed: dict[str, int] = field(default_factory=dict)

    def policy(self, name: str) -> Policy | None:
        return self.policies.get(name)

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


def wanted(name: str) -> list[Subscription]:
    places = enumerate(("a", "b"), start=1)
    return [Subscription(f"{name}{x}", name, where=f"x = '{x}'", prefrank=n / 3) for n, x in places]


class Both:
    """The engine and a bucket, which is packed away after each batch, side by side."""

    def __init__(self, people: dict[str, Policy], *, forgetful: bool) -> None:
        self.engine, self.matcher = Engine(), Matcher()
        self.roster = Changing(forgetful=forgetful)
        self.kept: dict[int, Kept] = {}
        self.due: dict[str, Any] = {}
        self.found: list[Any] = []
        for name, policy in people.items():
            self.change(name, policy)

    def change(self, name: str, policy: Policy | None) -> None:
        known = name in self.roster.policies
        if policy is None:
            self.engine.unsubscribe(name)
            self.matcher.unsubscribe(name)
        elif known:
            self.engine.replace(Subscriber(name, policy))
            self.matcher.subscribe(Subscriber(name, policy))
        else:
            self.engine.subscribe(Subscriber(name, policy))
            self.matcher.subscribe(Subscriber(name, policy))
            for each in wanted(name):
                self.engine.add(each)
                self.matcher.add(each)
        self.roster.change(name, policy)

    def publish(self, events: list[Event]) -> None:
        self._note(self.engine.publish_many(events))
        self._run(*sent(self.matcher, events, NAMES))

    def end(self, at: int) -> None:
        self._note(self.engine.advance(at))
        self._run([], [Tick(at * 1_000_000, 0)])

    def _note(self, made: Any) -> None:
        for each in made:
            self.due.setdefault(each.subscriber, []).append(each.to_dict())

    def _run(self, parcels: Any, ticks: Any) -> None:
        self.found += taken(self.kept, 0, Bucket(self.roster), (parcels, ticks))


@settings(max_examples=60)
@given(data=st.data())
def test_changes_between_batches_mean_what_they_mean_to_the_engine(data: st.DataObject) -> None:
    people = {name: data.draw(any_policy) for name in NAMES}
    both = Both(people, forgetful=data.draw(st.booleans()))
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
        there = name in both.roster.policies
        policy = data.draw(st.none() | any_policy) if there else data.draw(any_policy)
        if data.draw(st.booleans()):
            both.change(name, policy)
    both.end(10**6)
    assert deliveries(both.found) == both.due


SLIDING = Policy(window={"name": "sliding", "length": 3})
DIVERSE = Policy(window={"name": "sliding", "length": 3}, diversify="divrank")
HISTORY = Policy(window={"name": "history", "length": 3})
LATE = Terms(lateness_us=10_000_000)


def after_waiting(before: dict[str, Policy], name: str, policy: Policy | None) -> Any:
    """Let a match of each wait, change the policy of one, and let time pass; give outcomes."""
    people, event = Changing(before), Event("e", {"x": "a"}, 0, 1)
    crowd = bundle_subscribers(
        (Subscriber(each, held) for each, held in before.items()),
        (wish for each in before for wish in wanted(each)),
    )
    bucket = Bucket(people, LATE)
    waits = addressed(in_memory_matcher(crowd), [event], 1, prune=False).parcels[0]
    assert not deliveries([bucket.run([waits], [Tick(0, 1)])])
    blob = bucket.pack()
    people.change(name, policy)
    again = Bucket(people, LATE)
    again.unpack(blob, bucket.pulse)
    return again.run([], [Tick(20_000_000, 1)])


def test_matches_that_wait_for_somebody_who_went_are_let_go() -> None:
    found = after_waiting({"u": SLIDING, "v": SLIDING}, "u", None)
    assert deliveries([found]).keys() == {"v"}
    assert [row["subscriber"] for row in rows(found, "account")] == ["v"]


@pytest.mark.parametrize("now", [DIVERSE, HISTORY])
def test_matches_that_came_without_attributes_are_not_compared(now: Policy) -> None:
    found = after_waiting({"u": SLIDING, "v": SLIDING}, "u", now)
    assert [row["subscriber"] for row in rows(found, "account")] == ["v"]


def test_matches_that_came_with_attributes_are_taken_by_a_new_policy_that_compares() -> None:
    found = after_waiting({"u": SLIDING, "v": DIVERSE}, "u", DIVERSE)
    assert deliveries([found]).keys() == {"u", "v"}


def test_the_version_of_a_dict_is_that_of_its_policies() -> None:
    one, other = Policy(k=1), Policy(k=2)
    people = {name: Subscriber(name, one) for name in "uv"}
    same = {name: Subscriber(name, Policy(k=1, scorer="exact")) for name in "vu"}
    changed = people | {"v": Subscriber("v", other)}
    assert roster(people).version == roster(same).version
    assert roster(people).version != roster(changed).version
    assert roster(people).version != roster({"u": people["u"]}).version
    assert roster(people).policy("u") is one
    assert roster(people).policy("x") is None
    assert roster(people).changed_since(0) is None


@pytest.mark.parametrize("given", [Changing(), Changing(version=4)])
def test_a_roster_is_taken_as_it_is(given: Changing) -> None:
    assert roster(given) is given
