"""Events, subscriptions, matches and deliveries: frozen, and validated when they are created."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeVar

from tidings.errors import InvalidEvent, InvalidForm, InvalidSubscription, TidingsError, shown
from tidings.model import validate
from tidings.model.conditions.parser import (
    check_condition,
    parse,
    parse_predicate,
    render,
    render_predicate,
)
from tidings.model.conditions.predicate import Condition, Predicate, TokenMap
from tidings.model.content import Content, read_content
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.values import (
    SECOND_US,
    Value,
    attribute_value,
    format_time,
    parse_time_us,
    plain,
    tokens,
)

T = TypeVar("T")
State = Literal["active", "inactive", "dead"]
_MOST_SCORE: Final = 1e100
_MOST_WEIGHT: Final = 1e50
"""The scorer `graph` divides weights; quotients are at most 1e100, too."""
_LARGEST_PLAIN: Final = 1e300
STATES: Final = ("active", "inactive", "dead")
LAST_SEQUENCE: Final = (1 << 61) - 1
"""The largest sequence number; windows add their lengths to it in 64 bits."""


class PublicationTime(NamedTuple):
    """A time of publication, in microseconds, and in seconds as it was written if that is known."""

    us: int
    seconds: float

    @classmethod
    def read(cls, time: object) -> "PublicationTime":
        """Read a time: RFC 3339, a date, a datetime, or epoch seconds, which are kept as is."""
        us = parse_time_us(time)
        if type(time) is int or type(time) is float:
            return cls(us, time)
        if isinstance(time, int) and not isinstance(time, bool):
            return cls(us, int.__int__(time))
        return cls(us, float.__float__(time) if isinstance(time, float) else us / SECOND_US)


@dataclass(frozen=True)
class Event:
    """A publication: an id, a publication time and named attributes (PREF 2).

    `published_at` may be epoch seconds, a datetime or RFC 3339; everything is ordered by
    `published_us`. `sequence` is the number of the event in the stream, for windows that count
    published events. `probabilities` are those of uncertain attributes, and weigh their
    contributions to `relaxed`. `content` is a JSON object for those who get the event, such as a
    title and a link: no condition sees it, and every delivery has it (`content_json` is its text).

    >>> Event("e1", {"genre": ["drama", "comedy"], "year": 2003}, published_at=0).published_us
    0
    """

    id: str
    attributes: Mapping[str, Any] = field(hash=False)
    published_at: Any
    sequence: int | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict, hash=False)
    content: Mapping[str, Any] | None = field(default=None, hash=False)
    published_us: int = field(init=False, repr=False, compare=False)
    content_json: str | None = field(default=None, init=False, repr=False, compare=False)

    @validate.guarded_by(InvalidEvent)
    def __post_init__(self) -> None:
        _set(self, id=validate.name("an event's id", self.id, InvalidEvent))
        if self.sequence is not None:
            label = f"event {self.id}: sequence"
            number = validate.count(label, self.sequence, InvalidEvent, low=0, high=LAST_SEQUENCE)
            _set(self, sequence=number)
        time = self._read("published_at", lambda: PublicationTime.read(self.published_at))
        label = f"event {self.id}: attributes are a mapping of names to values"
        raw = validate.mapping(label, self.attributes, InvalidEvent)
        if _all_plain(raw):
            values = dict(raw)
        else:
            values = dict(self._value(name, value) for name, value in raw.items())
        _set(self, attributes=values, published_us=time.us, published_at=time.seconds)
        if type(self.probabilities) is not dict or self.probabilities:
            _set(self, probabilities=self._read_probabilities())
        if self.content is not None:
            content = read_content(f"event {self.id}", self.content, InvalidEvent)
            _set(self, content=content.fields, content_json=content.text)

    @cached_property
    def tokens(self) -> TokenMap:
        """The values of each attribute in comparable form."""
        return {name: tokens(value) for name, value in self.attributes.items()}

    @classmethod
    def known(
        cls,
        name: str,
        attributes: dict[str, Any],
        published: PublicationTime,
        sequence: int | None,
        content: Content | None = None,
    ) -> "Event":
        """Return an event of fields that are known to be valid, without checking them."""
        event = object.__new__(cls)
        event.__dict__.update(
            id=name,
            attributes=attributes,
            published_at=published.seconds,
            sequence=sequence,
            probabilities={},
            content=content and content.fields,
            published_us=published.us,
            content_json=content and content.text,
        )
        return event

    def _read_probabilities(self) -> dict[str, float]:
        label = f"event {self.id}: probabilities are a mapping of attributes to numbers"
        probabilities = dict[str, float]()
        for raw_name, value in validate.mapping(label, self.probabilities, InvalidEvent).items():
            name = validate.name(f"event {self.id}: an attribute's name", raw_name, InvalidEvent)
            if name not in self.attributes:
                raise InvalidEvent(
                    f"event {self.id}: there is no attribute {shown(name)} for a probability"
                )
            label = f"event {self.id}: the probability of {name}"
            number = validate.number(label, value, InvalidEvent, high=1)
            probabilities[name] = value if type(value) is int else number
        return probabilities

    def _value(self, raw_name: object, value: object) -> tuple[str, Value]:
        name = validate.name(f"event {self.id}: an attribute's name", raw_name, InvalidEvent)
        return name, self._read(f"attribute {name}", lambda: attribute_value(value))

    def _read(self, what: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except TidingsError as error:
            raise InvalidEvent(f"event {self.id}: {what}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        if self.content_json is None:
            return self.dict_without_content()
        return self.dict_without_content() | {"content": json.loads(self.content_json)}

    def dict_without_content(self) -> dict[str, Any]:
        """Return the JSON form of everything that may decide whether the event is delivered."""
        form: dict[str, Any] = {
            "id": self.id,
            "published_at": format_time(self.published_us),
            "attributes": {name: plain(value) for name, value in self.attributes.items()},
        }
        more = {"sequence": self.sequence, "probabilities": dict(self.probabilities) or None}
        return form | {name: value for name, value in more.items() if value is not None}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Event":
        """Return the event of a JSON form whose fields were checked."""
        return cls(
            form["id"],
            form["attributes"],
            form["published_at"],
            form.get("sequence"),
            form.get("probabilities", {}),
            form.get("content"),
        )

    def numbered(self, sequence: int) -> "Event":
        """Return a copy of the event with a sequence number."""
        return self._changed(sequence=sequence)

    def showing(self, names: Sequence[str], hidden: Collection[str] = ()) -> "Event":
        """Return the event with the named attributes, or its id and time, in its content as well.

        Fields that the content already has stay as they are. Attributes that are `hidden` are left
        out, so that they are in the content only.

        >>> Event("e1", {"title": "Big Fish", "year": 2003}, 0).showing(["title", "url"]).content
        {'title': 'Big Fish'}
        """
        values = {"id": self.id, "published_at": format_time(self.published_us), **self.attributes}
        fields = {name: values[name] for name in names if name in values}
        if not fields:
            return self
        fields |= self.content or {}
        content = read_content(f"event {self.id}", fields, InvalidEvent)
        twin = self._changed(content=content.fields, content_json=content.text)
        if hidden:
            for cached in ("tokens", "_place"):  # see `event_columns`
                twin.__dict__.pop(cached, None)
            visible = {name: value for name, value in self.attributes.items() if name not in hidden}
            _set(twin, attributes=visible)
        return twin

    def carrying(self, content_json: str | None) -> "Event":
        """Return a copy of the event with the content of a valid text, or without any."""
        fields = None if content_json is None else json.loads(content_json)
        return self._changed(content=fields, content_json=content_json)

    def _changed(self, **fields: Any) -> "Event":
        """Return a copy with other fields, which are valid; `copy.copy` takes ten times as long."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(fields)
        return twin


