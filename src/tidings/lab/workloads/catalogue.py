"""Catalogues of products, with the subscriptions and publications that TKS 7.1 draws from them.

A catalogue is a file of any shop, or a synthetic one with the categories of TKS Table 7.1. Each
main category is a view: its products, which one kind of subscriber asks for. Values are text, as in
the thesis, which compares strings only (prefix-of, suffix-of, equal). Draws depend on a seed alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import file_digest
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import InvalidForm, shown
from tidings.formats.files import read_events
from tidings.formats.layout import Layout
from tidings.lab.workloads.zipf import zipf_weights
from tidings.model import validate
from tidings.model.conditions.predicate import PRESENCE, Predicate, predicate
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event, Subscription, Weighted
from tidings.model.values import tokens

OPERATORS: Final = ("=", "prefix", "suffix")
CHOICES: Final = ("zipf", "uniform")
PREFERENCES: Final = ("normal", "uniform")
SCENARIOS: Final = ("best-matching", "random-matching")
UNIFORM_PREFERENCE: Final = 0.5
"""The preference of every tuple of a subscriber without preferences (TKS Table 7.4)."""
MOST_CHANGED: Final = 0.4
"""The largest share of attributes in which a synthetic product differs from its sub-category."""
VIEWS: Final = 6
"""As many views as the thesis has are taken from a file: its largest categories."""
_SYLLABLES: Final = [consonant + vowel for consonant in "bdklmnrst" for vowel in "aeiou"]
_WORDS: Final = len(_SYLLABLES) ** 3
_SCATTER: Final = 7919  # has no factor in common with _WORDS


class Category(NamedTuple):
    """A main category of the thesis' catalogue (TKS Table 7.1)."""

    name: str
    subcategories: int
    products: int
    attributes: int


CATEGORIES: Final = (
    Category("Automotive", 322, 31_705, 48),
    Category("Books", 160, 10_000, 42),
    Category("Electronics", 142, 14_200, 54),
    Category("Movies", 197, 8_700, 66),
    Category("Phones", 40, 1_984, 57),
    Category("Home", 668, 32_865, 67),
)


class Product(NamedTuple):
    """A product: the texts of each of its attributes, usually one."""

    id: str
    attributes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class View:
    """The products of one main category."""

    name: str
    products: Sequence[Product]

    @cached_property
    def places(self) -> dict[str, dict[str, list[int]]]:
        """The products that have a value, by attribute and value."""
        places: dict[str, dict[str, list[int]]] = {}
        for place, product in enumerate(self.products):
            for name, texts in product.attributes.items():
                of_name = places.setdefault(name, {})
                for text in texts:
                    of_name.setdefault(text, []).append(place)
        return places

    @cached_property
    def attributes(self) -> list[str]:
        """The attributes, those of most products first."""
        counts = Counter(name for product in self.products for name in product.attributes)
        return sorted(counts, key=lambda name: (-counts[name], name))

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """The values of each attribute, those of most products first."""
        return {
            name: sorted(places, key=lambda text, places=places: (-len(places[text]), text))  # type: ignore[misc]
            for name, places in self.places.items()
        }


@dataclass(frozen=True)
class CatalogueFile:
    """A file of products, the columns of their categories and ids, and a digest of its bytes."""

    path: str
    category: str = "category"
    id_column: str | None = None
    digest: str = ""

    @classmethod
    def of(cls, path: Path, category: str, id_column: str | None = None) -> "CatalogueFile":
        """Return the file with its digest, so that a run over other products is another run."""
        with path.open("rb") as source:
            digest = file_digest(source, "sha256").hexdigest()[:16]
        return cls(str(path), category, id_column, digest)


@dataclass(frozen=True)
class CatalogueChoice:
    """Where the views of an experiment come from: a file, or else the synthetic catalogue.

    products: the most products of a view; all of them by default.
    """

    products: int | None = None
    file: CatalogueFile | None = None

    def views(self, seed: int) -> Mapping[str, View]:
        """Return the views; those of a file are its largest categories, the largest first."""
        if self.file is None:
            return synthetic_catalogue(seed, self.products)
        return _sampled_views(self.file, self.products, seed)


