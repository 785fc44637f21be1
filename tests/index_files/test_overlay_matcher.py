"""A sealed base with its young members answers what a scan over all of them answers."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.test_ranker import CONDITIONS, EVENTS, SCORERS, WEIGHTED

from tidings import Policy, Subscriber, Subscription
from tidings.errors import TidingsError
from tidings.index_files.base_files import build_folder, new_part, read_base, write_mapped_files
from tidings.index_files.mapped_matcher import BaseIndex, build_base
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.model.records import Event
from tidings.rank.matcher import Matcher
from tidings.score import SCORERS as PARTS
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.testing import workload

Found = tuple[str, float, tuple[str, ...]]
WRITTEN = [each for each in SCORERS if not isinstance(each, Relaxed)]
tenths = st.integers(0, 10).map(lambda n: n / 10)


@st.composite
def member(draw: st.DrawFn, name: str) -> SubscriberBundle:
    """Draw a member, of which everything may be missing; its ids are its own."""
    scorer = draw(st.sampled_from(WRITTEN))
    prefers = draw(st.sampled_from([(), ((f"{name}1", f"{name}2"),)]))
    person = draw(st.none() | st.just(Subscriber(name, Policy(scorer=scorer), prefers)))
    numbers = draw(st.lists(st.integers(0, 11), unique=True, max_size=4))
    return SubscriberBundle(name, person, tuple(draw(wish(name, f"{name}{n}")) for n in numbers))


@st.composite
def wish(draw: st.DrawFn, owner: str, key: str) -> Subscription:
    if draw(st.booleans()):
        return Subscription(key, owner, any=draw(st.sampled_from(WEIGHTED)))
    where = draw(st.sampled_from(CONDITIONS))
    rank, score = draw(st.none() | tenths), draw(st.none() | tenths)
    return Subscription(key, owner, where, prefrank=rank, score=score)


groups = st.lists(st.sampled_from(["ann", "bob", "cy", "dee"]), unique=True).flatmap(
    lambda names: st.tuples(*(member(name) for name in sorted(names))).map(list)
)


def mapped(sealed: BaseIndex) -> BaseIndex:
    """Take a base through a file."""
    with TemporaryDirectory() as folder:
        write_mapped_files(Path(folder), new_part(1, 0), sealed)
        return read_base(Path(folder), new_part(1, 0))


def scan(given: dict[str, SubscriberBundle]) -> Matcher:
    people = [each.subscriber for each in given.values() if each.subscriber]
    wanted = [wish for each in given.values() for wish in each.subscriptions]
    return Matcher(people, wanted, index="scan")


def named(server: OverlayMatcher, events: list[Event]) -> list[list[Found]]:
    wanted = server.wanted(events)

    def text(names, number: int) -> str:
        return str(names.take(np.array([number]))[0])

    return [
        sorted(
            (
                text(server.names, owner),
                rank,
                tuple(text(server.ids, each) for each in matched),
            )
            for owner, rank, matched in wanted.of(at)
        )
        for at in range(len(events))
    ]


def expected(matcher: Matcher, events: list[Event]) -> list[list[Found]]:
    return [
        [(each.subscriber, each.score, each.matched) for each in matcher.matches(event)]
        for event in events
    ]


def check(server: OverlayMatcher, present: dict[str, SubscriberBundle]) -> None:
    matcher = scan(present)
    assert named(server, EVENTS) == expected(matcher, EVENTS)
    for scorer in (Exact(), Relaxed()):
        for k in (1, 3, 50):
            tops = server.top_many(EVENTS, k, scorer)
            assert tops == [matcher.top(event, k, scorer) for event in EVENTS]
    for name in ("ann", "bob", "cy", "dee", "nobody"):
        person = present[name].subscriber if name in present else None
        assert server.policy(name) == (person.policy if person else None)


@given(groups, st.lists(groups, max_size=3))
def test_a_base_and_whatever_changes_after_it_answer_as_a_scan_does(first, later):
    present = {each.name: each for each in first}
    server = OverlayMatcher(mapped(build_base(first)))
    check(server, present)
    for changed in later:
        server.apply(changed)
        present |= {each.name: each for each in changed}
        check(server, present)


def test_every_scorer_of_the_library_is_served():
    assert {Policy(scorer=each).scorer.name for each in WRITTEN} == set(PARTS)


def test_a_workload_with_every_policy_is_served_from_a_file():
    given = workload(seed=3, events=80, subscribers=60)
    server = OverlayMatcher(
        mapped(build_base(bundle_subscribers(given.subscribers, given.subscriptions)))
    )
    matcher = Matcher(given.subscribers, given.subscriptions, index="scan")
    assert named(server, given.events) == expected(matcher, given.events)


def test_without_a_base_every_scorer_ranks_subscriptions():
    given = workload(seed=4, events=10)
    server = in_memory_matcher(bundle_subscribers(given.subscribers, given.subscriptions))
    matcher = Matcher(given.subscribers, given.subscriptions, index="scan")
    for scorer in (Preference(), Relaxed("max"), Exact(), Relaxed()):
        tops = server.top_many(given.events, 4, scorer)
        assert tops == [matcher.top(event, 4, scorer) for event in given.events]


def test_with_a_base_a_scorer_that_no_index_knows_is_refused():
    given = workload(seed=4, events=1)
    server = OverlayMatcher(build_base(bundle_subscribers(given.subscribers, given.subscriptions)))
    with pytest.raises(TidingsError, match="ranked by 'exact' or 'relaxed'"):
        server.top_many(given.events, 4, Preference())


def test_a_policy_without_a_written_form_is_refused():
    policy = Policy(scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    with pytest.raises(TidingsError, match="subscriber ann cannot be written"):
        build_base([SubscriberBundle("ann", Subscriber("ann", policy))])


def test_flags_follow_the_policies_that_are_there():
    given = [
        SubscriberBundle(name, Subscriber(name, Policy(k=k)))
        for name, k in [("ann", 1), ("bob", 2)]
    ]
    server = OverlayMatcher(
        mapped(
            build_base([*given, SubscriberBundle("cy", None, [Subscription("s", "cy", "a = 1")])])
        )
    )

    def flagged() -> dict[str, bool]:
        flags = server.flags(lambda policy: policy.k == 2)
        names = server.names.take(np.arange(len(flags))).to_pylist()
        return {name: bool(flag) for name, flag in zip(names, flags, strict=True) if flag}

    assert flagged() == {"bob": True}
    server.apply([SubscriberBundle("bob"), SubscriberBundle("ann", Subscriber("ann", Policy(k=2)))])
    assert flagged() == {"ann": True}
    assert len(server.hashes) == len(server.flags(lambda policy: True))


def test_of_members_with_one_name_the_last_counts():
    policy = Policy(scorer={"name": "relaxed", "aggregate": "max"})
    ann = SubscriberBundle("ann", Subscriber("ann", policy), [Subscription("s", "ann", "a = 1")])
    event = Event("e", {"a": 1}, published_at=0)
    assert len(OverlayMatcher(build_base([ann])).wanted([event]).subscribers) == 1
    assert (
        len(
            OverlayMatcher(build_base([ann]), [SubscriberBundle("ann")]).wanted([event]).subscribers
        )
        == 0
    )


def test_another_policy_makes_another_mark(tmp_path: Path):
    marks = []
    for number, k in enumerate((3, 3, 4)):
        (tmp_path / str(number)).mkdir()
        given = [SubscriberBundle("ann", Subscriber("ann", Policy(k=k)))]
        marks.append(build_folder(tmp_path / str(number), given).manifest(1).source)
    assert marks[0] == marks[1] != marks[2]
