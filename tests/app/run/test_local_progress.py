"""The plan and the state of a local run, as files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidings.app.run.local_progress import BatchPlan, LocalProgress
from tidings.errors import TidingsError


def progress(path: Path) -> LocalProgress:
    folder: Any = SimpleNamespace(path=path)
    return LocalProgress(folder)


def test_plan_and_state_are_read_back(tmp_path: Path) -> None:
    kept, plan = progress(tmp_path), BatchPlan(3, {"a": 1}, {"a": 2})
    assert (kept.state(), kept.interrupted()) == (None, None)
    kept.begin(plan)
    kept.finish(plan, {"engine": {}})
    again = progress(tmp_path)
    assert again.interrupted() == plan
    assert again.state() == {"number": 3, "end": {"a": 2}, "engine": {}}


@pytest.mark.parametrize("text", ["", "[]", '{"number": true, "end": {}}', '{"number": 3}'])
def test_a_damaged_file_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    kept = progress(tmp_path)
    (tmp_path / "progress" / "state.json").write_text(text)
    with pytest.raises(TidingsError, match=r"state.json is damaged: .*start over with --fresh"):
        kept.state()
