"""The metrics of a tenant, for Prometheus: requests, publications, rules, streams and backlogs."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.channels.person_channel import KINDS as PERSON_KINDS
from tidings.engine.quality import Report
from tidings.store import Store
from tidings.store.channels import ChannelSummary
from tidings.store.dead_letters import KINDS as LETTERS
from tidings.store.records import KINDS
from tidings.store.webhooks import WEBHOOK

_STATES: Final = ("working", "failing", "disabled")
_UNDELIVERED: Final = ("waiting", "retrying", "given_up")
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class TenantMetrics:
    """The metrics of one tenant, in its own registry, so that no tenant sees those of another."""

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tidings_requests", "Requests.", ["method", "path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "tidings_request_seconds",
            "Time from a request until its answer begins.",
            ["path"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.publications = Counter(
            "tidings_publications",
            "Publications by result: accepted, repeated or refused.",
            ["result"],
            registry=self.registry,
        )
        self.streams = Gauge(
            "tidings_streams", "Open live streams of this process.", registry=self.registry
        )
        self.streamed = Counter(
            "tidings_stream_notifications",
            "Notifications sent over live streams.",
            registry=self.registry,
        )
        self.streams_behind = Counter(
            "tidings_streams_behind",
            "Live streams ended because their reader was too slow.",
            registry=self.registry,
        )
        self.registry.register(_StoreCollector(store))

    def add_rules(self, quality: Callable[[], Report]) -> None:
        """Add what rules did with chosen events, by the current figures of an engine."""
        self.registry.register(_RuleCollector(quality))

    def total_requests(self) -> int:
        """Return the number of all requests so far."""
        samples = (sample for metric in self.requests.collect() for sample in metric.samples)
        return sum(int(sample.value) for sample in samples if sample.name.endswith("_total"))


class _StoreCollector(Collector):
    """Metrics that are read from the store when they are requested."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        """Return nothing: the store need not be read before the first request."""
        return []

    def collect(self) -> Iterator[Metric]:
        store = self._store
        last, step = store.publications.last(), store.log.last()
        yield GaugeMetricFamily("tidings_publications_last", "The last publication.", last)
        yield GaugeMetricFamily(
            "tidings_publications_waiting",
            "Publications that the pipeline has not processed yet.",
            last - step.upto,
        )
        yield GaugeMetricFamily(
            "tidings_changes_waiting",
            "Changes of the catalogue that the pipeline does not use yet.",
            store.catalogue.version() - step.version,
        )
        records = GaugeMetricFamily("tidings_records", "Records by kind.", labels=["kind"])
        for kind in KINDS:
            records.add_metric([kind], store.catalogue.count(kind))
        yield records
        letters = GaugeMetricFamily("tidings_letters_waiting", "Letters.", labels=["kind"])
        for kind in LETTERS:
            letters.add_metric([kind], store.letters.count(kind))
        yield letters
        yield from _webhook_gauges(store.channels.summary(WEBHOOK))
        yield from _address_gauges(store)
        yield from _queue_metrics(store)


class _RuleCollector(Collector):
    """What rules held, released and dropped in an engine that follows the pipeline."""

    def __init__(self, quality: Callable[[], Report]) -> None:
        self._quality = quality

    def describe(self) -> list[Metric]:
        """Return nothing: the engine need not be asked before the first request."""
        return []

    def collect(self) -> Iterator[Metric]:
        report = self._quality()
        yield CounterMetricFamily("tidings_held", "Chosen events that a rule held.", report.held)
        yield CounterMetricFamily(
            "tidings_released", "Chosen events that a rule held and released.", report.released
        )
        dropped = CounterMetricFamily(
            "tidings_dropped", "Chosen events that a rule or a pause dropped.", labels=["rule"]
        )
        for rule, count in report.dropped_by.items():
            dropped.add_metric([rule], count)
        yield dropped


def _webhook_gauges(summary: ChannelSummary) -> Iterator[Metric]:
    webhooks = GaugeMetricFamily("tidings_webhooks", "Webhooks by state.", labels=["state"])
    for state in _STATES:
        webhooks.add_metric([state], getattr(summary, state))
    yield webhooks
    messages = GaugeMetricFamily(
        "tidings_webhook_messages",
        "Undelivered messages: waiting, to be retried, or given up.",
        labels=["state"],
    )
    for state in _UNDELIVERED:
        messages.add_metric([state], getattr(summary, state))
    yield messages


def _address_gauges(store: Store) -> Iterator[Metric]:
    """Yield the figures of addresses by kind; one per address would be too many."""
    labels = ["kind", "state"]
    addresses = GaugeMetricFamily("tidings_addresses", "Addresses by state.", labels=labels)
    messages = GaugeMetricFamily(
        "tidings_address_messages", "Undelivered notifications.", labels=labels
    )
    for kind in PERSON_KINDS:
        summary = store.channels.summary(kind)
        for state in _STATES:
            addresses.add_metric([kind, state], getattr(summary, state))
        for state in _UNDELIVERED:
            messages.add_metric([kind, state], getattr(summary, state))
    yield from (addresses, messages)


def _queue_metrics(store: Store) -> Iterator[Metric]:
    """Yield the figures of the channels that serve all subscribers.

    Those of individual people would be too many.
    """
    labels = ["channel", "kind"]
    sent = CounterMetricFamily("tidings_channel_sent", "Messages taken.", labels=labels)
    failures = GaugeMetricFamily("tidings_channel_failures", "Consecutive failures.", labels=labels)
    messages = GaugeMetricFamily(
        "tidings_channel_messages", "Undelivered messages.", labels=[*labels, "state"]
    )
    for channel in store.channels.queues():
        name = [channel.id, channel.kind]
        sent.add_metric(name, channel.sent)
        failures.add_metric(name, channel.failures)
        for state, count in store.channels.backlog(channel.key)._asdict().items():
            messages.add_metric([*name, state], count)
    yield from (sent, failures, messages)


class RequestMeter:
    """Middleware that counts and times requests, for the tenant of each."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note the status of its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                _note(scope, message["status"], time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, note)


def _note(scope: Scope, status: int, seconds: float) -> None:
    """Count a request; one without a tenant counts for the operator, who has the main store."""
    state: dict[str, Any] = scope.get("state", {})
    tenant = state.get("tenant") or scope["app"].state.gate.tenants.main
    route = scope.get("route")
    path = getattr(route, "path", "other")
    method = scope["method"] if route else "other"
    tenant.metrics.requests.labels(method, path, status).inc()
    tenant.metrics.seconds.labels(path).observe(seconds)
