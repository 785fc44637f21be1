"""Audits of record files: keep the valid records with their locations, list the problems.

`tidings check` prints the problems, those of one kind together; a run uses the valid records.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tidings.app.config import Address, Config
from tidings.errors import TidingsError
from tidings.formats import files
from tidings.model.dead_letter import BadRecord
from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.limits import TRUSTED, Limits
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.store import CatalogueEntry, open_store
from tidings.store.records import Record

READERS: Final[dict[str, Callable[..., Iterator[Any]]]] = {
    "events": files.read_events,
    "subscriptions": files.read_subscriptions,
    "subscribers": files.read_subscribers,
}
_LINES: Final = (".jsonl", ".ndjson")
SAMPLE_SIZE: Final = 10_000
"""The maximum number of events in a sample."""
MOST_TRIALS: Final = 500_000
"""The maximum number of times that a subscription is tried on an event, a second or two in all."""
FEWEST: Final = 100
"""The fewest events to try per subscription; with fewer, an absent match means nothing."""
CountsParts = Callable[[Subscription], bool]


class EventSample:
    """A profile of all events, with an evenly spread sample of them."""

    def __init__(self) -> None:
        self._profile = Profile()
        self._events: list[Event] = []
        self._stride = 1

    def add(self, event: Event) -> None:
        """Add an event."""
        if not self._profile.events % self._stride:
            self._events.append(event)
            if len(self._events) > SAMPLE_SIZE:
                self._events, self._stride = self._events[::2], 2 * self._stride
        self._profile.add_sample([event])

    def absence(self, attribute: str) -> str | None:
        """Return a sentence that no event has an attribute, or None if one has."""
        return self._profile.absence(attribute)

    def diagnose(self, subscriptions: Iterable[Subscription], counts: CountsParts) -> Diagnosis:
        """Compare subscriptions with the events.

        `counts` says which subscriptions match if only some of their predicates hold.
        """
        listed = list(subscriptions)
        room = max(FEWEST, MOST_TRIALS // max(1, len(listed)))
        events = self._events[:: -(-len(self._events) // room) or 1]
        matched = None
        if len(listed) * len(events) <= MOST_TRIALS:
            matched = {
                subscription.id
                for subscription in listed
                if _matches_any(subscription, events, parts=counts(subscription))
            }
        return diagnose(listed, self._profile, matched, counts, tried=len(events))


def _matches_any(subscription: Subscription, events: Iterable[Event], *, parts: bool) -> bool:
    matches = subscription.touches if parts else subscription.matches
    return any(map(matches, events))


@dataclass(frozen=True)
class Problem:
    """A problem and its location: `line` is a line of JSON Lines, otherwise a record number.

    A run ignores records that are `refused`; it uses the others, but probably not as intended.
    """

    path: Path
    reason: str
    line: int | None = None
    id: str | None = None
    refused: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        optional = {"line": self.line, "id": self.id}
        present = {name: value for name, value in optional.items() if value is not None}
        return {"file": str(self.path), **present, "reason": self.reason}


@dataclass(frozen=True)
class CheckedFile:
    """A file that was read: its kind, and its number of records, valid or not."""

    path: Path
    kind: str
    records: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"file": str(self.path), "kind": self.kind, "records": self.records}


@dataclass(frozen=True)
class LocatedRecord:
    """A valid record and its location; events are counted but not kept."""

    path: Path
    line: int
    record: Any


def location(path: Path, line: int | None) -> str:
    """Return the location of a record in a form that editors understand.

    >>> location(Path("events.jsonl"), 7), location(Path("events.csv"), 7)
    ('events.jsonl:7', 'events.csv, record 7')
    """
    if line is None:
        return str(path)
    return f"{path}:{line}" if path.suffix.lower() in _LINES else f"{path}, record {line}"


class Audit:
    """The valid records of files that belong together, and the problems of the others."""

    def __init__(self, limits: Limits = TRUSTED) -> None:
        self._limits = limits
        self.problems: list[Problem] = []
        self.checked: list[CheckedFile] = []
        self._records: dict[str, dict[str, LocatedRecord]] = {kind: {} for kind in READERS}
        self._refused: set[tuple[str, str]] = set()
        self.sample = EventSample()
        self.diagnosis: Diagnosis | None = None

    @property
    def subscriptions(self) -> list[Subscription]:
        """The valid subscriptions."""
        return [located.record for located in self._records["subscriptions"].values()]

    @property
    def subscribers(self) -> list[Subscriber]:
        """The valid subscribers."""
        return [located.record for located in self._records["subscribers"].values()]

    def with_owners(self, policy_of: Callable[[str], Policy]) -> list[Subscriber]:
        """Return the valid subscribers, then the other owners of subscriptions with their policies.

        `policy_of` returns the policy of a subscriber that is not listed.
        """
        listed = self._records["subscribers"]
        owners = dict.fromkeys(subscription.subscriber for subscription in self.subscriptions)
        unlisted = [owner for owner in owners if owner not in listed]
        return self.subscribers + [Subscriber(owner, policy_of(owner)) for owner in unlisted]

    def read(self, path: Path, kind: str, records: Iterable[Any] | None = None) -> None:
        """Read a file, or `records` instead of it; the second use of an id is a problem."""
        number = 0
        try:
            if records is None:
                records = READERS[kind](path, limits=self._limits)
            for line, record in _numbered(path, records):
                number += 1
                self._add(path, kind, line, record)
        except TidingsError as error:
            self.problems.append(Problem(path, str(error).removeprefix(f"{path}: ")))
        self.checked.append(CheckedFile(path, kind, number))

    def _add(self, path: Path, kind: str, line: int, record: Any) -> None:
        records = self._records[kind]
        if isinstance(record, BadRecord):
            self._refuse(path, kind, record)
        elif record.id in records:
            first = location(records[record.id].path, records[record.id].line)
            reason = f"{kind[:-1]} {record.id}: the id is already used in {first}"
            self.problems.append(Problem(path, reason, line, record.id))
        else:
            records[record.id] = LocatedRecord(path, line, None if kind == "events" else record)
            if kind == "events":
                self.sample.add(record)

    def _refuse(self, path: Path, kind: str, bad: BadRecord) -> None:
        value = bad.record.get("id")
        record_id = value if isinstance(value, str) else None
        is_text = path.suffix.lower() in _LINES and set(bad.record) == {"text"}
        reason = f"invalid JSON: {bad.reason}" if is_text else bad.reason
        self.problems.append(Problem(path, reason, bad.position, record_id))
        if record_id is not None:
            self._refused.add((kind, record_id))

    def refuse_orphans(self) -> None:
        """Refuse subscriptions whose subscriber was refused; one not listed has a default."""
        subscribers, subscriptions = self._records["subscribers"], self._records["subscriptions"]
        for name, located in list(subscriptions.items()):
            owner = located.record.subscriber
            if owner not in subscribers and ("subscribers", owner) in self._refused:
                reason = f"subscription {name}: subscriber {owner} was refused"
                self.problems.append(Problem(located.path, reason, located.line, name))
                del subscriptions[name]

    def compare_with_events(
        self,
        policy_of: Callable[[str], Policy | None],
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """Compare the subscriptions with the events, if there are any.

        A wrong attribute or type is a problem of the first subscription that has it. `policy_of`
        returns the policy of a subscriber that is not listed, and `renamed` are the columns of the
        source that have other names in events.
        """
        if not self._records["events"] or not self._records["subscriptions"]:
            return
        listed = self._records["subscribers"]

        def counts_parts(subscription: Subscription) -> bool:
            owner = subscription.subscriber
            policy = listed[owner].record.policy if owner in listed else policy_of(owner)
            return policy is not None and policy.scorer.partial

        diagnosis = self.sample.diagnose(self.subscriptions, counts_parts)
        self.diagnosis = diagnosis.with_renamed(renamed or {})
        for finding in self.diagnosis.only("attribute", "type").findings:
            first = finding.subscriptions[0]
            located = self._records["subscriptions"][first]
            what = f"{finding.predicate}: {finding.advice}" if finding.count == 1 else str(finding)
            reason = f"subscription {first}: {what}"
            self.problems.append(Problem(located.path, reason, located.line, first, refused=False))

    def check_content(self, path: Path, content: Iterable[str]) -> None:
        """Report attributes that the config at `path` takes as content but that no event has."""
        for name in content:
            absence = None if name in ("id", "published_at") else self.sample.absence(name)
            if absence is not None:
                reason = f"[source] content: {absence}"
                self.problems.append(Problem(path, reason, refused=False))

    def check_preferences(self) -> None:
        """Report preferences over unknown subscriptions and over those of other subscribers."""
        owners = {subscription.id: subscription.subscriber for subscription in self.subscriptions}
        for subscriber, located in self._records["subscribers"].items():
            preferred = dict.fromkeys(name for pair in located.record.prefers for name in pair)
            for reason in _preference_problems(subscriber, preferred, owners):
                problem = Problem(located.path, reason, located.line, subscriber, refused=False)
                self.problems.append(problem)


def _preference_problems(
    subscriber: str, preferred: Iterable[str], owners: Mapping[str, str]
) -> Iterator[str]:
    for name in preferred:
        if name not in owners:
            yield f"subscriber {subscriber}: prefers names unknown subscription {name}"
        elif owners[name] != subscriber:
            yield f"subscriber {subscriber}: prefers names {name}, which belongs to {owners[name]}"


def _numbered(path: Path, records: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each record with its line or number.

    Only bad records carry a position; the valid ones take the remaining positions in order.
    """
    positions = _nonempty_lines(path) if path.suffix.lower() in _LINES else count(1)
    bad_positions = set()
    for record in records:
        if isinstance(record, BadRecord):
            bad_positions.add(record.position)
            yield record.position, record
        else:
            yield next(number for number in positions if number not in bad_positions), record


