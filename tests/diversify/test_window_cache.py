"""What is kept between choices changes no choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier, window_cache
from tidings.diversify.distance import Jaccard, set_divrank
from tidings.diversify.divrank import DivRank
from tidings.diversify.maxdivrel import MaxDivRel
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.window_cache import SLACK, KeptDistances, KeptVotes, keep
from tidings.model.records import Event


class Own(Jaccard):
    """A distance that kernels do not know."""


PARTS: list[Diversifier] = [make() for make in DIVERSIFIERS.values()]
PARTS += [DivRank(sigma=0.2, distance="jaccard"), DivRank(distance=Own())]
PARTS += [MaxDivRel(alpha=0.5), MaxDivRelLsh(tables=4, rows=1)]
FEW_PARTS = [part for part in PARTS if part.name != "optimal"]

attributes = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
drawn = st.tuples(
    st.sampled_from(["e1", "e2", "e3", "f1", "f2", "g1", "g2", "h1"]),
    st.integers(0, 2),
    st.sampled_from([0.1, 0.5, 0.5, 0.9]),
    attributes,
)


def stream(rows) -> list[Candidate]:
    """Events by id: the first row of an id makes it."""
    made: dict[str, Candidate] = {}
    for name, at, rank, values in rows:
        made.setdefault(name, Candidate(Event(name, values, at), rank, rank))
    return list(made.values())


@pytest.fixture(autouse=True)
def from_the_first_on(monkeypatch):
    """Keep also what the plain form would choose from."""
    monkeypatch.setattr(window_cache, "FEW", 0)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@given(rows=st.lists(drawn, max_size=10), steps=st.lists(st.sets(st.integers(0, 7)), max_size=6))
def test_any_sequence_of_choices_is_that_of_the_diversifier(part, rows, steps):
    everyone, keeper = stream(rows), keep(part)
    for number, step in enumerate(steps):
        some = [everyone[i] for i in sorted(step) if i < len(everyone)]
        k = 1 + number % 3
        assert keeper.choose(some, k) == part.choose(some, k)


@pytest.mark.parametrize("part", FEW_PARTS, ids=lambda part: part.name)
@given(rows=st.lists(drawn, max_size=10), steps=st.lists(st.sets(st.integers(0, 7)), max_size=6))
def test_the_rank_of_a_set_is_that_of_its_definition(part, rows, steps):
    everyone, keeper = stream(rows), keep(part)
    for step in steps:
        some = [everyone[i] for i in sorted(step) if i < len(everyone)]
        assert keeper.divrank(some) == set_divrank(some, part.sigma, part.distance)


@pytest.mark.parametrize("part", FEW_PARTS, ids=lambda part: part.name)
def test_a_window_that_slides_for_long_is_right_and_stays_small(part):
    keeper = keep(part)
    events = [Event(f"e{n:03d}", {"a": n % 7, "b": n % 5, "c": n % 3}, n // 2) for n in range(200)]
    window: list[Candidate] = []
    for n, event in enumerate(events):
        rank = (n * 37 % 11) / 11
        window = [*window[-9:], Candidate(event, rank, rank)]
        assert keeper.choose(window, 3) == part.choose(window, 3)
    if isinstance(keeper, KeptDistances):
        assert len(keeper._slots) <= 2 * 10 + SLACK + 1
    if isinstance(keeper, KeptVotes):
        assert len(keeper._slots) == 10
        assert len(keeper._names) <= 11
        assert len(keeper._last) == len(keeper._alike) == 5


def test_each_distance_is_taken_once(monkeypatch):
    keeper, taken = KeptDistances(DivRank()), list[int]()
    row = keeper._crowd.row

    def noted(slot, others):
        taken.append(len(others))
        return row(slot, others)

    monkeypatch.setattr(keeper._crowd, "row", noted)
    window = [Candidate(Event(f"e{n}", {"a": n}, n), 0.5, 0.5) for n in range(20)]
    for size in range(1, 21):
        keeper.choose(window[:size], 3)
        keeper.choose(window[:size], 3)
    assert taken == list(range(20))


@pytest.mark.parametrize("part", FEW_PARTS, ids=lambda part: part.name)
def test_a_window_that_grows_beyond_few_goes_on_right(part, monkeypatch):
    monkeypatch.setattr(window_cache, "FEW", 5)
    keeper, window = keep(part), list[Candidate]()
    for n in range(30):
        rank = (n * 37 % 11) / 11
        window.append(Candidate(Event(f"e{n:02d}", {"a": n % 4, "b": n % 3}, n // 2), rank, rank))
        window = window[-(n % 12) - 1 :]
        assert keeper.choose(window, 3) == part.choose(window, 3)
        assert keeper.divrank(window) == set_divrank(window, part.sigma, part.distance)
