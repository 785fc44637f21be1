"""The config of a run: a TOML file, read strictly. examples/movies/pipeline.toml shows every key.

`[source]`, `[subscriptions]` and `[sink]` must be there; `[subscribers]`, `[policies.NAME]`,
`[stream]` and `engine` may be. Paths are seen from the folder of the config file.
"""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from tidings import checks
from tidings.errors import InvalidForm, TidingsError
from tidings.forms import fields, loads_policy
from tidings.policy import Policy
from tidings.source import Source, find_source
from tidings.values import parse_duration_us

ENGINES: Final = ("spark", "local")
SINKS: Final = ("parquet", "jsonl")
DEFAULT: Final = "default"
Form = dict[str, Any]


@dataclass(frozen=True)
class Sink:
    """A folder for what a run delivers, and the format of its files."""

    path: Path
    format: str = "parquet"


@dataclass(frozen=True)
class Config:
    """What to run: events from a source, for subscriptions, by policies, into a sink."""

    path: Path
    source: Source
    subscriptions: Path
    sink: Sink
    subscribers: Path | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    engine: str = "spark"
    lateness: str = "0s"
    buckets: int = 8

    def policy(self, subscriber: str) -> Policy | None:
        """Give the policy of somebody who is not in the file of subscribers; None: there is none.

        Where there is no such file, everybody may have the default of all policies.
        """
        fallback = Policy() if self.subscribers is None else None
        return self.policies.get(subscriber, self.policies.get(DEFAULT, fallback))


def load_config(path: str | Path) -> Config:
    """Read a config; a mistake is an error that names the file, the key, the value and the rule."""
    place = Path(path)
    with _naming(f"{path}: "):
        return _config(_toml(place), place)


def _toml(path: Path) -> Form:
    try:
        return {name: _plain(each) for name, each in tomllib.loads(path.read_text("utf-8")).items()}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidForm(f"this is no TOML: {error}") from None


def _plain(value: Any) -> Any:
    """Give a value of TOML as JSON has it: its times are text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _config(form: Form, path: Path) -> Config:
    optional = ("engine", "subscribers", "policies", "stream")
    found = fields(form, "config", ("source", "subscriptions", "sink"), optional)
    engine = found.get("engine", "spark")
    checks.choice("engine", engine, ENGINES, InvalidForm)
    base = path.parent
    people = found.get("subscribers")
    return Config(
        path=path,
        source=_source(found["source"], base),
        subscriptions=_file("[subscriptions]", found["subscriptions"], base),
        sink=_sink(found["sink"], base),
        subscribers=_file("[subscribers]", people, base) if people is not None else None,
        policies=_policies(found.get("policies", {})),
        engine=engine,
        **_stream(found.get("stream", {})),
    )


def _source(form: Form, base: Path) -> Source:
    found = fields(form, "[source]", ("path",), ("format", "files_per_batch"))
    with _naming("[source] "):
        batch = checks.count("files_per_batch", found.get("files_per_batch", 1), InvalidForm)
        path = checks.name("path", found["path"], InvalidForm)
        return find_source(base, path, found.get("format"), batch)


def _file(label: str, form: Form, base: Path) -> Path:
    found = fields(form, label, ("path",))
    path = base / checks.name(f"{label} path", found["path"], InvalidForm)
    if not path.exists():
        raise InvalidForm(f"{label} path: there is no file {found['path']!r} in {base}")
    return path


def _sink(form: Form, base: Path) -> Sink:
    found = fields(form, "[sink]", ("path",), ("format",))
    path = base / checks.name("[sink] path", found["path"], InvalidForm)
    sink = Sink(path, found.get("format", "parquet"))
    checks.choice("[sink] format", sink.format, SINKS, InvalidForm)
    if path.exists() and not path.is_dir():
        raise InvalidForm(f"[sink] path is a folder, and {found['path']!r} is a file")
    return sink


def _policies(form: Form) -> dict[str, Policy]:
    if not isinstance(form, dict):
        raise InvalidForm(f"[policies.NAME] is a table for each name; policies is {form!r}")
    return {name: _policy(name, each) for name, each in form.items()}


def _policy(name: str, form: Form) -> Policy:
    with _naming(f"[policies.{name}] "):
        return loads_policy(form)


def _stream(form: Form) -> Form:
    found = fields(form, "[stream]", (), ("lateness", "buckets"))
    with _naming("[stream] "):
        checks.count("buckets", found.get("buckets", 1), InvalidForm)
        with _naming("lateness: "):
            parse_duration_us(found.get("lateness", "0s"))
    return found


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Put the place of a mistake before its message."""
    try:
        yield
    except TidingsError as error:
        raise InvalidForm(f"{place}{error}") from None
