"""Runs a config in this process, from the first file to the last."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidings.app.check import Problem
from tidings.app.run.output_folder import Folder, Form
from tidings.app.run.plan import Plan
from tidings.app.run.stopping import Stop
from tidings.app.run.summary import Batch
from tidings.app.signals import interrupts
from tidings.engine.engine import Engine
from tidings.errors import InvalidForm, TidingsError
from tidings.formats.arrow_by_row import BadRecord, DeadLetter
from tidings.formats.event_source import Source, read_file
from tidings.model.limits import UNLIMITED
from tidings.model.records import Delivery, Event
from tidings.policy import Subscriber
from tidings.store import open_store


@dataclass(frozen=True)
class Outcome:
    """What came of a batch of records."""

    deliveries: Sequence[Delivery]
    late: Sequence[Event]
    dead: Sequence[BadRecord | DeadLetter]


Write = Callable[[int, Outcome], None]


def run_local(plan: Plan, stop: Stop | None = None) -> Iterator[Batch]:
    """Run all batches of files; give what came of each when it is written."""
    engine, stop, source = _engine(plan), stop or Stop(), plan.config.source
    limits = plan.config.limits
    if not isinstance(source, Source):
        raise InvalidForm(f"the local engine reads files, not {source.label}")
    with _output(plan) as write, interrupts(stop.heard, stop.at_once) as asked:
        for number, paths in enumerate(source.batches()):
            if asked.is_set():
                return
            records = [
                record for path in paths for record in read_file(path, source.suffix, limits=limits)
            ]
            found = _publish(engine, records)
            write(number, found)
            yield replace(_batch(number, len(records), found), quality=engine.quality().to_dict())


def _engine(plan: Plan) -> Engine:
    """Make the engine of a plan; who it does not take is refused, and the others are served."""
    # A run writes all letters of a batch, so none may be dropped before.
    limits = replace(plan.config.limits, kept_letters=UNLIMITED)
    engine = Engine(plan.config.lateness, limits=limits)
    refused = list[Problem]()
    for subscriber in plan.subscribers:
        try:
            engine.subscribe(subscriber)
        except TidingsError as error:
            refused.append(Problem(plan.config.path, str(error), id=subscriber.id))
    for subscription in plan.subscriptions:
        try:
            engine.add(subscription)
        except TidingsError as error:
            refused.append(Problem(plan.config.path, str(error), id=subscription.id))
    if refused:
        plan.refused.extend(refused)
        plan.folder.write_refused(plan.refused)
        engine.dead_letters.clear()  # they are among the refused
    return engine


@contextmanager
def _output(plan: Plan) -> Iterator[Write]:
    """Give what writes a batch: to the store of a config, or to its folder."""
    address = plan.config.sink.store
    if address is None:
        yield lambda number, found: _to_folder(plan.folder, number, found)
        return
    query = plan.folder.query
    with open_store(address.url) as store:

        def append(number: int, found: Outcome) -> None:
            store.notifications.append(
                query, number, found.deliveries, late=found.late, dead=found.dead
            )

        yield append


def _to_folder(folder: Folder, number: int, found: Outcome) -> None:
    folder.write_deliveries(number, found.deliveries)
    folder.write_letters("late", number, [_late(event) for event in found.late])
    folder.write_letters("dead_letters", number, [_letter(each) for each in found.dead])


def _publish(engine: Engine, records: Sequence[Event | BadRecord]) -> Outcome:
    deliveries = engine.publish_many(each for each in records if isinstance(each, Event))
    bad = [each for each in records if isinstance(each, BadRecord)]
    dead = [_with_form(each) for each in engine.dead_letters]
    found = Outcome(deliveries, list(engine.late), [*bad, *dead])
    engine.dead_letters.clear()
    engine.late.clear()
    return found


def _with_form(letter: DeadLetter) -> DeadLetter:
    """Return a letter whose record is a form; an engine keeps objects, or short texts of them."""
    record = letter.record
    if isinstance(record, Event | Subscriber):
        return DeadLetter(record.to_dict(), letter.reason)
    return DeadLetter(
        record if isinstance(record, Mapping) else {"text": str(record)}, letter.reason
    )


def _batch(number: int, events: int, found: Outcome) -> Batch:
    delivered = Counter(delivery.subscriber for delivery in found.deliveries)
    counts = (len(found.deliveries), len(found.late), len(found.dead))
    return Batch(number, events, *counts, delivered)


def _letter(bad: BadRecord | DeadLetter) -> Form:
    form = bad.to_dict()
    return {"record": form["record"], "reason": form["reason"]}


def _late(event: Event) -> Form:
    reason = "published before the watermark"
    return {"event": event.id, "record": event.to_dict(), "reason": reason}
