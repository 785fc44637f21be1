"""Matches as bytes between the stages."""

import numpy as np

from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.spark.match_stage.match_batch import Parcel


def test_a_parcel_comes_back() -> None:
    sent = Parcel(
        events=["e1", "é"],
        us=np.array([3, 4]),
        sequence=np.array([UNNUMBERED, 9]),
        forms=["", '{"id":"é"}'],
        starts=np.array([0, 1, 3]),
        owners=np.array([1, 0, 1], np.int32),
        ranks=np.array([0.5, 0.25, 1.0]),
        matched_starts=np.array([0, 1, 2, 4]),
        matched=np.array([0, 1, 0, 2], np.int32),
        subscribers=["ann", "bob"],
        subscriptions=["s1", "s2", "s3"],
    )
    found = Parcel.unpack(sent.pack())
    for name, column in sent._asdict().items():
        assert np.array_equal(getattr(found, name), column), name
        assert getattr(getattr(found, name), "dtype", None) == getattr(column, "dtype", None)


def test_a_parcel_may_be_empty() -> None:
    none, ints = np.empty(0, np.int32), np.zeros(1, np.int64)
    sent = Parcel([], ints[:0], ints[:0], [], ints, none, np.empty(0), ints, none, [], [])
    found = Parcel.unpack(sent.pack())
    assert (found.events, found.subscribers, len(found.ranks)) == ([], [], 0)
