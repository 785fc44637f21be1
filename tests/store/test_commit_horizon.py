"""Keys of PostgreSQL that become visible out of order: no row is passed over."""

from random import Random
from typing import Any

import psycopg
import pytest
from tests.store.tables import add, closed, insert, make, opened

from tidings.store import AppendOnlyTable, CommitHorizon


def names(table: AppendOnlyTable, after: int, upto: int) -> str:
    columns = [each for each in table.columns() if each.name == "name"]
    return "".join(name for _, name in table.page(columns, after, upto, 1000))


def test_without_writers_all_is_settled(address: str) -> None:
    with opened(make(address)) as table:
        settled = CommitHorizon(table)
        assert settled.look(0) is None
        add(address, *"abc")
        assert settled.look(0) == 3
        assert settled.look(0) == 3


def test_a_smaller_key_that_is_committed_later_is_not_passed_over(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        settled = CommitHorizon(table)
        add(postgres_address, "a")
        assert settled.look(0) == 1
        insert(slow, "b")
        add(postgres_address, "c")
        assert (table.top(), names(table, 1, 3)) == (3, "c")
        assert settled.look(0.2) == 1
        slow.commit()
        assert settled.look(0) == 3
        assert names(table, 1, 3) == "bc"


def test_a_transaction_that_is_undone_leaves_a_gap(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table, closed(postgres_address) as slow:
        settled = CommitHorizon(table)
        insert(slow, "b")
        add(postgres_address, "c")
        assert settled.look(0) is None
        slow.rollback()
        assert settled.look(0) == 2
        assert names(table, 0, 2) == "c"


def test_a_long_transaction_holds_back_only_what_came_after_it(postgres_address: str) -> None:
    with opened(make(postgres_address)) as table:
        settled = CommitHorizon(table)
        with closed(postgres_address) as short, closed(postgres_address) as long:
            insert(short, "a")
            add(postgres_address, "b")
            assert settled.look(0) is None
            insert(long, "c")
            short.commit()
            assert settled.look(0) == 2
            add(postgres_address, "d")
            assert settled.look(0) == 2
            assert CommitHorizon(table).look(0) is None
            long.commit()
        assert settled.look(0) == 4
        assert names(table, 0, 4) == "abcd"


def test_writers_that_keep_coming_hold_nothing_back(postgres_address: str) -> None:
    """Some transaction is open at every moment, and each of them only for a while."""
    with opened(make(postgres_address)) as table:
        settled, opening, seen = (
            CommitHorizon(table),
            psycopg.connect(postgres_address),
            list[int](),
        )
        insert(opening, "a")
        for _ in range(10):
            later = psycopg.connect(postgres_address)
            insert(later, "b")
            opening.commit()
            opening.close()
            seen.append(settled.look(0) or 0)
            opening = later
        opening.close()
    assert seen == sorted(seen)
    assert seen[-1] >= 8


def test_readers_and_other_tables_hold_nothing_back(postgres_address: str) -> None:
    add(make(postgres_address), "a")
    with closed(postgres_address) as other:
        other.execute("SELECT * FROM outbox FOR UPDATE")
        other.execute("CREATE TEMPORARY TABLE mine (n int)")
        other.execute("INSERT INTO mine VALUES (1)")
        with opened(postgres_address) as table:
            assert CommitHorizon(table).look(0) == 1


def test_rows_put_into_a_partition_of_the_table_are_writing_too(postgres_address: str) -> None:
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
            settled = CommitHorizon(table)
            assert settled.look(0) is None
            slow.commit()
            assert settled.look(0) == 2


class Told:
    """A table with one row, and who writes to it, each time that it is asked."""

    def __init__(self, *writers: set[str]) -> None:
        self._writers = iter(writers)

    def top(self) -> int:
        return 1

    def writers(self) -> frozenset[str]:
        return frozenset(next(self._writers))


def test_who_is_prepared_for_a_commit_is_not_over_yet() -> None:
    """PostgreSQL names such a transaction anew, if it is set up for them at all."""
    before, after, other = {"3/4"}, {"prepared"}, {"5/6"}
    table: Any = Told(before, after, after, after | other, other, other, other)
    settled = CommitHorizon(table)
    assert [settled.look(0) for _ in range(3)] == [None, None, 1]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_order_of_commits_every_row_is_read_once(
    postgres_address: str, seed: int
) -> None:
    """Rows are inserted, committed and undone in any order, and read in between."""
    make(postgres_address)
    chance, written, read = Random(seed), set[str](), list[str]()
    with opened(postgres_address) as table:
        settled, after = CommitHorizon(table), 0
        writers = [psycopg.connect(postgres_address) for _ in range(4)]
        pending: list[list[str]] = [[] for _ in writers]
        for step in range(150):
            place = chance.randrange(len(writers))
            action = chance.choice(["insert", "insert", "commit", "undo", "read"])
            if action == "insert":
                insert(writers[place], f"{step},")
                pending[place].append(f"{step},")
            elif action == "read":
                upto = settled.look(0) or 0
                read += names(table, after, upto).split(",")[:-1]
                after = max(after, upto)
            else:
                (writers[place].commit if action == "commit" else writers[place].rollback)()
                written |= set(pending[place]) if action == "commit" else set()
                pending[place] = []
        for writer in writers:
            writer.rollback()
            writer.close()
        read += names(table, after, settled.look(5) or 0).split(",")[:-1]
    assert len(read) == len(set(read))
    assert {f"{each}," for each in read} == written
