"""The tables of a comparison, each recomputed from its deliveries."""

from statistics import fmean

from tests.lab.recordings import POLICIES, small_comparison

from tidings.lab import compare


def test_the_summary_is_that_of_the_deliveries() -> None:
    comparison = small_comparison()
    for row in comparison.summary.to_pylist():
        sent = comparison.delivered_by(row["policy"]).to_pylist()
        ages = [
            (delivery["delivered_at"] - delivery["published_at"]).total_seconds()
            for delivery in sent
        ]
        assert row["delivered"] == len(sent)
        assert round(row["mean_rank"], 9) == round(fmean(delivery["rank"] for delivery in sent), 9)
        assert round(row["mean_score"], 9) == round(
            fmean(delivery["score"] for delivery in sent), 9
        )
        assert round(row["mean_age_s"], 6) == round(fmean(ages), 6)
        assert row["receivers"] == len({delivery["subscriber"] for delivery in sent})


def test_subscribers_add_up() -> None:
    comparison = small_comparison()
    for row in comparison.summary.to_pylist():
        own = [r for r in comparison.subscribers.to_pylist() if r["policy"] == row["policy"]]
        assert sum(each["delivered"] for each in own) == row["delivered"]
        assert sum(each["matches"] for each in own) == row["matches"]


def test_overlap_counts_pairs_of_subscriber_and_event() -> None:
    comparison = small_comparison()
    sent = {
        name: {(r["subscriber"], r["event"]) for r in comparison.delivered_by(name).to_pylist()}
        for name in POLICIES
    }
    for row in comparison.overlap.to_pylist():
        one, other = sent[row["first"]], sent[row["second"]]
        assert row["common"] == len(one & other)
        assert row["jaccard"] == len(one & other) / len(one | other)
        assert row["share_of_first"] == len(one & other) / len(one)


def test_it_is_a_table_in_notebooks_and_a_frame() -> None:
    comparison = small_comparison()
    assert comparison._repr_html_().startswith("<table>")
    frame = comparison.to_pandas()
    assert list(frame.index) == list(POLICIES)
    assert frame.loc["best", "delivered"] == comparison.delivered_by("best").num_rows


def test_without_a_delivery_there_is_no_figure() -> None:
    comparison = compare(
        [{"id": "e", "published_at": 0, "attributes": {"a": 1}}],
        [{"id": "s", "subscriber": "ann", "where": "a = 2"}],
        {"one": {"k": 1}, "two": {"k": 2}},
    )
    row = comparison.summary.to_pylist()[0]
    assert (row["matches"], row["delivered"], row["share"], row["mean_rank"]) == (0, 0, None, None)
    assert comparison.overlap.to_pylist()[0]["jaccard"] is None
    assert comparison.examples == []
