"""Members in files: what a base was made of, what changed since, and who has no compiled form.

They are chunks of compressed JSON. A condition is written as its predicates, so that none has to be
parsed again; a policy once for all who hold it in a chunk. Nobody maps these bytes while events are
matched.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Final

import numpy as np

from tidings.compiled.array_file import Reader, Writer, parsed
from tidings.errors import InvalidCondition, TidingsError, shown
from tidings.formats.json_forms import loads_policy
from tidings.index_files.subscriber_bundle import Member
from tidings.model import validate
from tidings.model.conditions.predicate import OPERATORS, Condition, Predicate
from tidings.model.records import Subscription, Weighted
from tidings.policy import Policy, Subscriber

TOGETHER: Final = 10_000
"""So many subscriptions and members are a chunk, or a few more."""
MOST_BYTES: Final = 1 << 30
"""No chunk has more bytes, whatever its compressed form would come to."""
_TYPES: Final = {"number": float, "time": float, "string": str, "boolean": bool}
_FAULTS: Final = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def write_members(writer: Writer, members: Iterable[Member]) -> None:
    """Add members to a file."""
    chunks = [zlib.compress(json.dumps(form).encode(), level=1) for form in _forms(members)]
    writer.array("ends", np.cumsum([0, *map(len, chunks)], dtype=np.int64))
    writer.array("chunks", np.frombuffer(b"".join(chunks), np.uint8))


def read_members(reader: Reader) -> Iterator[Member]:
    """Yield the members of a file; some 20 us for each of their subscriptions."""
    data = reader.array("chunks", np.uint8)
    ends = reader.array("ends", np.int64)
    reader.require(len(ends), "ends", "is empty")
    reader.starts("ends", len(ends) - 1, len(data))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        try:
            yield from _members(parsed(_expanded(data[first:last].tobytes())))
        except (zlib.error, TidingsError, *_FAULTS) as error:
            reader.refuse(f"{reader.prefix}chunks: {error}")


def _expanded(chunk: bytes) -> bytes:
    expander = zlib.decompressobj()
    found = expander.decompress(chunk, MOST_BYTES)
    if not expander.eof:
        raise ValueError("a chunk is cut short, or too large")
    return found


def _forms(members: Iterable[Member]) -> Iterator[Mapping[str, Any]]:
    """Yield members as JSON, a chunk each time."""
    form, policies = _empty(), dict[Policy, int]()
    for each in members:
        if each.subscriber:
            number = policies.setdefault(each.subscriber.policy, len(policies))
            if number == len(form["policies"]):
                form["policies"].append(each.subscriber.policy.to_dict())
            form["members"].append([each.name, number, each.subscriber.prefers])
        else:
            form["members"].append([each.name, None, []])
        owner = len(form["members"]) - 1
        form["subscriptions"] += ([owner, *_written(wish)] for wish in each.subscriptions)
        if len(form["members"]) + len(form["subscriptions"]) >= TOGETHER:
            yield form
            form, policies = _empty(), {}
    if form["members"]:
        yield form


def _empty() -> dict[str, Any]:
    return {"policies": [], "members": [], "subscriptions": []}


def _written(wish: Subscription) -> list[Any]:
    """Return id, prefrank, score, and the predicates of `where` or of `any`."""
    about = [wish.id, wish.prefrank, wish.score]
    if isinstance(wish.where, Condition):
        return [*about, [list(map(_predicate, each)) for each in wish.where.conjunctions], None]
    parts = [[_predicate(each.predicate), each.weight, each.state] for each in wish.groups[0]]
    return [*about, None, parts]


def _predicate(part: Predicate) -> list[Any]:
    operand = sorted(part.operand) if part.operator == "in" else part.operand
    return [part.attribute, part.operator, part.family, operand]


def _members(form: Any) -> Iterator[Member]:
    policies = [loads_policy(each) for each in form["policies"]]
    owned: dict[int, list[Any]] = {}
    for owner, *wish in form["subscriptions"]:
        owned.setdefault(owner, []).append(wish)
    for number, (name, policy, prefers) in enumerate(form["members"]):
        validate.name("the name of a member", name, TidingsError)
        person = None if policy is None else Subscriber(name, _at(policies, policy), prefers)
        wishes = tuple(_subscription(name, *each) for each in owned.pop(number, ()))
        yield Member(name, person, wishes)
    if owned:
        raise ValueError("a subscription has no owner")


def _at(policies: Sequence[Policy], number: Any) -> Policy:
    if type(number) is not int or number < 0:
        raise ValueError(f"{shown(number)} is no number of a policy")
    return policies[number]


def _subscription(
    owner: str, name: Any, prefrank: Any, score: Any, where: Any, any_: Any
) -> Subscription:
    condition = None if where is None else Condition(tuple(map(_conjunction, where)))
    weighted = None
    if any_ is not None:
        weighted = [Weighted(_read(*part), weight, state) for part, weight, state in any_]
    return Subscription(name, owner, condition, weighted, prefrank, score)


def _conjunction(parts: Any) -> tuple[Predicate, ...]:
    return tuple([_read(*each) for each in parts])


def _read(attribute: Any, operator: Any, family: Any, operand: Any) -> Predicate:
    """Return a predicate as `tidings.model.conditions.predicate.predicate` would have made it."""
    validate.name("an attribute's name", attribute, InvalidCondition)
    if type(operator) is not str or operator not in OPERATORS:
        raise InvalidCondition(f"{shown(operator)} is no operator")
    kind: Any = _TYPES[family]
    if operator == "in":
        found = frozenset(operand)
        right = bool(found) and all(type(each) is kind for each in found)
        operand = found
    elif operator == "between":
        low, high = operand
        right = type(low) is type(high) is kind and kind is not bool and low <= high
        operand = (low, high)
    else:
        right = type(operand) is kind and _possible(operator, family)
    if not right or (kind is float and any(map(isnan, _numbers(operand)))):
        raise InvalidCondition(f"{attribute} {operator} {shown(operand)} is no predicate")
    return Predicate(attribute, operator, family, operand)


def _numbers(operand: Any) -> Iterable[float]:
    return (operand,) if isinstance(operand, float) else operand


def _possible(operator: str, family: str) -> bool:
    """Tell whether an operator other than `in` and `between` is one of a family."""
    if family == "string":
        return True
    if family == "boolean":
        return operator in ("=", "!=")
    return operator == "!="
