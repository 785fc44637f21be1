"""A market for the pipeline: many subscribers with chains of conditions, and 20-attribute offers.

As in bench/fanout.py, but conditions are only equalities and ranges, so that plain SQL can express
them as well; of 1,000,000 subscriptions about 100 match an offer.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pyarrow as pa
from predicates import Words

from tidings.model.conditions.predicate import Condition, Predicate, predicate
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber

OWNED, ATTRIBUTES, SHORTEST = 5, 20, 2
DEPTHS, PEOPLE = (3, 2), 100
EVENTS = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us", "UTC"),
        "sequence": pa.int64(),
        "texts": pa.map_(pa.string(), pa.string()),
        "numbers": pa.map_(pa.string(), pa.float64()),
    }
)
Row = dict[str, Any]


def wish(words: Words, attribute: int) -> Predicate:
    name = f"a{attribute}"
    if attribute % 2 == 0:
        return predicate(name, "=", words.word())
    low = round(words.chance.random() * 1000, 2)
    return predicate(name, "between", (low, low + round(words.chance.exponential(65), 2)))


def subscriptions(size: int, seed: int = 7, broad: float = 0.0) -> Iterator[Subscription]:
    """Return chains of conditions of 2 to 4 predicates, each refining the previous one.

    Those of a share of subscribers, the `broad` ones, begin with one predicate and match about 70
    times as often.
    """
    words = Words(seed)
    for person in range(size // OWNED):
        shortest = SHORTEST - (person % PEOPLE < broad * PEOPLE)
        for chain, depth in enumerate(DEPTHS):
            parts = [wish(words, attribute) for attribute in words.attributes(SHORTEST - 1 + depth)]
            for step in range(depth):
                condition = Condition((tuple(parts[: shortest + step]),))
                rank = round(words.chance.random(), 2)
                yield Subscription(
                    f"s{person:07d}-{chain}{step}", owner(person), condition, prefrank=rank
                )


def owner(person: int) -> str:
    return f"p{person:07d}"


def people(size: int, *policies: Policy) -> list[Subscriber]:
    """Return all subscribers, with the policies in turn."""
    return [
        Subscriber(owner(person), policies[person % len(policies)])
        for person in range(size // OWNED)
    ]


def events(count: int, seed: int = 8) -> Iterator[Event]:
    """Yield one event per second."""
    words = Words(seed)
    for number in range(count):
        said = {
            f"a{attribute}": round(words.chance.random() * 1000, 2)
            if attribute % 2
            else words.word()
            for attribute in words.attributes(ATTRIBUTES)
        }
        yield Event(f"e{number:07d}", said, number, sequence=number + 1)


def event_rows(stream: Iterator[Event]) -> Iterator[Row]:
    """Return events as columns, with two maps, since an attribute is a number or a string."""
    for event in stream:
        texts = {name: each for name, each in event.attributes.items() if isinstance(each, str)}
        numbers = {name: each for name, each in event.attributes.items() if name not in texts}
        yield {
            "id": event.id,
            "published_at": event.published_us,
            "sequence": event.sequence,
            "texts": list(texts.items()),
            "numbers": list(numbers.items()),
        }


def predicate_rows(wishes: Iterator[Subscription]) -> Iterator[Row]:
    """Return one row per predicate, as in a relational schema."""
    for subscription in wishes:
        [parts] = subscription.conjunctions
        for part in parts:
            text = part.operator == "="
            low, high = (None, None) if text else part.operand
            yield {
                "subscription": subscription.id,
                "subscriber": subscription.subscriber,
                "prefrank": subscription.prefrank,
                "predicates": len(parts),
                "attribute": part.attribute,
                "text": part.operand if text else None,
                "low": low,
                "high": high,
            }
