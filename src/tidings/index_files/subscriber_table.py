"""Table of the subscribers of one part of a version: names, hashes and policies.

    row          names   hashes   policy_ids      by_hash: the rows in order of hash
    0            ann     0x9f..   0
    1            bob     0x12..   2
    ...          ...     ...      NO_POLICY       a name with subscriptions and no subscriber

The columns are those of a base file, which is mapped and never changes. Policies that changed since
the base was written are kept beside it in a dict, like a memtable before its segment.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Never
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_file import Reader, TextColumn, Writer, parsed
from tidings.compiled.array_types import Bools, Int32s, Int64s, UInt32s
from tidings.errors import InvalidPolicy, TidingsError
from tidings.formats.json_forms import loads_policy
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.policy import Policy, Subscriber

# Strings by number, in two arrays that can be mapped from a file.


class StringTable(Sequence[str]):
    """Strings in one array of UTF-8 bytes, with the offset at which each begins.

    >>> import numpy as np
    >>> names = StringTable.of(["ann", "bob"])
    >>> names[1], names.take(np.array([1, 0])).to_pylist()
    ('bob', ['bob', 'ann'])
    """

    def __init__(self, column: TextColumn) -> None:
        self.column = column
        self._strings = column.strings()

    @classmethod
    def of(cls, strings: Iterable[str]) -> "StringTable":
        """Return a table of some strings."""
        return cls(TextColumn.of(strings))

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, number: Any) -> Any:
        return self._strings[int(number)].as_py()

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Return the strings with these numbers."""
        return self._strings.take(pa.array(numbers))


