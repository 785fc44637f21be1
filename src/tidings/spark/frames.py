"""What a user hands over: DataFrames, objects or files of subscriptions and subscribers."""

import atexit
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from tidings import checks, columns, files
from tidings.errors import InvalidForm, InvalidPolicy, InvalidSubscription
from tidings.forms import loads_subscriber
from tidings.model import Subscription
from tidings.policy import Subscriber
from tidings.rows import BadRecord
from tidings.sealed.bases import seal_folder
from tidings.sealed.folder import Folder
from tidings.sealed.member import Member, members
from tidings.sealed.publisher import Publisher
from tidings.spark.flow import ReadEvents, read_lines
from tidings.spark.matchers import Matchers, Objects, PinnedRoster, Versions
from tidings.store import Store

T = TypeVar("T")
Given = DataFrame | Iterable[Subscription] | str | Path
Subscriptions = Given | Folder | Store
Subscribers = DataFrame | Iterable[Subscriber] | str | Path | None
FOLDER: Final = "spark.tidings.index"
"""The setting that names a folder for index files, which all machines of a cluster see."""
_SHOWN = 5
_LINES = (["value"], ["value", "reason"])


def matchers(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    parts: int = 1,
    *,
    seal: bool = True,
) -> Matchers:
    """Make what the workers match with.

    That is the folder of a publisher, if one is given, or one that follows a store: in a stream,
    each batch has its own version. Without `seal`, it is objects, of which all can be asked.
    All else is sealed in a folder that is removed with this process. Without `subscribers`,
    everybody who owns a subscription has the default policy.
    """
    if isinstance(subscriptions, Store):
        subscriptions = _followed(publications, subscriptions, checks.count("parts", parts))
    if isinstance(subscriptions, Folder):
        if subscribers is not None:
            raise InvalidForm("subscriptions of a store or folder come with their subscribers")
        if not seal:
            raise InvalidPolicy("the subscriptions of a folder are ranked by 'exact' or 'relaxed'")
        version = None if publications.isStreaming else subscriptions.newest()
        return Versions(subscriptions, version)
    given = _members(subscriptions, subscribers)
    if not seal:
        return Objects(given)
    try:
        path = _own_folder(publications)
        return Versions(seal_folder(path, given, checks.count("parts", parts)), 1)
    except InvalidPolicy:  # a policy that cannot be written: a function of the user
        return Objects(given)


def roster(found: Matchers) -> PinnedRoster | dict[str, Subscriber]:
    """Give who has which policy, as the state stage asks."""
    if isinstance(found, Versions):
        return PinnedRoster(found)
    members = found.members if isinstance(found, Objects) else ()
    return {each.name: each.subscriber for each in members if each.subscriber}


def _own_folder(publications: DataFrame) -> Path:
    """Make a folder for index files: where Spark was told to, or among temporary ones."""
    where = publications.sparkSession.conf.get(FOLDER, None)
    path = Path(mkdtemp(prefix="tidings-index-", dir=where))
    atexit.register(rmtree, path, ignore_errors=True)
    return path


def _followed(publications: DataFrame, store: Store, parts: int) -> Folder:
    """Publish what a store has; in a stream also what it will have, while this process lives."""
    publisher = Publisher(_own_folder(publications), store.history, parts)
    atexit.register(publisher.close)
    publisher.publish()
    if publications.isStreaming:
        publisher.follow()
    return publisher.folder


def _members(subscriptions: Given, subscribers: Subscribers) -> list[Member]:
    wanted = _all_good("subscription", _subscriptions(subscriptions))
    people = _all_good("subscriber", _subscribers(subscribers))
    if twice := [name for name, count in Counter(each.id for each in wanted).items() if count > 1]:
        raise InvalidSubscription(f"subscription {twice[0]!r} is there twice")
    known = {each.id for each in people}
    if subscribers is None:
        people = [Subscriber(name) for name in sorted({each.subscriber for each in wanted})]
    elif missing := sorted({each.subscriber for each in wanted} - known):
        raise InvalidForm(f"subscriptions have subscribers that are not there: {missing[:_SHOWN]}")
    return members(people, wanted)


def _subscriptions(given: Given) -> Iterator[Any]:
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


def check_sequences(publications: DataFrame, found: Matchers) -> None:
    """Refuse publications without numbers where some window counts all of them."""
    known = "sequence" in publications.columns or publications.columns in _LINES
    if not known and found.counting():
        raise InvalidPolicy(
            'a subscriber counts published events (count="published"), so the publications need a '
            "column sequence"
        )
