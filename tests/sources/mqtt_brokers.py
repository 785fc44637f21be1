"""Debian's Mosquitto for tests; where it is not installed, its tests are skipped, and say so."""

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, create_server
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
needs_mosquitto = pytest.mark.skipif(
    MOSQUITTO is None, reason="no mosquitto: apt-get install mosquitto"
)


class MqttBroker:
    """A running broker that keeps sessions."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"mqtt://127.0.0.1:{port}"

    def send(
        self, topic: str, values: Iterable[str | bytes], headers: dict[str, str] | None = None
    ) -> None:
        """Publish messages, and wait until the broker has all of them."""
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        properties: Any = Properties(PacketTypes.PUBLISH)
        if headers:
            properties.UserProperty = list(headers.items())
        for value in values:
            sent = client.publish(topic, value, qos=1, properties=properties)
            sent.wait_for_publish(60)
        client.disconnect()
        client.loop_stop()


@contextmanager
def running_mosquitto(folder: Path, *settings: str) -> Iterator[MqttBroker]:
    """Start a broker; another program may take its port first, so some are tried."""
    assert MOSQUITTO is not None
    for _ in range(20):
        with create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        lines = [f"listener {port} 127.0.0.1", "max_queued_messages 0", *settings]
        if not settings:
            lines.append("allow_anonymous true")
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        process = subprocess.Popen(
            [MOSQUITTO, "-c", str(folder / "mosquitto.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _answers(process, port):
                yield MqttBroker(port)
                return
        finally:
            process.terminate()
            process.wait(30)
    raise AssertionError("no broker could be started")


def _answers(process: "subprocess.Popen[bytes]", port: int) -> bool:
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        try:
            create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return True
    return False
