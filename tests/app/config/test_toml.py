"""TOML files and the values of their keys."""

import pytest

from tidings.app.config.toml import (
    format_name,
    nonempty_text,
    read_settings,
    read_table,
    read_toml,
    resolve_path_option,
)
from tidings.errors import InvalidForm


def test_dates_and_times_are_text(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("day = 2026-01-02\nhours = [07:32:00]\n")
    assert read_toml(path) == {"day": "2026-01-02", "hours": ["07:32:00"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"engine = ", "invalid TOML: Invalid value"),
        (b"\xff\xfe", "invalid TOML: byte 0 is not UTF-8"),
        (b"a = " + b"9" * 1000, "an integer of 3,322 bits is too large"),
        (b"#" * 16_000_001, "the file has more than 16,000,000 bytes"),
    ],
    ids=["value", "bytes", "integer", "size"],
)
def test_an_invalid_file_is_refused(tmp_path, content, reason):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidForm, match=reason):
        read_toml(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidForm, match="the file cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "boolean"), (3, "number"), ("postgresql://ann:pw@host/db", "string"), ([], "list")],
)
def test_another_value_is_not_shown_where_a_table_belongs(value, name):
    with pytest.raises(InvalidForm) as error:
        read_table(value, "[sink]")
    assert str(error.value) == f"[sink] must be a table, not a {name}"


def test_settings_are_flat_text():
    form = {"a": {"b": {"c": 1.5}}, "on": True, "name": "x"}
    assert read_settings("[spark]", form) == {"a.b.c": "1.5", "on": "true", "name": "x"}


def test_a_secret_setting_of_the_wrong_type_is_not_shown():
    with pytest.raises(InvalidForm) as error:
        read_settings("options", {"password": ["Sw0rdfish"]})
    assert "Sw0rdfish" not in str(error.value)


@pytest.mark.parametrize("value", ["", 3, None, "a\0b", "\ud800"])
def test_a_text_that_is_empty_or_no_string_is_refused(value):
    with pytest.raises(InvalidForm, match=r"^path "):
        nonempty_text("path", value)


@pytest.mark.parametrize("name", ["kafka", "org.apache.spark.sql.Kafka$", "tidings-table"])
def test_the_name_of_a_format_may_be_a_class(name):
    assert format_name(name) == name


def test_only_a_local_path_is_resolved(tmp_path):
    assert resolve_path_option(tmp_path, {"path": "in"}) == {"path": str(tmp_path / "in")}
    for options in ({"path": "s3a://bucket/in"}, {"sep": ";"}):
        assert resolve_path_option(tmp_path, options) == options
