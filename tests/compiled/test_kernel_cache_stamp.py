"""The fingerprint of a module covers what it imports, and nothing else."""

import sys
import zipfile
from pathlib import Path

import pytest
from tests.compiled.packages import NAME, Package, forget, package

from tidings.compiled import kernel_cache as source_stamp_module
from tidings.compiled.kernel_cache import source_stamp

__all__ = ["package"]

KERNELS = "from tidings.compiled.jit import kernel\n"
RECORD = "from typing import NamedTuple\nclass A(NamedTuple):\n    {}"
IMPORTS = [
    f"from {NAME}.helper import A",
    f"from {NAME}.helper import (\n    A,  # a comment (with brackets)\n)",
    f"from {NAME} import helper as renamed",
    f"from {NAME} import (\n    helper,\n)",
    f"import {NAME}.helper",
    f"import sys, {NAME}.helper as renamed",
    "from . import helper",
    "from .helper import A",
    f"def later():\n    from {NAME}.helper import A",
    f"from {NAME}.middle import B",
]


def stamp(package: Package) -> bytes:
    package.load()
    return source_stamp(f"{NAME}.main")


@pytest.mark.parametrize("line", IMPORTS)
def test_an_edit_of_kernels_that_are_imported_changes_the_stamp(
    package: Package, line: str
) -> None:
    package.write("helper", f"{KERNELS}A = 1")
    package.write("middle", f"{KERNELS}import math\nfrom {NAME}.helper import A\nB = A")
    package.write("main", line)
    before = stamp(package)
    assert stamp(package) == before
    package.write("helper", f"{KERNELS}A = 1  # edited")
    assert stamp(package) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A = 1", "A = 2"),
        ("A = (1, 2.5)", "A = (1, 2.75)"),
        ("import numpy\nA = numpy.arange(2)", "import numpy\nA = numpy.arange(3)"),
        (RECORD.format("x: int\n    y: int"), RECORD.format("y: int\n    x: int")),
    ],
)
@pytest.mark.parametrize("line", [f"from {NAME}.plain import A", f"from {NAME} import plain"])
def test_constants_and_tuples_of_other_modules_count(
    package: Package, line: str, old: str, new: str
) -> None:
    package.write("deep", old)
    package.write("plain", f"from {NAME}.deep import A")
    package.write("main", f"{KERNELS}{line}")
    before = stamp(package)
    package.write("plain", f"from {NAME}.deep import A  # edited")
    assert stamp(package) == before
    package.write("deep", new)
    assert stamp(package) != before


def test_an_edit_of_another_module_does_not(package: Package) -> None:
    package.write("other", "A = 1")
    package.write("main", "import json\nA = 1")
    before = stamp(package)
    package.write("other", "A = 2")
    assert stamp(package) == before
    package.write("main", "import json\nA = 2")
    assert stamp(package) != before


def test_modules_may_import_each_other(package: Package) -> None:
    package.write("helper", f"{KERNELS}import {NAME}.main")
    package.write("main", f"import {NAME}.helper")
    before = stamp(package)
    package.write("helper", f"{KERNELS}import {NAME}.main\nA = 1")
    assert stamp(package) != before


def test_kernels_of_others_depend_on_those_of_tidings(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.write("main", "from tidings.compiled.rounding import rounded")
    before, read = stamp(package), source_stamp_module._read_source

    def read_edited(file: Path | str, root: str) -> bytes:
        return read(file, root) + (b"#" if str(file).endswith("rounding.py") else b"")

    monkeypatch.setattr(source_stamp_module, "_read_source", read_edited)
    assert stamp(package) != before


def test_a_package_in_an_archive_has_the_stamp_of_its_source(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.write("helper", f"{KERNELS}A = 1")
    package.write("main", f"from {NAME}.helper import A")
    expected = stamp(package)
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.folder.glob("*.py"):
            file.write(path, f"{NAME}/{path.name}")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path[1:]])
    package.folder.rename(tmp_path / "moved")
    forget()
    assert stamp(package) == expected
