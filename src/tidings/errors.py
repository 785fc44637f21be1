"""The errors of Tidings: one family, whose messages are sentences that a user can act on."""

from collections.abc import Iterator
from contextlib import contextmanager
from reprlib import Repr
from typing import Final

MESSAGE_BYTES: Final = 1_000
"""The most bytes of a message, whatever value it shows."""


class TidingsError(ValueError):
    """Base of all errors. The message names the value and the rule."""

    def __init__(self, message: object = "") -> None:
        text = _printable(str(message))
        super().__init__(
            clipped(text) if text.strip() else f"{type(self).__name__}: no reason given"
        )


def _printable(text: str) -> str:
    """Return a text with its lone surrogates escaped, which no file or terminal accepts."""
    return text.encode(errors="backslashreplace").decode()


def clipped(text: str, size: int = MESSAGE_BYTES) -> str:
    """Return at most `size` bytes of UTF-8: the text, or its beginning and end."""
    if len(text) * 4 <= size:
        return text
    encoded = text.encode(errors="backslashreplace")
    if len(encoded) <= size:
        return text
    mark = b" [...] "
    tail = size // 4
    head = size - tail - len(mark)
    return (encoded[:head] + mark + encoded[-tail:]).decode(errors="ignore")


class _Shown(Repr):
    """A short `repr` that does not fail, whatever the value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 200
        self.maxlong = 60
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 12
        self.maxlevel = 4

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to print integers of more than 4,300 digits.
        if x.bit_length() > 1_000:
            return f"an integer of {x.bit_length():,} bits"
        return super().repr_int(x, level)


_SHOWN: Final = _Shown()


def shown(value: object) -> str:
    """Return a short `repr` of any value, for messages."""
    try:
        return _SHOWN.repr(value)
    except Exception:  # noqa: BLE001 - even `__class__` of an object may raise
        return f"<an object of the class {type(value).__name__}>"


def described(error: BaseException) -> str:
    """Return an error in one line; the type comes first unless it is a TidingsError."""
    try:
        text = _printable(str(error))
    except Exception:  # noqa: BLE001 - even `__str__` of an error may raise
        text = ""
    if isinstance(error, TidingsError) and text:
        return text
    name = type(error).__name__
    return clipped(" ".join(f"{name}: {text}".split()) if text else name)


def message(error: BaseException) -> str:
    """Return the message of an error, or its type if it has none."""
    text = described(error)
    return text.removeprefix(f"{type(error).__name__}: ")


@contextmanager
def prefix_errors(
    prefix: str,
    caught: type[Exception] = TidingsError,
    raised: type[TidingsError] = TidingsError,
    *,
    suffix: str = "",
) -> Iterator[None]:
    """Raise each `caught` error as a `raised` one, its message preceded by what it concerns.

    >>> with prefix_errors("bucket 3: ", OSError, suffix="; try again"):
    ...     raise OSError("no space")
    Traceback (most recent call last):
    tidings.errors.TidingsError: bucket 3: no space; try again
    """
    try:
        yield
    except caught as error:
        raise raised(f"{prefix}{message(error)}{suffix}") from None


class InvalidValue(TidingsError):
    """A value that no event, subscription or policy may carry: NaN, null, an unknown type."""


class InvalidEvent(TidingsError):
    """An event that is refused when it is published or read."""


class InvalidCondition(TidingsError):
    """A condition outside the language; `position` is the offset of the offending text."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class InvalidSubscription(TidingsError):
    """A subscription or subscriber that is refused."""


class InvalidPolicy(TidingsError):
    """A policy, or one of its parts, with invalid parameters."""


class InvalidForm(TidingsError):
    """A JSON, TOML or file record with a missing, unknown or ill-typed field."""


class StoreError(TidingsError):
    """A store that cannot be opened, read or written; the failed change was rolled back."""


class VersionGone(StoreError):
    """A version of the catalogue whose history was compacted; read the whole catalogue again."""


class StateError(TidingsError):
    """A snapshot, or the state of a query, that is damaged or has another version."""


class ServiceError(TidingsError):
    """A service that cannot be reached or refuses a request; `status` is that of HTTP, if any."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class SourceError(TidingsError):
    """A source of events that cannot be read; the next start resumes where this one stopped."""


class ImpossibleCondition(UserWarning):
    """A condition that no row of a table can satisfy, by the names and types of its columns."""
