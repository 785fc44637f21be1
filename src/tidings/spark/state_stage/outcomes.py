"""What the state stage gives: deliveries, accounts, late and dead records, as Arrow columns."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.errors import clipped, shown
from tidings.feed.columnar.delivery_batch import DeliveryBatch, IdTables
from tidings.feed.columnar.kernels import layout
from tidings.formats.binary import check, reading
from tidings.model.dead_letter import printable_record
from tidings.model.records import Delivery, Event
from tidings.model.values import LATEST_US, format_time, moment
from tidings.spark.match_stage.match_batch import Parcel

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
        "record": pa.string(),
        "reason": pa.string(),
    }
)


def delivered(found: DeliveryBatch, names: IdTables) -> pa.Table:
    """Give deliveries as outcomes, before the feeds take more; O(1) Python calls for all of them.

    Those of a distance that kernels do not know are objects already, and are written as such.
    """
    if found.has_objects:
        return plainly_delivered(found.objects())
    columns = found.columns
    people = pa.array(names.subscribers.names, pa.string())
    events, places = np.unique(columns[:, layout.EVENT], return_inverse=True)
    ids = pa.array([names.events.id(slot) for slot in events.tolist()], pa.string())
    return _table(
        "delivery",
        len(found),
        {
            "subscriber": people.take(pa.array(found.subscriber)),
            "event": ids.take(pa.array(places)),
            "rank": found.rank,
            "position": columns[:, layout.POSITION],
            "window": _windows(found),
            "matched": _matched(columns[:, layout.HANDLE].astype(np.int32), names),
            "sequence": columns[:, layout.NUMBER],
            "delivered_at": pa.array(columns[:, layout.DECIDED]).cast(OUTCOMES.field(8).type),
        },
    )


def _windows(found: DeliveryBatch) -> pa.Array:
    """Give the JSON form of the window of each delivery."""
    extents = found.columns[:, [layout.START, layout.STOP]]
    times, places = np.unique(extents, return_inverse=True)
    texts = _printed(times)
    start, stop = (texts.take(pa.array(each)) for each in places.reshape(extents.shape).T)
    kinds = pa.array([json.dumps(kind) for kind in found.windows], pa.string())
    name = kinds.take(pa.array(found.part))
    size = pa.array(found.columns[:, layout.WIDTH]).cast(pa.string())
    pieces = ('{"name": ', name, ', "start": "', start, '", "end": "', stop, '", "size": ', size)
    return pc.binary_join_element_wise(*pieces, "}", "")


def _printed(times: Int64s) -> pa.Array:
    """Print microseconds since the epoch as `format_time` does."""
    if len(times) and times[0] < 0:
        return pa.array([format_time(us) for us in times.tolist()], pa.string())
    within = np.minimum(times, LATEST_US)
    whole = pc.strftime(pa.array(within).cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(pc.replace_substring(whole, ".000000", ""), "Z", "")


def _matched(handles: Int32s, names: IdTables) -> pa.Array:
    """Give the ids of the subscriptions behind each handle, in order."""
    starts, members = names.matched.flat(handles)
    used, numbers = np.unique(members, return_inverse=True)
    ids = pa.array([names.matched.names[each] for each in used.tolist()], pa.string())
    ranks = np.argsort(pc.sort_indices(ids).to_numpy())
    owners = np.repeat(np.arange(len(handles)), np.diff(starts))
    order = np.lexsort((ranks[numbers], owners))
    offsets = pa.array(starts, pa.int32())
    return pa.ListArray.from_arrays(offsets, ids.take(pa.array(numbers[order])))


def plainly_delivered(deliveries: Sequence[Delivery]) -> pa.Table:
    """Give deliveries that are objects as outcomes."""
    rows = [
        each.to_dict()
        | {
            "kind": "delivery",
            "window": json.dumps(dict(each.window)),
            "delivered_at": moment(each.delivered_us),
        }
        for each in deliveries
    ]
    return pa.Table.from_pylist(rows, OUTCOMES)


def accounts(subscribers: Sequence[str], owners: Int32s, ranks: Float64s) -> pa.Table:
    """Say how many matches each subscriber had, and their mean score; in order of the names."""
    counts = np.bincount(owners, minlength=len(subscribers))
    order = np.argsort(owners, kind="stable")
    runs = np.split(ranks[order], np.cumsum(counts)[:-1]) if len(counts) else []
    pairs = zip(runs, counts.tolist(), strict=True)
    means = [math.fsum(run.tolist()) / count for run, count in pairs]
    found = {"subscriber": subscribers, "rank": means, "position": counts}
    return _table("account", len(subscribers), found)


def late(events: Sequence[Event], watermark_us: int) -> pa.Table:
    """Give events that came too late."""
    gaps = [(watermark_us - event.published_us) / 1e6 for event in events]
    found = {
        "event": [event.id for event in events],
        "record": [json.dumps(printable_record(event)) for event in events],
        "reason": [f"published {gap:g} s before the watermark" for gap in gaps],
    }
    return _table("late", len(events), found)


def repeated(parcel: Parcel) -> pa.Table:
    """Give events that came again."""
    reasons = [f"event {event!r} was published before" for event in parcel.events]
    found = {"event": parcel.events, "record": records(parcel), "reason": reasons}
    return _table("dead", len(reasons), found)


def dead(letters: Sequence[str | bytes]) -> pa.Table:
    """Give dead letters, which came as JSON; with their event where others may tell the same."""
    with reading("a dead letter of the stream"):
        forms = [_read_letter(letter) for letter in letters]
    found = {
        "event": [form.get("event") for form in forms],
        "record": [json.dumps(form["record"]) for form in forms],
        "reason": [form["reason"] for form in forms],
    }
    return _table("dead", len(forms), found)


def set_aside(reasons: Mapping[str, str]) -> pa.Table:
    """Give subscribers who get nothing more because their own policies failed, and why."""
    names = sorted(reasons)
    told = [f"subscriber {shown(name)} is set aside: {reasons[name]}" for name in names]
    found = {
        "record": [json.dumps({"subscriber": name}) for name in names],
        "reason": [clipped(each) for each in told],
    }
    return _table("dead", len(names), found)


def unusable(parcel: Parcel, reasons: Mapping[str, str]) -> pa.Table:
    """Give events that the windows of a bucket cannot take, and why."""
    forms = dict(zip(parcel.events, records(parcel), strict=True))
    found = {
        "event": [*reasons],
        "record": [forms[event] for event in reasons],
        "reason": [
            clipped(f"the event cannot be compared with others: {each}")
            for each in reasons.values()
        ],
    }
    return _table("dead", len(reasons), found)


def _read_letter(letter: str | bytes) -> Mapping[str, Any]:
    form: dict[str, Any] = json.loads(letter)
    event = form.get("event")
    fits = isinstance(form["reason"], str) and isinstance(event, str | None)
    check(fits and "record" in form, "a dead letter", "a field has another type")
    return form


def records(parcel: Parcel) -> list[str]:
    """Give the JSON form of each event; id, time and number where no more has come."""
    columns = (parcel.forms, parcel.events, parcel.us.tolist(), parcel.sequence.tolist())
    return [form or _short(*rest) for form, *rest in zip(*columns, strict=True)]


def _short(event: str, us: int, sequence: int) -> str:
    form: dict[str, Any] = {"id": event, "published_at": format_time(us)}
    return json.dumps(form if sequence < 0 else form | {"sequence": sequence})


def _table(kind: str, count: int, columns: Mapping[str, Any]) -> pa.Table:
    """Give outcomes of one kind; what is not named is missing."""
    found: dict[str, Any] = {"kind": pa.repeat(pa.scalar(kind), count), **columns}
    arrays: list[npt.NDArray[Any] | pa.Array] = [
        pa.array(found[field.name], field.type)
        if field.name in found
        else pa.nulls(count, field.type)
        for field in OUTCOMES
    ]
    return pa.Table.from_arrays(arrays, schema=OUTCOMES)
