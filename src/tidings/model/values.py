"""Values: the four families of attribute values, and times and durations.

A value is compared as a pair `(family, key)` (semantics §2). Numbers and times have float64 keys,
so integers and floats compare with each other; strings compare by code point.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from numbers import Integral, Real
from typing import Any, Final, Literal, NamedTuple, Union

import numpy as np

from tidings.errors import MESSAGE_BYTES, InvalidValue, TidingsError, clipped, shown
from tidings.model.validate import encodable, guarded_by, is_a, members, plain_text

Family = Literal["number", "string", "boolean", "time"]
Scalar = Union[bool, int, float, str, datetime, "Range"]
Value = Scalar | tuple[Scalar, ...]
Key = Union[bool, float, str, "Range"]
Token = tuple[Family, Key]

SECOND_US: Final = 1_000_000
PRINTED_BYTES: Final = 16_000_000
"""About the most bytes of one value in a dead letter; a larger one is abbreviated."""
PRINTED_LEVELS: Final = 100
"""The most levels of a value in a dead letter, so that JSON libraries do not overflow the stack."""
_PRINTED_BITS: Final = 14_000
_SCALAR_BYTES: Final = 8
_TAGGED_FIELDS: Final = 2
"""A range has the most fields of all tagged values; `items()` of a foreign class may never end."""
_CONTAINER_BYTES: Final = 56
"""The cost of a list: without it, lists that contain each other would grow without bound."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Final = -62_135_596_800
LATEST: Final = 253_402_300_799
"""The years 1 to 9999 lie between these epoch seconds."""
EARLIEST_US: Final = EARLIEST * SECOND_US
LATEST_US: Final = LATEST * SECOND_US + 999_999

_DURATION: Final = re.compile(r"(\d{1,15}(?:\.\d+)?)(us|ms|s|m|h|d|w)")
_ISO_DURATION: Final = re.compile(
    r"P(?:(\d{1,15})W)?(?:(\d{1,15})D)?"
    r"(?:T(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15}(?:\.\d+)?)S)?)?"
)
_UNIT_US: Final = {
    "us": 1,
    "ms": 1_000,
    "s": SECOND_US,
    "m": 60 * SECOND_US,
    "h": 3_600 * SECOND_US,
    "d": 86_400 * SECOND_US,
    "w": 604_800 * SECOND_US,
}


def rounded(x: float) -> float:
    """Round to 12 decimals, so that ties do not depend on the order of additions."""
    return round(x, 12)


