"""Bisection: whatever fails, the others are finished once, in order."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tidings.model.bisection import Culprit, Finished, bisect


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
