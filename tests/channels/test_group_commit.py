"""Group commit: fewer transactions than tasks, and none of them changes what another one gets."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.channels.group_commit import GroupCommit
from tidings.errors import StoreError
from tidings.store import Session, Store, open_store
from tidings.store.channels import Channel, ChannelDraft, Channels
from tidings.store.protocol import Transactions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


class Counting:
    """A database that counts its transactions."""

    def __init__(self, database: Transactions) -> None:
        self._database, self.reads, self.writes = database, 0, 0

    def read(self, work: Callable[[Session], Any]) -> Any:
        self.reads += 1
        return self._database.read(work)

    def write(self, work: Callable[[Session], Any]) -> Any:
        self.writes += 1
        return self._database.write(work)


def find(name: str) -> Callable[[Transactions], list[Channel]]:
    return lambda store: Channels(store).find(name)


def put(name: str) -> Callable[[Transactions], Channel]:
    return lambda store: Channels(store).put(ChannelDraft("fake", name, None, {}), 0)


async def write_all(
    commits: GroupCommit, works: list[Callable[[Transactions], Any]]
) -> list[Any | BaseException]:
    return await asyncio.gather(*map(commits.write, works), return_exceptions=True)


def test_what_is_asked_for_at_once_is_one_transaction(store: Store) -> None:
    counting, names = Counting(store.database), [f"c{number:02}" for number in range(50)]
    commits = GroupCommit(counting)

    async def work() -> list[list[Channel]]:
        await write_all(commits, list(map(put, names)))
        return await asyncio.gather(*(commits.read(find(name)) for name in names))

    found = asyncio.run(work())
    assert [channel.id for [channel] in found] == names
    assert (counting.reads, counting.writes) == (1, 1)


def test_what_fails_fails_alone_and_changes_nothing(store: Store) -> None:
    def broken(database: Transactions) -> None:
        put("half")(database)
        raise StoreError("swordfish")

    works = [put("first"), broken, put("last")]
    results = asyncio.run(write_all(GroupCommit(store.database), works))
    assert [getattr(each, "id", str(each)) for each in results] == ["first", "swordfish", "last"]
    assert [channel.id for channel in store.channels.find()] == ["first", "last"]


def test_a_store_that_is_away_is_not_asked_for_each(store: Store) -> None:
    class Away(Counting):
        def write(self, work: Callable[[Session], Any]) -> Any:
            self.writes += 1
            raise StoreError("away")

    away = Away(store.database)
    works = [put(f"c{number}") for number in range(50)]
    results = asyncio.run(write_all(GroupCommit(away), works))
    assert [str(each) for each in results] == ["away"] * 50
    assert away.writes == 3


def test_a_task_that_is_cancelled_leaves_the_others_alone(store: Store) -> None:
    async def work() -> None:
        commits = GroupCommit(store.database)
        tasks = [asyncio.create_task(commits.write(put(name))) for name in ("first", "last")]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert (await tasks[1]).id == "last"
        assert (await commits.write(put("more"))).id == "more"

    asyncio.run(work())
    assert {channel.id for channel in store.channels.find()} >= {"last", "more"}
