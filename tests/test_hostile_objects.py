"""Objects of foreign classes as arguments: each is accepted, or refused by a TidingsError."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidings
from tidings import (
    Engine,
    Event,
    Limits,
    Overlap,
    Periodic,
    Policy,
    Preference,
    Quiet,
    Quota,
    Sliding,
    Subscriber,
    Subscription,
)
from tidings.diversify import select
from tidings.errors import TidingsError
from tidings.formats import arrow
from tidings.formats.files import read_events
from tidings.model.conditions.parser import parse


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


class Hidden:
    """An object that refuses to show its attributes, even its class."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Endless(Mapping[str, Any]):
    """A mapping whose entries never end."""

    def __getitem__(self, name: str) -> Any:
        return 1

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return repeat("x")

    def items(self) -> Any:
        return repeat(("x", 1))


class EndlessItems(Sequence[Any]):
    """A sequence whose items never end."""

    def __getitem__(self, position: Any) -> Any:
        return ("x", 1)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return repeat(("x", "y"))


class Pretender:
    """An object that claims to be a string."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return str

    def __hash__(self) -> int:
        raise RuntimeError("hash")


VALUES: list[Any] = [
    Pretender(),
    *(Hidden(), Endless(), EndlessItems(), {"id": Hidden()}, {"id": "e1", "attributes": Endless()}),
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
    "an event's id": lambda given: Event(given, {}, 0),
    "attributes": lambda given: Event("e1", given, 0),
    "an attribute": lambda given: Event("e1", {"x": given}, 0),
    "published_at": lambda given: Event("e1", {}, given),
    "probabilities": lambda given: Event("e1", {"x": 1}, 0, None, given),
    "publish": lambda given: Engine().publish(given),
    "add_many": lambda given: Engine().add_many([given]),
    "parse": parse,
    "where": lambda given: Subscription("s1", "ada", given),
    "prefrank": lambda given: Subscription("s1", "ada", "x = 1", prefrank=given),
    "policy of a subscriber": lambda given: Subscriber("ada", given),
    "k": lambda given: Policy(k=given),
    "window": lambda given: Policy(window=given),
    "a window's length": Sliding,
    "scorer": lambda given: Policy(scorer=given),
    "diversify": lambda given: Policy(diversify=given),
    "limits of a subscription": lambda given: Subscription("s", "a", "x = 1", limits=given),
    "limits of a policy": lambda given: Policy(limits=given),
    "limits of a subscriber": lambda given: Subscriber("ada", limits=given),
    "limits of a condition": lambda given: parse("x = 1", given),
    "limits of a form": lambda given: tidings.loads_policy({}, given),
    "limits of a file": lambda given: read_events("/dev/null", limits=given),
    "limits of columns": lambda given: arrow.read_events(pa.table({"id": ["a"]}), limits=given),
    "limits of an engine": lambda given: Engine(limits=given),
    "a limit": lambda given: Limits(k=given),
    "lateness": Engine,
    "any": lambda given: Subscription("s1", "ada", any=given),
    "an entry of any": lambda given: Subscription("s1", "ada", any=[given]),
    "prefers": lambda given: Subscriber("ada", prefers=given),
    "origin": lambda given: Periodic("1h", given),
    "a time of day": lambda given: Periodic(at=given),
    "times of day": lambda given: Quiet(given, given),
    "a zone": lambda given: Periodic(at="08:00", zone=given),
    "the period of a quota": lambda given: Quota(1, per=given),
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
