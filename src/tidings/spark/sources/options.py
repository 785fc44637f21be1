"""Options of a source, read strictly: what is unknown or wrong names the option and the rule.

Spark takes names of any case, and hands them over in small letters.
"""

from collections.abc import Collection, Mapping
from typing import Final

from tidings.errors import SourceError, shown
from tidings.model import validate

Given = Mapping[str, str]
_FLAGS: Final = {"true": True, "false": False}


def lowered(given: Given) -> dict[str, str]:
    """Give options with small names, as the functions here take them."""
    return {name.lower(): each for name, each in given.items()}


def check_known(source: str, given: Given, known: Collection[str]) -> None:
    """Refuse options that a source does not have."""
    possible = {name.lower() for name in known}
    for name in given:
        if name.lower() not in possible:
            listed = ", ".join(sorted(known))
            raise SourceError(f"{source}: unknown option {name!r}; possible are {listed}")


def whole(given: Given, name: str, low: int = 1) -> int | None:
    """Read a whole number; None where it is not given."""
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return validate.count(name, int(text), SourceError, low=low)
    except ValueError:
        raise SourceError(
            f"{name} is a whole number of at least {low:,}, not {shown(text)}"
        ) from None


def flag(given: Given, name: str, *, default: bool) -> bool:
    """Read true or false."""
    text = given.get(name.lower())
    if text is None:
        return default
    validate.choice(name, text.lower(), _FLAGS, SourceError)
    return _FLAGS[text.lower()]


def needed(source: str, given: Given, name: str, example: str) -> str:
    """Read a text that must be there."""
    if name.lower() not in given:
        raise SourceError(f"{source}: option {name!r} is missing, such as {example}")
    value = given[name.lower()]
    if not value:
        raise SourceError(f"{source}: option {name!r} is empty, and is needed, such as {example}")
    return value
