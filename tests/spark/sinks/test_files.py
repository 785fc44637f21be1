"""The Parquet sink: paths of batches, and the order of its steps, without a session."""

from pathlib import Path
from typing import Any

import pytest

from tidings.spark.sinks import files
from tidings.spark.sinks.files import FOLDERS, batch_path, parquet_sink


class Batch:
    """A batch that records the calls of a sink."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def persist(self) -> None:
        self.steps.append("persist")

    def unpersist(self) -> None:
        self.steps.append("unpersist")


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("s3a://bucket/films/", "s3a://bucket/films/late/batch=00000007"),
        ("s3a://bucket/films", "s3a://bucket/films/late/batch=00000007"),
        ("/data/out", "/data/out/late/batch=00000007"),
        ("out", "out/late/batch=00000007"),
    ],
)
def test_a_batch_has_its_own_folder_and_the_scheme_stays(directory: str, expected: str) -> None:
    assert batch_path(directory, "late", 7) == expected


def test_folders_of_batches_are_in_order_of_number() -> None:
    paths = [batch_path("out", "late", number) for number in (2, 10, 99_999_999)]
    assert paths == sorted(paths)


def test_every_kind_of_outcome_has_a_folder_of_its_own() -> None:
    assert {kind: folder for kind, (folder, _) in FOLDERS.items()} == {
        "delivery": "deliveries",
        "account": "accounts",
        "late": "late",
        "dead": "dead_letters",
    }


@pytest.mark.parametrize("directory", ["s3a://bucket/films", Path("out")])
def test_a_batch_is_reported_after_it_is_written(
    directory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Any] = []
    batch: Any = Batch(steps)
    monkeypatch.setattr(files, "_write", lambda _, place, number: steps.append((place, number)))
    parquet_sink(directory, lambda number, rows: steps.append(("written", number, rows)))(batch, 3)
    assert steps == ["persist", (str(directory), 3), ("written", 3, batch), "unpersist"]


def test_a_batch_that_fails_is_released_and_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    batch: Any = Batch(steps)

    def fail(*_: Any) -> None:
        raise ValueError("a broken row")

    monkeypatch.setattr(files, "_write", fail)
    with pytest.raises(ValueError, match="a broken row"):
        parquet_sink("out", lambda *_: steps.append("written"))(batch, 3)
    assert steps == ["persist", "unpersist"]
