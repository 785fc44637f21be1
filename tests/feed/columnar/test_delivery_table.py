"""Deliveries from columns equal those from objects."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_feeds import offers_of
from tests.feed.streams import WINDOWS, enrolled, plain_or_diverse, policies, streams

from tidings.feed.columnar.delivery_table import _format_times, delivery_table
from tidings.feed.columnar.feeds import TableFeeds
from tidings.formats.arrow import deliveries_to_table
from tidings.model.values import format_time


@settings(max_examples=60)
@given(data=st.data())
def test_columns_agree_with_objects(data: st.DataObject) -> None:
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    table = TableFeeds()
    enrolled(table, {name: data.draw(policies(window, plain_or_diverse)) for name in "uvw"})
    stream = data.draw(streams("uvw"))
    offered = table.offer_matches(*offers_of(table, stream))
    assert delivery_table(offered, table.tables) == deliveries_to_table(offered.objects())
    if stream:
        due = table.advance_columns(stream[-1].now)
        assert delivery_table(due, table.tables) == deliveries_to_table(due.objects())


@given(
    st.lists(st.integers(-63 * 10**15, 300 * 10**15) | st.integers(0, 99).map(lambda s: s * 10**6))
)
def test_times_are_formatted_as_everywhere_else(times: list[int]) -> None:
    whole = np.unique(np.array(times, np.int64))
    assert _format_times(whole).to_pylist() == [format_time(us) for us in whole.tolist()]
