"""Values: four families that never mix, refusals that say why, times and durations."""

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.engine.engine import Engine
from tidings.errors import InvalidValue, TidingsError
from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Event
from tidings.model.values import (
    PRINTED_BYTES,
    Range,
    attribute_value,
    format_duration,
    format_time,
    moment,
    parse_duration_us,
    parse_time_us,
    plain,
    printable,
    rounded,
    scalar,
    token,
    tokens,
)
from tidings.store.dead_letters import dead_letter

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TIMES = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]))
SCALARS = (
    st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.datetimes(timezones=st.just(UTC))
)


@pytest.mark.parametrize("one", [1, 1.0, np.int32(1), np.float32(1), Decimal(1), Fraction(1)])
def test_numbers_of_all_types_are_equal(one: object) -> None:
    assert token(scalar(one)) == ("number", 1.0)


@pytest.mark.parametrize(
    ("value", "family"),
    [(True, "boolean"), (np.True_, "boolean"), (1, "number"), ("1", "string"), (NOON, "time")],
)
def test_each_value_has_one_family(value: object, family: str) -> None:
    assert token(scalar(value))[0] == family


def test_minus_zero_is_zero_also_where_it_is_printed() -> None:
    assert str(token(scalar(-0.0))) == str(token(scalar(0)))


def test_a_time_is_not_the_number_of_its_seconds() -> None:
    assert token(scalar(NOON)) != token(scalar(NOON.timestamp()))
    assert token(scalar(NOON)) == ("time", NOON.timestamp())


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "nan is not a finite number"),
        (-math.inf, "-inf is not a finite number"),
        (np.float32("inf"), "inf is not a finite number"),
        (10**400, "is not a finite number"),
        (Decimal("sNaN"), "sNaN is not a finite number"),
        (Decimal("1e400"), "is not a finite number"),
        (None, "null is not a value; omit the attribute"),
        (np.datetime64("NaT"), "null is not a value"),
        (b"x", "b'x' is a bytes; a value is a number, string, boolean or time"),
        (1j, "1j is a complex"),
        ("\ud800", "has a lone surrogate, which UTF-8 cannot encode"),
        (timedelta(1), "is a timedelta"),
        (np.timedelta64(1, "ns"), "is a timedelta"),
        ({"when": 1}, "{'when': 1} is a dict"),
        ([1], r"\[1\] is a list"),
        (np.datetime64(10**6, "Y"), "outside the years 1 to 9999"),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "the years 1 to 9999"),
    ],
)
def test_a_refusal_names_the_value_and_the_rule(value: object, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        scalar(value)


@pytest.mark.parametrize(("null", "why"), [("NaT", "NaT is not a"), ("NA", "<NA> is a NAType")])
def test_the_nulls_of_pandas_are_refused(null: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        scalar(getattr(pytest.importorskip("pandas"), null))


def test_naive_datetimes_and_dates_are_utc() -> None:
    assert scalar(NOON.replace(tzinfo=None)) == NOON
    assert scalar(date(1970, 1, 2)) == datetime(1970, 1, 2, tzinfo=UTC)


def test_the_same_instant_is_equal_in_every_zone() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=-7)))
    assert token(scalar(there)) == token(scalar(NOON))


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
def test_numpy_times_of_every_unit_are_times(unit: str) -> None:
    days = np.array(["1970-01-02"], dtype=f"M8[{unit}]")
    assert token(scalar(days[0])) == ("time", 86_400.0)
    assert tokens(attribute_value(days)) == {("time", 86_400.0)}


@pytest.mark.parametrize(
    "genres", [["b", "a", "b"], ("a", "b"), {"a", "b"}, frozenset("ab"), np.array(["a", "b"])]
)
def test_a_list_is_the_set_of_its_values(genres: object) -> None:
    assert tokens(attribute_value(genres)) == {("string", "a"), ("string", "b")}


def test_a_single_value_equals_the_list_of_it_and_an_empty_list_has_none() -> None:
    assert tokens(attribute_value([3])) == tokens(attribute_value(3))
    assert tokens(attribute_value(np.array(3))) == tokens(attribute_value(3))
    assert tokens(attribute_value([])) == frozenset()


@pytest.mark.parametrize("nested", [[[1]], [(1,)], np.zeros((2, 2)), [None]])
def test_what_is_no_scalar_is_no_element_either(nested: object) -> None:
    with pytest.raises(InvalidValue):
        attribute_value(nested)


@given(SCALARS | st.lists(SCALARS, max_size=3))
def test_the_json_form_means_the_same_value(value: object) -> None:
    found = attribute_value(value)
    assert tokens(attribute_value(plain(found))) == tokens(found)


@given(TIMES, TIMES)
def test_times_never_change_their_order(one: datetime, other: datetime) -> None:
    first, last = (token(scalar(when)) for when in sorted([one, other]))
    assert first <= last


