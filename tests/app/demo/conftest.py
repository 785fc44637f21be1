from collections.abc import Iterator
from copy import copy
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.facts import RunFacts
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import catalogue, publications
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import demo_subscribers, plain_engine
from tidings.formats.arrow import read_events
from tidings.model.values import moment

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
    engine = plain_engine(demo_subscribers())
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
                "delivered_at": moment(delivery.delivered_us),
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


@pytest.fixture(scope="session")
def finished(films: pa.Table, batches: list[OutcomeBatch]) -> DemoState:
    state = DemoState(demo_subscribers(), films.slice(0, sum(SIZES)), SIZES)
    for batch in batches:
        state.add(batch)
    return state


@pytest.fixture
def state(finished: DemoState) -> DemoState:
    """Return the state after both batches; a batch that a test adds replaces attributes only."""
    return copy(finished)


@pytest.fixture(scope="session")
def day(finished: DemoState) -> FirstDay:
    """Return the first day of the same films."""
    day = FirstDay(finished.subscribers, finished.events)
    for _ in day.run():
        pass
    return day


@pytest.fixture
def facts(state: DemoState, day: FirstDay) -> RunFacts:
    return RunFacts(61.4, day.confirmed(state.stats), len(day.deliveries))
