"""Tables, claims and exhibits."""

import pytest

from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, display, span


def test_a_table_refuses_rows_of_other_lengths():
    with pytest.raises(ValueError, match="rows of"):
        DataTable(("a", "b"), ((1,),))
    with pytest.raises(ValueError, match="timed columns"):
        DataTable(("a",), ((1,),), ("b",))


def test_times_are_not_part_of_what_a_seed_decides():
    table = DataTable(("n", "us", "calls"), ((1, 0.3, 9), (2, 0.4, 8)), ("us",))
    assert table.reproducible() == [(1, 9), (2, 8)]


def test_an_exhibit_holds_if_all_claims_do():
    table = DataTable(("n",), ((1,),))
    true, false = (Claim("It holds.", "a", "b", holds) for holds in (True, False))
    exhibit = Exhibit("PREF", "Figure 10", "Title", table, (true, true))
    assert exhibit.holds
    assert exhibit.slug == "pref-figure-10"
    assert not Exhibit("PREF", "Figure 10", "Title", table, (true, false)).holds


def test_numbers_as_text():
    assert display(float("inf")) == "inf"
    assert display(0) == "0"
    assert span([1.04, 1.01]) == "1.0"
    assert span([2.0, 1.0], 2) == "1.00 to 2.00"
