"""Compiled kernels in files, for all processes of a user.

    <folder>/<Python, numba, CPU>/<function>-<signature>-<source>.kernel

The folder is `tidings` in NUMBA_CACHE_DIR if that is set, otherwise the user's cache folder, or a
private one for temporary files where that cannot be written. A file is complete or absent: it
appears under its name when it has been written, and begins with a checksum. Of several processes
that need a kernel at once, one compiles it and the others wait for the file.

A file is code that runs in this process, so files and folders that another user could have written
are not used: they must belong to this user or to root, and only their owner may write to them.
"""

import errno
import logging
import os
import pickle
import platform
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, cached_property
from hashlib import sha256
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, NamedTuple
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

# Fingerprints of the source that a kernel is made of.
#
# A kernel is compiled together with the kernels, constants and named tuples that its module uses.
# Its fingerprint has the source of all modules with kernels that it imports, directly or not, and
# the constants and tuples in them, wherever those come from. So an edit of any of these makes
# compiled code out of date, and an edit of other modules does not.

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
    """The digest of a module's source, and the names that it may import."""

    digest: bytes
    imports: tuple[str, ...]


@cache
def kernel_sources(module: str) -> dict[str, bytes]:
    """Return the digests of a module and of the modules with kernels that it imports, by name.

    It is called while the module is imported: later, the files may have changed.
    """
    pending, digests = [module], dict[str, bytes]()
    # The kernels of another package may call those of Tidings; numba is in the name of the folder.
    roots = {module.partition(".")[0], _OWN}
    while pending:
        name = pending.pop()
        if name in digests or name.partition(".")[0] not in roots:
            continue
        source = _source_file(name)
        if name == module or not _COMPILERS.isdisjoint(source.imports):
            digests[name] = source.digest
            pending += source.imports
    return digests


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
            inside = {
                key: member for key, member in vars(value).items() if not key.startswith("__")
            }
            texts |= {f"{name}.{key}": _constant(member) for key, member in inside.items()}
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
        for module in re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", modules)):
            imported = resolve_name(module, package)
            # A name that is imported from a package may be a module of it.
            imports += [imported, *(f"{imported}.{name}" for name in names)]
    return SourceFile(sha256(source).digest() if source else b"", tuple(imports))


def _source(name: str) -> tuple[bytes, str]:
    """Return the source of a module, empty if it has none, and the name of its package."""
    root, _, inside = name.partition(".")
    folders = getattr(sys.modules.get(root), "__path__", None)
    if folders is None:
        file = getattr(sys.modules.get(root), "__file__", None)
        return (_read_source(file, root) if file and not inside else b""), ""
    for folder in folders:
        path = Path(folder, *inside.split("."))
        for file, package in (path / "__init__.py", name), (f"{path}.py", name.rpartition(".")[0]):
            if source := _read_source(file, root):
                return source, package
    return b"", name


def _read_source(file: str | Path, root: str) -> bytes:
    """Return the bytes of a file, which may be in the archive that the root was imported from."""
    try:
        return Path(file).read_bytes()
    except OSError:
        loader: Any = getattr(sys.modules[root], "__loader__", None)
    try:
        return bytes(loader.get_data(str(file)))
    except (AttributeError, OSError):
        return b""


try:
    import fcntl
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]

LOGGER: Final = logging.getLogger("tidings.compiled")
SUFFIX: Final = ".kernel"
_VERSIONS: Final = 8
"""Files that are kept of a kernel, for several installations; older ones are removed."""
_PATIENCE_S: Final = 600.0
_PAUSE_S: Final = 0.1
_CHECKSUM: Final = sha256().digest_size
_USER: Final[int | None] = os.getuid() if hasattr(os, "getuid") else None
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Return the folder of compiled kernels."""
    chosen = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    if chosen:
        folder = Path(chosen, "tidings")
    else:
        folder = Path(AppDirs("tidings", appauthor=False).user_cache_dir, "kernels")
    try:
        return _private(folder)
    except OSError as error:
        if chosen:
            _warn_once(f"compiled kernels are not kept in {folder}: {error}")
    return _temporary_folder()


@cache
def _private(folder: Path) -> Path:
    """Return a folder that only this user or root can write to; make it if there is none.

    Raises an OSError if that is impossible.
    """
    folder.mkdir(parents=True, exist_ok=True)
    status = folder.stat()
    if _is_ours(status) and status.st_mode & _OTHERS_WRITE:  # made with a umask such as 002
        folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
    if not _is_ours(folder.lstat()) or not _is_trusted(folder.stat()):
        raise PermissionError(errno.EPERM, "another user may write to this folder")
    return folder


@cache
def _temporary_folder() -> Path:
    """Return a folder for temporary files that only its owner can write to."""
    try:
        folder = Path(tempfile.gettempdir(), f"tidings-kernels-{_USER or 0}")
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and _is_trusted(status):
                return folder
        except OSError:
            LOGGER.debug("%s is not a folder", folder)
        return Path(tempfile.mkdtemp(prefix="tidings-kernels-"))
    except OSError:
        return Path(os.devnull, "kernels")  # no file can be there, so nothing is kept


def _is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user or to root; Windows does not say."""
    return _USER is None or status.st_uid in (_USER, 0)


