"""The channels that a command refers to, and the test message that goes through one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidings.app import channels
from tidings.app.channels import TEST_EVENT, ChannelPlace, find_channel, send_test
from tidings.channels.address_book import EntryDraft
from tidings.channels.person_channel import PersonChannel
from tidings.channels.sender import SENT, Message, Outcome, Status
from tidings.channels.transport import DeclaredChannel
from tidings.errors import TidingsError
from tidings.store import Store, open_store
from tidings.store.channels import ChannelDraft


@dataclass
class Transport:
    """A transport that keeps what is sent, and answers as it is told."""

    label: str = "films"
    outcome: Outcome = SENT
    error: Exception | None = None
    messages: list[Message] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)
    closed: int = 0

    batch, in_order, rate = 1, True, None

    def open(self, channel: Any) -> Any:
        self.opened.append(channel)
        return self

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        self.messages += messages
        if self.error is not None:
            raise self.error
        return [self.outcome]

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def refusal(work: Any) -> str:
    with pytest.raises(TidingsError) as error:
        work()
    return str(error.value)


def test_one_message_is_sent_and_the_channel_is_closed() -> None:
    transport = Transport()
    assert send_test(DeclaredChannel("sqs", "out", transport)) == SENT
    [message] = transport.messages
    assert message.delivery.event == message.delivery.subscriber == TEST_EVENT
    assert message.delivery.content_json == '{"title":"A test of this channel"}'
    [channel] = transport.opened
    assert (channel.kind, channel.id, channel.subscriber) == ("sqs", "out", None)
    assert transport.closed == 1


def test_a_test_for_one_subscriber_is_theirs() -> None:
    transport = Transport()
    send_test(DeclaredChannel("sqs", "out", transport, subscriber="ada"))
    assert transport.messages[0].delivery.subscriber == "ada"


def test_a_channel_that_fails_is_closed_as_well() -> None:
    transport = Transport(error=TidingsError("no route"))
    outcome = send_test(DeclaredChannel("sqs", "out", transport))
    assert outcome == Outcome(Status.FAILED, "no route")
    assert transport.closed == 1


def place(*transports: tuple[str, Transport], people: Sequence[tuple[str, str]] = ()) -> Any:
    """Return a place with declared channels, and people by subscriber and id."""
    declared = tuple(DeclaredChannel("sqs", name, transport) for name, transport in transports)
    person = PersonChannel("slack", "https://hooks.slack.com/services/Sw0rdfish")
    entries = [EntryDraft(subscriber, name, person) for subscriber, name in people]
    run = SimpleNamespace(people=SimpleNamespace(entries=entries, settings="settings"))
    return ChannelPlace("t.db", declared, run if people else None)  # type: ignore[arg-type]


def test_a_declared_channel_is_tested_by_its_id() -> None:
    failed = Outcome(Status.FAILED, "busy")
    first, second = Transport(label="one"), Transport(label="two", outcome=failed)
    tested = place(("a", first), ("b", second)).send_test("b", None)
    assert tested == ("sqs", "two", failed)
    assert (first.messages, len(second.messages)) == ([], 1)


@pytest.mark.parametrize(
    ("transports", "people", "listed"),
    [
        ([], [], "none"),
        (["a", "b"], [], "a, b"),
        (["a"], [("ada", "m"), ("bob", "m"), ("bob", "s")], "a, m, s"),
    ],
)
def test_an_unknown_channel_is_refused_with_the_known_ones(
    transports: list[str], people: list[tuple[str, str]], listed: str
) -> None:
    known = place(*((name, Transport()) for name in transports), people=people)
    assert refusal(lambda: known.send_test("x", None)) == (
        f"unknown channel 'x'; the config declares: {listed}"
    )


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Keep what is sent to people instead of sending it."""
    sent = list[Any]()

    def send_sample(settings: Any, person: Any, delivery: Any, now_us: int) -> Outcome:
        sent.append((settings, person, delivery, now_us))
        return SENT

    monkeypatch.setattr(channels, "send_sample", send_sample)
    return sent


def test_a_person_gets_a_sample_and_only_the_host_is_shown(samples: list[Any]) -> None:
    known = place(people=[("ada", "s"), ("bob", "m")])
    tested = known.send_test("s", None)
    assert tested == ("slack", "https://hooks.slack.com/...", SENT)
    [(settings, person, delivery, now_us)] = samples
    assert (settings, person.kind, delivery.subscriber) == ("settings", "slack", "ada")
    assert delivery.delivered_us == now_us > 0


def test_of_several_people_one_is_chosen(samples: list[Any]) -> None:
    known = place(people=[("ada", "m"), ("bob", "m")])
    assert refusal(lambda: known.send_test("m", None)) == (
        "there are 2 channels 'm'; choose one with --subscriber"
    )
    assert refusal(lambda: known.send_test("m", "cy")) == "'cy' has no channel 'm'"
    known.send_test("m", "bob")
    assert [delivery.subscriber for _, _, delivery, _ in samples] == ["bob"]


def test_a_channel_of_a_store_is_found_by_its_id(store: Store) -> None:
    for subscriber in (None, "ada"):
        store.channels.put(ChannelDraft("sqs", "out", subscriber), 0)
    store.channels.put(ChannelDraft("nats", "other"), 0)
    assert find_channel(store, "other", None).kind == "nats"
    assert find_channel(store, "out", "ada").subscriber == "ada"
    assert refusal(lambda: find_channel(store, "out", None)) == (
        "there are 2 channels 'out'; choose one with --subscriber"
    )
    for name, subscriber in (("x", None), ("out", "bob")):
        assert refusal(lambda: find_channel(store, name, subscriber)) == (  # noqa: B023
            f"unknown channel {name!r}; `tidings channel list` lists them"
        )


def test_a_place_that_is_no_config_is_a_store() -> None:
    assert ChannelPlace.at("films.db") == ChannelPlace("films.db", (), None)


def test_a_place_may_be_the_config_of_a_service(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(
        '[service]\nstore = "sqlite:///films.db"\n\n[[channels]]\ntype = "sqs"\nqueue = "films"\n',
        encoding="utf-8",
    )
    found = ChannelPlace.at(str(path))
    assert found.store.endswith("films.db")
    assert [(channel.kind, channel.id) for channel in found.declared] == [("sqs", "sqs")]
    assert found.run is None
