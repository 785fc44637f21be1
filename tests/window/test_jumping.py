"""Jumping windows (TKS Def. 4.3.1): as sliding, but chosen from at every step only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Publication, Span, Taste
from tests.window.streams import (
    SECOND,
    UNTIL_US,
    count,
    counts,
    durations,
    each_step,
    length,
    publications,
    ranks,
    run,
    spans,
    streams,
    tastes,
)

from tidings.errors import InvalidPolicy
from tidings.window.jumping import Jumping
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding


@st.composite
def jumps(draw: st.DrawFn) -> tuple[Span, Span]:
    """A length and a step that suits it."""
    span = draw(spans)
    if span.kind == "time" and draw(st.booleans()):
        return span, Span("matching", draw(st.integers(1, 4)))
    unit = SECOND if span.kind == "time" else 1
    return span, Span(span.kind, unit * draw(st.integers(1, span.size // unit)))


@given(streams(), tastes, jumps(), st.booleans(), st.booleans())
def test_deliveries_are_as_defined(
    stream: list[Publication], taste: Taste, jump: tuple[Span, Span], leave: bool, wait: bool
) -> None:
    span, step = jump
    delivered = "leave" if leave else "keep"
    window = Jumping(length(span), length(step), count(span), delivered=delivered, wait=wait)
    expected = reference.jumping(
        stream, taste, span, step, leave=leave, wait=wait, until_us=UNTIL_US
    )
    assert run(taste, window, stream) == expected


@given(streams(), tastes, counts | durations)
def test_a_step_of_the_length_is_periodic(
    stream: list[Publication], taste: Taste, span: Span
) -> None:
    size = length(span)
    jumping = run(taste, Jumping(size, size, count(span)), stream)
    assert jumping == run(taste, Periodic(size, count=count(span)), stream)


@given(streams(), tastes, st.integers(1, 6) | st.sampled_from(["1s", "3s"]))
def test_a_step_of_one_match_is_sliding(
    stream: list[Publication], taste: Taste, size: int | str
) -> None:
    assert run(taste, Jumping(size, 1), stream) == run(taste, Sliding(size), stream)


def test_a_window_of_five_with_a_step_of_three() -> None:
    """TKS Figure 4.13: the second window holds the second to the sixth event."""
    stream = ranks(0.9, 0.1, 0.2, 0.3, 0.4, 0.5)
    assert each_step(Taste(k=1), Jumping(5, 3), stream) == [[], [], ["e1"], [], [], ["e6"]]


def test_a_step_of_time_is_aligned_to_the_epoch() -> None:
    stream = publications((1, 0.3), (2, None), (3, 0.9), (4, None))
    window = Jumping("4s", "2s")
    assert each_step(Taste(k=1), window, stream) == [[], ["e1"], [], ["e3"]]


def test_a_long_silence_takes_every_step_that_held_a_match() -> None:
    stream = publications((0, 0.9), (1, 0.5), (100, 0.1))
    window = Jumping("2s", "1s")
    assert each_step(Taste(k=1), window, stream) == [[], ["e1"], ["e2"]]


def test_a_step_above_the_length_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="step an integer of 16,610 bits is above length 5"):
        Jumping(5, 10**5_000)
    with pytest.raises(InvalidPolicy, match="step 2h is above length 1h"):
        Jumping("1h", "2h")
