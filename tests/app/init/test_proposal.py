"""Proposals for files of every kind: their configs run as they are, and deliver something."""

import gzip
import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings.app.config import load_config
from tidings.app.init import propose, write
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.errors import InvalidForm

CHANCE = Random(5)
FLIGHTS = [
    (f"{n // 24 % 28 + 1:02}.11.2026 {n % 24:02}:05", CHANCE.choice(["MIA", "IAH", "ORD"]), n % 97)
    for n in range(600)
]


def semicolons(path: Path) -> None:
    rows = [f"{at};{dest};{delay},5" for at, dest, delay in FLIGHTS]
    path.write_text("\ufeffAbflug am;Ziel;Verspätung\n" + "\n".join(rows), encoding="utf-8")


def flat_lines(path: Path) -> None:
    rows = [
        {"flight": {"id": n}, "at": f"{at[6:10]}-{at[3:5]}-{at[:2]}T{at[11:]}:00Z", "dest": dest}
        for n, (at, dest, _) in enumerate(FLIGHTS)
    ]
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def catalogue(path: Path) -> None:
    """Write a table without a time, and with zip codes and lists."""
    rows = [
        f"{n},{n % 500:05},{'a|b' if n % 3 else 'c'},{dest}"
        for n, (_, dest, _) in enumerate(FLIGHTS)
    ]
    path.write_text("\n".join(['"",zip,tags,dest', *rows]))


def columns(path: Path) -> None:
    at, dest, delay = zip(*FLIGHTS, strict=True)
    times = pa.array([f"{t[6:10]}-{t[3:5]}-{t[:2]} {t[11:]}" for t in at]).cast(pa.timestamp("ns"))
    parquet.write_table(pa.table({"time": times, "dest": dest, "delay": delay}), path)


def durations(path: Path) -> None:
    """Write a table with columns that no attribute can hold."""
    columns(path)
    table = parquet.read_table(path)
    waits = pa.array([n * 60 for *_, n in FLIGHTS], pa.duration("s"))
    table = table.append_column("wait", waits).append_column("raw", pa.array([b"x"] * len(table)))
    parquet.write_table(table, path)


def articles(path: Path) -> None:
    """Write a table with columns whose names mean something else to Tidings."""
    rows = [
        f"{n % 7},x{n % 3},{n},{at[6:10]}-{at[3:5]}-{at[:2]}"
        for n, (at, _, _) in enumerate(FLIGHTS)
    ]
    path.write_text("\n".join(["id,content,sequence,posted", *rows]))


def flat_fields(path: Path) -> None:
    rows = (
        {"id": n, "published_at": 1_762_000_000 + n * 600, "kind": "ab"[n % 2], "n": n}
        for n in range(100)
    )
    path.write_text("\n".join(map(json.dumps, rows)))


def one_row(path: Path) -> None:
    path.write_text("id,published_at,name\n1,2026-11-15,Ann\n")


@pytest.mark.parametrize(
    ("name", "make", "expected"),
    [
        (
            "flüge (1).csv",
            semicolons,
            {
                "columns": {"published_at": "Abflug am"},
                "types": {"published_at": "%d.%m.%Y %H:%M"},
                "generate": ["id"],
            },
        ),
        (
            "flights.jsonl.gz",
            flat_lines,
            {"columns": {"id": "flight.id", "published_at": "at"}},
        ),
        (
            "parts.csv",
            catalogue,
            {
                "columns": {"id": "column_1"},
                "types": {"zip": "string"},
                "lists": {"tags": "|"},
                "generate": ["published_at"],
            },
        ),
        ("flights.parquet", columns, {"columns": {"published_at": "time"}, "generate": ["id"]}),
        (
            "waits.parquet",
            durations,
            {
                "columns": {"published_at": "time"},
                "generate": ["id"],
                "keep": ["dest", "delay"],
            },
        ),
        (
            "articles.csv",
            articles,
            {
                "columns": {
                    "published_at": "posted",
                    "id_": "id",
                    "sequence_": "sequence",
                    "content_": "content",
                },
                "generate": ["id"],
            },
        ),
        (
            "flat.json",
            flat_fields,
            {"columns": {"id": "id", "published_at": "published_at"}},
        ),
        ("one.csv", one_row, {}),
    ],
)
def test_a_proposal_runs_as_it_is(tmp_path, monkeypatch, name, make, expected):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / name)
    config, subscriptions = write(propose(Path(name)), Path())
    source = tomllib.loads(config.read_text())["source"]
    shown = source.pop("content")
    assert source == {"path": name, **expected}
    assert len(config.read_text().splitlines()) <= 10
    wishes = [json.loads(line) for line in subscriptions.read_text().splitlines()]
    assert len(wishes) == (1 if make is one_row else 3)
    assert len({wish["where"] for wish in wishes}) == len(wishes)
    batches = list(run_local(make_plan(load_config(config))))
    assert sum(batch.deliveries for batch in batches) > 0
    assert [batch.dead for batch in batches] == [0]
    [file] = Path(load_config(config).sink.path, "deliveries").glob("*.jsonl")
    assert {*json.loads(file.read_text().splitlines()[0])["content"]} <= {*shown}


