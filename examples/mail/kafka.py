"""Film news from a stream to mailboxes, in one file: Kafka -> Tidings -> mail.

    pip install 'tidings[spark,kafka]' aiosmtpd
    python examples/mail/kafka.py                   # on Spark
    python examples/mail/kafka.py --engine local    # in one process

The broker is librdkafka's mock and the mail server is aiosmtpd; both run in this process. The
second run resumes where the first ended. What is printed are the films that each mailbox received.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from aiosmtpd.smtp import SMTP, Envelope, Session
from confluent_kafka import Producer

MOVIES = Path(__file__).resolve().parents[1] / "movies"
TOPIC = "films"
READERS = ("ada", "bruno")
LINK = re.compile(r"https://films\.example/([\w-]+)")
PIPELINE = """
engine = "{engine}"

[source]
format = "tidings-kafka"
content = ["title", "director", "year"]
[source.options]
kafka.bootstrap.servers = "{broker}"
subscribe = "films"
startingOffsets = "earliest"

[subscriptions]
path = "{movies}/subscriptions.jsonl"
[subscribers]
path = "{movies}/subscribers.jsonl"

[sink]
path = "out"
store = "sqlite:///news.db"

[stream]
lateness = "1d"                          # partitions are not in step
buckets = 2
master = "local[2]"

[mail]
host = "127.0.0.1"
port = {port}
security = "none"
from = "Film news <news@films.example>"

[template]
title = "{{{{title}}}} ({{{{year}}}})"
link = "https://films.example/{{{{delivery.event}}}}"
"""
READER = """
[[people]]
subscriber = "{name}"
kind = "mail"
address = "{name}@example.org"
every = "delivery"
"""


class Mailboxes:
    """The mails that the server took."""

    def __init__(self) -> None:
        self.mails = list[EmailMessage]()

    async def handle_DATA(  # noqa: N802 - the name that aiosmtpd looks for
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.mails.append(message_from_bytes(bytes(envelope.content or b""), policy=default))
        return "250 OK"

    @contextmanager
    def served(self) -> Iterator[int]:
        """Run a mail server on a free port, and return the port."""
        loop = asyncio.new_event_loop()
        Thread(target=loop.run_forever, daemon=True).start()
        start = loop.create_server(lambda: SMTP(self, hostname="localhost"), "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(start, loop).result()
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.stop)

    def films(self, reader: str) -> list[str]:
        """Return the films that the mails of a reader show, each as often as it is there."""
        mails = [mail for mail in self.mails if mail["To"] == f"{reader}@example.org"]
        texts = [body.get_content() for mail in mails if (body := mail.get_body(("plain",)))]
        return sorted(film for text in texts for film in LINK.findall(text))


class Broker:
    """A broker in this process, which ends with its producer."""

    def __init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
        brokers = self._producer.list_topics(timeout=30).brokers.values()
        self.address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def publish(self, films: Sequence[str]) -> None:
        """Write films to the topic, spread over its partitions by their ids."""
        for film in films:
            self._producer.produce(TOPIC, film.encode(), key=json.loads(film)["id"])
        self._producer.flush(30)


def run(pipeline: Path) -> None:
    """Run the pipeline over what is new."""
    command = [sys.executable, "-c", "from tidings.app.cli import main; main()", "run"]
    subprocess.run([*command, str(pipeline), "--log", "text"], check=True)


def main() -> None:
    """Run the whole system, and print what arrived in which mailbox."""
    parser = argparse.ArgumentParser(description="Kafka -> Tidings -> mail")
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    engine = parser.parse_args().engine
    films = (MOVIES / "events.jsonl").read_text(encoding="utf-8").splitlines()
    broker, mailboxes = Broker(), Mailboxes()
    with mailboxes.served() as port, TemporaryDirectory(prefix="tidings-") as folder:
        text = PIPELINE.format(
            engine=engine, broker=broker.address, movies=MOVIES.as_posix(), port=port
        )
        readers = "".join(READER.format(name=name) for name in READERS)
        pipeline = Path(folder, "pipeline.toml")
        pipeline.write_text(text + readers)
        for part in (films[:15], films[15:]):
            broker.publish(part)
            run(pipeline)
    sys.stdout.write(json.dumps({reader: mailboxes.films(reader) for reader in READERS}) + "\n")


if __name__ == "__main__":
    main()
