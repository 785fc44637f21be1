"""The config proposed for a file: its layout, a policy, and subscriptions that match."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from os.path import relpath
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidings.app.init.columns import (
    SampleColumn,
    columns_of,
    find_amounts,
    find_id,
    find_lists,
    find_time,
)
from tidings.engine.engine import Engine
from tidings.errors import InvalidForm, shown
from tidings.formats.arrow_by_row import EVENT_COLUMNS, attribute_places
from tidings.formats.columnar_files import open_arrow, open_parquet
from tidings.formats.csv_file import zero_padded
from tidings.formats.event_source import Source, find_source, read_file
from tidings.formats.files import read_rows
from tidings.formats.layout import Layout
from tidings.model.conditions.parser import render_predicate
from tidings.model.conditions.predicate import predicate
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED
from tidings.model.records import Event, Subscription, publication_order
from tidings.model.values import parse_duration_us
from tidings.policy import Policy, Subscriber

SAMPLE: Final = 20_000
_TRIED: Final = 3_000
_SUBSCRIBER: Final = "me"
_PREFRANKS: Final = (0.9, 0.7, 0.5)
_PERIODS: Final = ("1d", "6h", "1h", "10m", "1m", "1s")
_QUIET_PERIOD: Final = "1w"
"""The period that is tried first if a day has fewer than two matches for each place."""
_FEWEST_PERIODS: Final = 4
_K: Final = 5
_DULL: Final = re.compile(
    r"(?i).*(time|date|year|month|day|hour|minute|second)|.*(id|no|nr|number)\W*$|(.*[_\W])?id[_\W]"
    r"|row(names)?$"
)
"""Names of columns that rarely say what an event is about."""
_TITLE: Final = re.compile(r"(?i).*(title|headline|subject|name|package|product|url|link|homepage)")
_MOST_CONTENT: Final = 5
_FORM: Final = {"id", "published_at"}
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class ProposedSubscription:
    """A subscription and how many events of the sample match it."""

    subscription: Subscription
    matches: int


@dataclass(frozen=True)
class Proposal:
    """The findings of `tidings init` in a file, and its proposals."""

    source: Source
    layout: Layout
    columns: Sequence[SampleColumn]
    events: int
    unreadable: Sequence[BadRecord]
    policy: Mapping[str, Any]
    subscriptions: Sequence[ProposedSubscription]
    content: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that no attribute can hold, such as durations, with their types."""

    @property
    def stem(self) -> str:
        """The name of the file without its suffixes, for the files that are written."""
        name = self.source.files()[0].name
        return re.sub(r"(?i)(\.(csv|tsv|jsonl|ndjson|json|parquet|arrow|feather|gz))+$", "", name)

    def config(self, source_path: str) -> str:
        """Return the config as TOML."""
        layout = self.layout
        lines = {
            "engine": "local",
            "source.path": source_path,
            "source.columns": dict(layout.columns),
            "source.keep": list(layout.keep or ()),
            "source.types": dict(layout.types),
            "source.lists": dict(layout.lists),
            "source.generate": list(layout.generate),
            "source.content": list(self.content),
            "subscriptions.path": f"{self.stem}-subscriptions.jsonl",
            "policies.default": dict(self.policy),
            "sink": {"path": f"{self.stem}-deliveries", "format": "jsonl"},
        }
        return "".join(f"{name} = {_toml(value)}\n" for name, value in lines.items() if value)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "events": self.events,
            "unreadable": len(self.unreadable),
            "columns": {column.name: column.kind for column in self.columns},
            "left_out": dict(self.left_out),
            "policy": dict(self.policy),
            "subscriptions": [
                {**proposed.subscription.to_dict(), "matches": proposed.matches}
                for proposed in self.subscriptions
            ],
        }


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {_toml(inner)}" for name, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml(name)


def write(proposal: Proposal, folder: Path, *, force: bool = False) -> list[Path]:
    """Write the config and the subscriptions into a folder; refuse to replace files."""
    stem, source = proposal.stem, proposal.source
    path = source.files()[0] if len(source.files()) == 1 else source.folder / source.pattern
    texts = {
        folder / f"{stem}.toml": proposal.config(Path(relpath(path, folder)).as_posix()),
        folder / f"{stem}-subscriptions.jsonl": "".join(
            json.dumps(proposed.subscription.to_dict(), ensure_ascii=False) + "\n"
            for proposed in proposal.subscriptions
        ),
    }
    for name in texts:
        if name.exists() and not force:
            raise InvalidForm(f"{name} already exists; --force replaces it")
    for name, text in texts.items():
        name.write_text(text, encoding="utf-8")
    return list(texts)


