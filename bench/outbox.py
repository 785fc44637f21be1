"""The outbox: notifications per second from a store through the dispatcher to a receiver.

python bench/outbox.py [--messages 20000] [--quick]

Deliveries to 100 subscribers are written to an SQLite store in batches of 500, while a dispatcher
sends them. The figure is the time from the first write to the last acknowledgement. Receivers are
processes of their own: a NATS server, librdkafka's mock broker, servers that answer like SQS
(moto's becomes slower with every message) and like a mail server, and none at all. Mail goes to
people of their own: one notification each, so that each is a mail, or ten at a time. Results go to
bench/results/outbox.json and outbox.md.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import Result, machine, opening, publish, table

from tidings import Delivery
from tidings.channels import Dispatcher, Message, OpenSender, Outcome
from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.aws_queues import AwsAccount, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import KafkaTransport
from tidings.channels.person_channel import PersonChannel
from tidings.channels.person_senders import person_openers
from tidings.channels.sender import SENT
from tidings.channels.smtp import SmtpSettings
from tidings.channels.transport import Secret
from tidings.service.settings import ServiceSettings
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
SMTP = """
import socketserver
class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    def handle(self):
        self.wfile.write(b"220 here\\r\\n")
        inside = False
        for line in self.rfile:
            if inside:
                if line == b".\\r\\n":
                    inside = False
                    self.wfile.write(b"250 taken\\r\\n")
                continue
            word = line[:4].upper()
            if word == b"EHLO":
                self.wfile.write(b"250-here\\r\\n250 PIPELINING\\r\\n")
            elif word == b"DATA":
                inside = True
                self.wfile.write(b"354 go on\\r\\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\\r\\n")
                return
            else:
                self.wfile.write(b"250 fine\\r\\n")
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
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
    options = parser.parse_args()
    count = options.messages or (200 if options.quick else 20_000)
    result: Result = {"machine": machine(), "messages": count, "receivers": {}}
    for name, receiver in RECEIVERS.items():
        with tempfile.TemporaryDirectory() as folder, receiver(Path(folder)) as open_sender:
            figures = measure_queue(Path(folder) / "tidings.db", open_sender, count)
            result["receivers"][name] = figures._asdict()
    for name, each in MAILS.items():
        with tempfile.TemporaryDirectory() as folder, _python(SMTP) as port:
            people = count // MAIL_SHARE
            figures = measure_mail(Path(folder) / "tidings.db", port, people, each)
            result["receivers"][name] = figures._asdict()
    publish("outbox", result, page, options)


class Figures(NamedTuple):
    """How long a number of deliveries took, and the processor time of writing and sending."""

    count: int
    seconds: float
    processor_s: float

    @property
    def rate(self) -> float:
        """Notifications per second."""
        return self.count / self.seconds


def measure_queue(path: Path, open_sender: OpenSender, count: int) -> Figures:
    """Measure how long it takes to write and send a number of deliveries through one channel."""
    with open_store(path) as store:
        store.channels.put(ChannelDraft("bench", "bench", None, {}, ALL), 0)
        return measure(store, {"bench": open_sender}, [delivery(each) for each in range(count)])


def measure_mail(path: Path, port: int, people: int, each: int) -> Figures:
    """Measure mail to a number of people with a number of deliveries each, written together."""
    person = PersonChannel("mail", "ada@example.org", every="delivery")
    smtp = SmtpSettings("127.0.0.1", "t@films.example", port, "none")
    with open_store(path) as store:
        names = [f"p{number}" for number in range(people)]
        for name in names:
            put_entry(store, EntryDraft(name, "home", person, verified=True), 0)
        senders = person_openers(store, "default", ServiceSettings(mail=smtp).people)
        return measure(store, senders, [delivery(n, to) for to in names for n in range(each)])


def measure(store: Store, senders: Mapping[str, OpenSender], deliveries: list[Delivery]) -> Figures:
    """Measure how long it takes to write and send deliveries."""
    stop = Flag()
    thread = Thread(target=Dispatcher(store, senders).run, args=(stop,), daemon=True)
    began, worked = time.monotonic(), time.process_time()
    thread.start()
    write(store, deliveries)
    while (sent := _sent(store)) < len(deliveries):
        if time.monotonic() > began + PATIENCE_S:
            raise TimeoutError(f"{sent} of {len(deliveries)} sent within {PATIENCE_S} s")
        time.sleep(0.05)
    figures = Figures(len(deliveries), time.monotonic() - began, time.process_time() - worked)
    stop.set()
    thread.join()
    return figures


def _sent(store: Store) -> int:
    sql = "SELECT coalesce(sum(sent), 0) FROM channels"
    return int(store.database.read(lambda session: session.rows(sql))[0][0])


def write(store: Store, deliveries: list[Delivery]) -> None:
    for first in range(0, len(deliveries), BATCH):
        store.notifications.append("bench", first // BATCH, deliveries[first : first + BATCH])


def delivery(number: int, to: str | None = None) -> Delivery:
    name = to or SUBSCRIBERS[number % len(SUBSCRIBERS)]
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
MAIL_SHARE = 10
MAILS = {"mail (the same), one notification each": 1, "mail (the same), ten notifications each": 10}
"""How many notifications each person gets, of whom there are a tenth as many as messages."""


def page(result: Result) -> str:
    remark = (
        f"{result['messages']:,} deliveries to {len(SUBSCRIBERS)} subscribers, written to an "
        f"SQLite store in batches of {BATCH} while a dispatcher sends them: from the first write "
        f"to the last acknowledgement. The target is {BAR:,} a second."
    )
    rows = []
    for name, form in result["receivers"].items():
        figures = Figures(**form)
        cost = f"{1e6 * figures.processor_s / figures.count:,.0f}"
        cells = (name, f"{figures.count:,}", f"{figures.seconds:.1f}", f"{figures.rate:,.0f}", cost)
        rows.append(cells)
    head = ("receiver", "notifications", "seconds", "notifications/s", "processor us each")
    return "\n".join([*opening("The outbox", result, remark), *table(head, rows)])


if __name__ == "__main__":
    main()
