from pathlib import Path

import pyarrow as pa
import pytest

from tidings import Subscription, TidingsError
from tidings.app.config import load_config
from tidings.app.demo.subscribers import cast
from tidings.app.demo.workspace import CONFIG, MARKER, prepare
from tidings.formats.event_source import Source
from tidings.formats.files import read_subscribers, read_subscriptions


def test_what_is_written_is_a_run_of_its_own(films: pa.Table, tmp_path: Path) -> None:
    roles, folder = cast(), tmp_path / "demo"
    prepare(folder, films.slice(0, 100), roles)
    people = list(read_subscribers(folder / "subscribers.jsonl"))
    wanted = list(read_subscriptions(folder / "subscriptions.jsonl"))
    assert people == [role.subscriber for role in roles]
    assert [each.id for each in wanted if isinstance(each, Subscription)] == [
        each.id for role in roles for each in role.subscriptions
    ]
    config = load_config(folder / CONFIG)
    assert isinstance(config.source, Source)
    assert [path.name for path in config.source.files()][:2] == [
        "films-00.parquet",
        "films-01.parquet",
    ]


def test_batches_are_of_two_files(films: pa.Table, tmp_path: Path) -> None:
    sizes = prepare(tmp_path / "demo", films.slice(0, 100), cast())
    files = list((tmp_path / "demo" / "publications").iterdir())
    assert (len(sizes), sum(sizes), len(files)) == (16, 100, 32)


def test_a_second_demo_starts_afresh(films: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    prepare(folder, films.slice(0, 10), cast())
    (folder / "deliveries").mkdir()
    prepare(folder, films.slice(0, 10), cast())
    assert not (folder / "deliveries").exists()
    assert (folder / MARKER).exists()


def test_an_empty_directory_is_taken(films: pa.Table, tmp_path: Path) -> None:
    assert prepare(tmp_path, films.slice(0, 10), cast())


@pytest.mark.parametrize("other", ["a directory", "a file"])
def test_what_the_demo_did_not_make_is_left_alone(
    films: pa.Table, tmp_path: Path, other: str
) -> None:
    mine = tmp_path / "mine" / "thesis.txt" if other == "a directory" else tmp_path / "mine"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("years of work")
    with pytest.raises(TidingsError, match="was not made by the demo"):
        prepare(tmp_path / "mine", films.slice(0, 10), cast())
    assert mine.read_text() == "years of work"
