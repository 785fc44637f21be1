"""Kafka broker for tests: librdkafka's mock in this process, which ends with its producer."""

from collections.abc import Iterable

from confluent_kafka import Producer

PARTITIONS = 4
"""Partitions of a topic, which its first record creates."""
RETAINED = 5_000_000
"""Approximate number of bytes that a partition retains."""


class Brokers:
    """A broker and its producer; topics are created by their first records."""

    def __init__(self) -> None:
        settings = {
            "bootstrap.servers": "replaced",
            "test.mock.num.brokers": 1,
            "message.max.bytes": 2_000_000,
            "log_level": 0,
        }
        self._producer = Producer(settings)
        brokers = self._producer.list_topics(timeout=300).brokers.values()
        self.address = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def send(self, topic: str, values: Iterable[str | None], partition: int | None = None) -> None:
        """Write records to all partitions in turn, or to one."""
        for number, value in enumerate(values):
            place = number % PARTITIONS if partition is None else partition
            told = None if value is None else value.encode()
            self._producer.produce(topic, told, key=str(number), partition=place)
        assert self._producer.flush(300) == 0

    def overflow(self, topic: str, partition: int) -> None:
        """Write until the first records are deleted."""
        for _ in range(RETAINED // 500_000 + 10):
            self.send(topic, ["x" * 500_000], partition)
