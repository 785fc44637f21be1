"""Forms: what JSON, JSON Lines, TOML and HTTP bodies hold, read strictly into objects.

A field that is missing or unknown is an error that names the record. A field that may be left out
may also be null. Every object's `to_dict()` is its form, and reads back equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidings.errors import InvalidForm, TidingsError, shown
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber

_FEW: Final = 20
_SHORT: Final = 300
_SMALL: Final = 4 * 5 * _FEW * (_FEW + 1) * _SHORT
"""No form of 5 fields, each of a few lists of a few short texts, has more bytes."""
_NUMBERS: Final = (int, float, bool)


def loads_event(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Event:
    """Read the form of an event.

    >>> loads_event({"id": "e1", "published_at": 0, "attributes": {"genre": ["drama"]}}).tokens
    {'genre': frozenset({('string', 'drama')})}
    >>> loads_event({"id": "e1", "published": 0, "attributes": {}})
    Traceback (most recent call last):
    tidings.errors.InvalidForm: event e1: unknown field 'published'; possible are 'id',
    'published_at', 'attributes', 'sequence', 'probabilities'
    """
    check_limits(limits, InvalidForm)
    optional = ("sequence", "probabilities")
    found = fields(form, "event", ("id", "published_at", "attributes"), optional)
    if not validate.is_a(found.get("probabilities", {}), Mapping):
        label = _label("event", found["id"])
        raise InvalidForm(f"{label}: `probabilities` is an object of numbers")
    _check(found, "event", limits)
    attributes = found["attributes"]
    if isinstance(attributes, dict) and len(attributes) > limits.attributes:
        label = _label("event", found["id"])
        limits.check(
            "attributes", len(attributes), f"{label}: the number of attributes", InvalidForm
        )
    return Event(**found)


def loads_subscription(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscription:
    """Read the form of a subscription, which has either `where` or `any`.

    >>> form = {"id": "s1", "subscriber": "bob", "any": [["storage <= 16", 0.7]]}
    >>> loads_subscription(form).to_dict() == form
    True
    """
    check_limits(limits, InvalidForm)
    optional = ("where", "any", "prefrank", "score")
    found = fields(form, "subscription", ("id", "subscriber"), optional)
    _check(found, "subscription", limits)
    return Subscription(**found, limits=limits)


def loads_policy(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Policy:
    """Read the form of a policy; parts that are left out are at their defaults."""
    check_limits(limits, InvalidForm)
    found = fields(form, "policy", (), ("k", "scorer", "decay", "window", "diversify"))
    _check(found, "policy", limits)
    return Policy(**found, limits=limits)


def loads_subscriber(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscriber:
    """Read the form of a subscriber.

    >>> loads_subscriber({"id": "addison", "policy": {"k": 2}}).policy.k
    2
    """
    check_limits(limits, InvalidForm)
    found = fields(form, "subscriber", ("id",), ("policy", "prefers"))
    _check(found, "subscriber", limits)
    label = _label("subscriber", found["id"])
    try:
        policy = loads_policy(found.get("policy", {}), limits)
    except TidingsError as error:
        raise InvalidForm(f"{label}: {error}") from None
    prefers = found.get("prefers", ())
    if not validate.is_a(prefers, list | tuple):
        raise InvalidForm(f"{label}: `prefers` is a list of [better, worse] pairs")
    return Subscriber(found["id"], policy, prefers, limits)


def _check(form: dict[str, Any], what: str, limits: Limits) -> None:
    """Refuse a form that is too large or nests too deeply."""
    if not _small(form, limits):
        limits.check_record(form, _label(what, form.get("id")), InvalidForm)


def _small(form: dict[str, Any], limits: Limits) -> bool:
    """Tell whether a form is within limits by a look at it, as most are.

    It has some fields of short texts and numbers, or objects of some of these or of short lists.
    """
    if limits.record_bytes < _SMALL or limits.string_bytes < 4 * _SHORT or limits.nesting < 3:
        return False
    for value in form.values():
        if type(value) is dict:
            if len(value) > _FEW or not all(map(_short, value)):
                return False
            for inner in value.values():
                if not (_short(inner) or (type(inner) is list and _short_list(inner))):
                    return False
        elif not _short(value):
            return False
    return True


def _short_list(values: list[Any]) -> bool:
    return len(values) <= _FEW and all(map(_short, values))


def _short(value: object) -> bool:
    return len(value) <= _SHORT if type(value) is str else type(value) in _NUMBERS


def _label(what: str, name: object) -> str:
    return f"{what} {name}" if validate.is_a(name, str) else what


def fields(
    form: object, what: str, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Give the fields of a form, all `required` ones and no others than these and `optional`.

    An optional field that is null is left out. `what` names the record in errors, along with its
    id where it has one.
    """
    given = validate.mapping(f"{what}: the form is an object with named fields", form, InvalidForm)
    possible = (*required, *optional)
    for name in given:
        if not isinstance(name, str) or name not in possible:
            listed = ", ".join(map(repr, possible))
            label = _label(what, given.get("id"))
            raise InvalidForm(f"{label}: unknown field {shown(name)}; possible are {listed}")
    for name in required:
        if name not in given:
            raise InvalidForm(f"{_label(what, given.get('id'))}: field {name!r} is missing")
    return {name: given[name] for name in given if name in required or given[name] is not None}
