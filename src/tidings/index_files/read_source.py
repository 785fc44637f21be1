"""Subscribers read from a source; a record that cannot be read is skipped, kept and logged."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, Protocol

from tidings.errors import InvalidForm, TidingsError
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.index_files.manifest import RefusedRecord
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.model.dead_letter import DeadLetter
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Subscription
from tidings.policy import DEFAULT_POLICY, Policy, Subscriber

_LOG: Final = logging.getLogger(__name__)
_FINGERPRINT_BYTES: Final = 8
_LISTED: Final = 1_000
SUBSCRIBER: Final = "subscriber"
SUBSCRIPTION: Final = "subscription"
RecordForm = Mapping[str, Any]


@dataclass(frozen=True)
class Defaults:
    """The settings that a publisher adds to its source.

    An owner of subscriptions that is not a subscriber of the source gets its policy in `named`, or
    else the policy `others`; None means no policy, as does a subscriber that is refused. Records
    beyond the `limits` are refused.
    """

    named: Mapping[str, Policy] = field(default_factory=dict, hash=False)
    others: Policy | None = DEFAULT_POLICY
    limits: Limits = TRUSTED

    def policy(self, name: str) -> Policy | None:
        """Return the default policy of an owner, or None if it has none."""
        return self.named.get(name, self.others)

    def fingerprint(self, source: str) -> int:
        """Return a number that differs for another source, other policies or other limits."""
        named = {name: policy.to_dict() for name, policy in self.named.items()}
        others = self.others.to_dict() if self.others else None
        limits = [] if self.limits == TRUSTED else [asdict(self.limits)]
        text = json.dumps([source, named, others, *limits], sort_keys=True)
        return int.from_bytes(blake2b(text.encode(), digest_size=_FINGERPRINT_BYTES).digest())


class SourceRecord(Protocol):
    """A record of a catalogue: the JSON form of a subscriber or of a subscription."""

    @property
    def form(self) -> RecordForm | None: ...


class SourceReader:
    """Turns records into bundles. `refused` has the records that were skipped, by id."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self.refused: dict[str, DeadLetter] = {}

    def read(
        self, records: Iterable[SourceRecord], selects: Callable[[str], bool]
    ) -> list[SubscriberBundle]:
        """Return the bundles of the selected owners; the records must hold all that they have.

        Records of other owners are ignored. A condition takes about 20 us, or 0.3 ms if it needs
        the full parser.
        """
        subscribers, subscriptions = list[Subscriber](), list[Subscription]()
        refused = dict[str, DeadLetter]()
        for record in records:
            form = record.form or {}
            if selects(_owner(form)):
                try:
                    _check_undamaged(record)
                    if _kind(form) == SUBSCRIPTION:
                        subscriptions.append(loads_subscription(form, self._defaults.limits))
                    else:
                        subscribers.append(loads_subscriber(form, self._defaults.limits))
                except TidingsError as error:
                    refused[str(form.get("id"))] = DeadLetter(form, str(error))
        self._note(refused, selects)
        lost = {name for name, letter in refused.items() if _kind(letter.record) == SUBSCRIBER}
        bundles = bundle_subscribers(subscribers, subscriptions)
        return [
            bundle if bundle.subscriber or bundle.name in lost else self._with_default(bundle)
            for bundle in bundles
        ]

    def listed(self) -> tuple[RefusedRecord, ...]:
        """Return the first of the refused records, in order of id, as a manifest lists them."""
        letters = sorted(self.refused.items())[:_LISTED]
        return tuple(
            RefusedRecord(_kind(letter.record), name, _owner(letter.record), letter.reason)
            for name, letter in letters
        )

    def resume(self, listed: Iterable[RefusedRecord]) -> None:
        """Go on from the refused records of a manifest; later reads replace those of owners."""
        for record in listed:
            owner = {"subscriber": record.owner} if record.kind == SUBSCRIPTION else {}
            form = {"id": record.id, **owner}
            self.refused.setdefault(record.id, DeadLetter(form, record.reason))

    def _note(self, refused: Mapping[str, DeadLetter], selects: Callable[[str], bool]) -> None:
        """Replace the refused records of the owners just read, and log the new ones."""
        for name, letter in refused.items():
            if self.refused.get(name) != letter:
                _LOG.warning("skipping the record %s: %s", name, letter.reason)
        of_other_owners = {
            name: letter
            for name, letter in self.refused.items()
            if not selects(_owner(letter.record))
        }
        self.refused = of_other_owners | dict(refused)

    def _with_default(self, bundle: SubscriberBundle) -> SubscriberBundle:
        policy = self._defaults.policy(bundle.name)
        return replace(bundle, subscriber=Subscriber(bundle.name, policy)) if policy else bundle


def _check_undamaged(record: SourceRecord) -> None:
    """Refuse a record whose form is a placeholder for one that its source cannot read."""
    damage = getattr(record, "damage", None)
    if damage is not None:
        raise InvalidForm(f"its form in the store {damage}")


def _kind(form: RecordForm) -> str:
    return SUBSCRIPTION if "subscriber" in form else SUBSCRIBER


def _owner(form: RecordForm) -> str:
    return str(form.get("subscriber", form.get("id")))
