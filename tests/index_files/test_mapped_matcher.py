"""The matcher over arrays: numbered in order, equal to a scan, also without dropped owners."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import groups, scan
from tests.rank.bulk.test_ranker import EVENTS
from tests.rank.test_target_index import events, subscriptions, whole

from tidings import Event, Exact, Policy, Relaxed, Subscriber, Subscription
from tidings.compiled.array_file import Damaged, Writer
from tidings.errors import TidingsError
from tidings.index_files import mapped_file, mapped_matcher
from tidings.index_files.mapped_matcher import (
    BaseIndex,
    MappedMatcher,
    OwnedRanks,
    build_base,
    ranked_by_index,
)
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.rank.matcher import Matcher
from tidings.score import Scorer
from tidings.score.preference import Preference

DEFAULT = Policy()
EVENT = Event("e", {"a": 1}, published_at=0)


def bundle(name: str, *ids: str, policy: Policy | None = DEFAULT) -> SubscriberBundle:
    subscriber = Subscriber(name, policy) if policy else None
    return SubscriberBundle(name, subscriber, [Subscription(key, name, "a = 1") for key in ids])


def names(base: BaseIndex) -> list[str]:
    return list(base.subscribers.names)


def reread(matcher: MappedMatcher, path: Path) -> MappedMatcher:
    writer = Writer()
    matcher.write(writer)
    mapped_file.write(path, mapped_file.INDEX, writer)
    return MappedMatcher.read(mapped_file.read(path, mapped_file.INDEX))


def matched(
    matcher: MappedMatcher, owners: list[str], event: Event = EVENT
) -> dict[str, list[str]]:
    rows = matcher.match_many([event]).rows(0)
    return {owners[owner]: sorted(matcher.ids[id] for id in ids) for owner, _, ids in rows}


def test_owners_and_ids_are_numbered_in_order() -> None:
    base = build_base([bundle("ann", "s5", policy=None), bundle("bob", "s9", "s1"), bundle("cy")])
    assert names(base) == ["bob", "cy", "ann"]
    assert list(base.matcher.ids) == ["s1", "s5", "s9"]
    assert base.matcher.owners == 3


def test_an_owner_without_a_policy_has_targets_and_no_matches() -> None:
    base = build_base([bundle("ann", "s5", policy=None), bundle("bob", "s9", "s1")])
    assert matched(base.matcher, names(base)) == {"bob": ["s1", "s9"]}
    assert base.matcher.top_many([EVENT], 2, Exact()) == [[("s1", 1.0), ("s5", 1.0)]]


def test_policies_without_a_compiled_ranker_stay_objects() -> None:
    slow = bundle("bob", "s2", policy=Policy(scorer={"name": "relaxed", "aggregate": "max"}))
    fast = bundle("ann", "s1", policy=Policy(scorer="relaxed"))
    base = build_base([fast, slow])
    assert (names(base), base.uncompiled) == (["ann"], [slow])
    assert list(base.matcher.ids) == ["s1"]


def test_an_empty_base_matches_nothing(tmp_path: Path) -> None:
    matcher = build_base([]).matcher
    for each in (matcher, reread(matcher, tmp_path / "base")):
        assert each.owners == 0
        assert each.match_many([EVENT]).starts.tolist() == [0, 0]
        assert each.top_many([EVENT], 3, Exact()) == [[]]
        each.drop([])


def test_a_policy_that_cannot_be_written_is_refused() -> None:
    policy = Policy(scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    with pytest.raises(TidingsError, match="subscriber ann cannot be written"):
        build_base([SubscriberBundle("ann", Subscriber("ann", policy))])


def test_owners_are_dropped_from_memory_and_not_from_what_is_written(tmp_path: Path) -> None:
    base = build_base([bundle("ann", "s1", "s3"), bundle("bob", "s2"), bundle("cy")])
    matcher = base.matcher
    matcher.drop([0, 2])
    assert matched(matcher, names(base)) == {"bob": ["s2"]}
    matcher.drop([0])
    assert matched(matcher, names(base)) == {"bob": ["s2"]}
    assert matcher.owners == 3
    again = reread(matcher, tmp_path / "base")
    assert matched(again, names(base)) == {"ann": ["s1", "s3"], "bob": ["s2"]}


def test_a_drop_is_private_to_one_reader(tmp_path: Path) -> None:
    base = build_base([bundle("ann", "s1"), bundle("bob", "s2")])
    one = reread(base.matcher, tmp_path / "base")
    other = MappedMatcher.read(mapped_file.read(tmp_path / "base", mapped_file.INDEX))
    one.drop([0])
    assert matched(one, names(base)).keys() == {"bob"}
    assert matched(other, names(base)).keys() == {"ann", "bob"}


def test_the_positions_of_owners_are_spans() -> None:
    owned = OwnedRanks(np.array([0, 2, 2, 3]), np.array([1, 4, 0], np.int32))
    assert [owned.of(owner).tolist() for owner in range(3)] == [[1, 4], [], [0]]


@given(bundles=groups, dropped=st.sets(st.sampled_from(["ann", "bob", "cy", "dee"])))
def test_the_rest_answers_as_a_scan_without_the_dropped_owners(
    bundles: list[SubscriberBundle], dropped: set[str]
) -> None:
    base = build_base(bundles)
    base.matcher.drop(number for number, name in enumerate(names(base)) if name in dropped)
    aside = dropped | {each.name for each in base.uncompiled}
    plain = scan({bundle.name: bundle for bundle in bundles if bundle.name not in aside})
    matches = base.matcher.match_many(EVENTS)
    for position, event in enumerate(EVENTS):
        found = sorted(
            (names(base)[owner], rank, tuple(base.matcher.ids[number] for number in sorted(ids)))
            for owner, rank, ids in matches.rows(position)
        )
        assert found == [(m.subscriber, m.score, m.matched) for m in plain.matches(event)]
    for scorer in (Exact(), Relaxed()):
        tops = base.matcher.top_many(EVENTS, 2, scorer)
        assert tops == [plain.top(event, 2, scorer) for event in EVENTS]


@pytest.mark.parametrize("fault", ["ranks", "starts", "people", "ids"])
def test_numbers_that_kernels_would_follow_are_checked(tmp_path: Path, fault: str) -> None:
    class Forger(Writer):
        """Writes one wrong array or value."""

        def array(self, name: str, values: Any) -> None:
            if name == f"owned.{fault}":
                values = np.zeros_like(values)
            super().array(name, values)

        def value(self, name: str, value: Any) -> None:
            super().value(name, value + (name == fault))

        def texts(self, name: str, texts: Any) -> None:
            super().texts(name, ["s1"] if name == fault else texts)

    writer = Forger()
    build_base([bundle("ann", "s1"), bundle("bob", "s2")]).matcher.write(writer)
    mapped_file.write(tmp_path / "base", mapped_file.INDEX, writer)
    with pytest.raises(Damaged):
        MappedMatcher.read(mapped_file.read(tmp_path / "base", mapped_file.INDEX))


@pytest.mark.parametrize(
    ("scorer", "ranked"),
    [(Exact(), True), (Relaxed(), True), (Relaxed("max"), False), (Preference(), False)],
)
def test_an_index_ranks_by_exact_and_by_sums(scorer: Scorer, ranked: bool) -> None:
    assert ranked_by_index(scorer) is ranked


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build boxes for the first event, and always find them faster."""
    monkeypatch.setattr(mapped_matcher, "ASKED", 1)
    times = iter(range(1, 10**9))
    monkeypatch.setattr(mapped_matcher, "least_seconds", lambda _: next(times))


