"""A whole config: its tables, their defaults, and the rules that hold between them.

`[source]`, `[subscriptions]` and `[sink]` are required; `[subscribers]`, `[policies.NAME]`,
`[stream]`, `[spark]`, `[metrics]`, `[limits]`, `[[channels]]`, `[mail]`, `[template]`, `[[people]]`
and `engine` are optional. Paths are relative to the folder of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from tidings.app.config.people import TABLES, PeopleConfig, read_people
from tidings.app.config.sink import SinkConfig, read_sink
from tidings.app.config.source import read_source
from tidings.app.config.toml import (
    nonempty_text,
    read_settings,
    read_table,
    real_path,
    store_address,
)
from tidings.channels.registry import read_channels
from tidings.channels.transport import DeclaredChannel
from tidings.errors import InvalidForm, prefix_errors, shown
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.json_forms import loads_policy
from tidings.formats.messages import MessageSource
from tidings.formats.redaction import hide_logins, shown_safely
from tidings.formats.toml_file import Form, read_toml
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.model.values import parse_duration_us
from tidings.policy import DEFAULT_POLICY, Policy
from tidings.store.address import Address, read_address

ENGINES: Final = ("spark", "local")
DEFAULT: Final = "default"
AVAILABLE_NOW: Final = "available-now"
OFF: Final = "off"
OUTBOX: Final = "outbox.db"
"""The outbox in the folder of the sink, for deliveries to channels if the sink is not a store."""
PRESETS: Final = {"trusted": Limits.trusted(), "public": Limits.public()}
_STREAM: Final = ("lateness", "future", "buckets", "trigger", "checkpoint", "master")
_OPTIONAL: Final = (
    "engine",
    "subscribers",
    "policies",
    "stream",
    "spark",
    "metrics",
    "limits",
    "channels",
    *TABLES,
)


@dataclass(frozen=True)
class Metrics:
    """Files with the metrics of a running query: for Prometheus, and as JSON Lines."""

    prometheus: Path | None = None
    jsonl: Path | None = None


@dataclass(frozen=True)
class Config:
    """A run: events from a source, matched with subscriptions, delivered by policies to a sink."""

    path: Path
    source: Source | SparkSource | MessageSource
    subscriptions: Path | Address
    sink: SinkConfig
    subscribers: Path | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    engine: str = "spark"
    lateness: str = "0s"
    future: str | None = None
    buckets: int = 8
    trigger: str = AVAILABLE_NOW
    checkpoint: str | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    metrics: Metrics = Metrics()
    limits: Limits = TRUSTED
    clock: SparkSource | None = None
    """A table of clock times, so that time passes even if nothing is published; only a service has
    one."""
    channels: tuple[DeclaredChannel, ...] = ()
    people: PeopleConfig | None = None

    def policy(self, subscriber: str) -> Policy:
        """Return the policy of a subscriber that is not listed: its own, or the default."""
        return self.policies.get(subscriber, self.policies.get(DEFAULT, DEFAULT_POLICY))

    @property
    def sends(self) -> bool:
        """Whether deliveries are sent to channels or people."""
        return bool(self.channels) or self.people is not None

    @property
    def renamed(self) -> dict[str, str]:
        """The columns of the source that have other names in events, with those names."""
        source = self.source
        if isinstance(source, SparkSource):
            columns = source.columns
        else:
            columns = (source if isinstance(source, Source) else source.form).layout.columns
        # A Spark source may use a column twice, and keep it as an attribute.
        return {old: new for new, old in columns.items() if old not in columns}

    @property
    def outbox(self) -> Address:
        """The store from which deliveries are sent to channels: that of the sink, or a file."""
        return self.sink.store or read_address(self.sink.path / OUTBOX)

    @property
    def allowed_future(self) -> str | None:
        """The longest time that events may be ahead of the clock; None means no limit.

        The default is 5 minutes for an endless run. A run that ends on its own may be a replay, so
        its events are not compared with the clock.
        """
        if self.future is None:
            return "5m" if self.endless else None
        return None if self.future == OFF else self.future

    @property
    def endless(self) -> bool:
        """Whether a run continues until it is stopped."""
        return self.trigger != AVAILABLE_NOW

    @property
    def holds_newest(self) -> bool:
        """Whether events of the newest time wait for the next files, until the last one.

        So files may end anywhere between events of the same time. An endless run has no last file,
        and with a lateness, events wait anyway.
        """
        is_finite = isinstance(self.source, Source) and not self.endless
        return is_finite and parse_duration_us(self.lateness) == 0

    @property
    def subscriber_list(self) -> Path | Address | None:
        """The file or store that lists subscribers."""
        store = self.subscriptions if isinstance(self.subscriptions, Address) else None
        return self.subscribers or store


def load_config(path: str | Path) -> Config:
    """Read a config; an error names the file, the key, the value and the rule."""
    with prefix_errors(f"{path}: ", raised=InvalidForm):
        content = read_toml(Path(path))
        with hide_logins(content):
            return _read_config(content, Path(path))


def check_engine(config: Config) -> None:
    """Refuse a config that needs Spark but selects the local engine."""
    needs_spark = []
    if isinstance(config.source, SparkSource):
        needs_spark.append(f"[source] format = {config.source.format!r}")
    if config.sink.is_spark:
        needs_spark.append(f"[sink] format = {config.sink.format!r}")
    if config.endless and not isinstance(config.source, MessageSource):
        needs_spark.append(f"[stream] trigger = {config.trigger!r}")
    if config.engine == "local" and needs_spark:
        raise InvalidForm(f"{config.path}: {needs_spark[0]} needs Spark, but the engine is 'local'")


def _read_config(form: Form, path: Path) -> Config:
    tables = read_table(form, "config", ("source", "subscriptions", "sink"), _OPTIONAL)
    engine = tables.get("engine", "spark")
    validate.choice("engine", engine, ENGINES, InvalidForm)
    base, limits = path.parent, read_limits(tables.get("limits", {}))
    subscriptions = _subscriptions(tables["subscriptions"], base)
    subscribers = tables.get("subscribers")
    if subscribers is not None and isinstance(subscriptions, Address):
        raise InvalidForm("[subscribers]: the store of subscriptions already has the subscribers")
    stream = _stream(tables.get("stream", {}), base)
    watched = stream.get("trigger", AVAILABLE_NOW) != AVAILABLE_NOW
    return Config(
        path=path,
        source=read_source(tables["source"], base, watched=watched),
        subscriptions=subscriptions,
        sink=read_sink(tables["sink"], base),
        subscribers=_file("[subscribers]", subscribers, base) if subscribers is not None else None,
        policies=_policies(tables.get("policies", {}), limits),
        limits=limits,
        engine=engine,
        settings=_spark_settings(tables.get("spark", {})),
        metrics=_metrics(tables.get("metrics", {}), base),
        channels=read_channels(tables.get("channels", [])),
        people=read_people(tables, base),
        **stream,
    )


def _subscriptions(form: Any, base: Path) -> Path | Address:
    if isinstance(form, Mapping) and "store" in form:
        store = read_table(form, "[subscriptions]", ("store",))["store"]
        address = store_address("[subscriptions] store", store, base)
        if address.file is not None and not _exists(address.file):
            raise InvalidForm(f"[subscriptions] store: {address} does not exist")
        return address
    if isinstance(form, Mapping) and "path" not in form:
        read_table(form, "[subscriptions]", (), ("path", "store"))
        raise InvalidForm("[subscriptions]: set either path or store")
    return _file("[subscriptions]", form, base)


def _file(label: str, form: Form, base: Path) -> Path:
    name = read_table(form, label, ("path",))["path"]
    path = base / nonempty_text(f"{label} path", name)
    if not _exists(path):
        raise InvalidForm(f"{label} path: {shown_safely(name)} does not exist in {base}")
    return path


def _exists(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have counts as missing."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_limits(form: object) -> Limits:
    """Read `[limits]`: a preset, and the limits that differ from it."""
    names = [limit.name for limit in fields(Limits)]
    limits = read_table(form, "[limits]", (), ("preset", *names))
    with prefix_errors("[limits] ", raised=InvalidForm):
        preset = limits.pop("preset", "trusted")
        validate.choice("preset", preset, PRESETS, InvalidForm)
        return replace(PRESETS[preset], **limits)


def _policies(form: Form, limits: Limits) -> dict[str, Policy]:
    if not isinstance(form, dict):
        raise InvalidForm(f"policies must be tables [policies.NAME], not {shown(form)}")
    return {name: _policy(name, policy, limits) for name, policy in form.items()}


def _policy(name: str, form: Form, limits: Limits) -> Policy:
    with prefix_errors(f"[policies.{name}] ", raised=InvalidForm):
        return loads_policy(form, limits)


def _stream(form: Form, base: Path) -> Form:
    stream = read_table(form, "[stream]", (), _STREAM)
    with prefix_errors("[stream] ", raised=InvalidForm):
        validate.count("buckets", stream.get("buckets", 1), InvalidForm)
        with prefix_errors("lateness: ", raised=InvalidForm):
            parse_duration_us(stream.get("lateness", "0s"))
        _check_duration("future", stream.get("future", OFF), OFF)
        _check_duration("trigger", stream.get("trigger", AVAILABLE_NOW), AVAILABLE_NOW)
        for name in ("checkpoint", "master"):
            nonempty_text(name, stream.get(name, name))
    if "checkpoint" in stream and "://" not in stream["checkpoint"]:
        stream["checkpoint"] = real_path(base, stream["checkpoint"])
    return stream


def _check_duration(key: str, value: object, keyword: str) -> None:
    if value != keyword:
        with prefix_errors(f"{key} must be {keyword!r} or a duration: ", raised=InvalidForm):
            parse_duration_us(value)


def _spark_settings(form: Form) -> dict[str, str]:
    """Read `[spark]`, whose keys may leave out the common prefix `spark.`."""
    settings = read_settings("[spark]", form)
    return {f"spark.{name.removeprefix('spark.')}": value for name, value in settings.items()}


def _metrics(form: Form, base: Path) -> Metrics:
    table = read_table(form, "[metrics]", (), ("prometheus", "jsonl"))
    paths = {name: base / nonempty_text(f"[metrics] {name}", path) for name, path in table.items()}
    return Metrics(**paths)
