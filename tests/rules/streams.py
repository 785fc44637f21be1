"""Random rules, and random picks around the days on which clocks change."""

from typing import Any

from hypothesis import strategies as st

from tidings.feed.single import PolicyChooser
from tidings.model.records import Event, Match
from tidings.model.values import format_time, parse_time_us
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.plain import plain_rules
from tidings.window import Pick

ZONES = ("UTC", "Europe/Athens", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata")
CHANGES = tuple(
    map(
        parse_time_us,
        ("2018-11-03T20:00Z", "2026-03-28T12:00Z", "2026-04-04T09:00Z", "2026-10-24T18:00Z"),
    )
)
MINUTE_US = 60_000_000
GAPS = st.sampled_from([0, 0, 1, 7, 30, 59, 60, 181, 600, 1_440, 2_880, 20_000])

clocks = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.sampled_from([0, 30]))
urgencies = st.sampled_from([None, None, 0.9])
quotas: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.just("quota"),
        "n": st.integers(1, 4),
        "per": st.sampled_from(["hour", "day", "week", "90m", "25h"]),
        "zone": st.sampled_from(ZONES),
        "pick": st.sampled_from(["best", "best", "first"]),
        "urgent": urgencies,
    }
)
quiets: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.just("quiet"),
        "start": clocks,
        "end": clocks,
        "zone": st.sampled_from(ZONES),
        "urgent": urgencies,
    }
).filter(lambda form: form["start"] != form["end"])
differents: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.just("different"),
        "min": st.sampled_from([0.2, 0.5, 1.0]),
        "within": st.sampled_from(["1h", "1d", "7d"]),
        "distance": st.sampled_from(["overlap", "jaccard"]),
    }
)
rules = st.lists(st.one_of(quotas, quiets, differents), min_size=1, max_size=4)
policies = st.builds(
    Policy,
    k=st.integers(1, 3),
    decay=st.sampled_from(["none", {"name": "exponential", "rate": 1e-4}]),
    diversify=st.sampled_from(["none", "none", {"name": "divrank", "sigma": 0.5}]),
    rules=rules,
)


@st.composite
def picks(draw: st.DrawFn) -> list[Pick]:
    """Draw what a window chose, in order of time."""
    chosen, us = list[Pick](), draw(st.sampled_from(CHANGES))
    for number in range(draw(st.integers(1, 30))):
        us += draw(GAPS) * MINUTE_US
        rank = draw(st.sampled_from([0.0, 0.25, 0.5, 0.7, 0.9, 1.0]))
        attributes = {"a": draw(st.integers(0, 2)), "b": draw(st.integers(0, 1)), "c": 1}
        # An event may have been published some time before the window chose it.
        published = us - draw(st.sampled_from([0, 0, 5])) * MINUTE_US
        event = Event(f"e{number}", attributes, published_at=published / 1e6)
        window = {"name": "sliding", "size": number}
        chosen.append(Pick(Match("x", event, rank, ("s",)), rank, 1 + number % 3, window, us))
    return chosen


def chooser(policy: Policy) -> PolicyChooser:
    """Return the choices of a policy, by definition."""
    return PolicyChooser(policy)


def pick(name: str, at: str, rank: float = 0.5, **attributes: object) -> Pick:
    """Return an event that a window chose when it was published."""
    event = Event(name, attributes or {"id": name}, published_at=at)
    return Pick(Match("x", event, rank, ("s",)), rank, 1, {"name": "continuous"}, parse_time_us(at))


def delivered(policy: Policy, chosen: list[Pick], until: str) -> list[str]:
    """Return the events that pass with the times, on which chain and definition agree."""
    now = parse_time_us(until)
    due = RuleChain(policy.rules, chooser(policy)).offer(chosen, now)
    assert due == plain_rules(policy.rules, chooser(policy), chosen, now)
    return [f"{each.match.event.id} {format_time(each.at_us)}" for each in due]