def propose(path: Path) -> Proposal:
    """Look at the first rows of a file, or of the first file of a folder, and propose a config."""
    source = find_source(Path(), str(path))
    if not source.files():
        raise InvalidForm(f"{path}: there is no file to look at")
    file = source.files()[0]
    layout, columns, left_out = _layout(file, source.suffix)
    records = list(islice(read_file(file, source.suffix, layout=layout), SAMPLE))
    events = [record for record in records if isinstance(record, Event)]
    unreadable = [record for record in records if isinstance(record, BadRecord)]
    if not events:
        reason = unreadable[0].reason if unreadable else "it has no rows"
        raise InvalidForm(f"{path}: no row can be read as an event: {reason}")
    events.sort(key=publication_order)
    subscriptions = list(islice(_subscriptions(events), len(_PREFRANKS)))
    if not subscriptions:
        raise InvalidForm(f"{path}: there is nothing to subscribe to besides an id and a time")
    examples = [proposed.subscription for proposed in subscriptions]
    policy = _policy(events, examples)
    content = [] if _are_forms(columns) else _content(events, examples)
    return Proposal(
        source, layout, columns, len(events), unreadable, policy, subscriptions, content, left_out
    )


def _layout(file: Path, suffix: str) -> tuple[Layout, list[SampleColumn], dict[str, str]]:
    """Return the layout for the first rows of a file, their columns, and those left out."""
    records = list(islice(read_rows(file, suffix), SAMPLE))
    rows = [row for row in records if isinstance(row, dict)]
    if not rows:
        bad = [row.reason for row in records if isinstance(row, BadRecord)]
        reason = f"no row can be read: {bad[0]}" if bad else "the file has no rows"
        raise InvalidForm(f"{file}: {reason}")
    columns = columns_of(rows)
    names = {column.name for column in columns}
    schema = _schema(file, suffix)
    # A column without values is only in the schema.
    if odd := [name for name in (*names, *schema.names) if "\0" in name]:
        raise InvalidForm(f"{file}: the name of the column {shown(odd[0])} contains NUL; rename it")
    left_out = _left_out(schema)
    if _are_forms(columns):
        return Layout(), columns, left_out
    columns = [column for column in columns if not column.name.startswith("__index_level_")]
    # Without the keys into which maps unfold.
    candidates = [column for column in columns if not schema.names or column.name in schema.names]
    id_column, time = find_id(candidates), find_time(candidates)
    named = {"id": id_column, "published_at": time.name if time else None}
    is_text = suffix.startswith((".csv", ".tsv"))
    types = dict.fromkeys(zero_padded(file) if is_text else (), "string")
    if time is not None and time.type:
        types[time.name] = time.type
    renamed = {column: name for name, column in named.items() if column}
    untyped = [column for column in columns if column.name not in {*renamed, *types}]
    types |= find_amounts(untyped)
    lists = find_lists(column for column in untyped if column.name not in types)
    # Columns whose names mean something else here keep their values under another name.
    moved = {f"{name}_": name for name in EVENT_COLUMNS if name in names}
    moved = {new: name for new, name in moved.items() if name not in renamed}
    columns_by_name = {name: column for name, column in named.items() if column and column != name}
    unused = {*left_out, *renamed}
    layout = Layout(
        columns=columns_by_name | moved,
        keep=tuple(name for name in schema.names if name and name not in unused)
        if left_out
        else None,
        types={renamed.get(name, name): kind for name, kind in types.items() if name != id_column},
        lists=lists,
        generate=tuple(name for name, column in named.items() if not column),
    )
    if layout.is_plain and suffix.startswith((".json", ".ndjson")):
        layout = replace(layout, columns={name: name for name in named})  # else JSON would be forms
    return layout, columns, left_out


def _are_forms(columns: Iterable[SampleColumn]) -> bool:
    """Return whether these are the fields of events in their JSON form."""
    names = {column.name for column in columns}
    return names >= _FORM and any(name.startswith("attributes.") for name in names)


def _schema(file: Path, suffix: str) -> pa.Schema:
    """Return the schema of a columnar file; that of another one is empty."""
    if suffix == ".parquet":
        return open_parquet(file, TRUSTED).schema
    return open_arrow(file).schema if suffix in (".arrow", ".feather") else pa.schema([])


def _left_out(schema: pa.Schema) -> dict[str, str]:
    """Return the columns that no attribute can hold, with their types."""
    held = attribute_places(schema)
    unheld = [column for at, column in enumerate(schema) if at not in held]
    return {column.name: str(column.type) for column in unheld if column.name not in EVENT_COLUMNS}


