"""`tidings bench` finds the benches of a source tree, or says that it needs one."""

from pathlib import Path

import pytest

from tidings import TidingsError
from tidings.app.cli.start_commands import SOURCE, bench_folder, run_bench


def tree(folder: Path, text: str = "") -> Path:
    for name in ("src/tidings/__init__.py", "bench/__main__.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    return folder


def test_the_benches_of_this_tree_are_found() -> None:
    assert bench_folder([SOURCE]) == Path(__file__).parents[3] / "bench"


def test_the_first_place_that_is_a_source_tree_counts(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "first"), tree(tmp_path / "second")
    assert bench_folder([tmp_path, first, second]) == first / "bench"


@pytest.mark.parametrize("missing", ["src/tidings/__init__.py", "bench/__main__.py"])
def test_another_folder_is_not_run(tmp_path: Path, missing: str) -> None:
    (tree(tmp_path) / missing).unlink()
    with pytest.raises(
        TidingsError, match=r"run this command in a clone of Tidings, after pip install"
    ):
        run_bench(None, [], places=[tmp_path])


def test_name_and_flags_are_handed_on_and_the_status_comes_back(tmp_path: Path) -> None:
    text = "import sys; sys.exit(7 if sys.argv[1:] == ['interval', '--quick'] else 8)"
    place = tree(tmp_path, text)
    assert run_bench("interval", ["--quick"], places=[place]) == 7
    assert run_bench(None, ["--quick"], places=[place]) == 8
