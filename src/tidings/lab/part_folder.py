"""The folder of a comparison: finished parts are kept, so that a run can be interrupted."""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from pyarrow import parquet

from tidings import __version__
from tidings.errors import TidingsError
from tidings.lab.recording import Recording
from tidings.lab.replay import PartTables
from tidings.lab.variants import Variant

_MARK: Final = "comparison.sha256"


class PartFolder:
    """Finished parts in a folder, each a folder of Parquet files that appears at once.

    The folder belongs to one comparison: the same recording, policies and number of parts.
    """

    def __init__(self, path: Path, fingerprint: str, *, fresh: bool = False) -> None:
        self.path, self._parts = path, path / "parts"
        mark = path / _MARK
        if fresh:
            shutil.rmtree(self._parts, ignore_errors=True)
        elif mark.is_file() and mark.read_text() != fingerprint and self._parts.is_dir():
            raise TidingsError(
                f"{path} holds a comparison of other data or policies; "
                "choose another folder, or start over with --fresh"
            )
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            mark.write_text(fingerprint)
        except OSError as error:
            raise TidingsError(f"{path} cannot be written: {error.strerror or error}") from None

    def __contains__(self, part: int) -> bool:
        return self._folder(part).is_dir()

    def write(self, part: int, tables: PartTables) -> None:
        """Write the tables of a part."""
        unfinished = self._parts / f".{part:03d}.{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, table in tables._asdict().items():
            parquet.write_table(table, unfinished / f"{name}.parquet")
        unfinished.rename(self._folder(part))

    def read(self, part: int) -> PartTables:
        """Return the tables of a finished part."""
        paths = (self._folder(part) / f"{name}.parquet" for name in PartTables._fields)
        return PartTables(*map(parquet.read_table, paths))

    def _folder(self, part: int) -> Path:
        return self._parts / f"{part:03d}"


def fingerprint(
    recording: Recording, variants: Sequence[Variant], until_us: int, parts: int
) -> str:
    """Return a hash of everything that the parts of a comparison depend on."""
    digest = sha256(repr((__version__, variants, until_us, parts)).encode())
    for event in recording.events:
        values = sorted(event.attributes.items())
        whole = (event.id, event.published_us, event.sequence, values, event.content_json)
        digest.update(repr(whole).encode())
    for record in (*recording.subscriptions, *recording.subscribers):
        digest.update(repr(record).encode())
    return digest.hexdigest()
