"""The folder that a run writes to: one file for each kind and batch, so that a batch can be redone.

deliveries/, late/ and dead_letters/ hold what their names say, refused.jsonl the subscriptions and
subscribers that the run does without, and tidings.json how the run was begun.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from tidings.audit import Problem
from tidings.config import Config
from tidings.errors import TidingsError
from tidings.files import write_deliveries, write_lines
from tidings.model import Delivery

CHECKPOINT: Final = "checkpoint"
_KINDS: Final = ("deliveries", "late", "dead_letters")
_OURS: Final = (*_KINDS, "accounts", CHECKPOINT)
_MARK: Final = "tidings.json"
_REFUSED: Final = "refused.jsonl"
Form = dict[str, Any]


class Folder:
    """The folder of a config's sink, ready to be written to by an engine.

    What a run on Spark left there goes on from its checkpoint, as long as nothing changes that it
    depends on. What a local run left is replaced, and with `fresh` so is everything.
    """

    def __init__(self, config: Config, *, fresh: bool = False) -> None:
        self._name = config.sink.path
        self.path = self._name.resolve()
        self.format = config.sink.format
        self._begin(_mark(config), fresh=fresh)

    def _begin(self, mark: Form, *, fresh: bool) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        before = self._mark_before()
        if before is not None and (fresh or before["engine"] == "local"):
            self._clear()
        elif before is not None and before != mark:
            raise TidingsError(_difference(self._name, before, mark))
        (self.path / _REFUSED).unlink(missing_ok=True)
        (self.path / _MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        for kind in _KINDS:
            (self.path / kind).mkdir(exist_ok=True)

    def _mark_before(self) -> Form | None:
        mark = self.path / _MARK
        if mark.exists():
            found: Form = json.loads(mark.read_text(encoding="utf-8"))
            return found
        if any(self.path.iterdir()):
            raise TidingsError(
                f"{self._name} is not empty, and no run made it; name another folder in [sink]"
            )
        return None

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
        if letters and self.format == "jsonl":
            write_lines(letters, self._file(kind, number))
        elif letters:
            rows = [{**each, "record": json.dumps(each["record"])} for each in letters]
            parquet.write_table(pa.Table.from_pylist(rows), self._file(kind, number))

    def _file(self, kind: str, number: int) -> Path:
        """Give the file of a batch, at the place where Spark has its Parquet."""
        if self.format == "jsonl":
            return self.path / kind / f"{number:08d}.jsonl"
        batch = self.path / kind / f"batch={number:08d}"
        batch.mkdir(exist_ok=True)
        return batch / "part-00000.parquet"


def _mark(config: Config) -> Form:
    """Tell what must stay the same as long as a folder is written to."""
    mark: Form = {"engine": config.engine, "format": config.sink.format}
    return mark | ({"buckets": config.buckets} if config.engine == "spark" else {})


def _difference(path: Path, before: Form, now: Form) -> str:
    name = next(name for name in now if before.get(name) != now[name])
    return (
        f"{path} was begun with {name} = {before.get(name)!r}, and now it is {now[name]!r}; "
        "name another folder in [sink], or start anew with --fresh"
    )


def _in_order(delivery: Delivery) -> tuple[int, str, int]:
    return (delivery.delivered_us, delivery.subscriber, delivery.sequence)