def _all_plain(attributes: dict[Any, Any]) -> bool:
    """Return whether all values stay as they are: those of most events are numbers and ASCII."""
    for name, value in attributes.items():
        if type(name) is not str or not name.isascii() or not name:
            return False
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return False
        elif kind is float or kind is int:
            if not -_LARGEST_PLAIN < value < _LARGEST_PLAIN:  # NaN is not
                return False
        elif kind is not bool:
            return False
    return True


def newest_first(event: Event) -> tuple[int, str]:
    """Return the sort key of ties between events: newer publication time, then smaller id."""
    return (-event.published_us, event.id)


def publication_order(event: Event) -> tuple[int, int, str]:
    """Return the sort key of a stream: publication time, then sequence, then id."""
    return (event.published_us, event.sequence or 0, event.id)


@dataclass(frozen=True)
class Weighted:
    """A predicate with its weight (RPS) or preference (TKS Def. 3.2.1), and its tuple state."""

    predicate: Predicate
    weight: float = 1.0
    state: State = "active"

    @validate.guarded_by(InvalidSubscription)
    def __post_init__(self) -> None:
        _set(self, weight=_scaled("the weight", self.weight, _MOST_WEIGHT, 1 / _MOST_WEIGHT))
        validate.choice("the state", self.state, STATES, InvalidSubscription)
        if not isinstance(self.predicate, Predicate):
            raise InvalidSubscription(f"expected a predicate, not {shown(self.predicate)}")

    def to_dict(self) -> list[Any]:
        """Return the JSON form: `[condition, weight]`, and the state unless it is active."""
        form: list[Any] = [render_predicate(self.predicate), self.weight]
        return form if self.state == "active" else [*form, self.state]


