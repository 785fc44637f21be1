"""CloudEvents 1.0 as events: structured JSON, or attributes in the headers of a message."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from tidings.errors import InvalidEvent, shown

MARK: Final = "specversion"
_REQUIRED: Final = (MARK, "id", "source", "type")
_RESERVED: Final = (MARK, "id", "time", "data", "datacontenttype", "dataschema")
_PREFIXES: Final = ("ce-", "ce_")
"""How headers of HTTP and NATS begin, and those of Kafka; MQTT has the bare names."""
Form = dict[str, Any]


def event_form(form: Any) -> Form:
    """Return the form of the event that a CloudEvent is; its time may be None.

    Its attributes and the fields of its data are attributes of the event, its data is the content.
    Two sources may use the same id, so the id is that of both.

    >>> event_form({"specversion": "1.0", "id": "7", "source": "shop", "type": "sold"})["id"]
    'shop#7'
    """
    if not isinstance(form, dict):
        raise InvalidEvent(f"a CloudEvent is an object, not {shown(form)}")
    for name in _REQUIRED:
        if not isinstance(form.get(name), str) or not form[name]:
            raise InvalidEvent(f"a CloudEvent needs the attribute {name}, a text")
    if not isinstance(form.get("time", ""), str | None):
        raise InvalidEvent(f"the time of a CloudEvent is a text, not {shown(form['time'])}")
    if form[MARK] != "1.0":
        raise InvalidEvent(f"CloudEvents have specversion 1.0, not {shown(form[MARK])}")
    context = {name: value for name, value in form.items() if name not in _RESERVED}
    data = form.get("data")
    content = data if isinstance(data, dict) else {} if data is None else {"data": data}
    fields = {name: value for name, value in content.items() if _is_attribute(value)}
    return {
        "id": f"{form['source']}#{form['id']}",
        "published_at": form.get("time"),
        "attributes": {**fields, **context},
        "content": content or None,
    }


def header_attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a CloudEvent among headers; none if the headers are of another kind.

    >>> header_attributes({"ce_specversion": "1.0", "ce_id": "7%208", "trace": "x"})
    {'specversion': '1.0', 'id': '7 8'}
    """
    small = {name.lower(): value for name, value in headers.items()}
    for prefix in _PREFIXES:
        if prefix + MARK in small:
            return {
                name.removeprefix(prefix): unquote(value)
                for name, value in small.items()
                if name.startswith(prefix)
            }
    return small if MARK in small else {}


def _is_attribute(value: Any) -> bool:
    members = value if isinstance(value, list) else [value]
    return all(isinstance(member, str | int | float) for member in members)
