"""The types of channels that a config may name, and the channels that it declares."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tidings.channels import aws_queues, jetstream, kafka
from tidings.channels.aws_queues import SnsTransport, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import KafkaTransport
from tidings.channels.sender import OpenSender, Sender
from tidings.channels.transport import DeclaredChannel, Transport, TransportForm
from tidings.errors import InvalidForm, prefix_errors, shown
from tidings.formats.redaction import shown_safely
from tidings.model import validate
from tidings.store import Store
from tidings.store.address import DEFAULT_TENANT, check_tenant
from tidings.store.channels import NEW, STARTS, Channel, ChannelDraft

COMMON: Final = ("id", "type", "subscriber", "start", "rate", "tenant")

ReadTransport = Callable[[TransportForm], Transport]


class ChannelType:
    """A type of channel: its keys besides the common ones, and the function that reads them."""

    def __init__(self, read: ReadTransport, *keys: str) -> None:
        self.read, self.keys = read, keys


TYPES: Final[Mapping[str, ChannelType]] = {
    "kafka": ChannelType(KafkaTransport.read, *kafka.KEYS),
    "nats": ChannelType(JetStreamTransport.read, *jetstream.KEYS),
    "sns": ChannelType(SnsTransport.read, "topic", *aws_queues.KEYS),
    "sqs": ChannelType(SqsTransport.read, "queue", *aws_queues.KEYS),
}


def read_channel(form: Mapping[str, Any]) -> DeclaredChannel:
    """Read a table of `[[channels]]`; its id is that of the type if it has none."""
    kind = form.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        listed = ", ".join(sorted(TYPES))
        raise InvalidForm(f"unknown type {shown_safely(kind)}; expected one of: {listed}")
    table = TransportForm(form, (*COMMON, *TYPES[kind].keys))
    return DeclaredChannel(
        kind,
        validate.name("id", form.get("id", kind), InvalidForm),
        TYPES[kind].read(table),
        table.optional("subscriber"),
        table.choice("start", STARTS, NEW),
        check_tenant(form.get("tenant", DEFAULT_TENANT)),
    )


def read_channels(forms: object) -> tuple[DeclaredChannel, ...]:
    """Read all tables of `[[channels]]`; ids are unique."""
    if not isinstance(forms, list) or not all(isinstance(form, Mapping) for form in forms):
        raise InvalidForm("channels must be tables: write [[channels]] above each")
    declared = dict[str, DeclaredChannel]()
    for number, form in enumerate(forms, start=1):
        with prefix_errors(f"[[channels]] {number}: ", raised=InvalidForm):
            channel = read_channel(form)
            if channel.id in declared:
                raise InvalidForm(f"there are two channels with the id {shown(channel.id)}")
            declared[channel.id] = channel
    return tuple(declared.values())


def declare(store: Store, declared: Sequence[DeclaredChannel], now_us: int) -> None:
    """Enter the channels of a config into a store, unless they are there already."""
    for channel in declared:
        known = store.channels.find(channel.id, kind=channel.kind)
        if not known:
            draft = ChannelDraft(channel.kind, channel.id, channel.subscriber, {}, channel.start)
            store.channels.put(draft, now_us)


def openers(declared: Sequence[DeclaredChannel]) -> dict[str, OpenSender]:
    """Return the functions that open the senders of the declared channels, by kind."""
    by_name = {(channel.kind, channel.id): channel.transport for channel in declared}

    def open_sender(channel: Channel) -> Sender | None:
        transport = by_name.get((channel.kind, channel.id))
        return None if transport is None else transport.open(channel)

    return {channel.kind: open_sender for channel in declared}