@dataclass(frozen=True)
class Range:
    """A number or time that is only known to lie within [low, high] (RPS, future work).

    With mode "overlaps" a predicate holds if some value of the range satisfies it; with
    "contained", if every value does.
    """

    low: Any
    high: Any
    mode: str = "overlaps"
    family: Family = field(init=False, repr=False, compare=False)
    span: tuple[float, float] = field(init=False, repr=False, compare=False)

    @guarded_by(InvalidValue)
    def __post_init__(self) -> None:
        bounds = [_bound(bound) for bound in (self.low, self.high)]
        (family, low), (other, high) = map(token, bounds)
        if family != other or not isinstance(low, float) or not isinstance(high, float):
            what = f"{shown(self.low)} and {shown(self.high)}"
            raise InvalidValue(f"a range goes from a number or time to another, not between {what}")
        if low > high:
            raise InvalidValue(f"the range's low {bounds[0]} is above its high {bounds[1]}")
        raw_mode: object = self.mode
        mode = plain_text(raw_mode) if isinstance(raw_mode, str) else None
        if mode not in ("overlaps", "contained"):
            what = shown(self.mode)
            raise InvalidValue(f"a range's mode is 'overlaps' or 'contained', not {what}")
        # The bounds are stored as scalars, which can be hashed, compared and written as JSON.
        fields = {"low": bounds[0], "high": bounds[1], "mode": mode, "family": family}
        for name, value in (fields | {"span": (low, high)}).items():
            object.__setattr__(self, name, value)

    def satisfies(self, operator: str, operand: Any) -> bool:
        """Return whether some value, or every value, satisfies `between`, `in` or a negation."""
        low, high = self.span
        every = self.mode == "contained"
        if operator in ("between", "not between"):
            least, most = map(float, operand)
            contained, overlaps = least <= low and high <= most, low <= most and least <= high
            if operator == "not between":
                return not (overlaps if every else contained)
            return contained if every else overlaps
        members = operand if operator in ("in", "not in") else (operand,)
        inside = any(low <= member <= high for member in members)
        if operator == "in":
            return inside and (low == high or not every)
        return not inside or (low != high and not every)  # `!=` and `not in`

    def to_form(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {"range": [plain(self.low), plain(self.high)]}
        return form if self.mode == "overlaps" else form | {"mode": self.mode}


def scalar(value: object) -> Scalar:
    """Return a value of one of the four families; refuse anything else.

    >>> scalar(3), scalar("drama"), scalar(True)
    (3, 'drama', True)
    >>> scalar(float("nan"))
    Traceback (most recent call last):
    tidings.errors.InvalidValue: nan is not a finite number
    """
    kind = type(value)
    if kind is int or kind is float:
        return _finite(value)  # type: ignore[arg-type]
    if kind is str and value.isascii():  # type: ignore[attr-defined]
        return value  # type: ignore[return-value]
    try:
        return _converted(value)
    except TidingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the methods of a foreign class
        raise InvalidValue(
            f"{shown(value)} cannot be read as a value: it fails with {shown(error)}"
        ) from None


def _converted(value: object) -> Scalar:
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, np.generic):
        value = _unboxed(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _finite(int.__int__(value))  # type: ignore[arg-type]
    if isinstance(value, str):
        return _text(plain_text(value))
    if isinstance(value, bool | Range):
        return value
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, Real | Decimal):
        return _finite(value)
    if isinstance(value, Mapping):
        return _tagged(dict(islice(value.items(), _TAGGED_FIELDS + 1)))
    raise _no_value(value)


def _text(text: str) -> str:
    if not encodable(text):
        raise InvalidValue(f"{shown(text)} has a lone surrogate, which UTF-8 cannot encode")
    return text


def _bound(value: object) -> Scalar:
    """Read a bound of a range, which must not be a range itself."""
    if isinstance(value, Range) or (isinstance(value, Mapping) and "range" in value):
        raise InvalidValue(f"a range goes from a number or time to another, not {shown(value)}")
    return scalar(value)


def _tagged(form: Mapping[str, Any]) -> Scalar:
    """Read `{"time": ...}` or `{"range": [low, high], "mode": ...}`."""
    if set(form) == {"time"}:
        if isinstance(form["time"], Mapping):
            raise _no_value(form)
        return moment(parse_time_us(form["time"]))
    if "range" not in form or not set(form) <= {"range", "mode"}:
        raise _no_value(form)
    bounds = form["range"]
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise InvalidValue(f"a range has a low and a high, not {shown(bounds)}")
    return Range(bounds[0], bounds[1], form.get("mode", "overlaps"))


def _no_value(value: object) -> InvalidValue:
    if value is None:
        return InvalidValue("null is not a value; omit the attribute")
    kind = type(value).__name__
    return InvalidValue(f"{shown(value)} is a {kind}; a value is a number, string, boolean or time")