def _nonempty_lines(path: Path) -> Iterator[int]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number


def audit_config(config: Config) -> Audit:
    """Read the subscribers and subscriptions of a config; refuse subscriptions without owner."""
    audit = Audit(config.limits)
    if isinstance(config.subscriptions, Address):
        _read_store(config.subscriptions, audit, config.limits)
    else:
        if config.subscribers is not None:
            audit.read(config.subscribers, "subscribers")
        audit.read(config.subscriptions, "subscriptions")
    audit.refuse_orphans()
    return audit


def _read_store(address: Address, audit: Audit, limits: Limits) -> None:
    """Read one version of a store."""
    kinds: dict[str, list[CatalogueEntry]] = {"subscriber": [], "subscription": []}
    with open_store(address.url) as store:
        for entry in store.history.as_of():
            kinds[entry.kind].append(entry)
    for kind, entries in kinds.items():
        audit.read(Path(address.shown), f"{kind}s", _load_entries(entries, limits))


def _load_entries(
    entries: Iterable[CatalogueEntry], limits: Limits
) -> Iterator[Record | BadRecord]:
    for number, entry in enumerate(entries, start=1):
        try:
            record = entry.load(limits)
        except TidingsError as error:
            yield BadRecord(entry.form or {}, str(error), number)
        else:
            if record is not None:
                yield record


_VALUES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9][\w.,:+\-]*")


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of one file whose reasons differ in values only."""

    path: Path
    problems: list[Problem]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the first problem stands for all."""
        return {**self.problems[0].to_dict(), "count": len(self.problems)}


def group_problems(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Return problems by file and kind of reason, in order of the first of each kind."""
    groups: dict[tuple[Path, str], ProblemGroup] = {}
    for problem in problems:
        key = problem.path, _kind(problem)
        groups.setdefault(key, ProblemGroup(problem.path, [])).problems.append(problem)
    return list(groups.values())


def _kind(problem: Problem) -> str:
    """Return the first line of a reason without the id of the record, values and numbers."""
    line = problem.reason.partition("\n")[0]
    if problem.id:
        line = re.sub(rf"(?<!\w){re.escape(problem.id)}(?!\w)", "", line)
    return _VALUES.sub("", line)
