"""The manifest of a version: which files make it up, part by part.

A manifest is a small JSON file. Its keys (`shelves`, `people`, `changes`, `mark`) are those of the
first release and stay, so that old and new processes can share a folder.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from tidings.errors import shown

_PART_KEYS: Final = frozenset(
    ("index", "people", "archive", "size", "counting", "source", "changes")
)
_NUMBERS_END: Final = 2**64


class Delta(NamedTuple):
    """A file of the subscribers that changed; each bundle in it replaces the one before.

    `counts_published` is true if one of their windows counts all published events; `source` is the
    version of the source that the delta leads to.
    """

    file: str
    bundles: int
    counts_published: bool = False
    source: int = 0


@dataclass(frozen=True)
class PartManifest:
    """One part of the subscribers: the files of its base, and the deltas after it.

    `size` is the number of bundles in the base, `counts_published` whether one of their windows
    counts all published events, and `source` the version of the source that the base shows, if
    there is a source.
    """

    index: str
    subscribers: str
    archive: str
    size: int = 0
    counts_published: bool = False
    source: int | None = None
    deltas: tuple[Delta, ...] = ()

    @property
    def files(self) -> list[str]:
        """All files of the part."""
        return [self.index, self.subscribers, self.archive, *(delta.file for delta in self.deltas)]


class RefusedRecord(NamedTuple):
    """A subscriber or subscription of the source that a version leaves out, and the reason."""

    kind: str
    id: str
    owner: str
    reason: str

    @property
    def fingerprint(self) -> int:
        """A number that differs for another record or another reason."""
        text = json.dumps(self)
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


class Manifest(NamedTuple):
    """A version: a source as of one of its own versions, part by part.

    `fingerprint` identifies the source and the defaults that were added to it; 0 if unknown.
    `refused` has the records of the source that are missing, or the first of them.
    """

    version: int
    source: int
    parts: tuple[PartManifest, ...]
    fingerprint: int = 0
    refused: tuple[RefusedRecord, ...] = ()

    @property
    def counts_published(self) -> bool:
        """Whether a window counts all published events, or did when the last base was built."""
        return any(
            part.counts_published or any(delta.counts_published for delta in part.deltas)
            for part in self.parts
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {
            "version": self.version,
            "source": self.source,
            "shelves": [_part_form(part) for part in self.parts],
            "mark": self.fingerprint,
        }
        return form | ({"refused": self.refused} if self.refused else {})


def _part_form(part: PartManifest) -> Mapping[str, Any]:
    return {
        "index": part.index,
        "people": part.subscribers,
        "archive": part.archive,
        "size": part.size,
        "counting": part.counts_published,
        "source": part.source,
        "changes": part.deltas,
    }


def read_manifest(version: int, form: Any) -> Manifest:
    """Return the manifest of a JSON form; anything wrong with it raises `ValueError`."""
    if not isinstance(form, dict) or form.get("version") != version:
        raise ValueError("it is not the manifest of this version")
    parts = form.get("shelves")
    if not isinstance(parts, list) or not parts:
        raise ValueError("'shelves' must be a list of at least one part")
    source, fingerprint = (_number(form.get(name, 0), name) for name in ("source", "mark"))
    refused = form.get("refused", [])
    if not isinstance(refused, list):
        raise ValueError("'refused' must be a list of records")
    return Manifest(
        version,
        source,
        tuple(map(_read_part, parts)),
        fingerprint,
        tuple(map(_read_refused, refused)),
    )


def _read_part(form: Any) -> PartManifest:
    if not isinstance(form, dict) or not form.keys() <= _PART_KEYS:
        raise ValueError(f"a part has only the fields {', '.join(sorted(_PART_KEYS))}")
    deltas, source = form.get("changes"), form.get("source")
    if not isinstance(deltas, list) or not all(isinstance(delta, list) for delta in deltas):
        raise ValueError("'changes' must be a list of lists")
    return PartManifest(
        index=_file(form.get("index")),
        subscribers=_file(form.get("people")),
        archive=_file(form.get("archive")),
        size=_number(form.get("size", 0), "size"),
        counts_published=_flag(form.get("counting", False)),
        source=None if source is None else _number(source, "source"),
        deltas=tuple(_read_delta(*delta) for delta in deltas),
    )


def _read_delta(
    file: Any = None, bundles: Any = None, counts: Any = False, source: Any = 0, *more: Any
) -> Delta:
    if more:
        raise ValueError("an entry of 'changes' is a file, members, counting and source")
    return Delta(_file(file), _number(bundles, "members"), _flag(counts), _number(source, "source"))


def _read_refused(form: Any) -> RefusedRecord:
    texts = isinstance(form, list) and all(isinstance(field, str) for field in form)
    if not texts or len(form) != len(RefusedRecord._fields):
        raise ValueError(
            f"a refused record is a kind, an id, an owner and a reason, not {shown(form)}"
        )
    return RefusedRecord(*form)


def is_file_name(name: object) -> bool:
    """Return whether a value names a file directly in a folder, never one outside it."""
    if not isinstance(name, str) or not name or name in (".", ".."):
        return False
    return len(name) < 256 and name.isprintable() and not {"/", "\\"} & {*name}


def _file(name: Any) -> str:
    if not is_file_name(name):
        raise ValueError(f"{shown(name)} is not the name of a file in this folder")
    return str(name)


def _number(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < _NUMBERS_END:
        raise ValueError(f"{name} must be an integer from 0 to 2**64 - 1, not {shown(value)}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"counting must be true or false, not {shown(value)}")
    return value
