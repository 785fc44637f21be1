"""Memory depends on what windows hold and time on what changes, however large k and lengths are."""

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
EVERY = ["none", *(p for name, parts in DIVERSIFIERS.items() if name != "own" for p in parts)]
KINDS = [*FEEDS.values()]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("k", [1, 2, MOST])
def test_extreme_policies_deliver_like_plain_feeds_in_little_memory(
    window: dict[str, Any], k: int
) -> None:
    for diversify in EVERY:
        try:
            policies = {"u": Policy(k=k, window=window, diversify=diversify)}
        except InvalidPolicy:
            assert diversify == "optimal"
            continue
        both = [enrolled(kind(), policies) for kind in KINDS]
        for n in range(1, 7):
            event = Event(f"e{n}", {"genre": "cd"[n % 2], "mood": n}, n, n)
            offers = [(Match("u", event, 0.1 * (n * 3 % 7), ("s",)), Moment(n * 10**6, n))]
            first, *rest = [feeds.offer_many(offers) for feeds in both]
            assert all(other == first for other in rest)
        for now in (Moment(10**15, 20), Moment(10**17, 10**9)):
            first, *rest = [feeds.advance(now) for feeds in both]
            assert all(other == first for other in rest)
            first, *rest = [feeds.current("u", now) for feeds in both]
            assert all(other == first for other in rest)
        for feeds in both:
            assert feeds.set_aside == {}
            if isinstance(feeds, TableFeeds):
                assert sum(cohort.nbytes for cohort in feeds.cohorts.arrays()) < 8_192
                for cohort in feeds.cohorts.arrays():
                    if isinstance(cohort, DiverseCohort):
                        assert sum(array.nbytes for array in cohort._scratch) < 32_768
                    else:
                        assert cohort._ranks.nbytes < 8_192


@pytest.mark.parametrize("feeds", KINDS)
@pytest.mark.parametrize("decay", ["none", {"name": "exponential", "rate": 0.1}], ids=str)
@pytest.mark.parametrize("diversify", ["none", "divrank", "disc"])
@pytest.mark.parametrize("delivered", ["keep", "leave"])
def test_a_hundred_years_pass_quickly(
    feeds: Any, decay: Any, diversify: str, delivered: str
) -> None:
    """Steps at which nothing can change are skipped; otherwise this would take minutes."""
    window = {"name": "jumping", "length": "36500d", "step": "1h", "delivered": delivered}
    limits = Limits(decayed_steps=1_000_000)
    policy = Policy(k=3, window=window, diversify=diversify, decay=decay, limits=limits)
    enrolled_feeds = enrolled(feeds(), {f"u{n}": policy for n in range(20)})
    for n in range(1, 4):
        event = Event(f"e{n}", {"genre": n}, n, n)
        now = Moment(n * 10**6, n)
        enrolled_feeds.offer_many([(Match(f"u{u}", event, 0.5, ("s",)), now) for u in range(20)])
    assert len(enrolled_feeds.advance(Moment(10**17, 4))) == 60


class StepByStep(JumpingWindow):
    """A jumping window by definition: it chooses at every step."""

    def _next(self, end: int, *_: Any) -> int:
        return end + self._steps.size


@pytest.mark.parametrize("diversify", ["none", *DIVERSIFIERS])
@settings(max_examples=60)
@given(data=st.data())
def test_skipped_steps_deliver_nothing(diversify: str, data: st.DataObject) -> None:
    """All feeds deliver like a window that chooses at every step."""
    parts = st.sampled_from(DIVERSIFIERS.get(diversify, ["none"]))
    more = {"delivered": st.sampled_from(["keep", "leave"]), "wait": st.booleans()}
    window = data.draw(jumps()) | {name: data.draw(values) for name, values in more.items()}
    decay = data.draw(st.sampled_from(["none", {"name": "exponential", "rate": 0.3}]))
    k = data.draw(st.integers(1, 4))
    policy = Policy(
        k=k, window=window | {"name": "jumping"}, decay=decay, diversify=data.draw(parts)
    )
    policies, stream = {"u": policy}, data.draw(streams("u"))
    judge = enrolled(PlainFeeds(), policies)
    feed = judge._feeds["u"]  # type: ignore[attr-defined]
    feed._window.__class__ = StepByStep
    both = [enrolled(kind(), policies) for kind in KINDS]
    for step in stream:
        expected = run(judge, [step])
        assert [run(feeds, [step]) for feeds in both] == [expected, expected]
    expected = judge.advance(END)
    assert [feeds.advance(END) for feeds in both] == [expected, expected]


@pytest.mark.parametrize("side", [0, 3, 256])
@pytest.mark.parametrize("weights", [{}, {"genre": 0.3}], ids=str)
def test_swaps_do_not_depend_on_stored_distances(
    side: int, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.feed.columnar.diverse_cohort._MATRIX", side)
    diversify = {"name": "divrank", "distance": {"name": "overlap", "weights": weights}}
    policy = Policy(k=5, window={"name": "history", "length": 30}, diversify=diversify)
    both = [enrolled(kind(), {"u": policy}) for kind in KINDS]
    for n in range(1, 80):
        event = Event(f"e{n}", {"genre": n * n % 7, "mood": n % 3, "x": n % 5}, n, n)
        offers = [(Match("u", event, (n * 37 % 11) / 11, ()), Moment(n * 10**6, n))]
        first, *rest = [feeds.offer_many(offers) for feeds in both]
        assert all(other == first for other in rest)


@pytest.mark.parametrize("row_width", [0, 64])
@pytest.mark.parametrize("diversify", ["divrank", "maxmin", "maxsum", "maxavg", "maxdivrel-lsh"])
def test_choices_are_kept_by_row_or_by_slab(
    row_width: int, diversify: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.feed.columnar.policy_codes._ROW_WIDTH", row_width)
    window = {"name": "sliding", "length": 12}
    policies = {f"u{n}": Policy(k=4, window=window, diversify=diversify) for n in range(5)}
    both = [enrolled(kind(), policies) for kind in KINDS]
    for n in range(1, 90):
        event = Event(f"e{n}", {"genre": n * n % 7, "mood": n % 3, "x": n % 5}, n, n)
        now = Moment(n * 10**6, n)
        names = [name for i, name in enumerate(policies) if n % (i + 1) == 0]
        offers = [(Match(name, event, (n * 37 % 11) / 11, ()), now) for name in names]
        first, *rest = [feeds.offer_many(offers) for feeds in both]
        assert all(other == first for other in rest)
