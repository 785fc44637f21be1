"""The whole of a config.

`[source]`, `[subscriptions]` and `[sink]` must be there; `[subscribers]`, `[policies.NAME]`,
`[stream]`, `[spark]`, `[metrics]`, `[limits]` and `engine` may be. Paths are
seen from the folder of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from tidings.app.config.sink import Sink, read_sink
from tidings.app.config.source import read_source, text_of
from tidings.app.config.toml import Form, naming, read_toml, settings, store_address, table
from tidings.errors import InvalidForm, shown
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.json_forms import loads_policy
from tidings.formats.redaction import shown_safely
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.model.values import parse_duration_us
from tidings.policy import Policy
from tidings.store.address import Address

ENGINES: Final = ("spark", "local")
DEFAULT: Final = "default"
AVAILABLE_NOW: Final = "available-now"
OFF: Final = "off"
_STREAM: Final = ("lateness", "future", "buckets", "trigger", "checkpoint", "master")
PRESETS: Final = {"trusted": Limits.trusted(), "public": Limits.public()}
_OPTIONAL: Final = ("engine", "subscribers", "policies", "stream", "spark", "metrics", "limits")


@dataclass(frozen=True)
class Metrics:
    """Files that tell how a running query does: for Prometheus, and as JSON Lines."""

    prometheus: Path | None = None
    jsonl: Path | None = None


@dataclass(frozen=True)
class Config:
    """What to run: events from a source, for subscriptions, by policies, into a sink."""

    path: Path
    source: Source | SparkSource
    subscriptions: Path | Address
    sink: Sink
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

    def policy(self, subscriber: str) -> Policy | None:
        """Give the policy of somebody who is not among the subscribers; None: there is none.

        Where neither a file nor a store has subscribers, everybody may have the default of all
        policies.
        """
        fallback = Policy() if self.listed is None else None
        return self.policies.get(subscriber, self.policies.get(DEFAULT, fallback))

    @property
    def allowed_future(self) -> str | None:
        """How far ahead of the clock events may be; None: as far as they like.

        Without a word about it, that is 5 minutes for a run that goes on until it is stopped. One
        that takes what there is and ends may be a replay, and is not judged by the clock.
        """
        if self.future is None:
            return "5m" if self.endless else None
        return None if self.future == OFF else self.future

    @property
    def endless(self) -> bool:
        """Tell whether a run goes on until it is stopped."""
        return self.trigger != AVAILABLE_NOW

    @property
    def listed(self) -> Path | Address | None:
        """The place that has subscribers."""
        store = self.subscriptions if isinstance(self.subscriptions, Address) else None
        return self.subscribers or store


def load_config(path: str | Path) -> Config:
    """Read a config; a mistake is an error that names the file, the key, the value and the rule."""
    place = Path(path)
    with naming(f"{path}: "):
        return _config(read_toml(place), place)


def check_engine(config: Config) -> None:
    """Refuse what the local engine does not have."""
    wanted = []
    if isinstance(config.source, SparkSource):
        wanted.append(f"[source] format = {config.source.format!r}")
    if config.sink.is_spark:
        wanted.append(f"[sink] format = {config.sink.format!r}")
    if config.endless:
        wanted.append(f"[stream] trigger = {config.trigger!r}")
    if config.engine == "local" and wanted:
        raise InvalidForm(f"{config.path}: {wanted[0]} needs Spark, and the engine is 'local'")


def _config(form: Form, path: Path) -> Config:
    found = table(form, "config", ("source", "subscriptions", "sink"), _OPTIONAL)
    engine = found.get("engine", "spark")
    validate.choice("engine", engine, ENGINES, InvalidForm)
    base, limits = path.parent, _limits(found.get("limits", {}))
    subscriptions = _subscriptions(found["subscriptions"], base)
    people = found.get("subscribers")
    if people is not None and isinstance(subscriptions, Address):
        raise InvalidForm("[subscribers]: a store of subscriptions has the subscribers, too")
    return Config(
        path=path,
        source=read_source(found["source"], base),
        subscriptions=subscriptions,
        sink=read_sink(found["sink"], base),
        subscribers=_file("[subscribers]", people, base) if people is not None else None,
        policies=_policies(found.get("policies", {}), limits),
        limits=limits,
        engine=engine,
        settings=_settings(found.get("spark", {})),
        metrics=_metrics(found.get("metrics", {}), base),
        **_stream(found.get("stream", {}), base),
    )


def _subscriptions(form: Any, base: Path) -> Path | Address:
    if isinstance(form, Mapping) and "store" in form:
        found = table(form, "[subscriptions]", ("store",))
        address = store_address("[subscriptions] store", found["store"], base)
        if address.file is not None and not _exists(address.file):
            raise InvalidForm(f"[subscriptions] store: there is no file {address}")
        return address
    if isinstance(form, Mapping) and "path" not in form:
        table(form, "[subscriptions]", (), ("path", "store"))
        raise InvalidForm("[subscriptions]: give the path of a file, or a store")
    return _file("[subscriptions]", form, base)


def _file(label: str, form: Form, base: Path) -> Path:
    found = table(form, label, ("path",))
    path = base / text_of(f"{label} path", found["path"])
    if not _exists(path):
        given = shown_safely(found["path"])
        raise InvalidForm(f"{label} path: there is no file {given} in {base}")
    return path


def _exists(path: Path) -> bool:
    """Tell whether there is such a file; a name that no file can have is that of none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _limits(form: object) -> Limits:
    """Read `[limits]`: a preset, and each limit that differs from it by its name."""
    names = [each.name for each in fields(Limits)]
    found = table(form, "[limits]", (), ("preset", *names))
    with naming("[limits] "):
        preset = found.pop("preset", "trusted")
        validate.choice("preset", preset, PRESETS, InvalidForm)
        return replace(PRESETS[preset], **found)


