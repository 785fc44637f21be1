"""The review of `tidings check`: configs with the files they name, and other files together."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from os.path import realpath
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidings.app.check.audit import Audit, CheckedFile, Problem, audit_config, group_problems
from tidings.app.config import DEFAULT, Config, load_config
from tidings.errors import InvalidForm, TidingsError, message
from tidings.formats.columnar_files import open_arrow, open_parquet
from tidings.formats.csv_file import read_header
from tidings.formats.event_source import Source, showing
from tidings.formats.files import SUFFIXES, read_events, suffix_of
from tidings.formats.gzip_file import SUFFIX as GZIP
from tidings.formats.gzip_file import open_text
from tidings.formats.messages import MessageSource
from tidings.formats.policy_words import describe_policy
from tidings.model import validate
from tidings.model.dead_letter import BadRecord
from tidings.model.diagnosis import Diagnosis
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event
from tidings.policy import Subscriber
from tidings.sources.protocol import EARLIEST
from tidings.sources.registry import open_reader
from tidings.sources.spooled import SpooledReader

MESSAGES: Final = 1_000
"""How many messages of a source are compared with the subscriptions."""
PAUSED: Final = "; paused, so nothing is delivered"


@dataclass(frozen=True)
class PolicyUse:
    """A policy in words, and the subscribers that have it."""

    words: str
    subscribers: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"policy": self.words, "subscribers": self.subscribers}


@dataclass(frozen=True)
class Review:
    """The files that were checked, and their problems.

    `policies` are those of all subscribers. `diagnoses` compare the subscriptions of each config,
    or of the other files, with their events.
    """

    checked: list[CheckedFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    policies: list[PolicyUse] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "files": [file.to_dict() for file in self.checked],
            "kinds": [group.to_dict() for group in group_problems(self.problems)],
            "problems": [problem.to_dict() for problem in self.problems],
            "diagnoses": [diagnosis.to_dict() for diagnosis in self.diagnoses],
            "policies": [policy.to_dict() for policy in self.policies],
        }

    def include(self, audit: Audit) -> None:
        """Add the files and problems of an audit, the problems ordered by file and line."""
        self.checked.extend(audit.checked)
        self.diagnoses.extend(filter(None, [audit.diagnosis]))
        order = {file.path: number for number, file in enumerate(self.checked)}
        self.problems.extend(
            sorted(audit.problems, key=lambda problem: (order[problem.path], problem.line or 0))
        )

    def read_back(self, subscribers: Iterable[Subscriber]) -> None:
        """Add the policies of subscribers in words, equal ones once."""
        names = dict[str, list[str]]()
        for subscriber in subscribers:
            words = describe_policy(subscriber.policy) + (PAUSED if subscriber.paused else "")
            names.setdefault(words, []).append(subscriber.id)
        self.policies.extend(PolicyUse(words, users) for words, users in names.items())


def review(paths: Sequence[Path]) -> Review:
    """Check files: configs with the files they name first, then the files that remain."""
    result = Review()
    for path in paths:
        if path.suffix.lower() == ".toml":
            _review_config(path, result)
    checked = {realpath(file.path) for file in result.checked}
    audit = _audit_files(path for path in paths if realpath(path) not in checked)
    result.include(audit)
    result.read_back(audit.subscribers)
    return result


def _review_config(path: Path, result: Review) -> None:
    try:
        config = load_config(path)
    except TidingsError as error:
        result.checked.append(CheckedFile(path, "config"))
        result.problems.append(Problem(path, str(error).removeprefix(f"{path}: ")))
        return
    audit = audit_config(config)
    audit.check_preferences()
    audit.problems.extend(_unused_policies(config, audit))
    if isinstance(config.source, Source):
        for file in config.source.files():
            read = partial(
                read_events,
                suffix=config.source.suffix,
                limits=config.limits,
                layout=config.source.layout,
            )
            records = _read_lazily(read, file)
            source = config.source
            audit.read(file, "events", showing(records, source.content, source.hidden))
    elif isinstance(config.source, MessageSource):
        _sample_messages(config, config.source, audit)
    audit.compare_with_events(config.policy, config.renamed)
    shown = [name for name in config.source.content if name not in config.source.hidden]
    audit.check_content(path, shown)
    result.checked.append(CheckedFile(path, "config"))
    result.include(audit)
    result.read_back(audit.with_owners(config.policy))


def _sample_messages(config: Config, source: MessageSource, audit: Audit) -> None:
    """Check the options of a source and read its first messages, without changing the source."""
    try:
        records = list(sample_messages(source, config.limits, MESSAGES))
    except TidingsError as error:
        audit.problems.append(Problem(config.path, f"[source] {error}"))
    else:
        audit.read(Path(source.format), "events", records)


def _read_lazily(read: Callable[[Path], Iterator[Any]], file: Path) -> Iterator[Any]:
    """Open a file on the first iteration, so that a failure is reported for this file."""
    yield from read(file)


def _unused_policies(config: Config, audit: Audit) -> Iterable[Problem]:
    """Yield a problem for each policy that no subscriber uses, which is usually a typo."""
    listed = {subscriber.id for subscriber in audit.subscribers}
    owners = {subscription.subscriber for subscription in audit.subscriptions}
    for name in config.policies:
        if name in listed:
            source = config.subscriber_list
            reason = f"[policies.{name}]: {name} already has a policy in {source}; remove one"
            yield Problem(config.path, reason, refused=False)
        elif name not in owners and name != DEFAULT:
            reason = f"[policies.{name}]: no subscription has the subscriber {name}"
            yield Problem(config.path, reason, refused=False)


def _audit_files(paths: Iterable[Path]) -> Audit:
    audit = Audit()
    for path in dict.fromkeys(paths):
        try:
            audit.read(path, detect_kind(path))
        except TidingsError as error:
            audit.checked.append(CheckedFile(path, "unknown"))
            audit.problems.append(Problem(path, str(error)))
    audit.refuse_orphans()
    if any(file.kind == "subscriptions" for file in audit.checked):
        audit.check_preferences()
    audit.compare_with_events(lambda _: None)
    return audit


def read_records(paths: Iterable[Path]) -> Audit:
    """Read subscriptions and subscribers from files; a file of anything else is a problem."""
    audit = Audit()
    for path in dict.fromkeys(paths):
        try:
            kind = detect_kind(path)
            if kind == "events":
                raise InvalidForm("this file holds events; expected subscriptions or subscribers")
            audit.read(path, kind)
        except TidingsError as error:
            audit.problems.append(Problem(path, str(error)))
    return audit


# The order matters: a table of events may have a column `policy`.
FIELDS: Final = {
    "events": {"attributes", "published_at"},
    "subscriptions": {"subscriber", "where", "any"},
    "subscribers": {"policy", "prefers", "paused", "id"},
}
_SAMPLE: Final = 100
_READ_ERRORS: Final = (
    ValueError,
    RecursionError,
    OSError,
    LookupError,
    MemoryError,
    pa.ArrowException,
)


def detect_kind(path: Path) -> str:
    """Return whether a file holds events, subscriptions or subscribers, from its field names."""
    field_names = _FIELD_NAMES.get(suffix_of(path).removesuffix(GZIP))
    if field_names is None:
        raise InvalidForm(f"unknown suffix; expected one of: .toml, {', '.join(SUFFIXES)}")
    try:
        names = set(field_names(validate.regular_file(path)))
    except _READ_ERRORS as error:
        raise InvalidForm(message(error)) from None
    for kind, fields in FIELDS.items():
        if names & fields:
            return kind
    raise InvalidForm(
        "this file holds neither events (with attributes or a column published_at), nor "
        "subscriptions (with a subscriber), nor subscribers (with a policy or prefers)"
    )


def _of_json_lines(path: Path) -> list[str]:
    with open_text(path) as lines:
        return _keys(form for line in islice(lines, _SAMPLE) for form in _parse(line))


def _parse(line: bytes) -> Iterator[Any]:
    try:
        yield json.loads(line)
    except (ValueError, RecursionError):
        return


def _of_json(path: Path) -> list[str]:
    with open_text(path) as file:
        content = file.read()
    try:
        forms = json.loads(content)
    except ValueError:
        if names := _of_json_lines(path):  # which may be called .json as well
            return names
        raise
    return _keys(forms if isinstance(forms, list) else ())


def _keys(forms: Iterable[Any]) -> list[str]:
    return [name for form in forms if isinstance(form, dict) for name in form]


def _of_parquet(path: Path) -> list[str]:
    return list(open_parquet(path, TRUSTED).schema.names)


def _of_arrow(path: Path) -> list[str]:
    return list(open_arrow(path).schema.names)


_FIELD_NAMES: Final[dict[str, Callable[[Path], list[str]]]] = {
    ".jsonl": _of_json_lines,
    ".ndjson": _of_json_lines,
    ".json": _of_json,
    ".csv": read_header,
    ".tsv": read_header,
    ".parquet": _of_parquet,
    ".arrow": _of_arrow,
    ".feather": _of_arrow,
}


def sample_messages(
    source: MessageSource, limits: Limits = TRUSTED, most: int = MESSAGES
) -> Iterator[Event | BadRecord]:
    """Check all options of a source, and yield the events of its first messages.

    A source that cannot be read twice yields none, because reading would change it.
    """
    with closing(open_reader(source.format, source.options, streaming=True)) as reader:
        if isinstance(reader, SpooledReader):
            return
        start = reader.starting(EARLIEST)
        for span in reader.spans(start, reader.advance(start, reader.latest(), most)):
            for batch in reader.read(span):
                yield from source.form.events(batch, limits)