@dataclass(frozen=True)
class Subscription:
    """A standing query: a condition (`where`), or weighted predicates (`any`).

    `prefrank` is for the preference scorer (PREF Def. 3), `score` for the exact scorer (RPS). A
    subscription above the `limits` is refused; the limits are not stored.

    >>> Subscription("s1", "addison", where="genre = 'drama'", prefrank=0.8).to_dict()["where"]
    "genre = 'drama'"
    """

    id: str
    subscriber: str
    where: Condition | str | None = None
    any: Sequence[Weighted | Sequence[Any]] | None = None
    prefrank: float | None = None
    score: float | None = None
    limits: InitVar[Limits] = TRUSTED

    @validate.guarded_by(InvalidSubscription)
    def __post_init__(self, limits: Limits) -> None:
        check_limits(limits, InvalidSubscription)
        _set(self, id=validate.name("a subscription's id", self.id, InvalidSubscription))
        label = f"subscription {self.id}"
        owner = validate.name(f"{label}: subscriber", self.subscriber, InvalidSubscription)
        _set(self, subscriber=owner)
        if (self.where is None) == (self.any is None):
            raise InvalidSubscription(f"{label}: give either `where` or `any`")
        if self.prefrank is not None:
            rank = validate.number(f"{label}: prefrank", self.prefrank, InvalidSubscription, high=1)
            _set(self, prefrank=rank)
        if self.score is not None:
            _set(self, score=_scaled(f"{label}: score", self.score, _MOST_SCORE))
        try:
            if isinstance(self.where, Condition):
                check_condition(self.where, limits)
            elif self.where is not None:
                _set(self, where=parse(self.where, limits))
            if self.any is not None:
                entries = _entries(self.any, limits)
                _set(self, any=tuple(_weighted(entry, limits) for entry in entries))
        except TidingsError as error:
            raise InvalidSubscription(f"{label}: {error}") from None
        if not self.groups:
            raise InvalidSubscription(f"{label}: `any` needs at least one predicate")

    @cached_property
    def groups(self) -> tuple[tuple[Weighted, ...], ...]:
        """The weighted predicates: one group per conjunction; those of `any` are one group.

        A plain condition counts each of its predicates with weight 1.
        """
        if isinstance(self.where, Condition):
            return tuple(tuple(map(Weighted, conj)) for conj in self.where.conjunctions)
        return (self.any,) if self.any else ()  # type: ignore[return-value]

    @cached_property
    def conjunctions(self) -> tuple[tuple[Predicate, ...], ...]:
        """The condition in disjunctive normal form; only active predicates count."""
        if isinstance(self.where, Condition):
            return self.where.conjunctions  # no objects for their weights
        return tuple(
            tuple(part.predicate for part in group if part.state == "active")
            for group in self.groups
        )

    def matches(self, event: Event) -> bool:
        """Return whether this covers the event (PREF Def. 1): a whole conjunction holds."""
        tokens = event.tokens
        for conj in self.conjunctions:  # loops take half the time of generators
            for part in conj:
                if not part.holds(tokens):
                    break
            else:
                if conj:
                    return True
        return False

    def touches(self, event: Event) -> bool:
        """Return whether at least one predicate holds (RPS, relaxed matching)."""
        return any(part.holds(event.tokens) for conj in self.conjunctions for part in conj)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form: dict[str, Any] = {"id": self.id, "subscriber": self.subscriber}
        if isinstance(self.where, Condition):
            form["where"] = render(self.where)
        else:
            form["any"] = [part.to_dict() for part in self.groups[0]]
        optional = {"prefrank": self.prefrank, "score": self.score}
        return form | {name: value for name, value in optional.items() if value is not None}


