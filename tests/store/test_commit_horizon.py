"""The commit horizon: keys of PostgreSQL become visible out of order, and no row is missed."""

from random import Random
from typing import Any

import psycopg
import pytest
from tests.store.tables import add, closed, insert, make, opened

from tidings.store import AppendOnlyTable, CommitHorizon


def names(table: AppendOnlyTable, after: int, upto: int) -> str:
    columns = [column for column in table.columns() if column.name == "name"]
    return "".join(name for _, name in table.page(columns, after, upto, 1000))


def test_without_writers_the_horizon_is_the_largest_key(address: str) -> None:
    with opened(make(address)) as table:
        horizon = CommitHorizon(table)
        assert horizon.look(0) is None
        add(address, *"abc")
        assert horizon.look(0) == 3
        assert horizon.look(0) == 3


def test_a_smaller_key_that_is_committed_later_is_not_missed(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        horizon = CommitHorizon(table)
        add(postgres_address, "a")
        assert horizon.look(0) == 1
        insert(slow, "b")
        add(postgres_address, "c")
        assert (table.top(), names(table, 1, 3)) == (3, "c")
        assert horizon.look(0.2) == 1
        slow.commit()
        assert horizon.look(0) == 3
        assert names(table, 1, 3) == "bc"


def test_a_rolled_back_transaction_leaves_a_gap(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        horizon = CommitHorizon(table)
        insert(slow, "b")
        add(postgres_address, "c")
        assert horizon.look(0) is None
        slow.rollback()
        assert horizon.look(0) == 2
        assert names(table, 0, 2) == "c"


def test_a_long_transaction_holds_back_only_later_rows(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table:
        horizon = CommitHorizon(table)
        with closed(postgres_address) as short, closed(postgres_address) as long:
            insert(short, "a")
            add(postgres_address, "b")
            assert horizon.look(0) is None
            insert(long, "c")
            short.commit()
            assert horizon.look(0) == 2
            add(postgres_address, "d")
            assert horizon.look(0) == 2
            assert CommitHorizon(table).look(0) is None
            long.commit()
        assert horizon.look(0) == 4
        assert names(table, 0, 4) == "abcd"


def test_overlapping_short_transactions_do_not_stop_the_horizon(postgres_address: str) -> None:
    """A transaction is open at every moment, each of them only for a while."""
    with opened(make(postgres_address)) as table:
        horizon, seen = CommitHorizon(table), list[int]()
        opening = psycopg.connect(postgres_address)
        insert(opening, "a")
        for _ in range(10):
            later = psycopg.connect(postgres_address)
            insert(later, "b")
            opening.commit()
            opening.close()
            seen.append(horizon.look(0) or 0)
            opening = later
        opening.close()
    assert seen == sorted(seen)
    assert seen[-1] >= 8


def test_readers_and_other_tables_do_not_stop_the_horizon(postgres_address: str) -> None:
    add(make(postgres_address), "a")
    with closed(postgres_address) as other:
        other.execute("SELECT * FROM outbox FOR UPDATE")
        other.execute("CREATE TEMPORARY TABLE mine (n int)")
        other.execute("INSERT INTO mine VALUES (1)")
        with opened(postgres_address) as table:
            assert CommitHorizon(table).look(0) == 1


def test_inserts_into_a_partition_count_as_writers(postgres_address: str) -> None:
    make(
        postgres_address,
        "CREATE TABLE outbox (id bigserial PRIMARY KEY, name text) PARTITION BY RANGE (id)",
    )
    with closed(postgres_address) as slow:
        slow.execute("CREATE TABLE part PARTITION OF outbox FOR VALUES FROM (0) TO (100)")
        slow.commit()
        slow.execute("INSERT INTO part VALUES (nextval('outbox_id_seq'), 'b')")
        add(postgres_address, "c")
        with opened(postgres_address) as table:
            horizon = CommitHorizon(table)
            assert horizon.look(0) is None
            slow.commit()
            assert horizon.look(0) == 2


class FakeTable:
    """A table with one row, and the writers that it reports call by call."""

    def __init__(self, *writers: set[str]) -> None:
        self._writers = iter(writers)

    def top(self) -> int:
        return 1

    def writers(self) -> frozenset[str]:
        return frozenset(next(self._writers))


def test_a_prepared_transaction_has_not_ended() -> None:
    """PostgreSQL changes the name of a transaction when it is prepared."""
    before, after, other = {"3/4"}, {"prepared"}, {"5/6"}
    table: Any = FakeTable(before, after, after, after | other, other, other, other)
    horizon = CommitHorizon(table)
    assert [horizon.look(0) for _ in range(3)] == [None, None, 1]


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_read_once_in_any_order_of_commits(postgres_address: str, seed: int) -> None:
    """Rows are inserted, committed and rolled back in any order, and read in between."""
    make(postgres_address)
    chance, written, read = Random(seed), set[str](), list[str]()
    with opened(postgres_address) as table:
        horizon, after = CommitHorizon(table), 0
        writers = [psycopg.connect(postgres_address) for _ in range(4)]
        pending: list[list[str]] = [[] for _ in writers]
        for step in range(150):
            place = chance.randrange(len(writers))
            action = chance.choice(["insert", "insert", "commit", "undo", "read"])
            if action == "insert":
                insert(writers[place], f"{step},")
                pending[place].append(f"{step},")
            elif action == "read":
                upto = horizon.look(0) or 0
                read += names(table, after, upto).split(",")[:-1]
                after = max(after, upto)
            else:
                (writers[place].commit if action == "commit" else writers[place].rollback)()
                written |= set(pending[place]) if action == "commit" else set()
                pending[place] = []
        for writer in writers:
            writer.rollback()
            writer.close()
        read += names(table, after, horizon.look(5) or 0).split(",")[:-1]
    assert len(read) == len(set(read))
    assert {f"{name}," for name in read} == written
