"""Parcels together: many made one, and some events of one, all in arrays."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import Parcel

_KEYS: Final = [("us", "ascending"), ("sequence", "ascending"), ("id", "ascending")]


def empty() -> Parcel:
    """Give a parcel without events."""
    none = np.zeros(0, np.int64)
    return Parcel([], none, none, [], Matches.empty(), [], [])


def merge(parcels: Sequence[Parcel]) -> Parcel:
    """Make parcels one, which numbers names anew; events stay in the order of the parcels."""
    if len(parcels) <= 1:
        return parcels[0] if parcels else empty()
    subscribers, subscriber_numbers = _unified([each.subscribers for each in parcels])
    subscriptions, subscription_numbers = _unified([each.subscriptions for each in parcels])
    renumbered = [
        each._replace(subscribers=people[each.subscribers], matched=wishes[each.matched])
        for each, people, wishes in zip(
            [parcel.matches for parcel in parcels],
            subscriber_numbers,
            subscription_numbers,
            strict=True,
        )
    ]
    return Parcel(
        events=list(chain.from_iterable(each.events for each in parcels)),
        us=np.concatenate([each.us for each in parcels]),
        sequence=np.concatenate([each.sequence for each in parcels]),
        forms=list(chain.from_iterable(each.forms for each in parcels)),
        matches=Matches.concatenated(renumbered),
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
    places = events.tolist()
    matches = parcel.matches.select(events)
    owners, subscribers = _fewer(matches.subscribers, parcel.subscribers)
    matched, subscriptions = _fewer(matches.matched, parcel.subscriptions)
    return Parcel(
        events=[parcel.events[place] for place in places],
        us=parcel.us[events],
        sequence=parcel.sequence[events],
        forms=[parcel.forms[place] for place in places],
        matches=matches._replace(subscribers=owners, matched=matched),
        subscribers=subscribers,
        subscriptions=subscriptions,
    )


def without_events(parcel: Parcel, events: AbstractSet[str]) -> Parcel:
    """Return a parcel without some events."""
    kept = [place for place, each in enumerate(parcel.events) if each not in events]
    return parcel if len(kept) == len(parcel.events) else select(parcel, np.array(kept, np.int64))


def of_subscribers(parcel: Parcel, wanted: npt.NDArray[np.bool_]) -> Parcel:
    """Give the matches of some subscribers, and the events that these have."""
    return of_matches(parcel, wanted[parcel.matches.subscribers])


def of_matches(parcel: Parcel, wanted: npt.NDArray[np.bool_]) -> Parcel:
    """Give some matches, and the events that these have."""
    matches = parcel.matches.only(wanted)
    return select(parcel._replace(matches=matches), np.diff(matches.starts).nonzero()[0])


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
        matches=found.matches._replace(starts=found.matches.starts[ends]),
    )


def _unified(names: Sequence[Sequence[str]]) -> tuple[list[str], list[Int32s]]:
    """Give all different names, and for each list of them the new numbers."""
    texts = pa.array(list(chain.from_iterable(names)), pa.large_string()).dictionary_encode()
    numbers = np.asarray(texts.indices.to_numpy(), np.int32)
    ends = np.cumsum([len(each) for each in names])[:-1]
    return texts.dictionary.to_pylist(), np.split(numbers, ends)


def _fewer(numbers: Int32s, names: Sequence[str]) -> tuple[Int32s, list[str]]:
    """Give the names that are in use, and their new numbers."""
    used = np.zeros(len(names), np.bool_)
    used[numbers] = True
    held = used.nonzero()[0]
    table = np.cumsum(used, dtype=np.int32) - 1
    return table[numbers].astype(np.int32), [names[number] for number in held.tolist()]
