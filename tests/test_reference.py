"""Names, options, limits and defaults in the documents are those of the code."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import typer
from tests.test_documents import PAGES, ROOT, SOURCE, first_column, section, table_rows

from tidings.app.cli import app
from tidings.app.config import pipeline
from tidings.app.config import source as source_table
from tidings.app.serve import config as serve_config
from tidings.channels import card, person_channel, registry, smtp
from tidings.client import Client
from tidings.engine.explain import Outcome
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.model.values import parse_duration_us
from tidings.service import openapi, request_waits
from tidings.service.app import create_app
from tidings.service.routes import reader_feeds
from tidings.service.settings import ServiceSettings
from tidings.sources import kafka_options
from tidings.sources.registry import CONNECTORS
from tidings.store.tokens import ROLES

DOCS = ROOT / "docs"
SERVICE, MAIL, SOURCES = DOCS / "service.md", DOCS / "mail.md", DOCS / "sources.md"


def words(text: str) -> set[str]:
    """Return the names in backticks."""
    return set(re.findall(r"`([^`]+)`", text))


def row_of(page: Path, name: str) -> str:
    """Return the last cell of the table row whose first cell names something."""
    (text,) = {row[-1] for row in table_rows(page) if name in words(row[0])}
    return text


def test_the_config_of_a_service_shows_every_key_with_its_default() -> None:
    block = section(SERVICE, "## One config").split("```toml")[1].split("```")[0]
    shown = set(re.findall(r"^(?:# )?(\w+) =", block, re.MULTILINE)) - {"preset"}
    assert shown | {"folder"} == set(serve_config._KEYS)
    defaults: dict[str, Any] = {
        option.name: option.default for option in fields(serve_config.ServeConfig)
    } | vars(ServiceSettings())
    defaults["future"] = defaults["future_us"]
    examples = {"store", "engine", "keep", "public_url"}
    for key, value in tomllib.loads(block)["service"].items():
        read = parse_duration_us(value) if key == "future" else value
        if key not in examples:
            assert (tuple(read) if isinstance(read, list) else read) == defaults[key], key


def test_the_limits_of_a_service_are_those_of_its_settings() -> None:
    text, settings = " ".join(SERVICE.read_text(encoding="utf-8").split()), ServiceSettings()
    numbers = {2: "two", 4: "four", 10: "ten", 30: "thirty", 50: "fifty"}
    for limit in (
        f"{settings.body_bytes // 10**6} MB and {settings.body_records:,} records",
        f"{settings.rate:,} requests per second, and a subscriber {settings.subscriptions:,} subs",
        f"at most {numbers[request_waits._OWN_AT_ONCE]} per subscriber",
        f"and {numbers[request_waits._AT_ONCE]} per tenant",
        f"A subscriber with {numbers[request_waits._OWN_ASKED]} pending queries",
        f"the {numbers[reader_feeds._ENTRIES]} newest notifications",
        f"at most {numbers[settings.webhooks]} webhooks",
        f"after {numbers[int(settings.wait_s)]} seconds with `false`",
        f"A comment every {settings.heartbeat_s:g} seconds",
        f"Recent publications are the last {settings.recent:,}",
    ):
        assert limit in text


def documented_paths(page: Path, heading: str, base: str = "") -> set[tuple[str, str]]:
    """Return the methods and paths in the tables of a section, with parameters as {}."""
    found = set[tuple[str, str]]()
    for line in section(page, heading).splitlines():
        methods, sent, path = list[str](), list[str](), ""
        for text in re.findall(r"`([^`]+)`", line.split("|")[1]) if line.startswith("|") else []:
            if match := re.fullmatch(r"([A-Z]+)(?: (/[^?]*)(?:\?.*)?)?", text):
                methods.append(match[1])
            if match and match[2]:
                sent, methods, path = methods, [], match[2]
            elif text.startswith(".../"):
                path = path.rpartition("/")[0] + text[3:]
            elif not match:
                break
            found |= {(method, base + path) for method in sent if path}
        found |= {(method, base) for method in methods}
    return {(method, re.sub(r"{\w+}", "{}", path)) for method, path in found}


def test_all_paths_of_the_service_are_documented() -> None:
    described = create_app("unused.db").openapi()["paths"]
    routes = {
        (method.upper(), re.sub(r"{[^}]+}", "{}", path))
        for path, methods in described.items()
        for method in methods
    }
    listed = documented_paths(SERVICE, "## Paths")
    listed |= documented_paths(MAIL, "## The address book", "/v1/subscribers/{}/channels")
    assert listed == routes


def test_statuses_outcomes_and_roles_of_the_service_are_documented() -> None:
    errors = section(SERVICE, "## Errors").split("```")[-1]
    listed = {
        int(status)
        for status in re.findall(
            r"\b(\d{3})\b", " ".join(re.findall(r"^\| ([\d, ]+) \|", errors, re.MULTILINE))
        )
    }
    assert listed == set(openapi._PROBLEMS)
    assert set(first_column(section(SERVICE, "### Why, and why not").split("\n## ")[0])) == set(
        get_args(Outcome)
    )
    assert {row[0] for row in table_rows(SERVICE) if row[0].strip("`") in ROLES} == {
        f"`{role}`" for role in ROLES
    }


def test_all_metrics_are_documented() -> None:
    source = (SOURCE / "service/metrics.py").read_text(encoding="utf-8")
    names = {name.removesuffix("_total") for name in re.findall(r'"(tidings_\w+)"', source)}
    listed = {
        name.partition("{")[0].removesuffix("_total")
        for name in first_column(section(SERVICE, "## Running it"))
    }
    assert listed == names
    channels = {
        name.partition("{")[0] for name in first_column(section(DOCS / "channels.md", "## Figures"))
    }
    assert channels == set(re.findall(r"`(tidings_channel_\w+)", section(SERVICE, "## Running it")))


def test_all_methods_of_the_client_are_documented() -> None:
    table = section(SERVICE, "## The client").split("|---|---|")[1].split("\n\n")[0]
    listed = words(table) | words(
        section(MAIL, "## The address book").split("`tidings.Client` offers")[1]
    )
    public = {name for name in vars(Client) if not name.startswith("_")} | {"dead_letters"}
    assert listed | {"close"} == public


def test_the_tables_of_channels_are_documented() -> None:
    text = section(DOCS / "channels.md", "## `[[channels]]`")
    common = text.partition("| type | keys | extra |")[0]
    assert set(first_column(common)) == set(registry.COMMON)
    rows = {
        row[0].strip("`"): row[1]
        for row in table_rows(DOCS / "channels.md")
        if row[0].strip("`") in registry.TYPES
    }
    assert rows.keys() == registry.TYPES.keys()
    for name, row in rows.items():
        keys = words(row) | (words(rows["sqs"]) - {"queue"} if name == "sns" else set())
        missing = set(registry.TYPES[name].keys) - keys - {"options"}
        assert missing == set(), name


def test_the_tables_of_mail_are_documented() -> None:
    listed = set(first_column(section(MAIL, "## The mail server")))
    assert listed == {"[mail]", *smtp._KEYS}
    listed = set(first_column(section(MAIL, "## What goes where")))
    assert listed == {"kind", "address", "start", *person_channel._OPTIONAL}
    assert words(row_of(MAIL, "kind")) == set(person_channel.KINDS)
    assert set(person_channel.EVERY) <= words(row_of(MAIL, "every"))
    for part, default in card._DEFAULTS.items():
        assert row_of(MAIL, part).startswith(f"`{default}`")


HEADINGS = {
    "kinesis": "## Kinesis",
    "jetstream": "## NATS JetStream",
    "mqtt": "## MQTT",
    "rss": "## RSS and Atom",
    "outbox": "## Outbox tables",
    "postgres_changes": "## Changes of PostgreSQL tables",
}
DEFAULTS = {
    "maxRecordsPerTrigger": "_LIMIT",
    "patienceMs": "_PATIENCE_MS",
    "quietMs": "_QUIET_MS",
    "sessionExpirySeconds": "_SESSION_S",
    "maxBytes": "_MAX_BYTES",
    "timeoutMs": "_TIMEOUT_MS",
}


@pytest.mark.parametrize("name", CONNECTORS)
def test_the_options_of_a_source_are_documented_with_their_defaults(name: str) -> None:
    module = CONNECTORS[name].load(name)
    if module.__name__.endswith("kafka"):
        page, heading = DOCS / "pipeline.md", "## `[source]`: Kafka without jars"
        module = kafka_options
    else:
        page, heading = SOURCES, HEADINGS[module.__name__.rpartition(".")[2]]
    text = section(page, heading)
    table = [line for line in text.splitlines() if line.startswith("|")]
    known = set(module._KNOWN)
    listed = {word for line in table for word in words(line.split("|")[1])}
    listed |= {"tlsCa"} & known & words("".join(table))
    assert {word for word in listed if not word.startswith("kafka.")} == {
        word for word in known if not word.startswith("kafka.")
    }
    for option, constant in DEFAULTS.items():
        if hasattr(module, constant) and option in known:
            (line,) = (line for line in table if f"`{option}`" in line.split("|")[1])
            assert f"({getattr(module, constant)})" in line, option


def test_all_formats_of_messages_are_documented() -> None:
    table = section(SOURCES, "# Sources").split("Programs can also")[0]
    short = {name: short for short, name in source_table._SHORT_NAMES.items()}
    assert set(first_column(table)) - {"format"} == {
        *(short.get(name, name) for name in CONNECTORS),
        "tidings-table",
    }
    module = (SOURCE / "spark/sources/sql_table.py").read_text(encoding="utf-8")
    (known,) = re.findall(r"^_KNOWN: Final = \((.*)\)$", module, re.MULTILINE)
    listed = first_column(section(DOCS / "pipeline.md", "## `[source]`: append-only tables"))
    assert set(listed) == set(re.findall(r'"(\w+)"', known))


def test_the_keys_of_a_stream_are_documented() -> None:
    listed = set(first_column(section(DOCS / "pipeline.md", "## `[stream]`")))
    tables = {"[spark]", "[metrics] prometheus", "[metrics] jsonl"}
    assert listed == {*pipeline._STREAM, *tables}


def commands() -> dict[str, click.Command]:
    """Return all commands by their words, such as `store add`."""
    found, groups = dict[str, click.Command](), [("", typer.main.get_command(app))]
    for name, group in groups:
        for word, command in getattr(group, "commands", {}).items():
            found[f"{name} {word}".strip()] = command
            groups.append((f"{name} {word}".strip(), command))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_options_of_commands_exist(page: Path) -> None:
    known, general = commands(), {"--help", "--install-completion", "--debug", "--version"}
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"\btidings ([a-z]+(?: [a-z]+)?)\b([^`|\n]*)", text):
        command = known.get(name) or known.get(name.partition(" ")[0])
        if command is not None:
            options = {option for parameter in command.params for option in parameter.opts}
            used = set(re.findall(r"(?<![\w-])(--[a-z-]+)", rest))
            assert used <= options | general, name


@pytest.mark.parametrize(
    ("page", "group"), [("operations.md", "store"), ("channels.md", "channel")]
)
def test_all_commands_of_a_group_are_documented(page: str, group: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    table = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
    names = {name.partition(" ")[2] for name in commands() if name.startswith(f"{group} ")}
    listed = set(re.findall(rf"`(?:tidings )?{group} (\w+)", table))
    listed |= set(re.findall(r"`(\w+)`", table)) & {"resume"}
    assert listed == names


def test_the_reference_of_contributing_is_complete() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE)) - {"help"}
    assert set(re.findall(r"^\| `make (\w+)` \|", text, re.MULTILINE)) == targets
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    markers = {
        marker.partition(":")[0] for marker in settings["tool"]["pytest"]["ini_options"]["markers"]
    }
    assert set(first_column(section(ROOT / "CONTRIBUTING.md", "## Tests"))) == markers


def test_all_benches_and_experiments_are_documented() -> None:
    main = (ROOT / "bench/__main__.py").read_text(encoding="utf-8")
    benches = set(re.findall(r'^    "([\w-]+)": "', main, re.MULTILINE))
    assert set(first_column((ROOT / "bench/README.md").read_text(encoding="utf-8"))) == benches
    listed = set(first_column((DOCS / "papers.md").read_text(encoding="utf-8")))
    assert {name for name in listed if not name.startswith("--")} == set(EXPERIMENTS)
