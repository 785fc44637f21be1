"""Verdicts in words and in JSON."""

import pytest

from tidings.rules.verdict import BetterExpected, Displaced, Outranked, QuotaSpent, TooNear, Verdict

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            TooNear("e17", HOUR_US, 0.1, 0.2),
            "its distance to e17, got at 1970-01-01T01:00:00Z, is 0.1, below 0.2",
        ),
        (
            BetterExpected(1, 2, 3),
            "1 that is held ranks higher and 2 better ones are expected, with 3 left of the quota",
        ),
        (
            BetterExpected(2, 0.0, 1),
            "2 that are held rank higher, with 1 left of the quota",
        ),
        (QuotaSpent(1, HOUR_US), "1 has passed in the period that ends at 1970-01-01T01:00:00Z"),
        (QuotaSpent(5, HOUR_US), "5 have passed in the period that ends at 1970-01-01T01:00:00Z"),
        (Displaced(2, "e9"), "better ones take all 2 left of the quota since e9 came"),
        (Displaced(2, None), "better ones take all 2 left of the quota"),
        (Displaced(0, "e9"), "e9 took the last of the quota"),
        (Outranked(["e1", "e2"]), "the quiet hours held better ones: e1, e2"),
        (
            Outranked([f"e{n}" for n in range(7)]),
            "the quiet hours held better ones: e0, e1, e2, e3, e4, ...",
        ),
    ],
)
def test_a_reason_is_a_sentence_with_its_figures(reason: object, text: str) -> None:
    assert str(reason) == text


def test_a_verdict_names_the_rule_the_time_and_the_reason() -> None:
    held = Verdict("e1", "quota", "held", 0, BetterExpected(0, 3.0, 2), until_us=HOUR_US)
    assert str(held) == (
        "held by quota at 1970-01-01T00:00:00Z until 1970-01-01T01:00:00Z: "
        "3 better ones are expected, with 2 left of the quota"
    )
    assert held.to_dict() == {
        "rule": "quota",
        "fate": "held",
        "at": "1970-01-01T00:00:00Z",
        "until": "1970-01-01T01:00:00Z",
        "other": None,
        "reason": "3 better ones are expected, with 2 left of the quota",
    }


def test_a_verdict_without_an_end_has_none_in_words_either() -> None:
    dropped = Verdict("e1", "quota", "dropped", 0, QuotaSpent(2, HOUR_US), other="e2")
    assert "until" not in str(dropped)
    assert dropped.to_dict()["until"] is None
    assert dropped.to_dict()["other"] == "e2"