def _unboxed(value: np.generic) -> object:
    """Return a numpy scalar as a Python object; times of any unit become datetimes."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        time = value.astype(f"{value.dtype.kind}8[us]").item()
        if isinstance(time, int):
            raise InvalidValue(f"{value} is outside the years 1 to 9999")
        return time
    return value.item()


def _utc(when: datetime) -> datetime:
    try:
        return moment(time_us(when if when.tzinfo else when.replace(tzinfo=UTC)))
    except (OverflowError, ValueError):  # ValueError: pandas' NaT is a datetime
        raise InvalidValue(f"{when} is not a time within the years 1 to 9999") from None


def _shown_number(value: object) -> str:
    return str(value) if isinstance(value, float | Decimal) else shown(value)


def _finite(value: Real | Decimal) -> int | float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except ValueError:  # a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValue(f"{_shown_number(value)} is not a finite number")
    return int(value) if isinstance(value, Integral) else number


def attribute_value(value: object) -> Value:
    """Return a scalar, or the tuple of the elements of a list."""
    kind = type(value)
    if kind is str or kind is int or kind is float:
        return scalar(value)
    try:
        elements = _elements(value)
    except Exception as error:  # noqa: BLE001 - the methods of a foreign class
        raise InvalidValue(
            f"{shown(value)} cannot be read as a list: it fails with {shown(error)}"
        ) from None
    return scalar(value) if elements is None else tuple(map(scalar, elements))


def _elements(value: object) -> list[object] | None:
    """Return the elements of a list, tuple, array or set; None for anything else."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else None
    if isinstance(value, set | frozenset):
        return sorted(members(value), key=repr)
    return members(value) if isinstance(value, list | tuple) else None


def token(value: Scalar) -> Token:
    """Return the comparable form of a scalar: its family and a key within the family."""
    if isinstance(value, Range):
        return (value.family, value)
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, datetime):
        return ("time", time_us(value) / SECOND_US)
    return ("number", float(value) + 0.0)  # turns -0.0 into 0.0, which also prints as 0


def tokens(value: Value) -> frozenset[Token]:
    """Return the tokens of a value; values are equal if their tokens are equal as sets."""
    return frozenset(map(token, value if isinstance(value, tuple) else (value,)))


def plain(value: Value) -> Any:
    """Return the JSON form of a value; a time becomes `{"time": RFC 3339}`."""
    if isinstance(value, tuple):
        return [plain(element) for element in value]
    if isinstance(value, datetime):
        return {"time": format_time(time_us(value))}
    return value.to_form() if isinstance(value, Range) else value


class _Pending(NamedTuple):
    """A value that is still to be printed, and the container and key of its form."""

    value: Any
    into: Any
    key: Any
    depth: int


def printable(value: object) -> Any:
    """Return any value as JSON: by its `to_dict`, or as text if JSON cannot hold it.

    It terminates and does not fail, whatever the value, and the form is bounded: levels below
    `PRINTED_LEVELS`, as in cycles, are left out, and a value of more than `PRINTED_BYTES` is
    abbreviated.
    """
    root: list[Any] = [None]
    size, stack = 0, [_Pending(value, root, 0, 0)]
    while stack:
        pending = stack.pop()
        try:
            form, cost, inner = _printed(pending, PRINTED_BYTES - size)
        except Exception:  # noqa: BLE001 - the methods of a foreign class
            form, cost, inner = clipped(shown(pending.value)), 0, []
        pending.into[pending.key] = form
        stack += inner
        size += cost
        if size > PRINTED_BYTES:
            return clipped(shown(value))
    return root[0]


def _printed(pending: _Pending, most: int) -> tuple[Any, int, list[_Pending]]:
    """Return the form of one value without its contents, its size, and its contents."""
    value, depth = pending.value, pending.depth + 1
    if isinstance(value, str):
        text = _utf8(plain_text(value))
        return text, len(text), []
    if value is None or isinstance(value, int | float):
        return _printed_number(value), _SCALAR_BYTES, []
    if depth > PRINTED_LEVELS:
        return "...", _SCALAR_BYTES, []
    if hasattr(value, "to_dict"):
        try:
            return None, 0, [_Pending(value.to_dict(), pending.into, pending.key, depth)]
        except TidingsError:  # a policy with a function has no JSON form
            return clipped(_utf8(repr(value))), _SCALAR_BYTES, []
    # One entry more than fits is enough to see that the value is too large.
    room = max(most, 0) // _SCALAR_BYTES + 1
    if isinstance(value, Mapping):
        form = {_name(name): inner for name, inner in islice(value.items(), room)}
        size = _CONTAINER_BYTES + sum(len(name) + _SCALAR_BYTES for name in form)
        return form, size, [_Pending(inner, form, name, depth) for name, inner in form.items()]
    if isinstance(value, list | tuple):
        items = members(value)[:room]
        inner = [_Pending(item, items, index, depth) for index, item in enumerate(items)]
        return items, _CONTAINER_BYTES + len(items) * _SCALAR_BYTES, inner
    return _other(value), _SCALAR_BYTES, []