def owned(some: list[Subscription]) -> list[Subscription]:
    """Return subscriptions with different ids, of three subscribers."""
    different = {one.id: one for one in some}.values()
    return [replace(one, subscriber="abc"[int(one.id[1:]) % 3]) for one in different]


def rows_of(matcher: OverlayMatcher, asked: list[Event], k: int, scorer: Any) -> list[Any]:
    tops = matcher.top_columns(asked, k, scorer)
    ids, scores = iter(tops.subscriptions.to_pylist()), iter(tops.scores.tolist())
    return [[(next(ids), next(scores)) for _ in range(count)] for count in tops.counts.tolist()]


@settings(max_examples=60)
@given(
    some=st.lists(subscriptions(), min_size=1, max_size=12).map(owned),
    gone=st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    asked=st.lists(events | whole, min_size=1, max_size=5),
    k=st.integers(1, 5),
    scorer=st.sampled_from([Exact(), Relaxed()]),
    early=st.booleans(),
)
def test_the_best_are_those_of_a_scan(some, gone, asked, k, scorer, early):
    matcher = OverlayMatcher(build_base(bundle_subscribers((), some)))
    if not early:  # boxes are there when subscribers leave
        scan = Matcher((), some, "scan")
        expected = [scan.top(event, k, scorer) for event in asked]
        assert rows_of(matcher, asked, k, scorer) == expected
    for name in gone:
        matcher.apply([SubscriberBundle(name)])
    scan = Matcher((), [one for one in some if one.subscriber not in gone], "scan")
    expected = [scan.top(event, k, scorer) for event in asked]
    assert rows_of(matcher, asked, k, scorer) == expected


