"""What a run did: batch by batch, and in all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.run.plan import Plan


@dataclass(frozen=True)
class Batch:
    """What came of one batch of events: deliveries by subscriber, late events, dead letters."""

    number: int
    events: int
    delivered: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    dead: int = 0

    @property
    def deliveries(self) -> int:
        """How many there are in all."""
        return sum(self.delivered.values())


@dataclass(frozen=True)
class Account:
    """What came of all batches of a run, and of the records that it refused at its start."""

    plan: Plan
    batches: int
    events: int
    delivered: Mapping[str, int]
    late: int
    dead: int
    seconds: float

    @classmethod
    def of(cls, plan: Plan, batches: Sequence[Batch], seconds: float) -> "Account":
        """Sum up the batches of a run."""
        delivered: Counter[str] = Counter()
        for batch in batches:
            delivered.update(batch.delivered)
        return cls(
            plan=plan,
            batches=len(batches),
            events=sum(batch.events for batch in batches),
            delivered=dict(sorted(delivered.items())),
            late=sum(batch.late for batch in batches),
            dead=sum(batch.dead for batch in batches),
            seconds=seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "engine": self.plan.config.engine,
            "batches": self.batches,
            "events": self.events,
            "deliveries": sum(self.delivered.values()),
            "subscribers": dict(self.delivered),
            "late": self.late,
            "dead_letters": self.dead,
            "refused": len(self.plan.refused),
            "seconds": round(self.seconds, 3),
            "sink": str(self.plan.config.sink.path),
        }
