"""A run sends its deliveries to the channels of its config: once, and the rest at its end."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.channels import test_jetstream
from tests.channels.mailbox import mail_server
from tests.ports import reserved_port
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.app.config import load_config
from tidings.app.run.sending import sending
from tidings.errors import InvalidForm
from tidings.store import open_store

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CONFIG = """
engine = "local"
[source]
path = "films.jsonl"
[subscriptions]
path = "wishes.jsonl"
[sink]
path = "out"
format = "jsonl"
"""


def write(folder: Path, channels: str, events: int = 30) -> Path:
    films = [
        {"id": f"f{n}", "published_at": n, "attributes": {"year": 1990 + n}} for n in range(events)
    ]
    (folder / "films.jsonl").write_text("".join(json.dumps(film) + "\n" for film in films))
    wish = {"id": "s1", "subscriber": "ada", "where": "year >= 2000"}
    (folder / "wishes.jsonl").write_text(json.dumps(wish) + "\n")
    (folder / "run.toml").write_text(CONFIG + channels)
    return folder / "run.toml"


def tidings(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)])


def run(config: Path, *options: str) -> dict[str, Any]:
    result = tidings("run", config, "--json", *options)
    assert result.exit_code == 0, result.output
    form: dict[str, Any] = json.loads(result.stdout)
    return form


def nats_table(url: str, name: str) -> str:
    return f'[[channels]]\ntype = "nats"\nid = "q"\nservers = "{url}"\nsubject = "{name}.x"\n'


def test_a_run_without_a_store_keeps_an_outbox_in_its_folder(nats: str, tmp_path: Path) -> None:
    test_jetstream.add_stream(nats, "folder")
    config = write(tmp_path, nats_table(nats, "folder"))
    [report] = run(config)["channels"]
    assert (report["id"], report["sent"], report["waiting"]) == ("q", 20, 0)
    written = sorted((tmp_path / "out" / "deliveries").iterdir())
    assert sum(len(file.read_text().splitlines()) for file in written) == 20
    assert (tmp_path / "out" / "outbox.db").exists()
    assert run(config)["channels"][0]["sent"] == 0  # the same run again sends nothing again
    write(tmp_path, nats_table(nats, "folder"), events=33)
    assert run(config)["channels"][0]["sent"] == 3
    messages = test_jetstream.received(nats, "folder")
    assert test_jetstream.events_of(messages) == [f"f{n}" for n in range(10, 33)]


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


def test_mail_that_waits_is_sent_by_a_command(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.app.run.sending.DRAIN_S", 0.0)
    config = write(
        tmp_path,
        f"""
[mail]
host = "127.0.0.1"
port = {port}
security = "none"
from = "t@films.example"
[[people]]
subscriber = "ada"
kind = "mail"
address = "ada@example.org"
every = "delivery"
""",
    )
    failed = tidings("channel", "test", config, "mail")
    assert f"channel mail (mail): 127.0.0.1:{port}: ConnectionRefusedError" in failed.output
    [report] = run(config)["channels"]
    assert report["sent"] == 0
    with mail_server(port=port) as box:
        tested = tidings("channel", "test", config, "mail", "--subscriber", "ada")
        assert tested.output == "channel mail (mail: ada@example.org) accepted a test message\n"
        assert "A test of this channel" in box.raw[0].decode()
        assert tidings("channel", "resume", config, "mail").exit_code == 0
        sent = tidings("channel", "send", config)
        assert f"{report['waiting']} sent" in sent.stdout
        assert len(box.mails) == 2
    of_nobody = tidings("channel", "test", config, "mail", "--subscriber", "bob")
    assert "'bob' has no channel 'mail'" in of_nobody.output


def test_a_run_says_why_messages_were_given_up(tmp_path: Path) -> None:
    why = "the mail server answered 550 no such user"
    with mail_server() as box:
        box.recipients += ["550 no such user"] * 9  # however often it is asked
        config = write(
            tmp_path,
            f"""
[mail]
host = "127.0.0.1"
port = {box.port}
security = "none"
from = "t@films.example"
[[people]]
subscriber = "ada"
kind = "mail"
address = "ada@example.org"
every = "delivery"
""",
        )
        [report] = run(config)["channels"]
        assert (report["sent"], report["given_up_reason"]) == (0, why)
        sent = tidings("channel", "send", config)
        assert f"{report['given_up']} given up ({why})" in sent.stdout
    assert f"given up: {why}" in " ".join(tidings("channel", "list", config).stdout.split())


def test_a_digest_that_is_due_later_says_when(port: int, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    day = DAYS[(now.weekday() + 3) % 7]
    config = write(
        tmp_path,
        f"""
