"""Metrics: requests by path and not by id, and the backlogs of the store when they are read."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings import DeadLetter, Engine, Event, Policy, Quiet, Quota, Subscriber, Subscription
from tidings.service.metrics import RequestMeter, TenantMetrics
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.channels import ALL, ChannelDraft, FailedDelivery
from tidings.store.publications import NewPublication


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def samples(metrics: TenantMetrics) -> dict[str, float]:
    """Return what Prometheus reads, by name and labels."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_an_empty_store_has_no_backlog(store: Store) -> None:
    found = samples(TenantMetrics(store))
    assert found["tidings_publications_last"] == 0
    assert found["tidings_publications_waiting"] == 0
    assert found["tidings_changes_waiting"] == 0
    assert found['tidings_records{kind="subscriber"}'] == 0
    assert found['tidings_letters_waiting{kind="dead"}'] == 0
    for state in ("working", "failing", "disabled"):
        assert found[f'tidings_webhooks{{state="{state}"}}'] == 0
        for kind in ("mail", "slack", "teams"):
            assert found[f'tidings_addresses{{kind="{kind}",state="{state}"}}'] == 0
    assert not any(name.startswith("tidings_channel_") for name in found)


def test_backlogs_are_those_of_the_moment(store: Store) -> None:
    metrics = TenantMetrics(store)
    store.publications.accept([NewPublication(Event(name, {}, 1)) for name in "abc"], 1)
    store.catalogue.put({"id": "ada"})
    store.catalogue.put(Subscription("s1", "ada", where="a = 1"))
    store.notifications.append("q", 0, [], dead=[DeadLetter({}, "no good")] * 2)
    found = samples(metrics)
    assert found["tidings_publications_last"] == found["tidings_publications_waiting"] == 3
    assert found["tidings_changes_waiting"] == 2
    assert found['tidings_records{kind="subscriber"}'] == 1
    assert found['tidings_records{kind="subscription"}'] == 1
    assert found['tidings_letters_waiting{kind="dead"}'] == 2
    assert found['tidings_letters_waiting{kind="late"}'] == 0
    store.log.append(EngineStep(1, None, 1, 2), BatchAppend.of("q", 1, [], late=[], dead=[]))
    found = samples(metrics)
    assert found["tidings_publications_last"] == 3
    assert found["tidings_publications_waiting"] == 1
    assert found["tidings_changes_waiting"] == 1


def test_what_rules_did_is_that_of_the_engine(store: Store) -> None:
    engine, metrics = Engine(), TenantMetrics(store)
    metrics.add_rules(engine.quality)
    found = samples(metrics)
    assert found["tidings_held_total"] == found["tidings_released_total"] == 0
    assert not any(name.startswith("tidings_dropped_total") for name in found)
    rules = [Quota(1, per="day"), Quiet("22:00", "07:00")]
    engine.subscribe(Subscriber("ada", Policy(k=9, window="continuous", rules=rules)))
    engine.add(Subscription("s1", "ada", where="a = 1"))
    noon, night = 12 * 3600, 23 * 3600
    engine.publish_many([Event("e1", {"a": 1}, night), Event("e2", {"a": 1}, night + 60)])
    engine.advance(86_400 + noon)
    engine.pause("ada")
    engine.publish(Event("e3", {"a": 1}, 86_400 + noon + 60))
    found = samples(metrics)
    report = engine.quality()
    assert found["tidings_held_total"] == report.held > 0
    assert found["tidings_released_total"] == report.released > 0
    assert found['tidings_dropped_total{rule="quota"}'] == report.dropped_by["quota"] > 0
    assert sum(report.dropped_by.values()) == sum(
        value for name, value in found.items() if name.startswith("tidings_dropped_total")
    )


