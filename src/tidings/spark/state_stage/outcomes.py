"""Rows that the state stage emits: deliveries, accounts, late events and dead letters, in Arrow."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import AnyArray, Float64s, Int32s
from tidings.compiled.exact_sum import sum_by_group
from tidings.errors import clipped, shown
from tidings.feed.columnar.deliveries import DeliveryBatch, IdTables, delivery_table
from tidings.feed.columnar.rules.kernels.layout import VERDICT_AT, VERDICT_EVENT
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.formats.arrow import DELIVERIES, ReadEvents
from tidings.formats.arrow_validation import validate_fully
from tidings.formats.binary import check, reading
from tidings.index_files.manifest import RefusedRecord
from tidings.model.dead_letter import printable_record
from tidings.model.records import Event
from tidings.model.values import format_time, moment
from tidings.policy import PAUSED
from tidings.rules import Verdict
from tidings.rules.verdict import Fate
from tidings.spark.match_stage.match_batch import MatchBatch

OUTCOMES: Final = pa.schema(
    {
        "kind": pa.string(),
        "subscriber": pa.string(),
        "event": pa.string(),
        "rank": pa.float64(),
        "position": pa.int64(),
        "window": pa.string(),
        "matched": pa.list_(pa.string()),
        "sequence": pa.int64(),
        "delivered_at": pa.timestamp("us", "UTC"),
        "content": pa.string(),
        "record": pa.string(),
        "reason": pa.string(),
    }
)
_NULLABLE: Final = ("content",)
_TEXTS: Final = pa.list_(pa.field("element", pa.string(), nullable=False))
DELIVERED: Final = pa.schema(
    [
        field
        if field.name in _NULLABLE
        else pa.field(field.name, _TEXTS if pa.types.is_list(field.type) else field.type, False)
        for field in DELIVERIES
    ]
)
"""DELIVERIES without nulls where there are none: Java then does not look for them in each row."""
_COUNTED_FATES: Final[tuple[Fate, ...]] = ("held", "released")


def deliveries(batch: DeliveryBatch, tables: IdTables) -> pa.Table:
    """Return deliveries as outcomes; it must be called before the feeds take more matches."""
    return _table("delivery", len(batch), _columns(delivery_table(batch, tables)))


def delivered(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the deliveries among outcomes, as rows of DELIVERED; each batch is of one kind.

    So it is in all tables here, which saves a filter that would copy every text.
    """
    return [
        batch.select(DELIVERED.names).cast(DELIVERED)
        for batch in batches
        if batch.num_rows and batch.column("kind")[0].as_py() == "delivery"
    ]


def drop_paused(delivered: pa.Table, is_paused: Callable[[str], bool]) -> pa.Table:
    """Return deliveries, with those of paused subscribers as dropped ones that have the reason."""
    names = [name for name in pc.unique(delivered["subscriber"]).to_pylist() if is_paused(name)]
    if not names:
        return delivered
    paused = pc.is_in(delivered["subscriber"], pa.array(names, pa.string()))
    due = delivered.filter(paused).drop(["kind", "reason"])
    reasons = {"reason": pa.repeat(PAUSED, len(due))}
    dropped = _table("dropped", len(due), _columns(due) | reasons)
    return pa.concat_tables([delivered.filter(pc.invert(paused)), dropped])


def accounts(subscribers: Sequence[str], owners: Int32s, ranks: Float64s) -> pa.Table:
    """Return the number of matches of each subscriber and their mean score."""
    counts = np.bincount(owners, minlength=len(subscribers))
    sums = sum_by_group(owners, ranks, counts)
    columns = {"subscriber": subscribers, "rank": sums / counts, "position": counts}
    return _table("account", len(subscribers), columns)