[mail]
host = "127.0.0.1"
port = {port}
security = "none"
from = "t@films.example"
[[people]]
subscriber = "ada"
kind = "mail"
address = "ada@example.org"
days = ["{day}"]
""",
    )
    film = {"id": "f1", "published_at": now.isoformat(), "attributes": {"year": 2020}}
    (tmp_path / "films.jsonl").write_text(json.dumps(film))
    [report] = run(config)["channels"]
    due = report["next_at"]
    assert datetime.fromisoformat(due).strftime("%a %H:%M").lower() == f"{day} 08:00"
    assert f"0 sent, 1 waiting until {due}\n" in tidings("channel", "send", config).stdout
    assert f"due at {due}" in tidings("channel", "list", config).stdout


def test_commands_show_pause_and_send(
    nats: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.app.run.sending.DRAIN_S", 0.0)
    config = write(tmp_path, nats_table("nats://127.0.0.1:1", "commands"))
    [report] = run(config)["channels"]
    assert (report["sent"], report["waiting"]) == (0, 20)
    assert "127.0.0.1" in report["reason"]
    listed = json.loads(tidings("channel", "list", config, "--json").stdout)
    assert (listed["state"], listed["waiting"]) == ("failing", 20)
    failing = tidings("channel", "failures", config, "q").output
    assert "0 messages\nthe channel is failing (nats://127.0.0.1:1" in failing
    assert failing.endswith("it is retried, and 20 messages will follow in order\n")
    assert tidings("channel", "pause", config, "q").exit_code == 0
    test_jetstream.add_stream(nats, "commands")
    (tmp_path / "run.toml").write_text(CONFIG + nats_table(nats, "commands"))
    assert tidings("channel", "send", config).exit_code == 0
    assert test_jetstream.received(nats, "commands") == []
    assert tidings("channel", "resume", config, "q").exit_code == 0
    assert "20 sent" in tidings("channel", "send", config).stdout
    assert len(test_jetstream.received(nats, "commands")) == 20
    assert "0 messages" in tidings("channel", "failures", config, "q").output
    assert "0 messages" in tidings("channel", "retry", config, "q").output
    tested = tidings("channel", "test", config, "q")
    assert "accepted a test message" in tested.output
    assert tidings("channel", "remove", config, "q").exit_code == 0
    assert tidings("channel", "list", config, "--json").stdout == ""
    unknown = tidings("channel", "test", config, "nobody")
    assert unknown.exit_code == 1
    assert "unknown channel 'nobody'" in unknown.output


def test_after_an_error_the_outbox_keeps_the_rest(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, nats_table("nats://127.0.0.1:1", "x")))
    (tmp_path / "out").mkdir()
    with pytest.raises(ZeroDivisionError), sending(config):
        raise ZeroDivisionError
    with open_store(config.outbox.url) as store:
        assert [channel.id for channel in store.channels.queues()] == ["q"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("channels = 3", "write [[channels]] above each"),
        ('[[channels]]\ntype = "pigeon"', "unknown type 'pigeon'; expected one of: kafka, nats"),
        ('[[channels]]\ntype = "sqs"', "queue is missing"),
        ('[[channels]]\ntype = "nats"\nsubject = "a"\nspeed = 3', "unknown key 'speed'"),
        ('[[channels]]\ntype = "nats"\nsubject = "a"\nrate = 0', "rate must be a positive number"),
        (
            '[[channels]]\ntype = "nats"\nsubject = "a"\npassword = {var = "X"}',
            'password must be a string, or name a variable: {env = "NAME"}',
        ),
        ('[[channels]]\ntype = "nats"\nsubject = "a"\n' * 2, "two channels with the id 'nats'"),
        ('[[channels]]\ntype = "kafka"\nservers = "s:1"\ntopic = "t"\nstart = "x"', "start"),
        ('[[channels]]\ntype = "nats"\nsubject = "a"\nservers = "nats://a:pw@h"', "own keys"),
    ],
)
def test_a_table_that_is_wrong_is_refused_by_name(tmp_path: Path, table: str, message: str) -> None:
    config = write(tmp_path, "")
    is_key = not table.startswith("[")
    config.write_text(f"{table}\n{CONFIG}" if is_key else CONFIG + table)
    with pytest.raises(InvalidForm) as refusal:
        load_config(config)
    assert message in str(refusal.value)
    assert "pw@" not in str(refusal.value)


def test_secrets_of_a_config_are_not_shown(tmp_path: Path) -> None:
    table = '[[channels]]\ntype = "kafka"\nservers = "s:1"\ntopic = "t"\n'
    table += '[channels.options]\nsasl.password = "swordfish-9"\nsasl.username = { env = "WHO" }\n'
    table += '[[channels]]\ntype = "sqs"\nqueue = "q"\nsecret_key = "swordfish-8"\n'
    config = load_config(write(tmp_path, table))
    assert "swordfish" not in f"{config} {config.channels}"
