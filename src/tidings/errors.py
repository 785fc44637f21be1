"""The errors of Tidings: one family, each message a sentence a user can act on."""

from collections.abc import Iterator
from contextlib import contextmanager
from reprlib import Repr
from typing import Final

MESSAGE_BYTES: Final = 1_000
"""No message is longer, whatever value it shows."""


class TidingsError(ValueError):
    """Anything that Tidings refuses. The message names the value and the rule."""

    def __init__(self, message: object = "") -> None:
        # Half a surrogate pair, which no file or terminal takes, is shown escaped.
        text = str(message).encode(errors="backslashreplace").decode()
        super().__init__(clipped(text))


def clipped(text: str, size: int = MESSAGE_BYTES) -> str:
    """Return a text of at most `size` bytes of UTF-8; of a longer one, its beginning and end."""
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
    """`repr` that is short, and that no value can make fail."""

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
    except Exception:  # noqa: BLE001 - not even the class of an object need be readable
        return f"<an object of the class {type(value).__name__}>"


def described(error: BaseException) -> str:
    """Return what an error says in one line; the type comes first unless the error is ours."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the error of a user's code may not even print
        text = ""
    if isinstance(error, TidingsError) and text:
        return text
    name = type(error).__name__
    return clipped(" ".join(f"{name}: {text}".split()) if text else name)


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
        raise raised(f"{prefix}{error}{suffix}") from None


class InvalidValue(TidingsError):
    """A value that no event, subscription or policy may carry: NaN, null, an unknown type."""


class InvalidEvent(TidingsError):
    """A publication that is refused at the door."""


class InvalidCondition(TidingsError):
    """A condition outside the language; `position` is the offset of the offending text."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class InvalidSubscription(TidingsError):
    """A subscription or subscriber that is refused."""


class InvalidPolicy(TidingsError):
    """A policy, or one of its parts, with parameters that mean nothing."""


class InvalidForm(TidingsError):
    """A JSON, TOML or file record with a missing, unknown or ill-typed field."""


class StoreError(TidingsError):
    """A store that cannot be opened, read or written as asked; what failed left nothing behind."""


class VersionGone(StoreError):
    """A version of the catalogue whose history was compacted; read everything anew."""


class StateError(TidingsError):
    """A snapshot, or the state of a query, that is damaged or of another version."""


class SourceError(TidingsError):
    """A source of events that cannot be read as asked; the next start goes on where it stopped."""