def _policies(form: Form, limits: Limits) -> dict[str, Policy]:
    if not isinstance(form, dict):
        raise InvalidForm(f"[policies.NAME] is a table for each name; policies is {shown(form)}")
    return {name: _policy(name, each, limits) for name, each in form.items()}


def _policy(name: str, form: Form, limits: Limits) -> Policy:
    with naming(f"[policies.{name}] "):
        return loads_policy(form, limits)


def _stream(form: Form, base: Path) -> Form:
    found = table(form, "[stream]", (), _STREAM)
    with naming("[stream] "):
        validate.count("buckets", found.get("buckets", 1), InvalidForm)
        with naming("lateness: "):
            parse_duration_us(found.get("lateness", "0s"))
        _check_future(found.get("future", OFF))
        _check_trigger(found.get("trigger", AVAILABLE_NOW))
        for name in ("checkpoint", "master"):
            text_of(name, found.get(name, name))
    if "checkpoint" in found and "://" not in found["checkpoint"]:
        found["checkpoint"] = str((base / found["checkpoint"]).resolve())
    return found


def _check_future(value: object) -> None:
    if value != OFF:
        with naming(f"future is {OFF!r} or a duration: "):
            parse_duration_us(value)


def _check_trigger(value: object) -> None:
    if value != AVAILABLE_NOW:
        with naming(f"trigger is {AVAILABLE_NOW!r} or a duration: "):
            parse_duration_us(value)


def _settings(form: Form) -> dict[str, str]:
    """Read `[spark]`, where the `spark.` that all settings begin with may be left out."""
    found = settings("[spark]", form)
    return {f"spark.{name.removeprefix('spark.')}": each for name, each in found.items()}


def _metrics(form: Form, base: Path) -> Metrics:
    found = table(form, "[metrics]", (), ("prometheus", "jsonl"))
    places = {name: base / text_of(f"[metrics] {name}", each) for name, each in found.items()}
    return Metrics(**places)
