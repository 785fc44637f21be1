"""Parcels together: many made one, and some events of one, all in arrays."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.feed.columnar.ranked_cohort import spread
from tidings.spark.match_stage.match_batch import Parcel

_KEYS: Final = [("us", "ascending"), ("sequence", "ascending"), ("id", "ascending")]


def empty() -> Parcel:
    """Give a parcel without events."""
    ints, zero = np.zeros(0, np.int64), np.zeros(1, np.int64)
    shorts, floats = np.zeros(0, np.int32), np.zeros(0, np.float64)
    return Parcel([], ints, ints, [], zero, shorts, floats, zero, shorts, [], [])


def merge(parcels: Sequence[Parcel]) -> Parcel:
    """Make parcels one, which numbers names anew; events stay in the order of the parcels."""
    if len(parcels) <= 1:
        return parcels[0] if parcels else empty()
    subscribers, owners = _unified([each.subscribers for each in parcels])
    subscriptions, numbers = _unified([each.subscriptions for each in parcels])
    return Parcel(
        events=list(chain.from_iterable(each.events for each in parcels)),
        us=np.concatenate([each.us for each in parcels]),
        sequence=np.concatenate([each.sequence for each in parcels]),
        forms=list(chain.from_iterable(each.forms for each in parcels)),
        starts=_starts([np.diff(each.starts) for each in parcels]),
        owners=_renumbered(parcels, lambda each: each.owners, owners),
        ranks=np.concatenate([each.ranks for each in parcels]),
        matched_starts=_starts([np.diff(each.matched_starts) for each in parcels]),
        matched=_renumbered(parcels, lambda each: each.matched, numbers),
        subscribers=subscribers,
        subscriptions=subscriptions,
    )


def in_order(parcel: Parcel) -> Int64s:
    """Give the places of the events by time, then number, then id."""
    numbers = np.maximum(parcel.sequence, 0)
    ids = pa.array(parcel.events, pa.large_string())
    table = pa.table({"us": parcel.us, "sequence": numbers, "id": ids})
    return np.asarray(pc.sort_indices(table, sort_keys=_KEYS).to_numpy().astype(np.int64))


def select(parcel: Parcel, events: Int64s) -> Parcel:
    """Give some events of a parcel, in the order in which they are named, and only their names."""
    sizes, places = np.diff(parcel.starts)[events], events.tolist()
    return parcel._replace(
        events=[parcel.events[place] for place in places],
        us=parcel.us[events],
        sequence=parcel.sequence[events],
        forms=[parcel.forms[place] for place in places],
        starts=_starts([sizes]),
        **_of_matches(parcel, spread(parcel.starts[events], sizes)),
    )


def without_events(parcel: Parcel, events: AbstractSet[str]) -> Parcel:
    """Return a parcel without some events."""
    kept = [place for place, each in enumerate(parcel.events) if each not in events]
    return parcel if len(kept) == len(parcel.events) else select(parcel, np.array(kept, np.int64))


def of_subscribers(parcel: Parcel, wanted: npt.NDArray[np.bool_]) -> Parcel:
    """Give the matches of some subscribers, and the events that these have."""
    return of_matches(parcel, wanted[parcel.owners])


def of_matches(parcel: Parcel, wanted: npt.NDArray[np.bool_]) -> Parcel:
    """Give some matches, and the events that these have."""
    kept = wanted.nonzero()[0]
    events = np.repeat(np.arange(len(parcel.events)), np.diff(parcel.starts))
    sizes = np.bincount(events[kept], minlength=len(parcel.events))
    fewer = parcel._replace(starts=_starts([sizes]), **_of_matches(parcel, kept))
    return select(fewer, sizes.nonzero()[0])


def repeats(parcel: Parcel) -> npt.NDArray[np.bool_]:
    """Tell which events, of a parcel in order, came before in it."""
    last = len(parcel.events) - 1
    first = {event: last - place for place, event in enumerate(reversed(parcel.events))}
    found = np.ones(len(parcel.events), np.bool_)
    found[[*first.values()]] = False
    return found


def joined(parcel: Parcel) -> Parcel:
    """Give a parcel in order of publication, in which events that came in several parts are one.

    The form of an event is there if some part had it.
    """
    found = select(parcel, in_order(parcel))
    pairs = zip(found.events, ["", *found.events], strict=False)
    first = np.array([event != before for event, before in pairs], np.bool_).nonzero()[0]
    ends = np.append(first, len(found.events))
    runs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return found._replace(
        events=[found.events[place] for place in first.tolist()],
        us=found.us[first],
        sequence=found.sequence[first],
        forms=[max(found.forms[begin:end]) for begin, end in runs],
        starts=found.starts[ends],
    )


def _of_matches(parcel: Parcel, matches: Int64s) -> dict[str, Any]:
    """Give the columns of some matches, and the names that they need."""
    sizes = np.diff(parcel.matched_starts)[matches]
    members = parcel.matched[spread(parcel.matched_starts[matches], sizes)]
    owners, subscribers = _fewer(parcel.owners[matches], parcel.subscribers)
    matched, subscriptions = _fewer(members, parcel.subscriptions)
    return {
        "owners": owners,
        "ranks": parcel.ranks[matches],
        "matched_starts": _starts([sizes]),
        "matched": matched,
        "subscribers": subscribers,
        "subscriptions": subscriptions,
    }


def _starts(sizes: Sequence[npt.NDArray[Any]]) -> Int64s:
    whole = np.concatenate([np.zeros(1, np.int64), *sizes])
    return np.cumsum(whole, dtype=np.int64)


def _unified(names: Sequence[Sequence[str]]) -> tuple[list[str], list[Int32s]]:
    """Give all different names, and for each list of them the new numbers."""
    texts = pa.array(list(chain.from_iterable(names)), pa.large_string()).dictionary_encode()
    numbers = np.asarray(texts.indices.to_numpy(), np.int32)
    ends = np.cumsum([len(each) for each in names])[:-1]
    return texts.dictionary.to_pylist(), np.split(numbers, ends)


def _renumbered(
    parcels: Sequence[Parcel], column: Callable[[Parcel], Int32s], numbers: Sequence[Int32s]
) -> Int32s:
    pairs = zip(parcels, numbers, strict=True)
    return np.concatenate([new[column(each)] for each, new in pairs])


def _fewer(numbers: Int32s, names: Sequence[str]) -> tuple[Int32s, list[str]]:
    """Give the names that are in use, and their new numbers."""
    used = np.zeros(len(names), np.bool_)
    used[numbers] = True
    held = used.nonzero()[0]
    table = np.cumsum(used, dtype=np.int32) - 1
    return table[numbers].astype(np.int32), [names[number] for number in held.tolist()]
