"""Lengths of windows: counts of events, or durations; every other value is refused by name."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy
from tidings.window.length import Length, check_count, length


@pytest.mark.parametrize(
    ("given_as", "read"),
    [
        (1, Length(count=1)),
        (100, Length(count=100)),
        ("30m", Length(us=1_800_000_000)),
        ("PT30M", Length(us=1_800_000_000)),
        (timedelta(seconds=1.5), Length(us=1_500_000)),
        (Length(count=3), Length(count=3)),
    ],
)
def test_a_length_is_a_count_or_a_duration(given_as: object, read: Length) -> None:
    assert length("length", given_as) == read


@pytest.mark.parametrize(
    "bad", [0, -1, True, 2.5, "0s", "0.1us", timedelta(0), timedelta(-1), "-5s", "4", "", None, []]
)
def test_other_values_are_refused_with_the_value_and_the_rule(bad: object) -> None:
    with pytest.raises(InvalidPolicy) as refusal:
        length("step", bad)
    message = str(refusal.value)
    assert message.startswith("step is ")
    assert repr(bad) in message


@given(st.integers(1, 10**15).flatmap(lambda n: st.sampled_from([Length(n), Length(us=n)])))
def test_the_json_form_reads_back(size: Length) -> None:
    assert length("length", size.to_form()) == size


def test_only_counts_can_count_published_events() -> None:
    check_count("published", Length(count=3))
    check_count("matching", Length(us=3))
    with pytest.raises(InvalidPolicy, match="published"):
        check_count("published", Length(us=3))
    with pytest.raises(InvalidPolicy, match="'matching', 'published', not 'all'"):
        check_count("all", Length(count=3))
