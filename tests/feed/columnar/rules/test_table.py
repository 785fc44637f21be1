"""Rules in arrays against those of plain feeds: deliveries and verdicts, field by field."""

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
from tidings.policy import Policy
from tidings.rules import quota

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
