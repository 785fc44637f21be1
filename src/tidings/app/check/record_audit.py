"""Reads records, keeps the good ones with their places, and notes what is wrong with the others.

`tidings check` prints all that is found; a run takes what is good.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tidings.errors import TidingsError
from tidings.formats import files
from tidings.formats.arrow_by_row import BadRecord
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Subscription
from tidings.policy import Subscriber

READERS: Final[dict[str, Callable[..., Iterator[Any]]]] = {
    "events": files.read_events,
    "subscriptions": files.read_subscriptions,
    "subscribers": files.read_subscribers,
}
_LINES: Final = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class Problem:
    """Something wrong, and where: `line` is that of JSON Lines, or else the number of the record.

    What is `refused` is not used in a run; the rest is, but hardly as it was meant.
    """

    path: Path
    reason: str
    line: int | None = None
    id: str | None = None
    refused: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        given = {"line": self.line, "id": self.id}
        found = {name: each for name, each in given.items() if each is not None}
        return {"file": str(self.path), **found, "reason": self.reason}


@dataclass(frozen=True)
class Checked:
    """A file that was looked at: what it holds, and how many records, good and bad ones."""

    path: Path
    kind: str
    records: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"file": str(self.path), "kind": self.kind, "records": self.records}


@dataclass(frozen=True)
class Item:
    """A good record and where it stands."""

    path: Path
    line: int
    record: Any


def place(path: Path, line: int | None) -> str:
    """Name a record of a file as people look it up.

    >>> place(Path("events.jsonl"), 7), place(Path("events.csv"), 7)
    ('events.jsonl:7', 'events.csv, record 7')
    """
    if line is None:
        return str(path)
    return f"{path}:{line}" if path.suffix.lower() in _LINES else f"{path}, record {line}"


class Audit:
    """Reads files that belong together, keeps what is good, and notes what is not."""

    def __init__(self, limits: Limits = TRUSTED) -> None:
        self._limits = limits
        self.problems: list[Problem] = []
        self.checked: list[Checked] = []
        self._items: dict[str, dict[str, Item]] = {kind: {} for kind in READERS}
        self._bad: set[tuple[str, str]] = set()

    @property
    def subscriptions(self) -> list[Subscription]:
        """The subscriptions that can be used."""
        return [item.record for item in self._items["subscriptions"].values()]

    @property
    def subscribers(self) -> list[Subscriber]:
        """The subscribers that can be used."""
        return [item.record for item in self._items["subscribers"].values()]

    def read(self, path: Path, kind: str, records: Iterable[Any] | None = None) -> None:
        """Read a file, or `records` as if they were its; an id that is there already is refused."""
        number = 0
        try:
            found = READERS[kind](path, limits=self._limits) if records is None else records
            for line, record in _numbered(path, found):
                number += 1
                self._take(path, kind, line, record)
        except TidingsError as error:
            self.problems.append(Problem(path, str(error).removeprefix(f"{path}: ")))
        self.checked.append(Checked(path, kind, number))

    def _take(self, path: Path, kind: str, line: int, record: Any) -> None:
        items = self._items[kind]
        if isinstance(record, BadRecord):
            self._refuse(path, kind, record)
        elif record.id in items:
            first = place(items[record.id].path, items[record.id].line)
            reason = f"{kind[:-1]} {record.id}: the id is there already, in {first}"
            self.problems.append(Problem(path, reason, line, record.id))
        else:
            items[record.id] = Item(path, line, None if kind == "events" else record)

    def _refuse(self, path: Path, kind: str, bad: BadRecord) -> None:
        found = bad.record.get("id")
        name = found if isinstance(found, str) else None
        no_json = path.suffix.lower() in _LINES and set(bad.record) == {"text"}
        reason = f"this is no JSON: {bad.reason}" if no_json else bad.reason
        self.problems.append(Problem(path, reason, bad.position, name))
        if name is not None:
            self._bad.add((kind, name))

    def refuse_orphans(self, known: Callable[[str], bool], where: str) -> None:
        """Refuse the subscriptions of subscribers that are neither read nor `known`."""
        people, items = self._items["subscribers"], self._items["subscriptions"]
        for name, item in list(items.items()):
            owner = item.record.subscriber
            if owner not in people and not known(owner):
                why = f"there is no subscriber {owner} in {where}"
                if ("subscribers", owner) in self._bad:
                    why = f"its subscriber {owner} is refused"
                reason = f"subscription {name}: {why}"
                self.problems.append(Problem(item.path, reason, item.line, name))
                del items[name]

    def note_loose_preferences(self) -> None:
        """Note preferences over subscriptions that are not there, or are somebody else's."""
        owners = {each.id: each.subscriber for each in self.subscriptions}
        for name, item in self._items["subscribers"].items():
            preferred = dict.fromkeys(each for pair in item.record.prefers for each in pair)
            for reason in _loose(name, preferred, owners):
                self.problems.append(Problem(item.path, reason, item.line, name, refused=False))


def _loose(name: str, preferred: Iterable[str], owners: Mapping[str, str]) -> Iterator[str]:
    for each in preferred:
        if each not in owners:
            yield f"subscriber {name}: prefers names {each}, and there is no such subscription"
        elif owners[each] != name:
            yield f"subscriber {name}: prefers names {each}, which belongs to {owners[each]}"


def _numbered(path: Path, records: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Give each record with its line or number; a bad one has it, the good ones fill the gaps."""
    places = _full_lines(path) if path.suffix.lower() in _LINES else count(1)
    taken = set()
    for record in records:
        if isinstance(record, BadRecord):
            taken.add(record.position)
            yield record.position, record
        else:
            yield next(place for place in places if place not in taken), record


def _full_lines(path: Path) -> Iterator[int]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number
