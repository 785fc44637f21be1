"""A broker of Kafka for tests: librdkafka's own, in this process; it ends with its producer."""

from collections.abc import Iterable

from confluent_kafka import Producer

PARTITIONS = 4
"""How many a topic has, made by its first record."""
RETAINED = 5_000_000
"""About as many bytes of a partition are kept."""


class Brokers:
    """One broker, and what writes to it. Its topics are made as they are written to."""

    def __init__(self) -> None:
        settings = {
            "bootstrap.servers": "replaced",
            "test.mock.num.brokers": 1,
            "message.max.bytes": 2_000_000,
            "log_level": 0,
        }
        self._producer = Producer(settings)
        brokers = self._producer.list_topics(timeout=30).brokers.values()
        self.address = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def send(self, topic: str, values: Iterable[str | None], partition: int | None = None) -> None:
        """Write records, one after the other to all partitions in turn, or to one."""
        for number, value in enumerate(values):
            place = number % PARTITIONS if partition is None else partition
            told = None if value is None else value.encode()
            self._producer.produce(topic, told, key=str(number), partition=place)
        assert self._producer.flush(30) == 0

    def overflow(self, topic: str, partition: int) -> None:
        """Write until the first records are gone."""
        for _ in range(RETAINED // 500_000 + 10):
            self.send(topic, ["x" * 500_000], partition)
