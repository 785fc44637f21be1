"""Forms: what JSON, JSON Lines, TOML and HTTP bodies hold, read strictly into objects.

A field that is missing or unknown is an error that names the record. A field that may be left out
may also be null. Every object's `to_dict()` is its form, and reads back equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.errors import InvalidForm, TidingsError
from tidings.limits import TRUSTED, Limits
from tidings.model import Event, Subscription
from tidings.policy import Policy, Subscriber


def loads_event(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Event:
    """Read the form of an event.

    >>> loads_event({"id": "e1", "published_at": 0, "attributes": {"genre": ["drama"]}}).tokens
    {'genre': frozenset({('string', 'drama')})}
    >>> loads_event({"id": "e1", "published": 0, "attributes": {}})
    Traceback (most recent call last):
    tidings.errors.InvalidForm: event e1: unknown field 'published'; possible are 'id',
    'published_at', 'attributes', 'sequence', 'probabilities'
    """
    optional = ("sequence", "probabilities")
    found = fields(form, "event", ("id", "published_at", "attributes"), optional)
    if not isinstance(found.get("probabilities", {}), Mapping):
        raise InvalidForm(f"event {found['id']}: `probabilities` is an object of numbers")
    return Event(**found)


def loads_subscription(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscription:
    """Read the form of a subscription, which has either `where` or `any`.

    >>> form = {"id": "s1", "subscriber": "bob", "any": [["storage <= 16", 0.7]]}
    >>> loads_subscription(form).to_dict() == form
    True
    """
    optional = ("where", "any", "prefrank", "score")
    return Subscription(**fields(form, "subscription", ("id", "subscriber"), optional))


def loads_policy(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Policy:
    """Read the form of a policy; parts that are left out are at their defaults."""
    found = fields(form, "policy", (), ("k", "scorer", "decay", "window", "diversify"))
    return Policy(**found, limits=limits)


def loads_subscriber(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscriber:
    """Read the form of a subscriber.

    >>> loads_subscriber({"id": "addison", "policy": {"k": 2}}).policy.k
    2
    """
    found = fields(form, "subscriber", ("id",), ("policy", "prefers"))
    try:
        policy = loads_policy(found.get("policy", {}), limits)
    except TidingsError as error:
        raise InvalidForm(f"subscriber {found['id']}: {error}") from None
    prefers = found.get("prefers", ())
    if not isinstance(prefers, list | tuple):
        raise InvalidForm(f"subscriber {found['id']}: `prefers` is a list of [better, worse] pairs")
    return Subscriber(found["id"], policy, prefers)


def fields(
    form: object, what: str, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Give the fields of a form, all `required` ones and no others than these and `optional`.

    An optional field that is null is left out. `what` names the record in errors, along with its
    id where it has one.
    """
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{what}: the form is an object with named fields, not {form!r}")
    label = f"{what} {form['id']}" if isinstance(form.get("id"), str) else what
    possible = (*required, *optional)
    for name in form:
        if name not in possible:
            listed = ", ".join(map(repr, possible))
            raise InvalidForm(f"{label}: unknown field {name!r}; possible are {listed}")
    for name in required:
        if name not in form:
            raise InvalidForm(f"{label}: field {name!r} is missing")
    return {name: form[name] for name in form if name in required or form[name] is not None}
