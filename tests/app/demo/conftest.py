from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.movies import catalogue, publications
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import demo_subscribers
from tidings.formats.arrow import read_events

SIZES = (200, 200)


@pytest.fixture(scope="session")
def movies() -> pd.DataFrame:
    return catalogue()


@pytest.fixture(scope="session")
def films(movies: pd.DataFrame) -> pa.Table:
    return publications(movies)


@pytest.fixture(scope="session")
def batches(films: pa.Table) -> list[OutcomeBatch]:
    """Return the outcomes of 400 films in two batches, with refused and late films."""
    engine = Engine()
    for owner in demo_subscribers():
        engine.subscribe(owner.subscriber)
        for subscription in owner.subscriptions:
            engine.add(subscription)
    batches = []
    for number, size in enumerate(SIZES):
        rows = read_events(films.slice(number * size, size))
        events = [event for event in rows if isinstance(event, Event)]
        delivered = [
            {
                "kind": "delivery",
                "subscriber": delivery.subscriber,
                "event": delivery.event,
                "sequence": delivery.sequence,
                "position": delivery.position,
                "rank": delivery.rank,
                "delivered_at": delivery.delivered_us,
            }
            for delivery in engine.publish_many(events)
        ]
        batches.append(OutcomeBatch(number, [*delivered, *_accounts(engine, events)]))
    batches[1].rows.extend({"kind": kind, "subscriber": None} for kind in ("late", "dead", "dead"))
    return batches


def _accounts(engine: Engine, events: list[Event]) -> Iterator[dict[str, Any]]:
    for owner in demo_subscribers():
        explained = [engine.explain(owner.name, event).rank for event in events]
        ranks = [rank for rank in explained if rank is not None]
        yield {
            "kind": "account",
            "subscriber": owner.name,
            "position": len(ranks),
            "rank": sum(ranks) / len(ranks),
        }


@pytest.fixture
def state(films: pa.Table, batches: list[OutcomeBatch]) -> DemoState:
    state = DemoState(demo_subscribers(), films.slice(0, sum(SIZES)), SIZES)
    for batch in batches:
        state.add(batch)
    return state
