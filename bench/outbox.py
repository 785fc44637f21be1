"""The outbox: notifications per second from a store through the dispatcher to a receiver.

python bench/outbox.py [--messages 20000] [--quick]

Deliveries to 100 subscribers are written to an SQLite store in batches of 500, while a dispatcher
sends them. The figure is the time from the first write to the last acknowledgement. Receivers are
processes of their own: a NATS server, librdkafka's mock broker, a server that answers like
SQS (moto's becomes slower with every message), and none at all. Results go to
bench/results/outbox.json and outbox.md.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import Result, machine, opening, publish, table

from tidings import Delivery
from tidings.channels import Dispatcher, Message, OpenSender, Outcome
from tidings.channels.aws_queues import AwsAccount, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import KafkaTransport
from tidings.channels.sender import SENT
from tidings.channels.transport import Secret
from tidings.store import Store, open_store
from tidings.store.channels import ALL, ChannelDraft

BAR, BATCH, PATIENCE_S = 1_000, 500, 600
SUBSCRIBERS = [f"u{number}" for number in range(100)]
CONTENT = json.dumps({"title": "A film", "text": "x" * 200})
SQS = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_POST(self):
        form = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ids = [entry["Id"] for entry in form["Entries"]]
        taken = [{"Id": each, "MessageId": "m", "MD5OfMessageBody": "m"} for each in ids]
        body = json.dumps({"Successful": taken}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
KAFKA = """
import threading
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0})
[broker] = producer.list_topics(timeout=30).brokers.values()
print(broker.port, flush=True)
threading.Event().wait()
"""


@dataclass
class Nobody:
    """A sender that takes everything at once: the cost of the store and the dispatcher."""

    batch: int = 500
    in_order: bool = True
    rate: float | None = None

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [SENT for message in messages if message.body]

    async def close(self) -> None:
        """Do nothing."""


def main() -> None:
    parser = pages.arguments(__doc__, "200 messages")
    parser.add_argument("--messages", type=int)
    wanted = parser.parse_args()
    count = wanted.messages or (200 if wanted.quick else 20_000)
    result: Result = {"machine": machine(), "messages": count, "receivers": {}}
    for name, receiver in RECEIVERS.items():
        with tempfile.TemporaryDirectory() as folder, receiver(Path(folder)) as open_sender:
            took_s = measure(Path(folder) / "tidings.db", open_sender, count)
            result["receivers"][name] = {"seconds": took_s, "rate": count / took_s}
    publish("outbox", result, page, wanted)


def measure(path: Path, open_sender: OpenSender, count: int) -> float:
    """Return the seconds that it takes to write and send a number of deliveries."""
    with open_store(path) as store:
        key = store.channels.put(ChannelDraft("bench", "bench", None, {}, ALL), 0).key
        stop = Flag()
        dispatcher = Dispatcher(store, {"bench": open_sender})
        thread = Thread(target=dispatcher.run, args=(stop,), daemon=True)
        began = time.monotonic()
        thread.start()
        write(store, count)
        while (channel := store.channels.get(key)) is None or channel.sent < count:
            if time.monotonic() > began + PATIENCE_S:
                raise TimeoutError(f"not sent within {PATIENCE_S} s: {channel}")
            time.sleep(0.02)
        took_s = time.monotonic() - began
        stop.set()
        thread.join()
    return took_s


def write(store: Store, count: int) -> None:
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        store.notifications.append("bench", first // BATCH, [delivery(each) for each in numbers])


def delivery(number: int) -> Delivery:
    name = SUBSCRIBERS[number % len(SUBSCRIBERS)]
    window = {"name": "continuous"}
    return Delivery(name, f"e{number}", 0.5, 1, window, ("s1", "s2"), 1, number, CONTENT)


@contextmanager
def nobody(folder: Path) -> Iterator[OpenSender]:
    del folder
    yield lambda _: Nobody()


@contextmanager
def nats(folder: Path) -> Iterator[OpenSender]:
    from nats.aio.client import Client  # noqa: PLC0415

    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    place = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(folder)]
    command = [str(program), *place, "--ports_file_dir", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not (files := list(folder.glob("*.ports"))) or not files[0].read_text():
            time.sleep(0.05)
        url = json.loads(files[0].read_text())["nats"][0]

        async def add_stream() -> None:
            client = Client()
            await client.connect(url)
            await client.jetstream().add_stream(name="bench", subjects=["bench.>"])
            await client.close()

        asyncio.run(add_stream())
        yield JetStreamTransport((url,), "bench.{subscriber}").open
        process.kill()


@contextmanager
def kafka(folder: Path) -> Iterator[OpenSender]:
    del folder
    with _python(KAFKA) as port:
        yield KafkaTransport(f"127.0.0.1:{port}", "bench").open


@contextmanager
def sqs(folder: Path) -> Iterator[OpenSender]:
    del folder
    with _python(SQS) as port:
        keys = (Secret(value="key"), Secret(value="secret"))
        account = AwsAccount("eu-west-1", f"http://127.0.0.1:{port}", *keys)
        yield SqsTransport(f"http://127.0.0.1:{port}/1/bench.fifo", account).open


@contextmanager
def _python(program: str) -> Iterator[int]:
    """Run a server that prints its port."""
    command = [sys.executable, "-c", program]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        yield int(process.stdout.readline())


RECEIVERS: dict[str, Callable[[Path], Any]] = {
    "nobody: the store and the dispatcher alone": nobody,
    "NATS JetStream": nats,
    "Kafka (librdkafka's mock)": kafka,
    "SQS (a server that answers, and keeps nothing)": sqs,
}


def page(result: Result) -> str:
    remark = (
        f"{result['messages']:,} deliveries to {len(SUBSCRIBERS)} subscribers, written to an "
        f"SQLite store in batches of {BATCH} while a dispatcher sends them: from the first write "
        f"to the last acknowledgement. The target is {BAR:,} a second."
    )
    rows = [
        (name, f"{figures['seconds']:.1f}", f"{figures['rate']:,.0f}")
        for name, figures in result["receivers"].items()
    ]
    head = ("receiver", "seconds", "notifications/s")
    return "\n".join([*opening("The outbox", result, remark), *table(head, rows)])


if __name__ == "__main__":
    main()
