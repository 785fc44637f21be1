"""The channels that a config declares: read, entered into the store once, opened by their id."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.store.appender import delivery
from tests.store.channel_states import fail

from tidings.channels.registry import TYPES, declare, openers, read_channel, read_channels
from tidings.channels.transport import DeclaredChannel
from tidings.errors import InvalidForm, TidingsError
from tidings.store import Store, open_store
from tidings.store.channels import ALL, NEW, Channel, ChannelDraft, FailedDelivery

SQS: dict[str, Any] = {"type": "sqs", "queue": "films"}
FORMS: list[dict[str, Any]] = [
    SQS,
    {"type": "kafka", "servers": "node1:9092", "topic": "films"},
    {"type": "nats", "servers": "node1", "subject": "films"},
    {"type": "sns", "topic": "arn:aws:sns:eu-west-1:1:films"},
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


@dataclass(frozen=True)
class Opened:
    """A transport that returns itself as its sender, with the channel that it was opened for."""

    label: str = "test"
    channel: Channel | None = None

    def open(self, channel: Channel) -> Any:
        return Opened(self.label, channel)


def refusal(read: Any, form: object) -> str:
    with pytest.raises(TidingsError) as error:
        read(form)
    return str(error.value)


def test_every_type_is_read_with_its_defaults() -> None:
    assert {form["type"] for form in FORMS} == {*TYPES}
    for form in FORMS:
        declared = read_channel(form)
        assert declared == DeclaredChannel(
            form["type"], form["type"], declared.transport, None, NEW, "default"
        )
        assert declared.transport.label == "films"


def test_common_keys_are_read_for_every_type() -> None:
    common = {"id": "out", "subscriber": "ada", "start": "all", "rate": 5, "tenant": "films"}
    for form in FORMS:
        declared = read_channel(form | common)
        assert (declared.id, declared.subscriber, declared.start) == ("out", "ada", ALL)
        assert declared.tenant == "films"
        assert declared.transport.rate == 5.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "unknown type None; expected one of: kafka, nats, sns, sqs"),
        ({"type": "amqp"}, "unknown type 'amqp'; expected one of: kafka, nats, sns, sqs"),
        ({"type": ["sqs"]}, "unknown type ['sqs']; expected one of: kafka, nats, sns, sqs"),
        ({"type": "sqs"}, "queue is missing"),
        (SQS | {"id": ""}, "id is a non-empty string, not ''"),
        (SQS | {"id": 7}, "id is a non-empty string, not 7"),
        (SQS | {"start": "old"}, "start is one of 'new', 'all', not 'old'"),
        (SQS | {"rate": 0}, "rate must be a positive number, not 0"),
        (SQS | {"subscriber": ""}, "subscriber must be a non-empty string, not ''"),
        (
            SQS | {"topic": "a"},
            (
                "unknown key 'topic'; expected one of: access_key, endpoint, id, queue, rate, "
                "region, secret_key, session_token, start, subscriber, tenant, type"
            ),
        ),
        (
            SQS | {"tenant": "Films"},
            (
                "the name of a tenant has 1 to 40 lower-case letters, digits and underscores, and "
                "begins with a letter; not 'Films'"
            ),
        ),
    ],
)
def test_a_wrong_table_is_refused(form: dict[str, Any], message: str) -> None:
    assert refusal(read_channel, form) == message
    assert refusal(read_channels, [SQS, form]) == f"[[channels]] 2: {message}"


@pytest.mark.parametrize("forms", [None, {}, "sqs", SQS, [SQS, "sqs"], [[SQS]]])
def test_channels_are_tables(forms: object) -> None:
    message = "channels must be tables: write [[channels]] above each"
    assert refusal(read_channels, forms) == message


def test_ids_are_unique_whatever_the_type() -> None:
    assert read_channels([]) == ()
    assert [channel.id for channel in read_channels(FORMS)] == ["sqs", "kafka", "nats", "sns"]
    assert refusal(read_channels, [*FORMS, SQS]) == (
        "[[channels]] 5: there are two channels with the id 'sqs'"
    )
    assert refusal(read_channels, [SQS | {"id": "a"}, FORMS[1] | {"id": "a"}]) == (
        "[[channels]] 2: there are two channels with the id 'a'"
    )


def test_a_refusal_is_that_of_a_form() -> None:
    with pytest.raises(InvalidForm):
        read_channels([SQS | {"tenant": "Films"}])


def test_declared_channels_are_entered_once(store: Store) -> None:
    store.notifications.append("q", 0, [delivery("ada", "a"), delivery("bob", "b")])
    declared = [
        DeclaredChannel("sqs", "new", Opened()),
        DeclaredChannel("sqs", "all", Opened(), start=ALL),
        DeclaredChannel("nats", "ada", Opened(), subscriber="ada"),
    ]
    declare(store, declared, 7)
    entered = store.channels.find()
    assert [(each.id, each.kind, each.subscriber, each.reached) for each in entered] == [
        ("ada", "nats", "ada", 1),
        ("all", "sqs", None, 0),
        ("new", "sqs", None, 2),
    ]
    assert {each.created_us for each in entered} == {7}
    store.channels.pause(entered[0].key, 9)
    paused = store.channels.find()
    declare(store, declared, 20)
    assert store.channels.find() == paused


def test_an_id_of_another_kind_is_another_channel(store: Store) -> None:
    declare(store, [DeclaredChannel("sqs", "out", Opened())], 0)
    declare(store, [DeclaredChannel("nats", "out", Opened())], 0)
    assert [channel.kind for channel in store.channels.find("out")] == ["nats", "sqs"]


def test_each_channel_is_opened_by_its_own_transport(store: Store) -> None:
    declared = [
        DeclaredChannel("sqs", "a", Opened("first")),
        DeclaredChannel("sqs", "b", Opened("second")),
        DeclaredChannel("nats", "a", Opened("third")),
    ]
    declare(store, declared, 0)
    by_kind = openers(declared)
    assert by_kind.keys() == {"sqs", "nats"}
    labels = dict[tuple[str, str], str]()
    for channel in store.channels.find():
        sender: Any = by_kind[channel.kind](channel)
        labels[channel.kind, channel.id] = sender.label
        assert sender.channel == channel
    assert labels == {("sqs", "a"): "first", ("sqs", "b"): "second", ("nats", "a"): "third"}


def test_a_channel_that_the_config_does_not_name_is_not_served(store: Store) -> None:
    by_kind = openers([DeclaredChannel("sqs", "a", Opened())])
    other = store.channels.put(ChannelDraft("sqs", "b"), 0)
    assert by_kind["sqs"](other) is None
    assert openers([]) == {}


def test_a_channel_that_is_disabled_stays_so_when_its_config_is_read_again(store: Store) -> None:
    declared = [DeclaredChannel("sqs", "a", Opened())]
    declare(store, declared, 0)
    [channel] = store.channels.find()
    fail(store, channel.key, FailedDelivery(1, 9, None, "no"), disabled="gone")
    declare(store, declared, 9)
    assert store.channels.find()[0].state == "disabled"