@dataclass(frozen=True)
class OverlaidStrings:
    """The strings of a base, numbered first, and those of the overlay after them."""

    base: StringTable
    overlay: pa.LargeStringArray

    def __len__(self) -> int:
        return len(self.base) + len(self.overlay)

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Return the strings with these numbers."""
        in_overlay = numbers >= len(self.base)
        if not in_overlay.any():
            return self.base.take(numbers)
        overlay = self.overlay.take(pa.array(numbers[in_overlay] - len(self.base)))
        # Two gathers, concatenated; `order` is the inverse of the permutation that split them.
        order = np.argsort(np.argsort(in_overlay, kind="stable"), kind="stable")
        return pa.concat_arrays([self.base.take(numbers[~in_overlay]), overlay]).take(
            pa.array(order)
        )


NO_POLICY = -1
"""The policy id of a name that has subscriptions and no subscriber."""


def _refuse(reason: str) -> Never:
    raise InvalidPolicy(reason)


class PolicyForms(NamedTuple):
    """Policies as JSON text, and the function that reports an invalid one."""

    texts: Sequence[str]
    refuse: Callable[[str], Never] = _refuse

    def policies(self) -> list[Policy]:
        """Return the policies."""
        try:
            return [loads_policy(parsed(text.encode())) for text in self.texts]
        except (TidingsError, ValueError) as error:
            self.refuse(f"a policy cannot be read: {error}")


class SubscriberTable:
    """Names in order, each with its hash and the id of its policy; and later changes by name.

    `changed` maps a name to its present policy, or to None if the subscriber is gone. `paused` has
    the names that are paused at present. Rows and their numbers stay those of the base.
    """

    def __init__(
        self,
        names: StringTable,
        hashes: UInt32s,
        by_hash: Int32s,
        policy_ids: Int32s,
        forms: PolicyForms,
        paused: Int32s,
    ) -> None:
        self.names, self.hashes, self.policy_ids = names, hashes, policy_ids
        self._by_hash, self._forms = by_hash, forms
        self._paused_rows = paused
        self.changed: dict[str, Policy | None] = {}
        self.paused = {names[row] for row in paused.tolist()}

    @classmethod
    def of(cls, names: Sequence[str], subscribers: Sequence[Subscriber]) -> "SubscriberTable":
        """Return a table whose first names are those of the subscribers; the rest have none."""
        ids: dict[Policy, int] = {}
        # Most subscribers share an object, whose hash takes microseconds.
        by_identity = {id(subscriber.policy): subscriber.policy for subscriber in subscribers}
        numbers = {place: ids.setdefault(one, len(ids)) for place, one in by_identity.items()}
        policy_ids = [numbers[id(subscriber.policy)] for subscriber in subscribers]
        hashes = hashes_of(names)
        return cls(
            StringTable.of(names),
            hashes,
            np.argsort(hashes, kind="stable").astype(np.int32),
            np.array(policy_ids + [NO_POLICY] * (len(names) - len(policy_ids)), np.int32),
            PolicyForms([json.dumps(policy.to_dict()) for policy in ids]),
            np.flatnonzero([subscriber.paused for subscriber in subscribers]).astype(np.int32),
        )

    def write(self, writer: Writer) -> None:
        """Write the columns of the base."""
        writer.texts("names", self.names.column)
        writer.array("hashes", self.hashes)
        writer.array("by_hash", self._by_hash)
        writer.array("held", self.policy_ids)
        writer.texts("policies", self._forms.texts)
        writer.array("paused", self._paused_rows)

    @classmethod
    def read(cls, reader: Reader) -> "SubscriberTable":
        """Return the table of a file; its policies are parsed on first use."""
        names = StringTable(reader.texts("names"))
        hashes = reader.array("hashes", np.uint32, len(names))
        by_hash = reader.numbers("by_hash", len(names), len(names))
        forms = PolicyForms(reader.texts("policies").strings().to_pylist(), reader.refuse)
        policy_ids = reader.numbers("held", len(names), len(forms.texts), NO_POLICY)
        paused = reader.array("paused", np.int32)
        reader.within_bounds("paused", paused, len(names))
        return cls(names, hashes, by_hash, policy_ids, forms, paused)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def policies(self) -> list[Policy]:
        """The distinct policies, by id."""
        return self._forms.policies()

    def flags(self, test: Callable[[Policy], bool]) -> Bools:
        """Return for each row whether its policy passes a test; False without a policy."""
        # NO_POLICY is -1, so it reads the value appended last; `numbers` relies on this too.
        return np.array([*map(test, self.policies), False], np.bool_)[self.policy_ids]

    def numbers(self, of: Callable[[Policy | None], Sequence[int]]) -> Int64s:
        """Return for each row some numbers that depend on its policy, which may be None."""
        return np.array([*map(of, self.policies), of(None)], np.int64)[self.policy_ids]

    def find(self, name: str) -> int:
        """Return the row of a name, or -1. O(log n)."""
        key = np.uint32(hash_of(name))
        first = int(np.searchsorted(self.hashes, key, "left", sorter=self._by_hash))
        last = int(np.searchsorted(self.hashes, key, "right", sorter=self._by_hash))
        same_name = (int(row) for row in self._by_hash[first:last] if self.names[row] == name)
        return next(same_name, -1)

    @cached_property
    def _sorted_hashes(self) -> UInt32s:
        """The hashes in ascending order, made with the first search for many names."""
        return self.hashes[self._by_hash]

    def _find_many(self, names: Sequence[str]) -> Int64s:
        """Return the row of each name, or -1, by one search for all of them."""
        if not len(self):
            return np.full(len(names), -1)
        keys = hashes_of(names)
        first = np.searchsorted(self._sorted_hashes, keys, "left")
        last = np.searchsorted(self._sorted_hashes, keys, "right")
        rows = self._by_hash[np.minimum(first, len(self) - 1)].astype(np.int64)
        pairs = zip(self.names.take(rows).to_pylist(), names, strict=True)
        rows[~np.fromiter((name == sought for name, sought in pairs), np.bool_, len(names))] = -1
        for place in np.flatnonzero(last - first > 1).tolist():  # equal hashes are rare
            rows[place] = self.find(names[place])
        return rows

    def apply(self, bundles: Sequence[SubscriberBundle]) -> None:
        """Replace subscribers by name; a bundle without one has no policy and is not paused."""
        for bundle in bundles:
            self.changed[bundle.name] = bundle.subscriber.policy if bundle.subscriber else None
            self.paused.discard(bundle.name)
            if bundle.subscriber and bundle.subscriber.paused:
                self.paused.add(bundle.name)

    def policy(self, name: str) -> Policy | None:
        """Return the present policy of a subscriber, or None if there is no such subscriber."""
        if name in self.changed:
            return self.changed[name]
        row = self.find(name)
        policy_id = NO_POLICY if row < 0 else int(self.policy_ids[row])
        return None if policy_id == NO_POLICY else self.policies[policy_id]

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        """Return the policy of each name, at a tenth of the cost of as many calls of `policy`."""
        rows = self._find_many(names)
        ids = np.where(rows < 0, NO_POLICY, self.policy_ids[rows] if len(self) else NO_POLICY)
        policies = [*self.policies, None]  # NO_POLICY is -1
        by_position = [policies[policy_id] for policy_id in ids.tolist()]
        if self.changed:
            pairs = zip(names, by_position, strict=True)
            return [self.changed.get(name, policy) for name, policy in pairs]
        return by_position


def hash_of(name: str) -> int:
    """Return the hash of a name, the same in every process."""
    return crc32(name.encode())


def hashes_of(names: Sequence[str]) -> UInt32s:
    """Return the hash of each name."""
    return np.array([hash_of(name) for name in names], np.uint32)