def _is_trusted(status: os.stat_result) -> bool:
    """Return whether only this user or root can have written a file."""
    return _USER is None or (_is_ours(status) and not status.st_mode & _OTHERS_WRITE)


@cache
def environment() -> str:
    """Return a name for everything but the source that compiled code depends on."""
    cpu = cpu_target.target_context.codegen().magic_tuple()
    config: Any = numba.config
    settings = (config.OPT, config.BOUNDSCHECK, config.LOOP_VECTORIZE, config.SLP_VECTORIZE)
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__)
    digest = sha256(repr((sys.implementation.cache_tag, versions, cpu, settings)).encode())
    return f"{sys.implementation.cache_tag}-numba-{numba.__version__}-{digest.hexdigest()[:12]}"


class KernelCache(NullCache):
    """The compiled forms of one kernel, in files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        kernel_sources(function.__module__)  # as they are now, while the module is imported
        self._function = function
        name = f"{function.__module__}.{function.__qualname__}"
        self._name = name.replace("<", "").replace(">", "")
        self._locks = list[IO[bytes] | None]()

    @property
    def cache_path(self) -> str:
        """The folder of the files."""
        return str(self._folder())

    def _folder(self) -> Path:
        return cache_folder() / environment()

    @cached_property
    def _stamp(self) -> str:
        """The fingerprint of the source, known once the module is imported."""
        code = self._function.__code__.co_code
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        stamp = source_stamp(self._function.__module__)
        return sha256(stamp + code + dumps(cells)).hexdigest()

    def _path(self, signature: Any) -> Path:
        arguments = signature if isinstance(signature, tuple) else (signature,)
        digest = sha256(", ".join(map(_described, arguments)).encode()).hexdigest()
        return self._folder() / f"{self._name}-{digest[:16]}-{self._stamp[:16]}{SUFFIX}"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel for a signature, or None if the caller has to compile it."""
        context.refresh()
        path = self._path(signature)
        compiled = _read(path, signature, context)
        if compiled is None:
            self._locks.append(_wait_for_lock(path))
            compiled = _read(path, signature, context)  # another process may have written it
        return compiled

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled kernel."""
        path = self._path(signature)
        try:
            # Neither pointers nor functions that are arguments mean anything to another process.
            if not compiled.library.has_dynamic_globals and " at 0x" not in str(signature):
                _write(path, dumps((signature, compiled._reduce())))  # noqa: SLF001 - as numba does
        except OSError as error:
            folder = cache_folder()
            _warn_once(f"every process compiles again what {folder} lacks: {error}")

    def release(self) -> None:
        """Wake the processes that wait for this kernel."""
        while self._locks:
            lock = self._locks.pop()
            if lock is not None:
                Path(lock.name).unlink(missing_ok=True)
                lock.close()


def _described(kind: Any) -> str:
    """Return the name of a type; unlike numba's, that of a named tuple has its fields."""
    if not isinstance(kind, types.BaseTuple):
        return str(kind)
    parts: Any = kind
    members = ", ".join(map(_described, parts))
    record = getattr(kind, "instance_class", None)
    name = f"{record.__module__}.{record.__qualname__}{record._fields}" if record else ""
    return f"{name}({members})"


def _read(path: Path, signature: object, context: Any) -> Any:
    """Return a compiled kernel; None if the file is missing or holds another one."""
    try:
        with path.open("rb") as file:
            if not _is_trusted(os.fstat(file.fileno())):
                _warn_once(f"{path.parent} has kernels of other users, which are not loaded")
                return None
            content = file.read()
        checksum, payload = content[:_CHECKSUM], content[_CHECKSUM:]
        if sha256(payload).digest() != checksum:
            return None
        written_for, parts = pickle.loads(payload)
        if written_for != signature:
            return None
        return CompileResult._rebuild(context, *parts)  # noqa: SLF001 - as numba does
    except OSError:
        return None
    except Exception:
        LOGGER.debug("compiling %s again", path, exc_info=True)
        return None


def _write(path: Path, payload: bytes) -> None:
    """Write a file under a temporary name, rename it, and remove files of former sources."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    part = path.with_name(f"{uuid4().hex}.part")
    try:
        with _open(part, "xb") as file:
            file.write(sha256(payload).digest() + payload)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    same_kernel = path.parent.glob(f"{path.stem.rpartition('-')[0]}-*{SUFFIX}")
    for old in sorted(same_kernel, key=_age)[_VERSIONS:]:
        old.unlink(missing_ok=True)


def _open(path: Path, mode: str) -> IO[bytes]:
    """Open a file that only its owner may write to; a link is refused, not followed."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o644)

    return open(path, mode, opener=opener)


def _age(path: Path) -> float:
    """Return how old a file is; one that is gone is the oldest."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return float("inf")


def _wait_for_lock(path: Path) -> IO[bytes] | None:
    """Return a lock on a kernel once no other process compiles it; None without file locks."""
    if fcntl is None:
        return None
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = _open(path.with_suffix(".lock"), "ab")
    except OSError:  # a folder that cannot be written
        return None
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return lock
    except BaseException as error:
        lock.close()
        if isinstance(error, OSError):  # too late, or a file system without locks
            return None
        raise


@cache
def _warn_once(problem: str) -> None:
    LOGGER.warning("%s; let NUMBA_CACHE_DIR name a folder that only you can write to", problem)
