"""Files with anything in them given to `init`: a config that loads, or a refusal by file."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from rich.console import Console
from tests.fuzz import cases
from tests.mutation import try_all

from tidings.app.config import load_config
from tidings.app.init import propose, write
from tidings.app.output import print_proposal
from tidings.errors import TidingsError

pytestmark = pytest.mark.fuzz

SIZE = 12
ROWS = [
    (n, f"2026-11-{n % 28 + 1:02} 0{n % 10}:00", "abc"[n % 3], n * 1.5, "x|y" if n % 2 else "z")
    for n in range(SIZE)
]
LINES = ["id,departs,dest,delay,tags", *(",".join(map(str, row)) for row in ROWS)]
CSV = "\n".join(LINES).encode()
FORMS = [dict(zip(LINES[0].split(","), row, strict=True)) for row in ROWS]
ODD = {
    "empty.csv": b"",
    "header.csv": b"a,b,c\n",
    "blank.csv": b"\n\n\n",
    "same.csv": b"a,a,a\n1,2,3\n",
    "nameless.csv": b",,\n1,2,3\n4,5,6\n",
    "marked.csv": b"\xef\xbb\xbf" + CSV,
    "wide.csv": ",".join(f"c{n}" for n in range(400)).encode() + b"\n" + b"1," * 399 + b"1\n",
    "utf16.csv": CSV.decode().encode("utf-16"),
    "latin.csv": "größe;name\n1,5;é\n2,5;ü\n".encode("latin-1"),
    "returns.csv": CSV.replace(b"\n", b"\r"),
    "quotes.csv": b'a,"b""c,\n1,"2\n',
    "signs.csv": b'"a = \'1\'","`b`","""c""","[d]"\n1,2,x,y\n3,4,x,y\n',
    "one.json": b'{"a": 1}',
    "number.json": b"7",
    "list.jsonl": b"[1, 2]\n[3]\n",
    "nested.jsonl": b'{"a": {"b": {"c": [1, {"d": null}]}}}\n' * 3,
    "mixed.jsonl": b'{"id": 1, "v": 1}\n{"id": "2", "v": "x"}\n{"id": null, "v": [1, "x"]}\n',
    "nulls.jsonl": b'{"id": null}\n{"id": null}\n',
    "large.jsonl": b'{"id": 1, "at": 1e308, "n": -1e308}\n{"id": 2, "at": 9e99, "n": 5e-324}\n',
}


def samples(folder: Path) -> dict[str, bytes]:
    """Return ordinary files of each kind, and odd ones."""
    table = pa.Table.from_pylist(FORMS)
    table = table.append_column("wait", pa.array(range(SIZE), pa.duration("s")))
    table = table.append_column(
        "more", pa.array([[("k", 1)]] * SIZE, pa.map_(pa.string(), pa.int8()))
    )
    parquet.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.arrow", compression="zstd")
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    lines = "\n".join(map(json.dumps, FORMS)).encode()
    found |= {"t.csv": CSV, "t.csv.gz": gzip.compress(CSV), "t.jsonl": lines, **ODD}
    return found | {"t.json": json.dumps(FORMS).encode(), "t.tsv": CSV.replace(b",", b"\t")}


def proposed(path: Path) -> Iterator[object]:
    """Do what `init` does; the config that is written must load."""
    proposal = propose(path)
    written = write(proposal, path.parent, force=True)
    print_proposal(Console(file=io.StringIO(), width=80), proposal, written)
    json.dumps(proposal.to_dict())
    try:
        yield load_config(written[0])
    except TidingsError as error:
        raise AssertionError(f"the config that was written is refused: {error}") from None


def test_damaged_files_are_proposals_or_refused(tmp_path: Path) -> None:
    try_all(tmp_path, samples(tmp_path), proposed, cases(250))


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_proposals_or_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(ODD[name])
    try:
        list(proposed(tmp_path / name))
    except TidingsError as error:
        reason = str(error)
        assert name in reason


@pytest.mark.parametrize("name", ["a\0b", ""])
def test_an_empty_column_with_an_odd_name_makes_no_config_that_is_refused(
    tmp_path: Path, name: str
) -> None:
    table = pa.Table.from_pylist(FORMS).append_column(name, pa.nulls(SIZE, pa.string()))
    table = table.append_column("wait", pa.array(range(SIZE), pa.duration("s")))
    feather.write_feather(table, tmp_path / "t.arrow")
    try:
        list(proposed(tmp_path / "t.arrow"))
    except TidingsError as error:
        reason = str(error)
        assert "contains NUL; rename it" in reason
        assert name
