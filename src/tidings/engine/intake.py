"""The entry of the stream: records are read, checked, deduplicated, put in order and numbered."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, NamedTuple, SupportsIndex, TypeVar, overload

from tidings.engine.stages import Step
from tidings.errors import InvalidEvent, TidingsError, described, shown
from tidings.formats.json_forms import loads_event
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import LAST_SEQUENCE, Event
from tidings.model.values import format_duration, moment, parse_duration_us, parse_time_us
from tidings.window import Arrivals, Late, Moment, snapshot_fields

T = TypeVar("T")
LOGGER: Final = "tidings"
LATE_LOGGER: Final = "tidings.late"
_FEW: Final = 1024
_SEVERAL: Final = 8
"""The number of records from which it pays to check whether they are in order."""
_LAST_GIVEN: Final = LAST_SEQUENCE // 2
"""The largest sequence number that an event may have, so that later events can be numbered."""


class Latest(Sequence[T]):
    """The last items of an unbounded list; `total` counts all of them.

    >>> latest = Latest(2, "abc")
    >>> latest == ["b", "c"], latest.total
    (True, 3)
    """

    def __init__(self, most: int, items: Iterable[T] = (), dropped: int = 0) -> None:
        self._most, self._items = most, list[T]()
        self.total = self.dropped = dropped
        for item in items:
            self.append(item)

    def append(self, item: T) -> None:
        """Append an item; drop the oldest if there are too many."""
        self._items.append(item)
        self.total += 1
        if len(self._items) > self._most:
            self.dropped += len(self._items) - self._most
            del self._items[: -self._most]

    def clear(self) -> None:
        """Drop all items; `total` still counts them."""
        self._items.clear()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[:])  # another thread may append meanwhile

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | list[T]:
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)


class Notice(NamedTuple):
    """A warning for the log, and the logger that it belongs to."""

    logger: str
    text: str


class Terms(NamedTuple):
    """The rules for records: limits, a clock, and how far ahead of it events may be."""

    limits: Limits = TRUSTED
    clock: Callable[[], object] = time.time
    future_us: int | None = None


class Intake:
    """Turns records into steps of the stream, and keeps those that it refuses.

    Events that are later than `lateness` go to `late`; invalid records, and events whose id was
    published before, go to `dead_letters`. Ids are remembered forever, or until their events are
    older than the newest by `remember_ids` (a duration). Warnings are collected in `notices`.
    """

    def __init__(
        self, lateness_us: int = 0, remember_ids: object = None, terms: Terms | None = None
    ) -> None:
        self.terms = terms or Terms()
        # Values of events beyond the trusted limits take the memory of the caller already.
        self._checks_values = any(
            getattr(self.terms.limits, name) < getattr(TRUSTED, name)
            for name in ("record_bytes", "string_bytes", "list_values")
        )
        self._arrivals: Arrivals[Event] = Arrivals(lateness_us)
        self._horizon_us = None if remember_ids is None else parse_duration_us(remember_ids)
        self._published: dict[str, int] = {}
        self._many = _FEW
        self._sequence = 0
        self.late: Latest[Event] = Latest(self.terms.limits.kept_letters)
        self.dead_letters: Latest[DeadLetter] = Latest(self.terms.limits.kept_letters)
        self.notices: list[Notice] = []

    def arrive(self, record: Event | Mapping[str, Any] | BadRecord) -> list[Step]:
        """Read a record; return the steps that it makes possible."""
        if type(record) is BadRecord:  # `isinstance` would call methods of a foreign object
            self.dead_letters.append(DeadLetter(record.record, record.reason))
            return []
        try:
            event = self.read(record)
            self._admit(event)
        except Exception as error:  # noqa: BLE001 - a record may hold foreign objects
            self.refuse(record, error)
            return []
        self._note(event)
        try:
            released = self._arrivals.offer(event.published_us, event, event.sequence)
        except Late as error:
            if not self.late.total:
                text = (
                    f"event {event.id} is late ({error}); it and later ones like it are in `late`"
                )
                self.notices.append(Notice(LATE_LOGGER, text))
            self.late.append(event)
            return []
        return self._steps(released)

    def arrive_many(self, records: Sequence[Any]) -> Iterable[Step]:
        """Read records as `arrive` does; those that are in order are taken at once.

        The moment that an event reaches is then not a separate step, because the next event is not
        before it.
        """
        if not self._are_in_order(records):
            return chain.from_iterable(map(self.arrive, records))  # read as they are taken
        ids, times = [record.id for record in records], [record.published_us for record in records]
        self._published.update(zip(ids, times, strict=True))
        self._arrivals.pass_through(times)
        return self._steps(records)

    def _are_in_order(self, records: Sequence[Any]) -> bool:
        """Return whether records are events that are released at once, none of them refused."""
        most, arrivals = self.terms.limits.attributes, self._arrivals
        if len(records) < _SEVERAL or self._horizon_us is not None or self._checks_values:
            return False
        if self.terms.future_us is not None or not arrivals.passes_through:
            return False
        if any(type(record) is not Event or record.content is not None for record in records):
            return False
        ids, times = {record.id for record in records}, [record.published_us for record in records]
        return (
            len(ids) == len(records)
            and self._published.keys().isdisjoint(ids)
            and (arrivals.watermark_us is None or arrivals.watermark_us <= times[0])
            and times == sorted(times)
            and all((record.sequence or 0) <= _LAST_GIVEN for record in records)
            and all(len(record.attributes) <= most for record in records)
        )

    def read_many(self, records: Iterable[Any]) -> list[Event]:
        """Return the events of records, each as `read` returns it."""
        most, read = self.terms.limits.attributes, self.read
        return [
            record
            if type(record) is Event and record.content is None and len(record.attributes) <= most
            else read(record)
            for record in records
        ]

    def read(self, record: Any) -> Event:
        """Read a record; without a time it gets that of the clock, but not before the watermark."""
        most = self.terms.limits.attributes
        if (
            type(record) is Event
            and record.content is None
            and len(record.attributes) <= most
            and not self._checks_values
        ):
            return record
        try:
            return self._read(record)
        except TidingsError:
            raise
        except Exception as error:  # noqa: BLE001 - a record may hold foreign objects
            raise InvalidEvent(f"the event cannot be read: {described(error)}") from None

    def _read(self, record: Any) -> Event:
        limits = self.terms.limits
        if isinstance(record, Event):
            limits.check("attributes", len(record.attributes), "the attributes", InvalidEvent)
            values = {"id": record.id, "attributes": record.attributes}
            content = {} if record.content is None else {"content": record.content}
            limits.check_record(values | content, f"event {record.id}", InvalidEvent)
            return record
        if isinstance(record, Mapping) and "published_at" not in record:
            us = self._clock_us()
            if self._arrivals.watermark_us is not None:
                us = max(us, self._arrivals.watermark_us)
            record = {**record, "published_at": moment(us)}
        return loads_event(record, limits)

    def _admit(self, event: Event) -> None:
        """Refuse an event whose id was published before, or whose time is too far in the future."""
        if self._published.get(event.id, self._forgotten_us) > self._forgotten_us:
            raise InvalidEvent(f"event {shown(event.id)} was published before")
        if (event.sequence or 0) > _LAST_GIVEN:
            raise InvalidEvent(
                f"event {event.id}: sequence is at most {_LAST_GIVEN}, not {event.sequence}, so "
                "that the events after it can be numbered"
            )
        if self.terms.future_us is not None:
            ahead = event.published_us - self._clock_us()
            if ahead > self.terms.future_us:
                raise InvalidEvent(
                    f"event {event.id} is published {format_duration(ahead)} ahead of the clock; "
                    f"future = {format_duration(self.terms.future_us)} is allowed"
                )

    def _clock_us(self) -> int:
        return parse_time_us(self.terms.clock())

    def fail(self, event: Event, error: Exception) -> None:
        """Refuse an event that no feed has accepted; it can be published again."""
        self._published.pop(event.id, None)
        self.refuse(event, error)

    def advance(self, us: int) -> list[Step]:
        """Advance the stream to a time; return the steps that this makes possible."""
        return self._steps(self._arrivals.advance(us))

    def refuse(self, record: Any, error: Exception) -> DeadLetter:
        """Keep a refused record, with the reason; one above the limits is kept as a short text."""
        try:
            self.terms.limits.check_record(record, "the record")
        except Exception:  # noqa: BLE001 - a record may hold foreign objects
            record = shown(record)
        letter = DeadLetter(record, described(error))
        self.dead_letters.append(letter)
        return letter

    @contextmanager
    def recording_refusal(self, record: Any) -> Iterator[None]:
        """Keep the record as a dead letter if the block raises an error, and raise the error."""
        try:
            yield
        except TidingsError as error:
            self.refuse(record, error)
            raise
        except Exception as error:
            self.refuse(record, error)
            raise TidingsError(f"the record was refused: {described(error)}") from error

    @property
    def now(self) -> Moment:
        """The moment that the stream has reached."""
        return Moment(self._arrivals.watermark_us or 0, self._sequence)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        dropped = {"late": self.late.dropped, "dead": self.dead_letters.dropped}
        return {
            "lateness_us": self._arrivals.lateness_us,
            "horizon_us": self._horizon_us,
            "arrivals": self._arrivals.snapshot(Event.to_dict),
            "published": dict(sorted(self._published.items())),
            "sequence": self._sequence,
            "late": [event.to_dict() for event in self.late],
            "dead_letters": [_letter_form(letter) for letter in self.dead_letters],
        } | ({"dropped": dropped} if any(dropped.values()) else {})

    @classmethod
    def restored(cls, state: Mapping[str, Any], terms: Terms | None = None) -> "Intake":
        """Return an intake that continues from a snapshot."""
        intake = cls(snapshot_fields.whole(state, "lateness_us"), terms=terms)
        intake._horizon_us = snapshot_fields.whole(state, "horizon_us", missing=True)
        intake._arrivals.restore(
            snapshot_fields.field(state, "arrivals"), snapshot_fields.read_event
        )
        intake._published = snapshot_fields.numbers(
            state, "published", -snapshot_fields.FAR, snapshot_fields.FAR
        )
        intake._sequence = snapshot_fields.whole(state, "sequence")
        most, dropped = intake.terms.limits.kept_letters, state.get("dropped", {})
        late = [snapshot_fields.read_event(form) for form in snapshot_fields.items(state, "late")]
        intake.late = Latest(most, late, snapshot_fields.whole(dropped, "late") if dropped else 0)
        dead = [_read_letter(form) for form in snapshot_fields.items(state, "dead_letters")]
        intake.dead_letters = Latest(
            most, dead, snapshot_fields.whole(dropped, "dead") if dropped else 0
        )
        return intake

    def _steps(self, released: Sequence[Event]) -> list[Step]:
        steps, last = list[Step](), self._sequence
        for event in released:
            number = event.sequence
            if number is None:
                number = last + 1
                event = event.numbered(number)  # noqa: PLW2901
            last = max(last, number)
            steps.append(Step(event, Moment(event.published_us, last)))
        self._sequence = last
        steps.append(Step(None, self.now))
        return steps

    @property
    def _forgotten_us(self) -> float:
        """The time up to which ids are forgotten."""
        mark = self._arrivals.watermark_us
        if self._horizon_us is None or mark is None:
            return float("-inf")
        return mark - self._horizon_us

    def _note(self, event: Event) -> None:
        """Remember an id; drop forgotten ones whenever the number of ids has doubled."""
        self._published[event.id] = event.published_us
        if self._horizon_us is not None and len(self._published) > self._many:
            least = self._forgotten_us
            self._published = {name: us for name, us in self._published.items() if us > least}
            self._many = max(_FEW, 2 * len(self._published))


def _letter_form(letter: DeadLetter) -> dict[str, Any]:
    """Return the JSON form of a dead letter, even if its record cannot be printed."""
    try:
        return letter.to_dict()
    except Exception:  # noqa: BLE001 - a record may hold foreign objects
        return {"record": shown(letter.record), "reason": letter.reason}


def _read_letter(form: object) -> DeadLetter:
    reason = snapshot_fields.field(form, "reason")
    return DeadLetter(snapshot_fields.field(form, "record"), str(reason))
