"""Conditions at random, right and damaged: each is read, and printed back, or refused in place."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.fuzz import cases

from tidings.errors import InvalidCondition
from tidings.model.conditions.parser import parse, render

NAMES = ["a", "Year", "a.b", "`x y`", '"order"', "date", "timestamp", "if", "case", "map", "n"]
VALUES = [
    "1", "-3", "1.5", ".5", "1e3", "1e", "007", "- 4", "+5", "0x1F", "9" * 5_000, "- - 1",
    "'a'", "'%A'", "'aß%'", "'it''s'", "''", "$$q$$", "e'x'", "'a' 'b'", "true", "null", "c",
    "date '2020-01-01'", "timestamp '2020-01-01T00:00:00Z'", "'2020-01-01'::date", "date 'soon'",
    "((2))", "f(x)", "(select 1)", "{:1}", "[1]", "?", "$1", ":p", "*", "1 + 1", "\u00b2",
]  # fmt: skip
SCRAPS = [
    *"()[]{},;.:!~^&|?*+-/%='\"`@#\\\0\n\u2028\ud800\u00b2", "and", "or", "not", "in", "like",
    "ilike", "between", "is", "null", "select", "case when", "end", "cast(", "::", "->", "$$", "/*",
    "--",
]  # fmt: skip


def leaf(chance: random.Random) -> str:
    name, value, other = chance.choice(NAMES), chance.choice(VALUES), chance.choice(VALUES)
    negated = chance.choice(["", "not "])
    return chance.choice(
        [
            f"{name} {chance.choice(['=', '!=', '<', '<=', '>', '>=', '<>', '==', 'is'])} {value}",
            f"{name} = {chance.randint(0, 3)}",
            f"{value} < {name}",
            f"{name} {negated}between {value} and {other}",
            f"{name} {negated}in ({value}, {other})",
            f"{name} {negated}{chance.choice(['like', 'ilike'])} {value}",
            f"{name} {negated}{chance.choice(['like', 'ilike'])} {value} escape {other}",
            f"{name} is {negated}null",
            chance.choice(["true", "false"]),
            f"{chance.choice(['starts_with', 'ends_with', 'contains', 'f'])}({name}, {value})",
            name,
        ]
    )


def condition(chance: random.Random, depth: int = 0) -> str:
    kind = chance.randint(0, 9) if depth < 5 else 0
    if kind < 4:
        return leaf(chance)
    if kind < 7:
        word = chance.choice(["and", "or"])
        return f"{condition(chance, depth + 1)} {word} {condition(chance, depth + 1)}"
    return f"{chance.choice(['', 'not '])}({condition(chance, depth + 1)})"


def damaged(chance: random.Random, text: str) -> str:
    for _ in range(chance.randint(0, 4)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 4))
        scrap = chance.choice([*SCRAPS, "", text[start:end] * 3])
        text = text[:start] + chance.choice(["", " "]) + scrap + text[end:]
    return text


def deep_down(frames: int, call: Callable[..., Any], *given: Any) -> Any:
    return call(*given) if frames <= 0 else deep_down(frames - 1, call, *given)


def outcome(text: str, frames: int = 0) -> object:
    try:
        return deep_down(frames, parse, text)
    except InvalidCondition as refused:
        if refused.position is not None and refused.position not in range(len(text) + 1):
            raise
        return str(refused)


@pytest.mark.parametrize("text", ["case li ::ecase when3", "a = 1 or b like 'x' escape 1", "a ="])
def test_an_answer_does_not_depend_on_the_stack(text: str) -> None:
    found = outcome(text)
    for frames in range(500, 1_000):
        try:
            assert outcome(text, frames) == found, frames
        except RecursionError:  # before it was parsed
            assert frames > 800
            break


@pytest.mark.fuzz
def test_any_condition_is_read_or_refused_and_means_the_same_when_printed() -> None:
    for seed in range(cases(1_500)):
        chance = random.Random(seed)
        text = damaged(chance, condition(chance))
        found = outcome(text)
        if not isinstance(found, str):
            assert parse(render(found)) == found, text  # type: ignore[arg-type]
        if seed % 7 == 0:
            assert outcome(text, 900) == found, text
