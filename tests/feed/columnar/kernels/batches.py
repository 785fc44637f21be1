"""Batches of offers for tests of kernels, and the deliveries that they cause."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from tests.feed.columnar.kernels.windows import ID_ORDER, SEQUENCE, US

from tidings.feed.columnar.kernels.layout import DELIVERY_WIDTH, ENDS, NEXT, OUT, Offers, Output
from tidings.window.protocol import Moment

LAST = Moment(40, 80)
"""After all events."""
Offered = tuple[int, int, float]
"""A row, an event slot and a score."""


class Sent(NamedTuple):
    """A delivery in the order of its columns, without its rank."""

    order: int
    row: int
    event: int
    handle: int
    position: int
    start: int
    stop: int
    width: int
    number: int
    decided: int


@st.composite
def batches(draw: st.DrawFn, rows: int = 2, max_size: int = 16) -> list[Offered]:
    """Offers in order of publication to a few rows, of few scores, so that ties are common."""
    slots = sorted(draw(st.lists(st.integers(1, 63), max_size=max_size, unique=True)))
    row, score = st.integers(0, rows - 1), st.sampled_from([0.25, 0.5, 0.75])
    return [(draw(row), slot, draw(score)) for slot in slots]


def offers_of(batch: Sequence[Offered]) -> Offers:
    """Return a batch as columns; the handle of a match is a thousand above its slot."""
    rows, slots, scores = zip(*batch, strict=True) if batch else ((), (), ())
    slot = np.array(slots, np.int32)
    return Offers(
        np.array(rows, np.int32),
        slot,
        np.array(scores, np.float64),
        (slot + 1000).astype(np.int32),
        SEQUENCE[slot],
    )


def output_of(room: int, ends: int = 64) -> Output:
    """Return buffers for some deliveries, and nothing done yet."""
    return Output(
        np.zeros((room, DELIVERY_WIDTH), np.int64),
        np.zeros(room),
        np.zeros(room),
        np.zeros((ends, 2), np.int64),
        np.zeros(3, np.int64),
    )


def run_all(run: Callable[[Output], Any], count: int, room: int) -> tuple[list[Sent], list[float]]:
    """Run a kernel to its end, and empty its output whenever it stops; return all deliveries."""
    output = output_of(room)
    sent, ranks = list[Sent](), list[float]()
    while True:
        before = int(output.progress[NEXT])
        run(output)
        used = int(output.progress[OUT])
        sent += [Sent(*row) for row in output.columns[:used].tolist()]
        ranks += output.ranks[:used].tolist()
        output.progress[OUT] = output.progress[ENDS] = 0
        if output.progress[NEXT] == count:
            return sent, ranks
        assert used or output.progress[NEXT] > before, "the kernel does not go on"


def best_first(slot: int, score: float) -> tuple[float, int, int]:
    """Return the order of semantics §3: the higher score, the newer event, the smaller id."""
    return (-score, -int(US[slot]), int(ID_ORDER[slot]))


def offer_all(
    kernel: Callable[..., Any], cohort: Any, batch: Sequence[Offered], room: int = 64
) -> tuple[list[Sent], list[float]]:
    """Offer a batch to the windows of a cohort; return all deliveries and their ranks."""
    offers, search = offers_of(batch), search_of(cohort)
    return run_all(lambda output: kernel(cohort.windows, output, offers, *search), len(batch), room)


def search_of(cohort: Any) -> list[Any]:
    """Return the argument that only the kernels of diverse cohorts have."""
    return [cohort.search] if hasattr(cohort, "search") else []


def offer_and_advance(
    offer: Callable[..., Any],
    advance: Callable[..., Any],
    cohort: Any,
    batch: Sequence[Offered],
    room: int = 64,
) -> list[Sent]:
    """Offer a batch, then move the clock past everything; what is due then has the order -1."""
    sent, ranks = offer_all(offer, cohort, batch, room)
    scores = {slot: score for _, slot, score in batch}
    assert ranks == [scores[delivery.event] for delivery in sent]
    arguments = np.arange(2, dtype=np.int32), LAST, *search_of(cohort)
    due, _ = run_all(lambda output: advance(cohort.windows, output, *arguments), 2, room)
    return [*sent, *(one._replace(order=-1) for one in due)]
