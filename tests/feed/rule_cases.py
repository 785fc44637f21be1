"""Random rules, and streams that last long enough for them: seconds, hours or months."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.feed.streams import Step, streams

from tidings.diversify.distance import Jaccard
from tidings.model.records import Event
from tidings.rules import Verdict
from tidings.rules.different import Different
from tidings.rules.verdict import Outranked
from tidings.window import Moment

FAR_END = Moment(10**13, 10**6)
"""A moment after the end of every stream here."""
ZONES = ["UTC", "Europe/Athens", "America/New_York", "Australia/Lord_Howe"]
urgents = st.sampled_from([None, None, 0.4, 0.9])


class OwnDistance(Jaccard):
    """A user-defined distance, which has no kernel."""

    name = "own-distance"


quotas = st.fixed_dictionaries(
    {
        "name": st.just("quota"),
        "n": st.integers(1, 4),
        "per": st.sampled_from(["4s", "9s", "2h", "hour", "day", "week"]),
        "zone": st.sampled_from(ZONES),
        "pick": st.sampled_from(["best", "best", "first"]),
        "urgent": urgents,
    }
)
quiets = st.fixed_dictionaries(
    {
        "name": st.just("quiet"),
        "start": st.sampled_from(["00:00:02", "22:00", "05:30"]),
        "end": st.sampled_from(["00:00:09", "07:00", "02:15"]),
        "zone": st.sampled_from(ZONES),
        "urgent": urgents,
    }
)
distances = st.sampled_from(["overlap", {"name": "overlap", "weights": {"genre": 0.3}}, "jaccard"])
differents = st.fixed_dictionaries(
    {
        "name": st.just("different"),
        "min": st.sampled_from([0.2, 0.5, 1.0]),
        "within": st.sampled_from(["3s", "2h", "7d"]),
        "distance": distances,
    }
)
own_differents = st.builds(Different, min=st.just(0.5), distance=st.just(OwnDistance()))
without_diversity = st.lists(st.one_of(quotas, quotas, quiets), min_size=1, max_size=3)
rules = st.lists(st.one_of(quotas, quiets, differents), min_size=1, max_size=3)
any_rules = st.lists(st.one_of(quotas, quiets, differents, own_differents), max_size=3)


@st.composite
def long_streams(draw: st.DrawFn, names: str) -> list[Step]:
    """Draw events that are seconds, minutes, hours or days apart."""
    scale = draw(st.sampled_from([1, 1, 600, 9_000, 40_000]))
    return [_later(step, scale) for step in draw(streams(names))]


def _later(step: Step, scale: int) -> Step:
    event: Any = step.event
    us = event.published_us * scale
    later = Event(event.id, event.attributes, us / 10**6, event.sequence, content=event.content)
    return replace(step, event=later)


def comparable(verdicts: dict[str, list[Verdict]]) -> dict[str, list[Any]]:
    """Return verdicts by subscriber in one order, without the names of those that outrank."""
    return {
        name: sorted(
            repr(v._replace(reason=Outranked if isinstance(v.reason, Outranked) else v.reason))
            for v in each
        )
        for name, each in verdicts.items()
    }
