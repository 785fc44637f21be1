"""Options of a source, read strictly: errors name the option and the rule.

Spark accepts names in any case and passes them in lower case.
"""

from collections.abc import Collection, Mapping
from typing import Final

from tidings.errors import SourceError, shown
from tidings.formats.redaction import shown_safely
from tidings.model import validate

OptionTexts = Mapping[str, str]
_FLAGS: Final = {"true": True, "false": False}


def lower_names(texts: OptionTexts) -> dict[str, str]:
    """Return options by lower-case names, as the functions below take them."""
    return {name.lower(): text for name, text in texts.items()}


def check_names(source: str, texts: OptionTexts, known: Collection[str]) -> None:
    """Refuse options with unknown names."""
    possible = {name.lower() for name in known}
    for name in texts:
        if name.lower() not in possible:
            listed = ", ".join(sorted(known))
            raise SourceError(
                f"{source}: unknown option {shown_safely(name)}; expected one of: {listed}"
            )


def read_integer(texts: OptionTexts, name: str, low: int = 1) -> int | None:
    """Return an integer option, or None if it is not set."""
    text = texts.get(name.lower())
    if text is None:
        return None
    try:
        return validate.count(name, int(text), SourceError, low=low)
    except ValueError:
        raise SourceError(
            f"{name} must be a whole number of at least {low:,}, not {shown(text)}"
        ) from None


def read_flag(texts: OptionTexts, name: str, *, default: bool) -> bool:
    """Return an option that is true or false."""
    text = texts.get(name.lower())
    if text is None:
        return default
    validate.choice(name, text.lower(), _FLAGS, SourceError)
    return _FLAGS[text.lower()]


def read_required(source: str, texts: OptionTexts, name: str, example: str) -> str:
    """Return a required option."""
    if name.lower() not in texts:
        raise SourceError(f"{source}: option {name!r} is missing, such as {example}")
    value = texts[name.lower()]
    if not value:
        raise SourceError(f"{source}: option {name!r} is empty; give one such as {example}")
    return value
