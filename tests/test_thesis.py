"""The example of the thesis' system, from the stream to the queues, against an engine."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tidings import Engine
from tidings.formats.files import read_events, read_subscribers, read_subscriptions
from tidings.model.dead_letter import BadRecord

EXAMPLES = Path(__file__).parents[1] / "examples"


def expected() -> dict[str, int]:
    """Return how many deliveries an engine makes of the same films."""
    engine = Engine(lateness="1d")
    for subscriber in read_subscribers(EXAMPLES / "movies" / "subscribers.jsonl"):
        assert not isinstance(subscriber, BadRecord)
        engine.subscribe(subscriber)
    for subscription in read_subscriptions(EXAMPLES / "movies" / "subscriptions.jsonl"):
        assert not isinstance(subscription, BadRecord)
        engine.add(subscription)
    events = read_events(EXAMPLES / "movies" / "events.jsonl")
    return Counter(delivery.subscriber for delivery in engine.publish_many(events))


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])]
)
def test_what_arrives_in_the_queues_is_what_an_engine_delivers(engine: str) -> None:
    command = [sys.executable, str(EXAMPLES / "thesis" / "run.py"), "--engine", engine]
    child = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    arrived = json.loads(child.stdout.splitlines()[-1])
    assert arrived == {"sqs": expected(), "sns for ada": {"ada": expected()["ada"]}}
