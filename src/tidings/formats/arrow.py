"""Events, subscriptions, matches and deliveries as Arrow columns.

Publications have the columns `id`, `published_at` and, optionally, `sequence` and `content`, which
is JSON text, a struct or a map; every other column is an attribute. A null cell is a missing
attribute, a list cell a list, and a map column unfolds into the attributes that its keys name.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import InvalidForm, shown
from tidings.formats.arrow_by_column import (
    EventNumbers,
    quick_columns,
    quick_events,
    quick_numbers,
)
from tidings.formats.arrow_by_row import (
    AS_READ,
    EVENT_COLUMNS,
    Cells,
    Column,
    Reading,
    attribute_columns,
    attribute_places,
    check_columns,
    check_nested,
    check_policies,
    check_times,
    event_columns,
    is_within,
    read_rows,
    with_text_ids,
)
from tidings.formats.arrow_validation import validate_fully
from tidings.formats.json_text import read_json
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, Failure, try_call
from tidings.model.event_columns import ColumnEvents
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Delivery, Event, Match, Subscription
from tidings.model.values import Family, Range, Value, time_us

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_TEXT: Final = pa.string()
_TEXTS: Final = pa.list_(_TEXT)
_REAL: Final = pa.float64()
_WHOLE: Final = pa.int64()
_TIME: Final = pa.timestamp("us", tz="UTC")
_WEIGHTED: Final = pa.struct({"condition": _TEXT, "weight": _REAL, "state": _TEXT})
_INT64: Final = range(-(2**63), 2**63)

SUBSCRIPTIONS: Final = pa.schema(
    {
        "id": _TEXT,
        "subscriber": _TEXT,
        "where": _TEXT,
        "prefrank": _REAL,
        "score": _REAL,
        "any": pa.list_(_WEIGHTED),
    }
)
SUBSCRIBERS: Final = pa.schema(
    {"id": _TEXT, "policy": _TEXT, "prefers": pa.list_(_TEXTS), "paused": pa.bool_()}
)
MATCHES: Final = pa.schema(
    {"subscriber": _TEXT, "event": _TEXT, "published_at": _TIME, "score": _REAL, "matched": _TEXTS}
)
DELIVERIES: Final = pa.schema(
    {
        "subscriber": _TEXT,
        "event": _TEXT,
        "rank": _REAL,
        "position": _WHOLE,
        "window": _TEXT,
        "matched": _TEXTS,
        "sequence": _WHOLE,
        "delivered_at": _TIME,
        "content": _TEXT,
    }
)
TARGETS_BY_EVENT: Final = pa.schema(
    {
        "event": _TEXT,
        "subscription": pa.list_(pa.dictionary(pa.int32(), _TEXT)),
        "score": pa.list_(_REAL),
    }
)
"""The best subscriptions of each event, best first."""
ReadEvents = Callable[[pa.RecordBatch], Iterator[Event | BadRecord]]
"""Reads the rows of a batch as events."""


def events_to_table(events: Iterable[Event]) -> pa.Table:
    """Return events as columns; an attribute that is a list in one event is a list in all.

    An attribute with values of two families, or with the name of another column, is refused.

    >>> events_to_table([Event("e1", {"year": 2003}, 0), Event("e2", {}, 1)])["year"].to_pylist()
    [2003, None]
    """
    rows = list(events)
    for event in rows:
        if event.probabilities or any(isinstance(v, Range) for v in event.attributes.values()):
            raise InvalidForm(f"event {event.id} has ranges or probabilities; use JSON Lines")
    columns = {
        "id": pa.array([event.id for event in rows], _TEXT),
        "published_at": pa.array([event.published_us for event in rows], _TIME),
    }
    if any(event.sequence is not None for event in rows):
        columns["sequence"] = pa.array([event.sequence for event in rows], _WHOLE)
    if any(event.content_json is not None for event in rows):
        columns["content"] = pa.array([event.content_json for event in rows], _TEXT)
    for name in dict.fromkeys(name for event in rows for name in event.attributes):
        if name in EVENT_COLUMNS:
            raise InvalidForm(
                f"attribute {name}: the name is reserved for the column {name}; rename it"
            )
        values = [event.attributes.get(name) for event in rows]
        columns[name] = _attribute_column(values, _family(name, rows))
    return pa.table(columns)


def _family(name: str, events: Iterable[Event]) -> Family:
    """Return the family of an attribute; if all its lists are empty, that is string."""
    first: tuple[Family, str] | None = None
    for event in events:
        for family in sorted({family for family, _ in event.tokens.get(name, ())}):
            first = first or (family, event.id)
            if family != first[0]:
                raise InvalidForm(
                    f"attribute {name} is a {first[0]} in event {first[1]} and a {family} in event "
                    f"{event.id}; a column has one family, so rename one or use JSON Lines"
                )
    return first[0] if first else "string"


def _attribute_column(values: Sequence[Value | None], family: Family) -> pa.Array:
    lists = [None if v is None else v if isinstance(v, tuple) else (v,) for v in values]
    kind, encode = _encoding(family, [element for cell in lists for element in cell or ()])
    cells = [None if cell is None else [encode(element) for element in cell] for cell in lists]
    if any(isinstance(value, tuple) for value in values):
        return pa.array(cells, pa.list_(kind))
    return pa.array([None if cell is None else cell[0] for cell in cells], kind)


def _encoding(
    family: Family, elements: Iterable[Any]
) -> tuple[pa.DataType, Callable[[Any], object]]:
    """Return the Arrow type of a family; numbers are int64 if all of them fit, else float64."""
    if family == "number":
        whole = all(isinstance(element, int) and element in _INT64 for element in elements)
        return (_WHOLE, int) if whole else (_REAL, float)
    if family == "time":
        return (_TIME, time_us)
    return (pa.bool_(), bool) if family == "boolean" else (_TEXT, str)


def read_events(
    table: pa.Table | pa.RecordBatch, cells: Cells = AS_READ, *, limits: Limits = TRUSTED
) -> Iterator[Event | BadRecord]:
    """Yield the event of each row, or a bad record for a row that is refused.

    `published_at` may hold timestamps, dates, RFC 3339 text or epoch seconds. `cells` are the
    functions that convert cells. A table is refused as a whole if it lacks `id` or
    `published_at`, has a column of a type that no attribute can have, or has damaged arrays. A row
    above the limits is a bad record.
    """
    return read_valid_events(validated(table), cells, limits=limits)


def read_valid_events(
    table: pa.Table | pa.RecordBatch,
    cells: Cells = AS_READ,
    *,
    limits: Limits = TRUSTED,
    attaches: bool = False,
) -> Iterator[Event | BadRecord]:
    """Yield what `read_events` yields, for arrays from a trusted process such as Spark.

    Their offsets and indices are not validated; text that is not UTF-8 is a bad record. If it
    `attaches` columns, stages read attributes from them until they are detached.
    """
    check_limits(limits, InvalidForm)
    table = with_text_ids(table, ("id",))
    check_columns(table.schema, required=("id", "published_at"), text=("id",))
    if cells == AS_READ:
        check_times(table.schema)
    columns = event_columns(table.schema)
    quick = partial(quick_events, cells=cells, attaches=attaches)
    return read_rows(table, Reading(columns, lambda row: _event(row, cells), quick, limits))


def read_event_columns(batch: pa.RecordBatch, *, limits: Limits = TRUSTED) -> ColumnEvents | None:
    """Return the events that `read_valid_events` yields, by column.

    None if a row is refused, or if an attribute is something else than one text or number.
    """
    if not is_within(batch, limits):
        return None
    columns = try_call(quick_columns, batch, lambda: [*read_valid_events(batch, limits=limits)])
    return None if isinstance(columns, Failure) else columns


def read_event_numbers(
    batch: pa.RecordBatch,
    names: Sequence[str],
    *,
    limits: Limits = TRUSTED,
    is_validated: bool = False,
) -> EventNumbers | None:
    """Return some attributes of the events that `read_valid_events` yields, as rows of numbers.

    None if a row is refused, or if an attribute is more than a single value. A batch of a table
    that `validated` returned is not validated again.
    """
    if not is_within(batch, limits):
        return None
    numbers = try_call(partial(quick_numbers, validated=is_validated), batch, names)
    return None if isinstance(numbers, Failure) else numbers


def targets_by_event(
    events: pa.Array, starts: Int64s, subscriptions: pa.DictionaryArray, scores: Float64s
) -> pa.Table:
    """Return a table TARGETS_BY_EVENT; the targets of event i begin at `starts[i]`."""
    offsets = pa.array(starts.astype("int32"))
    columns = [
        events.cast(_TEXT),
        pa.ListArray.from_arrays(offsets, subscriptions),
        pa.ListArray.from_arrays(offsets, pa.array(scores, _REAL)),
    ]
    return pa.Table.from_arrays(columns, schema=TARGETS_BY_EVENT)


def read_plain_rows(
    table: pa.Table | pa.RecordBatch, cells: Cells = AS_READ, *, limits: Limits = TRUSTED
) -> Iterator[dict[str, Any] | BadRecord]:
    """Yield each row of any columns as values by name, without its missing cells.

    Columns that no attribute can hold are left out, if there are others.
    """
    table = validated(table)
    table = table.select(attribute_places(table.schema) or table.schema.names)
    columns = attribute_columns(table.schema)
    return read_rows(table, Reading(columns, lambda row: _convert(row, cells, ()), limits=limits))


def validated(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """Return a table unchanged, or refuse one whose arrays are damaged.

    Offsets, indices and UTF-8 are checked in full, in O(bytes), since Arrow does not check them
    when it decodes.
    """
    if not validate.is_a(table, pa.Table | pa.RecordBatch):
        raise InvalidForm(f"columns are an Arrow table or record batch, not {shown(table)}")
    try:
        return validate_fully(table)
    except pa.ArrowException as error:
        raise InvalidForm(f"the Arrow columns are damaged: {error}") from None


def _event(row: Mapping[str, Any], cells: Cells) -> Event:
    fields = _convert(row, cells, required=("id", "published_at"))
    sequence = fields.pop("sequence", None)
    if isinstance(sequence, float | Decimal) and sequence == sequence // 1:
        sequence = int(sequence)  # pandas turns integers with nulls into floats
    return Event(
        fields.pop("id"),
        published_at=fields.pop("published_at"),
        sequence=sequence,
        content=fields.pop("content", None),
        attributes=fields,
    )


def _convert(row: Mapping[str, Any], cells: Cells, required: Iterable[str]) -> dict[str, Any]:
    for name in required:
        if name not in row:
            raise InvalidForm(f"{row.get('id', 'the row')}: {name} is missing")
    read = ((name, cells.read(name, value)) for name, value in row.items())
    return {name: value for name, value in read if value is not None}


def pandas_to_events(frame: "pd.DataFrame") -> Iterator[Event | BadRecord]:
    """Yield the event of each row, like `read_events`; None, NaN and NaT are missing values."""
    table = try_call(partial(pa.Table.from_pandas, preserve_index=False), frame)
    if isinstance(table, Failure):
        raise InvalidForm(f"the DataFrame has a column of mixed types: {table.reason}")
    return read_events(table)


def subscriptions_to_table(subscriptions: Iterable[Subscription]) -> pa.Table:
    """Return subscriptions as a table SUBSCRIPTIONS, with conditions as text."""
    forms = [subscription.to_dict() for subscription in subscriptions]
    for form in forms:
        parts = [(*part, "active")[:3] for part in form.get("any", ())]
        form["any"] = [dict(zip(_WEIGHTED.names, part, strict=True)) for part in parts] or None
    return pa.Table.from_pylist(forms, SUBSCRIPTIONS)


def read_subscriptions(
    table: pa.Table | pa.RecordBatch, cells: Cells = AS_READ, *, limits: Limits = TRUSTED
) -> Iterator[Subscription | BadRecord]:
    """Yield the subscription of each row, or a bad record for a row that is refused.

    Columns other than SUBSCRIPTIONS are refused; only `id` and `subscriber` are required.
    """
    check_limits(limits, InvalidForm)
    table = with_text_ids(validated(table), ("id", "subscriber"))
    check_columns(table.schema, required=("id", "subscriber"), text=("id", "subscriber", "where"))
    columns = _only(SUBSCRIPTIONS, table.schema)
    how = Reading(columns, lambda row: _subscription(row, cells, limits), None, limits, "where")
    return read_rows(table, how)


def _only(possible: pa.Schema, schema: pa.Schema) -> list[Column]:
    for name in schema.names:
        if name not in possible.names:
            listed = ", ".join(possible.names)
            raise InvalidForm(f"unknown column {name}; expected one of: {listed}")
    check_nested(schema)
    return [Column(column.name, column.type, lambda value: value) for column in schema]


def _subscription(row: Mapping[str, Any], cells: Cells, limits: Limits) -> Subscription:
    fields = _convert(row, cells, required=("id", "subscriber"))
    if isinstance(fields.get("any"), str):
        fields["any"] = _json(f"subscription {fields['id']}: any", fields["any"])
    if isinstance(fields.get("any"), list):
        fields["any"] = list(map(_weighted, fields["any"]))
    values = {name: _undecimal(value) for name, value in fields.items()}
    return Subscription(**values, limits=limits)


def _weighted(part: Any) -> Any:
    """Return a struct as `[condition, weight, state]`; the default state is active."""
    if not isinstance(part, Mapping):
        return part
    if part.keys() - {*_WEIGHTED.names}:
        fields = ", ".join(part)
        raise InvalidForm(f"any has the fields condition, weight and maybe state, not {fields}")
    weight = _undecimal(part.get("weight"))
    return [part.get("condition"), weight, part.get("state") or "active"]


def _undecimal(value: Any) -> Any:
    """Return a decimal, such as `0.8` in SQL, as a float."""
    return float(value) if isinstance(value, Decimal) else value


def subscribers_to_table(forms: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the forms of subscribers as a table SUBSCRIBERS; a policy is JSON text."""
    rows = [{**form, "policy": json.dumps(form["policy"])} for form in forms]
    return pa.Table.from_pylist(rows, SUBSCRIBERS)


