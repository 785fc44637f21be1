"""What a user hands over: DataFrames, objects or files of subscriptions and subscribers."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from tidings import columns, files
from tidings.errors import InvalidForm, InvalidPolicy
from tidings.forms import loads_subscriber
from tidings.matching import Matcher
from tidings.model import Subscription
from tidings.policy import Subscriber
from tidings.rows import BadRecord
from tidings.spark.flow import ReadEvents, read_lines

T = TypeVar("T")
Subscriptions = DataFrame | Iterable[Subscription] | str | Path
Subscribers = DataFrame | Iterable[Subscriber] | str | Path | None
_SHOWN = 5
_LINES = (["value"], ["value", "reason"])


def matcher(subscriptions: Subscriptions, subscribers: Subscribers = None) -> Matcher:
    """Make the matcher that travels to the workers.

    Without `subscribers`, everybody who owns a subscription has the default policy.
    """
    wanted = _all_good("subscription", _subscriptions(subscriptions))
    people = _all_good("subscriber", _subscribers(subscribers))
    known = {each.id for each in people}
    if subscribers is None:
        people = [Subscriber(name) for name in sorted({each.subscriber for each in wanted})]
    elif missing := sorted({each.subscriber for each in wanted} - known):
        raise InvalidForm(f"subscriptions have subscribers that are not there: {missing[:_SHOWN]}")
    return Matcher(people, wanted)


def _subscriptions(given: Subscriptions) -> Iterator[Any]:
    if isinstance(given, DataFrame):
        return columns.read_subscriptions(given.toArrow())
    return files.read_subscriptions(given) if isinstance(given, str | Path) else iter(given)


def _subscribers(given: Subscribers) -> Iterator[Any]:
    if given is None:
        return iter(())
    if isinstance(given, DataFrame):
        return columns.read_subscribers(given.toArrow(), loads_subscriber)
    return files.read_subscribers(given) if isinstance(given, str | Path) else iter(given)


def _all_good(what: str, found: Iterator[T | BadRecord]) -> list[T]:
    """Give all records, or say which are bad and why, the first few of them."""
    records = list(found)
    bad = [each for each in records if isinstance(each, BadRecord)]
    if bad:
        reasons = "\n".join(f"  {each.position}: {each.reason}" for each in bad[:_SHOWN])
        raise InvalidForm(f"{len(bad)} of {len(records)} {what}s cannot be used:\n{reasons}")
    return [each for each in records if not isinstance(each, BadRecord)]


def event_reader(publications: DataFrame) -> ReadEvents:
    """Tell how the rows of a DataFrame are read, and refuse a schema that holds no publications.

    A DataFrame with the one column `value` (`spark.read.text`) holds the JSON form of an event a
    line; it may also have a column `reason`, for lines that another reader refused.
    """
    if publications.columns in _LINES:
        return read_lines
    columns.read_events(to_arrow_schema(publications.schema, timezone="UTC").empty_table())
    return columns.read_events


def check_sequences(publications: DataFrame, people: Iterable[Subscriber]) -> bool:
    """Tell whether some window counts published events, for which rows need their number."""
    counting = [
        each.id for each in people if getattr(each.policy.window, "count", None) == "published"
    ]
    if counting and "sequence" not in publications.columns and publications.columns not in _LINES:
        raise InvalidPolicy(
            f'subscriber {counting[0]} counts published events (count="published"), so the '
            "publications need a column sequence"
        )
    return bool(counting)
