"""Refused records keep record, reason and position; bisection finishes all items but culprits."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.model.dead_letter import (
    BadRecord,
    Culprit,
    DeadLetter,
    Failure,
    Finished,
    attempt,
    bisect,
    printable_record,
    try_call,
)


def fail(error: BaseException) -> Any:
    raise error


def test_a_result_or_the_error_is_returned() -> None:
    assert try_call(int, "7") == 7
    failure = try_call(int, "x")
    assert isinstance(failure, Failure)
    assert failure.reason.startswith("ValueError: invalid literal")


def test_an_exhausted_memory_is_raised() -> None:
    with pytest.raises(MemoryError):
        try_call(fail, MemoryError())


def test_a_record_that_cannot_be_read_is_bad() -> None:
    assert attempt(int, "7", 1, lambda raw: {"text": raw}) == 7
    bad = attempt(lambda raw: fail(InvalidForm("no")), "x", 4, lambda raw: {"text": raw})
    assert bad == BadRecord({"text": "x"}, "no", 4)


def test_a_record_that_cannot_be_shown_is_shown_briefly() -> None:
    bad = attempt(lambda raw: fail(KeyError("a")), "x", 1, lambda raw: fail(KeyError("b")))
    assert bad == BadRecord({"text": "'x'"}, "KeyError: 'a'", 1)


def test_forms_are_json_whatever_the_record_holds() -> None:
    record = {"time": datetime(2026, 1, 1, tzinfo=UTC), "bytes": b"x", "nan": float("nan")}
    for refused in (BadRecord(record, "why", 1), DeadLetter(record, "why")):
        assert json.loads(json.dumps(refused.to_dict()))["reason"] == "why"


def test_a_foreign_record_that_fails_is_printed_as_text() -> None:
    class Broken(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

    json.dumps(printable_record(Broken(a=1)))


def test_any_refused_record_can_be_printed() -> None:
    for refused in (BadRecord({"n": 10**5_000}, "why", 1), DeadLetter({"n": 10**5_000}, "why")):
        assert "an integer of 16,610 bits" in repr(refused)
    assert repr(DeadLetter({"id": 1}, "why")) == "DeadLetter(record={'id': 1}, reason='why')"


@given(st.lists(st.booleans(), max_size=20))
def test_items_are_finished_once_and_in_order_or_blamed(bad: list[bool]) -> None:
    finished = list[int]()

    def compute(places: Sequence[int]) -> int:
        for place in places:
            if bad[place]:
                raise ValueError(place)
        finished.extend(places)
        return len(places)

    results = list(bisect(compute, range(len(bad))))
    culprits = [part for part in results if isinstance(part, Culprit)]
    assert culprits == [
        Culprit(place, f"ValueError: {place}") for place, is_bad in enumerate(bad) if is_bad
    ]
    assert finished == [place for place, is_bad in enumerate(bad) if not is_bad]
    parts = [part for part in results if isinstance(part, Finished)]
    assert sum(part.result for part in parts) == len(finished)
