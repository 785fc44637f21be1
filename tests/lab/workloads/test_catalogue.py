"""Catalogues, and what is drawn from them: laws, operators, scenarios and seeds (TKS 7.1, 7.2)."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings.errors import InvalidForm, TidingsError
from tidings.index.scan import Scan
from tidings.lab.workloads.catalogue import (
    CATEGORIES,
    OPERATORS,
    Category,
    Product,
    SubscriptionLaw,
    SyntheticCategory,
    View,
    arrival_times_us,
    matching_products,
    publication,
    publications,
    read_catalogue,
    subscriptions,
    synthetic_catalogue,
    weighted_order,
)
from tidings.lab.workloads.zipf import zipf_weights
from tidings.model.records import Subscription

SHOES = Category("Shoes", subcategories=6, products=0, attributes=20)

SATISFIES: dict[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "prefix": str.startswith,
    "suffix": str.endswith,
}


@pytest.fixture(scope="module")
def shoes() -> View:
    return View("Shoes", SyntheticCategory(SHOES, seed=3).products(120))


def test_the_synthetic_catalogue_has_334_attributes_in_6_categories() -> None:
    assert sum(category.attributes for category in CATEGORIES) == 334
    assert sum(category.subcategories for category in CATEGORIES) == 1529
    views = synthetic_catalogue(products=200)
    assert [*views] == [category.name for category in CATEGORIES]
    for category, view in zip(CATEGORIES, views.values(), strict=True):
        assert len(view.products) == 200
        assert len(view.attributes) == category.attributes
    names = [name for view in views.values() for name in view.attributes]
    assert len(names) == len(set(names)) == 334  # no attribute in two categories


def test_the_same_seed_gives_the_same_catalogue_and_another_one_another() -> None:
    one, same, other = (synthetic_catalogue(seed, products=5) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_products_are_variants_of_few_kinds(shoes: View) -> None:
    """Products of one sub-category share most of their values, other products few."""

    def shared(one: Product, other: Product) -> float:
        equal = len(one.attributes.items() & other.attributes.items())
        return equal / max(len(one.attributes), len(other.attributes))

    pairs = [*combinations(shoes.products[:60], 2)]
    akin = [shared(*pair) for pair in pairs if [*pair[0].attributes] == [*pair[1].attributes]]
    apart = [shared(*pair) for pair in pairs if [*pair[0].attributes] != [*pair[1].attributes]]
    assert len({tuple(product.attributes) for product in shoes.products}) <= SHOES.subcategories
    assert np.mean(akin) > 0.6
    assert np.mean(apart) < 0.2


@pytest.mark.parametrize("dimensions", [1, 7, 20])
def test_products_have_as_many_attributes_as_wanted(dimensions: int) -> None:
    products = SyntheticCategory(SHOES, dimensions=dimensions).products(20)
    assert {len(product.attributes) for product in products} == {dimensions}


@pytest.mark.parametrize(("dimensions", "values"), [(0, 10), (21, 10), (5, 0), (5, 10**6)])
def test_impossible_sizes_are_refused(dimensions: int, values: int) -> None:
    with pytest.raises(TidingsError, match=r"dimensions|values"):
        SyntheticCategory(SHOES, dimensions=dimensions, values=values)


def test_values_follow_zipf() -> None:
    """With one sub-category per product, values are independent draws."""
    loner = Category("Loner", subcategories=2000, products=0, attributes=1)
    supply = SyntheticCategory(loner, dimensions=1, values=50)
    view = View("Loner", supply.products(4000))
    counts = Counter(text for product in view.products for (text,) in product.attributes.values())
    observed = np.array([counts[text] for text in view.values["Loner.000"]]) / 4000
    assert np.abs(observed[:5] - zipf_weights(50)[:5]).max() < 0.04
    assert len(counts) == 50  # each value has a word of its own


def test_attributes_and_values_are_ordered_by_popularity() -> None:
    view = View(
        "v",
        [
            Product("1", {"b": ("x",), "a": ("p",)}),
            Product("2", {"b": ("y", "x")}),
            Product("3", {"b": ("z",), "c": ("p",)}),
        ],
    )
    assert view.attributes == ["b", "a", "c"]
    assert view.values == {"b": ["x", "y", "z"], "a": ["p"], "c": ["p"]}


def test_the_first_of_a_weighted_order_follows_the_weights() -> None:
    rng, weights = np.random.default_rng(5), zipf_weights(5)
    firsts = Counter(int(weighted_order(weights, rng)[0]) for _ in range(4000))
    observed = np.array([firsts[place] for place in range(5)]) / 4000
    assert np.abs(observed - weights).max() < 0.03
    assert sorted(weighted_order(weights, rng)) == [0, 1, 2, 3, 4]


def test_zipf_weights_are_those_of_the_thesis() -> None:
    weights = zipf_weights(4, exponent=2)
    assert weights.sum() == pytest.approx(1)
    assert (weights[0] / weights).tolist() == pytest.approx([1, 4, 9, 16])


def test_subscriptions_have_sizes_operators_and_attributes_of_the_law(shoes: View) -> None:
    law = SubscriptionLaw(sizes=(2, 9))
    drawn = subscriptions(shoes, 400, law, subscriber="ann", seed=1)
    assert {len(one.groups[0]) for one in drawn} == set(range(2, 10))
    parts = [part for one in drawn for part in one.groups[0]]
    shares = Counter(part.predicate.operator for part in parts)
    assert {*shares} == {*OPERATORS}
    assert min(shares.values()) / len(parts) > 0.28  # uniform
    for one in drawn:
        names = [part.predicate.attribute for part in one.groups[0]]
        assert len(names) == len(set(names))
    assert len({one.id for one in drawn}) == 400
    counts = Counter(part.predicate.attribute for part in parts)
    assert counts[shoes.attributes[0]] > counts[shoes.attributes[9]] > counts[shoes.attributes[19]]


def test_every_tuple_is_satisfied_by_a_product(shoes: View) -> None:
    for subscription in subscriptions(shoes, 20, subscriber="ann", seed=2):
        for part in subscription.groups[0]:
            satisfied = [
                text
                for text in shoes.values[part.predicate.attribute]
                if SATISFIES[part.predicate.operator](text, str(part.predicate.operand))
            ]
            assert satisfied


def test_preferences_are_uniform_or_a_truncated_normal(shoes: View) -> None:
    laws = (SubscriptionLaw(preferences=name) for name in ("uniform", "normal"))
    uniform, normal = (
        [
            part.weight
            for subscription in subscriptions(shoes, 300, law, subscriber="a", seed=1)
            for part in subscription.groups[0]
        ]
        for law in laws
    )
    assert set(uniform) == {0.5}
    assert min(normal) > 0
    assert max(normal) <= 1
    assert np.mean(normal) == pytest.approx(0.46, abs=0.02)  # of N(0, 1) within (0, 1]
    below = np.mean(np.array(normal) < 0.5)
    assert below == pytest.approx(0.561, abs=0.03)


def test_uniform_values_are_less_concentrated_than_zipf(shoes: View) -> None:
    def most_popular(values: str) -> float:
        law = SubscriptionLaw(values=values)
        drawn = subscriptions(shoes, 300, law, subscriber="a", seed=1)
        parts = [p.predicate for one in drawn for p in one.groups[0] if p.predicate.operator == "="]
        return fmean(p.operand == shoes.values[p.attribute][0] for p in parts)

    assert most_popular("zipf") > 2 * most_popular("uniform")


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": "normal"},
        {"preferences": "zipf"},
        {"exponent": -1},
        {"sizes": (0, 3)},
        {"sizes": (4, 3)},
    ],
)
def test_a_wrong_law_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(TidingsError):
        SubscriptionLaw(**wrong)  # type: ignore[arg-type]


def test_arrivals_are_a_poisson_process() -> None:
    times = np.array(arrival_times_us(20_000, 50, np.random.default_rng(3)))
    delays = np.diff(times, prepend=0)
    assert (delays >= 0).all()
    assert delays.mean() == pytest.approx(50_000, rel=0.03)
    assert delays.std() == pytest.approx(50_000, rel=0.05)
    counts = np.bincount(times // 1_000_000)[:-1]  # in a second: mean and variance are 20
    assert counts.mean() == pytest.approx(20, rel=0.05)
    assert counts.var() == pytest.approx(20, rel=0.2)


def test_the_scenarios_differ_in_what_matches(shoes: View) -> None:
    asked = subscriptions(shoes, 1, SubscriptionLaw(sizes=(2, 3)), subscriber="ann", seed=4)
    eligible = {product.id for product in matching_products(shoes, asked)}
    assert 0 < len(eligible) < len(shoes.products)
    best = publications(shoes, 50, asked, "best-matching", seed=1)
    some = publications(shoes, 50, asked, "random-matching", seed=1)
    assert {event.id.partition("#")[0] for event in best} <= eligible
    assert 0 < sum(event.id in eligible for event in some) < 50
    for stream in (best, some):
        assert len({event.id for event in stream}) == 50
        assert [e.published_us for e in stream] == sorted(e.published_us for e in stream)
    assert best == publications(shoes, 50, asked, "best-matching", seed=1)
    assert best != publications(shoes, 50, asked, "best-matching", seed=2)


@pytest.mark.parametrize(
    "where",
    [
        "x = 'ab'",
        "x like 'a%'",
        "x != 'ab'",
        "x is null",
        "x is not null",
        "true",
        "y in ('b', 'c')",
    ],
)
def test_matching_products_are_those_of_a_scan(where: str) -> None:
    values: list[dict[str, tuple[str, ...]]] = [{}, {"x": ("ab",)}, {"x": ("b", "ab"), "y": ("c",)}]
    view = View("v", [Product(str(number), of) for number, of in enumerate(values)])
    asked = [Subscription("s", "a", where=where)]
    expected = [product for product in view.products if Scan(asked).matching(publication(product))]
    assert matching_products(view, asked) == expected


def test_products_come_again_only_when_all_have_come(shoes: View) -> None:
    stream = publications(shoes, 250, seed=1)
    assert len({event.id for event in stream}) == 250
    assert {event.id for event in stream[:120]} == {product.id for product in shoes.products}
    assert all(event.id.endswith("#2") for event in stream[120:240])


def test_a_view_that_nobody_asks_for_cannot_match_best(shoes: View) -> None:
    with pytest.raises(InvalidForm, match="view 'Shoes' has no product that satisfies"):
        publications(shoes, 5, [], "best-matching", seed=1)
    with pytest.raises(TidingsError, match="scenario"):
        publications(shoes, 5, [], "worst-matching", seed=1)


def test_nothing_can_be_drawn_from_an_empty_view_or_in_negative_numbers(shoes: View) -> None:
    empty = View("empty", [])
    with pytest.raises(InvalidForm, match="view 'empty' has no product at all"):
        publications(empty, 1, seed=1)
    with pytest.raises(InvalidForm, match="view 'empty' has no product with attributes"):
        subscriptions(empty, 1, subscriber="a", seed=1)
    assert publications(empty, 0, seed=1) == []
    for draw in (
        lambda: publications(shoes, -1, seed=1),
        lambda: subscriptions(shoes, -1, subscriber="a", seed=1),
        lambda: synthetic_catalogue(products=0),
    ):
        with pytest.raises(TidingsError, match="at least"):
            draw()


def test_any_parquet_file_is_a_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "shop.parquet"
    rows = {
        "sku": ["a", "b", "c"],
        "kind": ["tea", "cup", "tea"],
        "grams": [100.0, None, 2.5],
        "organic": [True, None, False],
        "tags": [["green", "loose"], [], None],
        "extra": [[("origin", "Assam")], [("colour", "red")], []],
    }
    schema = {"extra": pa.map_(pa.string(), pa.string())}
    table = pa.table({name: pa.array(column, schema.get(name)) for name, column in rows.items()})
    parquet.write_table(table, path)
    views = read_catalogue(path, category="kind", id_column="sku")
    assert [*views] == ["cup", "tea"]
    assert views["tea"].products == [
        Product(
            "a",
            {
                "grams": ("100",),
                "organic": ("true",),
                "tags": ("green", "loose"),
                "origin": ("Assam",),
            },
        ),
        Product("c", {"grams": ("2.5",), "organic": ("false",)}),
    ]
    assert views["cup"].attributes == ["colour"]
    (event,) = publications(views["cup"], 1, seed=1)
    assert event.attributes == {"colour": "red"}
    generated = read_catalogue(path, category="kind")
    assert generated["cup"].products[0].attributes == {"sku": ("b",), "colour": ("red",)}
    with pytest.raises(InvalidForm, match="has no attribute 'category'"):
        read_catalogue(path, id_column="sku")
