"""Conditions and products of a synthetic shop, as uneven as a real catalogue.

30 categories by Zipf's law, each with its own 8 to 20 of 250 attributes and a few that all share;
half are numbers, the rest strings and flags. A condition asks for some attributes of one product.
"""

from random import Random
from typing import Any

from tidings.model.conditions.predicate import Condition, Predicate, predicate
from tidings.model.records import Event, Subscription

CATEGORIES, ATTRIBUTES = 30, 250
COMMON = ("brand", "price", "rating")
OPERATORS = {
    "number": [("=", 30), (">=", 25), ("<=", 25), ("between", 20)],
    "word": [("=", 85), ("prefix", 8), ("in", 4), ("!=", 3)],
    "flag": [("=", 1)],
}


class Catalogue:
    """A generator of products, and of conditions that some product satisfies."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.sheets = [
            [*COMMON, *(f"a{number}" for number in self.chance.sample(range(ATTRIBUTES), size))]
            for size in (self.chance.randint(8, 20) for _ in range(CATEGORIES))
        ]

    def zipf(self, count: int) -> int:
        """Return a number below `count`, small ones more often."""
        return min(count - 1, int(count ** self.chance.random()) - 1)

    def product(self) -> dict[str, Any]:
        category = self.zipf(CATEGORIES)
        named = {name: self.value(name) for name in self.sheets[category]}
        return {"category": f"c{category}", **named}

    def value(self, name: str) -> Any:
        number = COMMON.index(name) if name in COMMON else int(name[1:])
        if kind(number) == "flag":
            return self.chance.random() < 0.3
        drawn = self.zipf(2 + number % 40 * (1 + number % 5))
        if kind(number) == "number":
            return float(drawn * (1 + number % 7))
        return f"{drawn * 7919 % 997:03d}-{number}"

    def condition(self) -> Condition:
        product = self.product()
        category = product.pop("category")
        names = self.chance.sample([*product], self.chance.randint(1, 4))
        parts = [self.part(name, product[name]) for name in names]
        if self.chance.random() < 0.6:
            parts.append(predicate("category", "=", category))
        return Condition((tuple(parts),))

    def part(self, name: str, value: Any) -> Predicate:
        family = {bool: "flag", float: "number", str: "word"}[type(value)]
        operators, weights = zip(*OPERATORS[family], strict=True)
        operator = self.chance.choices(operators, weights)[0]
        if operator == "between":
            margin = value * self.chance.choice([0.1, 0.25, 0.5])
            return predicate(name, operator, (value - margin, value + margin))
        if operator == "in":
            return predicate(name, operator, [value, value[:2], value[1:]])
        return predicate(name, operator, value[:2] if operator == "prefix" else value)


def kind(number: int) -> str:
    return "number" if number % 2 else "flag" if number % 10 == 4 else "word"


def subscriptions(count: int, each: int = 5, seed: int = 7) -> list[Subscription]:
    """Return `count` subscriptions, `each` per subscriber, with prefranks in tenths."""
    drawn = Catalogue(seed)
    return [
        Subscription(
            f"s{number:07d}",
            f"u{number // each:06d}",
            drawn.condition(),
            prefrank=drawn.chance.randint(0, 10) / 10,
        )
        for number in range(count)
    ]


def products(count: int, seed: int = 8) -> list[Event]:
    """Return events for products of the same shop."""
    drawn = Catalogue(7)
    drawn.chance = Random(seed)
    return [Event(f"e{number}", drawn.product(), 0) for number in range(count)]