@pytest.mark.parametrize(
    ("written", "us"),
    [
        (0, 0),
        (-1.5, -1_500_000),
        (Decimal("0.000001"), 1),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000_000),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),  # noqa: DTZ001
        ({"time": "1970-01-01T00:00:01Z"}, 1_000_000),
    ],
)
def test_times_are_rfc_3339_datetimes_or_epoch_seconds(written: object, us: int) -> None:
    assert parse_time_us(written) == us


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (1_700_000_000_000, r"1700000000000 is outside .*use epoch \*seconds\*"),
        (-1e12, r"outside .*use epoch \*seconds\*"),
        ("yesterday", "'yesterday' is not a time; write RFC 3339"),
        (True, "True is not a time"),
        (None, "null is not a time; write RFC 3339, or epoch seconds as a number"),
        (math.nan, "nan is not a finite number"),
        ("9999-12-31T23:59:59-05:00", "the years 1 to 9999"),
    ],
)
def test_other_times_are_refused(written: object, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        parse_time_us(written)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_printed_time_is_read_back_to_the_microsecond(when: datetime) -> None:
    us = parse_time_us(when)
    assert parse_time_us(format_time(us)) == us


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30m", 1800),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (" 2d ", 172_800),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("PT30M", 1800),
        ("P1DT1H", 90_000),
        ("P2W", 1_209_600),
        ("PT0.5S", 0.5),
        (timedelta(minutes=1), 60),
    ],
)
def test_durations_are_short_or_iso_8601(written: object, seconds: float) -> None:
    assert parse_duration_us(written) == seconds * 1_000_000


@pytest.mark.parametrize(
    "written", ["", "5", 5, "m", "-5m", "1h 30m", "1y", "P1Y", "P", "PT", None, "9" * 400 + "s"]
)
def test_other_durations_are_refused(written: object) -> None:
    with pytest.raises(InvalidValue, match="is not a duration; write 30m"):
        parse_duration_us(written)


@given(st.integers(0, 10**18))
def test_a_printed_duration_is_read_back(us: int) -> None:
    assert parse_duration_us(format_duration(us)) == us


def test_rounding_hides_the_order_of_additions() -> None:
    one, other = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
    assert one != other
    assert rounded(one) == rounded(other)
    assert (rounded(6e-13), rounded(4e-13)) == (1e-12, 0)


TIMES_RANGE = {"range": [{"time": 1}, {"time": 2}]}


def test_a_range_keeps_its_bounds_as_scalars() -> None:
    found = scalar(TIMES_RANGE)
    assert isinstance(found, Range)
    assert hash(found) == hash(Range(moment(1_000_000), moment(2_000_000)))
    assert scalar(found.to_form()) == found
    assert Event("e", {"t": [TIMES_RANGE, 3]}, 0).tokens["t"] == tokens((found, 3))


def nested(levels: int) -> object:
    form: object = 1
    for _ in range(levels):
        form = {"range": [form, 2]}
    return form


class Failing(list[object]):
    """A list whose own methods fail."""

    def __iter__(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    [
        nested(2),
        nested(5_000),
        {"range": [1, {"time": 2}]},
        {"range": [1, 2], "mode": []},
        {"time": {"time": 1}},
        10**5_000,
        Fraction(10**5_000),
        b"bytes",
        [Failing([1])],
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_odd_value_is_refused_by_an_error_of_our_own(value: object) -> None:
    with pytest.raises(InvalidValue):
        attribute_value(value)


def test_a_list_of_any_class_is_read_without_its_own_methods() -> None:
    assert attribute_value(Failing([1, "a"])) == (1, "a")


def looped(branches: int) -> list[Any]:
    found: list[Any] = []
    found += [found] * branches
    return found


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        10**5_000,
        {10**5_000: 1, ("a" * 9_000,): 2, b"k": 3, "\ud800": 4},
        "\ud800",
        deep(100_000),
        looped(1),
        looped(2),
        [float("nan"), -math.inf, 1j, len, object(), Fraction(1, 3)],
        b"\xff" * 1_000_000,
        set(range(100_000)),
        "y" * (PRINTED_BYTES + 1),
        [[1] * 1_000] * 100_000,
        Failing([1]),
        Event,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_is_printed_within_bounds(value: object) -> None:
    for letter in (DeadLetter(value, "why"), DeadLetter({"id": "e", "x": value}, "why")):
        form = letter.to_dict()
        text = json.dumps(form, ensure_ascii=False)
        assert len(text.encode()) < 2 * PRINTED_BYTES
        assert json.loads(text) == form
        assert json.loads(dead_letter(letter)[1]) == form["record"]


def test_dead_letters_of_any_kind_are_restored() -> None:
    engine = Engine()
    for value in (10**5_000, "\ud800", deep(100_000), looped(1), b"\xff", float("nan"), {1, 2}):
        with pytest.raises(TidingsError):
            engine.add({"id": "s", "subscriber": value})
    restored = Engine()
    restored.restore(json.loads(json.dumps(engine.snapshot())))
    letters = [letter.to_dict() for letter in engine.dead_letters]
    assert len(letters) == 7
    assert [letter.to_dict() for letter in restored.dead_letters] == letters


def test_a_record_within_bounds_is_printed_as_it_is() -> None:
    record = {"id": "e", "x": [1, 2.5, True, None, "é", {"y": []}], "n": 10**4_000}
    assert printable(record) == record
    assert list(printable(record)) == list(record)
