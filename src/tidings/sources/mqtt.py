"""`tidings-mqtt`: messages of an MQTT 5 broker, kept in a spool before they are acknowledged.

MQTT forgets what was acknowledged, and has no positions. So the session is persistent, the quality
of service is 1, and a message is acknowledged only after the spool holds it. What the broker sends
again, because an acknowledgement was lost, has the flag DUP and the packet id of before; the spool
knows the packet by both and by a digest of its content. This is the only import of paho.
"""

import hashlib
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, Queue
from threading import Event as Flag
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tidings.errors import SourceError
from tidings.formats.event_source import MQTT
from tidings.formats.redaction import Hide, hider_of, shown_server
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_integer,
    read_required,
)
from tidings.sources.spooled import SpooledReader, message_text
from tidings.store import Spool, SpoolEntry

_LOG: Final = logging.getLogger(__name__)
_KNOWN: Final = (
    *("broker", "topics", "client", "spool", "user", "password", "tlsCa"),
    *("maxRecordsPerTrigger", "quietMs", "patienceMs", "sessionExpirySeconds"),
)
_SCHEMES: Final = {"mqtt": 1883, "mqtts": 8883}
_SESSION_S: Final = 7 * 86_400
_QUIET_MS: Final = 500
_PATIENCE_MS: Final = 20_000
_IN_FLIGHT: Final = 1_000
"""How many messages the broker sends before it waits for an acknowledgement."""


@dataclass(frozen=True)
class MqttOptions:
    """A broker, the topics, the name of the session, and where its messages are kept."""

    host: str
    port: int
    topics: tuple[str, ...]
    client: str
    spool: str = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca: str | None = None
    limit: int | None = None
    quiet_s: float = _QUIET_MS / 1000
    patience_s: float = _PATIENCE_MS / 1000
    session_s: int = _SESSION_S
    hide: Hide = field(default=str, repr=False)


def open_reader(texts: OptionTexts, _: bool | None) -> SpooledReader:
    """Return the reader of topics."""
    options = read_options(texts)
    return SpooledReader(
        MQTT,
        options.spool,
        options.client,
        lambda spool: MqttCollector(options, spool),
        options.limit,
    )


def read_options(texts: OptionTexts) -> MqttOptions:
    """Return the options."""
    check_names(MQTT, texts, _KNOWN)
    small = lower_names(texts)
    example = "broker = 'mqtt://localhost:1883'"
    address = read_required(MQTT, small, "broker", example)
    try:
        url = urlsplit(address)
        is_valid = url.scheme in _SCHEMES and bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or "@" in url.netloc or url.path not in ("", "/"):
        raise SourceError(
            f"{MQTT}: broker must be an address such as 'mqtt://localhost:1883' or "
            f"'mqtts://host', with `user` and `password` as options of their own, not "
            f"{shown_server(address)}"
        )
    topics = read_required(MQTT, small, "topics", "topics = 'films/#'")
    session_s = read_integer(small, "sessionExpirySeconds")
    return MqttOptions(
        str(url.hostname),
        url.port or _SCHEMES[url.scheme],
        tuple(topic.strip() for topic in topics.split(",") if topic.strip()),
        read_required(MQTT, small, "client", "client = 'tidings-films', the name of the session"),
        read_required(MQTT, small, "spool", "spool = 'sqlite:///spool.db'"),
        small.get("user"),
        small.get("password"),
        url.scheme == "mqtts",
        small.get("tlsca"),
        read_integer(small, "maxRecordsPerTrigger"),
        (read_integer(small, "quietMs") or _QUIET_MS) / 1000,
        (read_integer(small, "patienceMs") or _PATIENCE_MS) / 1000,
        _SESSION_S if session_s is None else session_s,
        hider_of(small),
    )


