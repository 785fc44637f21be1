"""A catalogue like that of TKS 7.1: products of categories, in variants, values by Zipf's law."""

from collections.abc import Sequence
from importlib import import_module
from statistics import fmean
from typing import Any

import numpy as np

from tidings.diversify import Candidate
from tidings.model.records import Event

CATEGORIES, VALUES, EXPONENT = 60, 1000, 1.0
MOST_CHANGED = 0.4


class Catalogue:
    """Products of `size` attributes, D; a variant differs from its product in some of them.

    The categories belong to `mains` that share no attribute.
    """

    def __init__(
        self, size: int, seed: int = 7, categories: int = CATEGORIES, mains: int = 6
    ) -> None:
        self.chance = np.random.default_rng(seed)
        self.size, self.mains = size, mains
        weights = 1 / np.arange(1, VALUES + 1) ** EXPONENT
        self.law = np.cumsum(weights / weights.sum())[:-1]
        self.products = [self._values(size) for _ in range(categories)]
        self.made = 0

    def event(self) -> Event:
        kind = int(self.chance.integers(len(self.products)))
        values = self.products[kind].copy()
        changed = self.chance.random(self.size) < self.chance.random() * MOST_CHANGED
        values[changed] = self._values(int(changed.sum()))
        main = kind % self.mains
        attributes = {f"c{main}-{i}": f"v{value}" for i, value in enumerate(values.tolist())}
        self.made += 1
        return Event(f"p{self.made:07d}", attributes, self.made)

    def events(self, count: int) -> list[Event]:
        return [self.event() for _ in range(count)]

    def candidates(self, count: int) -> list[Candidate]:
        ranks = self.chance.random(count).tolist()
        return [Candidate(self.event(), rank, rank) for rank in ranks]

    def wishes(self, size: int) -> dict[tuple[str, str], float]:
        """Return values of one main category with normal weights, popular ones more often."""
        places = self._values(size) % self.size
        values, weights = self._values(size), abs(self.chance.normal(size=size))
        wished = zip(places.tolist(), values.tolist(), weights.tolist(), strict=True)
        return {(f"c0-{place}", f"v{value}"): weight for place, value, weight in wished}

    def wanted(self, count: int, wishes: dict[tuple[str, str], float]) -> list[Candidate]:
        """Return events with preferred values, ranked by the mean of their weights."""
        candidates: list[Candidate] = []
        while len(candidates) < count:
            event = self.event()
            met = [wishes[pair] for pair in event.attributes.items() if pair in wishes]
            if met:
                candidates.append(Candidate(event, fmean(met), fmean(met)))
        return candidates

    def _values(self, count: int) -> Any:
        return np.searchsorted(self.law, self.chance.random(count))


def films(count: int, seed: int) -> list[Candidate] | None:
    """Return random films with the attributes of PREF 7.1 and random ranks; None without data."""
    try:
        movies = import_module("tidings.app.demo.movies")
        table = movies.publications(movies.catalogue(), most=count, seed=seed).to_pylist()
    except ImportError:
        return None
    ranks = np.random.default_rng(seed).random(count).tolist()
    return [film(row, rank) for row, rank in zip(table, ranks, strict=True)]


def film(row: dict[str, Any], rank: float) -> Candidate:
    """Return the candidate of a film; missing ratings or genres count as equal."""
    present = {name: row[name] for name in ("title", "year", "length", "rating")}
    blank = {"mpaa": row["mpaa"] or "", "genre": row["genre"] or []}
    return Candidate(Event(row["id"], present | blank, row["published_at"]), rank, rank)


def texts(events: Sequence[Event]) -> list[list[str]]:
    """Return each event as attribute=value, the form that the peers need."""
    return [[f"{name}={value}" for name, value in event.attributes.items()] for event in events]
