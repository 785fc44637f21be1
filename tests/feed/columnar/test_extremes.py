"""Windows take memory by what they hold and time by what changes, whatever k and lengths are."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import DIVERSIFIERS, END, enrolled, jumps, run, streams

from tidings.errors import InvalidPolicy
from tidings.feed import FEEDS
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.plain import PlainFeeds
from tidings.model.limits import Limits
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment
from tidings.window.jumping import JumpingWindow

MOST = 10**7
WINDOWS: list[dict[str, Any]] = [
    {"name": "continuous"},
    {"name": "continuous", "expires": MOST},
    {"name": "continuous", "expires": "36500d", "wait": True},
    {"name": "periodic", "length": MOST},
    {"name": "periodic", "length": "0.000001s", "wait": True},
    {"name": "sliding", "length": MOST, "delivered": "leave"},
    {"name": "sliding", "length": MOST, "count": "published", "wait": True},
    {"name": "sliding", "length": "36500d"},
    {"name": "jumping", "length": MOST, "step": 10},
    {"name": "jumping", "length": MOST, "step": 10, "count": "published", "delivered": "leave"},
    {"name": "jumping", "length": "36500d", "step": "1h"},
    {"name": "jumping", "length": "36500d", "step": "1h", "delivered": "leave", "wait": True},
    {"name": "jumping", "length": "36500d", "step": 2},
    {"name": "history", "length": MOST},
    {"name": "history", "length": "36500d", "wait": True, "strict": True},
]
EVERY = ["none", *(each for name, some in DIVERSIFIERS.items() if name != "own" for each in some)]
KINDS = [*FEEDS.values()]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("k", [1, 2, MOST])
def test_extremes_deliver_what_the_plain_form_delivers_in_little_memory(
    window: dict[str, Any], k: int
) -> None:
    for diversify in EVERY:
        try:
            people = {"u": Policy(k=k, window=window, diversify=diversify)}
        except InvalidPolicy:
            assert diversify == "optimal"
            continue
        both = [enrolled(kind(), people) for kind in KINDS]
        for n in range(1, 7):
            event = Event(f"e{n}", {"genre": "cd"[n % 2], "mood": n}, n, n)
            offers = [(Match("u", event, 0.1 * (n * 3 % 7), ("s",)), Moment(n * 10**6, n))]
            first, *rest = [feeds.offer_many(offers) for feeds in both]
            assert all(each == first for each in rest)
        for now in (Moment(10**15, 20), Moment(10**17, 10**9)):
            first, *rest = [feeds.advance(now) for feeds in both]
            assert all(each == first for each in rest)
            first, *rest = [feeds.current("u", now) for feeds in both]
            assert all(each == first for each in rest)
        for feeds in both:
            assert feeds.set_aside == {}
            if isinstance(feeds, TableFeeds):
                assert sum(each.nbytes for each in feeds.cohorts.arrays()) < 8_192
                for each in feeds.cohorts.arrays():
                    if isinstance(each, DiverseCohort):
                        assert sum(part.nbytes for part in each._bench) < 32_768
                    else:
                        assert each._scratch.nbytes < 8_192


@pytest.mark.parametrize("feeds", KINDS)
@pytest.mark.parametrize("decay", ["none", {"name": "exponential", "rate": 0.1}], ids=str)
@pytest.mark.parametrize("diversify", ["none", "divrank", "disc"])
@pytest.mark.parametrize("delivered", ["keep", "leave"])
def test_a_hundred_years_pass_at_once(
    feeds: Any, decay: Any, diversify: str, delivered: str
) -> None:
    """Nothing is chosen from again while nothing can change: else this would take minutes."""
    window = {"name": "jumping", "length": "36500d", "step": "1h", "delivered": delivered}
    limits = Limits(decayed_steps=1_000_000)
    policy = Policy(k=3, window=window, diversify=diversify, decay=decay, limits=limits)
    found = enrolled(feeds(), {f"u{n}": policy for n in range(20)})
    for n in range(1, 4):
        event = Event(f"e{n}", {"genre": n}, n, n)
        who = [(Match(f"u{u}", event, 0.5, ("s",)), Moment(n * 10**6, n)) for u in range(20)]
        found.offer_many(who)
    assert len(found.advance(Moment(10**17, 4))) == 60


class StepByStep(JumpingWindow):
    """Jumping windows as they are defined: chosen from at every step."""

    def _next(self, end: int, *_: Any) -> int:
        return end + self._steps.size


@pytest.mark.parametrize("diversify", ["none", *DIVERSIFIERS])
@settings(max_examples=60)
@given(data=st.data())
def test_steps_that_change_nothing_are_passed_over(diversify: str, data: st.DataObject) -> None:
    """Both kinds deliver what a window does that is chosen from at every step."""
    some = st.sampled_from(DIVERSIFIERS.get(diversify, ["none"]))
    more = {"delivered": st.sampled_from(["keep", "leave"]), "wait": st.booleans()}
    window = data.draw(jumps()) | {name: data.draw(each) for name, each in more.items()}
    decay = data.draw(st.sampled_from(["none", {"name": "exponential", "rate": 0.3}]))
    k = data.draw(st.integers(1, 4))
    policy = Policy(
        k=k, window=window | {"name": "jumping"}, decay=decay, diversify=data.draw(some)
    )
    people, stream = {"u": policy}, data.draw(streams("u"))
    judge = enrolled(PlainFeeds(), people)
    feed = judge._feeds["u"]  # type: ignore[attr-defined]
    feed._window.__class__ = StepByStep
    both = [enrolled(kind(), people) for kind in KINDS]
    for step in stream:
        expected = run(judge, [step])
        assert [run(each, [step]) for each in both] == [expected, expected]
    expected = judge.advance(END)
    assert [each.advance(END) for each in both] == [expected, expected]


@pytest.mark.parametrize("square", [0, 3, 256])
@pytest.mark.parametrize("weights", [{}, {"genre": 0.3}], ids=str)
def test_swaps_are_the_same_with_and_without_room_for_all_distances(
    square: int, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.feed.columnar.diverse_cohort._SQUARE", square)
    diversify = {"name": "divrank", "distance": {"name": "overlap", "weights": weights}}
    policy = Policy(k=5, window={"name": "history", "length": 30}, diversify=diversify)
    both = [enrolled(kind(), {"u": policy}) for kind in KINDS]
    for n in range(1, 80):
        event = Event(f"e{n}", {"genre": n * n % 7, "mood": n % 3, "x": n % 5}, n, n)
        offers = [(Match("u", event, (n * 37 % 11) / 11, ()), Moment(n * 10**6, n))]
        first, *rest = [feeds.offer_many(offers) for feeds in both]
        assert all(each == first for each in rest)


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("diversify", ["divrank", "maxmin", "maxsum", "maxavg", "maxdivrel-lsh"])
def test_choices_are_kept_by_row_or_by_slab(
    few: int, diversify: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.feed.columnar.diverse_cohort._FEW", few)
    window = {"name": "sliding", "length": 12}
    people = {f"u{n}": Policy(k=4, window=window, diversify=diversify) for n in range(5)}
    both = [enrolled(kind(), people) for kind in KINDS]
    for n in range(1, 90):
        event = Event(f"e{n}", {"genre": n * n % 7, "mood": n % 3, "x": n % 5}, n, n)
        now = Moment(n * 10**6, n)
        some = [name for at, name in enumerate(people) if n % (at + 1) == 0]
        offers = [(Match(name, event, (n * 37 % 11) / 11, ()), now) for name in some]
        first, *rest = [feeds.offer_many(offers) for feeds in both]
        assert all(each == first for each in rest)
