"""Objects of foreign classes at the doors: each is taken, or refused by an error of ours."""

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import tidings
from tidings import Engine, Event, Overlap, Periodic, Preference, Subscriber, Subscription
from tidings.diversify import select
from tidings.errors import TidingsError


class Text(str):
    """A string whose methods fail."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __len__(self) -> int:
        raise RuntimeError("len")


class Form(dict[str, Any]):
    """A mapping whose methods fail."""

    def values(self) -> Any:
        raise RuntimeError("values")

    def items(self) -> Any:
        raise RuntimeError("items")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __contains__(self, name: object) -> bool:
        raise RuntimeError("contains")


class Items(list[Any]):
    """A list whose methods fail."""

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")


class Whole(int):
    """A number whose methods fail."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("lt")


VALUES: list[Any] = [
    *(Text("s1"), Form(id="e1"), Items([1]), Whole(1), Decimal("sNaN"), np.array(3)),
    *(np.array([1, 2]), np.void(b"x"), {"id": Items([1])}, {"id": "e", "attributes": Form()}),
]
DOORS: dict[str, Callable[[Any], object]] = {
    "target": lambda given: Engine().target(given),
    "explain": lambda given: Engine().explain(given, given),
    "explain_target": lambda given: Engine().explain_target("s1", given),
    "feed": lambda given: Engine().feed(given),
    "remove": lambda given: Engine().remove(given),
    "unsubscribe": lambda given: Engine().unsubscribe(given),
    "replace": lambda given: Engine().replace(given),
    "event": tidings.loads_event,
    "subscription": tidings.loads_subscription,
    "subscriber": tidings.loads_subscriber,
    "policy": tidings.loads_policy,
    "any": lambda given: Subscription("s1", "ada", any=given),
    "an entry of any": lambda given: Subscription("s1", "ada", any=[given]),
    "prefers": lambda given: Subscriber("ada", prefers=given),
    "origin": lambda given: Periodic("1h", given),
    "aggregate": Preference,
    "weights": Overlap,
    "the events of select": lambda given: select(given, [1.0], 1, "divrank"),
    "the ranks of select": lambda given: select([Event("e1", {"x": 1}, 0)], given, 1, "divrank"),
    "the k of select": lambda given: select([Event("e1", {"x": 1}, 0)], [1.0], given, "divrank"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("value", range(len(VALUES)))
def test_foreign_objects_are_taken_or_refused(door: str, value: int) -> None:
    with suppress(TidingsError):
        DOORS[door](VALUES[value])
