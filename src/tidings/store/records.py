"""Records of the catalogue: subscribers and subscriptions in their JSON forms."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidings.errors import InvalidForm, StoreError, shown
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.formats.json_text import read_json
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Subscription
from tidings.policy import Subscriber
from tidings.store.protocol import Row, check_id

_LOG: Final = logging.getLogger(__name__)
Record = Subscriber | Subscription

SUBSCRIBER: Final = "subscriber"
SUBSCRIPTION: Final = "subscription"
KINDS: Final = (SUBSCRIBER, SUBSCRIPTION)


@dataclass(frozen=True)
class CatalogueEntry:
    """A record as of a version. Without a form, it was removed by that version."""

    version: int
    kind: str
    id: str
    form: Mapping[str, Any] | None = field(hash=False)
    damage: str | None = None
    """Why the stored form cannot be read; `form` is then a placeholder that no reader accepts."""

    @property
    def record(self) -> Record | None:
        """The subscriber or subscription itself; parsing its condition takes 20 us or more."""
        return self.load()

    def load(self, limits: Limits = TRUSTED) -> Record | None:
        """Parse the subscriber or subscription within limits."""
        if self.damage is not None:
            raise InvalidForm(f"{self.kind} {self.id}: its form in the store {self.damage}")
        if self.form is None:
            return None
        loads = loads_subscriber if self.kind == SUBSCRIBER else loads_subscription
        return loads(self.form, limits)


def read_entry(version: int, kind: str, name: str, text: str | None) -> CatalogueEntry:
    """Return the entry of a row; a damaged form is noted in it, and does not affect others."""
    try:
        form = text if text is None else read_json(text)
    except InvalidForm as error:
        return _placeholder(version, kind, name, f"is not JSON: {error}")
    if form is not None and not isinstance(form, dict):
        return _placeholder(version, kind, name, "is not a JSON object")
    return CatalogueEntry(version, kind, name, form)


def _placeholder(version: int, kind: str, name: str, damage: str) -> CatalogueEntry:
    return CatalogueEntry(version, kind, name, {"id": name, "damage": damage}, damage)


def read_entries(rows: Iterable[Row]) -> Iterator[CatalogueEntry]:
    """Yield the entries of rows; a row with cells of wrong types is logged and skipped."""
    for row in rows:
        version, kind, name, _ = row
        if isinstance(version, int) and isinstance(name, str) and kind in KINDS:
            yield read_entry(*row)
        else:
            _LOG.warning("skipping a damaged record of a store: %s", shown(row))


@dataclass(frozen=True)
class Draft:
    """A record to write to the catalogue or, without a form, to remove from it."""

    kind: str
    id: str
    subscriber: str
    form: str | None


def make_draft(value: Record | Mapping[str, Any]) -> Draft:
    """Check a record or its form and return it as text; equal records have equal text."""
    record = value if isinstance(value, Subscriber | Subscription) else _load_record(value)
    check_id("an id in a store", record.id)
    form = json.dumps(record.to_dict(), separators=(",", ":"))
    if isinstance(record, Subscriber):
        return Draft(SUBSCRIBER, record.id, record.id, form)
    return Draft(SUBSCRIPTION, record.id, check_id("a subscriber", record.subscriber), form)


def _load_record(form: object) -> Record:
    if not isinstance(form, Mapping):
        raise InvalidForm(f"the form of a record is an object with named fields, not {shown(form)}")
    return loads_subscription(form) if "subscriber" in form else loads_subscriber(form)


def check_kind(value: str) -> str:
    """Return the kind of a record if it is valid."""
    validate.choice("the kind of a record", value, KINDS, StoreError)
    return value
