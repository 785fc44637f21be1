"""TOML files."""

import pytest

from tidings.errors import InvalidForm
from tidings.formats.toml_file import read_toml


def test_dates_and_times_are_text(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("day = 2026-01-02\nhours = [07:32:00]\n")
    assert read_toml(path) == {"day": "2026-01-02", "hours": ["07:32:00"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"engine = ", "invalid TOML: Invalid value"),
        (b"\xff\xfe", "invalid TOML: byte 0 is not UTF-8"),
        (b"a = " + b"9" * 1000, "an integer of 3,322 bits is too large"),
        (b"[a]\n" + b"a." * 20_000 + b"a = 1", "^invalid TOML: a key has more than 32 parts"),
        (b'\t\'\' . "\\"" .' * 1 + b" a\t." * 40 + b" a = 1", "a key has more than 32 parts"),
        (b"#" * 16_000_001, "the file has more than 16,000,000 bytes"),
    ],
    ids=["value", "bytes", "integer", "key", "quoted key", "size"],
)
def test_an_invalid_file_is_refused(tmp_path, content, reason):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidForm, match=reason):
        read_toml(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidForm, match="the file cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")


def test_a_key_may_have_many_parts(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("a." * 31 + 'a = "' + "a." * 40 + '"')
    assert read_toml(path)["a"]
