"""The demo's own folder: what goes in before the stream starts, and what is there at the end."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from tidings.app.demo.movies import FILES, write_publications
from tidings.app.demo.subscribers import Role
from tidings.errors import TidingsError
from tidings.formats.files import write_subscribers, write_subscriptions

MARKER: Final = ".tidings-demo"
PUBLICATIONS: Final = "publications"
# Two at a time, so that two cores can match.
FILES_PER_BATCH: Final = 2
CONFIG: Final = "run.toml"
_CONFIG_TEXT: Final = """\
# A run of your own over the first films of the demo: change the subscriptions, and run it again.
# The next demo replaces this folder, so copy what you want to keep.
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
    directory: Path, films: pa.Table, roles: Sequence[Role], files: int = FILES
) -> list[int]:
    """Write all that `tidings check` and `tidings run` can read; give how many films a batch has.

    A directory that an earlier demo made is replaced; anything else there is refused.
    """
    _clear(directory)
    sizes = write_publications(films, directory / PUBLICATIONS, files)
    write_subscribers((role.subscriber for role in roles), directory / "subscribers.jsonl")
    wanted = (each for role in roles for each in role.subscriptions)
    write_subscriptions(wanted, directory / "subscriptions.jsonl")
    (directory / CONFIG).write_text(_CONFIG_TEXT)
    starts = range(0, len(sizes), FILES_PER_BATCH)
    return [sum(sizes[start : start + FILES_PER_BATCH]) for start in starts]


def _clear(directory: Path) -> None:
    if directory.exists():
        ours = (directory / MARKER).exists()
        if not ours and (not directory.is_dir() or any(directory.iterdir())):
            raise TidingsError(
                f"{directory} was not made by the demo, so it is left alone; name another directory"
            )
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / MARKER).write_text("Made by the demo of Tidings, which replaces it.\n")
