"""How a stream gets in: records are read, checked, put in order and numbered, each id once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tidings.courier import Step
from tidings.errors import InvalidEvent, TidingsError
from tidings.forms import loads_event
from tidings.model import Event
from tidings.rows import DeadLetter
from tidings.values import parse_duration_us
from tidings.window import Arrivals, Late, Moment

_FEW: Final = 1024


class Intake:
    """Takes records; gives the steps by which the stream goes on. What it refuses it keeps.

    Events that come out of order by more than `lateness` go to `late`, what is no event, or one
    whose id was there before, to `dead_letters`. Ids are remembered for ever, or as long as their
    events are not older than `remember_ids` (a duration) before the newest.
    """

    def __init__(self, lateness_us: int = 0, remember_ids: object = None) -> None:
        self._arrivals: Arrivals[Event] = Arrivals(lateness_us)
        self._horizon_us = None if remember_ids is None else parse_duration_us(remember_ids)
        self._published: dict[str, int] = {}
        self._many = _FEW
        self._sequence = 0
        self.late: list[Event] = []
        self.dead_letters: list[DeadLetter] = []

    def arrive(self, record: Event | Mapping[str, Any]) -> list[Step]:
        """Take a record in."""
        try:
            event = record if isinstance(record, Event) else loads_event(record)
            if self._published.get(event.id, self._forgotten_us) > self._forgotten_us:
                raise InvalidEvent(f"event {event.id!r} was published before")
        except TidingsError as error:
            self.refuse(record, error)
            return []
        self._note(event)
        try:
            released = self._arrivals.offer(event.published_us, event, event.sequence)
        except Late:
            self.late.append(event)
            return []
        return self._steps(released)

    def advance(self, us: int) -> list[Step]:
        """Say that it is `us`."""
        return self._steps(self._arrivals.advance(us))

    def refuse(self, record: Any, error: TidingsError) -> None:
        """Keep what was refused, with the reason."""
        self.dead_letters.append(DeadLetter(record, str(error)))

    @contextmanager
    def door(self, record: Any) -> Iterator[None]:
        """Keep a record that is refused within, with the reason, and let the error go on."""
        try:
            yield
        except TidingsError as error:
            self.refuse(record, error)
            raise

    @property
    def now(self) -> Moment:
        """How far the stream has come."""
        return Moment(self._arrivals.watermark_us or 0, self._sequence)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return {
            "lateness_us": self._arrivals.lateness_us,
            "horizon_us": self._horizon_us,
            "arrivals": self._arrivals.snapshot(Event.to_dict),
            "published": dict(sorted(self._published.items())),
            "sequence": self._sequence,
            "late": [event.to_dict() for event in self.late],
            "dead_letters": [each.to_dict() for each in self.dead_letters],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Intake":
        """Give one that goes on from a snapshot."""
        made = cls(state["lateness_us"])
        made._horizon_us = state["horizon_us"]
        made._arrivals.restore(state["arrivals"], Event.from_dict)
        made._published = dict(state["published"])
        made._sequence = state["sequence"]
        made.late = [Event.from_dict(form) for form in state["late"]]
        made.dead_letters = [DeadLetter(**letter) for letter in state["dead_letters"]]
        return made

    def _steps(self, released: list[Event]) -> list[Step]:
        return [*map(self._step, released), Step(None, self.now)]

    def _step(self, event: Event) -> Step:
        """Number the next event in order of publication."""
        if event.sequence is None:
            event = event.numbered(self._sequence + 1)
        self._sequence = max(event.sequence or 0, self._sequence)
        return Step(event, Moment(event.published_us, self._sequence))

    @property
    def _forgotten_us(self) -> float:
        """The time of the newest events whose ids are forgotten."""
        mark = self._arrivals.watermark_us
        if self._horizon_us is None or mark is None:
            return float("-inf")
        return mark - self._horizon_us

    def _note(self, event: Event) -> None:
        """Remember an id; clear out forgotten ones whenever there are twice as many as then."""
        self._published[event.id] = event.published_us
        if self._horizon_us is not None and len(self._published) > self._many:
            least = self._forgotten_us
            self._published = {name: us for name, us in self._published.items() if us > least}
            self._many = max(_FEW, 2 * len(self._published))
