"""Compressed text: read like plain text, and refused where it expands too far or is damaged."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.formats import columnar_files
from tidings.formats.files import read_events
from tidings.formats.gzip_file import open_text
from tidings.model.dead_letter import BadRecord

LINES = b'{"id": "e1", "published_at": 0, "attributes": {"x": 1}}\n'
ROWS = b"id,published_at,x\ne1,0,1\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", LINES), ("a.json", b"[" + LINES + b"]"), ("a.csv", ROWS)]
)
def test_a_compressed_file_holds_the_same_events(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text))
    plain = list(read_events(tmp_path / name))
    assert list(read_events(tmp_path / f"{name}.gz")) == plain
    assert not isinstance(plain[0], BadRecord)


@pytest.mark.parametrize(("name", "line"), [("a.jsonl.gz", LINES), ("a.csv.gz", b"e1,0,1\n")])
def test_text_that_expands_too_far_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: bytes
) -> None:
    monkeypatch.setattr(columnar_files, "EXPANSION_FLOOR", 100_000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"id,published_at,x\n" + line * 200_000))
    with pytest.raises(InvalidForm, match=r"a\.\w+\.gz: its text would take .* above the limit of"):
        list(read_events(path))


def test_plain_text_under_a_compressed_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(ROWS)
    assert len(list(read_events(tmp_path / "a.csv.gz"))) == 1


@given(cut=st.integers(2, 40), flip=st.integers(10, 40))
def test_damaged_files_are_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int
) -> None:
    path = tmp_path_factory.mktemp("gz") / "a.csv.gz"
    whole = gzip.compress(ROWS * 3)
    damaged = bytearray(whole[: len(whole) - cut])
    damaged[min(flip, len(damaged) - 1)] ^= 0xFF
    path.write_bytes(bytes(damaged))
    with (
        pytest.raises(InvalidForm, match="the compressed file is damaged"),
        open_text(path) as file,
    ):
        file.read()
