"""The worked example of buckets and votes, and a variant of it in which the claims hold."""

from tidings.lab.papers.tks_table_5_10 import ExampleParameters, table_5_9, table_5_10, votes_of

THESIS = ExampleParameters()


def test_votes_go_to_the_most_relevant_of_each_bucket() -> None:
    assert votes_of(THESIS.tables, "ABCDE") == (4, 4, 2, 0, 1)
    assert votes_of(THESIS.tables, "EDCBA") == (1, 0, 2, 4, 4)


def test_no_order_of_relevance_yields_the_votes_of_the_thesis() -> None:
    complete, follow = table_5_10(THESIS).claims
    assert complete.holds
    assert not follow.holds
    assert follow.paper == "A 4, B 3, C 3, E 1"
    assert follow.ours.startswith("0 of 120 ")


def test_votes_that_some_orders_yield_are_found() -> None:
    exhibit = table_5_10(ExampleParameters(votes=(4, 4, 2, 0, 1)))
    assert all(claim.holds for claim in exhibit.claims)
    assert exhibit.table.rows[0][:6] == (4, 4, 2, 0, 1, 0)
    assert sum(int(row[6] or 0) for row in exhibit.table.rows) == 120
    assert not table_5_10(ExampleParameters(votes=(4, 4, 2, 0, 2))).claims[0].holds


def test_a_bucket_that_lacks_a_publication_is_found() -> None:
    assert table_5_9(THESIS.tables).holds
    assert not table_5_9([*THESIS.tables, ("AB", "CD")]).holds
    assert not table_5_9([*THESIS.tables, ("ABC", "CDE")]).holds
