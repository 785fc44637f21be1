from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.movies import catalogue, publications
from tidings.app.demo.state import Batch, Board
from tidings.app.demo.subscribers import cast
from tidings.formats.arrow import read_events
from tidings.spark.state_stage.outcomes import plainly_delivered

SIZES = (200, 200)


@pytest.fixture(scope="session")
def movies() -> pd.DataFrame:
    return catalogue()


@pytest.fixture(scope="session")
def films(movies: pd.DataFrame) -> pa.Table:
    return publications(movies)


@pytest.fixture(scope="session")
def batches(films: pa.Table) -> list[Batch]:
    """What comes of 400 films in two batches, with a refusal and a late film among them."""
    engine = Engine()
    for role in cast():
        engine.subscribe(role.subscriber)
        for each in role.subscriptions:
            engine.add(each)
    found = []
    for number, size in enumerate(SIZES):
        rows = read_events(films.slice(number * size, size))
        events = [each for each in rows if isinstance(each, Event)]
        delivered = plainly_delivered(engine.publish_many(events)).to_pylist()
        found.append(Batch(number, [*delivered, *_accounts(engine, events)]))
    found[1].rows.extend({"kind": kind, "subscriber": None} for kind in ("late", "dead", "dead"))
    return found


def _accounts(engine: Engine, events: list[Event]) -> Iterator[dict[str, Any]]:
    for role in cast():
        told = [engine.explain(role.name, event).rank for event in events]
        ranks = [rank for rank in told if rank is not None]
        mean = sum(ranks) / len(ranks)
        yield {
            "kind": "account",
            "subscriber": role.name,
            "position": len(ranks),
            "rank": mean,
        }


@pytest.fixture
def board(films: pa.Table, batches: list[Batch]) -> Board:
    played = Board(cast(), films.slice(0, sum(SIZES)), SIZES)
    for batch in batches:
        played.take(batch)
    return played
