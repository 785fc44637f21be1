"""From a config to mailboxes: the example, with a mail server that may be down."""

import json
import re
import shutil
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.app.cli.commands import printed, tidings
from tests.channels.mailbox import Mailbox, mail_server
from tests.sources.brokers import Brokers

ROOT = Path(__file__).parents[3]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    for name in ("mail", "movies"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    return tmp_path / "mail" / "pipeline.toml"


def point(config: Path, box: Mailbox) -> None:
    text = config.read_text()
    line = next(line for line in text.splitlines() if line.startswith("port = "))
    config.write_text(text.replace(line, f"port = {box.port}"))


def run(config: Path) -> dict[str, Any]:
    result = tidings("run", config, "--engine", "local", "--json")
    assert result.exit_code == 0, result.output
    return dict(printed(result)[-1])


def test_the_example_mails_one_digest_to_each_reader(example: Path) -> None:
    with mail_server() as box:
        point(example, box)
        run(example)
    assert sorted(mail["To"] for mail in box.mails) == ["ada@example.org", "bruno@example.org"]
    [mail] = [mail for mail in box.mails if mail["To"] == "ada@example.org"]
    assert sorted(films(mail)) == sorted(delivered_to("ada", example.parent / "out"))
    part = mail.get_body(("plain",))
    assert part is not None
    text = part.get_content()
    assert "The Salt Road (2026)" in text
    assert "By Ines Okafor. Rated 7.9." in text


def test_a_mail_server_that_is_down_delays_only_the_mail(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.app.run.sending.DRAIN_S", 0.0)
    with mail_server() as stopped:
        point(example, stopped)
    summary = run(example)
    assert {report["sent"] for report in summary["channels"]} == {0}
    assert all("refused" in report["reason"].lower() for report in summary["channels"])


KAFKA = """
[source]
format = "tidings-kafka"

[source.options]
"kafka.bootstrap.servers" = "{brokers}"
subscribe = "films"
startingOffsets = "earliest"

[subscriptions]
path = "../movies/subscriptions.jsonl"

[subscribers]
path = "../movies/subscribers.jsonl"

[sink]
path = "out"
format = "jsonl"

[mail]
host = "localhost"
port = {port}
security = "none"
from = "news@films.example"

[template]
link = "https://films.example/{{{{delivery.event}}}}"

[[people]]
subscriber = "ada"
kind = "mail"
address = "ada@example.org"
every = "delivery"
"""


def test_kafka_to_mail_goes_on_where_it_stopped(example: Path) -> None:
    """Each run takes what is new in the topic, and mails it once."""
    brokers, folder = Brokers(), example.parent
    events = (folder.with_name("movies") / "events.jsonl").read_text().splitlines()
    forms = [json.loads(line) for line in events]
    lines = [json.dumps(form | {"content": form["attributes"]}) for form in forms]
    with mail_server() as box:
        example.write_text(KAFKA.format(brokers=brokers.address, port=box.port))
        for some in (lines[:6], lines[6:], []):
            brokers.send("films", some, partition=0)
            run(example)
    names = [name for mail in box.mails for name in films(mail)]
    assert len(names) == len(set(names))
    assert {"film-01", "film-05"} <= set(names)
    assert sorted(names) == sorted(delivered_to("ada", folder / "out"))


def delivered_to(subscriber: str, folder: Path) -> list[str]:
    """Return the events that the sink has for a subscriber."""
    lines = [line for file in folder.rglob("*.jsonl") for line in file.read_text().splitlines()]
    forms = [json.loads(line) for line in lines]
    return [form["event"] for form in forms if form.get("subscriber") == subscriber]


def films(mail: EmailMessage) -> list[str]:
    part = mail.get_body(("plain",))
    assert part is not None
    return re.findall(r"https://films\.example/(\S+)", part.get_content())
