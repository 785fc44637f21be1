"""JSON forms of events, subscriptions, policies and subscribers, read strictly into objects.

A missing or unknown field is an error that names the record. An optional field may also be null.
`to_dict()` returns the form of an object, which reads back as an equal object.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidings.errors import InvalidForm, TidingsError, shown
from tidings.model import validate
from tidings.model.limits import CONTENT, TRUSTED, Limits, check_limits
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber

_FEW: Final = 20
_SHORT: Final = 300
_SMALL: Final = 4 * 6 * _FEW * (_FEW + 1) * _SHORT
"""The most bytes of a form with 6 fields that each hold a few lists of a few short strings."""
_NUMBERS: Final = (int, float, bool)


def loads_event(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Event:
    """Read the form of an event.

    >>> loads_event({"id": "e1", "published_at": 0, "attributes": {"genre": ["drama"]}}).tokens
    {'genre': frozenset({('string', 'drama')})}
    >>> loads_event({"id": "e1", "published": 0, "attributes": {}})
    Traceback (most recent call last):
    tidings.errors.InvalidForm: event e1: unknown field 'published'; expected one of:
    'id', 'published_at', 'attributes', 'sequence', 'probabilities', 'content'
    """
    check_limits(limits, InvalidForm)
    optional = ("sequence", "probabilities", "content")
    values = fields(form, "event", ("id", "published_at", "attributes"), optional)
    if not validate.is_a(values.get("probabilities", {}), Mapping):
        label = _label("event", values["id"])
        raise InvalidForm(f"{label}: `probabilities` is an object of numbers")
    _check(values, "event", limits)
    attributes = values["attributes"]
    if isinstance(attributes, dict) and len(attributes) > limits.attributes:
        label = _label("event", values["id"])
        limits.check(
            "attributes", len(attributes), f"{label}: the number of attributes", InvalidForm
        )
    return Event(**values)


def loads_subscription(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscription:
    """Read the form of a subscription, which has either `where` or `any`.

    >>> form = {"id": "s1", "subscriber": "bob", "any": [["storage <= 16", 0.7]]}
    >>> loads_subscription(form).to_dict() == form
    True
    """
    check_limits(limits, InvalidForm)
    optional = ("where", "any", "prefrank", "score")
    values = fields(form, "subscription", ("id", "subscriber"), optional)
    _check(values, "subscription", limits, apart="where")
    return Subscription(**values, limits=limits)


def loads_policy(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Policy:
    """Read the form of a policy; missing parts have their defaults."""
    check_limits(limits, InvalidForm)
    values = fields(form, "policy", (), ("k", "scorer", "decay", "window", "diversify", "rules"))
    _check(values, "policy", limits)
    return Policy(**values, limits=limits)


def read_policy(value: Policy | Mapping[str, Any], limits: Limits = TRUSTED) -> Policy:
    """Return a policy that may be an object already."""
    if validate.is_a(value, Policy):
        return value  # type: ignore[return-value]
    return loads_policy(value, limits)  # type: ignore[arg-type]


def loads_subscriber(form: Mapping[str, Any], limits: Limits = TRUSTED) -> Subscriber:
    """Read the form of a subscriber.

    >>> loads_subscriber({"id": "addison", "policy": {"k": 2}}).policy.k
    2
    """
    check_limits(limits, InvalidForm)
    values = fields(form, "subscriber", ("id",), ("policy", "prefers", "paused"))
    _check(values, "subscriber", limits)
    label = _label("subscriber", values["id"])
    try:
        policy = loads_policy(values.get("policy", {}), limits)
    except TidingsError as error:
        raise InvalidForm(f"{label}: {error}") from None
    prefers = values.get("prefers", ())
    if not validate.is_a(prefers, list | tuple):
        raise InvalidForm(f"{label}: `prefers` is a list of [better, worse] pairs")
    return Subscriber(values["id"], policy, prefers, values.get("paused", False), limits)


def _check(form: dict[str, Any], what: str, limits: Limits, *, apart: str = CONTENT) -> None:
    """Refuse a form that is too large or nests too deeply."""
    if not _small(form, limits):
        limits.check_record(form, _label(what, form.get("id")), InvalidForm, apart=apart)


def _small(form: dict[str, Any], limits: Limits) -> bool:
    """Return whether a form is so small that it is within the limits, as most are.

    Its fields are short strings and numbers, or objects of few of these or of short lists.
    """
    if (
        limits.record_bytes < _SMALL
        or limits.string_bytes < 4 * _SHORT
        or limits.list_values < _FEW
        or limits.nesting < 3
    ):
        return False
    for value in form.values():
        if type(value) is dict:
            if len(value) > _FEW or not all(map(_short, value)):
                return False
            for inner in value.values():  # a call per value would take as long as the rest
                kind = type(inner)
                if kind is str:
                    if len(inner) > _SHORT:
                        return False
                elif kind not in _NUMBERS and not (kind is list and _short_list(inner)):
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
    """Return the fields of a form: all `required` ones, and those of `optional` that are not null.

    Any other field is refused. `what` names the record in errors, along with its id if it has one.
    """
    form_fields = validate.mapping(
        f"{what}: the form is an object with named fields", form, InvalidForm
    )
    possible = (*required, *optional)
    for name in form_fields:
        if not isinstance(name, str) or name not in possible:
            listed = ", ".join(map(repr, possible))
            label = _label(what, form_fields.get("id"))
            raise InvalidForm(f"{label}: unknown field {shown(name)}; expected one of: {listed}")
    for name in required:
        if name not in form_fields:
            raise InvalidForm(f"{_label(what, form_fields.get('id'))}: field {name!r} is missing")
    return {
        name: value for name, value in form_fields.items() if name in required or value is not None
    }


def ordinary(form: Any) -> Any:
    """Convert a form as programs write it to files into a strict one.

    A null is a missing attribute, or is left out of a list, and a whole number is an id.

    >>> ordinary({"id": 7, "attributes": {"genre": ["drama", None], "year": None}})
    {'id': '7', 'attributes': {'genre': ['drama']}}
    """
    if type(form) is not dict:
        return form
    ids = {name: validate.whole_name(form[name]) for name in ("id", "subscriber") if name in form}
    attributes = form.get("attributes")
    if type(attributes) is not dict:
        return {**form, **ids}
    present = {name: value for name, value in attributes.items() if value is not None}
    for name, value in present.items():
        if type(value) is list and None in value:
            present[name] = [element for element in value if element is not None]
    return {**form, **ids, "attributes": present}
