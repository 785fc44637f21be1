"""Descriptions of an access index: counts that add up, and a text."""

from tests.index.access.in_blocks import InBlocks
from tests.index.access.workload import subscriptions

from tidings.index.access import Access
from tidings.index.access.description import SegmentDescription


def test_conjunctions_are_in_lists_or_in_blocks() -> None:
    held = subscriptions(90, 3)
    lists = Access(held).describe()
    blocks = InBlocks(held).describe()
    (posted,), (scanned,) = lists.segments, blocks.segments
    assert posted.in_blocks == scanned.in_lists == 0
    assert posted.in_lists == scanned.in_blocks >= 90
    assert posted.block_chance is None
    assert scanned.list_chance is None
    assert scanned.columns > 1
    assert lists.subscriptions == blocks.subscriptions == 90


def test_removed_and_new_subscriptions_are_counted() -> None:
    index = Access(subscriptions(90, 3))
    index.remove("s00004")
    index.add(subscriptions(91, 3)[-1])
    described = index.describe()
    assert (described.dead, described.memtable, described.subscriptions) == (1, 1, 90)
    assert described.nbytes == index.nbytes


def test_a_description_reads_as_text() -> None:
    one = SegmentDescription(2000, 3, 900, 1100, 7.6, 0.001, 0.5, 10**5)
    assert str(one) == (
        "segment of 2,000 subscriptions, 3 dead: 900 conjunctions in posting lists (best predicate:"
        " 0.1 % of events), 1,100 in blocks of 64 with 7.6 columns (best predicate: 50 % of events)"
    )
    text = str(Access().describe())
    assert text.startswith("access: 0 subscriptions in ")
    assert text.endswith("; memtable 0; dead 0; no merge is running, 0 done.")