def read_subscribers(
    table: pa.Table | pa.RecordBatch,
    loads: Callable[[dict[str, Any]], T],
    cells: Cells = AS_READ,
    *,
    limits: Limits = TRUSTED,
) -> Iterator[T | BadRecord]:
    """Yield the result of `loads` for the form of each row, or a bad record.

    Only `id` is required. A policy is JSON text or a struct, whose null fields are left out.
    """
    check_limits(limits, InvalidForm)
    table = with_text_ids(validated(table), ("id",))
    check_columns(table.schema, required=("id",), text=("id",))
    check_policies(table.schema)
    columns = _only(SUBSCRIBERS, table.schema)
    how = Reading(columns, lambda row: loads(_subscriber(row, cells)), limits=limits)
    return read_rows(table, how)


def _subscriber(row: Mapping[str, Any], cells: Cells) -> dict[str, Any]:
    form = _convert(row, cells, required=("id",))
    if isinstance(form.get("policy"), str):
        form["policy"] = _json(f"subscriber {form['id']}: policy", form["policy"])
    return form | {"policy": _without_nulls(form.get("policy"))}


def _json(what: str, text: str) -> Any:
    try:
        return read_json(text)
    except InvalidForm as error:
        raise InvalidForm(f"{what} is not JSON: {error}") from None


def _without_nulls(struct: Any) -> Any:
    """Return a struct without its null fields, as are those of structs in a list of rules."""
    if isinstance(struct, list):
        return [_without_nulls(item) for item in struct]
    if not isinstance(struct, Mapping):
        return struct
    return {name: _without_nulls(value) for name, value in struct.items() if value is not None}


def matches_to_table(matches: Iterable[Match]) -> pa.Table:
    """Return matches as a table MATCHES, with events by id."""
    rows = [
        match.to_dict() | {"event": match.event.id, "published_at": match.event.published_us}
        for match in matches
    ]
    return pa.Table.from_pylist(rows, MATCHES)


def deliveries_to_table(deliveries: Iterable[Delivery]) -> pa.Table:
    """Return deliveries as a table DELIVERIES; windows and content are JSON text."""
    forms = [
        delivery.to_dict()
        | {
            "window": json.dumps(dict(delivery.window)),
            "delivered_at": delivery.delivered_us,
            "content": delivery.content_json,
        }
        for delivery in deliveries
    ]
    return pa.Table.from_pylist(forms, DELIVERIES)
