"""A verdict overwrites each column of its row, whatever was there before."""

import numpy as np
import pytest
from tests.feed.columnar.rules.groups import put, room, rule_group

from tidings.feed.columnar.rules.kernels.layout import (
    DETAIL,
    EXPECTED,
    LEFT,
    NONE,
    OTHER,
    REASON,
    SUBSCRIBER,
    TOO_NEAR,
    UNTIL,
    VERDICT_AT,
    VERDICT_EVENT,
    VERDICT_PLACE,
    VERDICT_SUBSCRIBER,
    VERDICT_WIDTH,
    VERDICTS,
)
from tidings.feed.columnar.rules.kernels.verdicts import judge


def test_every_column_is_written() -> None:
    arrays, output = rule_group(["quiet"]).arrays, room()
    output.verdicts[:], output.figures[:] = 77, 7.5
    output.progress[SUBSCRIBER] = 12
    put(arrays, 3, 9, 1_000, 0.5, 0.5)
    assert judge(arrays, output, 4, 3, EXPECTED) == 0
    written = dict(enumerate(output.verdicts[0].tolist()))
    assert written == {
        VERDICT_SUBSCRIBER: 12,
        VERDICT_PLACE: 4,
        REASON: EXPECTED,
        VERDICT_EVENT: 9,
        VERDICT_AT: 1_000,
        UNTIL: NONE,
        OTHER: NONE,
        DETAIL: NONE,
        LEFT: 0,
    }
    assert len(written) == VERDICT_WIDTH
    assert output.figures[0] == 0.0
    assert (output.verdicts[1:] == 77).all()


@pytest.mark.parametrize("before", [0, 1, 5])
def test_verdicts_follow_each_other(before: int) -> None:
    arrays, output = rule_group(["quiet"]).arrays, room()
    output.progress[VERDICTS] = before
    for number in range(3):
        put(arrays, 0, number, number, 0.5, 0.5)
        assert judge(arrays, output, 0, 0, TOO_NEAR) == before + number
    assert output.progress[VERDICTS] == before + 3
    assert output.verdicts[before : before + 3, VERDICT_EVENT].tolist() == [0, 1, 2]
    others = np.delete(output.progress, VERDICTS)
    assert others.tolist().count(0) == len(others) - 1  # JUDGED is -1 from the beginning
