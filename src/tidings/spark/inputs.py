"""What a user hands over: DataFrames, objects or files of subscriptions and subscribers."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame

from tidings.errors import InvalidForm, InvalidPolicy, InvalidSubscription
from tidings.formats import arrow, files
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.index_files.versions import IndexFolder
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.spark.match_stage.matcher_source import PinnedRoster, Versions
from tidings.spark.match_stage.pickled_members import THRESHOLD, Carried, carry
from tidings.spark.match_stage.store_followers import Wish, followed, temporary_folder
from tidings.spark.state_stage.policies import Roster
from tidings.store import Store

T = TypeVar("T")
Form = Mapping[str, Any]
Given = DataFrame | Iterable[Subscription | Form] | str | Path
Subscriptions = Given | IndexFolder | Store
People = Iterable[Subscriber | Form] | Mapping[str, Policy | Form]
Subscribers = DataFrame | People | Policy | str | Path | None
FOLDER: Final = "spark.tidings.index"
"""The setting that names a folder for index files, which all machines of a cluster see."""
_SHOWN = 5


def matchers(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    parts: int = 1,
    *,
    seal: bool = True,
    limits: Limits = TRUSTED,
) -> Versions | Carried:
    """Make what the workers match with.

    That is the folder of a publisher, if one is given, or one that follows a store: in a stream,
    each batch has its own version. Without `seal`, it is objects, of which all can be asked.
    All else is sealed in a folder that is removed with this process. Without `subscribers`,
    everybody who owns a subscription has the default policy; a `Policy` in their place is that of
    everybody, and a dict tells that of each.
    """
    if isinstance(subscriptions, Store | IndexFolder):
        if subscribers is not None:
            raise InvalidForm("subscriptions of a store or folder come with their subscribers")
        if not seal:
            raise InvalidPolicy(
                "the subscriptions of a store or folder are ranked by 'exact' or 'relaxed'; for "
                "others, hand them over as a DataFrame, objects or a file"
            )
        if isinstance(subscriptions, Store):
            subscriptions = _followed(publications, subscriptions, validate.count("parts", parts))
        version = None if publications.isStreaming else subscriptions.lock_newest()
        return Versions(subscriptions, version)
    given = _members(subscriptions, subscribers, limits)
    threshold = publications.sparkSession.conf.get(THRESHOLD, None)
    if not seal:
        return carry(given, threshold)
    path = temporary_folder(_below(publications))
    try:
        return Versions(build_folder(path, given, validate.count("parts", parts)), 1)
    except InvalidPolicy:  # a policy that cannot be written: a function of the user
        return carry(given, threshold)


def roster(found: Versions | Carried) -> Roster:
    """Give who has which policy, as the state stage asks."""
    return PinnedRoster(found) if isinstance(found, Versions) else found.roster()


def _below(publications: DataFrame) -> str | None:
    """Give where Spark was told that index files are to be."""
    return publications.sparkSession.conf.get(FOLDER, None)


def _followed(publications: DataFrame, store: Store, parts: int) -> IndexFolder:
    wish = Wish(parts, _below(publications), publications.isStreaming)
    found, key = followed(), (store.history.store_id(), wish)
    if wish.streaming and not wish.lasting and key not in found:
        warnings.warn(
            "which subscriptions a batch sees is kept in a temporary folder: a batch that is "
            "replayed after this process ended may see others than it saw. Set "
            f"{FOLDER} to a folder that stays, before a checkpoint is begun",
            stacklevel=5,
        )
    return found.folder(store, wish)


def _members(
    subscriptions: Given, subscribers: Subscribers, limits: Limits
) -> list[SubscriberBundle]:
    """Read who wants what; records that cannot be used are refused together, with the reasons."""
    wanted = _all_good("subscription", _subscriptions(subscriptions, limits))
    owners = sorted({each.subscriber for each in wanted})
    if twice := [name for name, count in Counter(each.id for each in wanted).items() if count > 1]:
        raise InvalidSubscription(f"subscription {twice[0]!r} is there twice")
    if subscribers is None or isinstance(subscribers, Policy):
        return bundle_subscribers(
            [Subscriber(name, subscribers or Policy()) for name in owners], wanted
        )
    people = _all_good("subscriber", _subscribers(subscribers, limits))
    if missing := sorted({*owners} - {each.id for each in people}):
        raise InvalidForm(f"subscriptions have subscribers that are not there: {missing[:_SHOWN]}")
    return bundle_subscribers(people, wanted)


def _subscriptions(given: Given, limits: Limits) -> Iterator[Any]:
    if isinstance(given, DataFrame):
        return arrow.read_subscriptions(given.toArrow(), limits=limits)
    if isinstance(given, str | Path):
        return files.read_subscriptions(given, limits=limits)
    return _objects(Subscription, partial(loads_subscription, limits=limits), given)


def _subscribers(given: Any, limits: Limits) -> Iterator[Any]:
    if isinstance(given, DataFrame):
        loads = partial(loads_subscriber, limits=limits)
        return arrow.read_subscribers(given.toArrow(), loads, limits=limits)
    if isinstance(given, str | Path):
        return files.read_subscribers(given, limits=limits)
    if isinstance(given, Mapping):
        given = [{"id": name, "policy": policy} for name, policy in given.items()]
    return _objects(Subscriber, partial(_subscriber, limits=limits), given)


def _subscriber(form: Form, limits: Limits) -> Subscriber:
    """Read the form of a subscriber, whose policy may be an object."""
    if isinstance(form.get("policy"), Policy):
        return Subscriber(**form, limits=limits)
    return loads_subscriber(form, limits)


def _objects(kind: type[T], loads: Callable[[Form], T], given: Any) -> Iterator[T | BadRecord]:
    """Give objects as they are, and what forms stand for."""
    if not isinstance(given, Iterable):
        raise InvalidForm(
            f"{kind.__name__.lower()}s are a DataFrame, a file, objects or forms, not {given!r}"
        )
    for position, each in enumerate(given, start=1):
        if isinstance(each, kind):
            yield each
        elif isinstance(each, Mapping):
            yield attempt(loads, each, position, dict)
        else:
            raise InvalidForm(f"{each!r} is no {kind.__name__} and no form of one")


def _all_good(what: str, found: Iterator[T | BadRecord]) -> list[T]:
    """Give all records, or say which are bad and why, the first few of them."""
    records = list(found)
    bad = [each for each in records if isinstance(each, BadRecord)]
    if bad:
        reasons = "\n".join(f"  {each.position}: {each.reason}" for each in bad[:_SHOWN])
        raise InvalidForm(f"{len(bad)} of {len(records)} {what}s cannot be used:\n{reasons}")
    return [each for each in records if not isinstance(each, BadRecord)]
