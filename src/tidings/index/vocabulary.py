"""The predicates of an index as numbers: what an event stamps, and what it has to compare.

Equal predicates share one number. An interval, and `!=`, is kept as two numbers over the values of
a *slot* (an attribute and a family); everything else is an entry that an event stamps if it holds.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import nan
from sys import getsizeof
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.index.operators import OPERANDS, Operands, kind, operand
from tidings.kernels.access import Floats, Marks, Said
from tidings.model import Event
from tidings.predicate import Predicate
from tidings.values import Key

TRUST: Final = 50  # events that must be seen before they outweigh the guess
KNOWN: Final = 1024  # values of one attribute whose entries are remembered
STRINGS: Final = {"prefix": 0.1, "suffix": 0.1, "substring": 0.2}


class Check(NamedTuple):
    """One predicate: the number of its entry, or -1 and an interval of a slot.

    Without either, it is an `in`, and `members` are the entries of its values.
    """

    entry: int
    slot: int = -1
    low: float = 0.0
    high: float = 0.0
    members: tuple[int, ...] = ()


@dataclass
class _Side:
    """What is known of one attribute in one family."""

    equal: dict[Key, int] = field(default_factory=dict)
    lists: dict[str, Operands[int]] = field(default_factory=dict)
    stamps: bool = False  # whether there is any entry
    slot: int = -1
    slot_uses: int = 0
    codes: dict[Key, float] | None = None  # of strings and booleans that some `!=` names
    code_uses: Counter[Key] = field(default_factory=Counter)
    known: dict[Key, tuple[int, ...]] = field(default_factory=dict)  # values met lately

    def look_up(self, key: Key) -> tuple[int, ...]:
        """Give the entries that a value stamps, and keep them until an entry comes or goes."""
        found = [self.equal[key]] if key in self.equal else []
        for operands in self.lists.values():
            found += operands.holding(key)
        if len(self.known) >= KNOWN:
            self.known.clear()
        kept = self.known[key] = tuple(found)
        return kept


class Vocabulary:
    """Numbers for predicates, given back when nobody uses them, and the marks of the events."""

    def __init__(self) -> None:
        self._sides: dict[str, dict[str, _Side]] = {}
        self._entries: dict[Predicate, int] = {}
        self._free: list[int] = []
        self._free_slots: list[int] = []
        self._codes = 0
        self._slots = 0
        self._uses = np.zeros(64, np.int32)
        self._group = np.zeros(64, np.float32)  # how often the entry holds if its slot is there
        self._born = np.zeros(64, np.int32)  # the epoch in which an entry came
        self._slot_uses = np.zeros(16, np.int64)
        self._slot_born = np.zeros(16, np.int32)
        self.marks = Marks(
            np.zeros(1, np.int32),
            np.zeros(64, np.int32),
            np.zeros(64, np.int32),
            np.zeros(16, np.int32),
            np.zeros(16, np.int32),
            np.zeros(32, np.int32),
        )

    def use(self, part: Predicate) -> Check:
        """Give the check of a predicate, which is used once more."""
        if part.operator == "in":
            return Check(-1, members=tuple(self.use(each).entry for each in _members(part)))
        side = self._sides.setdefault(part.attribute, {}).get(part.family)
        if side is None:
            side = self._sides[part.attribute][part.family] = _Side()
        if _compared(part):
            return self._interval(side, part)
        if part not in self._entries:
            self._entries[part] = self._entry(side, part)
        entry = self._entries[part]
        self._uses[entry] += 1
        return Check(entry)

    def drop(self, part: Predicate) -> None:
        """Use a predicate once less; the last use gives back what it took."""
        if part.operator == "in":
            for each in _members(part):
                self.drop(each)
            return
        side = self._sides[part.attribute][part.family]
        if _compared(part):
            self._drop_interval(side, part)
        else:
            entry = self._entries[part]
            self._uses[entry] -= 1
            if not self._uses[entry]:
                del self._entries[part]
                self._forget(side, part)
                self._free.append(entry)
        if side.slot < 0 and not side.equal and not side.lists:
            del self._sides[part.attribute][part.family]
            if not self._sides[part.attribute]:
                del self._sides[part.attribute]

    def say(self, events: Iterable[Event]) -> Said:
        """Give events in numbers."""
        ids: list[int] = []
        slots: list[int] = []
        values: list[float] = []
        spans: list[int] = []
        for event in events:
            first, first_value = len(ids), len(slots)
            if self._tell(event, ids, slots, values):
                ids[first:] = dict.fromkeys(ids[first:])
            spans += (first, len(ids), first_value, len(slots))
        return Said(
            np.array(ids, np.int64),
            np.array(slots, np.int64),
            np.array(values, np.float64),
            np.array(spans, np.int64),
        )

    def _tell(self, event: Event, ids: list[int], slots: list[int], values: list[float]) -> bool:
        """Append what one event says; tell whether something may be there twice."""
        several = False
        sides = self._sides
        for name, tokens in event.tokens.items():
            if name not in sides:
                continue
            known = sides[name]
            several = several or len(tokens) > 1
            together = tokens if len(tokens) == 1 else sorted(tokens, key=_family)
            for family, key in together:
                if family not in known:
                    continue
                side = known[family]
                if side.stamps:
                    ids += side.known[key] if key in side.known else side.look_up(key)
                if side.slot >= 0:
                    slots.append(side.slot)
                    values.append(key if side.codes is None else side.codes.get(key, -1.0))  # type: ignore[arg-type]
        return several

    def restart_epochs(self) -> None:
        """Forget all stamps; nothing that was stamped then may be compared with what comes."""
        for each in (*self.marks, self._born, self._slot_born):
            each[:] = 0

    @property
    def epochs_end(self) -> bool:
        """Tell whether epochs are about to outgrow their numbers."""
        return bool(self.marks.epoch[0] > 2_000_000_000)

    def chances(self, entries: npt.NDArray[Any]) -> Floats:
        """Estimate how often entries hold: what was seen, or what subscriptions suggest."""
        total = max(1, int(self._uses.sum()) + int(self._slot_uses.sum()))
        guess = np.maximum(self._group[entries], self._uses[entries] / total)
        events = self.marks.epoch[0] - self._born[entries]
        found: Floats = (self.marks.hits[entries] + TRUST * guess) / (events + TRUST)
        return found

    def slot_chances(self, slots: npt.NDArray[Any]) -> Floats:
        """Estimate how often slots have a value."""
        total = max(1, int(self._uses.sum()) + int(self._slot_uses.sum()))
        guess = self._slot_uses[slots] / total
        events = self.marks.epoch[0] - self._slot_born[slots]
        found: Floats = (self.marks.slot_hits[slots] + TRUST * guess) / (events + TRUST)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of arrays and dicts; the texts belong to the subscriptions."""
        arrays: list[npt.NDArray[Any]] = [*self.marks, self._uses, self._group, self._born]
        dicts: list[Any] = [self._entries, self._sides, *self._sides.values()]
        for sides in self._sides.values():
            dicts += [each.equal for each in sides.values()]
        return sum(each.nbytes for each in arrays) + sum(map(getsizeof, dicts))

    def _entry(self, side: _Side, part: Predicate) -> int:
        entry = self._free.pop() if self._free else len(self._entries)
        if entry >= len(self._uses):
            self._grow()
        self.marks.stamp[entry] = self.marks.hits[entry] = 0
        self._born[entry] = self.marks.epoch[0]
        side.known.clear()
        side.stamps = True
        shape = kind(part)
        self._group[entry] = 0.0 if shape == "=" else STRINGS.get(shape, 0.5) / 20
        if shape == "=":
            side.equal[operand(part)] = entry
        else:
            if shape not in side.lists:
                side.lists[shape] = OPERANDS[shape]()
            side.lists[shape].add(operand(part), entry)
        return entry

    def _forget(self, side: _Side, part: Predicate) -> None:
        side.known.clear()
        shape = kind(part)
        if shape == "=":
            del side.equal[operand(part)]
        else:
            side.lists[shape].remove(operand(part))
            if not len(side.lists[shape]):
                del side.lists[shape]
        side.stamps = bool(side.equal or side.lists)

    def _interval(self, side: _Side, part: Predicate) -> Check:
        if side.slot < 0:
            side.slot = self._new_slot()
        side.slot_uses += 1
        self._slot_uses[side.slot] += 1
        if part.operator != "!=":
            return Check(-1, side.slot, *part.operand)
        return Check(-1, side.slot, self._code(side, part), nan)

    def _code(self, side: _Side, part: Predicate) -> float:
        if part.family in ("number", "time"):
            return float(part.operand)
        if side.codes is None:
            side.codes = {}
        if part.operand not in side.codes:
            side.codes[part.operand] = float(self._codes)
            self._codes += 1
        side.code_uses[part.operand] += 1
        return side.codes[part.operand]

    def _drop_interval(self, side: _Side, part: Predicate) -> None:
        side.slot_uses -= 1
        self._slot_uses[side.slot] -= 1
        if side.codes is not None:
            side.code_uses[part.operand] -= 1
            if not side.code_uses[part.operand]:
                del side.code_uses[part.operand], side.codes[part.operand]
        if not side.slot_uses:
            self._free_slots.append(side.slot)
            side.slot, side.codes = -1, None

    def _new_slot(self) -> int:
        if self._free_slots:
            slot = self._free_slots.pop()
        else:
            slot, self._slots = self._slots, self._slots + 1
        if slot >= len(self._slot_uses):
            self._slot_uses = _doubled(self._slot_uses)
            self._slot_born = _doubled(self._slot_born)
            self.marks = self.marks._replace(
                slot_stamp=_doubled(self.marks.slot_stamp),
                slot_hits=_doubled(self.marks.slot_hits),
                slot_span=_doubled(self.marks.slot_span),
            )
        self.marks.slot_stamp[slot] = self.marks.slot_hits[slot] = 0
        self._slot_born[slot] = self.marks.epoch[0]
        return slot

    def _grow(self) -> None:
        self._uses, self._group = _doubled(self._uses), _doubled(self._group)
        self._born = _doubled(self._born)
        stamp, hits = _doubled(self.marks.stamp), _doubled(self.marks.hits)
        self.marks = self.marks._replace(stamp=stamp, hits=hits)


def _members(part: Predicate) -> list[Predicate]:
    """Give an `in` as the equalities of which one must hold."""
    if part.family in ("number", "time"):
        return [
            Predicate(part.attribute, "between", part.family, (each, each)) for each in part.operand
        ]
    return [Predicate(part.attribute, "=", part.family, each) for each in part.operand]


def _compared(part: Predicate) -> bool:
    """Tell whether a predicate is compared with values, not stamped."""
    if part.operator == "!=":
        return True
    return part.family in ("number", "time") and kind(part) in ("<=", ">=", "between")


def _family(token: tuple[str, Key]) -> str:
    return token[0]


def _doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)])
