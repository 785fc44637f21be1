"""Reads the members of a source; what cannot be read is passed over, kept and told."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from tidings.errors import InvalidForm, TidingsError
from tidings.formats.arrow_by_row import DeadLetter
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.index_files.default_policies import Defaults
from tidings.index_files.subscriber_bundle import Member, members
from tidings.model.records import Subscription
from tidings.policy import Subscriber

_LOG: Final = logging.getLogger(__name__)
Form = Mapping[str, Any]


class Entry(Protocol):
    """A record of a catalogue: a subscriber or a subscription by its form."""

    @property
    def form(self) -> Form | None: ...


class Records:
    """What is read of a source. `refused` has, by their ids, the records without which it is."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self.refused: dict[str, DeadLetter] = {}

    def read(self, entries: Iterable[Entry], wanted: Callable[[str], bool]) -> list[Member]:
        """Read all that there is now of those who are wanted; other entries are passed over.

        A condition takes some 20 us, 0.3 ms where it needs a parser.
        """
        people, owned, refused = list[Subscriber](), list[Subscription](), dict[str, DeadLetter]()
        for entry in entries:
            form = entry.form or {}
            if wanted(_owner(form)):
                try:
                    _check_whole(entry)
                    if "subscriber" in form:
                        owned.append(loads_subscription(form, self._defaults.limits))
                    else:
                        people.append(loads_subscriber(form, self._defaults.limits))
                except TidingsError as error:
                    refused[str(form.get("id"))] = DeadLetter(form, str(error))
        self._note(refused, wanted)
        return [self._enrolled(each) for each in members(people, owned)]

    def _note(self, refused: Mapping[str, DeadLetter], wanted: Callable[[str], bool]) -> None:
        """Forget what was refused of those who are read again, and tell what is new."""
        for name, letter in refused.items():
            if self.refused.get(name) != letter:
                _LOG.warning("the record %s is passed over: %s", name, letter.reason)
        kept = {
            name: each for name, each in self.refused.items() if not wanted(_owner(each.record))
        }
        self.refused = kept | dict(refused)

    def _enrolled(self, member: Member) -> Member:
        policy = self._defaults.policy(member.name) if member.subscriber is None else None
        if policy is None:
            return member
        return replace(member, subscriber=Subscriber(member.name, policy))


def _check_whole(entry: Entry) -> None:
    """Refuse an entry whose form is a stand-in for what its source cannot read."""
    damage = getattr(entry, "damage", None)
    if damage is not None:
        raise InvalidForm(f"what the store holds of it {damage}")


def _owner(form: Form) -> str:
    return str(form.get("subscriber", form.get("id")))
