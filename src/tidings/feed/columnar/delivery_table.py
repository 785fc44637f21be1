"""Deliveries as an Arrow table, with O(1) Python calls for all of them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.feed.columnar.delivery_batch import DeliveryBatch, IdTables
from tidings.feed.columnar.kernels import layout
from tidings.formats.arrow import DELIVERIES, deliveries_to_table
from tidings.model.values import LATEST_US, format_time


def delivery_table(batch: DeliveryBatch, tables: IdTables) -> pa.Table:
    """Return the columns of DELIVERIES; call it before the feeds take more matches.

    Deliveries by a user-defined distance are objects already and are written as such.
    """
    if batch.has_objects:
        return deliveries_to_table(batch.objects())
    columns = batch.columns
    subscribers = pa.array(tables.subscribers.names, pa.string())
    slots, positions = np.unique(columns[:, layout.EVENT], return_inverse=True)
    event_ids = pa.array([tables.events.id(slot) for slot in slots.tolist()], pa.string())
    contents = pa.nulls(len(slots), pa.string())
    if tables.events.contents:
        texts = [tables.events.contents.get(slot) for slot in slots.tolist()]
        contents = pa.array(texts, pa.string())
    delivered_us = pa.array(columns[:, layout.DECIDED], pa.int64())
    return pa.table(
        {
            "subscriber": subscribers.take(pa.array(batch.subscriber)),
            "event": event_ids.take(pa.array(positions)),
            "rank": batch.rank,
            "position": columns[:, layout.POSITION],
            "window": _windows(batch),
            "matched": _matched(columns[:, layout.HANDLE].astype(np.int32), tables),
            "sequence": columns[:, layout.NUMBER],
            "delivered_at": delivered_us.cast(DELIVERIES.field("delivered_at").type),
            "content": contents.take(pa.array(positions)),
        },
        schema=DELIVERIES,
    )


def _windows(batch: DeliveryBatch) -> pa.Array:
    """Return the JSON form of the window of each delivery."""
    extents = batch.columns[:, [layout.START, layout.STOP]]
    times, positions = np.unique(extents, return_inverse=True)
    texts = _format_times(times)
    start, stop = (texts.take(pa.array(each)) for each in positions.reshape(extents.shape).T)
    kinds = pa.array([json.dumps(kind) for kind in batch.windows], pa.string())
    kind = kinds.take(pa.array(batch.part))
    size = pa.array(batch.columns[:, layout.WIDTH]).cast(pa.string())
    pieces = ('{"name": ', kind, ', "start": "', start, '", "end": "', stop, '", "size": ', size)
    return pc.binary_join_element_wise(*pieces, "}", "")


def _format_times(times: Int64s) -> pa.Array:
    """Return microseconds since the epoch, in ascending order, as `format_time` prints them."""
    if len(times) and times[0] < 0:  # strftime of Arrow is for times after the epoch
        return pa.array([format_time(us) for us in times.tolist()], pa.string())
    bounded = np.minimum(times, LATEST_US)
    whole = pc.strftime(pa.array(bounded).cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(pc.replace_substring(whole, ".000000", ""), "Z", "")


def _matched(handles: Int32s, tables: IdTables) -> pa.Array:
    """Return the ids of the subscriptions behind each handle, sorted."""
    starts, members = tables.matched.flat(handles)
    used, numbers = np.unique(members, return_inverse=True)
    ids = pa.array([tables.matched.names[number] for number in used.tolist()], pa.string())
    id_order = np.argsort(pc.sort_indices(ids).to_numpy())
    owners = np.repeat(np.arange(len(handles)), np.diff(starts))
    order = np.lexsort((id_order[numbers], owners))
    offsets = pa.array(starts, pa.int32())
    return pa.ListArray.from_arrays(offsets, ids.take(pa.array(numbers[order])))
