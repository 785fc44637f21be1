"""Options of a pipeline, read by name."""

from typing import Any

import pytest

from tidings import Limits
from tidings.errors import TidingsError
from tidings.spark.options import Options, read_options
from tidings.spark.state_stage.bucket import BucketSettings


def test_options_are_read_by_name():
    options = read_options({"lateness": "2s", "buckets": 4, "limits": Limits.public()})
    assert options == Options(lateness="2s", buckets=4, limits=Limits.public())
    assert options.bucket_settings(streaming=True) == BucketSettings(2_000_000, buckets=4)


def test_nothing_waits_in_a_batch():
    assert read_options({"lateness": "2s"}).bucket_settings(streaming=False).lateness_us == 0


@pytest.mark.parametrize(("future", "us"), [("5m", 300_000_000), ("0s", 0), (None, None)])
def test_future_is_a_duration_or_none(future: object, us: int | None):
    assert Options(future=future).future_us == us


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"latenes": "2s"}, "an option is one of 'lateness', .*, not 'latenes'"),
        ({"buckets": 0}, "buckets is a whole number of at least 1"),
        ({"remember": "soon"}, "soon"),
        ({"limits": {"attributes": 3}}, "limits"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], reason: str):
    with pytest.raises(TidingsError, match=reason):
        read_options(options).bucket_settings(streaming=True)
