"""The output folder of the demo: its input files, and a config for runs of your own."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from tidings.app.demo.movies import FILES, write_publications
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.errors import TidingsError
from tidings.formats.files import write_subscribers, write_subscriptions

MARKER: Final = ".tidings-demo"
PUBLICATIONS: Final = "publications"
# Two files per batch, so that two cores can match.
FILES_PER_BATCH: Final = 2
CONFIG: Final = "run.toml"
_CONFIG_TEXT: Final = """\
# A run over the first films of the demo: change the subscriptions and run it again.
# The next demo replaces this folder, so copy the files you want to keep.
engine = "local"

[source]
path = "publications/films-0*.parquet"

[subscriptions]
path = "subscriptions.jsonl"

[subscribers]
path = "subscribers.jsonl"

[sink]
path = "again"
format = "jsonl"
"""


def prepare(
    directory: Path, films: pa.Table, subscribers: Sequence[DemoSubscriber], files: int = FILES
) -> list[int]:
    """Write the input files of the demo; return the number of films in each batch.

    A directory of an earlier demo is replaced; any other directory that is not empty is refused.
    """
    _clear(directory)
    sizes = write_publications(films, directory / PUBLICATIONS, files)
    write_subscribers((owner.subscriber for owner in subscribers), directory / "subscribers.jsonl")
    subscriptions = (subscription for owner in subscribers for subscription in owner.subscriptions)
    write_subscriptions(subscriptions, directory / "subscriptions.jsonl")
    (directory / CONFIG).write_text(_CONFIG_TEXT)
    starts = range(0, len(sizes), FILES_PER_BATCH)
    return [sum(sizes[start : start + FILES_PER_BATCH]) for start in starts]


def _clear(directory: Path) -> None:
    if directory.exists():
        is_demo = (directory / MARKER).exists()
        if not is_demo and (not directory.is_dir() or any(directory.iterdir())):
            raise TidingsError(
                f"{directory} was not written by the demo and is not replaced; "
                "choose another directory with --out"
            )
        shutil.rmtree(directory)
    try:
        directory.mkdir(parents=True)
        (directory / MARKER).write_text("Written by `tidings demo`, which replaces this folder.\n")
    except OSError as error:  # such as a working directory that was deleted
        raise TidingsError(
            f"the directory {directory} cannot be created ({error.strerror}); "
            "choose another directory with --out"
        ) from None
