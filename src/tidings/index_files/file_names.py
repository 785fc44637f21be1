"""Names of files that are made of ids: whatever an id holds, its file is where it belongs."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_UNREADABLE: Final = re.compile(r"[^a-z0-9]+")
_READABLE: Final = 40


def file_name(name: str) -> str:
    """Return a name for the file or folder of an id; no two ids share one.

    Ids of lower-case letters, digits, `.`, `_` and `-` are kept, as those that Spark gives its
    queries. All others are named by a hash, with a readable beginning: so `..`, slashes, NUL, long
    names, and names that differ only in case, stay apart and below their folder.

    >>> file_name("6f1c-22"), file_name("..")[:6], file_name("A query")[:10]
    ('6f1c-22', '=-5ec1', '=a-query-0')
    """
    if _PLAIN.fullmatch(name):
        return name
    readable = _UNREADABLE.sub("-", name.lower()).strip("-")[:_READABLE]
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"={readable}-{digest}"


def older_name(folder: Path, name: str) -> Path | None:
    """Return where an earlier release kept the files of an id, if they are still there.

    It is looked for among what the folder has, so that no id leads out of it.
    """
    former = quote(name, safe="", errors="replace")
    if former == file_name(name) or not folder.is_dir():
        return None
    return next((each for each in folder.iterdir() if each.name == former), None)


def is_file_name(name: object) -> bool:
    """Tell whether something names a file in a folder, and nothing outside of it."""
    if not isinstance(name, str) or not name or name in (".", ".."):
        return False
    return len(name) < 256 and name.isprintable() and not {"/", "\\"} & {*name}
