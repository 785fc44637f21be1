"""Products in variants, as TKS 7.1 has them, and films, as candidates with random ranks."""

from collections.abc import Sequence

import numpy as np

from tidings.diversify import Candidate
from tidings.lab.workloads.catalogue import Category, SyntheticCategory, publication
from tidings.model.records import Event

SUBCATEGORIES, VALUES = 60, 1000


class Catalogue:
    """Products of `size` attributes, D; a variant differs from its sub-category in some of them."""

    def __init__(self, size: int, seed: int = 7) -> None:
        shop = Category("shop", SUBCATEGORIES, 0, size)
        self._supply = SyntheticCategory(shop, seed, dimensions=size, values=VALUES)
        self._chance, self._made = np.random.default_rng(seed), 0

    def events(self, count: int) -> list[Event]:
        """Return new products, published a second after one another."""
        first, self._made = self._made, self._made + count
        numbered = enumerate(self._supply.products(count), first)
        return [publication(product, number * 1_000_000) for number, product in numbered]

    def candidates(self, count: int) -> list[Candidate]:
        ranks = self._chance.random(count).tolist()
        pairs = zip(self.events(count), ranks, strict=True)
        return [Candidate(event, rank, rank) for event, rank in pairs]


def texts(events: Sequence[Event]) -> list[list[str]]:
    """Return each event as attribute=value, the form that the peers need."""
    return [[f"{name}={value}" for name, value in event.attributes.items()] for event in events]
