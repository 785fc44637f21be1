"""The config of a service: one TOML file for the web server and the pipeline."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tidings.app.config.people import (
    PEOPLE,
    TABLES,
    TEMPLATES,
    read_entries,
    read_mail_and_template,
    read_templates,
)
from tidings.app.config.pipeline import ENGINES, read_limits
from tidings.app.config.toml import nonempty_text, read_table, store_address
from tidings.channels.card import check_link
from tidings.channels.registry import read_channels
from tidings.errors import InvalidForm, prefix_errors, shown
from tidings.formats.redaction import hide_logins, is_like_address, shown_safely
from tidings.formats.toml_file import Form, read_toml
from tidings.model import validate
from tidings.model.values import parse_duration_us
from tidings.service.settings import ServiceSettings
from tidings.store.address import DEFAULT_TENANT, check_tenant

_COUNTS: Final = (
    "body_bytes",
    "body_records",
    "rate",
    "subscriptions",
    "recent",
    "streams",
    "webhooks",
    "channels",
)
_LISTS: Final = ("webhook_hosts", "webhook_networks")
_PLACES: Final = ("store", "host", "port", "engine", "folder", "spark_tenants")
_LINKS: Final = ("public_url", "track")
_KEYS: Final = (*_PLACES, "lateness", "future", "keep", *_COUNTS, *_LISTS, *_LINKS)
_TABLES: Final = ("limits", "channels", *TABLES, TEMPLATES)
SUFFIX: Final = ".toml"


@dataclass(frozen=True)
class ServeConfig:
    """Where a service keeps its data, where it listens, and its settings."""

    store: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    engine: str | None = None
    folder: Path | None = None
    spark_tenants: tuple[str, ...] = ()
    """Tenants, other than the default one, whose pipelines run on Spark, each in its own
    process."""
    settings: ServiceSettings = field(default_factory=ServiceSettings)


def load_serve_config(store: str) -> ServeConfig:
    """Read a config if the name ends in .toml; otherwise return the defaults for a store."""
    if not store.endswith(SUFFIX):
        return ServeConfig(store)
    if is_like_address(store):
        raise InvalidForm("a config must be a file; this looks like an address, so it is not shown")
    path = Path(store)
    with prefix_errors(f"{path}: ", raised=InvalidForm):
        content = read_toml(path)
        with hide_logins(content):
            return _config(content, path.parent)


def _config(content: Form, base: Path) -> ServeConfig:
    form = read_table(content, "config", ("service",), _TABLES)
    table = read_table(form["service"], "[service]", (), _KEYS)
    channel_settings = read_mail_and_template(form, base)
    channel_settings["entries"] = read_entries(form.get(PEOPLE, []), channel_settings.get("mail"))
    channel_settings["templates"] = read_templates(form.get(TEMPLATES, {}))
    channel_settings["queues"] = read_channels(form.get("channels", []))
    with prefix_errors("[service] ", raised=InvalidForm):
        return _read(table, form, base, channel_settings)


def _read(table: Form, form: Form, base: Path, channel_settings: Form) -> ServeConfig:
    settings: dict[str, Any] = {"limits": read_limits(form.get("limits", {"preset": "public"}))}
    settings |= channel_settings | _links(table)
    for name in _COUNTS:
        if name in table:
            settings[name] = validate.count(name, table[name], InvalidForm)
    for name in _LISTS:
        if name in table:
            settings[name] = _texts(name, table[name])
    for name, setting in (("future", "future_us"), ("keep", "keep_us")):
        if name in table:
            with prefix_errors(f"{name}: ", raised=InvalidForm):
                settings[setting] = parse_duration_us(table[name])
    if "lateness" in table:
        with prefix_errors("lateness: ", raised=InvalidForm):
            parse_duration_us(table["lateness"])
        settings["lateness"] = table["lateness"]
    if "engine" in table:
        validate.choice("engine", table["engine"], ENGINES, InvalidForm)
    address = store_address("store", table.get("store", "sqlite:///tidings.db"), base)
    chosen = ServiceSettings(**settings)
    _ = chosen.rules  # refuses invalid networks
    return ServeConfig(
        address.url,
        _place("host", table.get("host", "127.0.0.1")),
        validate.count("port", table.get("port", 8000), InvalidForm, low=0, high=65_535),
        table.get("engine"),
        base / _place("folder", table["folder"]) if "folder" in table else None,
        _spark_tenants(table),
        chosen,
    )


def _spark_tenants(table: Form) -> tuple[str, ...]:
    """Read the tenants, other than the default one, that run on Spark."""
    tenants = _texts("spark_tenants", table.get("spark_tenants", []))
    with prefix_errors("spark_tenants: ", raised=InvalidForm):
        for tenant in tenants:
            check_tenant(tenant)
    if tenants and table.get("engine") == "local":
        raise InvalidForm('spark_tenants needs engine = "spark"; the local engine serves them all')
    return tuple(dict.fromkeys(tenant for tenant in tenants if tenant != DEFAULT_TENANT))


def _links(table: Form) -> Form:
    """Read the public address of the service, and whether opened links are tracked."""
    links = dict[str, Any]()
    if "track" in table:
        validate.flag("track", table["track"], InvalidForm)
        links["track"] = table["track"]
    if "public_url" in table:
        url = check_link(nonempty_text("public_url", table["public_url"]), ("http", "https"))
        if url is None:
            raise InvalidForm(
                "public_url must be http:// or https:// with a host and without a user, not "
                f"{shown_safely(table['public_url'])}"
            )
        links["public_url"] = url
    return links


def _place(what: str, value: object) -> str:
    """Return a host or a folder, which are shown; refuse an address, which may have a password."""
    text = nonempty_text(what, value)
    if "://" in text or (what == "host" and "@" in text):
        raise InvalidForm(f"{what} must not be an address: {shown_safely(text)}")
    return text


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidForm(f"{name} must be a list of strings, not {shown(value)}")
    return tuple(nonempty_text(name, item) for item in value)
