"""The folder that a run writes to: one file for each kind and batch, so that a batch can be redone.

deliveries/, late/ and dead_letters/ hold what their names say, refused.jsonl the subscriptions and
subscribers that the run does without, and tidings.json how the run was begun. Of a run into a store
or into a sink of Spark, it holds what these do not.
"""

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet

from tidings.app.check import Problem
from tidings.app.config import FOLDERS, Config
from tidings.errors import TidingsError, shown
from tidings.formats.files import write_deliveries, write_lines
from tidings.formats.json_text import read_json
from tidings.model import validate
from tidings.model.records import Delivery

CHECKPOINT: Final = "checkpoint"
INDEX: Final = "index"
_KINDS: Final = ("deliveries", "late", "dead_letters")
_OURS: Final = (*_KINDS, "accounts", CHECKPOINT, INDEX)
_MARK: Final = "tidings.json"
_REFUSED: Final = "refused.jsonl"
_QUERY: Final = "query"
_WAY_OUT: Final = "start anew with --fresh, or name another folder in [sink]"
# The query becomes a part of paths, and a label: no separators, and nothing that is hidden.
_NAME: Final = re.compile(r"[^/\\\0\n]*[^/\\\0\n.][^/\\\0\n]*")
Form = dict[str, Any]


class Folder:
    """The folder of a config's sink, for an engine to write to; `begin` is the first to touch it.

    What a run on Spark left there goes on from its checkpoint, as long as nothing changes that it
    depends on. What a local run left is replaced, and with `fresh` so is everything.
    """

    def __init__(self, config: Config) -> None:
        self._name = config.sink.path
        self.path = self._name.resolve()
        self.format = config.sink.format
        self._checkpoint = config.checkpoint
        self._mark = _mark(config)
        self._stem = config.path.stem

    @property
    def query(self) -> str:
        """The name of the query that writes here: another one whenever it starts anew."""
        return str(self._read_mark()[_QUERY])

    @property
    def checkpoint(self) -> str:
        """Where Spark notes how far the query is; elsewhere each query has a place of its own."""
        if self._checkpoint is None:
            return str(self.path / CHECKPOINT)
        return f"{self._checkpoint.rstrip('/')}/{self.query}"

    def begin(self, *, fresh: bool = False) -> None:
        """Make ready for a run."""
        before = self.check(fresh=fresh)
        self.path.mkdir(parents=True, exist_ok=True)
        if before is None or fresh or before["engine"] == "local":
            self._clear()
            before = {_QUERY: f"{self._stem}-{uuid4().hex[:8]}"}
        (self.path / _REFUSED).unlink(missing_ok=True)
        mark = {_QUERY: before[_QUERY], **self._mark}
        (self.path / _MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        for kind in _KINDS if self.format in FOLDERS else ():
            (self.path / kind).mkdir(exist_ok=True)

    def check(self, *, fresh: bool = False) -> Form | None:
        """Give how an earlier run was begun, if there was one; refuse what does not go with it."""
        if not self._is_begun():
            return None
        if fresh:
            return None
        before = self._read_mark()
        ours = {name: before.get(name) for name in self._mark}
        if before["engine"] != "local" and ours != self._mark:
            raise TidingsError(_difference(self._name, before, self._mark))
        return before

    def _is_begun(self) -> bool:
        """Tell whether a run made the folder; refuse one that somebody else made."""
        try:
            if (self.path / _MARK).exists():
                return True
            filled = self.path.exists() and any(self.path.iterdir())
        except OSError as error:
            raise TidingsError(f"{self._name} cannot be read: {error.strerror or error}") from None
        if filled:
            raise TidingsError(
                f"{self._name} is not empty, and no run made it; name another folder in [sink]"
            )
        return False

    def _read_mark(self) -> Form:
        mark = self.path / _MARK
        try:
            found = read_json(validate.regular_file(mark).read_bytes())
        except OSError as error:
            raise TidingsError(f"{mark} cannot be read: {error.strerror or error}") from None
        except TidingsError as error:
            raise TidingsError(f"{mark} is damaged: {error}; {_WAY_OUT}") from None
        if not isinstance(found, dict) or not isinstance(found.get("engine"), str):
            raise TidingsError(f"{mark} is damaged: it names no engine; {_WAY_OUT}")
        query = found.get(_QUERY, self._stem)
        if not isinstance(query, str) or not _NAME.fullmatch(query):
            raise TidingsError(f"{mark} is damaged: it names no query; {_WAY_OUT}")
        return {**found, _QUERY: query}

    def _clear(self) -> None:
        for name in _OURS:
            shutil.rmtree(self.path / name, ignore_errors=True)

    def write_refused(self, problems: Iterable[Problem]) -> None:
        """Write what the run does without."""
        forms = [problem.to_dict() for problem in problems]
        if forms:
            write_lines(forms, self.path / _REFUSED)

    def write_deliveries(self, number: int, deliveries: Sequence[Delivery]) -> None:
        """Write the deliveries of a batch."""
        if deliveries:
            write_deliveries(sorted(deliveries, key=_in_order), self._file("deliveries", number))

    def write_letters(self, kind: str, number: int, letters: Sequence[Form]) -> None:
        """Write the late events or dead letters of a batch; in columns, a record is JSON text."""
        if letters and self.format != "parquet":
            write_lines(letters, self._file(kind, number))
        elif letters:
            rows = [_columns(each) for each in letters]
            parquet.write_table(pa.Table.from_pylist(rows), self._file(kind, number))

    def _file(self, kind: str, number: int) -> Path:
        """Give the file of a batch, at the place where Spark has its Parquet."""
        (self.path / kind).mkdir(exist_ok=True)
        if self.format != "parquet":
            return self.path / kind / f"{number:08d}.jsonl"
        batch = self.path / kind / f"batch={number:08d}"
        batch.mkdir(exist_ok=True)
        return batch / "part-00000.parquet"


def _columns(letter: Form) -> Form:
    """Return a letter as columns of text; half a surrogate pair is written as JSON escapes it."""
    texts = {name: json.dumps(each) if name == "record" else each for name, each in letter.items()}
    return {
        name: each.encode(errors="backslashreplace").decode() if isinstance(each, str) else each
        for name, each in texts.items()
    }


def _mark(config: Config) -> Form:
    """Tell what must stay the same as long as a folder is written to."""
    mark: Form = {"engine": config.engine, "format": config.sink.format}
    return mark | ({"buckets": config.buckets} if config.engine == "spark" else {})


def _difference(path: Path, before: Form, now: Form) -> str:
    name = next(name for name in now if before.get(name) != now[name])
    return (
        f"{path} was begun with {name} = {shown(before.get(name))}, and now it is {now[name]!r}; "
        "name another folder in [sink], or start anew with --fresh"
    )


def _in_order(delivery: Delivery) -> tuple[int, str, int]:
    return (delivery.delivered_us, delivery.subscriber, delivery.sequence)
