"""PREF Table 2: how many nodes of the subscription graph are checked, with and without ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tidings.index.papers.cover_graph import PreferentialGraph
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.model.records import Event, Subscription

USER: Final = "user"


class Shares(NamedTuple):
    """The share m of events that match, and the share c of subscriptions that are covered."""

    matching: float
    covered: float


class Checks(NamedTuple):
    """Nodes checked by SIENA, which stops at a match, and by PrefSIENA, which ranks."""

    siena: int
    pref_siena: int


TABLE: Final = {
    Shares(0.0, 0.0): Checks(10000, 10000),
    Shares(0.0, 0.1): Checks(9000, 9000),
    Shares(0.0, 0.3): Checks(7000, 7000),
    Shares(0.0, 0.5): Checks(5000, 5000),
    Shares(0.1, 0.0): Checks(10000, 10000),
    Shares(0.1, 0.1): Checks(9000, 9010),
    Shares(0.1, 0.3): Checks(7000, 7010),
    Shares(0.1, 0.5): Checks(5000, 5010),
    Shares(0.2, 0.0): Checks(10000, 10000),
    Shares(0.2, 0.1): Checks(9000, 9020),
    Shares(0.2, 0.3): Checks(7000, 7020),
    Shares(0.2, 0.5): Checks(5000, 5010),
}


@dataclass(frozen=True)
class OverheadParameters:
    """How many subscriptions a user has, and how many events are published.

    The paper does not say; 100 of each follow from its counts.
    """

    subscriptions: int = 100
    events: int = 100


def run(parameters: OverheadParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Match the events of each scenario against each profile; there is no chance in it."""
    checks = {}
    for number, shares in enumerate(TABLE):
        progress(number, len(TABLE), f"m = {shares.matching:.0%}, c = {shares.covered:.0%}")
        checks[shares] = checks_of(shares, parameters)
    return [exhibit(checks)]


def profile(covered: float, size: int) -> list[Subscription]:
    """Return one user's subscriptions, a share of which is covered, each by another one."""
    pairs = round(covered * size)
    roots = [f"topic = 't{number}'" for number in range(size - pairs)]
    refined = [f"topic = 't{number}' and year >= 2000" for number in range(pairs)]
    return [Subscription(f"s{n}", USER, text) for n, text in enumerate([*roots, *refined])]


def scenario(matching: float, size: int) -> list[Event]:
    """Return events of which a share matches, among the topics that are refined first."""
    hits = round(matching * size)
    topics = [f"t{number % 10}" if number < hits else "other" for number in range(size)]
    return [Event(f"e{n}", {"topic": topic, "year": 2009}, 0) for n, topic in enumerate(topics)]


def checks_of(shares: Shares, parameters: OverheadParameters) -> Checks:
    """Count the nodes that are checked for a scenario and a profile."""
    wishes = profile(shares.covered, parameters.subscriptions)
    siena, pref_siena = PreferentialGraph(wishes), PreferentialGraph(wishes)
    for event in scenario(shares.matching, parameters.events):
        siena.notified(event, [USER])
        pref_siena.ranks(event, subscribers=[USER])
    return Checks(*(graph.counters()["subscriptions"] for graph in (siena, pref_siena)))


def exhibit(checks: dict[Shares, Checks]) -> Exhibit:
    """Return the table with its claims."""
    rows = tuple((*shares, *counts, *TABLE[shares]) for shares, counts in checks.items())
    columns = ("m", "c", "SIENA", "PrefSIENA", "SIENA in the paper", "PrefSIENA in the paper")
    return Exhibit(
        "PREF",
        "Table 2",
        "Nodes checked to match events",
        DataTable(columns, rows),
        (same_counts(checks), siena_checks_roots(checks), overhead_is_small(checks)),
        picture(checks),
        "100 events against 100 subscriptions; of each covered one, exactly one other covers it.",
    )


def same_counts(checks: dict[Shares, Checks]) -> Claim:
    """Claim that all counts are those of the paper."""
    other = [shares for shares, counts in checks.items() if counts != TABLE[shares]]
    named = ", ".join(f"m = {m:.0%} and c = {c:.0%}" for m, c in other)
    return Claim(
        "All counts are those of the table.",
        f"{len(TABLE)} rows",
        f"{len(TABLE) - len(other)} of {len(TABLE)} rows" + (f"; not for {named}" if other else ""),
        not other,
        "Ranking checks one more node for each match that has a refinement: 10 for m = 10 %, and "
        "20 for m = 20 %, as in all other rows of the paper. In its last row it reports 10, as if "
        "only half of the events had matched.",
    )


def siena_checks_roots(checks: dict[Shares, Checks]) -> Claim:
    """Claim that without ranks only roots of the graph are checked."""
    equal = all(counts.siena == TABLE[shares].siena for shares, counts in checks.items())
    return Claim(
        "Without ranks, only subscriptions that no other covers are checked.",
        "(1 - c) of all pairs",
        "the same" if equal else "other counts",
        equal,
    )


def overhead_is_small(checks: dict[Shares, Checks]) -> Claim:
    """Claim that ranking needs few more checks."""
    most = max(counts.pref_siena / counts.siena - 1 for counts in checks.values())
    paper = max(counts.pref_siena / counts.siena - 1 for counts in TABLE.values())
    return Claim(
        "Ranking needs less than 1 % more checks.",
        f"at most {paper:.2%}",
        f"at most {most:.2%}",
        most < 0.01,
    )


def picture(checks: dict[Shares, Checks]) -> str:
    """Draw the additional checks of ranking, ours and the paper's."""
    labels = [f"{m:.0%}, {c:.0%}" for m, c in checks]
    added = [
        Series(name, labels, [counts.pref_siena - counts.siena for counts in table.values()])
        for name, table in (("ours", checks), ("the paper", TABLE))
    ]
    panel = Panel("Checks that ranking adds", "m, c", "nodes", added, bars=True)
    return chart([panel], width=7.4)


EXPERIMENT: Final = Experiment(
    "pref-table-2",
    "PREF",
    ("Table 2",),
    run,
    paper_parameters=OverheadParameters(),
    laptop=OverheadParameters(),
    quick=OverheadParameters(),
)