def judged(verdicts: Mapping[str, Sequence[Verdict]]) -> pa.Table:
    """Return what rules did: events that they dropped, and how many each of them held or released.

    The reason of a count is the name of the rule.
    """
    dropped, counts = list[tuple[str, Verdict]](), Counter[tuple[str, str, str]]()
    for subscriber, judgements in verdicts.items():
        for verdict in judgements:
            if verdict.fate == "dropped":
                dropped.append((subscriber, verdict))
            else:
                counts[verdict.fate, subscriber, verdict.rule] += 1
    columns = {
        "subscriber": [subscriber for subscriber, _ in dropped],
        "event": [verdict.event for _, verdict in dropped],
        "delivered_at": [moment(verdict.at_us) for _, verdict in dropped],
        "reason": [clipped(verdict.account) for _, verdict in dropped],
    }
    tables = [_table("dropped", len(dropped), columns)]
    for fate in _COUNTED_FATES:
        rows = [(name, rule, count) for (own, name, rule), count in counts.items() if own == fate]
        names, rules, numbers = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"subscriber": names, "reason": rules, "position": numbers}
        tables.append(_table(fate, len(rows), columns))
    return pa.concat_tables(tables)


def judged_in_arrays(columns: Sequence[VerdictColumns], tables: IdTables) -> list[pa.Table]:
    """Return what rules in arrays did as `judged` does, with few Python calls for all of them."""
    outcomes = list[pa.Table]()
    names = pa.array(tables.subscribers.names, pa.string())
    for verdicts in columns:
        dropped = verdicts.of_fate("dropped")
        slots, places = np.unique(dropped.columns[:, VERDICT_EVENT], return_inverse=True)
        ids = pa.array([tables.events.id(slot) for slot in slots.tolist()], pa.string())
        at_us = pa.array(dropped.columns[:, VERDICT_AT], pa.int64())
        rows = {
            "subscriber": names.take(pa.array(dropped.subscriber)),
            "event": ids.take(pa.array(places)),
            "delivered_at": at_us.cast(OUTCOMES.field("delivered_at").type),
            "reason": [clipped(reason) for reason in dropped.reasons(tables)],
        }
        outcomes.append(_table("dropped", len(at_us), rows))
        for fate in _COUNTED_FATES:
            counts = verdicts.of_fate(fate).counts()
            numbered = {
                "subscriber": [tables.subscribers.names[number] for number, _ in counts],
                "reason": [rule for _, rule in counts],
                "position": [*counts.values()],
            }
            outcomes.append(_table(fate, len(counts), numbered))
    return outcomes


def late(events: Sequence[Event], watermark_us: int) -> pa.Table:
    """Return late events as outcomes."""
    gaps = [(watermark_us - event.published_us) / 1e6 for event in events]
    columns = {
        "event": [event.id for event in events],
        "record": [json.dumps(printable_record(event)) for event in events],
        "reason": [f"published {gap:g} s before the watermark" for gap in gaps],
    }
    return _table("late", len(events), columns)


def duplicates(batch: MatchBatch) -> pa.Table:
    """Return events whose ids were seen before as dead letters."""
    reasons = [f"event {event!r} was published before" for event in batch.events]
    columns = {"event": batch.events, "record": records(batch), "reason": reasons}
    return _table("dead", len(reasons), columns)


def dead_letters(letters: Sequence[str | bytes]) -> pa.Table:
    """Return dead letters that arrived as JSON.

    They name their event where several parts may report the same one.
    """
    with reading("a dead letter of the stream"):
        forms = [_read_letter(letter) for letter in letters]
    columns = {
        "event": [form.get("event") for form in forms],
        "record": [json.dumps(form["record"]) for form in forms],
        "reason": [form["reason"] for form in forms],
    }
    return _table("dead", len(forms), columns)


def _read_letter(letter: str | bytes) -> Mapping[str, Any]:
    form: dict[str, Any] = json.loads(letter)
    event = form.get("event")
    fits = isinstance(form["reason"], str) and isinstance(event, str | None)
    check(fits and "record" in form, "a dead letter", "a field has another type")
    return form


def set_aside(reasons: Mapping[str, str]) -> pa.Table:
    """Return a dead letter for each subscriber that is set aside because its policy failed."""
    names = sorted(reasons)
    columns = {
        "record": [json.dumps({"subscriber": name}) for name in names],
        "reason": [
            clipped(f"subscriber {shown(name)} is set aside: {reasons[name]}") for name in names
        ],
    }
    return _table("dead", len(names), columns)


