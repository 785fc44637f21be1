"""Comparisons: in parts, interrupted, on Spark; always with the same tables."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.lab.recordings import POLICIES, small_comparison

import tidings.lab.replay as replay_module
import tidings.lab.run_comparison as module
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.lab.output import write_comparison
from tidings.lab.run_comparison import compare
from tidings.policy import Policy, Subscriber
from tidings.testing import workload


def files(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def rows(comparison: Any) -> list[Any]:
    tables = (comparison.summary, comparison.subscribers, comparison.overlap, comparison.rules)
    return [table.to_pylist() for table in tables]


def test_the_figures_are_those_of_an_engine_with_that_policy_alone() -> None:
    made = workload(seed=4, events=80, subscribers=6)
    for row in small_comparison().summary.to_pylist():
        engine = Engine()
        for subscriber in made.subscribers:
            engine.subscribe(Subscriber(subscriber.id, Policy(**POLICIES[row["policy"]])))
        engine.add_many(made.subscriptions)
        engine.publish_many(made.events)
        report = engine.quality().to_dict()
        names = (
            "matches",
            "delivered",
            "share",
            "mean_rank",
            "diversity",
            "mean_age_s",
            "coverage",
        )
        assert {name: row[name] for name in names} == pytest.approx(
            {name: report[name] for name in names}
        )
        assert row["mean_age_s"] == pytest.approx(report["mean_age_s"])
        assert row["mean_match_score"] == pytest.approx(report["mean_score"])
        assert (row["held"], row["dropped"]) == (report["held"], report["dropped"])


@pytest.mark.parametrize("parts", [1, 2, 99])
def test_the_number_of_parts_changes_nothing(parts: int) -> None:
    whole, split = small_comparison(parts=3), small_comparison(parts=parts)
    assert rows(split) == rows(whole)
    by_key = [("policy", "ascending"), ("subscriber", "ascending"), ("sequence", "ascending")]
    assert split.deliveries.sort_by(by_key) == whole.deliveries.sort_by(by_key)


def test_an_interrupted_comparison_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_comparison(small_comparison(parts=3, out=tmp_path / "whole"), tmp_path / "whole")
    calls, run = list[int](), module.PartTask.run

    def stops(task: Any, events: Any) -> Any:
        calls.append(len(task.subscribers))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(task, events)

    monkeypatch.setattr(module.PartTask, "run", stops)
    with pytest.raises(KeyboardInterrupt):
        small_comparison(parts=3, out=tmp_path / "stopped")
    progress = list[tuple[int, int]]()
    resumed = small_comparison(
        parts=3, out=tmp_path / "stopped", progress=lambda *step: progress.append(step)
    )
    assert progress == [(1, 3), (2, 3), (3, 3)]
    assert len(calls) == 4
    write_comparison(resumed, tmp_path / "stopped")
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_parts_that_are_read_have_the_layout_of_computed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema and chunks show in the bytes of Parquet files."""
    monkeypatch.setattr(replay_module, "CHUNK", 16)
    computed, read = (small_comparison(parts=3, out=tmp_path) for _ in range(2))
    assert read.deliveries == computed.deliveries
    assert str(read.deliveries.schema) == str(computed.deliveries.schema)
    for comparison in (computed, read):
        assert comparison.deliveries["event"].num_chunks == len(POLICIES)


def test_a_folder_belongs_to_one_comparison(tmp_path: Path) -> None:
    small_comparison(out=tmp_path)
    with pytest.raises(TidingsError, match="other data or policies"):
        small_comparison(out=tmp_path, until=10**6)
    assert small_comparison(out=tmp_path, until=10**6, fresh=True).until_us == 10**12


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no Parquet", None])
def test_damaged_parts_are_computed_again(
    damage: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    computed = small_comparison(parts=2, out=tmp_path)
    path = tmp_path / "parts" / "001" / "sums.parquet"
    if damage is None:
        shutil.copy(path.with_name("ruled.parquet"), path)
    else:
        path.write_bytes(damage + path.read_bytes()[:100] if damage else damage)
    (tmp_path / "parts" / "000" / "common.parquet").unlink()
    again = small_comparison(parts=2, out=tmp_path)
    assert again.deliveries == computed.deliveries
    assert again.summary == computed.summary
    names = [record.getMessage().split()[0] for record in caplog.records]
    assert [Path(name).name for name in names] == ["common.parquet", "sums.parquet"]


def test_no_picture_of_an_earlier_comparison_stays(tmp_path: Path) -> None:
    write_comparison(small_comparison(out=tmp_path), tmp_path)
    made = workload(seed=4, events=80, subscribers=6)
    one = compare(made.events, made.subscriptions, {"all": {"k": 9}}, out=tmp_path, fresh=True)
    paths = write_comparison(one, tmp_path)
    assert {*(tmp_path / "plots").iterdir()} == {path for path in paths if path.suffix == ".svg"}


def test_time_goes_on_until_an_instant() -> None:
    daily = {"daily": {"k": 2, "window": {"name": "periodic", "length": "1d"}}}
    made = workload(seed=4, events=20, subscribers=2)
    open_, closed = (
        compare(made.events, made.subscriptions, daily, until=until) for until in (None, 86_400)
    )
    assert open_.deliveries.num_rows == 0
    assert closed.deliveries.num_rows == 4
    reason = "until, 1970-01-01T00:00:01Z, is before the last publication, at 1970-01-01T00:0"
    with pytest.raises(TidingsError, match=reason):
        compare(made.events, made.subscriptions, daily, until=1)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(TidingsError, match="engine"):
        small_comparison(engine="ray")


def test_spark_replays_the_same(spark: Any, tmp_path: Path) -> None:
    here, there = (
        small_comparison(engine=engine, out=tmp_path / engine) for engine in ("local", "spark")
    )
    for comparison, name in ((here, "local"), (there, "spark")):
        write_comparison(comparison, tmp_path / name)
    assert files(tmp_path / "spark") == files(tmp_path / "local")
    assert json.loads(json.dumps(there.to_dict())) == json.loads(json.dumps(here.to_dict()))
