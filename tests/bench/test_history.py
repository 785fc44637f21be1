"""The history of ratios tells a fall on a quiet machine from noise on a busy one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Module = Callable[[str], Any]


@pytest.fixture
def history(module: Module) -> Any:
    return module("history")


def run(ratio: float, others: float = 0.1, commit: str = "a") -> dict[str, Any]:
    rows = [{"name": "numpy", "ratio": 1.0}, {"name": "ours", "ratio": ratio, "single_us": 3}]
    return {"machine": {"commit": commit, "others": others}, "sizes": {"100": rows}}


def test_ratios_are_named_by_where_they_stand(history: Any) -> None:
    assert history.ratios(run(3.0)) == {"100 ours ratio": 3.0}
    by_peer = {"cases": [{"case": "wide", "batch_ratio": {"numpy": 2, "ncls": 5}}]}
    assert history.ratios(by_peer) == {"wide batch_ratio numpy": 2, "wide batch_ratio ncls": 5}
    cases = [{"label": label, "size": 10, "ratio": number} for number, label in enumerate("ab")]
    assert history.ratios({"sizes": cases}) == {"a 10 ratio": 0, "b 10 ratio": 1}


def test_a_ratio_that_falls_by_more_than_a_tenth_is_named(history: Any, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history.note(path, "box", run(10.0)) == []
    assert history.note(path, "box", run(9.1)) == []
    assert history.note(path, "other", run(1.0)) == []
    (sentence,) = history.note(path, "box", run(8.0, commit="b"))
    assert sentence == "box: 100 ours ratio was 9.55 until a, and is 8"
    assert len(path.read_text().splitlines()) == 4


def test_a_ratio_that_stays_low_is_named_until_most_runs_have_it(
    history: Any, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    for _ in range(6):
        assert history.note(path, "box", run(10.0)) == []
    falls = [len(history.note(path, "box", run(5.0))) for _ in range(5)]
    assert falls == [1, 1, 1, 0, 0]


def test_a_cost_must_not_rise(history: Any, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history.note(path, "quota", run(1.1)) == []
    assert history.note(path, "quota", run(0.7)) == []
    assert len(history.note(path, "quota", run(1.1))) == 1


def test_runs_on_a_busy_machine_are_kept_and_not_compared(history: Any, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history.note(path, "box", run(10.0))
    assert history.note(path, "box", run(2.0, others=1.4)) == []
    (quiet,) = history.recent(path, "box")
    assert quiet["ratios"] == {"100 ours ratio": 10.0}
    assert [json.loads(line)["busy"] for line in path.read_text().splitlines()] == [False, True]


def test_a_run_that_others_disturbed_is_marked(history: Any) -> None:
    assert not history.is_busy({"others": 0.1, "others_during": 0.2})
    assert history.is_busy({"others": 0.1, "others_during": 0.9})
    assert history.is_busy({"load": 3.0})


def test_a_fall_fails_the_run(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = module("pages")
    monkeypatch.setattr(pages, "BEGAN", None)  # other tests may run meanwhile
    wanted = type("Wanted", (), {"json": False, "quick": False})()
    pages.publish("box", run(10.0), lambda _: "# Box", wanted)
    with pytest.raises(SystemExit, match="100 ours ratio was 10 until a, and is 5"):
        pages.publish("box", run(5.0), lambda _: "# Box", wanted)
    assert (tmp_path / "box.md").read_text() == "# Box\n"


def test_a_page_says_that_the_machine_was_busy(module: Module) -> None:
    pages = module("pages")
    assert "busy machine" in pages.opening("Box", run(1.0, others=1.2))[2]
    assert "busy machine" not in pages.opening("Box", run(1.0))[2]
