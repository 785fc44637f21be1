"""TKS Tables 5.9 and 5.10: the worked example of LSH buckets, and of the votes that they give.

Table 5.9 puts five publications into the buckets of four hash tables; the most relevant publication
of each bucket gets its vote. The thesis does not print the relevance, so all orders are tried.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from tidings.lab.papers.experiment import Cell, Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart

PUBLICATIONS: Final = "ABCDE"


@dataclass(frozen=True)
class ExampleParameters:
    """The buckets of each hash table (Table 5.9), and votes in the order A to E (Table 5.10)."""

    tables: tuple[tuple[str, ...], ...] = (
        ("AD", "BC", "E"),
        ("AD", "BCE"),
        ("A", "BE", "CD"),
        ("AE", "BD", "C"),
    )
    votes: tuple[int, ...] = (4, 3, 3, 0, 1)


Orders = Mapping[tuple[int, ...], Sequence[str]]
"""By the votes of A to E: the orders of relevance that yield them."""


def run(parameters: ExampleParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Count the votes for all orders of relevance; nothing depends on the seed."""
    progress(0, 1, "orders of relevance")
    return [table_5_9(parameters.tables), table_5_10(parameters)]


def votes_of(tables: Sequence[Sequence[str]], order: str) -> tuple[int, ...]:
    """Return the votes of A to E if relevance has this order.

    >>> votes_of([["AB", "CDE"], ["A", "BCDE"]], "EDCBA")
    (1, 1, 0, 0, 2)
    """
    winners = Counter(min(bucket, key=order.index) for table in tables for bucket in table)
    return tuple(winners[name] for name in PUBLICATIONS)


def table_5_9(tables: Sequence[Sequence[str]]) -> Exhibit:
    """Return the buckets, which have to be a partition in each hash table."""
    parted = [sorted("".join(table)) == list(PUBLICATIONS) for table in tables]
    rows = tuple(
        (number, " ".join(table), len(table), max(map(len, table)))
        for number, table in enumerate(tables, 1)
    )
    claim = Claim(
        "Each hash table puts each publication into one bucket.",
        "a bucket for each publication",
        f"in {sum(parted)} of {len(tables)} hash tables",
        all(parted),
        "A publication is missing from a hash table, or is in two of its buckets.",
    )
    sizes = [
        Series(
            f"table {number}", list(PUBLICATIONS), [_shared(table, name) for name in PUBLICATIONS]
        )
        for number, table in enumerate(tables, 1)
    ]
    return Exhibit(
        "TKS",
        "Table 5.9",
        "The buckets of the worked example",
        DataTable(("hash table", "buckets", "number of buckets", "largest bucket"), rows),
        (claim,),
        chart([Panel("Size of its bucket", "publication", "publications", sizes, bars=True)]),
    )


def _shared(table: Sequence[str], name: str) -> int:
    return max((len(bucket) for bucket in table if name in bucket), default=0)


def table_5_10(parameters: ExampleParameters) -> Exhibit:
    """Return the votes that orders of relevance yield, those nearest to the thesis' first."""
    orders: dict[tuple[int, ...], list[str]] = {}
    for permutation in permutations(PUBLICATIONS):
        order = "".join(permutation)
        orders.setdefault(votes_of(parameters.tables, order), []).append(order)

    def difference(votes: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        pairs = zip(votes, parameters.votes, strict=True)
        return sum(abs(ours - thesis) for ours, thesis in pairs), votes

    nearest = sorted(orders, key=difference)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (*votes, difference(votes)[0], len(orders[votes]), orders[votes][0]) for votes in nearest
    )
    bars = [
        Series("the thesis", list(PUBLICATIONS), list(parameters.votes)),
        Series(f"relevance {orders[nearest[0]][0]}", list(PUBLICATIONS), list(nearest[0])),
    ]
    return Exhibit(
        "TKS",
        "Table 5.10",
        "The votes of the worked example",
        DataTable((*PUBLICATIONS, "difference", "orders", "such as"), rows),
        (votes_are_complete(parameters), votes_follow(parameters, orders)),
        chart([Panel("Votes", "publication", "votes", bars, bars=True)]),
        "Orders of relevance have the most relevant publication first.",
    )


def votes_are_complete(parameters: ExampleParameters) -> Claim:
    """Claim that every bucket has cast its vote."""
    buckets, votes = sum(map(len, parameters.tables)), sum(parameters.votes)
    return Claim(
        "There are as many votes as buckets.",
        f"{votes} votes",
        f"{buckets} buckets",
        votes == buckets,
    )


def votes_follow(parameters: ExampleParameters, orders: Orders) -> Claim:
    """Claim that some order of relevance yields the votes of the thesis."""
    by_name = zip(PUBLICATIONS, parameters.votes, strict=True)
    yielding, tried = len(orders.get(parameters.votes, ())), sum(map(len, orders.values()))
    return Claim(
        "The votes of Table 5.10 follow from the buckets of Table 5.9.",
        ", ".join(f"{name} {votes}" for name, votes in by_name if votes),
        f"{yielding} of {tried} orders of relevance yield these votes",
        yielding > 0,
        "D has no vote, so A, B and C are more relevant than D; A has 4, so it is more relevant "
        "than E, and E with 1 vote is less relevant than B. Then B has 4 and C 2, or B 2 and C 4.",
    )


EXPERIMENT: Final = Experiment(
    "tks-table-5.10",
    "TKS",
    ("Table 5.9", "Table 5.10"),
    run,
    paper_parameters=ExampleParameters(),
    laptop=ExampleParameters(),
    quick=ExampleParameters(),
)
