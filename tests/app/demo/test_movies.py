from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings import Event
from tidings.app.demo.movies import (
    DIRECTORS,
    FILMS,
    genres,
    publications,
    title,
    write_publications,
)
from tidings.formats.arrow import read_events


def events(table: pa.Table) -> list[Event]:
    records = list(read_events(table))
    assert all(isinstance(record, Event) for record in records)
    return records  # type: ignore[return-value]


def row_of(films: pa.Table, title: str, year: int) -> pa.Table:
    return films.filter((pa.compute.field("title") == title) & (pa.compute.field("year") == year))


def test_every_film_of_the_catalogue_is_published_once(films: pa.Table) -> None:
    ids = films["id"].to_pylist()
    assert films.num_rows == FILMS == 58_788
    assert sorted(ids) == [f"m{number:05d}" for number in range(1, FILMS + 1)]


def test_missing_values_are_null(films: pa.Table) -> None:
    missing = {name: films[name].null_count for name in films.column_names}
    assert {name: count for name, count in missing.items() if count} == {
        "genre": 12_786,
        "mpaa": 53_864,
        "budget": 53_573,
        "director": FILMS - 33,
    }


def test_missing_values_are_no_attributes(films: pa.Table) -> None:
    sample = events(films.slice(0, 500))
    assert len(sample) == 500
    assert all(None not in event.attributes.values() for event in sample)
    always = {"title", "year", "decade", "length", "rating", "votes"}
    assert all(always <= set(event.attributes) for event in sample)
    assert any("mpaa" not in event.attributes for event in sample)


def test_genres_are_the_flags_that_are_set(films: pa.Table, movies: pd.DataFrame) -> None:
    genres = films["genre"].combine_chunks().flatten().to_pylist()
    assert genres.count("drama") == movies["Drama"].sum() == 21_811
    assert genres.count("documentary") == movies["Documentary"].sum()
    assert set(genres) == {
        *("action", "animation", "comedy", "documentary", "drama", "romance", "short")
    }


def test_the_attributes_of_a_film(films: pa.Table) -> None:
    (film,) = events(row_of(films, "Big Fish", 2003))
    assert film.attributes == {
        "title": "Big Fish",
        "year": 2003,
        "decade": 2000,
        "length": 125,
        "rating": 8.1,
        "votes": 31525,
        "genre": ("comedy", "drama"),
        "mpaa": "PG-13",
        "budget": 70_000_000,
        "director": "T. Burton",
    }


def test_films_with_the_same_title_differ_by_year(films: pa.Table) -> None:
    assert row_of(films, "Planet of the Apes", 2001)["director"].to_pylist() == ["T. Burton"]
    assert row_of(films, "Planet of the Apes", 1968)["director"].to_pylist() == [None]


@pytest.mark.parametrize("director", DIRECTORS)
def test_every_film_of_the_directors_is_in_the_catalogue(films: pa.Table, director: str) -> None:
    listed = films.filter(pa.compute.field("director") == director)
    named = zip(listed["title"].to_pylist(), listed["year"].to_pylist(), strict=True)
    assert sorted(named) == sorted(DIRECTORS[director])


def test_a_film_is_published_every_ten_seconds_in_shuffled_order(movies: pd.DataFrame) -> None:
    few = publications(movies, most=3)
    times = [each.isoformat() for each in few["published_at"].to_pylist()]
    assert times == [f"2026-01-01T00:00:{seconds}+00:00" for seconds in ("00", "10", "20")]
    assert few["id"] == publications(movies, most=3)["id"]
    assert few["id"] != publications(movies, most=3, seed=1)["id"]


def test_files_are_modified_in_their_order(films: pa.Table, tmp_path: Path) -> None:
    few = films.slice(0, 10)
    sizes = write_publications(few, tmp_path / "publications", files=3)
    paths = sorted((tmp_path / "publications").iterdir(), key=lambda path: path.stat().st_mtime)
    assert paths == sorted(paths)
    assert sizes == [3, 3, 4]
    assert [row["id"] for path in paths for row in rows(path)] == few["id"].to_pylist()


def test_there_are_no_more_files_than_films(films: pa.Table, tmp_path: Path) -> None:
    assert write_publications(films.slice(0, 2), tmp_path / "publications", files=5) == [1, 1]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("Graduate, The", "The Graduate (2000)"),
        ("Avventura, L'", "L'Avventura (2000)"),
        ("Hello, Dolly!", "Hello, Dolly! (2000)"),
    ],
)
def test_articles_move_to_the_front(listed: str, expected: str) -> None:
    assert title(Event("m1", {"title": listed, "year": 2000}, 0)) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ()),
        ({"genre": "drama"}, ("drama",)),
        ({"genre": ["drama", "short"]}, ("drama", "short")),
    ],
)
def test_genres_are_a_tuple(attributes: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert genres(Event("m1", attributes, 0)) == expected


def rows(path: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return table