@dataclass(frozen=True)
class SubscriptionLaw:
    """How subscriptions are drawn.

    exponent: of the Zipf law by which attributes are chosen, and values unless they are uniform.
    sizes: the smallest and the largest number of tuples, d_s; each has another attribute.
    values: `zipf`, the more popular the more often, or `uniform`.
    preferences: `normal`, from N(0, 1) within (0, 1], or `uniform`, the same for all.
    """

    exponent: float = 1.0
    sizes: tuple[int, int] = (2, 32)
    values: str = "zipf"
    preferences: str = "normal"

    def __post_init__(self) -> None:
        validate.number("exponent", self.exponent)
        low, high = self.sizes
        validate.count("the largest size", high, low=validate.count("the smallest size", low))
        validate.choice("values", self.values, CHOICES)
        validate.choice("preferences", self.preferences, PREFERENCES)


def read_catalogue(
    path: Path | str, category: str = "category", id_column: str | None = None
) -> dict[str, View]:
    """Return the views of a catalogue in a file, by the values of the column `category`.

    Every other column is an attribute; columns of maps unfold to their keys, lists are several
    values. Without an `id_column` the ids are generated. The format follows from the name of the
    file: Parquet, CSV, JSON Lines, Arrow.
    """
    columns = {"id": id_column} if id_column else {}
    generated = ("published_at",) if id_column else ("id", "published_at")
    products: dict[str, list[Product]] = defaultdict(list)
    for record in read_events(path, layout=Layout(columns=columns, generate=generated)):
        if isinstance(record, BadRecord):
            raise InvalidForm(f"{Path(path).name}, row {record.position}: {record.reason}")
        texts = {name: tuple(_texts(value)) for name, value in record.attributes.items()}
        attributes = {name: values for name, values in texts.items() if values}
        if category not in attributes:
            raise InvalidForm(f"product {shown(record.id)} has no attribute {shown(category)}")
        name = attributes.pop(category)[0]
        products[name].append(Product(record.id, attributes))
    return {name: View(name, products[name]) for name in sorted(products)}


@lru_cache(1)
def _sampled_views(file: CatalogueFile, products: int | None, seed: int) -> Mapping[str, View]:
    """Return the views of a file that have attributes, each with at most `products` products."""
    described = {
        name: [product for product in view.products if product.attributes]
        for name, view in read_catalogue(file.path, file.category, file.id_column).items()
    }
    largest = sorted(
        filter(described.get, described), key=lambda name: (-len(described[name]), name)
    )
    if not largest:
        raise InvalidForm(f"{file.path}: no product has an attribute besides its category")
    views = {}
    for name in largest[:VIEWS]:
        rng = np.random.default_rng([seed, *name.encode()])
        places = np.sort(rng.permutation(len(described[name]))[:products])
        views[name] = View(name, [described[name][place] for place in places.tolist()])
    return MappingProxyType(views)


def _texts(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, bool):
            yield str(item).lower()
        else:
            yield f"{item:.15g}" if isinstance(item, float) else str(item)


@lru_cache(2)
def synthetic_catalogue(seed: int = 7, products: int | None = None) -> Mapping[str, View]:
    """Return a catalogue of 334 attributes in the 6 main categories of TKS Table 7.1.

    Each has the number of products that the thesis lists, or `products`.
    """
    if products is not None:
        validate.count("products", products)
    views = {
        category.name: View(
            category.name,
            SyntheticCategory(category, seed).products(
                category.products if products is None else products
            ),
        )
        for category in CATEGORIES
    }
    return MappingProxyType(views)


