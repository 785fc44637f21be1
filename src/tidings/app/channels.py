"""The channels that a command means: those of a store, or of a config that declares some."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from tidings.app.config import Config, load_config
from tidings.app.serve.config import SUFFIX, load_serve_config
from tidings.channels.sender import Message, Outcome
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
    """A store with its channels, and those of them that a config declares; `run` is of a run."""

    store: str
    declared: tuple[DeclaredChannel, ...] = ()
    run: Config | None = None

    @classmethod
    def at(cls, name: str) -> "ChannelPlace":
        """Return what a store, a config of a run or one of a service has."""
        if not name.endswith(SUFFIX):
            return cls(name)
        if "service" in read_toml(Path(name)):
            service = load_serve_config(name)
            return cls(service.store, service.settings.queues)
        run = load_config(name)
        return cls(run.outbox.url, run.channels, run)

    def transport(self, name: str) -> DeclaredChannel:
        """Return a channel of the config by its id."""
        for channel in self.declared:
            if channel.id == name:
                return channel
        listed = ", ".join(channel.id for channel in self.declared) or "none"
        raise TidingsError(f"unknown channel {shown(name)}; the config declares: {listed}")


def find_channel(store: Store, name: str, subscriber: str | None) -> Channel:
    """Return the one channel with an id."""
    found = store.channels.find(name, subscriber=subscriber)
    if not found:
        raise TidingsError(f"there is no channel {shown(name)}")
    if len(found) > 1:
        raise TidingsError(f"there are {len(found)} channels {shown(name)}; name a subscriber")
    return found[0]


def send_test(declared: DeclaredChannel) -> Outcome:
    """Send one message through a channel that says it is a test; nothing is written down."""
    now_us = int(time.time() * SECOND_US)
    subscriber = declared.subscriber or TEST_EVENT
    window = {"name": "continuous"}
    content = '{"title":"A test of this channel"}'
    delivery = Delivery(subscriber, TEST_EVENT, 0.0, 1, window, (), now_us, now_us, content)
    form = (declared.kind, declared.id, declared.subscriber)
    channel = Channel("", *form, {}, now_us, 0, 0, 0, None, 0, None, None)
    return asyncio.run(_send_one(declared, channel, Message(delivery)))


async def _send_one(declared: DeclaredChannel, channel: Channel, message: Message) -> Outcome:
    sender = declared.transport.open(channel)
    try:
        return (await sender.send([message]))[0]
    finally:
        await sender.close()
