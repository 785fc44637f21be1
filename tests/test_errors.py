"""Errors: messages stay short and are made of any value."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import MESSAGE_BYTES, TidingsError, clipped, shown


@given(st.text(max_size=3000), st.integers(40, 2000))
def test_a_clipped_text_is_short_and_a_short_one_unchanged(text, size):
    cut = clipped(text, size)
    assert len(cut.encode(errors="backslashreplace")) <= size
    if len(text.encode(errors="backslashreplace")) <= size:
        assert cut == text


def test_a_message_keeps_its_beginning_and_its_end():
    message = str(TidingsError("the beginning " + "x" * 100_000 + " the end"))
    assert len(message.encode()) <= MESSAGE_BYTES
    assert message.startswith("the beginning")
    assert message.endswith("the end")


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
