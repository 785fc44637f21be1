"""Options of a source: names in any case, and refusals that name the option and the rule."""

from typing import Any

import pytest

from tidings.errors import SourceError
from tidings.sources.options import (
    check_names,
    lower_names,
    read_flag,
    read_integer,
    read_required,
)


def test_names_are_the_same_in_any_case() -> None:
    texts = lower_names({"maxRows": "5", "URL": "A.db"})
    assert texts == {"maxrows": "5", "url": "A.db"}
    check_names("tidings-table", {"MAXROWS": "5", "url": "x"}, ["maxRows", "url"])
    assert read_integer(texts, "maxRows") == 5
    assert read_required("tidings-table", texts, "Url", "films.db") == "A.db"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SourceError, match="tidings-table: unknown option 'rows'; expected one of: key, url"
    ):
        check_names("tidings-table", {"key": "id", "rows": "5"}, {"url", "key"})


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), (" 7 ", 7), ("1_000", 1000), ("9" * 18, 10**18 - 1)]
)
def test_an_integer_is_read(text: str, value: int) -> None:
    assert read_integer({"n": text}, "N") == value


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3"])
def test_other_texts_are_no_integers(text: str) -> None:
    with pytest.raises(SourceError, match="n must be a whole number of at least 1,000, not '"):
        read_integer({"n": text}, "n", low=1000)


@pytest.mark.parametrize("text", ["0", "-5"])
def test_an_integer_has_a_lower_bound(text: str) -> None:
    with pytest.raises(SourceError, match=f"n must be a whole number of at least 1, not '{text}'"):
        read_integer({"n": text}, "n")
    assert read_integer({"n": text}, "n", low=-5) == int(text)


def test_an_integer_that_is_not_set_is_none() -> None:
    assert read_integer({}, "n") is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_a_flag_is_true_or_false_in_any_case(text: str, value: bool) -> None:
    assert read_flag({"failonloss": text}, "failOnLoss", default=not value) is value


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_not_set_has_its_default(default: bool) -> None:
    assert read_flag({}, "failOnLoss", default=default) is default


@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_other_texts_are_no_flags(text: str) -> None:
    with pytest.raises(SourceError, match="failOnLoss is one of 'true', 'false'"):
        read_flag({"failonloss": text}, "failOnLoss", default=True)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({}, "tidings-table: option 'url' is missing, such as films.db"),
        ({"url": ""}, "tidings-table: option 'url' is empty; give one such as films.db"),
    ],
)
def test_a_required_option_is_asked_for_with_an_example(texts: Any, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        read_required("tidings-table", texts, "url", "films.db")
