"""Pins and holds name versions that stay; those of queries that never return are let go of."""

import os
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.index_files.test_versions import grown, there

from tidings.index_files.versions import KEPT_VERSIONS, PINS_EXPIRE_S, IndexFolder

TAKES: dict[str, Callable[[IndexFolder], int]] = {
    "pin": lambda folder: folder.pin("q", 0),
    "hold": lambda folder: folder.lock_newest(),
}


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    made = IndexFolder(tmp_path)
    grown(made, range(1, 2))
    return made


def versions(folder: IndexFolder) -> list[int]:
    return [int(each.stem[8:]) for each in sorted(folder.path.glob("version-*"))]


@pytest.mark.parametrize("take", TAKES)
def test_who_is_slow_takes_no_version_that_went_meanwhile(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, take: str
) -> None:
    """Between looking for the newest version and saying so, many come, and the first one goes."""
    real, slow = (
        IndexFolder._require_newest,
        [range(2, KEPT_VERSIONS + 3), range(KEPT_VERSIONS + 3, 3 * KEPT_VERSIONS)],
    )

    def slowly(self: IndexFolder) -> int:
        found = real(self)
        if slow:
            grown(self, slow.pop(0))
            self.clean()
        return found

    monkeypatch.setattr(IndexFolder, "_require_newest", slowly)
    taken = TAKES[take](folder)
    grown(folder, range(3 * KEPT_VERSIONS, 5 * KEPT_VERSIONS))
    folder.clean()
    assert taken == 3 * KEPT_VERSIONS - 1
    assert there(folder, taken)
    assert TAKES["pin"](folder) == (taken if take == "pin" else 5 * KEPT_VERSIONS - 1)


@pytest.mark.parametrize("at", ["before the link", "after the link"])
def test_a_pin_that_is_being_made_keeps_its_version(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    real = os.link

    def link(*names: Any) -> None:
        if at == "after the link":
            real(*names)
        grown(folder, range(2, 2 * KEPT_VERSIONS))
        folder.clean()
        if at == "before the link":
            real(*names)

    monkeypatch.setattr(os, "link", link)
    assert folder.pin("q", 0) == 1
    assert there(folder, 1)
    assert [each.name for each in (folder.path / "pins" / "q").iterdir()] == [f"{0:020d}"]


def test_a_pin_that_is_not_written_yet_is_none(folder: IndexFolder) -> None:
    folder.pin("q", 0)
    (folder.path / "pins" / "q" / ".new-abc").touch()
    grown(folder, range(2, 2 * KEPT_VERSIONS))
    folder.clean()
    assert versions(folder) == [1, *range(KEPT_VERSIONS, 2 * KEPT_VERSIONS)]


def test_a_query_that_will_not_come_back_is_unpinned(folder: IndexFolder) -> None:
    folder.pin("q/1", 0)
    folder.pin("q/2", 0)
    grown(folder, range(2, 2 * KEPT_VERSIONS))
    folder.unpin("q/1")
    folder.unpin("nobody")
    assert "version-000000000001.json" not in folder.clean()
    folder.unpin("q/2")
    assert "version-000000000001.json" in folder.clean()
    assert list((folder.path / "pins").iterdir()) == []
    assert folder.pin("q/1", 0) == 2 * KEPT_VERSIONS - 1


def test_who_is_unpinned_while_it_pins_pins_again(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, unpinned = IndexFolder._require_newest, list[bool]()

    def unpin(self: IndexFolder) -> int:
        if not unpinned:
            unpinned.append(True)
            self.unpin("q")
        return real(self)

    monkeypatch.setattr(IndexFolder, "_require_newest", unpin)
    assert folder.pin("q", 0) == 1
    assert unpinned


def test_the_pins_of_a_query_that_is_forgotten_are_let_go_of(folder: IndexFolder) -> None:
    folder.pin("dead", 0)
    folder.pin("slow", 0)
    grown(folder, range(2, 3))
    folder.pin("slow", 1)
    grown(folder, range(3, 3 * KEPT_VERSIONS))
    aged(folder, "dead", 0, PINS_EXPIRE_S - 60)
    aged(folder, "slow", 0, PINS_EXPIRE_S + 60)
    folder.clean()
    assert versions(folder)[:2] == [1, 2]
    aged(folder, "dead", 0, PINS_EXPIRE_S + 60)
    folder.unpin("slow")
    folder.clean()
    assert versions(folder) == [*range(2 * KEPT_VERSIONS, 3 * KEPT_VERSIONS)]
    assert list((folder.path / "pins").iterdir()) == []


def aged(folder: IndexFolder, query: str, batch: int, seconds: float) -> None:
    """Make a pin look as if it were so old, and nothing had been pinned since."""
    pins = folder.path / "pins" / query
    for path in (pins / f"{batch:020d}", pins):
        os.utime(path, (time() - seconds,) * 2)


def test_a_pin_that_cannot_be_made_leaves_nothing(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(PermissionError, match="no hard links"):
        folder.pin("q", 0)
    assert list((folder.path / "pins" / "q").iterdir()) == []
