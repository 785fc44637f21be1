"""Windows in arrays as bytes, and back: each event once, and no room that is not used.

Events go by time and id, subscriptions by id, subscribers by enrolment, so that equal states give
equal bytes. Keys are not kept: scores give them again. Columns of numbers take as few bytes each as
hold them all; names are texts. More of an event than its id is kept where a diversifier needs it.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.feed.columnar.cohort_registry import Cohorts
from tidings.feed.columnar.delivery_batch import Names
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.python_cohort import ObjectCohort
from tidings.feed.columnar.ranked_cohort import Cohort
from tidings.feed.columnar.snapshot_check import (
    Counts,
    check_apart,
    check_diverse,
    check_part,
    check_ranked,
    check_shared,
)
from tidings.feed.policy_key import kept, read_kept
from tidings.feed.snapshot_header import FRAME, Arrays, pack, unpack
from tidings.formats.binary import Column, check, reading
from tidings.policy import Policy

COUNTERS: Final = [at.SEEN, at.SENT, at.END, at.SIZE, at.HELD, at.OLDEST_US, at.NEWEST_US]
Columns = dict[str, Any]
Read = tuple[dict[str, Any], Columns]
PolicyOf = Callable[[str], Policy | None]
_END: Final = 2


class Tables(Protocol):
    """What is written and read: names, cohorts, and the ends that rows wait for."""

    names: Names
    cohorts: Cohorts

    def enrol_many(
        self, subscribers: Sequence[str], policies: Sequence[Policy], seats: Int32s
    ) -> None: ...
    def cohort(self, policy: Policy) -> int: ...
    def slots(self, ids: Sequence[str], us: Int64s, sequence: Int64s) -> Int32s: ...
    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int: ...
    def note_ends(self, index: int, ends: Int64s) -> None: ...


def dump(kind: str, tables: Tables, numbers: Int64s) -> bytes:
    """Give the state of some subscribers, who are in order of enrolment, as bytes."""
    names, people = tables.names, tables.names.subscribers
    used, seats = _first_seen(people.cohort[numbers])
    header: dict[str, Any] = {
        "policies": [kept(tables.cohorts[index].policy) for index in used],
        "objects": {},
    }
    parts: dict[int, Arrays] = {}
    diverse = []
    for place, index in enumerate(used):
        cohort = tables.cohorts[index]
        if isinstance(cohort, ObjectCohort):
            header["objects"] |= cohort.snapshot(numbers[seats == place])
            continue
        rows = people.row[numbers[seats == place]].astype(np.int64)
        if isinstance(cohort, DiverseCohort):
            parts[place] = cohort.columns(rows)
            diverse.append(place)
        else:
            parts[place] = _columns(cohort, rows)
        starts, parts[place]["members"] = names.matched.flat(parts[place].pop("handle"))
        parts[place]["sizes"] = np.diff(starts)
    columns: dict[str, Column] = {
        "subscribers": [people.names[number] for number in numbers.tolist()],
        "seats": _narrow(seats),
    }
    columns |= _events(parts, diverse, names) | _subscriptions(parts, names)
    for place, part in parts.items():
        columns |= {f"{name}-{place}": each for name, each in _written(part).items()}
    return pack(kind, header, columns)


def _first_seen(cohorts: Int32s) -> tuple[list[int], Int32s]:
    """Give the cohorts in the order in which they come up, and each subscriber's place there."""
    found, first, inverse = np.unique(cohorts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return found[order].tolist(), np.argsort(order)[inverse].astype(np.int32)


def _columns(cohort: Cohort, rows: Int64s) -> Arrays:
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


def _events(parts: dict[int, Arrays], diverse: Sequence[int], names: Names) -> dict[str, Column]:
    """Number the events that are held anew, by time and id; give what is kept of them."""
    table = names.events
    slots = [part[name] for part in parts.values() for name in ("slot", "ring") if name in part]
    held = _used(slots, len(table.ids))
    held = held[np.lexsort((table.tie[held], table.us[held]))]
    _renumber(parts, ("slot", "ring"), held, len(table.ids))
    described = _used([parts[place]["slot"] for place in diverse], len(held))
    forms = [""] * len(held) if len(described) else []
    for place in described.tolist():
        forms[place] = table.form(int(held[place]))
    return {
        "events": [table.id(slot) for slot in held.tolist()],
        "us": table.us[held],
        "sequence": table.sequence[held],
        "forms": forms,
    }


def _subscriptions(parts: dict[int, Arrays], names: Names) -> dict[str, Column]:
    """Number the subscriptions that are held anew, in order of their ids; give them."""
    every = names.matched.names
    held = _used([part["members"] for part in parts.values()], len(every))
    ids = pa.array([every[number] for number in held.tolist()], pa.large_string())
    order = pc.sort_indices(ids).to_numpy()
    _renumber(parts, ("members",), held[order], len(every))
    return {"subscriptions": ids.take(order).to_pylist()}


def _used(columns: Sequence[npt.NDArray[Any]], size: int) -> Int64s:
    """Give the numbers that come up in columns."""
    found = np.zeros(size, np.bool_)
    for each in columns:
        found[each] = True
    return np.flatnonzero(found)


def _renumber(parts: dict[int, Arrays], names: Sequence[str], held: Int64s, size: int) -> None:
    table = np.zeros(size, np.int32)
    table[held] = np.arange(len(held))
    for part in parts.values():
        for name in part.keys() & set(names):
            part[name] = table[part[name]]


def _written(part: Arrays) -> Arrays:
    """Give the columns as they are written: counters one by one, and all numbers narrow."""
    head = part.pop("head").copy()
    head[:, _END] -= at.NEVER
    part |= {f"head{number}": column for number, column in enumerate(head.T)}
    return {name: _narrow(each) for name, each in part.items()}


def _read(part: Arrays) -> Arrays:
    """Give the columns as they were; the kernels know numbers of one width only."""
    heads = sorted(name for name in part if name.startswith("head"))
    head = np.stack([part.pop(name).astype(np.int64) for name in heads], axis=1)
    head[:, _END] += at.NEVER
    return {"head": head, **part}


def _narrow(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give whole numbers of at least 0 in the fewest bytes that hold all of them."""
    if column.dtype.kind == "f" or not column.size or column.min() < 0:
        return column
    return column.astype(np.min_scalar_type(int(column.max())))


def load(kind: str, tables: Tables, states: Sequence[bytes], policy: PolicyOf) -> None:
    """Fill empty tables with what bytes hold, each with subscribers of its own.

    `policy` gives the policy of a subscriber, if it is known.
    """
    read = [unpack(kind, state) for state in states]
    with reading(FRAME.name):
        for header, columns in read:
            check_shared(header, columns)
        check_apart([columns for _, columns in read])
        _load(tables, read, policy)


def _load(tables: Tables, read: Sequence[Read], policy: PolicyOf) -> None:
    places = _enrol(tables, read, policy)
    _enter(tables, [columns for _, columns in read])
    parts: dict[int, list[Arrays]] = {}
    for (header, columns), mine in zip(read, places, strict=True):
        for place, part in _given(tables, columns, mine).items():
            parts.setdefault(mine[place], []).append(part)
        for index in mine:
            cohort = tables.cohorts[index]
            if isinstance(cohort, ObjectCohort):
                cohort.restore(header["objects"])
    for index, some in parts.items():
        _fill(tables, index, some)
    tables.names.events.young[:] = False


def _enrol(tables: Tables, read: Sequence[Read], policy: PolicyOf) -> list[list[int]]:
    """Enrol all subscribers; give the cohorts behind the policies of each state."""
    policies, seats, places = list[Policy](), [np.zeros(0, np.int32)], list[list[int]]()
    for header, columns in read:
        _, firsts = np.unique(columns["seats"], return_index=True)
        pairs = zip(header["policies"], firsts.tolist(), strict=True)
        seats.append(len(policies) + columns["seats"].astype(np.int32))
        mine = [_policy(form, policy(columns["subscribers"][first])) for form, first in pairs]
        places.append([tables.cohort(each) for each in mine])
        check(len(set(places[-1])) == len(mine), FRAME.name, "a policy is there twice")
        policies += mine
    order = np.array([index for mine in places for index in mine], np.int32)
    names = list(chain.from_iterable(columns["subscribers"] for _, columns in read))
    made = [each.policy for each in tables.cohorts]
    tables.enrol_many(names, made, order[np.concatenate(seats)] if names else order)
    return places


def _enter(tables: Tables, states: Sequence[Columns]) -> None:
    """Give all events slots, in order of publication."""
    if len(states) == 1:
        tables.slots(states[0]["events"], states[0]["us"], states[0]["sequence"])
    else:
        columns = ("us", "events", "sequence")
        rows = {row for each in states for row in zip(*(each[n] for n in columns), strict=True)}
        found = sorted(rows)
        check(len({row[1] for row in found}) == len(found), FRAME.name, "an event has two times")
        us, sequence = (np.array([row[at] for row in found], np.int64) for at in (0, 2))
        tables.slots([row[1] for row in found], us, sequence)
    for each in states:
        for name, form in zip(each["events"], each["forms"], strict=False):
            if form:
                tables.names.events.describe(tables.names.events.slot_of(name), form)


def _policy(form: dict[str, Any], found: Policy | None) -> Policy:
    """Give the policy of a form; a distance of somebody's own is only in the policy itself."""
    return found if found is not None and kept(found) == form else read_kept(form)


def _given(tables: Tables, columns: Columns, mine: Sequence[int]) -> dict[int, Arrays]:
    """Give the columns of each cohort with the slots and numbers that the tables have given."""
    slots = tables.slots(columns["events"], columns["us"], columns["sequence"])
    numbers = tables.names.matched.number_many(columns["subscriptions"])
    counts, rows = Counts(len(slots), len(numbers)), np.bincount(columns["seats"]).tolist()
    parts, found = _parts(columns), dict[int, Arrays]()
    for place, index in enumerate(mine):
        cohort = tables.cohorts[index]
        if isinstance(cohort, ObjectCohort):
            continue
        check(str(place) in parts, FRAME.name, f"the columns of policy {place} are missing")
        part = parts.pop(str(place))
        check_part(cohort, part, rows[place], counts)
        for name in {"slot", "ring"} & part.keys():
            part[name] = slots[part[name]]
        found[place] = _read(part | {"members": numbers[part["members"]]})
    check(not parts, FRAME.name, "it has columns that belong to no policy")
    return found


def _parts(columns: Columns) -> dict[str, Arrays]:
    """Give the columns of each cohort, by the place of its policy as the columns name it."""
    parts: dict[str, Arrays] = {}
    for full, column in columns.items():
        name, dash, number = full.partition("-")
        if dash:
            check(isinstance(column, np.ndarray), FRAME.name, f"column {full} holds no numbers")
            parts.setdefault(number, {})[name] = column
    return parts


def _fill(tables: Tables, index: int, some: Sequence[Arrays]) -> None:
    """Fill a cohort with the columns that the states have of it."""
    cohort, part = tables.cohorts[index], some[0]
    assert not isinstance(cohort, ObjectCohort)
    if len(some) > 1:
        part = {name: np.concatenate([each[name] for each in some]) for name in part}
    sizes = part["sizes"]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    handles = tables.names.matched.handles(starts, part["members"], tables.copy_sets)
    if isinstance(cohort, DiverseCohort):
        check_diverse(cohort, tables.names.events, part)
        cohort.fill(tables.names.events, part, handles)
    else:
        check_ranked(cohort, tables.names.events, part)
        cohort.fill(tables.names.events, COUNTERS, part, handles)
    tables.note_ends(index, cohort.open_ends())