def test_every_example_matches_something_but_not_everything(tmp_path):
    semicolons(tmp_path / "a.csv")
    proposal = propose(tmp_path / "a.csv")
    assert all(0 < subscription.matches <= 300 for subscription in proposal.subscriptions)
    assert proposal.to_dict()["columns"] == {
        "Abflug am": "string",
        "Ziel": "string",
        "Verspätung": "number",
    }


def test_examples_ask_for_what_nearly_every_row_has(tmp_path):
    rows = [f"{n},k{n % 9},{0 if n % 3 else n},{n * 37 % 101}," for n in range(60)]
    path = tmp_path / "offers.csv"
    path.write_text(
        "\n".join(
            [
                "id,kind,mostly_0,price,rare",
                *(f"{row}{n}" if n < 9 else row for n, row in enumerate(rows)),
            ]
        )
    )
    proposal = propose(path)
    asked = {
        part.attribute
        for subscription in proposal.subscriptions
        for conjunction in subscription.subscription.conjunctions
        for part in conjunction
    }
    assert asked == {"kind", "mostly_0", "price"}


def test_examples_neither_ask_for_dates_nor_match_next_to_nothing(tmp_path):
    rows = [
        f"{n},2026-11-{n % 28 + 1:02},on {'abc'[n % 3]},{'xyz'[n % 3]},{n},{n * 37 % 601}"
        for n in range(600)
    ]
    path = tmp_path / "offers.csv"
    path.write_text("\n".join(["rownames,at,other_date,kind,row,price", *rows]))
    proposal = propose(path)
    wheres = [
        str(subscription.subscription.to_dict()["where"]) for subscription in proposal.subscriptions
    ]
    assert not any("date" in where or "row" in where for where in wheres)
    assert all(subscription.matches > 3 for subscription in proposal.subscriptions)


def test_content_shows_titles_that_are_text(tmp_path):
    rows = ({"id": n, "isPermaLink": n % 2 == 0, "title": f"t{n}", "n": n} for n in range(60))
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert propose(tmp_path / "news.jsonl").content[0] == "title"


@pytest.mark.parametrize(("hours", "length"), [(24, "1w"), (2, "1d"), (0.5, "6h"), (0.1, "1h")])
def test_the_period_is_the_longest_that_ends_a_few_times(tmp_path, hours, length):
    start, path = datetime(2026, 11, 2, tzinfo=UTC), tmp_path / "offers.csv"
    rows = [
        f"{n},{(start + timedelta(hours=hours * n)).isoformat()},{'ab'[n % 2]},{n * 37 % 101}"
        for n in range(60)
    ]
    path.write_text("\n".join(["id,at,kind,price", *rows]))
    assert propose(path).policy["window"] == {"name": "periodic", "length": length}


def test_files_are_replaced_only_by_force(tmp_path):
    one_row(tmp_path / "one.csv")
    proposal = propose(tmp_path / "one.csv")
    config, _ = write(proposal, tmp_path)
    config.write_text("mine")
    with pytest.raises(InvalidForm, match=r"one.toml already exists; --force replaces it"):
        write(proposal, tmp_path)
    assert config.read_text() == "mine"
    write(proposal, tmp_path, force=True)
    assert "source.path" in config.read_text()


def test_a_folder_is_looked_at_by_its_first_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in "ab":
        semicolons(tmp_path / f"in/{name}.csv")
    config, _ = write(propose(Path("in")), Path())
    assert tomllib.loads(config.read_text())["source"]["path"] == "in/*.csv"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.csv", b"", "Empty CSV file"),
        ("header.csv", b"a,b\n", "the file has no rows"),
        ("empty.jsonl", b"", "the file has no rows"),
        ("latin-rows.csv", b"a,b\n1,\xe9\n", "no row can be read: the row is not UTF-8: byte 3"),
        ("odd.jsonl", b"[1]\n{\n", "no row can be read: "),
        ("odd.parquet", b"PAR1", "odd.parquet: "),
        ("odd.txt", b"a b", "odd.txt has an unknown suffix"),
        ("latin.csv", "é,b\n1,2\n".encode("latin-1"), "the header is not UTF-8"),
        ("bare.csv", b"id,time\n1,2026-11-15\n", "nothing to subscribe to"),
        (
            "cut.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9],
            "the compressed file is damaged",
        ),
    ],
)
def test_a_file_without_data_is_refused_with_the_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidForm, match=reason):
        propose(tmp_path / name)
