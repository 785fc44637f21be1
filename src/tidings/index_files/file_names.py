"""File names for ids: safe, unique, and directly in their folder, whatever an id contains."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_NOT_READABLE: Final = re.compile(r"[^a-z0-9]+")
_READABLE_LENGTH: Final = 40


def file_name(name: str) -> str:
    """Return a name for the file or folder of an id; no two ids share one.

    Ids of lower-case letters, digits, `.`, `_` and `-` are kept, such as those that Spark gives its
    queries. All others are named by a hash after a readable prefix, so that `..`, slashes, NUL,
    long names, and names that differ only in case, stay apart and inside their folder.

    >>> file_name("6f1c-22"), file_name("..")[:6], file_name("A query")[:10]
    ('6f1c-22', '=-5ec1', '=a-query-0')
    """
    if _PLAIN.fullmatch(name):
        return name
    readable = _NOT_READABLE.sub("-", name.lower()).strip("-")[:_READABLE_LENGTH]
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"={readable}-{digest}"


def former_folder(folder: Path, name: str) -> Path | None:
    """Return where an earlier release kept the files of an id, if they are still there.

    Only entries of the folder are considered, so that no id can lead out of it.
    """
    former = quote(name, safe="", errors="replace")
    if former == file_name(name) or not folder.is_dir():
        return None
    return next((path for path in folder.iterdir() if path.name == former), None)
