"""A subscriber together with its subscriptions: the unit of bases and of deltas, and its form.

Bundles in files are chunks of compressed JSON. A condition is written as its predicates, so that it
is never parsed again, and a policy once per chunk. These bytes are not touched while events are
matched.

    {"policies":      [form, ...],
     "members":       [[name, policy number or null, prefers, paused], ...],
     "subscriptions": [[member number, id, prefrank, score, conjunctions, weighted], ...]}
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isnan
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tidings.compiled.array_file import Reader, Writer, parsed
from tidings.errors import InvalidCondition, TidingsError, shown
from tidings.feed.policy_key import counts_published, feed_form
from tidings.formats.json_forms import loads_policy
from tidings.model import validate
from tidings.model.conditions.predicate import (
    NEGATIONS,
    OPERATORS,
    PRESENCE,
    Condition,
    Predicate,
    predicate,
)
from tidings.model.records import Subscription, Weighted
from tidings.policy import Policy, Subscriber

_FINGERPRINT_BYTES: Final = 8
CHUNK_RECORDS: Final = 10_000
"""A chunk ends with the bundle that brings it to this many names and subscriptions."""
MAX_CHUNK_BYTES: Final = 1 << 30
"""No chunk may expand to more than this, whatever its compressed form claims."""
_TYPES: Final = {"number": float, "time": float, "string": str, "boolean": bool}
_PREDICATE: Final[Any] = attrgetter("attribute", "operator", "family", "operand")
_FAULTS: Final = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True)
class SubscriberBundle:
    """A name with its subscriber and subscriptions.

    A name may have subscriptions without a subscriber, or the reverse; with neither, it is removed.
    """

    name: str
    subscriber: Subscriber | None = None
    subscriptions: Sequence[Subscription] = ()


def bundle_subscribers(
    subscribers: Iterable[Subscriber], subscriptions: Iterable[Subscription]
) -> list[SubscriberBundle]:
    """Return subscribers with their subscriptions, in order of name."""
    by_name = {subscriber.id: subscriber for subscriber in subscribers}
    owned = defaultdict[str, list[Subscription]](list)
    for subscription in subscriptions:
        owned[subscription.subscriber].append(subscription)
    names = sorted(by_name.keys() | owned.keys())
    return [SubscriberBundle(name, by_name.get(name), owned.get(name, ())) for name in names]


def any_counts_published(bundles: Iterable[SubscriberBundle]) -> bool:
    """Return whether a window counts all published events, and so needs their sequence numbers."""
    return any(
        counts_published(bundle.subscriber.policy) for bundle in bundles if bundle.subscriber
    )


def fingerprint(subscribers: Iterable[Subscriber]) -> int:
    """Return a number that changes with any policy that a feed depends on.

    The subscribers come in order of name.
    """
    forms: dict[int, str] = {}
    digest = blake2b(digest_size=_FINGERPRINT_BYTES)
    for subscriber in subscribers:
        policy = subscriber.policy
        form = forms.get(id(policy)) or json.dumps(feed_form(policy), sort_keys=True)
        forms[id(policy)] = form
        digest.update(f"{json.dumps(subscriber.id)}{form}".encode())
    return int.from_bytes(digest.digest())


def write_bundles(writer: Writer, bundles: Iterable[SubscriberBundle]) -> None:
    """Write bundles."""
    # Of all values only the operand of an `in`, a set, has no form of its own: it is sorted.
    forms = (json.dumps(form, default=sorted) for form in _forms([*bundles]))
    chunks = [zlib.compress(form.encode(), level=1) for form in forms]
    writer.array("ends", np.cumsum([0, *map(len, chunks)], dtype=np.int64))
    writer.array("chunks", np.frombuffer(b"".join(chunks), np.uint8))


def read_bundles(reader: Reader) -> Iterator[SubscriberBundle]:
    """Yield the bundles of a file; about 20 us per subscription."""
    data = reader.array("chunks", np.uint8)
    ends = reader.array("ends", np.int64)
    reader.require(len(ends), "ends", "is empty")
    reader.starts("ends", len(ends) - 1, len(data))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        try:
            yield from _bundles(parsed(_expand(data[first:last].tobytes())))
        except (zlib.error, TidingsError, *_FAULTS) as error:
            reader.refuse(f"{reader.prefix}chunks: {error}")


def _expand(chunk: bytes) -> bytes:
    expander = zlib.decompressobj()
    expanded = expander.decompress(chunk, MAX_CHUNK_BYTES)
    if not expander.eof:
        raise ValueError("a chunk is truncated, or too large")
    return expanded


def _forms(bundles: Sequence[SubscriberBundle]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON form of one chunk after the other."""
    # The hash of a policy takes longer than all else; most subscribers share an object.
    form, policies, by_identity = _empty_form(), dict[Policy, int](), dict[int, int]()
    for bundle in bundles:
        if bundle.subscriber:
            subscriber, policy = bundle.subscriber, bundle.subscriber.policy
            number = by_identity.get(id(policy), -1)
            if number < 0:
                number = by_identity[id(policy)] = policies.setdefault(policy, len(policies))
            if number == len(form["policies"]):
                form["policies"].append(policy.to_dict())
            form["members"].append([bundle.name, number, subscriber.prefers, subscriber.paused])
        else:
            form["members"].append([bundle.name, None, [], False])
        owner = len(form["members"]) - 1
        form["subscriptions"] += (
            [owner, *_row(subscription)] for subscription in bundle.subscriptions
        )
        if len(form["members"]) + len(form["subscriptions"]) >= CHUNK_RECORDS:
            yield form
            form, policies, by_identity = _empty_form(), {}, {}
    if form["members"]:
        yield form


