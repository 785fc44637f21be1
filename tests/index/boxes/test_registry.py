"""Box indexes by name: unknown names, matchings and aggregates."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.boxes import box_index


def test_unknown_names_and_matchings_are_refused():
    with pytest.raises(TidingsError, match="unknown index 'tree'; expected one of: scan"):
        box_index("tree", [[0]], [[1]], [1])
    with pytest.raises(TidingsError, match="intersection has no relaxed matching; expected one"):
        box_index("intersection", [[0]], [[1]], [[1]])


def test_unknown_aggregates_are_refused():
    with pytest.raises(TidingsError, match="unknown aggregate 'mean'; expected a function or one"):
        box_index("scan", [[0]], [[1]], [[1]], aggregate="mean")


@pytest.mark.parametrize("name", ["blocks", "sparse"])
def test_compiled_indexes_take_named_aggregates_only(name):
    with pytest.raises(TidingsError, match=f"{name} aggregates by sum and max"):
        box_index(name, [[0]], [[1]], [[1]], aggregate=np.sum)
