"""Channels: deliveries sent to queues, people and webhooks, through the durable outbox of a store.

`sender.py` has the protocol of what sends, `dispatcher.py` drives it, and `registry.py` lists the
types of channels that a config may name.
"""

from tidings.channels.dispatcher import Dispatcher
from tidings.channels.sender import Message, OpenSender, Outcome, Sender, Status

__all__ = ["Dispatcher", "Message", "OpenSender", "Outcome", "Sender", "Status"]