def test_channels_are_counted_by_state(store: Store) -> None:
    for kind, name in (("webhook", "w"), ("mail", "m")):
        for number in range(2):
            draft = ChannelDraft(kind, f"{name}{number}", "ada", {}, ALL)
            channel = store.channels.put(draft, 0)
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    fail(store, channel.key, FailedDelivery(1, 1, 99, "busy"))
    fail(store, channel.key, FailedDelivery(2, 1, None, "no"))
    found = samples(TenantMetrics(store))
    assert found['tidings_webhooks{state="working"}'] == 2
    assert found['tidings_webhook_messages{state="waiting"}'] == 4
    assert found['tidings_webhook_messages{state="retrying"}'] == 0
    assert found['tidings_addresses{kind="mail",state="working"}'] == 1
    assert found['tidings_addresses{kind="mail",state="failing"}'] == 1
    assert found['tidings_address_messages{kind="mail",state="waiting"}'] == 2
    assert found['tidings_address_messages{kind="mail",state="retrying"}'] == 1
    assert found['tidings_address_messages{kind="mail",state="given_up"}'] == 1
    assert found['tidings_addresses{kind="slack",state="working"}'] == 0


def test_queues_have_figures_of_their_own(store: Store) -> None:
    queue = store.channels.put(ChannelDraft("sqs", "out", None, {}, ALL), 0)
    store.channels.put(ChannelDraft("sqs", "of-ada", "ada", {}, ALL), 0)
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("ada", "b")])
    fail(store, queue.key, FailedDelivery(1, 1, None, "no"))
    found = samples(TenantMetrics(store))
    labels = 'channel="out",kind="sqs"'
    assert found[f"tidings_channel_sent_total{{{labels}}}"] == 0
    assert found[f"tidings_channel_failures{{{labels}}}"] == 1
    assert found[f'tidings_channel_messages{{{labels},state="waiting"}}'] == 1
    assert found[f'tidings_channel_messages{{{labels},state="given_up"}}'] == 1
    assert not any("of-ada" in name for name in found)


def test_tenants_do_not_see_the_metrics_of_others(store: Store) -> None:
    one, other = TenantMetrics(store), TenantMetrics(store)
    one.requests.labels("GET", "/v1/events", 200).inc()
    assert (one.total_requests(), other.total_requests()) == (1, 0)


def test_all_requests_are_counted(store: Store) -> None:
    metrics = TenantMetrics(store)
    assert metrics.total_requests() == 0
    for path, status, count in (("/a", 200, 3), ("/a", 404, 1), ("/b", 200, 5)):
        metrics.requests.labels("GET", path, status).inc(count)
    assert metrics.total_requests() == 9


def answered(scope: dict[str, Any], status: int = 200) -> list[dict[str, Any]]:
    """Return what passes the meter of an application that answers with a status."""
    sent = list[dict[str, Any]]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body", "body": b"x"})

    async def send(message: Any) -> None:
        sent.append(message)

    meter: Any = RequestMeter(app)
    asyncio.run(meter(scope, None, send))
    return sent


def scope_of(main: TenantMetrics, **more: Any) -> dict[str, Any]:
    gate = SimpleNamespace(tenants=SimpleNamespace(main=SimpleNamespace(metrics=main)))
    app = SimpleNamespace(state=SimpleNamespace(gate=gate))
    return {"type": "http", "method": "GET", "app": app, **more}


def test_a_request_counts_for_its_tenant_by_the_path_of_its_route(store: Store) -> None:
    main, own = TenantMetrics(store), TenantMetrics(store)
    route = SimpleNamespace(path="/v1/subscribers/{id}")
    state = {"tenant": SimpleNamespace(metrics=own)}
    assert len(answered(scope_of(main, route=route, state=state), 204)) == 2
    labels = 'method="GET",path="/v1/subscribers/{id}",status="204"'
    assert samples(own)[f"tidings_requests_total{{{labels}}}"] == 1
    assert samples(own)['tidings_request_seconds_count{path="/v1/subscribers/{id}"}'] == 1
    assert main.total_requests() == 0


@pytest.mark.parametrize("more", [{}, {"state": {}}, {"state": {"tenant": None}}])
def test_a_request_without_a_tenant_counts_for_the_operator(
    store: Store, more: dict[str, Any]
) -> None:
    """Its path and its method come from outside, so neither becomes a label."""
    main = TenantMetrics(store)
    answered(scope_of(main, **more) | {"method": "HACK"}, 404)
    labels = 'method="other",path="other",status="404"'
    assert samples(main)[f"tidings_requests_total{{{labels}}}"] == 1


def test_what_is_no_request_is_passed_on(store: Store) -> None:
    main = TenantMetrics(store)
    assert len(answered(scope_of(main) | {"type": "lifespan"})) == 2
    assert main.total_requests() == 0
