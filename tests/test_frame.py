"""State as bytes: what was written comes back, and what is not ours is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.frame import Column, Frame

FRAME = Frame(b"mark", 2, "a thing")
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=5)


def test_what_is_packed_comes_back() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([0.1, -np.inf]),
        "c": np.zeros((0, 4), np.int64),
    }
    header, found = FRAME.unpack(FRAME.pack({"x": ["é", 1]}, arrays))
    assert header == {"x": ["é", 1]}
    assert list(found) == list(arrays)
    for name, each in arrays.items():
        assert found[name].dtype == each.dtype
        assert np.array_equal(found[name], each)


@given(TEXTS, TEXTS)
def test_texts_come_back(some: list[str], others: list[str]) -> None:
    columns: dict[str, Column] = {"some": some, "between": np.array([7]), "others": others}
    _, found = FRAME.unpack(FRAME.pack({}, columns))
    assert (found["some"], found["others"]) == (some, others)


def test_what_is_not_ours_is_refused() -> None:
    state = FRAME.pack({}, {"a": np.arange(3), "t": ["x"]})
    for wrong, reason in [
        (Frame(b"mark", 3, "").pack({}, {}), "a thing has version 3, and this is version 2"),
        (Frame(b"kram", 2, "").pack({}, {}), "these bytes are not a thing"),
        (b"mark", "these bytes are not a thing"),
        (b"", "these bytes are not a thing"),
        (state + b"x", f"should have {len(state)} bytes, and has {len(state) + 1}"),
        (state[:-1], f"should have {len(state)} bytes, and has {len(state) - 1}"),
    ]:
        with pytest.raises(TidingsError, match=reason):
            FRAME.unpack(wrong)


@given(st.data())
def test_damage_is_refused_in_words_wherever_it_can_be_seen(data: st.DataObject) -> None:
    """Cut short, whatever is left; and a bit flipped in what lies before the columns.

    The last bits of a compressed header may mean nothing: then what is read is the same.
    """
    columns: dict[str, Column] = {"a": np.arange(3), "t": ["x", "yz"]}
    state, behind = FRAME.pack({"k": [1, "é"]}, columns), 24 + 24 + 3
    cut = data.draw(st.integers(0, len(state) - 1))
    with pytest.raises(TidingsError, match="a thing"):
        FRAME.unpack(state[:cut])
    flipped, at = bytearray(state), data.draw(st.integers(0, len(state) - behind - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        header, found = FRAME.unpack(bytes(flipped))
    except TidingsError as refused:
        assert "a thing" in str(refused)  # noqa: PT017
    else:
        assert (header, found["a"].tolist(), found["t"]) == (
            {"k": [1, "é"]},
            [0, 1, 2],
            ["x", "yz"],
        )
