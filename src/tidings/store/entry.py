"""Records of the catalogue: subscribers and subscriptions by their forms."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidings import checks
from tidings.errors import InvalidForm, StoreError
from tidings.forms import loads_subscriber, loads_subscription
from tidings.model import Subscription
from tidings.policy import Subscriber
from tidings.store.protocol import limited

Record = Subscriber | Subscription

SUBSCRIBER: Final = "subscriber"
SUBSCRIPTION: Final = "subscription"
KINDS: Final = (SUBSCRIBER, SUBSCRIPTION)


@dataclass(frozen=True)
class Entry:
    """A record as it stands since a version. Without a form: it was removed by that version."""

    version: int
    kind: str
    id: str
    form: Mapping[str, Any] | None = field(hash=False)

    @property
    def record(self) -> Record | None:
        """The subscriber or subscription itself; reading its condition takes 20 us or more."""
        if self.form is None:
            return None
        loads = loads_subscriber if self.kind == SUBSCRIBER else loads_subscription
        return loads(self.form)


def read_entry(version: int, kind: str, name: str, form: str | None) -> Entry:
    """Make an entry of a row."""
    return Entry(version, kind, name, form if form is None else json.loads(form))


@dataclass(frozen=True)
class Draft:
    """A record on its way into the catalogue; without a form, on its way out."""

    kind: str
    id: str
    subscriber: str
    form: str | None


def draft(given: Record | Mapping[str, Any]) -> Draft:
    """Check a record or its form, and write it down; equal records are written equally."""
    record = given if isinstance(given, Subscriber | Subscription) else _loads(given)
    limited("an id in a store", record.id)
    form = json.dumps(record.to_dict(), separators=(",", ":"))
    if isinstance(record, Subscriber):
        return Draft(SUBSCRIBER, record.id, record.id, form)
    return Draft(SUBSCRIPTION, record.id, limited("a subscriber", record.subscriber), form)


def _loads(form: object) -> Record:
    if not isinstance(form, Mapping):
        raise InvalidForm(f"the form of a record is an object with named fields, not {form!r}")
    return loads_subscription(form) if "subscriber" in form else loads_subscriber(form)


def kind_of(value: str) -> str:
    """Check the kind of a record."""
    checks.choice("the kind of a record", value, KINDS, StoreError)
    return value
