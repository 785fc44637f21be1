"""Runs a config in this process, from the first file to the last."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tidings.engine import Engine
from tidings.model import Event
from tidings.rows import BadRecord, DeadLetter
from tidings.run.account import Batch
from tidings.run.folder import Folder, Form
from tidings.run.plan import Plan
from tidings.source import read_file


def run_local(plan: Plan) -> Iterator[Batch]:
    """Run all batches of files; give what came of each when it is written."""
    engine, source = Engine(plan.config.lateness), plan.config.source
    for subscriber in plan.subscribers:
        engine.subscribe(subscriber)
    for subscription in plan.subscriptions:
        engine.add(subscription)
    for number, paths in enumerate(source.batches()):
        records = [record for path in paths for record in read_file(path, source.suffix)]
        yield _run_batch(engine, plan.folder, number, records)


def _run_batch(
    engine: Engine, folder: Folder, number: int, records: Sequence[Event | BadRecord]
) -> Batch:
    deliveries = engine.publish_many(each for each in records if isinstance(each, Event))
    bad = [each.to_dict() for each in records if isinstance(each, BadRecord)]
    dead = [*map(_letter, bad), *map(_dead, engine.dead_letters)]
    late = [_late(event) for event in engine.late]
    engine.dead_letters.clear()
    engine.late.clear()
    folder.write_deliveries(number, deliveries)
    folder.write_letters("late", number, late)
    folder.write_letters("dead_letters", number, dead)
    delivered = Counter(delivery.subscriber for delivery in deliveries)
    return Batch(number, len(records), delivered, len(late), len(dead))


def _letter(bad: Form) -> Form:
    return {"record": bad["record"], "reason": bad["reason"]}


def _dead(letter: DeadLetter) -> Form:
    return {"record": letter.record.to_dict(), "reason": letter.reason}


def _late(event: Event) -> Form:
    reason = "published before the watermark"
    return {"event": event.id, "record": event.to_dict(), "reason": reason}
