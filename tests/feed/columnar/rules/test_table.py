"""Rules in arrays against those of plain feeds: deliveries and verdicts, field by field."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.rule_cases import (
    FAR_END,
    any_rules,
    comparable,
    long_streams,
    rules,
    without_diversity,
)
from tests.feed.streams import WINDOWS, Step, enrolled, plain_or_diverse, policies, run

from tidings.feed import Feeds
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.plain import PlainFeeds
from tidings.model.records import Event, Match
from tidings.model.values import SECOND_US
from tidings.policy import Policy, Subscriber
from tidings.rules import quota
from tidings.rules.different import Different
from tidings.window import Moment
from tidings.window.continuous import Continuous

NAMES = "uvw"
any_window = st.one_of(*WINDOWS.values())
ranked = st.dictionaries(
    st.sampled_from(NAMES), policies(any_window, rules=without_diversity), min_size=1
)
diverse = st.dictionaries(
    st.sampled_from(NAMES), policies(any_window, plain_or_diverse, rules), min_size=1
)
mixed = st.dictionaries(
    st.sampled_from(NAMES), policies(any_window, plain_or_diverse, any_rules), min_size=1
)


def assert_same(policies_by_name: dict[str, Policy], stream: list[Step]) -> None:
    plain, table = PlainFeeds(), TableFeeds()
    both: list[Feeds] = [enrolled(feeds, policies_by_name) for feeds in (plain, table)]
    for step in stream:
        expected, found = [run(feeds, [step]) for feeds in both]
        assert found == expected
        expected_verdicts, verdicts = [comparable(feeds.take_verdicts()) for feeds in both]
        assert verdicts == expected_verdicts
    expected, found = [feeds.advance(FAR_END) for feeds in both]
    assert found == expected


@settings(max_examples=150)
@given(policies_by_name=ranked, stream=long_streams(NAMES))
def test_quotas_and_quiet_hours_decide_as_plain_ones(
    policies_by_name: dict[str, Policy], stream: list[Step]
) -> None:
    assert_same(policies_by_name, stream)


@settings(max_examples=150)
@given(policies_by_name=diverse, stream=long_streams(NAMES))
def test_rules_decide_as_plain_ones_with_every_diversifier(
    policies_by_name: dict[str, Policy], stream: list[Step]
) -> None:
    assert_same(policies_by_name, stream)


@settings(max_examples=60)
@given(policies_by_name=mixed, stream=long_streams(NAMES), data=st.data())
def test_any_split_into_calls_delivers_the_same(
    policies_by_name: dict[str, Policy], stream: list[Step], data: st.DataObject
) -> None:
    plain = enrolled(PlainFeeds(), policies_by_name)
    expected = plain.offer_many([offer for step in stream for offer in step.offers(plain)])
    table, left, found = enrolled(TableFeeds(), policies_by_name), list(stream), []
    while left:
        size = data.draw(st.integers(1, len(left)))
        found += table.offer_many([offer for step in left[:size] for offer in step.offers(table)])
        left = left[size:]
    assert found == expected
    assert table.advance(FAR_END) == plain.advance(FAR_END)


def test_kernels_remember_as_many_ranks_as_the_rule() -> None:
    assert layout.REMEMBERED == quota.REMEMBERED


def test_many_subscribers_get_the_same_of_few_events_that_are_near_to_each_other() -> None:
    """With many, the distances to all events are measured; most are near to none, some to one."""
    policy = Policy(window=Continuous(expires=1), rules=[Different(0.3, "40s")])
    names, chance = [f"u{number}" for number in range(60)], Random(7)
    plain, table = PlainFeeds(), TableFeeds()
    for feeds in (plain, table):
        for name in names:
            feeds.enrol(Subscriber(name, policy))
    passed = dropped = 0
    for second in range(60):
        values = {name: chance.randrange(5) for name in ("genre", "mood", "year")}
        event, now = Event(f"e{second}", values, second), Moment(second * SECOND_US, second)
        to = [name for name in names if chance.random() < 0.5]
        offers = [(Match(name, event, 0.5, ("s",)), now) for name in to]
        expected, found = [feeds.offer_many(offers) for feeds in (plain, table)]
        assert [*found] == [*expected]
        passed, dropped = passed + len(expected), dropped + len(to) - len(expected)
        verdicts, table_verdicts = [comparable(feeds.take_verdicts()) for feeds in (plain, table)]
        assert table_verdicts == verdicts
        plain.advance(now)
        table.advance(now)
    assert min(passed, dropped) > 100
    [group] = table.rules.groups.values()
    assert group._compared.kept.least[0] >= 0  # of the last event
