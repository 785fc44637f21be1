"""Conditions compared with the columns of a DataFrame."""

import pytest
from pyspark.sql import types as t

from tidings import Subscription
from tidings.spark.schema_warnings import compare_with_schema

COLUMNS = {
    "id": t.StringType(),
    "published_at": t.TimestampType(),
    "dest": t.StringType(),
    "distance": t.DecimalType(10, 2),
    "departs": t.TimestampNTZType(),
    "day": t.DateType(),
    "carrier": t.ArrayType(t.StringType()),
    "late": t.BooleanType(),
    "raw": t.BinaryType(),
}


def schema(**more: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in (COLUMNS | more).items()])


def lines(condition: str, columns: t.StructType) -> list[str]:
    wanted = [Subscription("s1", "ann", where=condition)]
    return [finding.advice for finding in compare_with_schema(columns, wanted).findings]


@pytest.mark.parametrize(
    "condition",
    [
        *("dest = 'anything'", "distance > 5", "departs > date '2013-01-01'"),
        *("day = date '2013-01-01'", "carrier = 'AA'", "late", "raw = 5", "raw = 'x'"),
    ],
)
def test_conditions_on_columns_of_their_type_are_fine(condition: str) -> None:
    assert lines(condition, schema()) == []


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("dst = 'MIA'", "no event has the attribute dst; did you mean dest?"),
        ("Dest = 'MIA'", "no event has the attribute Dest; did you mean dest?"),
        ("dest = 5", "dest holds strings, not numbers; write dest = '5'"),
        ("distance > '500'", "distance holds numbers, not strings; write distance > 500"),
        ("carrier = 5", "carrier holds strings, not numbers; write carrier = '5'"),
        ("late = 'true'", "late holds booleans, not strings; write late = true"),
    ],
)
def test_wrong_names_and_types_are_told(condition: str, advice: str) -> None:
    assert lines(condition, schema()) == [advice]


def test_the_keys_of_a_map_may_be_any_attribute() -> None:
    columns = schema(more=t.MapType(t.StringType(), t.DoubleType()))
    assert lines("dst = 'MIA'", columns) == []
    assert lines("dest = 5", columns) == ["dest holds strings, not numbers; write dest = '5'"]


def test_lines_of_json_have_no_columns() -> None:
    assert lines("value = 5", t.StructType([t.StructField("value", t.StringType())])) == []
