from pathlib import Path

import pyarrow as pa
import pytest

from tidings import Subscription, TidingsError
from tidings.app.config import load_config
from tidings.app.demo.subscribers import demo_subscribers
from tidings.app.demo.workspace import CONFIG, MARKER, prepare
from tidings.formats.event_source import Source
from tidings.formats.files import read_subscribers, read_subscriptions


def test_the_files_are_those_of_a_run(films: pa.Table, tmp_path: Path) -> None:
    subscribers, folder = demo_subscribers(), tmp_path / "demo"
    prepare(folder, films.slice(0, 100), subscribers)
    listed = list(read_subscribers(folder / "subscribers.jsonl"))
    subscriptions = list(read_subscriptions(folder / "subscriptions.jsonl"))
    assert listed == [subscriber.subscriber for subscriber in subscribers]
    assert [
        subscription.id for subscription in subscriptions if isinstance(subscription, Subscription)
    ] == [subscription.id for owner in subscribers for subscription in owner.subscriptions]
    config = load_config(folder / CONFIG)
    assert isinstance(config.source, Source)
    assert [path.name for path in config.source.files()][:2] == [
        "films-00.parquet",
        "films-01.parquet",
    ]


def test_batches_are_of_two_files(films: pa.Table, tmp_path: Path) -> None:
    sizes = prepare(tmp_path / "demo", films.slice(0, 100), demo_subscribers())
    files = list((tmp_path / "demo" / "publications").iterdir())
    assert (len(sizes), sum(sizes), len(files)) == (16, 100, 32)


def test_a_second_demo_replaces_the_first(films: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    prepare(folder, films.slice(0, 10), demo_subscribers())
    (folder / "deliveries").mkdir()
    prepare(folder, films.slice(0, 10), demo_subscribers())
    assert not (folder / "deliveries").exists()
    assert (folder / MARKER).exists()


def test_an_empty_directory_is_used(films: pa.Table, tmp_path: Path) -> None:
    assert prepare(tmp_path, films.slice(0, 10), demo_subscribers())


@pytest.mark.parametrize("other", ["a directory", "a file"])
def test_a_folder_of_other_content_is_not_replaced(
    films: pa.Table, tmp_path: Path, other: str
) -> None:
    existing = (
        tmp_path / "existing" / "thesis.txt" if other == "a directory" else tmp_path / "existing"
    )
    existing.parent.mkdir(exist_ok=True)
    existing.write_text("years of work")
    with pytest.raises(TidingsError, match="was not written by the demo"):
        prepare(tmp_path / "existing", films.slice(0, 10), demo_subscribers())
    assert existing.read_text() == "years of work"


def test_a_deleted_working_directory_is_refused(
    films: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    monkeypatch.chdir(deleted)
    deleted.rmdir()
    with pytest.raises(TidingsError, match="tidings-demo cannot be created"):
        prepare(Path("tidings-demo"), films.slice(0, 10), demo_subscribers())
