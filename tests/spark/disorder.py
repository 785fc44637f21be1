"""Random subscribers and streams: all parts of policies, disorder, repeats, bad records."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pyarrow as pa

from tidings import Policy, Subscriber, Subscription

T = TypeVar("T")
Form = dict[str, Any]
GENRES = ("comedy", "drama", "horror")
COLUMNS = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us", "UTC"),
        "sequence": pa.int64(),
        "genre": pa.list_(pa.string()),
        "year": pa.int64(),
        "title": pa.string(),
        "good": pa.bool_(),
        "price": pa.float64(),
        "more": pa.map_(pa.string(), pa.float64()),
        "content": pa.struct({"title": pa.string(), "tags": pa.list_(pa.int64())}),
    }
)
SCORERS: tuple[Any, ...] = (
    "exact",
    *({"name": "relaxed", "aggregate": each} for each in ("sum", "max", "mean", "min")),
    *({"name": "preference", "aggregate": each} for each in ("max", "mean", "min")),
    {"name": "preference", "aggregate": "sum", "weights": {"a-0": 2.0, "b-1": 0.5, "c-0": 0.5}},
    *({"name": "graph", "lambda": 0.4, "aggregate": each} for each in ("mean", "sum")),
    {"name": "graph", "lambda": 1, "threshold": 2},
)
DECAYS: tuple[Any, ...] = (
    *("none", "polynomial", "logarithmic"),
    {"name": "exponential", "rate": 0.1},
    {"name": "exponential", "rate": 20.0, "landmark": 5},
    {"name": "polynomial", "exponent": 2, "landmark": 3},
)
DIVERSIFIERS: tuple[Any, ...] = (
    *("none", "none", "none", "optimal", "maxmin", "maxavg", "disc", "maxdivrel", "maxdivrel-lsh"),
    *({"name": "divrank", "sigma": each} for each in (0.0, 0.3, 1.0)),
    {"name": "maxsum", "distance": "jaccard"},
    {"name": "divrank", "distance": {"name": "overlap", "weights": {"genre": 0.3, "year": 1.1}}},
    {"name": "maxdivrel", "alpha": 0.5},
    {"name": "disc", "alpha": 1},
    {"name": "maxdivrel-lsh", "tables": 3, "rows": 1},
)
CONDITIONS = (
    *(f"genre = '{each}'" for each in GENRES),
    *("year between 2001 and 2002 or good", "genre = 'drama' and year >= 2001", "title like 'a%'"),
    *(
        "genre != 'horror'",
        "not good",
        "price > 1 and price <= 3",
        "m.x < 3",
        "contains(title, 'x')",
    ),
)
WEIGHTED = (
    *([["genre = 'drama'", 0.5], ["year >= 2002", 2]], [["good", 1], ["m.x = 2", 0]]),
    [["title like '%y'", 0.3], ["price <= 2", 0.3], ["genre = 'comedy'", 1]],
)


def any_policy(chance: Random, counting: bool) -> Policy:
    """Return a random policy; without `counting`, none that counts published events."""
    return Policy(
        k=chance.randint(1, 4),
        scorer=chance.choice(SCORERS),
        decay=chance.choice(DECAYS),
        window=_window(chance, ("matching", "published") if counting else ("matching",)),
        diversify=chance.choice(DIVERSIFIERS),
        rules=any_rules(chance),
    )


def any_rules(chance: Random) -> list[Form]:
    """Return no rules, or a few whose periods are as short as the streams here."""
    rules: list[Form] = [
        {
            "name": "quota",
            "n": chance.randint(1, 3),
            "per": chance.choice(["5s", "20s", "hour", "day"]),
            "pick": chance.choice(["best", "best", "first"]),
        },
        {
            "name": "quiet",
            "start": "23:59:50",
            "end": "00:00:10",
            "urgent": chance.choice([None, 2]),
        },
        {"name": "different", "min": 0.5, "within": chance.choice(["5s", "1h"])},
    ]
    return chance.sample(rules, chance.choice([0, 0, 1, 2, 3]))


def _window(chance: Random, counts: Sequence[str]) -> Form:
    name = chance.choice(["continuous", "periodic", "sliding", "jumping", "history"])
    found: Form = {"name": name, "wait": chance.random() < 0.3}
    size = chance.choice([f"{chance.randint(1, 9)}s", chance.randint(1, 6)])
    if name == "continuous":
        return found | ({"expires": size} if chance.random() < 0.5 else {})
    if name in ("sliding", "jumping"):
        found["delivered"] = chance.choice(["keep", "leave"])
    if name == "history":
        found["strict"] = chance.random() < 0.5
    if name == "jumping":
        return found | _jump(chance, counts)
    if isinstance(size, int):
        return found | {"length": size, "count": chance.choice(counts)}
    origin = {"origin": chance.randint(-3, 3)} if name == "periodic" else {}
    return found | {"length": size} | origin


def _jump(chance: Random, counts: Sequence[str]) -> Form:
    step = chance.randint(1, 4)
    length = step + chance.randint(0, 4)
    kind = chance.choice([*counts, "time", "mixed"])
    if kind == "time":
        return {"length": f"{length}s", "step": f"{step}s"}
    if kind == "mixed":
        return {"length": f"{length}s", "step": step}
    return {"length": length, "step": step, "count": kind}


def any_subscriber(chance: Random, name: str, counting: bool) -> Subscriber:
    prefers = [(f"{name}-{i}", f"{name}-{i + 1}") for i in range(3) if chance.random() < 0.3]
    return Subscriber(name, any_policy(chance, counting), prefers)


def any_subscription(chance: Random, owner: str, number: int) -> Subscription:
    form: Form = {"id": f"{owner}-{number}", "subscriber": owner}
    if chance.random() < 0.8:
        form["prefrank"] = chance.randint(0, 4) / 4
    if chance.random() < 0.7:
        form["score"] = chance.randint(0, 3)
    if chance.random() < 0.25:
        return Subscription(**form, any=chance.choice(WEIGHTED))
    return Subscription(**form, where=chance.choice(CONDITIONS))


@dataclass
class Stream:
    """Events in pieces as they arrive; late ones are at the beginning of a piece."""

    pieces: list[list[Form]] = field(default_factory=lambda: [[]])
    bad: int = 0
    newest: float = -math.inf

    def put(self, form: Form) -> None:
        self.pieces[-1].append(form)
        self.newest = max(self.newest, form["published_at"])


def any_stream(chance: Random, lateness: int, numbered: bool, repeats: bool) -> Stream:
    """Return a stream whose disorder is within the lateness, except for intended late events."""
    made, published = Stream(), list[Form]()
    for form in _arriving(chance, _events(chance, numbered), lateness):
        if published and chance.random() < 0.04:
            old = form | {"id": f"late-{form['id']}", "published_at": made.newest - lateness - 2}
            made.pieces.append([old | ({"sequence": 1} if numbered else {})])
        made.put(form)
        published.append(form)
        if repeats and chance.random() < 0.07:
            first = chance.choice(published)
            made.put(first | {"published_at": chance.choice([first["published_at"], made.newest])})
        if chance.random() < 0.05:
            made.bad += 1
            worse: Form = {"attributes": {"price": math.nan}, "published_at": made.newest}
            made.pieces[-1].append({"id": f"bad-{made.bad}"} | chance.choice([worse, {}]))
    return made


def _events(chance: Random, numbered: bool) -> Iterator[Form]:
    at: float = chance.choice([0, -5, 1000])
    for number in range(1, chance.randint(1, 50)):
        at += chance.choice([0, 0, 1, 1, 2, 7, 0.5])
        values: Form = {"genre": chance.sample(GENRES, chance.randint(1, 2))}
        values["title"] = chance.choice("abc") + chance.choice("xy")
        more: Form = {"year": chance.randint(2000, 2003), "good": chance.random() < 0.5}
        more |= {"price": chance.randint(0, 4) / 1, "m.x": chance.randint(0, 4) / 1}
        values |= {name: value for name, value in more.items() if chance.random() < 0.6}
        form = {"id": f"{chance.choice('xyz')}{number}", "published_at": at, "attributes": values}
        if number % 3:
            form["content"] = {"title": f"Film {number}", "tags": [number]}
        yield form | ({"sequence": 2 * number} if numbered else {})


def _arriving(chance: Random, forms: Iterator[Form], lateness: int) -> list[Form]:
    """Delay events by at most the lateness; those of the same time alike, in their order."""
    delays: dict[float, float] = {}

    def due(form: Form) -> tuple[float, float, int, str]:
        at = form["published_at"]
        delay = delays.setdefault(at, chance.random() * lateness)
        return at + delay, at, form.get("sequence", 0), form["id"]

    return sorted(forms, key=due)


def split(chance: Random, items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Split a list into pieces of random sizes up to a maximum."""
    while items:
        size = chance.randint(1, most)
        yield items[:size]
        items = items[size:]


def as_rows(forms: Sequence[Form], numbered: bool) -> pa.RecordBatch:
    """Return JSON forms as columns; one attribute is in a map."""
    rows = []
    for form in forms:
        values = dict(form.get("attributes", {}))
        inner, at = values.pop("m.x", None), form.get("published_at")
        row = values | {"id": form["id"], "sequence": form.get("sequence")}
        row["content"] = form.get("content")
        row["published_at"] = None if at is None else int(at * 1_000_000)
        rows.append(row | {"more": None if inner is None else [("m.x", inner)]})
    table = pa.Table.from_pylist(rows, COLUMNS)
    [batch] = (table if numbered else table.drop_columns(["sequence"])).to_batches()
    return batch
