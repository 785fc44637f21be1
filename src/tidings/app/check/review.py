"""What `tidings check` looks at: configs with all that they name, and the other files together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tidings.app.check.config_people import read_people
from tidings.app.check.detect_kind import kind_of
from tidings.app.check.record_audit import Audit, Checked, Problem
from tidings.app.config import DEFAULT, Config, load_config
from tidings.errors import TidingsError
from tidings.formats.event_source import Source
from tidings.formats.files import read_events


@dataclass(frozen=True)
class Review:
    """The files that were looked at, and what is wrong with them."""

    checked: list[Checked] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "files": [each.to_dict() for each in self.checked],
            "problems": [each.to_dict() for each in self.problems],
        }

    def include(self, audit: Audit) -> None:
        """Add what an audit found, its problems in order of files and lines."""
        self.checked.extend(audit.checked)
        order = {each.path: number for number, each in enumerate(self.checked)}
        self.problems.extend(
            sorted(audit.problems, key=lambda each: (order[each.path], each.line or 0))
        )


def review(paths: Sequence[Path]) -> Review:
    """Check files; a config brings its own, and what it names is not checked again on its own."""
    found = Review()
    for path in paths:
        if path.suffix.lower() == ".toml":
            _review_config(path, found)
    seen = {each.path.resolve() for each in found.checked}
    found.include(_audit_loose(path for path in paths if path.resolve() not in seen))
    return found


def _review_config(path: Path, found: Review) -> None:
    try:
        config = load_config(path)
    except TidingsError as error:
        found.checked.append(Checked(path, "config"))
        found.problems.append(Problem(path, str(error).removeprefix(f"{path}: ")))
        return
    audit = read_people(config)
    audit.note_loose_preferences()
    audit.problems.extend(_idle_policies(config, audit))
    if isinstance(config.source, Source):
        for file in config.source.files():
            events = partial(read_events, suffix=config.source.suffix, limits=config.limits)
            audit.read(file, "events", _late(events, file))
    found.checked.append(Checked(path, "config"))
    found.include(audit)


def _late(read: Callable[[Path], Iterator[Any]], file: Path) -> Iterator[Any]:
    """Open a file only where it is read: one that cannot be opened is a problem of its own."""
    yield from read(file)


def _idle_policies(config: Config, audit: Audit) -> Iterable[Problem]:
    """Find policies that nobody has, which is mostly a slip of the pen."""
    listed = {each.id for each in audit.subscribers}
    owners = {each.subscriber for each in audit.subscriptions}
    for name in config.policies:
        if name in listed:
            reason = f"[policies.{name}]: {name} has the policy of {config.listed}; remove one"
            yield Problem(config.path, reason, refused=False)
        elif name not in owners and name != DEFAULT:
            reason = f"[policies.{name}]: no subscription has the subscriber {name}"
            yield Problem(config.path, reason, refused=False)


def _audit_loose(paths: Iterable[Path]) -> Audit:
    audit = Audit()
    for path in dict.fromkeys(paths):
        try:
            audit.read(path, kind_of(path))
        except TidingsError as error:
            audit.checked.append(Checked(path, "unknown"))
            audit.problems.append(Problem(path, str(error)))
    listed = [str(each.path) for each in audit.checked if each.kind == "subscribers"]
    if listed:
        audit.refuse_orphans(lambda _: False, " or ".join(listed))
    if any(each.kind == "subscriptions" for each in audit.checked):
        audit.note_loose_preferences()
    return audit
