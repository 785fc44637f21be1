"""The channels that a command refers to: those of a store, or of a config that declares some."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidings.app.config import Config, load_config
from tidings.app.serve.config import SUFFIX, load_serve_config
from tidings.channels.address_book import shown_person
from tidings.channels.person_senders import send_sample
from tidings.channels.sender import Message, Outcome, Status
from tidings.channels.transport import DeclaredChannel
from tidings.errors import TidingsError, shown
from tidings.formats.toml_file import read_toml
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store import Store
from tidings.store.channels import Channel

TEST_EVENT = "tidings-test"


@dataclass(frozen=True)
class ChannelPlace:
    """A store with its channels, and those of them that a config declares.

    `run` is the config of a run; None for that of a service, or for a store.
    """

    store: str
    declared: tuple[DeclaredChannel, ...] = ()
    run: Config | None = None

    @classmethod
    def at(cls, name: str) -> "ChannelPlace":
        """Return the channels of a store, or of the config of a run or a service."""
        if not name.endswith(SUFFIX):
            return cls(name)
        if "service" in read_toml(Path(name)):
            service = load_serve_config(name)
            return cls(service.store, service.settings.queues)
        run = load_config(name)
        return cls(run.outbox.url, run.channels, run)

    def send_test(self, name: str, subscriber: str | None) -> "ChannelTest":
        """Send one message through a channel of the config, or to one of its people."""
        for declared in self.declared:
            if declared.id == name:
                return ChannelTest(declared.kind, declared.transport.label, send_test(declared))
        people = self.run.people if self.run is not None else None
        entries = () if people is None else people.entries
        named = [entry for entry in entries if entry.id == name]
        chosen = [entry for entry in named if subscriber in (None, entry.subscriber)]
        if named and not chosen:
            raise TidingsError(f"{shown(subscriber)} has no channel {shown(name)}")
        if len(chosen) > 1:
            raise TidingsError(
                f"there are {len(chosen)} channels {shown(name)}; choose one with --subscriber"
            )
        if not chosen or people is None:
            known = dict.fromkeys(declared.id for declared in self.declared)
            known |= dict.fromkeys(entry.id for entry in entries)
            listed = ", ".join(known) or "none"
            raise TidingsError(f"unknown channel {shown(name)}; the config declares: {listed}")
        person, delivery = chosen[0].person, _test_delivery(chosen[0].subscriber)
        outcome = send_sample(people.settings, person, delivery, delivery.delivered_us)
        return ChannelTest(person.kind, shown_person(person), outcome)


class ChannelTest(NamedTuple):
    """The result of a test: the kind of the channel, its target, and the outcome."""

    kind: str
    target: str
    outcome: Outcome


def find_channel(store: Store, name: str, subscriber: str | None) -> Channel:
    """Return the one channel with an id."""
    channels = store.channels.find(name, subscriber=subscriber)
    if not channels:
        raise TidingsError(f"unknown channel {shown(name)}; `tidings channel list` lists them")
    if len(channels) > 1:
        raise TidingsError(
            f"there are {len(channels)} channels {shown(name)}; choose one with --subscriber"
        )
    return channels[0]


def send_test(declared: DeclaredChannel) -> Outcome:
    """Send one test message through a channel; nothing is written to the store."""
    delivery = _test_delivery(declared.subscriber or TEST_EVENT)
    form = (declared.kind, declared.id, declared.subscriber)
    channel = Channel("", *form, {}, delivery.delivered_us, 0, 0, 0, None, 0, None, None)
    try:
        return asyncio.run(_send_one(declared, channel, Message(delivery)))
    except TidingsError as error:  # of a receiver that is away
        return Outcome(Status.FAILED, str(error))


def _test_delivery(subscriber: str) -> Delivery:
    now_us, window = int(time.time() * SECOND_US), {"name": "continuous"}
    content = '{"title":"A test of this channel"}'
    return Delivery(subscriber, TEST_EVENT, 0.0, 1, window, (), now_us, now_us, content)


async def _send_one(declared: DeclaredChannel, channel: Channel, message: Message) -> Outcome:
    sender = declared.transport.open(channel)
    try:
        return (await sender.send([message]))[0]
    finally:
        await sender.close()
