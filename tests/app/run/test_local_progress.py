"""The plan and the state of a local run, as files."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.damage import flipped, hostile_json, run_cases
from tests.fuzz import cases
from tests.kill.stream import write_stream
from tests.sources.pipelines import lines, run_here, write_config

from tidings.app.run.local_messages import BatchPlan, LocalProgress
from tidings.errors import TidingsError


def progress(path: Path) -> LocalProgress:
    folder: Any = SimpleNamespace(path=path)
    return LocalProgress(folder)


def test_plan_and_state_are_read_back(tmp_path: Path) -> None:
    kept, plan = progress(tmp_path), BatchPlan(3, {"a": 1}, {"a": 2})
    assert (kept.state(), kept.interrupted()) == (None, None)
    kept.begin(plan)
    kept.finish(plan, {"engine": {}, "order": {}})
    again = progress(tmp_path)
    assert again.interrupted() == plan
    assert again.state() == {"number": 3, "end": {"a": 2}, "engine": {}, "order": {}}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"number": true, "end": {}}', '{"number": 3}'),
        '{"number": 3, "end": 5, "engine": {}, "order": {}}',
        '{"number": 3, "end": {}, "engine": {}}',
        '{"number": -1, "end": {}, "engine": {}, "order": {}}',
    ],
)
def test_a_damaged_file_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    kept = progress(tmp_path)
    (tmp_path / "progress" / "state.json").write_text(text)
    with pytest.raises(TidingsError, match=r"state.json is damaged: .*start over with --fresh"):
        kept.state()


def test_a_plan_without_a_start_is_refused(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    (tmp_path / "progress" / "plan.json").write_text('{"number": 3, "end": {}}')
    with pytest.raises(TidingsError, match=r"plan.json is damaged: field 'start' is missing"):
        kept.interrupted()


def resumable(folder: Path) -> Path:
    """Run a config over the first half of an outbox; return the config."""
    write_stream(folder, files=4)
    options = {"url": "sqlite:///shop.db", "table": "outbox", "key": "id", "value": "form"}
    config, forms = write_config(folder, "outbox", options), lines(folder)
    half = len(forms) // 2
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, form TEXT)")
        shop.executemany("INSERT INTO outbox (form) VALUES (?)", [(form,) for form in forms[:half]])
    assert run_here(config).events == half
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.executemany("INSERT INTO outbox (form) VALUES (?)", [(form,) for form in forms[half:]])
    return config


@pytest.mark.parametrize(
    "end", [{}, {"key": None}, {"key": "x"}, {"key": [1]}, {"key": {}}, {"films": {"0": 1}}]
)
def test_a_position_of_another_source_is_refused(tmp_path: Path, end: Any) -> None:
    config, state = resumable(tmp_path), tmp_path / "out" / "progress" / "state.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"end": end}))
    with pytest.raises(TidingsError, match=r"progress does not fit the source.*--fresh"):
        run_here(config)


@pytest.mark.fuzz
def test_damaged_progress_is_refused_or_continued(tmp_path: Path) -> None:
    resumable(tmp_path)

    def case(rng: Random) -> None:
        folder = tmp_path / f"copy-{rng.random()}"
        shutil.copytree(tmp_path, folder, ignore=shutil.ignore_patterns("copy-*"))
        file = folder / "out" / "progress" / rng.choice(["state.json", "plan.json"])
        if rng.random() < 0.3:
            file.write_bytes(flipped(rng, file.read_bytes()))
        else:
            form = json.loads(file.read_text())
            if file.stem == "plan":
                form["number"] += 1  # that of the next batch
            try:
                file.write_text(json.dumps(hostile_json(rng, form)))
            except RecursionError:
                file.write_text("[" * 100_000)
        try:
            run_here(folder / "run.toml")
        finally:
            shutil.rmtree(folder)

    run_cases("progress", case, cases(40))