def _entries(value: Any, limits: Limits) -> Sequence[Any]:
    entries: Sequence[Any] | None = validate.listed(value, limits.any_predicates)
    if entries is None:
        raise InvalidSubscription(f"`any` is a list of [condition, weight], not {shown(value)}")
    what = "the number of predicates of `any`"
    limits.check("any_predicates", len(entries), what, InvalidSubscription)
    return entries


def _scaled(what: str, value: object, most: float, least: float = 0.0) -> float:
    """Check a score or weight; its bounds keep sums, means and ratios finite."""
    number = validate.number(what, value, InvalidSubscription)
    if number and not least <= number <= most:
        bounds = f"0 or between {least:g} and {most:g}" if least else f"at most {most:g}"
        raise InvalidSubscription(f"{what} is {bounds}, not {shown(value)}")
    return number


def _weighted(value: Any, limits: Limits) -> Weighted:
    """Read `[condition, weight]` or `[condition, weight, state]`."""
    if isinstance(value, Weighted):
        return value
    entry = validate.listed(value, 3)
    if entry is None or len(entry) not in (2, 3):
        what = shown(value)
        raise InvalidSubscription(f"{what} is not a weighted predicate; write [condition, weight]")
    text, weight, state = (*entry, "active")[:3]
    part = parse_predicate(text, limits)
    try:
        return Weighted(part, weight, state)
    except InvalidSubscription as error:
        raise InvalidSubscription(f"{shown(text)}: {error}") from None


@dataclass(frozen=True)
class Match:
    """An event that matches a subscriber: its score, and the subscriptions that matched."""

    subscriber: str
    event: Event
    score: float
    matched: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the whole event."""
        return {
            "subscriber": self.subscriber,
            "event": self.event.to_dict(),
            "score": self.score,
            "matched": list(self.matched),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Match":
        """Return the match of a JSON form."""
        event = Event.from_dict(form["event"])
        return cls(form["subscriber"], event, form["score"], tuple(form["matched"]))


@dataclass(frozen=True)
class Delivery:
    """An event delivered to a subscriber, with its rank and position in the window.

    `content_json` is the text of the event's content, which all its deliveries share.
    """

    subscriber: str
    event: str
    rank: float
    position: int
    window: Mapping[str, Any] = field(hash=False)
    matched: tuple[str, ...]
    sequence: int
    delivered_us: int
    content_json: str | None = None

    @classmethod
    def known(cls, **fields: Any) -> "Delivery":
        """Return a delivery of all its fields; this takes half the time of the constructor."""
        delivery = object.__new__(cls)
        delivery.__dict__.update(fields)
        return delivery

    @property
    def delivered_at(self) -> str:
        """The time of the decision, RFC 3339."""
        return format_time(self.delivered_us)

    @property
    def content(self) -> dict[str, Any] | None:
        """The content of the event, a new object each time; None if the event had none."""
        return None if self.content_json is None else json.loads(self.content_json)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {
            "subscriber": self.subscriber,
            "event": self.event,
            "rank": self.rank,
            "position": self.position,
            "window": dict(self.window),
            "matched": list(self.matched),
            "sequence": self.sequence,
            "delivered_at": self.delivered_at,
        }
        return form if self.content_json is None else form | {"content": self.content}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Delivery":
        """Return the delivery of a JSON form."""
        content = form.get("content")
        return cls(
            form["subscriber"],
            form["event"],
            form["rank"],
            form["position"],
            form["window"],
            tuple(form["matched"]),
            form["sequence"],
            parse_time_us(form["delivered_at"]),
            None if content is None else read_content("a delivery", content, InvalidForm).text,
        )


def _set(frozen: object, **fields: Any) -> None:
    """Set fields of a frozen object during its construction."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
