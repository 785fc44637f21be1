"""Policies in words, as `tidings check` reads them back.

at most 5 a day, the best; nothing between 22:00 and 07:00 Athens time, then the best 10
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from tidings.errors import clipped
from tidings.model import named_parts
from tidings.model.calendar import DAYS
from tidings.model.values import SECOND_US, format_duration
from tidings.policy import Policy
from tidings.window.length import Length

_UNITS: Final = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
}
_MOST_UNITS: Final = 2


def describe_policy(policy: Policy) -> str:
    """Return a policy in words: window, k and diversity; ranks; rules.

    >>> describe_policy(Policy(k=5, window={"name": "periodic", "length": "1d"}))
    'the best 5 of every day, ranked by preference'
    """
    best = f"the best {policy.k}"
    if policy.diversify.name != "none":
        best += f" that differ ({_named(policy.diversify)})"
    parts = [f"{_window(policy.window, best)}, ranked by {_named(policy.scorer)}"]
    parts += [_decay(policy.decay)] if policy.decay.name != "none" else []
    return "; ".join([*parts, *(_rule(rule, best) for rule in policy.rules)])


def _window(window: Any, best: str) -> str:
    describe = _WINDOWS.get(window.name)
    if describe is None or not named_parts.is_registered(window):
        return f"{best} of the window {window.name}"
    waits = ", once there are that many" if getattr(window, "wait", False) else ""
    return f"{describe(window, best)}{waits}"


def _continuous(window: Any, best: str) -> str:
    since = "so far" if window.expires is None else f"of {_last(window.expires)}"
    return f"each match at once if it is among {best} {since}"


def _periodic(window: Any, best: str) -> str:
    if window.at:
        days = "" if window.days == DAYS else f" on {_listed(window.days)}"
        return f"{best} at {_listed(window.at)}{days} {_zone(window.zone)}"
    every = _span(window.length, window.count, every=True)
    return f"{best} of every {every}{f' since {window.origin}' if window.origin else ''}"


def _sliding(window: Any, best: str) -> str:
    leave = ", without those delivered before" if window.delivered == "leave" else ""
    return f"after each match, {best} of {_last(window.length, window.count)}{leave}"


def _jumping(window: Any, best: str) -> str:
    leave = ", without those delivered before" if window.delivered == "leave" else ""
    every = _span(window.step, window.count, every=True)
    return f"after every {every}, {best} of {_last(window.length, window.count)}{leave}"


def _history(window: Any, best: str) -> str:
    gain = "improves" if window.strict else "does not worsen"
    delivered = f"what was delivered of {_last(window.length, window.count)}"
    return f"each match at once if it {gain} {best} of {delivered}"


_WINDOWS: Final[Mapping[str, Callable[[Any, str], str]]] = {
    "continuous": _continuous,
    "periodic": _periodic,
    "sliding": _sliding,
    "jumping": _jumping,
    "history": _history,
}


def _decay(decay: Any) -> str:
    if decay.name == "exponential" and named_parts.is_registered(decay):
        half_life_us = round(math.log(2) / decay.per_second * SECOND_US)
        return f"ranks halve every {_duration(half_life_us, every=True)}"
    return f"ranks fade ({_named(decay)})"


def _rule(rule: Any, best: str) -> str:
    describe = _RULES.get(rule.name)
    if describe is None or not named_parts.is_registered(rule):
        return f"the rule {rule.name}"
    return describe(rule, best)


def _different(rule: Any, best: str) -> str:
    near = f"nearer than {rule.min:g} ({_named(rule.distance)})"
    return f"nothing {near} to what came in {_last(rule.within)}"


def _quota(rule: Any, best: str) -> str:
    per, zone = rule.per, "" if rule.zone == "UTC" else f" {_zone(rule.zone)}"
    every = f"{_article(per)} {per}{zone}" if isinstance(per, str) else f"in every {_span(per)}"
    which = "the best" if rule.pick == "best" else "as they come"
    at_once = "at once while some are left"
    urgent = "" if rule.urgent is None else f", a rank of at least {rule.urgent:g} {at_once}"
    return f"at most {rule.n} {every}, {which}{urgent}"


def _quiet(rule: Any, best: str) -> str:
    urgent = "" if rule.urgent is None else f" unless its rank is at least {rule.urgent:g}"
    hours = f"between {rule.start} and {rule.end} {_zone(rule.zone)}"
    return f"nothing {hours}{urgent}, then {best} of what came"


_RULES: Final[Mapping[str, Callable[[Any, str], str]]] = {
    "different": _different,
    "quota": _quota,
    "quiet": _quiet,
}


def _article(per: str) -> str:
    return "an" if per == "hour" else "a"


def _zone(zone: str) -> str:
    """Return a zone as people call it.

    >>> _zone("Europe/Athens"), _zone("America/New_York"), _zone("UTC")
    ('Athens time', 'New York time', 'UTC')
    """
    city = zone.rpartition("/")[2].replace("_", " ")
    return f"{city} time" if "/" in zone else zone


def _last(size: Length, count: str = "matching") -> str:
    """Return the last of a length: "the last hour", "the last 100 matches"."""
    return f"the last {_span(size, count, every=True)}"


def _span(size: Length, count: str = "matching", *, every: bool = False) -> str:
    """Return a length in words; `every` of one is without its number."""
    if size.us is not None:
        return _duration(size.us, every=every)
    noun = "match" if count == "matching" else "publication"
    if size.count == 1:
        return noun if every else f"1 {noun}"
    return f"{size.count:,} {'matches' if noun == 'match' else 'publications'}"


def _duration(us: int, *, every: bool = False) -> str:
    """Return a duration in words, by its largest units.

    >>> _duration(5_400_000_000), _duration(86_400_000_000, every=True)
    ('1 hour 30 minutes', 'day')
    """
    pieces = re.findall(r"(\d+)([a-z]+)", format_duration(us))
    words = [f"{count} {_UNITS[unit]}{'' if count == '1' else 's'}" for count, unit in pieces]
    text = " ".join(words[:_MOST_UNITS])
    return text.removeprefix("1 ") if every and len(words) == 1 else text


def _listed(names: Any) -> str:
    """Return names as a sentence lists them.

    >>> _listed(["08:00", "12:00", "17:30"])
    '08:00, 12:00 and 17:30'
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def _named(part: Any) -> str:
    """Return the name of a part, with the parameters that differ from their defaults."""
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in (fields(part) if is_dataclass(part) else ())
        if field.init
    }
    changed = [
        f"{name.rstrip('_')} {_value(getattr(part, name))}"
        for name, default in defaults.items()
        if getattr(part, name) != default
    ]
    name = str(getattr(part, "name", type(part).__name__))
    return f"{name} with {_listed(changed)}" if changed else name


def _value(value: Any) -> str:
    if isinstance(value, Length):
        return str(value.to_form())
    if isinstance(value, Mapping):
        return clipped(", ".join(f"{name}: {part}" for name, part in value.items()), 100)
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return _named(value) if is_dataclass(value) else str(value)
