"""Fingerprints of the source that a kernel is made of.

A kernel is compiled together with the kernels, constants and named tuples that its module uses. Its
fingerprint has the source of all modules with kernels that it imports, directly or not, and the
constants and tuples in them, wherever those come from. So an edit of any of these makes compiled
code out of date, and an edit of other modules does not.
"""

import re
import sys
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from\s+(?P<source>[\w.]+)\s+import\s+(?P<names>\([^)]*\)|[^\n#]*)"
    rb"|import\s+(?P<modules>[^\n#]*))",
    re.MULTILINE,
)
_OWN: Final = __name__.partition(".")[0]
_COMPILERS: Final = frozenset({"numba", "numba.extending", f"{_OWN}.compiled.jit"})
"""A module that imports one of these has kernels, or helps to compile them."""
_CONSTANTS: Final = (bool, int, float, complex, str, bytes, tuple, np.generic)


class SourceFile(NamedTuple):
    """What matters of the source of a module: its digest, and the names that it may import."""

    digest: bytes
    imports: tuple[str, ...]


@cache
def kernel_sources(module: str) -> dict[str, bytes]:
    """Return the digests of a module and of the modules with kernels that it imports, by name.

    It is called while the module is imported: later, the files may have changed.
    """
    pending, found = [module], dict[str, bytes]()
    # The kernels of another package may call those of Tidings; numba is in the name of the folder.
    roots = {module.partition(".")[0], _OWN}
    while pending:
        name = pending.pop()
        if name in found or name.partition(".")[0] not in roots:
            continue
        source = _source_file(name)
        if name == module or not _COMPILERS.isdisjoint(source.imports):
            found[name] = source.digest
            pending += source.imports
    return found


def source_stamp(module: str) -> bytes:
    """Return the fingerprint of a module, once it has been imported."""
    stamp = sha256()
    for name, digest in sorted(kernel_sources(module).items()):
        import_module(name)  # one that only a function imports, perhaps not yet
        stamp.update(f"{name} {digest.hex()} {_constants(sys.modules[name])}".encode())
    return stamp.digest()


def _constants(module: ModuleType) -> list[str]:
    """Return what kernels take from a module, and from the modules of Tidings that it names."""
    values = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    texts = {name: _constant(value) for name, value in values.items()}
    for name, value in values.items():
        if isinstance(value, ModuleType) and _is_near(value, module):
            inside = {key: one for key, one in vars(value).items() if not key.startswith("__")}
            texts |= {f"{name}.{key}": _constant(one) for key, one in inside.items()}
    return [f"{name}={text}" for name, text in sorted(texts.items()) if text]


def _is_near(module: ModuleType, other: ModuleType) -> bool:
    """Return whether a module is of Tidings, or of the same package as another."""
    return module.__name__.partition(".")[0] in (_OWN, other.__name__.partition(".")[0])


def _constant(value: object) -> str:
    """Return the constant that a kernel reads from a global; empty for anything else."""
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value.__module__}.{value.__qualname__}{value._fields}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{sha256(value.tobytes()).hexdigest()}"
    text = repr(value) if isinstance(value, _CONSTANTS) else ""
    return "" if " at 0x" in text else text  # a tuple of other things, new in every process


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
