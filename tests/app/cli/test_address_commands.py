"""The commands `address`."""

import json
from pathlib import Path

import pytest
from tests.app.cli.commands import printed, tidings
from tests.channels.test_bounces import report

from tidings.store import open_store
from tidings.store.digests import SENT, FixedDigest

TEMPLATE = """
[template]
title = "{{title}} ({{year}})"
link = "https://films.example/{{delivery.event}}"
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "films.db")


def test_an_address_is_added_listed_paused_and_removed(store: str) -> None:
    added = tidings("address", "add", store, "ada", "home", "ada@example.org", "--at", "07:30")
    assert added.stdout == "ada reads at ada@example.org\n"
    secret = "https://hooks.slack.com/services/T0/SECRET"
    chat = ("address", "add", store, "ada", "chat", secret, "--kind", "slack", "--min-rank", "0.9")
    assert "SECRET" not in tidings(*chat).stdout
    states = printed(tidings("address", "list", store, "--json"))
    assert [(state["id"], state["verified"], state["at"]) for state in states] == [
        ("chat", True, ["08:00"]),
        ("home", True, ["07:30"]),
    ]
    table = tidings("address", "list", store, columns=120).stdout
    assert "07:30" in table
    assert "SECRET" not in table
    assert printed(tidings("address", "pause", store, "ada", "home", "--json"))[0]["paused"] is True
    assert "paused" in tidings("address", "list", store, columns=120).stdout
    resumed = printed(tidings("address", "resume", store, "ada", "home", "--json"))
    assert resumed[0]["paused"] is False
    assert tidings("address", "remove", store, "ada", "home").stdout == "address home removed\n"
    missing = tidings("address", "pause", store, "ada", "home")
    assert missing.exit_code == 1
    assert "there is no such address" in missing.stderr


def test_wrong_addresses_are_refused(store: str) -> None:
    for wrong in ("ada", "a@b@c"):
        result = tidings("address", "add", store, "ada", "home", wrong)
        assert result.exit_code == 1
        assert "name@example.org" in result.stderr
    local = tidings("address", "add", store, "ada", "x", "http://127.0.0.1/", "--kind", "teams")
    assert "not public" in local.stderr


def test_a_bounce_is_taken_from_standard_input(store: str) -> None:
    tidings("address", "add", store, "ada", "home", "ada@example.org")
    with open_store(store) as opened:
        key = opened.channels.find("home")[0].key
        opened.digests.fix(FixedDigest(key, 1, 2, 2, (1, 2), "abc", 0, SENT))
    taken = tidings("address", "bounce", store, stdin=report())
    assert taken.stdout == "2 deliveries given up\n"
    [state] = printed(tidings("address", "list", store, "--json"))
    assert [each["sequence"] for each in state["failed"]] == [1, 2]
    assert tidings("address", "bounce", store, stdin=b"Subject: hi\n\nhi").exit_code == 1


def test_a_template_is_previewed(tmp_path: Path) -> None:
    template, events = tmp_path / "service.toml", tmp_path / "events.jsonl"
    template.write_text(TEMPLATE)
    event = {"id": "f7", "content": {"title": "Big <Fish>", "year": 2003}}
    events.write_text(f"{json.dumps(event)}\n" * 2)
    text = tidings("address", "preview", template, events).stdout
    assert text.startswith("1. Big <Fish> (2003)\n   https://films.example/f7\n   Why: rank 0.9")
    assert "\n\n2. Big <Fish>" in text
    document = tidings("address", "preview", template, events, "--as", "html", "--limit", 1).stdout
    assert document.count("Big &lt;Fish&gt;") == 2  # in the title and on the card
    [slack] = printed(tidings("address", "preview", template, "--as", "slack"))
    assert slack["blocks"][0]["type"] == "rich_text"
    [layouts] = printed(tidings("address", "preview", template, "--json"))
    assert set(layouts) == {"heading", "text", "html", "slack", "teams"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '[template]\ntitle = """\n\n{{#x}}"""',
            "[template] title: line 2: {{#x}} is never closed",
        ),
        ("[service]", "there is no table [template]"),
        ("[template]\ntitel = ''", "unknown field 'titel'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, reason: str) -> None:
    template = tmp_path / "t.toml"
    template.write_text(text)
    result = tidings("address", "preview", template, columns=400)
    assert result.exit_code == 1
    assert f"{template}: " in result.stderr
    assert reason in result.stderr


def test_events_that_cannot_be_shown_are_named(tmp_path: Path) -> None:
    template, events = tmp_path / "t.toml", tmp_path / "events.jsonl"
    template.write_text(TEMPLATE)
    for text, reason in (
        ("", "no event"),
        ("{}\n[", "line 2"),
        ("7", "line 1: an event must be an object"),
    ):
        events.write_text(text)
        result = tidings("address", "preview", template, events, columns=400)
        assert result.exit_code == 1
        assert reason in result.stderr
