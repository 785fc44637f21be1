"""Times of calls that take turns."""

from functools import partial

from tidings.lab.stopwatch import least_times


def test_calls_take_turns_after_a_first_round_that_is_not_measured() -> None:
    order: list[str] = []
    times = least_times({name: partial(order.append, name) for name in "ab"}, 3)
    assert order == [*"ab" * 4]
    assert [*times] == ["a", "b"]
    assert all(0 <= time < float("inf") for time in times.values())