def _printed_number(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    # Python neither prints nor reads integers of more than 4,300 digits.
    return shown(value) if value is not None and value.bit_length() > _PRINTED_BITS else value


def _other(value: object) -> str:
    if isinstance(value, bytes | bytearray | set | frozenset) and len(value) > MESSAGE_BYTES:
        return clipped(shown(value))
    return clipped(_utf8(str(_printed_number(value) if isinstance(value, int) else value)))


def _name(value: object) -> str:
    return _utf8(plain_text(value)) if isinstance(value, str) else _other(value)


def _utf8(text: str) -> str:
    """Return a text with lone surrogates, which no file or database accepts, escaped."""
    return text if encodable(text) else text.encode(errors="backslashreplace").decode()


def time_us(when: datetime) -> int:
    """Return an aware datetime as whole microseconds since the epoch."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """Return microseconds since the epoch as a datetime."""
    return _EPOCH + timedelta(microseconds=us)


def parse_time_us(value: object) -> int:
    """Read a time: RFC 3339, a date, a datetime, or epoch seconds.

    >>> parse_time_us("1970-01-01T00:00:01Z"), parse_time_us(1), parse_time_us("1970-01-02")
    (1000000, 1000000, 86400000000)
    """
    if value is None:
        raise InvalidValue("null is not a time; write RFC 3339, or epoch seconds as a number")
    if is_a(value, str):
        text = plain_text(value)  # type: ignore[arg-type]
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidValue(
                f"{shown(text)} is not a time; write RFC 3339 (2026-11-15T20:05:00Z), or epoch "
                "seconds as a number"
            ) from None
    time = scalar(value)
    if isinstance(time, datetime):
        return time_us(time)
    if isinstance(time, bool | str | Range):
        raise InvalidValue(
            f"{shown(value)} is not a time; write RFC 3339, or epoch seconds as a number"
        )
    if not EARLIEST <= time <= LATEST:
        raise InvalidValue(f"{shown(value)} is outside the years 1 to 9999; use epoch *seconds*")
    return round(time * SECOND_US)


@lru_cache(4096)
def format_time(us: int) -> str:
    """Format microseconds since the epoch as RFC 3339.

    Times outside the years 1 to 9999, such as ends of periods, are clamped.

    >>> format_time(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return moment(min(max(us, EARLIEST_US), LATEST_US)).isoformat().replace("+00:00", "Z")


def key_us(key: float) -> int:
    """Return the exact microseconds of a time's key, clamped to the year 9999."""
    whole = math.floor(key)
    us = whole * SECOND_US + round((key - whole) * SECOND_US)
    return min(us, LATEST_US)


@guarded_by(InvalidValue)
def parse_duration_us(value: object) -> int:
    """Read a duration: `"30m"`, `"1h30m"`, ISO 8601 (`"PT30M"`), or a timedelta.

    >>> parse_duration_us("1h30m") == parse_duration_us("PT1H30M") == 5_400_000_000
    True
    """
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, str):
        text = value.strip()
        parts = _DURATION.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(round(float(number) * _UNIT_US[unit]) for number, unit in parts)
        iso = _ISO_DURATION.fullmatch(text)
        if iso and any(iso.groups()):
            return _iso_us(group or "0" for group in iso.groups())
    raise InvalidValue(
        f"{shown(value)} is not a duration; write 30m, 1h30m, 2d or ISO 8601 (PT30M)"
    )


def _iso_us(numbers: Iterable[str]) -> int:
    units = zip(numbers, ("w", "d", "h", "m", "s"), strict=True)
    return sum(round(float(number) * _UNIT_US[unit]) for number, unit in units)


def format_duration(us: int) -> str:
    """Format a duration in the largest units that fit.

    >>> format_duration(5_400_000_000)
    '1h30m'
    """
    text = ""
    for unit in ("w", "d", "h", "m", "s", "ms", "us"):
        count, us = divmod(us, _UNIT_US[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"
