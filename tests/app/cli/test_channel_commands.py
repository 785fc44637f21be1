"""The commands `channel` on a store: list, failures, skip, retry, pause, resume and remove."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.cli.commands import printed, tidings
from tests.store.appender import delivery

from tidings.store import open_store
from tidings.store.channels import ALL, ChannelDraft


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """Return a store with a queue that has two deliveries to send."""
    address = str(tmp_path / "films.db")
    with open_store(address) as store:
        store.channels.put(ChannelDraft("sqs", "films", None, {}, ALL), 0)
        store.notifications.append("q", 0, [delivery("ada", "e1"), delivery("bob", "e2")])
        yield address


def done(*arguments: str) -> str:
    result = tidings("channel", *arguments, columns=200)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def state(place: str) -> dict[str, object]:
    [form] = printed(tidings("channel", "list", place, "--json"))
    return dict(form)


def test_a_message_that_blocks_is_skipped_and_retried(place: str) -> None:
    assert state(place)["waiting"] == 2
    assert done("skip", place, "films") == "given up: event e1 for ada\n"
    assert "skipped by hand" in done("failures", place, "films")
    assert (state(place)["waiting"], state(place)["given_up"]) == (1, 1)
    assert done("retry", place, "films") == "1 message to be retried\n"
    done("skip", place, "films")
    result = tidings("channel", "skip", place, "films")
    assert result.exit_code == 1
    assert "nothing to send" in result.stderr


def test_a_channel_is_paused_resumed_and_forgotten(place: str) -> None:
    done("pause", place, "films")
    assert state(place)["state"] == "paused"
    assert "films" in done("list", place)
    done("resume", place, "films")
    assert state(place)["state"] == "working"
    done("remove", place, "films")
    assert tidings("channel", "list", place, "--json").stdout == ""


@pytest.mark.parametrize("command", ["failures", "skip", "retry", "pause", "resume", "remove"])
def test_an_unknown_channel_is_named(place: str, command: str) -> None:
    result = tidings("channel", command, place, "books")
    assert result.exit_code == 1
    assert "unknown channel 'books'" in result.stderr
