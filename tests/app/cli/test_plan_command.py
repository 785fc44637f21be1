"""The options of `tidings plan`."""

import pytest
from tests.app.cli.commands import tidings, wrong_usage

DEMAND = ("--subscriptions", "1k", "--subscribers", "1k", "--events", "5", "--matches", "2")


def test_missing_options_are_named() -> None:
    assert "--subscriptions" in wrong_usage("plan")
    assert "does not exist" in wrong_usage("plan", *DEMAND, "--policy", "nowhere.toml")


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--events", "lots", "a quantity is a number"),
        ("--matches", "0", "matches must be a number between 1e-09 and 1e+15, not 0"),
        ("--trigger", "soon", "soon"),
    ],
)
def test_wrong_quantities_are_refused(option: str, value: str, reason: str) -> None:
    result = tidings("plan", *DEMAND, option, value, columns=200)
    assert result.exit_code == 1
    assert reason in result.stderr
