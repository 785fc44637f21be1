"""The channel of a person: an address, the deliveries that go there, and the times."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import time
from typing import Any, Final
from unicodedata import normalize

from tidings.channels.webhook_target import TargetRules, read_url
from tidings.errors import InvalidForm, InvalidPolicy, TidingsError, prefix_errors, shown
from tidings.formats.json_forms import fields
from tidings.model import calendar, validate
from tidings.model.records import Delivery

MAIL: Final = "mail"
SLACK: Final = "slack"
TEAMS: Final = "teams"
CHATS: Final = (SLACK, TEAMS)
KINDS: Final = (MAIL, *CHATS)
AT_ONCE: Final = "delivery"
HOURLY: Final = "hour"
DAILY: Final = "day"
EVERY: Final = (AT_ONCE, HOURLY, DAILY)
_MORNING: Final = "08:00"
_OPTIONAL: Final = (
    "id",
    "label",
    "zone",
    "every",
    "at",
    "days",
    "min_rank",
    "below_rank",
    "interests",
)
_LABEL_CHARACTERS: Final = 100
_MOST_INTERESTS: Final = 100
_ADDRESS_BYTES: Final = 254
_ATOM: Final = r"[\w!#$%&'*+/=?^{|}~\u00a0-\U0010ffff-]+"
_LOCAL: Final = re.compile(rf"{_ATOM}(\.{_ATOM})*", re.ASCII)
_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"({_LABEL}\.)*{_LABEL}")


@dataclass(frozen=True)
class PersonChannel:
    """A channel of a person: its kind and address, which deliveries it takes, and when they go.

    `every` delivery goes at once; those of an `hour` go together at its end; those of a `day` at
    local times of a `zone`, on all days or some. It takes ranks of at least `min_rank` and below
    `below_rank`, of some `interests` if they are named.
    """

    kind: str
    address: str = field(repr=False)
    label: str = ""
    zone: str = "UTC"
    every: str = DAILY
    at: tuple[str, ...] = (_MORNING,)
    days: tuple[str, ...] = calendar.DAYS
    min_rank: float = 0.0
    below_rank: float | None = None
    interests: tuple[str, ...] = ()

    @classmethod
    def load(cls, form: Mapping[str, Any], rules: TargetRules) -> "PersonChannel":
        """Read the form of a channel; chats may be where webhooks may."""
        values = fields(form, "the channel", ("kind", "address"), _OPTIONAL)
        values.pop("id", None)
        validate.choice("kind", values["kind"], KINDS, InvalidForm)
        values["address"] = read_address(values["kind"], values["address"], rules)
        values.setdefault("every", DAILY if values["kind"] == MAIL else AT_ONCE)
        validate.choice("every", values["every"], EVERY, InvalidForm)
        if values["every"] != DAILY and {"at", "days"} & values.keys():
            raise InvalidForm("`at` and `days` belong to every day; leave them out")
        with prefix_errors("", InvalidPolicy, InvalidForm):
            _read_times(values)
        _read_route(values)
        return cls(**values)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "PersonChannel":
        """Return the channel that a store has; its address was checked when it was written."""
        try:
            given = {name: value for name, value in settings["person"].items() if value is not None}
            if not isinstance(given["address"], str):
                raise TypeError
            validate.choice("kind", given["kind"], KINDS, InvalidForm)
            validate.choice("every", given["every"], EVERY, InvalidForm)
            _read_times(given)
            _read_route(given)
            return cls(**given)
        except (AttributeError, LookupError, TypeError, TidingsError):
            # What is wrong with it may show an address.
            raise InvalidForm(
                "the store holds a damaged channel; remove it, and add it again"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the form."""
        return asdict(self)

    def takes(self, delivery: Delivery) -> bool:
        """Return whether a delivery is for this channel."""
        is_below = self.below_rank is None or delivery.rank < self.below_rank
        is_wanted = not self.interests or bool(set(self.interests) & set(delivery.matched))
        return delivery.rank >= self.min_rank and is_below and is_wanted

    def due_us(self, first: Delivery, last_us: int | None, now_us: int) -> int:
        """Return when a message with this first delivery is due, after a message at `last_us`.

        At the end of the period in which it was delivered; but there is one message in a period.
        """
        periods = self._periods()
        if periods is None:
            return now_us
        due_us = periods.period(min(first.delivered_us, now_us)).end
        if last_us is not None:
            due_us = max(due_us, periods.period(min(last_us, now_us)).end)
        return due_us

    def _periods(self) -> calendar.Calendar | None:
        if self.every == AT_ONCE:
            return None
        if self.every == HOURLY:
            return calendar.hours(self.zone)
        return calendar.LocalPeriods(self.zone, tuple(map(time.fromisoformat, self.at)), self.days)


def _read_times(values: dict[str, Any]) -> None:
    if "zone" in values:
        values["zone"] = calendar.read_zone("zone", values["zone"])
    if "days" in values:
        values["days"] = calendar.read_days("days", values["days"])
    if "at" in values:
        values["at"] = calendar.read_times("at", values["at"]) or (_MORNING,)


def _read_route(values: dict[str, Any]) -> None:
    label = values.setdefault("label", "")
    if not isinstance(label, str) or len(label) > _LABEL_CHARACTERS:
        raise InvalidForm(f"`label` is a text of at most {_LABEL_CHARACTERS} characters")
    for name in ("min_rank", "below_rank"):
        if name in values:
            values[name] = validate.number(name, values[name], InvalidForm)
    low, below = values.get("min_rank", 0.0), values.get("below_rank")
    if below is not None and below <= low:
        raise InvalidForm(f"below_rank {below:g} is not above min_rank {low:g}")
    if "interests" in values:
        names = validate.listed(values["interests"], _MOST_INTERESTS)
        if names is None or len(names) > _MOST_INTERESTS:
            raise InvalidForm(f"`interests` lists at most {_MOST_INTERESTS} ids of subscriptions")
        values["interests"] = tuple(
            validate.name("an id in `interests`", name, InvalidForm) for name in names
        )


def read_address(kind: str, value: object, rules: TargetRules) -> str:
    """Return an address of a kind: a mailbox, or the URL of a chat's webhook.

    Anyone who knows that URL can write to the chat, so errors do not show it.
    """
    if kind == MAIL:
        return read_mail_address(value)
    try:
        return str(read_url(value, rules))
    except InvalidForm as error:
        if shown(value) not in str(error):
            raise
    raise InvalidForm(
        "the address of a chat is the URL of its webhook, http:// or https:// with a host, without "
        "a user or a fragment; this one is not, and is not shown"
    )


def read_mail_address(value: object) -> str:
    """Return the address of a mailbox, which may have letters of any language.

    >>> read_mail_address("Ada.Lovelace+films@Bücher.example")
    'Ada.Lovelace+films@xn--bcher-kva.example'
    >>> read_mail_address("jörg@example.org")
    'jörg@example.org'
    """
    if isinstance(value, str) and len(value) <= _ADDRESS_BYTES:
        local, at, domain = value.rpartition("@")
        try:
            ascii_domain = domain.encode("idna").decode().lower()
        except UnicodeError:
            ascii_domain = ""
        local = normalize("NFC", local)
        size = len(local.encode(errors="replace"))
        # Characters that are not printable, such as marks of direction, could hide what it says.
        fits = size <= 64 and size + len(ascii_domain) < _ADDRESS_BYTES and local.isprintable()
        if at and fits and _LOCAL.fullmatch(local) and _DOMAIN.fullmatch(ascii_domain):
            return f"{local}@{ascii_domain}"
    raise InvalidForm(f"a mail address is written name@example.org, not {shown(value)}")
