"""Compiled kernels in files: found again, never stale, never torn, compiled by one process."""

import fcntl
import logging
import os
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from tests.compiled.packages import NAME, Package, package

from tidings.compiled import kernel_cache
from tidings.compiled.jit import COMPILED

__all__ = ["package"]

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")

HELPER = """
from typing import NamedTuple
from tidings.compiled.jit import inner

class {record}(NamedTuple):
    number: int

@inner
def helper(record: {record}) -> int:
    return record.number + {more}
"""
MAIN = f"""
from {NAME} import helper
from tidings.compiled.jit import kernel

@kernel
def main(record):
    return helper.helper(record)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that NUMBA_CACHE_DIR names."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def written(package: Package, folder: Path) -> Package:
    """Return a package with a kernel that calls one of another module."""
    package.write("helper", HELPER.format(record="Record", more=1))
    package.write("main", MAIN)
    return package


def call(package: Package, record: str = "Record") -> tuple[int, Any]:
    """Import the kernel anew and call it; return the result, and how often it was compiled."""
    module = package.load()
    result = module.main(getattr(module.helper, record)(40))
    return result, sum(module.main.stats.cache_misses.values())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_kernel_is_compiled_once(written: Package, folder: Path) -> None:
    assert call(written) == (41, 1)
    (file,) = files(folder)
    assert file.suffix == kernel_cache.SUFFIX
    assert file.parent == folder / "tidings" / kernel_cache.environment()
    assert call(written) == (41, 0)


def test_an_edit_of_a_kernel_in_another_file_is_noticed(written: Package, folder: Path) -> None:
    call(written)
    written.write("helper", HELPER.format(record="Record", more=2))
    assert call(written) == (42, 1)
    written.write("helper", HELPER.format(record="Record", more=1))
    assert call(written) == (41, 0)  # the files of both are kept
    assert len(files(folder)) == 2


def test_a_renamed_tuple_is_noticed(written: Package) -> None:
    call(written)
    written.write("helper", HELPER.format(record="Renamed", more=1))
    assert call(written, "Renamed") == (41, 1)


def test_reordered_fields_of_an_argument_are_noticed(written: Package, folder: Path) -> None:
    """The types of the fields are the same, and the kernel names neither class nor file."""
    first, second = "    first: int\n", "    second: int\n"
    record = "from typing import NamedTuple\nclass Record(NamedTuple):\n"
    written.write("records", record + first + second)
    written.write("main", MAIN.replace("helper.helper(record)", "record.first"))
    for fields, expected in (((first, second), 1), ((second, first), 2)):
        written.write("records", record + "".join(fields))
        kernel = written.load().main
        assert kernel(import_module(f"{NAME}.records").Record(1, 2)) == expected
    assert len(files(folder)) == 2


def test_a_file_that_is_not_whole_is_not_read(written: Package, folder: Path) -> None:
    call(written)
    (file,) = files(folder)
    whole = file.read_bytes()
    for torn in (b"", whole[:20], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(torn)
        assert call(written) == (41, 1)
        assert call(written) == (41, 0)


def test_a_folder_may_be_read_only(
    written: Package, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    call(written)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(kernel_cache, "_write", refuse)
    assert call(written) == (41, 0)
    written.write("helper", HELPER.format(record="Record", more=2))
    with caplog.at_level(logging.WARNING):
        assert call(written) == (42, 1)
    (warning,) = caplog.messages
    assert str(folder) in warning
    assert "NUMBA_CACHE_DIR" in warning


def test_only_the_newest_files_of_a_kernel_are_kept(
    written: Package, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "_VERSIONS", 1)
    call(written)
    (first,) = files(folder)
    os.utime(first, (0, 0))
    written.write("helper", HELPER.format(record="Record", more=2))
    call(written)
    (second,) = files(folder)
    assert second != first


def test_a_process_waits_for_the_one_that_compiles(
    written: Package, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(written)
    (file,) = files(folder)
    whole = file.read_bytes()
    file.unlink()
    other = file.with_suffix(".lock").open("wb")
    fcntl.flock(other, fcntl.LOCK_EX)

    def finish(_: float) -> None:
        file.write_bytes(whole)
        other.close()

    monkeypatch.setattr(kernel_cache, "time", SimpleNamespace(sleep=finish, monotonic=lambda: 0.0))
    assert call(written) == (41, 0)
    assert files(folder) == [file]


def test_a_process_that_waits_too_long_compiles(
    written: Package, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(written)
    (file,) = files(folder)
    file.unlink()
    times = iter([0.0, 1e9])
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(times))
    with file.with_suffix(".lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(kernel_cache, "time", clock)
        assert call(written) == (41, 1)


def test_a_failed_compilation_keeps_no_lock(package: Package, folder: Path) -> None:
    package.write("main", MAIN.replace("return helper.helper(record)", "return record.missing"))
    package.write("helper", HELPER.format(record="Record", more=1))
    with pytest.raises(numba.TypingError):
        call(package)
    assert files(folder) == []


def test_without_a_home_kernels_are_kept_in_a_private_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kernel_cache._temporary_folder.cache_clear()
    folder = kernel_cache.cache_folder()
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # somebody else may have made it
    kernel_cache._temporary_folder.cache_clear()
    assert kernel_cache.cache_folder() != folder
    kernel_cache._temporary_folder.cache_clear()


def test_a_kernel_that_another_user_may_have_written_is_not_loaded(
    written: Package, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    call(written)
    (file,) = files(folder)
    loaded = list[bytes]()
    monkeypatch.setattr(kernel_cache, "pickle", SimpleNamespace(loads=loaded.append))
    file.chmod(0o666)
    with caplog.at_level(logging.WARNING):
        assert call(written) == (41, 1)
    assert "has kernels of other users, which are not loaded" in caplog.text
    monkeypatch.setattr(kernel_cache, "_is_ours", lambda status: status.st_uid != os.getuid())
    assert kernel_cache._read(file, None, None) is None
    assert loaded == []


def test_files_are_private_whatever_the_umask(written: Package, folder: Path) -> None:
    before = os.umask(0)
    try:
        assert call(written) == (41, 1)
        assert call(written) == (41, 0)
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o022 for path in (folder / "tidings").rglob("*")]
    assert modes == [0, 0]
    assert (folder / "tidings").stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("hostile", ["file", "dangling link", "link"])
def test_a_folder_that_others_prepared_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str, caplog: Any
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "tidings").touch()
    place = tmp_path / f"tidings-kernels-{os.getuid()}"
    if hostile == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path / ("nothing" if hostile == "dangling link" else "."))
    kernel_cache._temporary_folder.cache_clear()
    with caplog.at_level(logging.WARNING):
        folder = kernel_cache.cache_folder()
    assert folder.parent == tmp_path
    assert folder.is_dir()
    assert folder != place
    assert f"compiled kernels are not kept in {tmp_path / 'tidings'}: " in caplog.text
    kernel_cache._temporary_folder.cache_clear()


def test_without_any_folder_nothing_is_kept(
    written: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing"))
    kernel_cache._temporary_folder.cache_clear()
    assert call(written) == (41, 1)
    assert call(written) == (41, 1)
    kernel_cache._temporary_folder.cache_clear()


def test_a_lock_is_never_a_link(written: Package, folder: Path, tmp_path: Path) -> None:
    call(written)
    (file,) = files(folder)
    file.unlink()
    precious = tmp_path / "precious"
    precious.write_text("kept")
    file.with_suffix(".lock").symlink_to(precious)
    assert call(written) == (41, 1)
    assert precious.read_text() == "kept"


def test_kernels_are_kept_in_the_cache_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_cache.cache_folder() == tmp_path / "tidings" / "kernels"
