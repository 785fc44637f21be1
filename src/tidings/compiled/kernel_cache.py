"""Compiled kernels in files, for all processes of a user.

    <folder>/<Python, numba, CPU>/<function>-<signature>-<source>.kernel

The folder is `tidings` in NUMBA_CACHE_DIR if that is set, otherwise the user's cache folder, or a
private one for temporary files where that cannot be written. A file is complete or absent: it
appears under its name when it has been written, and begins with a checksum. Of several processes
that need a kernel at once, one compiles it and the others wait for the file.
"""

import logging
import os
import pickle
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final
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

from tidings.compiled.source_stamp import kernel_sources, source_stamp

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


def cache_folder() -> Path:
    """Return the folder of compiled kernels."""
    chosen = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    if chosen:
        return Path(chosen, "tidings")
    folder = Path(AppDirs("tidings", appauthor=False).user_cache_dir, "kernels")
    return folder if _is_usable(folder) else _temporary_folder()


@cache
def _is_usable(folder: Path) -> bool:
    """Return whether a folder exists or can be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


@cache
def _temporary_folder() -> Path:
    """Return a folder for temporary files that only its owner can write to."""
    owner = getattr(os, "getuid", lambda: "")()
    folder = Path(tempfile.gettempdir(), f"tidings-kernels-{owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    # Compiled code is executed: a folder that others can write to is not trusted.
    if owner in ("", status.st_uid) and not status.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="tidings-kernels-"))


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
            _warn_once(str(cache_folder()), str(error))

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
        content = path.read_bytes()
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
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{uuid4().hex}.part")
    try:
        part.write_bytes(sha256(payload).digest() + payload)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    same_kernel = path.parent.glob(f"{path.stem.rpartition('-')[0]}-*{SUFFIX}")
    for old in sorted(same_kernel, key=_age)[_VERSIONS:]:
        old.unlink(missing_ok=True)


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
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock").open("wb")
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
def _warn_once(folder: str, reason: str) -> None:
    LOGGER.warning(
        "compiled kernels cannot be kept in %s, so every process compiles them again: %s; "
        "let NUMBA_CACHE_DIR name a folder that can be written",
        folder,
        reason,
    )
