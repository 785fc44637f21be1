"""Ranks in bulk, against a plain reading of PREF Def. 5."""

from math import fsum
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.access.kernels.partial_match import Hits
from tidings.model.values import rounded
from tidings.rank.bulk.rank_table import AGGREGATES, RankRows, RankTable

OWNERS = [0, 0, 0, 1, 1, 2, -1]
AGGREGATE = ["max", "mean", "sum"]  # by owner
WORTHS = [0.1, 0.7, 0.2, 1.0, 0.3, 0.9, 0.5]
COVERS = [[1, 2], [2], [], [4], [], [], []]
PLAIN: dict[str, Any] = {
    "max": max,
    "min": min,
    "sum": lambda worths: rounded(fsum(worths)),
    "mean": lambda worths: rounded(fsum(worths) / len(worths)),
}


def expected(event: list[int]) -> list[tuple[int, float, list[int]]]:
    """Return the matches of one event, in order of the first hit of each owner."""
    owners = list(dict.fromkeys(OWNERS[number] for number in event if OWNERS[number] >= 0))
    matches = []
    for owner in owners:
        own = [number for number in event if OWNERS[number] == owner]
        specific = [number for number in own if not {*COVERS[number]} & {*event}]
        rank = PLAIN[AGGREGATE[owner]]([WORTHS[number] for number in specific])
        matches.append((owner, rank, own))
    return matches


@given(st.lists(st.lists(st.integers(0, 6), unique=True), max_size=6))
def test_the_most_specific_subscriptions_make_the_rank(events: list[list[int]]) -> None:
    table = RankTable()
    table.put(
        RankRows(
            np.arange(7, dtype=np.int32),
            np.array(OWNERS, np.int32),
            np.array(WORTHS),
            np.cumsum([0, *map(len, COVERS)]),
            np.array([number for covers in COVERS for number in covers], np.int32),
        )
    )
    for owner, name in enumerate(AGGREGATE):
        table.set_aggregate(owner, name)
    numbers = np.array([number for event in events for number in event], np.int32)
    none = np.empty(0, np.int64), np.empty(0, np.int32)
    matches = table.rank(Hits(np.cumsum([0, *map(len, events)]), numbers, *none))
    assert [list(matches.rows(event)) for event in range(len(events))] == [*map(expected, events)]


def test_every_aggregate_has_a_number() -> None:
    assert AGGREGATES.keys() == PLAIN.keys()
