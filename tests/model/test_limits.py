"""Limits: presets, and refusals that name the limit."""

from dataclasses import fields

import pytest

from tidings import InvalidForm, InvalidPolicy, Limits, TidingsError


def test_the_public_preset_is_nowhere_wider_than_the_trusted_one():
    trusted, public = Limits.trusted(), Limits.public()
    lowest = {"period_us"}  # a lower bound: a longer least period is narrower
    for field in fields(Limits):
        ours, theirs = getattr(trusted, field.name), getattr(public, field.name)
        assert (theirs >= ours) if field.name in lowest else (theirs <= ours), field.name


def test_a_refusal_names_the_value_and_the_limit_in_the_error_asked_for():
    with pytest.raises(InvalidPolicy, match=r"k is 2,000, above the limit k = 1,000"):
        Limits.public().check("k", 2_000, "k", InvalidPolicy)
    Limits.public().check("k", 1_000, "k")


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "9", None])
def test_a_limit_is_a_positive_whole_number(value):
    with pytest.raises(TidingsError, match="the limit k must be between 1 and"):
        Limits(k=value)


def test_a_limit_stays_within_what_kernels_can_count():
    with pytest.raises(TidingsError, match="the limit k must be between 1 and 2,147,483,647"):
        Limits(k=2**31)


def test_a_record_may_be_as_large_as_the_limits_and_no_larger():
    limits = Limits(record_bytes=100, string_bytes=50, nesting=3, list_values=4)
    limits.check_record({"a": [{"b": 1}]}, "event e1")
    refused = {
        "string_bytes": {"a": "x" * 51},
        "record_bytes": {"a": "x" * 50, "b": "x" * 50},
        "list_values": {"a": [1, 2, 3, 4, 5]},
        "nesting": {"a": [[[1]]]},
    }
    for name, record in [*refused.items(), ("string_bytes", {"é" * 26: 1, "a" * 40: 1})]:
        with pytest.raises(InvalidForm, match=rf"event e1: .* above the limit {name} = "):
            limits.check_record(record, "event e1")


def test_bytes_are_counted_as_utf_8():
    Limits(string_bytes=10).check_record("é" * 5, "a record")
    with pytest.raises(InvalidForm, match="string_bytes"):
        Limits(string_bytes=10).check_record("é" * 6, "a record")


def test_a_record_that_holds_itself_or_nests_without_end_is_refused():
    loop: dict[str, object] = {}
    loop["a"] = loop
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for record in (loop, deep):
        with pytest.raises(InvalidForm, match="above the limit nesting = 64"):
            Limits().check_record(record, "a record")


def test_lists_that_share_their_parts_have_a_size() -> None:
    part = list[object]()
    for _ in range(6):
        part = [part] * 100
    with pytest.raises(TidingsError, match="above the limit record_bytes"):
        Limits.public().check_record({"parts": part}, "a record")
