"""Fingerprints of the source that a kernel is made of.

A kernel is compiled together with the kernels, constants and named tuples that its module imports.
Its fingerprint covers the module and everything that it imports from its own package and from
`tidings`, directly or not, so an edit of any of them makes compiled code out of date.
"""

import re
import sys
from functools import cache
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, Final, NamedTuple

_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from\s+(?P<source>[\w.]+)\s+import\s+(?P<names>\([^)]*\)|[^\n#]*)"
    rb"|import\s+(?P<modules>[^\n#]*))",
    re.MULTILINE,
)
_OWN: Final = __name__.partition(".")[0]


class SourceFile(NamedTuple):
    """What matters of the source of a module: its digest, and the names that it may import."""

    digest: bytes
    imports: tuple[str, ...]


@cache
def source_stamp(module: str) -> bytes:
    """Return the fingerprint of a module and of all that it imports from its own package."""
    pending, found = [module], dict[str, bytes]()
    roots = {module.partition(".")[0], _OWN}
    while pending:
        name = pending.pop()
        if name in found or name.partition(".")[0] not in roots:
            continue
        source = _source_file(name)
        found[name] = source.digest
        pending += source.imports
    return sha256(b"".join(name.encode() + found[name] for name in sorted(found))).digest()


@cache
def _source_file(name: str) -> SourceFile:
    """Return the digest and the imports of a module; both are empty if there is no such module."""
    source, package = _source(name)
    imports = list[str]()
    for match in _IMPORT.finditer(source):
        modules = (match["modules"] or match["source"]).decode()
        names = re.findall(r"\w+", re.sub(r"\bas\s+\w+|#.*", "", (match["names"] or b"").decode()))
        for one in re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", modules)):
            imported = resolve_name(one, package)
            # A name that is imported from a package may be a module of it.
            imports += [imported, *(f"{imported}.{name}" for name in names)]
    return SourceFile(sha256(source).digest() if source else b"", tuple(imports))


def _source(name: str) -> tuple[bytes, str]:
    """Return the source of a module, empty if it has none, and the name of its package."""
    root, _, inside = name.partition(".")
    folders = getattr(sys.modules.get(root), "__path__", None)
    if folders is None:
        file = getattr(sys.modules.get(root), "__file__", None)
        return (_read(file, root) if file and not inside else b""), ""
    for folder in folders:
        path = Path(folder, *inside.split("."))
        for file, package in (path / "__init__.py", name), (f"{path}.py", name.rpartition(".")[0]):
            if source := _read(file, root):
                return source, package
    return b"", name


def _read(file: str | Path, root: str) -> bytes:
    """Return the bytes of a file, which may be in the archive that the root was imported from."""
    try:
        return Path(file).read_bytes()
    except OSError:
        loader: Any = getattr(sys.modules[root], "__loader__", None)
    try:
        return bytes(loader.get_data(str(file)))
    except (AttributeError, OSError):
        return b""