def _empty_form() -> dict[str, Any]:
    return {"policies": [], "members": [], "subscriptions": []}


def _row(subscription: Subscription) -> list[Any]:
    """Return id, prefrank, score, and the predicates of `where` or of `any`."""
    fields = [subscription.id, subscription.prefrank, subscription.score]
    if isinstance(subscription.where, Condition):
        conjunctions = subscription.where.conjunctions
        return [*fields, [list(map(_PREDICATE, parts)) for parts in conjunctions], None]
    weighted = [
        [_PREDICATE(part.predicate), part.weight, part.state] for part in subscription.groups[0]
    ]
    return [*fields, None, weighted]


def _bundles(form: Any) -> Iterator[SubscriberBundle]:
    policies = [loads_policy(policy) for policy in form["policies"]]
    owned: dict[int, list[Any]] = {}
    for owner, *row in form["subscriptions"]:
        owned.setdefault(owner, []).append(row)
    for number, (name, policy, prefers, paused) in enumerate(form["members"]):
        validate.name("the name of a subscriber", name, TidingsError)
        subscriber = None
        if policy is not None:
            subscriber = Subscriber(name, _policy_at(policies, policy), prefers, paused)
        rows = owned.pop(number, ())
        yield SubscriberBundle(name, subscriber, tuple(_subscription(name, *row) for row in rows))
    if owned:
        raise ValueError("a subscription has no owner")


def _policy_at(policies: Sequence[Policy], number: Any) -> Policy:
    if type(number) is not int or number < 0:
        raise ValueError(f"{shown(number)} is not the number of a policy")
    return policies[number]


def _subscription(
    owner: str, name: Any, prefrank: Any, score: Any, where: Any, any_: Any
) -> Subscription:
    condition = None if where is None else Condition(tuple(map(_conjunction, where)))
    weighted = None
    if any_ is not None:
        weighted = [Weighted(_predicate(*row), weight, state) for row, weight, state in any_]
    return Subscription(name, owner, condition, weighted, prefrank, score)


def _conjunction(rows: Any) -> tuple[Predicate, ...]:
    return tuple([_predicate(*row) for row in rows])


def _predicate(attribute: Any, operator: Any, family: Any, operand: Any) -> Predicate:
    """Return the predicate that `model.conditions.predicate.predicate` would have returned."""
    if type(operator) is not str or operator not in OPERATORS:
        raise InvalidCondition(
            f"unknown operator {shown(operator)}; expected one of: {', '.join(OPERATORS)}"
        )
    if operator != "true":
        validate.name("an attribute's name", attribute, InvalidCondition)
    if operator in PRESENCE:
        return predicate(attribute, operator)
    kind: Any = _TYPES[family]
    written, operator = operator, NEGATIONS.get(operator, operator)
    if operator == "in":
        values = frozenset(operand)
        valid = bool(values) and all(type(value) is kind for value in values)
        operand = values
    elif operator == "between":
        low, high = operand
        valid = type(low) is type(high) is kind and kind is not bool and low <= high
        operand = (low, high)
    else:
        valid = type(operand) is kind and _is_possible(operator, family)
    if not valid or (kind is float and any(map(isnan, _numbers(operand)))):
        raise InvalidCondition(f"{attribute} {written} {shown(operand)} is not a valid predicate")
    return Predicate(attribute, written, family, operand)


def _numbers(operand: Any) -> Iterable[float]:
    return (operand,) if isinstance(operand, float) else operand


def _is_possible(operator: str, family: str) -> bool:
    """Return whether a family has an operator other than `in` and `between`."""
    if family == "string":
        return True
    if family == "boolean":
        return operator in ("=", "!=")
    return operator == "!="
