"""Packages with kernels that tests write, import and edit."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest

from tidings.compiled import kernel_cache

NAME = "kernels_under_test"


class Package:
    """A package in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / NAME
        self.folder.mkdir()
        self.write("__init__", "")

    def write(self, module: str, source: str) -> None:
        """Write the source of a module."""
        (self.folder / f"{module}.py").write_text(source)

    def load(self, module: str = "main") -> ModuleType:
        """Import a module as a new process would."""
        forget()
        return import_module(f"{NAME}.{module}")


def forget() -> None:
    """Forget what is imported and known of the package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
    invalidate_caches()
    kernel_cache.kernel_sources.cache_clear()
    kernel_cache._source_file.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Return an empty package that can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Package(tmp_path)
    forget()