class SyntheticCategory:
    """An endless supply of products, each a variant of a sub-category of one main category.

    A sub-category has some of the attributes, popular ones more often, or exactly `dimensions` of
    them, with values by Zipf's law. A product takes over its values, except for a random share of
    at most `MOST_CHANGED`, which are drawn again.
    """

    def __init__(
        self, category: Category, seed: int = 7, dimensions: int | None = None, values: int = 6000
    ) -> None:
        validate.count("values", values, high=_WORDS)
        if dimensions is not None:
            validate.count("dimensions", dimensions, high=category.attributes)
        # The name tells the streams of categories of the same size apart.
        self._rng = np.random.default_rng([seed, *category.name.encode()])
        self._category = category
        self._law = _cumulated(values, 1.0)
        self._templates = [self._template(dimensions) for _ in range(category.subcategories)]
        self._count = 0

    def products(self, count: int) -> list[Product]:
        """Return the next `count` products."""
        return [self._product() for _ in range(count)]

    def _template(self, dimensions: int | None) -> tuple[Int64s, Int64s]:
        """Return the attributes of a sub-category and their values, as numbers."""
        total = self._category.attributes
        size = dimensions or int(self._rng.integers(total // 4, total + 1))
        chosen = np.sort(weighted_order(zipf_weights(total), self._rng)[:size])
        return chosen, self._draw(size)

    def _product(self) -> Product:
        attributes, template = self._templates[self._rng.integers(len(self._templates))]
        changed = self._rng.random(len(template)) < self._rng.random() * MOST_CHANGED
        values = np.where(changed, self._draw(len(template)), template)
        self._count += 1
        return Product(
            f"{self._category.name}-{self._count:06d}",
            {
                f"{self._category.name}.{attribute:03d}": (self._word(value, attribute),)
                for attribute, value in zip(attributes.tolist(), values.tolist(), strict=True)
            },
        )

    def _draw(self, count: int) -> Int64s:
        return np.searchsorted(self._law, self._rng.random(count))

    def _word(self, value: int, attribute: int) -> str:
        """Return a word that only this value of the attribute has; popular ones look random."""
        number = (value * _SCATTER + attribute) % _WORDS
        syllables = []
        for _ in range(3):
            number, syllable = divmod(number, len(_SYLLABLES))
            syllables.append(_SYLLABLES[syllable])
        return "".join(syllables)


@lru_cache(4096)
def _cumulated(count: int, exponent: float) -> Float64s:
    """Return the bounds between ranks: the place of a uniform draw among them is a Zipf draw."""
    bounds: Float64s = np.cumsum(zipf_weights(count, exponent))[:-1]
    return bounds


def weighted_order(weights: Float64s, rng: np.random.Generator) -> Int64s:
    """Return all places as if they were drawn one by one, by weight, without replacement."""
    # The Gumbel trick: the largest of ln(weight) + noise is each place with its probability.
    return np.argsort(-(np.log(weights) + rng.gumbel(size=len(weights))), kind="stable")


def subscriptions(
    view: View, count: int, law: SubscriptionLaw | None = None, *, subscriber: str, seed: int
) -> list[Subscription]:
    """Return `count` subscriptions of one subscriber to products of a view."""
    law = law or SubscriptionLaw()
    if validate.count("count", count, low=0) and not view.attributes:
        raise InvalidForm(f"the view {shown(view.name)} has no product with attributes")
    rng = np.random.default_rng(seed)
    return [
        Subscription(f"{subscriber}-{number:05d}", subscriber, any=_tuples(view, law, rng))
        for number in range(count)
    ]


def _tuples(view: View, law: SubscriptionLaw, rng: np.random.Generator) -> list[Weighted]:
    most = min(law.sizes[1], len(view.attributes))
    size = int(rng.integers(min(law.sizes[0], most), most + 1))
    by_popularity = weighted_order(zipf_weights(len(view.attributes), law.exponent), rng)
    names = [view.attributes[place] for place in by_popularity[:size]]
    weights = _preferences(law, size, rng)
    return [
        Weighted(_tuple(name, view.values[name], law, rng), weight)
        for name, weight in zip(names, weights, strict=True)
    ]


def _tuple(
    name: str, values: Sequence[str], law: SubscriptionLaw, rng: np.random.Generator
) -> Predicate:
    exponent = law.exponent if law.values == "zipf" else 0.0
    text = values[int(np.searchsorted(_cumulated(len(values), exponent), rng.random()))]
    operator = OPERATORS[rng.integers(len(OPERATORS))]
    length = int(rng.integers(1, len(text) + 1)) if text else 0
    if operator == "prefix":
        text = text[:length]
    elif operator == "suffix":
        text = text[len(text) - length :]
    return predicate(name, operator, text)


def _preferences(law: SubscriptionLaw, size: int, rng: np.random.Generator) -> list[float]:
    if law.preferences == "uniform":
        return [UNIFORM_PREFERENCE] * size
    drawn: list[float] = []
    while len(drawn) < size:  # a truncated normal distribution, by rejection
        drawn += [float(x) for x in rng.normal(size=size) if 0 < x <= 1]
    return drawn[:size]


def arrival_times_us(count: int, mean_delay_ms: float, rng: np.random.Generator) -> list[int]:
    """Return the times of a Poisson process: exponential delays, in microseconds from 0."""
    delays = rng.exponential(validate.positive("mean_delay_ms", mean_delay_ms) * 1000, count)
    times: list[int] = np.cumsum(delays).astype(np.int64).tolist()
    return times


def publications(
    view: View,
    count: int,
    subscriptions: Iterable[Subscription] = (),
    scenario: str = "random-matching",
    *,
    mean_delay_ms: float = 1000,
    seed: int,
) -> list[Event]:
    """Return `count` products of a view as a stream of publications with Poisson arrivals.

    In the scenario `best-matching`, all of them satisfy a tuple of the given subscriptions; in
    `random-matching` it is left to chance (TKS 7.2). Products come in random order; where there are
    too few, they come again under another id.
    """
    rng = np.random.default_rng(seed)
    eligible = view.products
    if validate.choice("scenario", scenario, SCENARIOS) == "best-matching":
        eligible = matching_products(view, subscriptions)
    if validate.count("count", count, low=0) and not eligible:
        lack = "that satisfies a subscription" if view.products else "at all"
        raise InvalidForm(f"the view {shown(view.name)} has no product {lack}")
    rounds = -(-count // max(1, len(eligible)))
    order = [
        (turn, place) for turn in range(rounds) for place in rng.permutation(len(eligible)).tolist()
    ]
    times = arrival_times_us(count, mean_delay_ms, rng)
    return [
        publication(eligible[place], time_us, turn)
        for (turn, place), time_us in zip(order, times, strict=False)
    ]


def publication(product: Product, time_us: int = 0, turn: int = 0) -> Event:
    """Return a product as an event; from the second turn on, under another id."""
    name = f"{product.id}#{turn + 1}" if turn else product.id
    values = {
        attribute: texts[0] if len(texts) == 1 else list(texts)
        for attribute, texts in product.attributes.items()
    }
    return Event(name, values, time_us / 1_000_000)


def matching_products(view: View, subscriptions: Iterable[Subscription]) -> list[Product]:
    """Return the products of a view that satisfy at least one tuple."""
    tuples = dict.fromkeys(
        part.predicate
        for subscription in subscriptions
        for group in subscription.groups
        for part in group
    )
    places: set[int] = set()
    for condition in tuples:
        places |= _places(view, condition)
    return [view.products[place] for place in sorted(places)]


def _places(view: View, condition: Predicate) -> set[int]:
    """Return the products that satisfy a predicate, which is tested once for each value."""
    if condition.operator in PRESENCE:  # a product without the attribute may satisfy it
        events = enumerate(map(publication, view.products))
        return {place for place, event in events if condition.holds(event.tokens)}
    of_name = view.places.get(condition.attribute, {})
    return {
        place
        for text, places in of_name.items()
        if condition.holds({condition.attribute: tokens(text)})
        for place in places
    }
