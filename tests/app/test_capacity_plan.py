"""`tidings plan` with a calibration in a file: its table, its JSON form, and what it refuses."""

import json
import os
from pathlib import Path

import pytest
from tests.app.cli.commands import printed, tidings
from tests.lab.capacity.test_model import COSTS

from tidings.app.capacity_plan import read_quantity
from tidings.errors import InvalidForm

DEMAND = ("--subscriptions", "100M", "--subscribers", "10M", "--events", "5k/s", "--matches", 200)


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    file = tmp_path / "costs.json"
    file.write_text(json.dumps(COSTS.to_dict()))
    return file


def test_a_plan_is_printed_with_its_reasons(calibration: Path) -> None:
    result = tidings("plan", *DEMAND, "--calibration", calibration, columns=200)
    assert result.exit_code == 0, result.stderr
    for word in ("cores", "memory", "disk", "parts", "buckets", "first index", "events/s"):
        assert word in result.stdout


def test_a_plan_follows_the_policy_and_the_trigger(calibration: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('k = 5\nwindow = {name = "sliding", length = 1000}\n')
    line = ("plan", *DEMAND, "--calibration", calibration, "--json")
    [plain] = printed(tidings(*line))
    [long] = printed(tidings(*line, "--policy", policy))
    [slow] = printed(tidings(*line, "--policy", policy, "--trigger", "60s"))
    assert plain["plan"]["state_bytes"] < long["plan"]["state_bytes"]
    assert slow["plan"]["cores"] < long["plan"]["cores"]
    assert plain["costs"] == COSTS.to_dict()


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "cannot be read"), ("[]", "a calibration has the fields"), ("\x00", "cannot be read")],
)
def test_a_damaged_calibration_is_named(calibration: Path, text: str, reason: str) -> None:
    calibration.write_text(text)
    result = tidings("plan", *DEMAND, "--calibration", calibration, columns=400)
    assert result.exit_code == 1
    assert "costs.json" in result.stderr
    assert reason in result.stderr


@pytest.mark.parametrize(
    "cost", [("overlap", 0), ("trigger_s", 0), ("match_us", 1e300), ("event_us", 10**400)]
)
def test_costs_without_a_finite_plan_are_refused(
    calibration: Path, cost: tuple[str, float]
) -> None:
    calibration.write_text(json.dumps(dict([*COSTS.to_dict().items(), cost])))
    result = tidings("plan", *DEMAND, "--calibration", calibration, columns=400)
    assert result.exit_code == 1
    assert f"calibration: {cost[0]} must be a number between" in result.stderr


def test_costs_of_nothing_have_a_plan(calibration: Path) -> None:
    calibration.write_text(
        json.dumps(dict.fromkeys(COSTS.to_dict(), 0) | {"overlap": 1, "trigger_s": 1})
    )
    result = tidings("plan", *DEMAND, "--calibration", calibration, columns=400)
    assert result.exit_code == 0


def test_a_pipe_is_no_calibration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "costs.json")
    result = tidings("plan", *DEMAND, "--calibration", tmp_path / "costs.json", columns=400)
    assert result.exit_code == 1
    assert "this is a pipe" in result.stderr


@pytest.mark.parametrize("text", ["many", "5m", "-1", "1e9", "", "5 /h", "9" * 400])
def test_other_quantities_are_refused(text: str) -> None:
    with pytest.raises(InvalidForm, match="a quantity is a number"):
        read_quantity(text)
