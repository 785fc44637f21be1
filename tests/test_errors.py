"""Errors: messages stay short and are made of any value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import (
    MESSAGE_BYTES,
    StoreError,
    TidingsError,
    clipped,
    described,
    message,
    prefix_errors,
    shown,
)


@given(st.text(max_size=3000), st.integers(40, 2000))
def test_a_clipped_text_is_short_and_a_short_one_unchanged(text, size):
    cut = clipped(text, size)
    assert len(cut.encode(errors="backslashreplace")) <= size
    if len(text.encode(errors="backslashreplace")) <= size:
        assert cut == text


def test_a_message_keeps_its_beginning_and_its_end():
    text = str(TidingsError("the beginning " + "x" * 100_000 + " the end"))
    assert len(text.encode()) <= MESSAGE_BYTES
    assert text.startswith("the beginning")
    assert text.endswith("the end")


def test_any_value_can_be_shown():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    loop: list[object] = []
    loop.append(loop)
    for value in (10**5000, "x" * 10**6, [Broken()], {"a": Broken()}, loop, b"x" * 10**6):
        assert len(shown(value)) < MESSAGE_BYTES
    assert shown(-(10**5000)) == "an integer of 16,610 bits"


class Unreadable:
    """An object that raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("repr")


def test_an_object_that_cannot_be_read_is_shown_by_its_class():
    assert shown(Unreadable()) == "<an object of the class Unreadable>"


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_no_error_has_an_empty_text(text):
    assert str(TidingsError(text)) == "TidingsError: no reason given"
    assert message(TimeoutError(text)).strip()
    with (
        pytest.raises(StoreError, match="the store: TimeoutError"),
        prefix_errors("the store: ", OSError, StoreError),
    ):
        raise TimeoutError(text)


def test_what_no_file_accepts_is_escaped():
    assert described(ValueError("a\ud800")) == r"ValueError: a\ud800"
    assert str(TidingsError("a\ud800")) == r"a\ud800"
