"""Boxes that are refused."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.boxes.protocol import boxes_of


@pytest.mark.parametrize(
    ("low", "high", "worth", "message"),
    [
        ([[3.0]], [[2.0]], [1.0], "subscription 0, attribute 0: low 3.0 is above high 2.0"),
        ([[np.nan]], [[2.0]], [1.0], "low nan is above"),
        ([[1.0]], [[2.0]], [-1.0], "subscription 0, score -1.0 is not a finite number >= 0"),
        ([[1.0]], [[2.0]], [[np.inf]], "subscription 0, attribute 0: weight inf is not"),
        ([1.0], [2.0], [1.0], "one shape"),
        (np.empty((2, 0)), np.empty((2, 0)), [1.0, 2.0], "d at least 1"),
        ([[1.0]], [[2.0]], [1.0, 2.0], "scores need the shape"),
    ],
)
def test_wrong_boxes_are_refused(low, high, worth, message):
    with pytest.raises(TidingsError, match=message):
        boxes_of(low, high, worth)
