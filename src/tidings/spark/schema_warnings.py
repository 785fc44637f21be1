"""Warnings of conditions that no row of a DataFrame can satisfy, by its columns and their types."""

import warnings
from collections.abc import Iterable
from inspect import currentframe
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from tidings.errors import ImpossibleCondition
from tidings.formats.arrow_by_row import EVENT_COLUMNS
from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.profile import Profile
from tidings.model.records import Subscription
from tidings.model.values import Family

_FAMILIES: Final[dict[type[t.DataType], Family]] = {
    t.NumericType: "number",
    t.StringType: "string",
    t.BooleanType: "boolean",
    t.TimestampType: "time",
    t.TimestampNTZType: "time",
    t.DateType: "time",
}


def warn_of_conditions(publications: DataFrame, subscriptions: Iterable[Subscription]) -> None:
    """Warn of conditions on attributes that are not columns, or columns of another type."""
    found = compare_with_schema(publications.schema, subscriptions)
    if found.findings:
        lines = "".join(f"\n  {line}" for line in found.lines)
        text = f"no publication can satisfy these conditions:{lines}"
        warnings.warn(text, ImpossibleCondition, stacklevel=_calls_within_tidings())


def compare_with_schema(schema: t.StructType, subscriptions: Iterable[Subscription]) -> Diagnosis:
    """Compare subscriptions with columns; the keys of maps, and lines of JSON, may be anything."""
    if "id" not in schema.names:
        return Diagnosis(0, 0)
    columns = {field.name: field.dataType for field in schema if field.name not in EVENT_COLUMNS}
    profile = Profile.of_types({name: _family(kind) for name, kind in columns.items()})
    found = diagnose(subscriptions, profile)
    has_map = any(isinstance(kind, t.MapType) for kind in columns.values())
    return found.only("type") if has_map else found.only("attribute", "type")


def _family(kind: t.DataType) -> Family | None:
    """Return the family of the values of a column, or of the elements of its lists."""
    if isinstance(kind, t.ArrayType):
        kind = kind.elementType
    return next((family for each, family in _FAMILIES.items() if isinstance(kind, each)), None)


def _calls_within_tidings() -> int:
    """Return the stack level at which a warning names the line of the user."""
    frame, level = currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tidings."):
        frame, level = frame.f_back, level + 1
    return level
