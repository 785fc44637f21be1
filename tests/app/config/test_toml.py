"""The values of the keys of TOML files."""

import pytest

from tidings.app.config.toml import (
    format_name,
    nonempty_text,
    read_settings,
    read_table,
    resolve_path_option,
)
from tidings.errors import InvalidForm


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


def test_a_setting_may_be_in_a_variable(monkeypatch):
    form = {"sasl": {"password": {"env": "BROKER_PASSWORD"}}}
    with pytest.raises(InvalidForm, match=r"^options the environment variable BROKER_PASSWORD"):
        read_settings("options", form)
    monkeypatch.setenv("BROKER_PASSWORD", "Sw0rdfish")
    assert read_settings("options", form) == {"sasl.password": "Sw0rdfish"}
    for wrong in ("A B", ["A"], ""):
        with pytest.raises(InvalidForm, match=r"^options password must be a string, or name a"):
            read_settings("options", {"password": {"env": wrong}})


def test_a_secret_setting_of_the_wrong_type_is_not_shown():
    with pytest.raises(InvalidForm) as error:
        read_settings("options", {"password": ["Sw0rdfish"]})
    assert "Sw0rdfish" not in str(error.value)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_setting_is_text_that_can_be_written(value):
    with pytest.raises(InvalidForm, match=r"options path contains NUL, or half of a surrogate"):
        read_settings("options", {"path": value})


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