class MqttCollector:
    """A session whose messages are spooled, in transactions of many, and then acknowledged."""

    def __init__(self, options: MqttOptions, spool: Spool) -> None:
        self._options, self._spool = options, spool
        self._arrived: Queue[MQTTMessage] = Queue()
        self._subscribed, self._stop, self._caught_up = Flag(), Flag(), False
        self._failure: str | None = None
        self._busy_at = time.monotonic()
        self._client = self._open()
        self._writer = Thread(target=self._spool_all, name="mqtt-spool", daemon=True)
        self._writer.start()

    def collect(self) -> None:
        """Wait for the session; the first time, also for the messages that it held.

        A broker does not say how much that is, so it is taken to be all when nothing comes for a
        moment.
        """
        options = self._options
        if not self._subscribed.wait(options.patience_s) or self._failure is not None:
            reason = self._failure or "no answer"
            raise SourceError(
                f"{MQTT}: {options.host}:{options.port}: {options.hide(reason)}; gave up after "
                f"{options.patience_s:g} s"
            )
        until = time.monotonic() + (0 if self._caught_up else options.patience_s)
        while time.monotonic() < min(until, self._busy_at + options.quiet_s):
            time.sleep(0.01)
        self._caught_up = True

    def close(self) -> None:
        """End the connection; the session stays at the broker."""
        self._stop.set()
        self._writer.join(self._options.patience_s)
        self._client.disconnect()
        self._client.loop_stop()

    def _open(self) -> Client:
        options = self._options
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=options.client,
            protocol=MQTTProtocolVersion.MQTTv5,
            manual_ack=True,
        )
        if options.user is not None:
            client.username_pw_set(options.user, options.password)
        try:
            if options.tls:
                client.tls_set(ca_certs=options.tls_ca)
            client.on_connect = self._on_connect
            client.on_subscribe = self._on_subscribe
            client.on_message = self._on_message
            client.connect_timeout = min(5.0, options.patience_s)
            properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = options.session_s
            properties.ReceiveMaximum = _IN_FLIGHT
            client.connect(options.host, options.port, clean_start=False, properties=properties)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            failure = f"{options.host}:{options.port}: {options.hide(reason)}"
        else:
            client.loop_start()
            return client
        raise SourceError(f"{MQTT}: {failure}")

    def _on_connect(self, client: Client, *arguments: Any) -> None:
        reason = arguments[2]
        if reason.is_failure:
            self._failure = f"the broker refuses: {reason}"
            self._subscribed.set()
            return
        self._failure = None
        # A subscription replaces the same one of an earlier run, without its retained messages.
        new_only = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.subscribe([(topic, new_only) for topic in self._options.topics])

    def _on_subscribe(self, *arguments: Any) -> None:
        failed = [str(code) for code in arguments[3] if code.is_failure]
        if failed:
            self._failure = f"a topic cannot be subscribed to: {failed[0]}"
        self._busy_at = time.monotonic()
        self._subscribed.set()

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self._busy_at = time.monotonic()
        self._arrived.put(message)

    def _spool_all(self) -> None:
        """Write messages until the end; unwritten ones stay unacknowledged and are sent again."""
        while not self._stop.is_set():
            messages = _drain(self._arrived)
            if not messages:
                continue
            try:
                now_s = int(time.time())
                self._spool.append([_entry(message) for message in messages], now_s)
            except Exception as error:  # noqa: BLE001 - the reason is reported by the other thread
                self._failure = f"the spool cannot be written: {error}"
                return
            for message in messages:
                self._client.ack(message.mid, message.qos)
            self._busy_at = time.monotonic()


def _drain(queue: "Queue[MQTTMessage]") -> list[MQTTMessage]:
    """Return what has arrived, after waiting a little for the first message."""
    messages = list[MQTTMessage]()
    try:
        messages.append(queue.get(timeout=0.05))
        while len(messages) < _IN_FLIGHT:
            messages.append(queue.get_nowait())
    except Empty:
        pass
    return messages


def _entry(message: MQTTMessage) -> SpoolEntry:
    """Return a message with the mark by which a repetition is recognised.

    Without an acknowledgement (quality of service 0), nothing comes again.
    """
    payload = bytes(message.payload)
    digest = hashlib.sha256(message.topic.encode() + b"\0" + payload).hexdigest()
    text = message_text(message.topic, payload, datetime.now(UTC), _headers(message))
    name = f"packet {message.mid}" if message.qos else "no packet"
    return SpoolEntry(name, digest, text, may_repeat=bool(message.dup))


def _headers(message: MQTTMessage) -> list[tuple[str, str]]:
    pairs = list(getattr(message.properties, "UserProperty", ()))
    content_type = getattr(message.properties, "ContentType", None)
    return [*pairs, ("content-type", content_type)] if content_type else pairs
