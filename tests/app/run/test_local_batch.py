"""Batches that an engine publishes, with a state that can be restored in the middle."""

import json
from random import Random

from tidings import Engine, Event
from tidings.app.run.local_batch import Published
from tidings.app.run.summary import FirstLook
from tidings.testing import workload
from tidings.window import BatchOrder


def published() -> Published:
    films = workload(3, events=1, subscribers=8)
    engine = Engine()
    for person in films.subscribers:
        engine.subscribe(person)
    engine.add_many(films.subscriptions)
    return Published(engine, BatchOrder(lateness_us=60_000_000), FirstLook(None))


def test_a_restored_state_delivers_what_the_first_would_have() -> None:
    events = workload(3, events=90, subscribers=8).events
    Random(3).shuffle(events)
    batches: list[list[Event]] = [events[start : start + 10] for start in range(0, 90, 10)]
    whole, seen = published(), 0
    for batch in batches:
        other = published()
        other.restore(json.loads(json.dumps(whole.snapshot())))
        expected = whole.publish(batch, last=True)
        assert other.publish(batch, last=True) == expected
        seen += len(expected.deliveries) + len(expected.late)
    assert seen > 50


def test_an_event_of_the_first_year_does_not_stop_the_run() -> None:
    """The watermark is before the first year then, and no time that could be written."""
    ancient = Event("ancient", {"genre": "drama"}, "0001-01-01T00:00:00Z")
    run = published()
    assert run.publish([ancient], last=True).dead == []
    restored = published()
    restored.restore(json.loads(json.dumps(run.snapshot())))
    later = [Event("later", {"genre": "drama"}, "0001-01-02T00:00:00Z")]
    assert restored.publish(later, last=True) == run.publish(later, last=True)
