"""A store as plain dicts and lists, written from the definitions; it shares nothing with stores."""

from dataclasses import dataclass, field
from typing import Any

from tidings import Delivery

Form = dict[str, Any]
Key = tuple[str, str]


@dataclass
class ModelStore:
    log: list[tuple[str, str, Form | None]] = field(default_factory=list)
    compacted: int = 0
    pins: dict[str, tuple[int, int]] = field(default_factory=dict)
    batches: dict[tuple[str, int], tuple[int, int, int, int]] = field(default_factory=dict)
    inboxes: dict[str, list[Delivery | None]] = field(default_factory=dict)
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    letters: list[list[Any]] = field(default_factory=list)

    def at(self, version: int) -> dict[Key, Form]:
        """Return the records after the log was applied up to a version."""
        current: dict[Key, Form] = {}
        for kind, name, form in self.log[:version]:
            if form is None:
                del current[kind, name]
            else:
                current[kind, name] = form
        return current

    @property
    def version(self) -> int:
        return len(self.log)

    @property
    def now(self) -> dict[Key, Form]:
        return self.at(self.version)

    def write(self, kind: str, form: Form) -> None:
        if self.now.get((kind, form["id"])) != form:
            self.log.append((kind, form["id"], form))

    def remove(self, kind: str, name: str) -> bool:
        if (kind, name) not in self.now:
            return False
        if kind == "subscriber":
            for (_, owned), form in sorted(self.now.items()):
                if form.get("subscriber") == name:
                    self.log.append(("subscription", owned, None))
        self.log.append((kind, name, None))
        return True

    def compact(self, before: int) -> int:
        pinned = [version for _, version in self.pins.values()]
        self.compacted = max(self.compacted, min([before, self.version, *pinned]))
        return self.compacted

    def append(
        self, query: str, batch: int, deliveries: list[Delivery], late: list[Any], dead: list[Any]
    ) -> tuple[int, int, int, int]:
        if (query, batch) in self.batches:
            return self.batches[query, batch]
        new = 0
        for delivery in deliveries:
            if (delivery.subscriber, delivery.event) not in self.keys:
                self.keys[delivery.subscriber, delivery.event] = delivery.delivered_us
                self.inboxes.setdefault(delivery.subscriber, []).append(delivery)
                new += 1
        for kind, records in (("late", late), ("dead", dead)):
            self.letters += [[kind, record, False] for record in records]
        self.batches[query, batch] = (new, len(deliveries) - new, len(late), len(dead))
        return self.batches[query, batch]

    def prune(self, before_us: int, forget_us: int | None) -> int:
        dropped = 0
        for inbox in self.inboxes.values():
            for place, delivery in enumerate(inbox):
                if delivery is not None and delivery.delivered_us < before_us:
                    inbox[place] = None
                    dropped += 1
        kept = {(d.subscriber, d.event) for i in self.inboxes.values() for d in i if d}
        for key, at_us in list(self.keys.items()):
            if forget_us is not None and at_us < forget_us and key not in kept:
                del self.keys[key]
        return dropped

    def delivered(self, subscriber: str) -> list[tuple[int, str, int]]:
        inbox = enumerate(self.inboxes.get(subscriber, []), start=1)
        return [(number, d.event, d.delivered_us) for number, d in inbox if d]

    def waiting(self, kind: str) -> list[list[Any]]:
        return [letter for letter in self.letters if letter[0] == kind and not letter[2]]
