"""Table feeds: long streams, memory that is reused, and rows that are not touched."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import (
    WINDOWS,
    Own,
    Step,
    enrolled,
    plain_or_diverse,
    policies,
    run,
    streams,
)

from tidings.diversify.greedy import DivRank
from tidings.errors import InvalidSubscription, TidingsError
from tidings.feed.columnar.cohort_arrays import OfferedEvents
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.feed.plain import PlainFeeds
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.rank.matches import Matches
from tidings.window import Moment

LONG: list[Any] = [
    "continuous",
    {"name": "continuous", "expires": 20},
    {"name": "periodic", "length": "30s"},
    {"name": "sliding", "length": 25},
    {"name": "sliding", "length": "40s"},
    {"name": "sliding", "length": 60, "count": "published"},
    {"name": "jumping", "length": 30, "step": 7, "delivered": "leave"},
    {"name": "jumping", "length": "1m", "step": "20s"},
    {"name": "history", "length": 20},
]


def long_stream(seed: int, names: str, events: int) -> list[Step]:
    """Return a stream that is long enough for slots, sets and slabs to be reused."""
    chance, seconds, steps = Random(seed), 0, []
    for number in range(1, events + 1):
        seconds += chance.choice([0, 1, 1, 2, 30])
        matching = [name for name in names if chance.random() < 0.6]
        event = Event(f"e{chance.random()}", {}, published_at=seconds, sequence=number)
        scores = {name: chance.choice([0.1, 0.5, chance.random()]) for name in matching}
        matched = {
            name: tuple(sorted(chance.sample("abc", chance.randint(0, 3)))) for name in matching
        }
        steps.append(Step(event, number, scores, matched))
    return steps


def table_of(policies: dict[str, Policy]) -> TableFeeds:
    table = TableFeeds()
    enrolled(table, policies)
    return table


def cohort_of(table: TableFeeds, number: int = 0) -> RankedCohort:
    cohort = table.cohorts[number]
    assert isinstance(cohort, RankedCohort)
    return cohort


def offers_of(table: TableFeeds, steps: list[Step]) -> OfferedEvents:
    """Return the matches of a stream as columns."""
    pairs = [(step, name) for step in steps for name in step.scores]
    matched = [[table.subscription(s) for s in step.matched[name]] for step, name in pairs]
    matches = Matches(
        np.cumsum([0, *(len(step.scores) for step in steps)]),
        np.array([table.number(name) for _, name in pairs], np.int32),
        np.array([step.scores[name] for step, name in pairs], np.float64),
        np.cumsum([0, *map(len, matched)]),
        np.array([number for numbers in matched for number in numbers], np.int32),
    )
    slots = table.slots_of([step.event for step in steps])
    return OfferedEvents(matches, slots, np.array([step.sequence for step in steps], np.int64))


@pytest.mark.parametrize("window", LONG, ids=str)
@pytest.mark.parametrize("decay", ["none", {"name": "exponential", "rate": 0.02}], ids=str)
def test_a_long_stream_delivers_like_plain_feeds(window: Any, decay: Any) -> None:
    policies_by_name = {name: Policy(k=5, window=window, decay=decay) for name in "uvwxyz"}
    stream = long_stream(11, "uvwxyz", 400)
    table, plain = table_of(policies_by_name), enrolled(PlainFeeds(), policies_by_name)
    assert run(table, stream) == run(plain, stream)
    names = table.tables
    assert len(names.events.objects) <= 256
    assert names.events.generation > 0
    assert names.matched.generation > 0
    twin = TableFeeds()
    twin.restore(table.snapshot())
    more = long_stream(12, "uvwxyz", 50)
    later = [
        Step(Event(f"f{n}", {}, 40_000 + n, 400 + n), 400 + n, step.scores, step.matched)
        for n, step in enumerate(more, start=1)
    ]
    assert run(twin, later) == run(plain, later) == run(table, later)


@settings(max_examples=50)
@given(st.data())
def test_columns_deliver_like_objects(data: st.DataObject) -> None:
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    policies_by_name = {name: data.draw(policies(window)) for name in "uvw"}
    stream = data.draw(streams("uvw"))
    table, plain = table_of(policies_by_name), enrolled(PlainFeeds(), policies_by_name)
    expected = plain.offer_many([offer for step in stream for offer in step.offers(plain)])
    batch = table.offer_matches(offers_of(table, stream))
    assert len(batch) == len(expected)
    assert batch.objects() == expected
    assert batch.rank.tolist() == [delivery.rank for delivery in expected]
    positions = batch.columns[:, layout.POSITION].tolist()
    assert positions == [delivery.position for delivery in expected]


def test_old_deliveries_are_not_turned_into_wrong_objects() -> None:
    table = table_of({"u": Policy(k=1, window={"name": "sliding", "length": 1})})
    stream = long_stream(3, "u", 300)
    first = table.offer_matches(offers_of(table, stream[:4]))
    assert first.objects()
    for step in stream[4:]:
        table.offer_matches(offers_of(table, [step]))
        table.advance(step.now)
    with pytest.raises(TidingsError, match="these deliveries are old"):
        first.objects()


def test_events_together_are_stored_and_ordered_as_one_by_one() -> None:
    times = {"b": 1, "a": 1, "d": 2, "c": 2}
    events = [Event(name, {}, us, content={"title": name}) for name, us in times.items()]
    feeds = TableFeeds()
    table = feeds.tables.events
    for batch in (events, [*events, events[1]], [Event("e", {}, 3)]):
        slots = feeds.slots_of(batch).tolist()
        assert [table.whole_event(slot) for slot in slots] == batch
        assert slots == [feeds.slot(event) for event in batch]
    for pair in ("ab", "cd"):
        first, second = (table.id_order[table.slot_of(name)] for name in pair)
        assert first < second


def test_the_number_of_a_dropped_subscriber_is_refused() -> None:
    table = table_of({"u": Policy(), "v": Policy()})
    [step] = long_stream(8, "", 1)
    rows = offers_of(table, [Step(step.event, 1, {"u": 0.5}, {"u": ()})])
    table.drop("u")
    with pytest.raises(InvalidSubscription, match="no longer enrolled"):
        table.offer_matches(rows)


def skyband(matches: list[tuple[float, int]], k: int) -> int:
    """Count the matches (score, position) that fewer than k later ones equal or beat."""
    return sum(
        sum(other[1] > match[1] and other[0] >= match[0] for other in matches) < k
        for match in matches
    )


@given(st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), max_size=40), st.integers(1, 4))
def test_a_sliding_window_lists_only_what_can_still_win(scores: list[float], k: int) -> None:
    table = table_of({"u": Policy(k=k, window={"name": "sliding", "length": 12})})
    for number, score in enumerate(scores, start=1):
        event = Event(f"e{number}", {}, published_at=number, sequence=number)
        now = Moment(event.published_us, number)
        table.offer_many([(Match("u", event, score, ()), now)])
        held = [(s, position) for position, s in enumerate(scores[:number])][-12:]
        assert cohort_of(table).head[0, layout.SIZE] == skyband(held, k)
        assert cohort_of(table).head[0, layout.HELD] == len(held)


@pytest.mark.parametrize("window", ["continuous", {"name": "periodic", "length": "1d"}], ids=str)
def test_only_the_k_best_are_kept(window: Any) -> None:
    table = table_of({"u": Policy(k=3, window=window)})
    run(table, long_stream(2, "u", 200))
    cohort = cohort_of(table)
    assert cohort.head[0, layout.SIZE] == 3
    assert cohort.lists.slabs.used[0] <= 12


@settings(max_examples=60)
@given(data=st.data())
def test_pruning_does_not_change_deliveries(data: st.DataObject) -> None:
    window = WINDOWS[data.draw(st.sampled_from(["sliding", "jumping", "expiring"]))]
    policy, stream = data.draw(policies(window)), data.draw(streams("u"))
    pruned, whole = table_of({"u": policy}), table_of({"u": policy})
    cohort_of(whole).codes = cohort_of(whole).codes._replace(prune=False)
    assert run(pruned, stream) == run(whole, stream)
    sizes = [int(cohort_of(feeds).head[0, layout.SIZE]) for feeds in (pruned, whole)]
    assert sizes[0] <= sizes[1]


def falling(count: int) -> list[tuple[Event, float]]:
    """Return events of which each is worse than all before it, so that all stay listed."""
    return [(Event(f"e{n}", {}, n, n), 1 - n / 1e6) for n in range(1, count + 1)]


def test_a_falling_stream_stays_within_its_slab() -> None:
    table = table_of({"u": Policy(k=2, window={"name": "sliding", "length": 100})})
    delivered: list[Delivery] = []
    for event, score in falling(1000):
        now = Moment(event.published_us, event.sequence or 0)
        delivered += table.offer_many([(Match("u", event, score, ()), now)])
    cohort = cohort_of(table)
    assert cohort.head[0, layout.SIZE] == cohort.head[0, layout.HELD] == 100
    assert cohort.lists.slabs.capacity[cohort.head[0, layout.SLAB_CLASS]] <= 100 + 100 // 7 + 2
    assert [delivery.event for delivery in delivered] == [f"e{n}" for n in range(1, 903)]


def test_the_clock_touches_only_rows_that_are_due() -> None:
    window = {"name": "periodic", "length": "10s"}
    table = table_of({f"u{number}": Policy(window=window) for number in range(50)})
    cohort, advanced = cohort_of(table), []
    advance = cohort.advance

    def watched(rows: Any, now: Moment) -> Any:
        advanced.append(rows.tolist())
        return advance(rows, now)

    cohort.advance = watched  # type: ignore[method-assign]
    event = Event("e", {}, published_at=3, sequence=1)
    offers = [(Match(name, event, 0.5, ()), Moment(3_000_000, 1)) for name in ("u7", "u9")]
    table.offer_many(offers)
    assert table.advance(Moment(9_000_000, 2)) == []
    assert [d.subscriber for d in table.advance(Moment(10_000_000, 2))] == ["u7", "u9"]
    assert table.advance(Moment(99_000_000, 3)) == []
    assert advanced == [[7, 9]]


def test_due_deliveries_come_in_order_of_enrolment_across_policies() -> None:
    window = {"name": "periodic", "length": "10s"}
    other = {"name": "jumping", "length": "10s", "step": "10s"}
    table = table_of({"b": Policy(window=window), "c": Policy(window=other)})
    table.drop("b")
    enrolled(table, {"a": Policy(window=window), "d": Policy(window=window, k=3)})
    enrolled(table, {"c": Policy(window=other, diversify="divrank")})
    event = Event("e", {}, published_at=3, sequence=1)
    table.offer_many([(Match(name, event, 0.5, ()), Moment(3_000_000, 1)) for name in "dca"])
    due = table.advance(Moment(10_000_000, 2))
    assert [delivery.subscriber for delivery in due] == ["c", "a", "d"]


def test_memory_of_dropped_subscribers_is_reused() -> None:
    policy = Policy(k=3, window={"name": "sliding", "length": 20})
    table = table_of({"u": policy})
    sizes = []
    for turn in range(30):
        enrolled(table, {f"x{turn}": policy})
        for step in long_stream(turn, "q", 40):
            match = Match(f"x{turn}", step.event, step.scores.get("q", 0.2), ())
            table.offer_many([(match, step.now)])
        table.drop(f"x{turn}")
        sizes.append(cohort_of(table).nbytes)
    assert sizes[5] == sizes[-1]
    assert len(table) == 1
    assert table.tables.subscribers.in_order().tolist() == [table.number("u")]


def test_a_few_matches_do_not_pay_for_a_long_window() -> None:
    policy = Policy(k=10, window={"name": "sliding", "length": 100})
    table = table_of({f"u{number}": policy for number in range(1000)})
    for place in range(3):
        event = Event(f"e{place}", {}, place, place + 1)
        now = Moment(event.published_us, place + 1)
        table.offer_many([(Match(f"u{n}", event, 0.5, ()), now) for n in range(1000)])
    assert cohort_of(table).nbytes / 1000 < 300


@pytest.mark.parametrize("decay", ["none", {"name": "exponential", "rate": 1e-3}], ids=str)
def test_a_full_window_of_a_hundred_takes_at_most_two_kilobytes(decay: Any) -> None:
    policy = Policy(k=10, window={"name": "sliding", "length": 100}, decay=decay)
    table, chance = TableFeeds(), np.random.default_rng(5)
    for number in range(2000):
        table.enrol(Subscriber(f"u{number}", policy))
    subscribers, subscription = np.arange(2000, dtype=np.int32), table.subscription("s")
    for place in range(130):
        slot = table.slot(Event(f"e{place}", {}, place, place + 1))
        matches = Matches(
            np.array([0, 2000]),
            subscribers,
            chance.random(2000),
            np.arange(2001),
            np.full(2000, subscription, np.int32),
        )
        offered = OfferedEvents(matches, np.array([slot], np.int32), np.array([place + 1]))
        table.offer_matches(offered)
    assert (cohort_of(table).head[:2000, layout.HELD] == 100).all()
    assert cohort_of(table).nbytes / 2000 <= 2048
    assert len(table.snapshot()) / 2000 <= 2048


@pytest.mark.parametrize("name", ["sliding", "jumping"])
def test_matches_out_of_order_expire_by_their_sequence(name: str) -> None:
    """A match with a lower sequence leaves before those that arrived earlier."""
    step = {"step": 2} if name == "jumping" else {}
    window = {"name": name, "length": 8, "count": "published", **step}
    policies_by_name = {"u": Policy(k=2, window=window)}
    for seed in range(20):
        chance, highest, stream = Random(seed), 0, []
        for place in range(1, 80):
            number = max(1, place + chance.randint(-6, 2))
            highest = max(highest, number)
            event = Event(f"e{place}", {}, published_at=place // 2, sequence=number)
            score = chance.choice([0.2, 0.4, 0.6, chance.random()])
            stream.append(Step(event, highest, {"u": score}, {"u": ()}))
        table = table_of(policies_by_name)
        assert run(table, stream) == run(enrolled(PlainFeeds(), policies_by_name), stream)
        assert cohort_of(table).disorder[0] == 1


@pytest.mark.parametrize(("apart", "left"), [(3e-12, "e1"), (1e-13, "e2"), (0.0, "e2")])
def test_a_swap_drops_the_oldest_only_among_equal_sets(apart: float, left: str) -> None:
    """Sets are compared to 12 digits: a member that is 3e-12 better is worth keeping."""
    table = table_of({"u": Policy(k=2, window={"name": "history", "length": 9})})
    for number, score in enumerate([0.8 + apart, 0.8, 0.9], start=1):
        event = Event(f"e{number}", {}, published_at=number, sequence=number)
        now = Moment(event.published_us, number)
        assert len(table.offer_many([(Match("u", event, score, ()), now)])) == 1
    assert [delivery.event for delivery in table.current("u", now)] == ["e3", left]


CHURNED: dict[str, list[Any]] = {
    "sliding": [{"name": "sliding", "length": 3}, {"name": "sliding", "length": 4}],
    "periodic": [{"name": "periodic", "length": "5s"}, {"name": "periodic", "length": "9s"}],
    "jumping": [{"name": "jumping", "length": 4, "step": 2, "delivered": "leave"}],
}


@pytest.mark.parametrize("window", sorted(CHURNED))
@pytest.mark.parametrize("diversify", ["none", "divrank", "maxdivrel-lsh"])
def test_removed_subscriptions_leave_nothing_behind(window: str, diversify: str) -> None:
    """Their names are forgotten, and the matches in windows keep the right ones."""
    policies = [Policy(k=2, window=form, diversify=diversify) for form in CHURNED[window]]
    policies_by_name = {name: policies[n % len(policies)] for n, name in enumerate("uvw")}
    table, plain, chance = (
        table_of(policies_by_name),
        enrolled(PlainFeeds(), policies_by_name),
        Random(4),
    )
    for n in range(700):
        event = Event(f"e{n}", {"a": n % 3}, published_at=n // 2, sequence=n)
        now = Moment(event.published_us, n)
        names = [f"s{n}-{i}" for i in range(3)]
        offers = [
            (Match(name, event, score, tuple(names[: chance.randint(0, 3)])), now)
            for name, score in (("u", 0.5), ("v", 0.7))
        ]
        assert table.offer_many(offers) == plain.offer_many(offers)
        assert table.advance(now) == plain.advance(now)
        assert table.current("v", now) == plain.current("v", now)
    matched = table.tables.matched
    assert len(matched.names) < 600
    assert matched.generation > 2
    twin = TableFeeds()
    twin.restore(table.snapshot())
    assert twin.snapshot() == table.snapshot()
    assert twin.current("v", now) == plain.current("v", now)


@pytest.mark.parametrize("diversify", ["none", "maxmin", "own"])
def test_unused_policies_leave_nothing_behind(diversify: str) -> None:
    chosen = DivRank(distance=Own()) if diversify == "own" else diversify
    table = table_of({"v": Policy(window={"name": "periodic", "length": "1d"})})
    event = Event("e", {"a": 1}, published_at=1, sequence=1)
    for days in range(2, 300):
        policy = Policy(window={"name": "periodic", "length": f"{days}d"}, diversify=chosen)
        table.enrol(Subscriber("u", policy))
        table.offer_many([(Match("u", event, 0.5, ("s",)), Moment(event.published_us, 1))])
    assert len(table.cohorts) == len(table.cohorts._numbers) == 2
    assert len(table.cohorts.features._tables) == (diversify == "maxmin")
    assert sum(len(deadlines._heap) for deadlines in table._deadlines.values()) <= 2
    fresh = table_of({"v": Policy(window={"name": "periodic", "length": "1d"}), "u": policy})
    fresh.offer_many([(Match("u", event, 0.5, ("s",)), Moment(event.published_us, 1))])
    assert table.snapshot() == fresh.snapshot()
    end = Moment(298 * 86_400_000_000, 2)
    assert table.advance(end) == fresh.advance(end) == []
    end = Moment(299 * 86_400_000_000, 3)
    [due] = table.advance(end)
    assert [due] == fresh.advance(end)
    table.drop("u")
    table.drop("v")
    assert [*table.cohorts] == []
    enrolled(table, {"u": policy})
    assert len(table.cohorts) == 1


@settings(max_examples=60)
@given(data=st.data())
def test_changing_subscribers_get_what_plain_feeds_deliver(
    data: st.DataObject,
) -> None:
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    forms = data.draw(st.lists(policies(window, plain_or_diverse), min_size=2, max_size=3))
    table, plain = TableFeeds(), PlainFeeds()
    for step in data.draw(streams("uvw")):
        name, policy = data.draw(st.sampled_from("uvw")), data.draw(st.sampled_from(forms))
        if name in plain and data.draw(st.booleans()):
            table.drop(name)
            plain.drop(name)
        else:
            enrolled(table, {name: policy})
            enrolled(plain, {name: policy})
        offers = step.offers(plain)
        assert table.offer_many(offers) == plain.offer_many(offers)
        assert table.advance(step.now) == plain.advance(step.now)
        numbers = {table.number(name) for name in "uvw" if name in table}
        used = {int(table.tables.subscribers.cohort[number]) for number in numbers}
        assert len(table.cohorts) == len(used)
        assert sum(map(len, table.cohorts)) == len(numbers)
        assert all(len(table.cohorts[cohort]) for cohort in used)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=12))
def test_equal_policies_share_one_cohort(drawn: list[tuple[int, int]]) -> None:
    """Enrolling many at once is like enrolling them one by one."""
    many, one = TableFeeds(), TableFeeds()
    policies = [Policy(k=k) for _, k in drawn] + [Policy(k=2)]
    indexes = np.array([min(i, len(policies) - 1) for i, _ in drawn], np.int32)
    names = [f"u{n}" for n in range(len(drawn))]
    many.enrol_many(names, policies[: max(indexes, default=-1) + 1], indexes)
    for name, index in zip(names, indexes.tolist(), strict=True):
        one.enrol(Subscriber(name, policies[index]))
    assert many.snapshot() == one.snapshot()
    assert len({cohort.policy.k for cohort in many.cohorts}) == len(many.cohorts)


def test_a_cohort_enrols_all_of_its_subscribers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if equal policies are many different objects."""
    calls = []
    enrol = RankedCohort.enrol_many

    def watched(cohort: RankedCohort, numbers: Any, names: Any) -> Any:
        calls.append(len(numbers))
        return enrol(cohort, numbers, names)

    monkeypatch.setattr(RankedCohort, "enrol_many", watched)
    policies = [Policy(k=1 + n % 2) for n in range(500)]
    table = TableFeeds()
    table.enrol_many([f"u{n}" for n in range(500)], policies, np.arange(500, dtype=np.int32))
    assert calls == [250, 250]
