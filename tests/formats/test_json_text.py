"""Strict JSON: what Python's parser accepts too much is refused."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.formats.json_text import Line, array_texts, read_json, read_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_is_read(value: object) -> None:
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "the name 'a' occurs twice"),
        (b"\xff", "it is not UTF-8: byte 1"),
        ("[" * 100_000, "nest too deeply"),
        ("{", "Expecting"),
        (None, "None is not a text"),
        (7, "7 is not a text"),
    ],
)
def test_anything_else_is_refused(text: Any, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        read_json(text)


@given(st.lists(JSON, max_size=4), st.sampled_from([None, 1]))
def test_the_members_of_an_array_are_split(values: list[object], indent: int | None) -> None:
    texts = array_texts(json.dumps(values, indent=indent).encode())
    assert texts is not None
    assert [json.loads(text) for text in texts] == values


def test_other_json_is_not_an_array() -> None:
    assert array_texts(b' {"a": [1]} ') is None
    for text in (b"[1", b"[1 2]", b"[1] 2", b"[,]"):
        with pytest.raises(InvalidForm):
            array_texts(text)


def test_lines_that_are_too_long_are_cut() -> None:
    lines = list(read_lines(io.BytesIO(b"ab\n\n" + b"c" * 200_000 + b"\nde"), 10))
    assert [(line.position, line.whole) for line in lines] == [(1, True), (3, False), (4, True)]
    assert lines[2] == Line(4, b"de", whole=True)


def test_blank_lines_without_end_are_refused() -> None:
    assert [line.text for line in read_lines(io.BytesIO(b"\n" * 1_000_000 + b"x"), 100)] == [b"x"]
    assert [line.text for line in read_lines(io.BytesIO(b"ab\r\ncd\n"), 100)] == [b"ab", b"cd"]
    with pytest.raises(InvalidForm, match="more than 1,000,000 lines in a row are blank"):
        list(read_lines(io.BytesIO(b"x\n" + b"\n" * 1_000_001), 100))