def ranges(count: int) -> list[Subscription]:
    return [
        Subscription(f"s{n:03d}", "u", f"a >= {n % 7} and b = {n % 5}", score=float(n % 3))
        for n in range(count)
    ]


ASKED = [Event("e", {"a": n % 7, "b": n % 5}, published_at=0) for n in range(20)]


def test_boxes_answer_and_others_do_not_need_them():
    some = ranges(50)
    base = build_base(bundle_subscribers((), some)).matcher
    assert base.best_numbers(ASKED, 3, Exact()) is not None
    listed = [*ASKED, Event("e", {"a": [1, 2]}, published_at=0)]
    assert base.best_numbers(listed, 3, Exact()) is None
    mixed = [*some, Subscription("t", "u", "c = 'x'")]
    assert build_base(bundle_subscribers((), mixed)).matcher.best_numbers(ASKED, 3, Exact()) is None


def test_slower_boxes_are_not_used(monkeypatch: pytest.MonkeyPatch):
    times = iter(range(10**9, 0, -1))
    monkeypatch.setattr(mapped_matcher, "least_seconds", lambda _: next(times))
    base = build_base(bundle_subscribers((), ranges(50))).matcher
    assert base.best_numbers(ASKED, 3, Exact()) is None
    assert base.best_numbers(ASKED, 3, Exact()) is None


def test_weights_and_several_ranges_of_one_attribute():
    some = [
        Subscription("s0", "u", any=[["a >= 1", 0.5], ["b <= 2", 0.25]]),
        Subscription("s1", "u", any=[["a >= 2", 0.5], ["b <= 3", 0.75]]),
    ]
    base = build_base(bundle_subscribers((), some)).matcher
    answers = base.best_numbers([Event("e", {"a": 5, "b": 3}, published_at=0)], 5, Relaxed())
    assert answers is not None
    assert answers.scores[0, : answers.counts[0]].tolist() == [1.25, 0.5]
    twice = Subscription("s2", "u", any=[["a >= 1", 0.5], ["a <= 3", 0.25]])
    scan = Matcher((), [*some, twice], "scan")
    matcher = OverlayMatcher(build_base(bundle_subscribers((), [*some, twice])))
    assert rows_of(matcher, ASKED, 3, Relaxed()) == [
        scan.top(event, 3, Relaxed()) for event in ASKED
    ]
