"""Conditions from so few values that many are equal, and many cover others."""

from typing import Any

from hypothesis import strategies as st

from tidings.errors import InvalidCondition
from tidings.index.papers.cover_graph import CoverNode, PreferentialGraph
from tidings.model.conditions.predicate import Condition, Predicate, predicate
from tidings.model.records import STATES, Subscription, Weighted

NUMBERS: list[Any] = [0, 1, 2, 3]
TEXTS: list[Any] = ["", "\0", "a", "ab", "b", "ba"]
FLAGS: list[Any] = [True, False]
SUBSCRIBERS = ["ann", "bob", "cy"]
EVENTS = st.dictionaries(
    st.sampled_from("ab"),
    st.lists(st.sampled_from([*NUMBERS, *TEXTS, *FLAGS]), min_size=1, max_size=2),
)


@st.composite
def parts(draw: st.DrawFn) -> Predicate:
    values = draw(st.sampled_from([NUMBERS, TEXTS, FLAGS]))
    one = st.sampled_from(values)
    operators = ["=", "!=", "in"]
    operators += [] if values is FLAGS else ["<", "<=", ">", ">=", "between"]
    operators += ["prefix", "suffix", "substring"] if values is TEXTS else []
    operator, operand = draw(st.sampled_from(operators)), draw(one)
    if operator == "between":
        operand = sorted([operand, draw(one)])
    if operator == "in":
        operand = [operand, *draw(st.lists(one, max_size=2))]
    return predicate(draw(st.sampled_from("ab")), operator, operand)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    conjunctions = st.lists(parts(), min_size=1, max_size=3).map(tuple)
    drawn = draw(st.lists(conjunctions, min_size=1, max_size=2))
    try:
        return Condition(tuple(drawn))
    except InvalidCondition:  # bounds that leave nothing
        return Condition((drawn[0][:1],))


@st.composite
def subscriptions(draw: st.DrawFn, name: str) -> Subscription:
    owner, rank = draw(st.sampled_from(SUBSCRIBERS)), draw(st.sampled_from([None, 0, 0.4, 0.7, 1]))
    if draw(st.integers(0, 5)):
        return Subscription(name, owner, draw(conditions()), prefrank=rank)
    weighted = st.builds(Weighted, parts(), st.just(1.0), st.sampled_from(STATES))
    return Subscription(
        name, owner, any=draw(st.lists(weighted, min_size=1, max_size=3)), prefrank=rank
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Subscription | str]:
    """Draw subscriptions to add, and names to remove."""
    steps: list[Subscription | str] = []
    there: list[str] = []
    for number in range(draw(st.integers(1, 12))):
        if there and not draw(st.integers(0, 2)):
            steps.append(there.pop(draw(st.integers(0, len(there) - 1))))
        else:
            there.append(f"s{number:02d}")
            steps.append(draw(subscriptions(there[-1])))
    return steps


def replayed(steps: list[Subscription | str]) -> tuple[PreferentialGraph, dict[str, Subscription]]:
    """Give a graph after all steps, and the subscriptions that are in it."""
    graph, there = PreferentialGraph(), dict[str, Subscription]()
    for step in steps:
        take(step, graph, there)
    return graph, there


def take(
    step: Subscription | str, graph: PreferentialGraph, there: dict[str, Subscription]
) -> None:
    if isinstance(step, str):
        del there[step]
        graph.remove(step)
    else:
        there[step.id] = step
        graph.add(step)


def ancestors(node: CoverNode) -> set[CoverNode]:
    """Give all nodes above one, by its edges."""
    found: set[CoverNode] = set()
    grown = {*node.parents}
    while grown:
        found |= grown
        grown = {parent for each in grown for parent in each.parents} - found
    return found
