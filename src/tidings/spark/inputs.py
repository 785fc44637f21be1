"""Subscriptions and subscribers as users pass them: DataFrames, objects, files or stores."""

import atexit
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from inspect import currentframe
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from tidings.errors import (
    ImpossibleCondition,
    InvalidForm,
    InvalidPolicy,
    InvalidSubscription,
    prefix_errors,
    shown,
)
from tidings.formats import arrow, files
from tidings.formats.arrow_by_row import EVENT_COLUMNS
from tidings.formats.json_forms import loads_subscriber, loads_subscription, read_policy
from tidings.index_files.base_files import build_folder
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.index_files.versions import IndexFolder, file_name
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.limits import TRUSTED, Limits
from tidings.model.profile import Profile
from tidings.model.records import Subscription
from tidings.model.values import Family
from tidings.policy import DEFAULT_POLICY, Policy, Subscriber
from tidings.spark.match_stage.matcher_source import (
    THRESHOLD,
    FolderSource,
    MatcherSource,
    PickledSource,
)
from tidings.store import Store

# Publishers of the stores that are passed as subscriptions, shared within a process.

FOLDER: Final = "spark.tidings.index"
"""Setting that names a folder for index files, which all machines of a cluster can read."""


@dataclass(frozen=True)
class PublishSettings:
    """How a store is published: parts, parent folder, for a stream or not, and default policy.

    Without a parent folder, the index files are in a temporary folder of this process.
    """

    parts: int
    parent: str | None
    streaming: bool
    default_policy: Policy | None = DEFAULT_POLICY

    @property
    def durable(self) -> bool:
        """Whether the index files outlive this process, and with them the pins of queries."""
        return self.streaming and self.parent is not None


class _Entry(NamedTuple):
    store: Store
    publisher: Publisher


