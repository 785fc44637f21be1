"""The order of ties: by rank, then newer, then smaller id, for objects and for numbers."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify.protocol import Candidate, TieOrder, best_first, ranked
from tidings.model.records import Event

candidates = st.lists(
    st.builds(
        lambda name, us, key: Candidate(Event(name, {}, us), abs(key), key),
        st.sampled_from(["a", "b", "ab", "ä"]),
        st.integers(0, 2),
        st.sampled_from([-1.0, 0.0, 0.5, float("-inf")]),
    ),
    max_size=8,
    unique_by=lambda candidate: candidate.event.id,
)


@given(candidates)
def test_the_best_key_comes_first_and_ties_go_to_newer_events_and_smaller_ids(
    drawn: list[Candidate],
) -> None:
    order = ranked(drawn)
    assert sorted(order) == [*range(len(drawn))]
    for before, after in pairwise(order):
        one, other = drawn[before], drawn[after]
        assert one.key >= other.key
        if one.key == other.key:
            assert one.event.published_us >= other.event.published_us
            if one.event.published_us == other.event.published_us:
                assert one.event.id < other.event.id


def test_the_key_orders_where_decay_has_made_ranks_vanish() -> None:
    drawn = [Candidate(Event("a", {}, 0), 0.0, -800.0), Candidate(Event("b", {}, 0), 0.0, -700.0)]
    assert ranked(drawn) == [1, 0]
    assert best_first(drawn[1]) < best_first(drawn[0])
    assert ranked([]) == []


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.data())
def test_the_order_of_some_candidates_is_that_among_all(
    times: list[int], data: st.DataObject
) -> None:
    count = len(times)
    newest = np.array(data.draw(st.permutations(range(count))))
    order = TieOrder(newest, np.array(times), np.arange(count) * 3)
    places = np.array(data.draw(st.lists(st.integers(0, count - 1), unique=True)), np.int64)
    taken = order.take(places)
    assert taken.newest.tolist() == newest[places].tolist()
    assert taken.times.tolist() == [times[place] for place in places]
    assert taken.names.tolist() == (3 * places).tolist()
