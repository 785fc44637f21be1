"""The columns of a sample: which of them are ids, times and lists."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from tests.damage import run_cases

from tidings.app.init.columns import (
    FORMATS,
    TimeColumn,
    _has_signs,
    columns_of,
    find_amounts,
    find_id,
    find_lists,
    find_odd_time,
    find_time,
    find_time_parts,
    other_reading,
)

START = datetime(2026, 10, 28, 21, 35, 7, tzinfo=UTC)


def columns(**values: list[Any]) -> Any:
    rows = zip(*values.values(), strict=True)
    return columns_of([dict(zip(values, row, strict=True)) for row in rows])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"x": [1, 2], "id": [1, 2]}, "id"),
        ({"OrderID": ["a", "b"], "x": [1, 2]}, "OrderID"),
        ({"sku": [7, 8], "uuid": ["a", "b"]}, "uuid"),
        ({"column_1": [1, 2]}, "column_1"),
        ({"Artikel Nr": ["a", "b"], "x": [1, 2]}, "Artikel Nr"),
        ({"Bestell-Nr.": [7, 8], "x": [1, 2]}, "Bestell-Nr."),
        ({"rownames": [1, 2], "id_str": [7, 8]}, "id_str"),
        ({"rownames": [1, 2], "x": [7, 8]}, "rownames"),
        ({"guid.value": ["tag:1", "tag:2"], "title": ["a", "b"]}, "guid.value"),
        ({"id": [1, 1], "key": [1, 2]}, "key"),
        ({"id": [1, None]}, None),
        ({"id": [1.5, 2.5]}, None),
        ({"price": [1, 2]}, None),
        ({"paid": [1, 2], "grid": ["a", "b"]}, None),
    ],
)
def test_an_id_is_unique_and_called_like_one(
    values: dict[str, list[Any]], name: str | None
) -> None:
    assert find_id(columns(**values)) == name


@pytest.mark.parametrize(
    "form",
    [
        "%d/%m/%Y",
        "%m/%d/%y",
        "%d.%m.%Y %H:%M",
        "%b %d, %Y",
        "%d %B %Y %H:%M %z",
        "%m/%d/%Y %I:%M:%S %p",
        "%d/%b/%Y:%H:%M:%S %z",
        "%Y%m%d%H%M%S",
        "%a, %d %b %Y %H:%M:%S %Z",
        "%b-%Y",
        "%B %Y",
        "%m/%Y",
    ],
)
def test_times_are_found_in_common_formats(form: str) -> None:
    assert form in FORMATS
    times = [(START + timedelta(days=n)).strftime(form) for n in range(60)]
    assert find_time(columns(x=list(range(60)), when=times)) == TimeColumn("when", form)


def test_a_format_is_excluded_only_if_a_text_cannot_have_it() -> None:
    moments = [START, START.replace(month=5, day=3, hour=4, microsecond=70)]
    texts = [moment.strftime(kind) for moment in moments for kind in FORMATS[::9] if "%" in kind]
    texts += ["3/5/26", "5.3.2026  4:05", "may-2026", "3 MAY 2026 4:05 pm"]
    tried = 0
    for kind in FORMATS:
        for text in texts:
            if "%" in kind and not _has_signs(kind, text):
                tried += 1
                with pytest.raises(ValueError, match=r"does not match|unconverted"):
                    datetime.strptime(text, kind)  # noqa: DTZ007
    assert tried > 0.8 * len(FORMATS) * len(texts)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"at": ["2026-01-02", "2026-01-03T10:00:00Z"]}, TimeColumn("at")),
        ({"at": [START, START]}, TimeColumn("at")),
        ({"ts": [1_794_773_100, 1_794_773_200]}, TimeColumn("ts")),
        ({"ts": [1_794_773_100_000]}, TimeColumn("ts", "epoch-ms")),
        ({"day": [20_261_115, 20_261_231]}, TimeColumn("day", "%Y%m%d")),
        ({"when": [172_800_000_000, 1_794_773_100_000]}, TimeColumn("when", "epoch-ms")),
        ({"when": [172_800_000, 172_900_000]}, None),
        (
            {"pubDate": ["Sun, 15 Nov 2026 20:05:00 GMT", "Sun, 15 Nov 2026 21:05:00 -0000"]},
            TimeColumn("pubDate", "rfc-822"),
        ),
        ({"price": [1_794_773_100]}, None),
        ({"show": ["Friends 1994", "Frasier 1993"]}, None),
        ({"time": [517, 533]}, None),
        ({"title": ["12 Angry Men", "1917"]}, None),
        ({"updated": [START], "created": [START]}, TimeColumn("created")),
        ({"date": ["2026-01-02"], "time": ["2026-01-02T10:00"]}, TimeColumn("time")),
        ({"day": ["2026-10-28", "2026-10-28"], "placed": [START, START]}, TimeColumn("placed")),
        ({"day": ["2026-10-01", "2026-10-28"], "ends": [START, START]}, TimeColumn("day")),
        # 13/01 settles it; without it, the order in which the rows ascend does.
        ({"d": ["01/02/2026", "13/02/2026"]}, TimeColumn("d", "%d/%m/%Y")),
        ({"d": ["11/01/2026", "12/01/2026", "01/02/2026"]}, TimeColumn("d", "%d/%m/%Y")),
        ({"d": ["01/11/2026", "01/12/2026", "02/01/2026"]}, TimeColumn("d", "%m/%d/%Y")),
    ],
)
def test_the_time_is_found(values: dict[str, list[Any]], expected: TimeColumn | None) -> None:
    assert find_time(columns(**values)) == expected


@pytest.mark.parametrize(
    ("days", "form", "other"),
    [
        (["01/11/2026", "02/11/2026", "03/11/2026"], "%d/%m/%Y", "%m/%d/%Y"),
        (["11/01/2026", "11/02/2026", "11/03/2026"], "%m/%d/%Y", "%d/%m/%Y"),
        (["12/11/2026", "13/11/2026", "14/11/2026"], "%d/%m/%Y", None),
    ],
)
def test_days_that_may_be_months_are_near_each_other(
    days: list[str], form: str, other: str | None
) -> None:
    found = columns(day=days)
    assert find_time(found) == TimeColumn("day", form)
    assert other_reading(found[0], form) == other


def test_a_column_without_values_is_empty() -> None:
    assert [column.kind for column in columns(note=[None, None], n=[1, 2])] == ["empty", "number"]


@pytest.mark.parametrize(
    ("values", "time", "parts"),
    [
        ({"Hour": [1], "Month": [2], "Year": [2026], "Day": [3]}, None, "Year Month Day Hour"),
        ({"year": [2026], "month": [2]}, None, ""),
        ({"year": [2026], "month": ["May"], "day": [3]}, None, ""),
        ({"date": ["2026-01-02"], "time": ["11:38:36"]}, "date", "date time"),
        ({"date": ["2026-01-02"], "clock": ["9:05 PM"], "n": [1]}, "date", "date clock"),
        ({"date": ["2026-01-02T10:00"], "time": ["11:38:36"]}, "date", ""),
        ({"date": ["2026-01-02"], "score": ["soon"]}, "date", ""),
    ],
)
def test_a_time_in_several_columns_is_noticed(
    values: dict[str, list[Any]], time: str | None, parts: str
) -> None:
    assert find_time_parts(columns(**values), time) == parts.split()


def test_times_of_several_forms_are_named() -> None:
    odd = columns(name=["a", "b"], created=["11/7/2024", "Mar 10, 2024 10:15"])
    assert find_time(odd) is None
    found = find_odd_time(odd)
    assert found is not None
    assert found.name == "created"
    for other in (["11/7/2024", "12/7/2024"], ["soon", "later"]):
        assert find_odd_time(columns(created=other)) is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1,234.50", "7"], "amount"),
        (["$12", "-$1,000", "NA"], "amount"),
        (["10%", "5 %"], "amount"),
        (["7.590,29 €", "758,21"], "amount-comma"),
        (["1 234,5", "2"], "amount-comma"),
        (["1,234"], "amount"),
        (["$5", "€5"], None),
        (["1.5 kg", "300 g"], None),
        (["N1", "N2"], None),
        (["7", "8.0", "NA"], None),
        (["1,234.50", "much"], None),
        (["1,2", "3.4"], None),
        (["2024-01-02", "2024-01-03"], None),
        (["a, b", "$"], None),
    ],
)
def test_amounts_have_separators_or_signs(values: list[str], kind: str | None) -> None:
    assert find_amounts(columns(x=values)).get("x") == kind


def test_lists_have_short_parts_that_repeat() -> None:
    genres = ["drama|noir", "drama", "noir|comedy", "comedy|drama", "drama|noir"]
    prose = [f"one, {n} and, well, {n * n}" for n in range(4)] + ["one, 0 and, well, 0"]
    assert find_lists(columns(genres=genres, prose=prose, n=[1, 2, 3, 4, 5])) == {"genres": "|"}


def test_names_of_their_own_in_every_row_take_linear_time() -> None:
    rows = [{f"k{number}": number, "at": None} for number in range(20_000)]

    def read(_: Random) -> None:
        assert len(columns_of(rows)) == 20_001

    run_cases("names", read, 1)
