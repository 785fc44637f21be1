"""Validators: each returns the value, or raises an error that names the value and the rule."""

import math
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from itertools import islice
from numbers import Integral, Real
from operator import index
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from tidings.errors import InvalidForm, InvalidPolicy, TidingsError, described, shown

Kind = type[TidingsError]
P = ParamSpec("P")
R = TypeVar("R")

_KERNEL_FOLDERS: Final = (
    Path("/proc"),
    Path("/sys"),
    Path("/sys/kernel/debug"),
    Path("/sys/kernel/tracing"),
)
_MOST_ENTRIES: Final = 1_000_000
"""Entries that are read of a foreign mapping, whose `items()` may never end."""


def guarded_by(kind: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a constructor so that whatever a foreign object raises becomes a `kind`.

    Not even `isinstance` is safe: it reads `__class__`, and an object may refuse to show it.
    """

    def decorate(construct: Callable[P, R]) -> Callable[P, R]:
        @wraps(construct)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return construct(*args, **kwargs)
            except (TidingsError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - the methods of a foreign class
                raise kind(f"a value cannot be read: {described(error)}") from None

        return guarded

    return decorate


def is_a(value: object, kinds: Any) -> bool:
    """Return what `isinstance` returns for objects that do not lie about their class."""
    try:
        return issubclass(type(value), kinds)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        return False


def name(what: str, value: object, kind: Kind) -> str:
    """Check a non-empty string, such as an id, and return it as a plain `str`."""
    if not is_a(value, str):
        raise kind(f"{what} is a non-empty string, not {shown(value)}")
    text = plain_text(value)  # type: ignore[arg-type]
    if not text:
        raise kind(f"{what} is a non-empty string, not ''")
    if not encodable(text):
        raise kind(f"{what} is text that UTF-8 can hold, not {shown(text)}")
    return text


def whole_name(value: object) -> object:
    """Return a whole number as text, since tables often number their rows; others unchanged.

    >>> whole_name(7), whole_name("a"), whole_name(True)
    ('7', 'a', True)
    """
    if type(value) is str or is_a(value, bool) or not is_a(value, Integral):
        return value
    try:
        return str(index(value))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the methods of a foreign class, or thousands of digits
        return value


def plain_text(text: str) -> str:
    """Return a string of a subclass, whose methods may do anything, as a plain `str`."""
    return text if type(text) is str else str.__str__(text)


def mapping(what: str, value: object, kind: Kind) -> dict[Any, Any]:
    """Check a mapping, and return it as a plain `dict`; its methods may do anything."""
    if type(value) is dict:
        return value
    if not is_a(value, Mapping):
        raise kind(f"{what}, not {shown(value)}")
    try:
        entries = list(islice(value.items(), _MOST_ENTRIES + 1))  # type: ignore[attr-defined]
        if len(entries) <= _MOST_ENTRIES:
            return dict(entries)
    except Exception as error:  # noqa: BLE001 - the methods of a foreign class
        raise kind(f"{what}; this one fails with {shown(error)}") from None
    raise kind(f"{what}; this one has more than {_MOST_ENTRIES:,} entries")


def listed(value: object, most: int, kind: type[Collection[Any]] = Sequence) -> Any:
    """Return a collection as a list or tuple of at most `most + 1` values; None if it is not one.

    Text is not a collection here. One value more than `most` is enough to refuse the collection.
    """
    if type(value) is list or type(value) is tuple:
        return value
    if is_a(value, str | bytes | bytearray | memoryview) or not is_a(value, kind):
        return None
    try:
        return list(islice(value, most + 1))  # type: ignore[call-overload]
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        return None


def members(value: Any) -> list[Any]:
    """Return the members of a list, tuple or set of any class, whose own methods may never end."""
    if isinstance(value, list):
        return list.copy(value)
    if isinstance(value, tuple):
        return list(tuple.__getitem__(value, slice(None)))
    return list(set.copy(value) if isinstance(value, set) else frozenset.copy(value))


def encodable(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8, which lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def number(
    what: str, value: object, kind: Kind = InvalidPolicy, *, low: float = 0, high: float = math.inf
) -> float:
    """Check a finite number between `low` and `high`, both allowed."""
    real = _float(value)
    if not math.isfinite(real):
        raise kind(f"{what} is a finite number, not {shown(value)}")
    if not low <= real <= high:
        rule = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise kind(f"{what} is {rule}, not {shown(value)}")
    return real


def _float(value: object) -> float:
    """Return a real number as a float, infinity if it is too large, and NaN for anything else."""
    if type(value) is float:
        return value
    try:
        is_real = isinstance(value, Real | Decimal) and not isinstance(value, bool)
        return float(value) if is_real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        return math.nan


def positive(what: str, value: object, kind: Kind = InvalidPolicy) -> float:
    """Check a finite number above 0."""
    real = number(what, value, kind)
    if real == 0:
        raise kind(f"{what} is above 0, not {shown(value)}")
    return real


def count(
    what: str,
    value: object,
    kind: Kind = InvalidPolicy,
    *,
    low: int = 1,
    high: int | None = None,
) -> int:
    """Check an integer of at least `low`, and of at most `high` if given."""
    if is_a(value, bool) or not is_a(value, int):
        raise kind(f"{what} is a whole number of at least {low}, not {shown(value)}")
    whole = int.__int__(value)  # type: ignore[arg-type]
    if whole < low:
        raise kind(f"{what} is a whole number of at least {low}, not {shown(whole)}")
    if high is not None and whole > high:
        raise kind(f"{what} is at most {high}, not {shown(whole)}")
    return whole


def flag(what: str, value: object, kind: Kind = InvalidPolicy) -> None:
    """Check a boolean; strings, numbers and null do not count as one."""
    if not is_a(value, bool):
        raise kind(f"{what} is true or false, not {shown(value)}")


def choice(what: str, value: object, allowed: Collection[str], kind: Kind = InvalidPolicy) -> str:
    """Check one of a few strings."""
    word = plain_text(value) if is_a(value, str) else None  # type: ignore[arg-type]
    if word is None or word not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise kind(f"{what} is one of {listed}, not {shown(value)}")
    return word


def regular_file(path: Path) -> Path:
    """Return the path of a file or a directory; refuse what may never end, or wait forever.

    These are pipes, devices, and files of the kernel, such as /proc/kmsg, which look empty. Raises
    an OSError if there is no such file.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise InvalidForm("this is a pipe or a device, which may never end; expected a file")
    if status.st_size == 0 and status.st_dev in _kernel_devices():
        raise InvalidForm("this is a file of the kernel, which may never end; expected a file")
    return path


def _kernel_devices() -> set[int]:
    """Return the devices of the file systems whose files the kernel makes up."""
    return {folder.stat().st_dev for folder in _KERNEL_FOLDERS if folder.is_mount()}


def file_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file; refuse one of more than `most` bytes without reading it all.

    Raises an OSError if there is no such file.
    """
    with regular_file(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InvalidForm(f"the file has more than {most:,} bytes")
    return content
