"""Records of the catalogue: subscribers and subscriptions by their forms."""

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
    """A record as it stands since a version. Without a form: it was removed by that version."""

    version: int
    kind: str
    id: str
    form: Mapping[str, Any] | None = field(hash=False)
    damage: str | None = None
    """Why the form that is stored cannot be read; `form` is a stand-in that no reader takes."""

    @property
    def record(self) -> Record | None:
        """The subscriber or subscription itself; reading its condition takes 20 us or more."""
        return self.load()

    def load(self, limits: Limits = TRUSTED) -> Record | None:
        """Read the subscriber or subscription within limits."""
        if self.damage is not None:
            raise InvalidForm(f"{self.kind} {self.id}: what the store holds of it {self.damage}")
        if self.form is None:
            return None
        loads = loads_subscriber if self.kind == SUBSCRIBER else loads_subscription
        return loads(self.form, limits)


def read_entry(version: int, kind: str, name: str, form: str | None) -> CatalogueEntry:
    """Make an entry of a row; a form that is damaged says so, and does not stop the others."""
    try:
        found = form if form is None else read_json(form)
    except (InvalidForm, TypeError) as error:
        return _stand_in(version, kind, name, f"is no JSON: {error}")
    if found is not None and not isinstance(found, dict):
        return _stand_in(version, kind, name, "is no object with named fields")
    return CatalogueEntry(version, kind, name, found)


def _stand_in(version: int, kind: str, name: str, damage: str) -> CatalogueEntry:
    return CatalogueEntry(version, kind, name, {"id": name, "damage": damage}, damage)


def read_entries(rows: Iterable[Row]) -> Iterator[CatalogueEntry]:
    """Make entries of rows; one whose cells are of other types than a store has is passed over."""
    for row in rows:
        version, kind, name, _ = row
        if isinstance(version, int) and isinstance(name, str) and kind in KINDS:
            yield read_entry(*row)
        else:
            _LOG.warning("a damaged record of a store is passed over: %s", shown(row))


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
    check_id("an id in a store", record.id)
    form = json.dumps(record.to_dict(), separators=(",", ":"))
    if isinstance(record, Subscriber):
        return Draft(SUBSCRIBER, record.id, record.id, form)
    return Draft(SUBSCRIPTION, record.id, check_id("a subscriber", record.subscriber), form)


def _loads(form: object) -> Record:
    if not isinstance(form, Mapping):
        raise InvalidForm(f"the form of a record is an object with named fields, not {shown(form)}")
    return loads_subscription(form) if "subscriber" in form else loads_subscriber(form)


def check_kind(value: str) -> str:
    """Check the kind of a record."""
    validate.choice("the kind of a record", value, KINDS, StoreError)
    return value
