"""Random policies and streams for many subscribers, with many ties, gaps and equal times."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.feed import Feeds, Offer
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

END = Moment(10**10, 10**6)
"""A moment after the end of every stream here."""

counts = st.integers(1, 6)
durations = st.integers(1, 6).map("{}s".format)
lengths = st.one_of(
    counts.map(lambda n: {"length": n}),
    counts.map(lambda n: {"length": n, "count": "published"}),
    durations.map(lambda d: {"length": d}),
)
waits = st.booleans().map(lambda wait: {"wait": wait})
leaves = st.sampled_from(["keep", "leave"]).map(lambda delivered: {"delivered": delivered})


@st.composite
def jumps(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a length and a step that fits: of the same kind, or a count in a duration."""
    step = draw(st.integers(1, 4))
    length = step + draw(st.integers(0, 4))
    kind = draw(st.sampled_from(["matching", "published", "time", "mixed"]))
    if kind == "time":
        return {"length": f"{length}s", "step": f"{step}s"}
    if kind == "mixed":
        return {"length": f"{length}s", "step": step}
    return {"length": length, "step": step, "count": kind}


def joined(name: str, *strategies: st.SearchStrategy[dict[str, Any]]) -> Any:
    """Return the form of a part from strategies for some of its parameters."""
    return st.tuples(*strategies).map(
        lambda drawn: {"name": name, **{k: v for form in drawn for k, v in form.items()}}
    )


origins = st.integers(-3, 3).map(lambda origin: {"origin": origin})
expiries = st.one_of(counts, durations).map(lambda size: {"expires": size})
stricts = st.booleans().map(lambda strict: {"strict": strict})
calendars: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"at": ["00:00:05", "00:00:11"]},
        {"at": ["02:00:03", "12:30"], "zone": "Europe/Athens"},
        {"at": ["00:00:20"], "days": ["thu", "fri"]},
    ]
)
WINDOWS = {
    "continuous": joined("continuous", waits),
    "expiring": joined("continuous", waits, expiries),
    "periodic": joined("periodic", waits, lengths),
    "aligned": joined("periodic", waits, durations.map(lambda d: {"length": d}), origins),
    "calendar": joined("periodic", waits, calendars),
    "sliding": joined("sliding", waits, lengths, leaves),
    "jumping": joined("jumping", waits, jumps(), leaves),
    "history": joined("history", waits, lengths, stricts),
}
decays = st.sampled_from(
    [
        "none",
        "none",
        {"name": "exponential", "rate": 0.1},
        {"name": "exponential", "rate": 3.0, "landmark": 5},
        {"name": "exponential", "rate": 20.0},
        {"name": "polynomial", "exponent": 2, "landmark": 3},
        "polynomial",
        {"name": "logarithmic", "landmark": -4},
        "logarithmic",
    ]
)


class Own(Jaccard):
    """A user-defined distance, which has no kernel."""

    name = "own"


WEIGHTS = {"genre": 0.3, "mood": 1.1}
DIVERSIFIERS: dict[str, list[Any]] = {
    "divrank": [{"name": "divrank", "sigma": sigma} for sigma in (0.0, 0.3, 0.5, 1.0)],
    "optimal": ["optimal"],
    "dispersion": ["maxmin", {"name": "maxsum", "distance": "jaccard"}, "maxavg"],
    "weighted": [{"name": "divrank", "distance": {"name": "overlap", "weights": WEIGHTS}}],
    "covers": [
        "disc",
        "maxdivrel",
        {"name": "maxdivrel", "alpha": 0.5},
        {"name": "disc", "alpha": 1},
    ],
    "lsh": ["maxdivrel-lsh", {"name": "maxdivrel-lsh", "tables": 3, "rows": 1}],
    "own": [DivRank(distance=Own()), MaxDivRel(distance=Own())],
}


NO_DIVERSITY = st.just("none")


NO_RULES: st.SearchStrategy[list[Any]] = st.just([])


def policies(
    window: st.SearchStrategy[Any],
    diversify: st.SearchStrategy[Any] = NO_DIVERSITY,
    rules: st.SearchStrategy[Any] = NO_RULES,
) -> st.SearchStrategy[Policy]:
    """Return policies with these windows, diversifiers and rules, and any decay and k."""
    return st.builds(
        Policy,
        k=st.integers(1, 4),
        decay=decays,
        window=window,
        diversify=diversify,
        rules=rules,
    )


plain_or_diverse = st.one_of(
    NO_DIVERSITY,
    *(st.sampled_from(parts) for name, parts in DIVERSIFIERS.items() if name != "own"),
)
"""Every diversifier with a JSON form, and none."""


@dataclass(frozen=True)
class Step:
    """One event: its scores and its matched subscriptions, by subscriber."""

    event: Event
    sequence: int
    scores: dict[str, float]
    matched: dict[str, tuple[str, ...]]

    @property
    def now(self) -> Moment:
        return Moment(self.event.published_us, self.sequence)

    def offers(self, feeds: Feeds) -> list[Offer]:
        """Return the matches of the enrolled subscribers."""
        return [
            (Match(name, self.event, score, self.matched[name]), self.now)
            for name, score in self.scores.items()
            if name in feeds
        ]


@st.composite
def streams(draw: st.DrawFn, names: str, max_size: int = 25) -> list[Step]:
    """Draw events with equal times and gaps; sequences may be out of order, as with lateness."""
    step = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 7]),
        st.sampled_from([1, 1, 1, 2, 4, 0, -3]),
        st.sampled_from("ab"),
        st.dictionaries(
            st.sampled_from(names),
            st.sampled_from([0.0, 0.3, 0.4, 0.8, 0.8 + 1e-13, 0.8 + 3e-12, 0.9, 1e100]),
            max_size=len(names),
        ),
        st.lists(st.sampled_from("pqr"), unique=True, max_size=3).map(sorted),
    )
    steps, seconds, number, highest = [], 0, 4, 0
    for place, (gap, skip, letter, scores, wants) in enumerate(
        draw(st.lists(step, max_size=max_size))
    ):
        seconds, number = seconds + gap, max(0, number + skip)
        highest = max(highest, number)
        values = {"genre": letter, "mood": wants[0]} if wants else {"genre": letter}
        content = {"place": place, "tags": [letter]} if place % 3 else None
        event = Event(f"{letter}{place}", values, seconds, sequence=number, content=content)
        matched = {name: tuple(f"{name}-{s}" for s in wants) for name in names}
        steps.append(Step(event, highest, scores, matched))
    return steps


def run(feeds: Feeds, stream: list[Step]) -> list[Delivery]:
    """Drive feeds as an engine does: offer the matches of an event, then advance the clock."""
    deliveries = []
    for step in stream:
        deliveries += feeds.offer_many(step.offers(feeds))
        deliveries += feeds.advance(step.now)
    return deliveries


def enrolled(feeds: Feeds, policies_by_name: dict[str, Policy]) -> Feeds:
    """Enrol subscribers, and return the feeds."""
    for name, policy in policies_by_name.items():
        feeds.enrol(Subscriber(name, policy))
    return feeds
