"""String tables: strings by number, in one table or in a base and its overlay."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.index_files.string_table import OverlaidStrings, StringTable

strings = st.lists(st.text(max_size=5), max_size=8)


@given(strings)
def test_a_table_is_a_sequence_of_its_strings(values: list[str]) -> None:
    table = StringTable.of(values)
    assert len(table) == len(values)
    assert list(table) == values


@given(strings, strings, st.data())
def test_an_overlay_numbers_its_strings_after_those_of_the_base(
    base: list[str], overlay: list[str], data: st.DataObject
) -> None:
    table = OverlaidStrings(StringTable.of(base), pa.array(overlay, pa.large_string()))
    together = base + overlay
    numbers = data.draw(st.lists(st.sampled_from(range(len(together))))) if together else []
    assert len(table) == len(together)
    taken = table.take(np.array(numbers, np.int64)).to_pylist()
    assert taken == [together[number] for number in numbers]
