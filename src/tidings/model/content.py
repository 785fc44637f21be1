"""Content: a JSON object that an event carries to its deliveries, and that no condition sees."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from tidings.errors import TidingsError, shown
from tidings.model import validate
from tidings.model.limits import TRUSTED
from tidings.model.values import Range, format_time, scalar, time_us

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class Content(NamedTuple):
    """Content that was read: its fields as plain JSON values, and as compact JSON text."""

    fields: dict[str, Any]
    text: str


def read_content(what: str, value: object, kind: type[TidingsError]) -> Content:
    """Check content and copy it; `what` names the event in errors.

    Names are strings and keep their order, and numbers are finite. Times become RFC 3339 text,
    decimals and numbers of numpy become plain numbers.

    >>> read_content("event e1", {"title": "Big Fish", "price": 9.5}, TidingsError).text
    '{"title":"Big Fish","price":9.5}'
    >>> read_content("event e1", {"price": float("inf")}, TidingsError)
    Traceback (most recent call last):
    tidings.errors.TidingsError: event e1: content: price: inf is not a finite number
    """
    label = f"{what}: content"
    fields = validate.mapping(f"{label} is an object with named fields", value, kind)
    if not _is_flat(fields):
        # The size is checked first, without recursion, so that the copy ends.
        TRUSTED.check_record({"content": fields}, what, kind)
        try:
            fields = _copied(fields, label)
        except TidingsError as error:
            raise kind(str(error)) from None
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise kind(f"{label} has text that UTF-8 cannot hold") from None
    TRUSTED.check("record_bytes", size, f"{label}: its size in bytes", kind)
    return Content(dict(fields), text)


def _is_flat(fields: dict[Any, Any]) -> bool:
    """Return whether all names and values are of plain types, as those of most content are."""
    return all(
        type(name) is str
        and type(value) in _PLAIN
        and (type(value) is not float or math.isfinite(value))
        for name, value in fields.items()
    )


def _copied(value: Any, path: str) -> Any:
    """Return a JSON value as a copy of plain types; `path` says where it is."""
    kind = type(value)
    if kind in _PLAIN and kind is not float:
        return value
    if kind is dict or validate.is_a(value, Mapping):
        fields = validate.mapping(f"{path} is an object", value, TidingsError)
        return {
            _name(name, path): _copied(field, f"{path}: {name}") for name, field in fields.items()
        }
    if validate.is_a(value, list | tuple):
        return [_copied(element, path) for element in validate.listed(value, TRUSTED.list_values)]
    try:
        plain = scalar(value)
    except TidingsError as error:
        raise TidingsError(f"{path}: {error}") from None
    if isinstance(plain, datetime):
        return format_time(time_us(plain))
    return plain.to_form() if isinstance(plain, Range) else plain


def _name(name: object, path: str) -> str:
    if not validate.is_a(name, str):
        raise TidingsError(f"{path}: the name of a field is a string, not {shown(name)}")
    return validate.plain_text(name)  # type: ignore[arg-type]
