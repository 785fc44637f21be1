"""The durable engine, step by step: what a step does, and from where a restart continues."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import StoreError, TidingsError
from tidings.formats.json_forms import loads_policy
from tidings.model.records import Event
from tidings.policy import Policy, Subscriber
from tidings.service.durable_engine import (
    DurableEngine,
    StepOutput,
    needs_clock,
    new_engine,
    read_event,
    warm_up,
)
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import Checkpoint
from tidings.store.publications import NewPublication, StoredPublication

SECOND = 1_000_000
WISH = {"id": "s1", "subscriber": "ada", "where": "n >= 0"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        opened.catalogue.put({"id": "ada", "policy": {"k": 1}}, WISH)
        yield opened


def publish(store: Store, *names: str, at: int = 0) -> None:
    new = [Event(name, {"n": number}, at + number) for number, name in enumerate(names)]
    store.publications.accept([NewPublication(event) for event in new], 1)


def write(store: Store, *steps: EngineStep) -> None:
    """Write steps, as a pipeline does."""
    for step in steps:
        nothing = BatchAppend.of("q", step.number, [], late=[], dead=[])
        assert store.log.append(step, nothing)


def take(store: Store, durable: DurableEngine, **fields: Any) -> StepOutput:
    """Take and write the next step, up to all that is there."""
    last = durable.step
    values = {
        "version": store.catalogue.version(),
        "upto": store.publications.last(),
        "clock_us": None,
    } | fields
    step = EngineStep(last.number + 1, values["clock_us"], values["version"], values["upto"])
    pending = store.publications.after(last.upto, 1_000, upto=step.upto)
    output = durable.run(step, pending)
    write(store, step)
    return output


def test_a_step_delivers_what_is_published(store: Store) -> None:
    publish(store, "a", "b")
    durable = DurableEngine(store)
    assert "ada" not in durable
    output = take(store, durable)
    assert "ada" in durable
    assert [delivery.event for delivery in output.deliveries] == ["a", "b"]
    assert (output.late, output.dead) == ([], [])
    assert durable.step == store.log.last() == EngineStep(1, None, 2, 2)
    assert take(store, durable).deliveries == []


def test_others_repeat_the_steps(store: Store) -> None:
    publish(store, "a", "b")
    first, second = DurableEngine(store), DurableEngine(store)
    assert not second.catch_up()
    take(store, first, upto=1)
    take(store, first)
    assert second.catch_up()
    assert not second.catch_up()
    assert second.step == first.step
    assert second.repeated == 2
    assert second.checkpoint() == first.checkpoint()


def test_changes_take_effect_at_the_version_of_a_step(store: Store) -> None:
    version = store.catalogue.version()
    publish(store, "a")
    durable = DurableEngine(store)
    store.catalogue.remove("subscription", "s1")
    assert [each.event for each in take(store, durable, version=version).deliveries] == ["a"]
    publish(store, "b", at=5)
    assert take(store, durable).deliveries == []
    store.catalogue.put(WISH | {"where": "n >= 5"})
    publish(store, "c", at=9)
    assert take(store, durable).deliveries == []
    store.catalogue.replace(WISH)
    publish(store, "d", at=12)
    assert [each.event for each in take(store, durable).deliveries] == ["d"]


def test_a_subscriber_that_is_removed_is_gone_with_its_subscriptions(store: Store) -> None:
    durable = DurableEngine(store)
    take(store, durable)
    store.catalogue.remove("subscriber", "ada")
    publish(store, "a")
    assert take(store, durable).deliveries == []
    assert "ada" not in durable
    assert not durable.needs_clock


def test_a_restart_continues_from_the_checkpoint(store: Store) -> None:
    publish(store, "a")
    first = DurableEngine(store)
    take(store, first)
    store.log.save(first.checkpoint())
    publish(store, "b", at=5)
    take(store, first)
    second = DurableEngine(store)
    assert second.step == EngineStep(1, None, 2, 1)
    assert "ada" in second
    assert second.catch_up()
    assert second.repeated == 1
    assert second.checkpoint() == first.checkpoint()


def test_one_that_was_overtaken_by_a_checkpoint_starts_from_it(store: Store) -> None:
    publish(store, "a", "b", "c")
    slow, fast = DurableEngine(store), DurableEngine(store)
    for upto in (1, 2, 3):
        take(store, fast, upto=upto)
    store.log.save(fast.checkpoint())
    assert slow.catch_up()
    assert slow.step == fast.step
    publish(store, "d", at=9)
    take(store, fast)
    assert slow.catch_up()
    assert slow.step == fast.step
    assert slow.checkpoint() == fast.checkpoint()


def test_a_step_that_is_missing_is_damage(store: Store) -> None:
    write(store, EngineStep(2, None, 0, 0))
    with pytest.raises(StoreError) as error:
        DurableEngine(store).catch_up()
    assert str(error.value).endswith(
        ": step 1 of its engine is missing; restore the store from a copy"
    )


@pytest.mark.parametrize("clock_us", [-(1 << 62), 1 << 62])
def test_a_step_at_no_time_is_damage(store: Store, clock_us: int) -> None:
    with pytest.raises(StoreError, match="step 1 of its engine is at no time"):
        DurableEngine(store).run(EngineStep(1, clock_us, 0, 0), [])


def test_a_version_that_nobody_wrote_is_damage(store: Store) -> None:
    with pytest.raises(StoreError, match="version 5000 of its catalogue is missing"):
        DurableEngine(store).run(EngineStep(1, None, 5_000, 0), [])


def test_publications_that_are_missing_are_named(store: Store) -> None:
    publish(store, "a")
    write(store, EngineStep(1, None, 0, 5))
    with pytest.raises(TidingsError, match="publications 2 to 5 are missing"):
        DurableEngine(store).catch_up()


@pytest.mark.parametrize(
    "state",
    ["", "{", "null", "[]", "{}", '{"engine": {}}', '{"engine": 7, "ids": {}, "clocked": []}'],
)
def test_a_damaged_checkpoint_is_refused_with_the_name_of_the_store(
    store: Store, state: str
) -> None:
    write(store, EngineStep(1, None, 0, 0))
    store.log.save(Checkpoint(EngineStep(1, None, 0, 0), state))
    with pytest.raises(StoreError) as error:
        DurableEngine(store)
    assert str(error.value).startswith(f"{store.database.name}: the checkpoint of its engine: ")
    assert str(error.value).endswith("; restore the store from a copy")


@pytest.mark.parametrize("form", [None, "{", "[]", '{"id": 7, "attributes": []}'])
def test_a_damaged_publication_becomes_a_dead_letter(store: Store, form: str | None) -> None:
    durable = DurableEngine(store)
    publish(store, "a")
    [sound] = store.publications.after(0)
    broken = StoredPublication(7, form)
    output = durable.run(EngineStep(1, None, store.catalogue.version(), 2), [broken, sound])
    assert [delivery.event for delivery in output.deliveries] == ["a"]
    [letter] = output.dead
    assert letter.record == {"number": 7}
    assert letter.reason.startswith("publication 7 of the store is damaged: ")


def test_late_events_are_handed_over_once(store: Store) -> None:
    durable = DurableEngine(store)
    publish(store, "new", at=100)
    take(store, durable)
    publish(store, "old", at=3)
    assert [event.id for event in take(store, durable).late] == ["old"]
    assert take(store, durable).late == []


def test_time_closes_what_waits_for_it(store: Store) -> None:
    window = {"name": "periodic", "length": "10s"}
    store.catalogue.replace({"id": "ada", "policy": {"k": 1, "window": window}})
    durable = DurableEngine(store)
    publish(store, "a")
    assert take(store, durable).deliveries == []
    assert durable.needs_clock
    [delivery] = take(store, durable, clock_us=10 * SECOND).deliveries
    assert (delivery.event, delivery.delivered_us) == ("a", 10 * SECOND)
    assert DurableEngine(store).catch_up()


def test_a_clock_is_needed_where_events_may_be_late(store: Store) -> None:
    assert not DurableEngine(store).needs_clock
    assert DurableEngine(store, lateness="5s").needs_clock


POLICIES: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"window": {"name": "continuous"}}, False),
    ({"window": {"name": "sliding", "length": "10s"}}, False),
    ({"window": {"name": "periodic", "length": 5}}, False),
    ({"window": {"name": "periodic", "length": "10s"}}, True),
    ({"window": {"name": "periodic", "at": ["08:00"]}}, True),
    ({"window": {"name": "jumping", "length": 5, "step": 2}}, False),
    ({"window": {"name": "jumping", "length": "10s", "step": "5s"}}, True),
    ({"window": {"name": "jumping", "length": "10s", "step": 2}}, False),
    ({"rules": ["quiet"]}, True),
    ({"rules": []}, False),
]


@pytest.mark.parametrize(("policy", "needed"), POLICIES)
def test_a_clock_is_needed_where_something_becomes_due_as_time_passes(
    policy: dict[str, Any], needed: bool
) -> None:
    assert needs_clock({"id": "ada", "policy": policy}) == needed
    # The forms that a store keeps have every parameter.
    whole = Subscriber("ada", loads_policy({"k": 1, **policy})).to_dict()
    assert needs_clock(whole) == needed
    assert not needs_clock({"id": "ada"})


def test_the_clock_is_no_longer_needed_when_a_policy_changes(store: Store) -> None:
    durable = DurableEngine(store)
    store.catalogue.replace({"id": "ada", "policy": {"rules": ["quiet"]}})
    take(store, durable)
    assert durable.needs_clock
    again = DurableEngine(store)
    again.catch_up()
    assert again.needs_clock
    store.catalogue.replace({"id": "ada", "policy": {"k": 3}})
    take(store, durable)
    assert not durable.needs_clock


def test_a_checkpoint_is_json_with_all_that_a_restart_needs(store: Store) -> None:
    durable = DurableEngine(store)
    take(store, durable)
    checkpoint = durable.checkpoint()
    assert checkpoint.step == durable.step
    state = json.loads(checkpoint.state)
    assert state["ids"] == {"subscriber": ["ada"], "subscription": ["s1"]}
    assert state["clocked"] == []
    assert {*state} == {"engine", "ids", "clocked"}


def test_an_engine_of_a_store_remembers_no_ids() -> None:
    """They are unique in a store, so that two of one id are two events here."""
    engine = new_engine()
    engine.subscribe(Subscriber("ada", Policy(k=5)))
    engine.add(WISH)
    event = Event("e", {"n": 1}, 0)
    engine.publish(event)
    assert len(engine.dead_letters) == 0
    assert read_event(json.dumps(event.to_dict())) == event


def test_kernels_can_be_loaded_before_the_first_publication() -> None:
    warm_up()


def test_steps_at_different_times_are_repeated_one_by_one(store: Store) -> None:
    """What is delivered at the end of a period depends on what was published by then."""
    window = {"name": "periodic", "length": "10s"}
    store.catalogue.replace({"id": "ada", "policy": {"k": 1, "window": window}})
    first, second = DurableEngine(store), DurableEngine(store)
    publish(store, "a")
    take(store, first)
    take(store, first, clock_us=10 * SECOND)
    publish(store, "late", at=3)
    assert [event.id for event in take(store, first).late] == ["late"]
    assert second.catch_up()
    assert second.checkpoint() == first.checkpoint()
