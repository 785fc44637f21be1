"""The examples of whole systems, from the stream to the queues and mailboxes, against an engine."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidings import Delivery, Engine
from tidings.formats.files import read_events, read_subscribers, read_subscriptions
from tidings.model.dead_letter import BadRecord

EXAMPLES = Path(__file__).parents[1] / "examples"
ON_BOTH = pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])]
)


def expected() -> list[Delivery]:
    """Return the deliveries that an engine makes of the same films."""
    engine = Engine(lateness="1d")
    for subscriber in read_subscribers(EXAMPLES / "movies" / "subscribers.jsonl"):
        assert not isinstance(subscriber, BadRecord)
        engine.subscribe(subscriber)
    for subscription in read_subscriptions(EXAMPLES / "movies" / "subscriptions.jsonl"):
        assert not isinstance(subscription, BadRecord)
        engine.add(subscription)
    events = read_events(EXAMPLES / "movies" / "events.jsonl")
    return engine.publish_many(events)


def printed(example: str, engine: str) -> Any:
    """Run an example, and return what it prints at last."""
    command = [sys.executable, str(EXAMPLES / example), "--engine", engine]
    child = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    return json.loads(child.stdout.splitlines()[-1])


@ON_BOTH
def test_what_arrives_in_the_queues_is_what_an_engine_delivers(engine: str) -> None:
    counts = Counter(delivery.subscriber for delivery in expected())
    arrived = printed("thesis/run.py", engine)
    assert arrived == {"sqs": counts, "sns for ada": {"ada": counts["ada"]}}


@ON_BOTH
def test_what_arrives_in_the_mailboxes_is_what_an_engine_delivers(engine: str) -> None:
    arrived = printed("mail/kafka.py", engine)
    assert arrived == {
        reader: sorted(delivery.event for delivery in expected() if delivery.subscriber == reader)
        for reader in ("ada", "bruno")
    }