class StorePublishers:
    """The publishers of this process, shared by calls and closed when the process ends."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[tuple[str, PublishSettings], _Entry] = {}

    def __contains__(self, key: tuple[str, PublishSettings]) -> bool:
        return key in self._entries

    def folder(self, store: Store, settings: PublishSettings) -> IndexFolder:
        """Publish the contents of a store; for a stream, follow its changes as well.

        A store that is opened again replaces its predecessor, which may be closed.
        """
        key = store.history.store_id(), settings
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None or entry.store is not store:
                path = entry.publisher.folder.path if entry else _folder_path(*key)
                if entry:
                    entry.publisher.close()
                entry = _Entry(store, _publisher(path, store, settings))
            self._entries[key] = entry
            entry.publisher.publish()
            if settings.streaming:
                entry.publisher.follow()
            return entry.publisher.folder


@cache
def store_publishers() -> StorePublishers:
    """Return the publishers of this process."""
    return StorePublishers()


def temporary_folder(parent: str | None) -> Path:
    """Create a folder that is removed when this process ends, in a parent that may be new."""
    with prefix_errors(f"{FOLDER} = {parent}: index files cannot be written there: ", OSError):
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        path = Path(mkdtemp(prefix="tidings-index-", dir=parent))
    atexit.register(rmtree, path, ignore_errors=True)
    return path


def _folder_path(store: str, settings: PublishSettings) -> Path:
    """Return a folder that a later process finds again by its name, or a temporary one."""
    if settings.parent is None or not settings.durable:
        return temporary_folder(settings.parent)
    return Path(settings.parent) / f"tidings-store-{file_name(store)}-{settings.parts}"


def _publisher(path: Path, store: Store, settings: PublishSettings) -> Publisher:
    defaults = Defaults(others=settings.default_policy)
    publisher = Publisher(path, store.history, settings.parts, defaults=defaults)
    # Exit handlers run in reverse order: this one before the folder is removed.
    atexit.register(publisher.close)
    return publisher


T = TypeVar("T")
JsonForm = Mapping[str, Any]
SubscriptionRecords = DataFrame | Iterable[Subscription | JsonForm] | str | Path
Subscriptions = SubscriptionRecords | IndexFolder | Store
SubscriberRecords = Iterable[Subscriber | JsonForm] | Mapping[str, Policy | JsonForm]
Subscribers = DataFrame | SubscriberRecords | Policy | str | Path | None
DefaultPolicy = Policy | JsonForm | None
_SHOWN = 5
_FAMILIES: Final[dict[type[t.DataType], Family]] = {
    t.NumericType: "number",
    t.StringType: "string",
    t.BooleanType: "boolean",
    t.TimestampType: "time",
    t.TimestampNTZType: "time",
    t.DateType: "time",
}


def matcher_source(  # noqa: PLR0913
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    parts: int = 1,
    *,
    seal: bool = True,
    limits: Limits = TRUSTED,
    default_policy: DefaultPolicy = DEFAULT_POLICY,
) -> MatcherSource:
    """Return the source of the workers' matchers.

    It is the folder of a publisher, if one is passed, or a folder that follows a store: in a
    stream, each batch has its own version. Other subscriptions are written to a folder that is
    removed with this process; without `seal` they travel as objects, which any scorer can rank.
    Owners of subscriptions that are not among the `subscribers` have the default policy; without
    one, they get nothing. A `Policy` instead of subscribers is that of every owner, and a dict has
    one by name.
    """
    default = None if default_policy is None else read_policy(default_policy, limits)
    if isinstance(subscriptions, Store | IndexFolder):
        if subscribers is not None:
            raise InvalidForm("subscriptions of a store or folder come with their subscribers")
        if not seal:
            raise InvalidPolicy(
                "the subscriptions of a store or folder are ranked by 'exact' or 'relaxed'; for "
                "other scorers, pass them as a DataFrame, objects or a file"
            )
        if isinstance(subscriptions, Store):
            count = validate.count("parts", parts)
            subscriptions = _published(publications, subscriptions, count, default)
        version = None if publications.isStreaming else subscriptions.lock_newest()
        return FolderSource(subscriptions, version)
    records = _members(subscriptions, subscribers, limits, default)
    warn_of_conditions(
        publications, chain.from_iterable(bundle.subscriptions for bundle in records)
    )
    threshold = publications.sparkSession.conf.get(THRESHOLD, None)
    if not seal:
        return PickledSource.of(records, threshold)
    path = temporary_folder(_parent_folder(publications))
    try:
        return FolderSource(build_folder(path, records, validate.count("parts", parts)), 1)
    except InvalidPolicy:  # a policy that cannot be written: it holds a function of the user
        return PickledSource.of(records, threshold)


def _parent_folder(publications: DataFrame) -> str | None:
    """Return the folder for index files that is set in Spark, if any."""
    return publications.sparkSession.conf.get(FOLDER, None)


def _published(
    publications: DataFrame, store: Store, parts: int, default: Policy | None
) -> IndexFolder:
    streaming = publications.isStreaming
    settings = PublishSettings(parts, _parent_folder(publications), streaming, default)
    publishers, key = store_publishers(), (store.history.store_id(), settings)
    if settings.streaming and not settings.durable and key not in publishers:
        warnings.warn(
            "the version of the subscriptions that each batch sees is kept in a temporary folder: "
            "a batch that is replayed after this process ended may see other subscriptions. Set "
            f"{FOLDER} to a durable folder before a checkpoint is begun",
            stacklevel=5,
        )
    return publishers.folder(store, settings)


def _members(
    subscriptions: SubscriptionRecords,
    subscribers: Subscribers,
    limits: Limits,
    default: Policy | None,
) -> list[SubscriberBundle]:
    """Return subscribers with their subscriptions; bad records are refused together."""
    valid = _all_valid("subscription", _subscriptions(subscriptions, limits))
    owners = sorted({subscription.subscriber for subscription in valid})
    if twice := [
        id for id, count in Counter(subscription.id for subscription in valid).items() if count > 1
    ]:
        raise InvalidSubscription(f"subscription {twice[0]!r} occurs twice")
    if isinstance(subscribers, Policy):
        subscribers, default = None, subscribers
    listed = _all_valid("subscriber", _subscribers(subscribers or [], limits))
    if default is not None:
        names = {subscriber.id for subscriber in listed}
        listed += [Subscriber(owner, default) for owner in owners if owner not in names]
    return bundle_subscribers(listed, valid)


def _subscriptions(records: SubscriptionRecords, limits: Limits) -> Iterator[Any]:
    if isinstance(records, DataFrame):
        return arrow.read_subscriptions(records.toArrow(), limits=limits)
    if isinstance(records, str | Path):
        return files.read_subscriptions(records, limits=limits)
    return _objects(Subscription, partial(loads_subscription, limits=limits), records)


def _subscribers(records: Any, limits: Limits) -> Iterator[Any]:
    if isinstance(records, DataFrame):
        loads = partial(loads_subscriber, limits=limits)
        return arrow.read_subscribers(records.toArrow(), loads, limits=limits)
    if isinstance(records, str | Path):
        return files.read_subscribers(records, limits=limits)
    if isinstance(records, Mapping):
        records = [{"id": name, "policy": policy} for name, policy in records.items()]
    return _objects(Subscriber, partial(_subscriber, limits=limits), records)


def _subscriber(form: JsonForm, limits: Limits) -> Subscriber:
    """Return the subscriber of a form whose policy may be an object."""
    if isinstance(form.get("policy"), Policy):
        return Subscriber(**form, limits=limits)
    return loads_subscriber(form, limits)


def _objects(
    kind: type[T], loads: Callable[[JsonForm], T], records: Any
) -> Iterator[T | BadRecord]:
    """Yield objects as they are, and the objects of JSON forms."""
    name = kind.__name__
    if not isinstance(records, Iterable):
        raise InvalidForm(
            f"{name.lower()}s must be a DataFrame, a file, objects or JSON forms, "
            f"not {shown(records)}"
        )
    for position, record in enumerate(records, start=1):
        if isinstance(record, kind):
            yield record
        elif isinstance(record, Mapping):
            yield attempt(loads, record, position, dict)
        else:
            raise InvalidForm(f"{shown(record)} is not a {name} or the JSON form of one")


def _all_valid(what: str, records: Iterator[T | BadRecord]) -> list[T]:
    """Return all records, or refuse them with the positions and reasons of the first bad ones."""
    all_records = list(records)
    bad = [record for record in all_records if isinstance(record, BadRecord)]
    if bad:
        reasons = "\n".join(f"  {record.position}: {record.reason}" for record in bad[:_SHOWN])
        raise InvalidForm(f"{len(bad)} of {len(all_records)} {what}s cannot be used:\n{reasons}")
    return [record for record in all_records if not isinstance(record, BadRecord)]


def warn_of_conditions(publications: DataFrame, subscriptions: Iterable[Subscription]) -> None:
    """Warn of conditions on attributes that are not columns, or columns of another type."""
    diagnosis = compare_with_schema(publications.schema, subscriptions)
    if diagnosis.findings:
        lines = "".join(f"\n  {line}" for line in diagnosis.lines)
        text = f"no publication can satisfy these conditions:{lines}"
        warnings.warn(text, ImpossibleCondition, stacklevel=_calls_within_tidings())


def compare_with_schema(schema: t.StructType, subscriptions: Iterable[Subscription]) -> Diagnosis:
    """Compare subscriptions with columns; the keys of maps, and lines of JSON, may be anything."""
    if "id" not in schema.names:
        return Diagnosis(0, 0)
    columns = {field.name: field.dataType for field in schema if field.name not in EVENT_COLUMNS}
    profile = Profile.of_types({name: _family(kind) for name, kind in columns.items()})
    diagnosis = diagnose(subscriptions, profile)
    has_map = any(isinstance(kind, t.MapType) for kind in columns.values())
    return diagnosis.only("type") if has_map else diagnosis.only("attribute", "type")


def _family(kind: t.DataType) -> Family | None:
    """Return the family of the values of a column, or of the elements of its lists."""
    if isinstance(kind, t.ArrayType):
        kind = kind.elementType
    families = (family for spark_type, family in _FAMILIES.items() if isinstance(kind, spark_type))
    return next(families, None)


def _calls_within_tidings() -> int:
    """Return the stack level at which a warning names the line of the user."""
    frame, level = currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tidings."):
        frame, level = frame.f_back, level + 1
    return level
