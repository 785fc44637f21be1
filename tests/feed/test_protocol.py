"""A subscriber that is set aside is noted with its reason, and logged once each time."""

import logging

import pytest

from tidings.feed.protocol import report_set_aside


def test_a_subscriber_is_noted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    set_aside = {"bob": "earlier"}
    with caplog.at_level(logging.WARNING):
        report_set_aside(set_aside, "ada", "its scorer failed: no")
    assert set_aside == {"bob": "earlier", "ada": "its scorer failed: no"}
    assert [record.getMessage() for record in caplog.records] == [
        "subscriber ada is set aside until it is enrolled again: its scorer failed: no"
    ]
    report_set_aside(set_aside, "ada", "again")
    assert set_aside["ada"] == "again"
