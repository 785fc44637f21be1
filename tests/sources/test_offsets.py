"""Plans of batches: every record once, in order, and never more than the limit."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tidings.sources.offsets import (
    advance,
    describe_losses,
    from_form,
    shares,
    spans,
    to_form,
)

PARTITIONS = st.tuples(st.sampled_from("ab"), st.integers(0, 3))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 12), max_size=6)
LIMITS = st.integers(1, 9)


@given(st.lists(st.integers(0, 20), max_size=7), LIMITS)
def test_a_limit_is_used_up_and_not_exceeded(sizes: list[int], limit: int) -> None:
    found = shares(sizes, limit)
    assert sum(found) == min(limit, sum(sizes))
    assert all(0 <= share <= size for share, size in zip(found, sizes, strict=True))
    filled = [place for place, size in enumerate(sizes) if size]
    if limit >= len(filled):
        assert all(found[place] for place in filled)
    assert shares(sizes, None) == sizes


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=5), LIMITS)
def test_larger_backlogs_get_their_proportion(sizes: list[int], limit: int) -> None:
    limit *= len(sizes)
    for share, size in zip(shares(sizes, limit), sizes, strict=True):
        proportion = min(size, size * limit / max(limit, sum(sizes)))
        assert abs(share - proportion) <= len(sizes) + 1


@given(OFFSETS, OFFSETS, LIMITS)
def test_batches_take_every_record_once_and_in_order(
    start: dict[tuple[str, int], int], more: dict[tuple[str, int], int], limit: int
) -> None:
    latest = {each: start.get(each, 0) + more.get(each, 0) for each in {*start, *more}}
    taken: dict[tuple[str, int], list[int]] = {each: [] for each in latest}
    at = start
    while (end := advance(at, latest, limit)) != at:
        found = spans(at, end)
        assert 0 < sum(span.end - span.start for span in found) <= limit or not found
        for span in found:
            taken[span.topic, span.partition] += range(span.start, span.end)
        at = end
    expected = {each: list(range(start.get(each, 0), latest[each])) for each in latest}
    assert taken == expected


@given(OFFSETS)
def test_the_json_form_is_read_back(offsets: dict[tuple[str, int], int]) -> None:
    assert from_form(json.loads(json.dumps(to_form(offsets)))) == offsets


def test_a_partition_that_is_new_or_created_again_starts_at_0() -> None:
    start = {("a", 0): 50, ("a", 1): 7}
    latest = {("a", 0): 8, ("a", 1): 9, ("a", 2): 2}
    end = advance(start, latest, None)
    assert [(span.name, span.start, span.end) for span in spans(start, end)] == [
        ("a-0", 0, 8),
        ("a-1", 7, 9),
        ("a-2", 0, 2),
    ]


def test_missing_and_truncated_partitions_are_losses() -> None:
    start = {("a", 0): 50, ("a", 1): 7, ("b", 0): 3}
    assert list(describe_losses(start, {("a", 0): 8, ("a", 1): 7, ("c", 0): 1})) == [
        (
            "partition a-0 was read up to offset 50 and now ends at 8: "
            "it was created again or truncated"
        ),
        "partition b-0, read up to offset 3, no longer exists",
    ]
