"""What of a policy a feed depends on: all but the scorer."""

from typing import Any, Final

from tidings.errors import InvalidForm, shown
from tidings.model import named_parts
from tidings.policy import Policy

_DECIDING: Final = ("decay", "window", "diversify")


def kept(policy: Policy) -> dict[str, Any]:
    """Return the JSON form of what decides over deliveries once a match has its score.

    A part of a class that is not registered is in it with the name of its class.
    """
    deciding = {name: getattr(policy, name) for name in _DECIDING}
    return {"k": policy.k} | {
        name: named_parts.form(part, classes=True) for name, part in deciding.items()
    }


def unregistered(policy: Policy) -> list[type]:
    """Return the classes of those parts that decide over deliveries and are not registered."""
    deciding = [getattr(policy, name) for name in _DECIDING]
    distance = getattr(policy.diversify, "distance", None)
    every = deciding if distance is None else [*deciding, distance]
    return [type(each) for each in every if not named_parts.is_registered(each)]


def read_kept(form: object) -> Policy:
    """Return the policy of a form that `kept` has given; it ranks by the default scorer."""
    if not isinstance(form, dict) or form.keys() != {"k", *_DECIDING}:
        raise InvalidForm(f"a policy has k, {', '.join(_DECIDING)}; not {shown(form)}")
    return Policy(**form)


def same_feed(one: Policy, other: Policy) -> bool:
    """Tell whether two policies decide alike over matches that have their scores."""
    return all(getattr(one, name) == getattr(other, name) for name in ("k", *_DECIDING))


def counts_published(policy: Policy) -> bool:
    """Tell whether the window of a policy counts all events that are published."""
    return bool(getattr(policy.window, "count", None) == "published")


def needs_attributes(policy: Policy) -> bool:
    """Return whether a policy compares events with each other, and so needs more than their ids."""
    if policy.diversify.name != "none" or policy.window.name == "history":
        return True
    return not (
        named_parts.is_registered(policy.diversify) and named_parts.is_registered(policy.window)
    )
