"""Windows in arrays as bytes, and back: each event once, and no room that is not used.

Events go by time and id, subscriptions by id, subscribers by enrolment, so that equal states give
equal bytes. Keys are not kept: scores give them again.
"""

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from tidings.feeds.choice import DiverseCohort
from tidings.feeds.cohort import Cohort
from tidings.feeds.deliveries import Names
from tidings.feeds.frame import Arrays, pack, unpack
from tidings.feeds.objects import ObjectCohort
from tidings.feeds.policies import kept
from tidings.kernels import window_layout as at
from tidings.model import Event
from tidings.policy import Policy, Subscriber

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
COUNTERS: Final = [at.SEEN, at.SENT, at.END, at.SIZE, at.HELD, at.OLDEST_US, at.NEWEST_US]


class Tables(Protocol):
    """What is written and read: names, cohorts, and the ends that rows wait for."""

    names: Names
    cohorts: list[Cohort | DiverseCohort | ObjectCohort]

    def enrol(self, subscriber: Subscriber) -> None: ...
    def slot(self, event: Event) -> int: ...
    def copy_sets(self, old: Ids, new: Ids, used: int) -> int: ...
    def note_ends(self, index: int, ends: Ints) -> None: ...


def dump(kind: str, tables: Tables) -> bytes:
    """Give the whole state as bytes."""
    names, people = tables.names, tables.names.subscribers
    numbers = people.in_order()
    used, seats = _first_seen(people.cohort[numbers])
    arrays: Arrays = {"cohort": seats}
    header: dict[str, Any] = {
        "subscribers": [people.names[number] for number in numbers.tolist()],
        "policies": [kept(tables.cohorts[index].policy) for index in used],
        "objects": {},
    }
    for place, index in enumerate(used):
        cohort = tables.cohorts[index]
        if isinstance(cohort, ObjectCohort):
            header["objects"][str(place)] = cohort.snapshot()
        else:
            rows = people.row[numbers[seats == place]].astype(np.int64)
            columns = (
                cohort.columns(rows)
                if isinstance(cohort, DiverseCohort)
                else _columns(cohort, rows)
            )
            starts, columns["members"] = names.matched.flat(columns.pop("handle"))
            columns["sizes"] = np.diff(starts).astype(np.int32)
            arrays |= {f"{name}-{place}": each for name, each in columns.items()}
    header["events"], header["subscriptions"] = _rename(arrays, names)
    return pack(kind, header, arrays)


def _first_seen(cohorts: Ids) -> tuple[list[int], Ids]:
    """Give the cohorts in the order in which they come up, and each subscriber's place there."""
    found, first, inverse = np.unique(cohorts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return found[order].tolist(), np.argsort(order)[inverse].astype(np.int32)


def _columns(cohort: Cohort, rows: Ints) -> Arrays:
    """Give the state of some rows without its holes."""
    head, entries = cohort.head[rows[:, None], COUNTERS], cohort.entries(rows)
    if cohort.rings:
        head[:, [5, 6]] = 0
    return {
        "head": head,
        "score": cohort.score[entries],
        "mark": cohort.who[entries, at.MARK],
        "slot": cohort.who[entries, at.SLOT],
        "handle": cohort.who[entries, at.MATCHED],
        "ring": cohort.ring[cohort.cells(rows)] if cohort.rings else cohort.ring[:0],
        "disorder": cohort.used[[at.DISORDER]],
    }


def _rename(arrays: Arrays, names: Names) -> tuple[list[Any], list[str]]:
    """Number events and subscriptions anew, in their own order; give both."""
    held = _all(arrays, "slot", "ring")
    events = sorted(
        (names.events.event(slot) for slot in held), key=lambda each: (each.published_us, each.id)
    )
    slots = {names.events.slot_of(each.id): place for place, each in enumerate(events)}
    wanted = sorted(_all(arrays, "members"), key=lambda number: names.matched.names[number])
    numbers = {number: place for place, number in enumerate(wanted)}
    for name, each in arrays.items():
        mapping = numbers if name.startswith("members-") else slots
        if name.startswith(("slot-", "ring-", "members-")):
            arrays[name] = _mapped(each, mapping)
    return [each.to_dict() for each in events], [names.matched.names[each] for each in wanted]


def _all(arrays: Arrays, *prefixes: str) -> list[int]:
    some = [each for name, each in arrays.items() if name.split("-")[0] in prefixes]
    found: list[int] = np.unique(np.concatenate(some)).tolist() if some else []
    return found


def _mapped(numbers: npt.NDArray[Any], mapping: dict[int, int]) -> Ids:
    table = np.zeros(max(mapping, default=0) + 1, np.int32)
    table[list(mapping)] = list(mapping.values())
    return np.asarray(table[numbers])


def load(kind: str, tables: Tables, state: bytes) -> None:
    """Fill empty tables with what the bytes hold."""
    header, arrays = unpack(kind, state)
    policies = [Policy(**each) for each in header["policies"]]
    for name, place in zip(header["subscribers"], arrays["cohort"].tolist(), strict=True):
        tables.enrol(Subscriber(name, policies[place]))
    slots = np.array([tables.slot(Event.from_dict(form)) for form in header["events"]])
    numbers = np.array([tables.names.matched.number(each) for each in header["subscriptions"]])
    for place, cohort in enumerate(tables.cohorts):
        if isinstance(cohort, ObjectCohort):
            cohort.restore(header["objects"][str(place)])
            continue
        mine = {name.split("-")[0]: each for name, each in arrays.items() if _of(name, place)}
        for name in {"slot", "ring"} & mine.keys():
            mine[name] = slots[mine[name]].astype(np.int32) if len(slots) else mine[name]
        mine["members"] = numbers[mine["members"]] if len(numbers) else mine["members"]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(mine["sizes"], dtype=np.int64)])
        handles = tables.names.matched.handles(
            starts, mine["members"].astype(np.int32), tables.copy_sets
        )
        if isinstance(cohort, DiverseCohort):
            cohort.fill(tables.names.events, mine, handles)
        else:
            cohort.fill(tables.names.events, COUNTERS, mine, handles)
        tables.note_ends(place, cohort.open_ends())


def _of(name: str, place: int) -> bool:
    return name.endswith(f"-{place}")
