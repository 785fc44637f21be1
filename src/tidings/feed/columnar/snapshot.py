"""Snapshots of windows in arrays: each event once, and no unused cells.

    header      policies: the feed form of each cohort      objects: states of Python feeds
                rules: the policy, the rules and more of each group
    columns     subscribers, seats (the policy of each)     events, us, sequence, forms, contents
                ruled (the group of each from 1 on, or 0)   subscriptions
                and of the cohort of policy p, and of group g as `rules.columns` describes them:
                head0-p .. head6-p, score-p, mark-p, slot-p, sizes-p, members-p, ring-p, disorder-p
                sent-rg, paused-rg ...

Events are sorted by time and id, subscriptions by id, subscribers by enrolment, so equal states
give equal bytes. Keys are not stored: they follow from the scores. Integer columns take as few
bytes as hold all of them. An event is stored with its attributes only where a diversifier needs
them, and with its content, once, if it has any; without any content, the column is left out.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.arrays import Ragged, offsets
from tidings.feed.columnar.cohort_registry import CohortRegistry
from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels.layout import NEVER
from tidings.feed.columnar.period_ends import open_ends
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.feed.columnar.rules.columns import check_rules, fill_rules, rule_columns
from tidings.feed.columnar.rules.table import RuleTable
from tidings.feed.columnar.snapshot_check import (
    ReferencedCounts,
    check_columns,
    check_disjoint,
    check_diverse,
    check_ranked,
    check_shared,
)
from tidings.feed.policy_key import feed_form, read_feed_form
from tidings.feed.snapshot_header import FRAME, Arrays, pack, unpack
from tidings.formats.binary import Column, check, reading
from tidings.policy import Policy

Columns = dict[str, Any]
Unpacked = tuple[dict[str, Any], Columns]
PolicyOf = Callable[[str], Policy | None]
_END_COLUMN: Final = 2
_SLOTS: Final = frozenset({"slot", "ring", "got"})
_COMPARED: Final = frozenset({"slot", "got"})


class FeedTables(Protocol):
    """The parts of feeds that are written and read."""

    tables: IdTables
    cohorts: CohortRegistry
    rules: RuleTable

    def enrol_many(
        self, subscribers: Sequence[str], policies: Sequence[Policy], policy_index: Int32s
    ) -> None: ...
    def cohort(self, policy: Policy) -> int: ...
    def slots(self, ids: Sequence[str], us: Int64s, sequence: Int64s) -> Int32s: ...
    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int: ...
    def schedule(self, number: int, ends: Int64s) -> None: ...


def dump(kind: str, feeds: FeedTables, numbers: Int64s) -> bytes:
    """Return the state of some subscribers, given in the order of enrolment."""
    tables, subscribers = feeds.tables, feeds.tables.subscribers
    cohorts, policy_index = _in_order_of_occurrence(subscribers.cohort[numbers])
    header: dict[str, Any] = {
        "policies": [feed_form(feeds.cohorts[number].policy) for number in cohorts],
        "objects": {},
    }
    parts = dict[str, Arrays]()
    for index, number in enumerate(cohorts):
        cohort = feeds.cohorts[number]
        members = numbers[policy_index == index]
        if isinstance(cohort, PythonCohort):
            header["objects"] |= cohort.snapshot(members)
            continue
        parts[str(index)] = cohort.columns(subscribers.row[members].astype(np.int64))
    rules, ruled = _rule_parts(feeds, numbers, policy_index, parts)
    for part in parts.values():
        starts, part["members"] = tables.matched.members(part.pop("handle"))
        part["sizes"] = np.diff(starts)
    compared = _compared(feeds, cohorts, rules)
    columns: dict[str, Column] = {
        "subscribers": [subscribers.names[number] for number in numbers.tolist()],
        "seats": _narrow(policy_index),
    }
    if rules:
        header["rules"], columns["ruled"] = rules, _narrow(ruled)
    columns |= _event_columns(parts, compared, tables) | _subscription_columns(parts, tables)
    for suffix, part in parts.items():
        columns |= {f"{name}-{suffix}": column for name, column in _packed(part).items()}
    return pack(kind, header, columns)


def _in_order_of_occurrence(cohorts: Int32s) -> tuple[list[int], Int32s]:
    """Return the cohorts in the order in which they occur first, and the index of each there."""
    different, first, inverse = np.unique(cohorts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return different[order].tolist(), np.argsort(order)[inverse].astype(np.int32)


def _rule_parts(
    feeds: FeedTables, numbers: Int64s, policy_index: Int32s, parts: dict[str, Arrays]
) -> tuple[list[dict[str, Any]], Int32s]:
    """Add the columns of rules; return the groups for the header, and the group of each."""
    table, forms = feeds.rules, list[dict[str, Any]]()
    if not table:
        return forms, np.zeros(len(numbers), np.int32)
    groups, group_index = _in_order_of_occurrence(table.groups_of(numbers))
    number_of = np.zeros(len(groups), np.int32)
    for index, number in enumerate(groups):
        if number >= 0:
            group, members = table.groups[number], group_index == index
            policy = int(policy_index[members][0])
            rules = feed_form(group.policy).get("rules", [])
            parts[f"r{len(forms)}"] = rule_columns(group.rows, table.row[numbers[members]])
            forms.append({"policy": policy, "rules": rules, "owed": group.owed})
            number_of[index] = len(forms)
    return forms, number_of[group_index]


def _compared(
    feeds: FeedTables, cohorts: Sequence[int], rules: Sequence[dict[str, Any]]
) -> list[str]:
    """Return the parts whose events are compared with others, in windows or by rules."""
    compared = {
        str(index)
        for index, number in enumerate(cohorts)
        if isinstance(feeds.cohorts[number], DiverseCohort)
    }
    for index, form in enumerate(rules):
        names = [rule if isinstance(rule, str) else rule["name"] for rule in form["rules"]]
        if "different" in names or str(form["policy"]) in compared:
            compared |= {f"r{index}", str(form["policy"])}
    return sorted(compared)


def _event_columns(
    parts: dict[str, Arrays], compared: Sequence[str], tables: IdTables
) -> dict[str, Column]:
    """Renumber the events that windows hold by time and id; return their columns."""
    table = tables.events
    slots = [part[name] for part in parts.values() for name in part.keys() & _SLOTS]
    held = _occurring(slots, len(table.ids))
    held = held[np.lexsort((table.id_order[held], table.us[held]))]
    _renumber(parts, _SLOTS, held, len(table.ids))
    columns = [parts[part][name] for part in compared for name in parts[part].keys() & _COMPARED]
    described = _occurring(columns, len(held))
    forms = [""] * len(held) if len(described) else []
    for event in described.tolist():
        slot = int(held[event])
        forms[event] = table.form(slot) if table.is_described(slot) else ""
    event_columns = {
        "events": [table.id(slot) for slot in held.tolist()],
        "us": table.us[held],
        "sequence": table.sequence[held],
        "forms": forms,
    }
    contents = [table.contents.get(slot, "") for slot in held.tolist()] if table.contents else []
    return event_columns | ({"contents": contents} if any(contents) else {})


def _subscription_columns(parts: dict[str, Arrays], tables: IdTables) -> dict[str, Column]:
    """Renumber the subscriptions that windows hold by id; return their column."""
    names = tables.matched.names
    held = _occurring([part["members"] for part in parts.values()], len(names))
    ids = pa.array([names[number] for number in held.tolist()], pa.large_string())
    order = pc.sort_indices(ids).to_numpy()
    _renumber(parts, frozenset({"members"}), held[order], len(names))
    return {"subscriptions": ids.take(order).to_pylist()}


def _occurring(columns: Sequence[AnyArray], size: int) -> Int64s:
    """Return the numbers below `size` that occur in columns."""
    occurs = np.zeros(size, np.bool_)
    for column in columns:
        occurs[column] = True
    return np.flatnonzero(occurs)


def _renumber(parts: dict[str, Arrays], names: frozenset[str], held: Int64s, size: int) -> None:
    number_of = np.zeros(size, np.int32)
    number_of[held] = np.arange(len(held))
    for part in parts.values():
        for name in part.keys() & names:
            part[name] = number_of[part[name]]


def _packed(part: Arrays) -> Arrays:
    """Return columns as they are written: one for each counter, and integers narrow."""
    if "head" in part:
        head = part.pop("head").copy()
        head[:, _END_COLUMN] -= NEVER
        part |= {f"head{number}": column for number, column in enumerate(head.T)}
    return {name: _narrow(column) for name, column in part.items()}


def _unpacked(part: Arrays) -> Arrays:
    """Return columns as cohorts have them; kernels know counters of one width only."""
    heads = sorted(name for name in part if name.startswith("head"))
    head = np.stack([part.pop(name).astype(np.int64) for name in heads], axis=1)
    head[:, _END_COLUMN] += NEVER
    return {"head": head, **part}


def _narrow(column: AnyArray) -> AnyArray:
    """Return integers of at least 0 in the fewest bytes that hold all of them."""
    if column.dtype.kind == "f" or not column.size or column.min() < 0:
        return column
    return column.astype(np.min_scalar_type(int(column.max())))


def load(kind: str, feeds: FeedTables, states: Sequence[bytes], policy: PolicyOf) -> None:
    """Fill empty feeds with snapshots, whose subscribers must differ.

    `policy` returns the policy of a subscriber if the caller knows it.
    """
    unpacked = [unpack(kind, state) for state in states]
    with reading(FRAME.name):
        for header, columns in unpacked:
            check_shared(header, columns)
        check_disjoint([columns for _, columns in unpacked])
        _load(feeds, unpacked, policy)


def _load(feeds: FeedTables, unpacked: Sequence[Unpacked], policy: PolicyOf) -> None:
    cohorts = _enrol(feeds, unpacked, policy)
    _add_events(feeds, [columns for _, columns in unpacked])
    parts: dict[int, list[Arrays]] = {}
    for (header, columns), numbers in zip(unpacked, cohorts, strict=True):
        rest = _columns_by_policy(columns)
        for index, part in _renumbered_parts(feeds, columns, numbers, rest).items():
            parts.setdefault(numbers[index], []).append(part)
        _load_rules(feeds, header, columns, rest, policy)
        check(not rest, FRAME.name, "it has columns that belong to no policy")
        for number in numbers:
            cohort = feeds.cohorts[number]
            if isinstance(cohort, PythonCohort):
                cohort.restore(header["objects"])
    for number, cohort_parts in parts.items():
        _fill(feeds, number, cohort_parts)
    feeds.tables.events.pending[:] = False


def _enrol(feeds: FeedTables, unpacked: Sequence[Unpacked], policy: PolicyOf) -> list[list[int]]:
    """Enrol all subscribers; return the cohorts of the policies of each state."""
    policies, indexes, cohorts = list[Policy](), [np.zeros(0, np.int32)], list[list[int]]()
    for header, columns in unpacked:
        _, firsts = np.unique(columns["seats"], return_index=True)
        pairs = zip(header["policies"], firsts.tolist(), strict=True)
        indexes.append(len(policies) + columns["seats"].astype(np.int32))
        new = [_policy(form, policy(columns["subscribers"][first])) for form, first in pairs]
        cohorts.append([feeds.cohort(new_policy) for new_policy in new])
        check(len(set(cohorts[-1])) == len(new), FRAME.name, "a policy occurs twice")
        policies += new
    cohort_of = np.array(list(chain.from_iterable(cohorts)), np.int32)
    names = list(chain.from_iterable(columns["subscribers"] for _, columns in unpacked))
    distinct = [cohort.policy for cohort in feeds.cohorts]
    feeds.enrol_many(names, distinct, cohort_of[np.concatenate(indexes)] if names else cohort_of)
    return cohorts


def _add_events(feeds: FeedTables, states: Sequence[Columns]) -> None:
    """Add all events to the table, in order of publication."""
    if len(states) == 1:
        feeds.slots(states[0]["events"], states[0]["us"], states[0]["sequence"])
    else:
        names = ("us", "events", "sequence")
        rows = {row for s in states for row in zip(*(s[name] for name in names), strict=True)}
        us, ids, sequence = list(zip(*sorted(rows), strict=True)) or ((), (), ())
        check(len(set(ids)) == len(ids), FRAME.name, "an event has two times")
        feeds.slots(ids, np.array(us, np.int64), np.array(sequence, np.int64))
    table = feeds.tables.events
    for state in states:
        for name, form in zip(state["events"], state["forms"], strict=False):
            if form:
                table.describe(table.slot_of(name), form)
        for name, content in zip(state["events"], state.get("contents", ()), strict=False):
            if content:
                table.contents[table.slot_of(name)] = content


def _policy(form: dict[str, Any], current: Policy | None) -> Policy:
    """Return the policy of a form; one with user-defined parts must come from the caller."""
    return current if current and feed_form(current) == form else read_feed_form(form)


def _load_rules(
    feeds: FeedTables,
    header: dict[str, Any],
    columns: Columns,
    parts: dict[str, Arrays],
    policy: PolicyOf,
) -> None:
    """Open and fill the rules of a state; its subscribers have their windows."""
    if not header.get("rules"):
        return
    slots = feeds.slots(columns["events"], columns["us"], columns["sequence"])
    subscriptions = feeds.tables.matched.number_many(columns["subscriptions"])
    counts = ReferencedCounts(len(slots), len(subscriptions))
    for index, form in enumerate(header.get("rules", ())):
        check(f"r{index}" in parts, FRAME.name, f"the columns of rules {index} are missing")
        part, members = parts.pop(f"r{index}"), np.flatnonzero(columns["ruled"] == index + 1)
        names = [columns["subscribers"][member] for member in members.tolist()]
        whole = header["policies"][form["policy"]]
        whole = whole | ({"rules": form["rules"]} if form["rules"] else {})
        numbers = np.array([feeds.tables.subscribers.number(name) for name in names], np.int64)
        rows = feeds.rules.enrol(numbers, _policy(whole, policy(names[0])), form["owed"])
        group_number = int(feeds.rules.group[numbers[0]])
        group = feeds.rules.groups[group_number]
        check_rules(group.rows, part, len(members), counts)
        sets = Ragged(offsets(part["sizes"]), subscriptions[part["members"]])
        handles = feeds.tables.matched.handles(sets, feeds.copy_sets)
        part |= {name: slots[part[name]] for name in ("slot", "got")}
        fill_rules(group.rows, rows, part, handles)
        feeds.rules.schedule(group_number, rows)


def _renumbered_parts(
    feeds: FeedTables, columns: Columns, cohorts: Sequence[int], parts: dict[str, Arrays]
) -> dict[int, Arrays]:
    """Return the columns of each policy with the slots and numbers of the tables."""
    slots = feeds.slots(columns["events"], columns["us"], columns["sequence"])
    numbers = feeds.tables.matched.number_many(columns["subscriptions"])
    counts = ReferencedCounts(len(slots), len(numbers))
    rows = np.bincount(columns["seats"]).tolist()
    renumbered = dict[int, Arrays]()
    for index, number in enumerate(cohorts):
        cohort = feeds.cohorts[number]
        if isinstance(cohort, PythonCohort):
            continue
        check(str(index) in parts, FRAME.name, f"the columns of policy {index} are missing")
        part = parts.pop(str(index))
        check_columns(cohort, part, rows[index], counts)
        for name in {"slot", "ring"} & part.keys():
            part[name] = slots[part[name]]
        renumbered[index] = _unpacked(part | {"members": numbers[part["members"]]})
    return renumbered


def _columns_by_policy(columns: Columns) -> dict[str, Arrays]:
    """Return the columns of each policy, by the number that is the end of their names."""
    parts: dict[str, Arrays] = {}
    for full_name, column in columns.items():
        name, dash, number = full_name.partition("-")
        if dash:
            numeric = isinstance(column, np.ndarray)
            check(numeric, FRAME.name, f"column {full_name} does not hold numbers")
            parts.setdefault(number, {})[name] = column
    return parts


def _fill(feeds: FeedTables, number: int, parts: Sequence[Arrays]) -> None:
    """Fill a cohort with its columns in all states."""
    cohort, part = feeds.cohorts[number], parts[0]
    assert not isinstance(cohort, PythonCohort)
    if len(parts) > 1:
        part = {name: np.concatenate([p[name] for p in parts]) for name in part}
    sets = Ragged(offsets(part["sizes"]), part["members"])
    handles = feeds.tables.matched.handles(sets, feeds.copy_sets)
    if isinstance(cohort, DiverseCohort):
        check_diverse(cohort, part)
    else:
        check_ranked(cohort, part)
    cohort.fill(part, handles)
    feeds.schedule(number, open_ends(cohort.head))