def refused(records: Sequence[RefusedRecord]) -> pa.Table:
    """Return a dead letter for each record of a store that is left out."""
    columns = {
        "record": [
            json.dumps({"id": record.id, "subscriber": record.owner}, sort_keys=True)
            for record in records
        ],
        "reason": [
            clipped(f"{record.kind} {shown(record.id)} of the store is left out: {_why(record)}")
            for record in records
        ],
    }
    return _table("dead", len(records), columns)


def _why(refused: RefusedRecord) -> str:
    """Return the reason without the name of the record, with which most reasons begin."""
    return refused.reason.removeprefix(f"{refused.kind} {refused.id}: ")


def unusable_events(batch: MatchBatch, reasons: Mapping[str, str]) -> pa.Table:
    """Return a dead letter for each event that the windows of a bucket cannot take."""
    forms = dict(zip(batch.events, records(batch), strict=True))
    columns = {
        "event": [*reasons],
        "record": [forms[event] for event in reasons],
        "reason": [
            clipped(f"the event cannot be compared with others: {reason}")
            for reason in reasons.values()
        ],
    }
    return _table("dead", len(reasons), columns)


def records(batch: MatchBatch) -> list[str]:
    """Return the JSON form of each event, as far as it was sent: id, time, sequence, content."""
    sent = batch.forms or repeat("", len(batch.events))
    columns = (sent, batch.events, batch.us.tolist(), batch.sequence.tolist())
    forms = [form or _short_form(*rest) for form, *rest in zip(*columns, strict=True)]
    pairs = zip_longest(forms, batch.contents, fillvalue="")
    return [f'{form[:-1]}, "content": {text}}}' if text else form for form, text in pairs]


def _short_form(event: str, us: int, sequence: int) -> str:
    form: dict[str, Any] = {"id": event, "published_at": format_time(us)}
    return json.dumps(form if sequence < 0 else form | {"sequence": sequence})


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of a table; `combine_chunks` would copy even those in one piece."""
    return {
        name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _table(kind: str, count: int, columns: Mapping[str, Any]) -> pa.Table:
    """Return outcomes of one kind; columns that are not named are null."""
    named: dict[str, Any] = {"kind": pa.repeat(pa.scalar(kind), count), **columns}
    arrays: list[AnyArray | pa.Array] = [
        pa.array(named[field.name], field.type)
        if field.name in named
        else pa.nulls(count, field.type)
        for field in OUTCOMES
    ]
    return pa.Table.from_arrays(arrays, schema=OUTCOMES)


# Late events: rows that one bucket receives as they arrived and compares with its watermark.
#
# Every bucket gets the ticks of the whole stream, so each has the same watermark and any of them
# can decide which rows of a batch are late. The rows travel as compressed Arrow and are only read
# if the oldest of them is late.


class ArrivedRows(NamedTuple):
    """Packed rows as they arrived, and the time of the oldest event among them."""

    oldest_us: int
    body: bytes


def pack_rows(rows: pa.RecordBatch, compression: str | None = "zstd") -> bytes:
    """Return rows as Arrow, compressed unless they stay on this machine."""
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack_rows(body: bytes) -> list[pa.RecordBatch]:
    """Return packed rows, validated in full before anything reads them."""
    with reading("a batch of rows for the late table"):
        return [validate_fully(batch) for batch in pa.ipc.open_stream(body)]


def late_rows(
    arrived: Iterable[ArrivedRows], watermark_us: int | None, read: ReadEvents
) -> pa.Table:
    """Return the events before the watermark as outcomes."""
    late_events = list[Event]()
    for oldest_us, body in arrived:
        if watermark_us is not None and oldest_us < watermark_us:
            for rows in _unpack_rows(body):
                events = (event for event in read(rows) if isinstance(event, Event))
                late_events += [event for event in events if event.published_us < watermark_us]
    return late(late_events, watermark_us or 0)
