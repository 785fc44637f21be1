"""Whatever an Arrow table holds, it is read, its rows are dead letters, or it is refused."""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.arrow_tables import random_array, random_table, random_type
from tests.fuzz import cases

from tidings import Event, TidingsError
from tidings.formats.arrow import read_events, read_subscribers, read_subscriptions
from tidings.formats.json_forms import loads_subscriber
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits

pytestmark = pytest.mark.fuzz
PUBLIC = Limits.public()


def check(read: Callable[[], Any]) -> None:
    """Read all rows: nothing but an error of ours may be raised, and letters can be written."""
    with suppress(TidingsError):
        for each in read():
            json.dumps(each.to_dict())
            if isinstance(each, BadRecord):
                assert len(each.reason.encode()) <= 1_000


def numbers() -> range:
    return range(cases(1_500))


def test_publications() -> None:
    for seed in numbers():
        table = random_table(Random(seed))
        check(lambda: read_events(table))  # noqa: B023


def test_record_batches_within_tight_limits() -> None:
    for seed in islice(numbers(), None, None, 3):
        table = random_table(Random(seed))
        for batch in table.to_batches():
            check(lambda: read_events(batch, limits=PUBLIC))  # noqa: B023


def random_people(chance: Random, names: list[str]) -> pa.Table:
    size = chance.randrange(5)
    columns = {"id": pa.array([chance.choice(["u", "v", "", None]) for _ in range(size)])}
    if "subscriber" in names:
        columns["subscriber"] = pa.array(["u"] * size)
    for name in chance.sample(names, chance.randrange(1, 3)):
        columns[name] = random_array(chance, random_type(chance, depth=3), size)
    return pa.table(columns)


def test_subscriptions() -> None:
    for seed in numbers():
        names = ["where", "prefrank", "score", "any", "subscriber", "id"]
        table = random_people(Random(seed), names)
        check(lambda: read_subscriptions(table))  # noqa: B023


def test_subscribers() -> None:
    for seed in numbers():
        table = random_people(Random(seed), ["policy", "prefers", "id"])
        check(lambda: read_subscribers(table, loads_subscriber))  # noqa: B023


def test_a_row_is_the_same_alone_and_among_others() -> None:
    for seed in islice(numbers(), None, None, 5):
        table = random_table(Random(seed))
        try:
            whole = list(read_events(table))
        except TidingsError:
            continue
        alone = [next(read_events(table.slice(at, 1))) for at in range(table.num_rows)]
        assert [plainly(each) for each in alone] == [plainly(each) for each in whole]


def plainly(found: Event | BadRecord) -> Any:
    """Return what was read, without the place of its row."""
    if isinstance(found, BadRecord):
        return (json.dumps(found.to_dict()["record"]), found.reason)
    return found.to_dict()
