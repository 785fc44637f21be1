"""Matches as bytes between the stages."""

import numpy as np

from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.match_batch_ops import empty


def test_a_parcel_comes_back() -> None:
    sent = Parcel(
        events=["e1", "é"],
        us=np.array([3, 4]),
        sequence=np.array([UNNUMBERED, 9]),
        forms=["", '{"id":"é"}'],
        matches=Matches(
            np.array([0, 1, 3]),
            np.array([1, 0, 1], np.int32),
            np.array([0.5, 0.25, 1.0]),
            np.array([0, 1, 2, 4]),
            np.array([0, 1, 0, 2], np.int32),
        ),
        subscribers=["ann", "bob"],
        subscriptions=["s1", "s2", "s3"],
    )
    found = Parcel.unpack(sent.pack())
    for name, column in sent.columns().items():
        assert np.array_equal(found.columns()[name], column), name
        assert getattr(found.columns()[name], "dtype", None) == getattr(column, "dtype", None)


def test_a_parcel_may_be_empty() -> None:
    found = Parcel.unpack(empty().pack())
    assert (found.events, found.subscribers, len(found.matches.ranks)) == ([], [], 0)