def _subscriptions(events: Sequence[Event]) -> Iterator[ProposedSubscription]:
    """Yield subscriptions that match some of the events, if possible neither few nor most."""
    seen, tried = set[str](), events[:: max(1, len(events) // _TRIED)]
    ranks = iter(_PREFRANKS)
    for least, most in ((0.005, 0.5), (0.0, 1.0)):
        for where in _conditions(tried):
            subscription = Subscription(f"{_SUBSCRIBER}-{len(seen) + 1}", _SUBSCRIBER, where=where)
            matches = sum(map(subscription.matches, tried))
            if where in seen or not least * len(tried) < matches <= most * len(tried):
                continue
            seen.add(where)
            form = subscription.to_dict() | {"prefrank": next(ranks)}
            total = sum(map(subscription.matches, events))
            yield ProposedSubscription(Subscription(**form), total)


def _content(events: Sequence[Event], subscriptions: Iterable[Subscription]) -> list[str]:
    """Return attributes to show in deliveries: two titles, and those of the conditions."""
    columns = columns_of([event.attributes for event in events[:_TRIED]])
    titles = [column.name for column in columns if _TITLE.match(column.name) and column.holds(str)][
        :2
    ]
    conjunctions = chain.from_iterable(own.conjunctions for own in subscriptions)
    conditioned = [part.attribute for conjunction in conjunctions for part in conjunction]
    return list(dict.fromkeys([*titles, *conditioned]))[:_MOST_CONTENT]


def _conditions(events: Sequence[Event]) -> Iterator[str]:
    """Yield conditions over attributes that tell events apart, a category and a number first."""
    columns = columns_of([event.attributes for event in events])
    categories = [pair for column in columns for pair in _values(column)]
    dull = [column for column in columns if _DULL.match(column.name)]
    telling = [column for column in columns if column not in dull]
    full = [column for column in telling if column.is_nearly_full]
    bounds = (
        [bound for column in some for bound in _bounds(column)] for some in (full, telling, dull)
    )
    numbers = next(filter(None, bounds), [])
    categories.sort(key=lambda pair: pair[0])
    values = [text for _, text in categories]
    if values and numbers:
        yield values[0]
        yield numbers[0]
        yield from (f"{value} and {numbers[-1]}" for value in values[1:])
    yield from values
    yield from numbers


def _values(column: SampleColumn) -> Iterator[tuple[float, str]]:
    """Yield conditions on values that several events have, and how far they are from a tenth."""
    counts = Counter[Any]()
    for value in column.values:
        counts.update(value if isinstance(value, tuple) else [value])
    texts = {value: count for value, count in counts.items() if isinstance(value, str | bool)}
    for value, count in sorted(texts.items(), key=lambda pair: (-pair[1], str(pair[0])))[:20]:
        lonely = count == 1 and len(texts) > 1
        doubts = lonely + bool(_DULL.match(column.name))
        distance = abs(count / column.rows - 0.1) + doubts + len(str(value)) / 1_000
        yield distance, render_predicate(predicate(column.name, "=", value))


def _bounds(column: SampleColumn) -> Iterator[str]:
    """Yield conditions on the largest and the smallest tenth of many different numbers.

    A bound that equals more than half of them, such as 0, is useless.
    """
    if not column.holds(int, float) or len(set(column.values)) < min(10, column.rows):
        return
    ordered = sorted(column.values)
    for operator, quantile in ((">=", 0.9), ("<=", 0.1)):
        bound = ordered[int(quantile * (len(ordered) - 1))]
        if 2 * ordered.count(bound) <= len(ordered):
            yield render_predicate(predicate(column.name, operator, bound))


def _policy(events: Sequence[Event], subscriptions: Sequence[Subscription]) -> dict[str, Any]:
    """Return a policy that delivers something: the k best of a period, if some periods end."""
    diversify = {"name": "divrank", "sigma": 0.5}
    for window in _windows(events, subscriptions):
        form = {"k": _K, "window": window, "diversify": diversify}
        if _delivers(events, subscriptions, form):
            return form
    return {"k": _K, "window": {"name": "continuous"}}


def _windows(
    events: Sequence[Event], subscriptions: Sequence[Subscription]
) -> Iterator[dict[str, Any]]:
    """Yield windows, best first: the longest period that occurs a few times."""
    span_us = events[-1].published_us - events[0].published_us
    tried = events[:: max(1, len(events) // _TRIED)]
    matches = sum(
        any(subscription.matches(event) for subscription in subscriptions) for event in tried
    )
    daily = matches * len(events) / len(tried) / max(1, span_us / parse_duration_us("1d"))
    quiet = (_QUIET_PERIOD,) if daily < 2 * _K else ()
    for period in (*quiet, *_PERIODS):
        if span_us >= _FEWEST_PERIODS * parse_duration_us(period):
            yield {"name": "periodic", "length": period}
    for length in (100, 10):
        yield {"name": "jumping", "length": length, "step": length}


def _delivers(
    events: Sequence[Event], subscriptions: Iterable[Subscription], policy: Mapping[str, Any]
) -> bool:
    """Return whether a policy delivers anything, tried on some events without compiled kernels."""
    engine = Engine(index="scan", feeds="plain")
    engine.subscribe(Subscriber(_SUBSCRIBER, Policy(**policy)))
    for subscription in subscriptions:
        engine.add(subscription)
    for start in range(0, min(len(events), _TRIED), 100):
        if engine.publish_many(events[start : start + 100]):
            return True
    return False
