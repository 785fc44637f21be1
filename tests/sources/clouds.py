"""Amazon's services for tests: moto's server in this process."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import boto3
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.sqs import models

ACCOUNT = {"region": "eu-west-1", "accessKeyId": "test", "secretAccessKey": "Sw0rdfish-key"}


class Cloud:
    """A server, and a client of its Kinesis."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.options = {**ACCOUNT, "endpoint": address}
        self.kinesis = self.client("kinesis")

    def client(self, service: Any) -> Any:
        return boto3.client(
            service,
            region_name=ACCOUNT["region"],
            endpoint_url=self.address,
            aws_access_key_id=ACCOUNT["accessKeyId"],
            aws_secret_access_key=ACCOUNT["secretAccessKey"],
        )

    def create(self, stream: str, shards: int = 1) -> None:
        self.kinesis.create_stream(StreamName=stream, ShardCount=shards)

    def send(self, stream: str, values: Iterable[str], key: str | None = None) -> None:
        for number, value in enumerate(values):
            place = str(number) if key is None else key
            self.kinesis.put_record(StreamName=stream, Data=value.encode(), PartitionKey=place)

    def shards(self, stream: str) -> list[Any]:
        return list(self.kinesis.list_shards(StreamName=stream)["Shards"])


@contextmanager
def running_cloud() -> Iterator[Cloud]:
    """Run a server whose queues recognise what is sent again for an hour.

    Amazon's do so for five minutes, which is not always enough for a killed run to start again on a
    busy machine.
    """
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with patch.object(models, "DEDUPLICATION_TIME_IN_SECONDS", 3_600):
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield Cloud(f"http://{host}:{port}")
        finally:
            server.stop()
