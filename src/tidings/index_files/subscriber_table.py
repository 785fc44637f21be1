"""Table of the subscribers of one part of a version: names, hashes and policies.

The columns are those of a base file, which is mapped and never changes. Policies that changed since
the base was written are kept beside it in a dict, like a memtable before its segment.
"""

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, Never
from zlib import crc32

import numpy as np

from tidings.compiled.array_file import Reader, Writer, parsed
from tidings.compiled.array_types import Bools, Int32s, Int64s, UInt32s
from tidings.errors import InvalidPolicy, TidingsError
from tidings.formats.json_forms import loads_policy
from tidings.index_files.string_table import Texts
from tidings.index_files.subscriber_bundle import Member
from tidings.policy import Policy, Subscriber

NOBODY = -1
"""The policy of a name that has subscriptions and no subscriber."""


def _refuse(why: str) -> Never:
    raise InvalidPolicy(why)


class Forms(NamedTuple):
    """Policies as JSON text, and who refuses those that are none."""

    texts: Sequence[str]
    refuse: Callable[[str], Never] = _refuse

    def policies(self) -> list[Policy]:
        """Return the policies."""
        try:
            return [loads_policy(parsed(text.encode())) for text in self.texts]
        except (TidingsError, ValueError) as error:
            self.refuse(f"a policy cannot be read: {error}")


class SubscriberTable:
    """Names in order, each with its hash and the number of its policy; and later changes by name.

    `changed` maps a name to its present policy, or to None if the subscriber is gone. Rows and
    their numbers stay those of the base.
    """

    def __init__(
        self, names: Texts, hashes: UInt32s, by_hash: Int32s, held: Int32s, forms: Forms
    ) -> None:
        self.names, self.hashes, self.held = names, hashes, held
        self._by_hash, self._forms = by_hash, forms
        self.changed: dict[str, Policy | None] = {}

    @classmethod
    def of(cls, names: Sequence[str], subscribers: Sequence[Subscriber]) -> "SubscriberTable":
        """Note the first names as those of the subscribers; the others are nobody's."""
        numbers: dict[Policy, int] = {}
        held = [numbers.setdefault(each.policy, len(numbers)) for each in subscribers]
        hashes = hashes_of(names)
        return cls(
            Texts.of(names),
            hashes,
            np.argsort(hashes, kind="stable").astype(np.int32),
            np.array(held + [NOBODY] * (len(names) - len(held)), np.int32),
            Forms([json.dumps(each.to_dict()) for each in numbers]),
        )

    def write(self, writer: Writer) -> None:
        """Add everybody to a file."""
        writer.texts("names", self.names.column)
        writer.array("hashes", self.hashes)
        writer.array("by_hash", self._by_hash)
        writer.array("held", self.held)
        writer.texts("policies", self._forms.texts)

    @classmethod
    def read(cls, reader: Reader) -> "SubscriberTable":
        """Return the people of a file; a policy is read when it is first asked for."""
        names = Texts(reader.texts("names"))
        hashes = reader.array("hashes", np.uint32, len(names))
        by_hash = reader.numbers("by_hash", len(names), len(names))
        forms = Forms(reader.texts("policies").strings().to_pylist(), reader.refuse)
        held = reader.numbers("held", len(names), len(forms.texts), NOBODY)
        return cls(names, hashes, by_hash, held, forms)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def policies(self) -> list[Policy]:
        """The distinct policies, by number."""
        return self._forms.policies()

    def flags(self, test: Callable[[Policy], bool]) -> Bools:
        """Tell of each person whether its policy passes a test; nobody's does not."""
        found = np.array([*map(test, self.policies), False], np.bool_)
        return found[self.held]  # the last one is nobody's

    def numbers(self, of: Callable[[Policy | None], Sequence[int]]) -> Int64s:
        """Give of each person some numbers of its policy, or of none."""
        return np.array([*map(of, self.policies), of(None)], np.int64)[self.held]

    def find(self, name: str) -> int:
        """Give the number of a name, or -1. O(log n)."""
        hashed = np.uint32(hash_of(name))
        first = int(np.searchsorted(self.hashes, hashed, "left", sorter=self._by_hash))
        last = int(np.searchsorted(self.hashes, hashed, "right", sorter=self._by_hash))
        found = (int(each) for each in self._by_hash[first:last] if self.names[each] == name)
        return next(found, -1)

    def apply(self, changed: Sequence[Member]) -> None:
        """Replace the policies of members by name; a member without a subscriber has none."""
        for member in changed:
            self.changed[member.name] = member.subscriber.policy if member.subscriber else None

    def policy(self, name: str) -> Policy | None:
        """Return the present policy of a subscriber, or None if there is no such subscriber."""
        if name in self.changed:
            return self.changed[name]
        number = self.find(name)
        held = NOBODY if number < 0 else int(self.held[number])
        return None if held == NOBODY else self.policies[held]


def hash_of(name: str) -> int:
    """Give the hash of a name, the same in every process."""
    return crc32(name.encode())


def hashes_of(names: Sequence[str]) -> UInt32s:
    """Give the hash of each name."""
    return np.array([hash_of(name) for name in names], np.uint32)
