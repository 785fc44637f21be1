"""The votes of LSH in slices: whatever the split into batches, the winners of one machine."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import Candidate, order_of
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.tie_order import ranks_and_keys
from tidings.model.records import Event
from tidings.spark.analysis.lsh_votes import (
    BALLOTS,
    BEST,
    COUNTS,
    SLICE,
    Who,
    ballots,
    counted,
    packed,
    summed,
)

LSH = MaxDivRelLsh(tables=3, rows=2)
PEOPLE = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, 0.5, 1.0]),
        st.integers(0, 2),
        st.tuples(*[st.integers(0, 9)] * 3),
    ),
    min_size=1,
    max_size=12,
)


def by_slice(table: pa.Table) -> list[pa.Table]:
    numbers = np.array(table.column(SLICE).to_pylist())
    return [table.filter(pa.array(numbers == each)) for each in np.unique(numbers)]


def elected(crowd: Any, splits: int, k: int) -> list[dict[str, Any]]:
    """Send candidates through the slices, some at a time; give those that come out."""
    rows = list[dict[str, Any]]()
    for part in range(splits):
        some = [(f"e{n:02d}", *each) for n, each in enumerate(crowd) if n % splits == part]
        if some:
            ids, ranks, us, keys = zip(*some, strict=True)
            who = Who(pa.array(ids), pa.array(us, pa.int64()), pa.array(ranks).cast(pa.float64()))
            who = who._replace(ranks=pa.array([rank + 0.0 for rank in ranks]))
            rows += ballots(who, np.array(keys, np.uint64) + TABLES)
    sent = packed(rows, BALLOTS)
    told = packed((row for each in by_slice(sent) for row in counted(each, k)), COUNTS)
    found = pa.concat_tables([summed(each, k) for each in by_slice(told)])
    return list(found.cast(BEST).to_pylist())


TABLES = np.array([0, 1000, 2000], np.uint64)
"""Keys of different tables are different."""


@given(PEOPLE, st.integers(1, 4), st.integers(1, 6))
def test_the_winners_are_those_of_one_machine(crowd: Any, splits: int, k: int) -> None:
    events = [Event(f"e{n:02d}", {}, us / 1e6) for n, (_, us, _) in enumerate(crowd)]
    given_ = [Candidate(each, rank, rank) for each, (rank, *_) in zip(events, crowd, strict=True)]
    apart = np.array([keys for *_, keys in crowd], np.uint64) + TABLES
    ranks, keys = ranks_and_keys(given_)
    due = [events[n].id for n in LSH.pick(ranks, keys, order_of(events), apart, k).tolist()]
    found = elected(crowd, splits, k)
    assert max(row["size"] for row in found) == len(crowd)
    best = sorted(
        (row for row in found if row["votes"] or len(crowd) < k),
        key=lambda row: (
            -row["votes"] if len(crowd) >= k else 0,
            -row["rank"],
            -row["published_us"],
            row["id"],
        ),
    )
    assert [row["id"] for row in best[:k]] == due


def test_rows_are_few_and_nobody_is_missing_from_the_first_slice() -> None:
    who = Who(pa.array(["a", "b"]), pa.array([1, 1]), pa.array([0.5, 0.7]))
    keys = np.array([[8 + 1, 16 + 1], [8 + 1, 24 + 2]], np.uint64)
    first, second, third = ballots(who, keys)
    assert (first[SLICE], len(first["ids"]), first["keys"]) == (0, 2, b"")
    assert second[SLICE] == 1
    assert np.frombuffer(second["keys"], np.uint64).tolist() == [9, 17]
    assert [second["ids"][n].as_py() for n in np.frombuffer(second["owners"], np.int32)] == [
        "b",
        "a",
    ]
    assert np.frombuffer(third["keys"], np.uint64).tolist() == [26]


def test_no_rows_are_a_table_without_rows() -> None:
    assert packed([], COUNTS).num_rows == 0
