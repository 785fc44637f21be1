"""Strategies for conditions over few values, so that many are equal and many cover others."""

from typing import Any

from hypothesis import strategies as st

from tidings.errors import InvalidCondition
from tidings.index.papers.cover_graph import CoverNode, PreferentialGraph
from tidings.model.conditions.predicate import PRESENCE, Condition, Predicate, predicate
from tidings.model.records import STATES, Subscription, Weighted

NUMBERS: list[Any] = [0, 1, 2, 3]
TEXTS: list[Any] = ["", "\0", "a", "A", "ab", "b", "ba"]
PATTERNS = ["prefix", "suffix", "substring", "iequal", "iprefix", "isuffix", "isubstring"]
FLAGS: list[Any] = [True, False]
SUBSCRIBERS = ["ann", "bob", "cy"]
EVENTS = st.dictionaries(
    st.sampled_from("ab"),
    st.lists(st.sampled_from([*NUMBERS, *TEXTS, *FLAGS]), min_size=1, max_size=2),
)


@st.composite
def parts(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from("ab"))
    values = draw(st.sampled_from([NUMBERS, TEXTS, FLAGS, list(PRESENCE)]))
    one = st.sampled_from(values)
    if values == list(PRESENCE):
        return predicate(name, draw(one))
    operators = ["=", "!=", "in"]
    operators += [] if values is FLAGS else ["<", "<=", ">", ">=", "between", "not between"]
    operators += [*PATTERNS, *(f"not {each}" for each in PATTERNS)] if values is TEXTS else []
    operators += [] if values is FLAGS else ["not in"]
    operator, operand = draw(st.sampled_from(operators)), draw(one)
    if operator in ("between", "not between"):
        operand = sorted([operand, draw(one)])
    elif operator in ("in", "not in"):
        operand = [operand, *draw(st.lists(one, max_size=2))]
    elif operator.startswith("not"):
        operand = operand or "ab"
    return predicate(name, operator, operand)


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
    current: list[str] = []
    for number in range(draw(st.integers(1, 12))):
        if current and not draw(st.integers(0, 2)):
            steps.append(current.pop(draw(st.integers(0, len(current) - 1))))
        else:
            current.append(f"s{number:02d}")
            steps.append(draw(subscriptions(current[-1])))
    return steps


def replayed(steps: list[Subscription | str]) -> tuple[PreferentialGraph, dict[str, Subscription]]:
    """Return a graph after all steps, and its subscriptions."""
    graph, current = PreferentialGraph(), dict[str, Subscription]()
    for step in steps:
        apply_step(step, graph, current)
    return graph, current


def apply_step(
    step: Subscription | str, graph: PreferentialGraph, current: dict[str, Subscription]
) -> None:
    if isinstance(step, str):
        del current[step]
        graph.remove(step)
    else:
        current[step.id] = step
        graph.add(step)


def ancestors(node: CoverNode) -> set[CoverNode]:
    """Return all nodes above one, by its edges."""
    above: set[CoverNode] = set()
    frontier = {*node.parents}
    while frontier:
        above |= frontier
        frontier = {parent for child in frontier for parent in child.parents} - above
    return above
