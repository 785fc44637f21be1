"""The thesis' system in one file: Kinesis -> Tidings -> SQS and SNS, against an emulator.

    pip install 'tidings[spark,aws]' 'moto[server]'
    python examples/thesis/run.py                   # on Spark
    python examples/thesis/run.py --engine local    # in one process

moto stands in for Amazon. The stream has three shards, one of which is split between two runs; the
second run resumes where the first ended. Each subscriber's deliveries are in a FIFO queue in order,
and all of them in a topic, to which a queue with a filter is subscribed. docs/thesis.md says which
box of the thesis each part is.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

MOVIES = Path(__file__).resolve().parents[1] / "movies"
REGION, KEY, SECRET = "eu-west-1", "emulated", "emulated-secret"
STREAM, QUEUE, TOPIC = "films", "tidings.fifo", "tidings"
PIPELINE = """
engine = "{engine}"

[source]                                 # the publication stream (thesis 6.2.1)
format = "kinesis"
content = ["title", "director"]
[source.options]
stream = "films"
region = "{region}"
endpoint = "{endpoint}"
maxRecordsPerTrigger = 10

[subscriptions]                          # the indexed subscription spaces (6.2.2)
path = "{movies}/subscriptions.jsonl"
[subscribers]
path = "{movies}/subscribers.jsonl"

[sink]                                   # durable until it is delivered (6.2.5)
path = "out"
store = "sqlite:///news.db"

[stream]                                 # workers (6.2.3)
lateness = "1d"                          # shards are not in step
buckets = 2
master = "local[2]"

[[channels]]                             # the persistent queue (6.2.5)
type = "sqs"
queue = "{queue}"
start = "all"
region = "{region}"
endpoint = "{endpoint}"

[[channels]]                             # the push service (6.2.4)
type = "sns"
topic = "{topic}"
start = "all"
region = "{region}"
endpoint = "{endpoint}"
"""


def client(service: Any, endpoint: str) -> Any:
    """Return a client of a service of the emulator."""
    return boto3.client(service, region_name=REGION, endpoint_url=endpoint)


def create(endpoint: str) -> tuple[str, str]:
    """Create the stream, the queue, and the topic with a filtered queue; return queue and topic."""
    client("kinesis", endpoint).create_stream(StreamName=STREAM, ShardCount=3)
    sqs, sns = client("sqs", endpoint), client("sns", endpoint)
    fifo = {"FifoQueue": "true"}
    queue = sqs.create_queue(QueueName=QUEUE, Attributes=fifo)["QueueUrl"]
    inbox = sqs.create_queue(QueueName="ada-only")["QueueUrl"]
    named = sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])
    topic = sns.create_topic(Name=TOPIC)["TopicArn"]
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=named["Attributes"]["QueueArn"],
        Attributes={"FilterPolicy": json.dumps({"subscriber": ["ada"]})},
    )
    return queue, topic


def publish(endpoint: str, films: Sequence[str]) -> None:
    """Put films into the stream, spread over its shards by their ids."""
    kinesis = client("kinesis", endpoint)
    for film in films:
        kinesis.put_record(StreamName=STREAM, Data=film, PartitionKey=json.loads(film)["id"])


def split(endpoint: str) -> None:
    """Split the first shard in the middle, as for a higher rate of arrival."""
    kinesis = client("kinesis", endpoint)
    shard = kinesis.list_shards(StreamName=STREAM)["Shards"][0]
    low, high = (int(shard["HashKeyRange"][f"{end}HashKey"]) for end in ("Starting", "Ending"))
    kinesis.split_shard(
        StreamName=STREAM,
        ShardToSplit=shard["ShardId"],
        NewStartingHashKey=str((low + high) // 2),
    )


def received(endpoint: str, queue: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a queue, and delete them."""
    sqs = client("sqs", endpoint)
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            yield json.loads(message["Body"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def run(pipeline: Path) -> None:
    """Run the pipeline over what is new."""
    command = [sys.executable, "-c", "from tidings.app.cli import main; main()", "run"]
    subprocess.run([*command, str(pipeline), "--log", "text"], check=True)


def main() -> None:
    """Run the whole system, and print what arrived where."""
    parser = argparse.ArgumentParser(description="Kinesis -> Tidings -> SQS and SNS")
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    engine = parser.parse_args().engine
    os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    films = (MOVIES / "events.jsonl").read_text(encoding="utf-8").splitlines()
    try:
        queue, topic = create(endpoint)
        with TemporaryDirectory(prefix="tidings-") as folder:
            pipeline = Path(folder, "pipeline.toml")
            pipeline.write_text(
                PIPELINE.format(
                    engine=engine,
                    region=REGION,
                    endpoint=endpoint,
                    movies=MOVIES.as_posix(),
                    queue=queue,
                    topic=topic,
                )
            )
            publish(endpoint, films[:15])
            run(pipeline)
            split(endpoint)
            publish(endpoint, films[15:])
            run(pipeline)
        queued = Counter(each["subscriber"] for each in received(endpoint, queue))
        inbox = received(endpoint, queue.replace(QUEUE, "ada-only"))
        pushed = Counter(json.loads(each["Message"])["subscriber"] for each in inbox)
        arrived = {"sqs": dict(sorted(queued.items())), "sns for ada": dict(pushed)}
        sys.stdout.write(json.dumps(arrived) + "\n")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
