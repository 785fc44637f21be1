"""The part of a policy that a feed depends on: everything but the scorer."""

from copy import copy
from typing import Any, Final

from tidings.errors import InvalidForm, shown
from tidings.model import named_parts
from tidings.policy import Policy
from tidings.rules.different import Different

_FEED_PARTS: Final = ("decay", "window", "diversify")


def feed_form(policy: Policy) -> dict[str, Any]:
    """Return the JSON form of all that decides on deliveries once a match has its score.

    A part of an unregistered class has the name of its class in it.
    """
    parts = {name: getattr(policy, name) for name in _FEED_PARTS}
    form = {"k": policy.k} | {
        name: named_parts.form(part, classes=True) for name, part in parts.items()
    }
    rules = [named_parts.form(rule, classes=True) for rule in policy.rules]
    return form | ({"rules": rules} if rules else {})


def read_feed_form(form: object) -> Policy:
    """Return the policy of a form that `feed_form` has returned, with the default scorer."""
    if not isinstance(form, dict) or form.keys() - {"rules"} != {"k", *_FEED_PARTS}:
        raise InvalidForm(f"a policy has k, {', '.join(_FEED_PARTS)}; not {shown(form)}")
    return Policy(**form)


def without_rules(policy: Policy) -> Policy:
    """Return the policy as its windows see it; limits that its parts are bound to stay."""
    bare = copy(policy)
    object.__setattr__(bare, "rules", ())
    return bare


def unregistered(policy: Policy) -> list[type]:
    """Return the classes of the parts that decide on deliveries and are not registered."""
    parts = [getattr(policy, name) for name in _FEED_PARTS]
    distance = getattr(policy.diversify, "distance", None)
    if distance is not None:
        parts.append(distance)
    parts += [rule.distance for rule in policy.rules if isinstance(rule, Different)]
    return [type(part) for part in parts if not named_parts.is_registered(part)]


def same_feed(one: Policy, other: Policy) -> bool:
    """Return whether two policies choose the same from matches that have their scores.

    Their rules may differ.
    """
    return all(getattr(one, name) == getattr(other, name) for name in ("k", *_FEED_PARTS))


def counts_published(policy: Policy) -> bool:
    """Return whether the window of a policy counts all published events."""
    return bool(getattr(policy.window, "count", None) == "published")


def needs_attributes(policy: Policy) -> bool:
    """Return whether a policy compares events with each other, and so needs more than their ids."""
    compares = any(isinstance(rule, Different) for rule in policy.rules)
    if compares or policy.diversify.name != "none" or policy.window.name == "history":
        return True
    return not (
        named_parts.is_registered(policy.diversify) and named_parts.is_registered(policy.window)
    )
