"""Batches of a local run: the records that an engine publishes, and their output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.app.run.summary import FirstLook
from tidings.engine.engine import RECORDS, Engine
from tidings.formats.json_forms import loads_event
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.model.values import EARLIEST_US, LATEST_US, moment
from tidings.policy import Subscriber
from tidings.window import BatchOrder, snapshot_fields
from tidings.window.snapshot_fields import FAR


@dataclass(frozen=True)
class BatchOutput:
    """The output of one batch of records."""

    deliveries: Sequence[Delivery]
    late: Sequence[Event]
    dead: Sequence[BadRecord | DeadLetter]


class LocalBatch(NamedTuple):
    """A published batch: its number of records, its output, and what to do afterwards."""

    number: int
    records: int
    output: BatchOutput
    finish: Callable[[], None]


@dataclass
class Published:
    """An engine that receives the batches of a run in order; conditions are checked once, early."""

    engine: Engine
    order: BatchOrder
    first_look: FirstLook
    count: int = 0

    def publish(self, records: Sequence[Event | BadRecord], *, last: bool) -> BatchOutput:
        """Publish the events of a batch in order; return all output of the engine."""
        engine, order = self.engine, self.order
        batch = order.take(record for record in records if isinstance(record, Event))
        released = batch.released + (order.end() if last else [])
        deliveries = list[Delivery]()
        for start in range(0, len(released), RECORDS):
            deliveries += engine.publish_many(released[start : start + RECORDS])
            self.count += len(released[start : start + RECORDS])
            self.first_look(self.count, engine.diagnose)
        if order.watermark_us is not None:
            # For an event in year 1, the lateness moves the watermark before the first year.
            deliveries += engine.advance(moment(max(order.watermark_us, EARLIEST_US)))
        unreadable = [record for record in records if isinstance(record, BadRecord)]
        dead = [_with_json_record(letter) for letter in engine.dead_letters]
        engine.dead_letters.clear()
        return BatchOutput(deliveries, batch.late, [*unreadable, *dead])

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"engine": self.engine.snapshot(), "order": self.order.snapshot()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        self.engine.restore(state["engine"])
        order = state["order"]
        waiting = [loads_event(form) for form in snapshot_fields.items(order, "waiting")]
        mark = snapshot_fields.whole(order, "watermark_us", -FAR, LATEST_US, missing=True)
        self.order.restore(waiting, mark)


def _with_json_record(letter: DeadLetter) -> DeadLetter:
    """Return a dead letter whose record is JSON; an engine keeps objects, or an excerpt."""
    record = letter.record
    if isinstance(record, Event | Subscriber):
        return DeadLetter(record.to_dict(), letter.reason)
    return DeadLetter(
        record if isinstance(record, Mapping) else {"text": str(record)}, letter.reason
    )
