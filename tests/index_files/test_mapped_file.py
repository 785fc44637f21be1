"""Index files read back equal, are shared until write_sample to, and report damage."""

import errno
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tidings.compiled.array_file import Reader, Writer
from tidings.index.access.kernels import match as access_match
from tidings.index_files import mapped_file
from tidings.index_files.base_files import new_part, read_base, write_mapped_files
from tidings.index_files.mapped_file import Damaged, DiskFull
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.rank.bulk.kernels import rank
from tidings.testing import workload

ARRAYS: dict[str, Any] = {
    "numbers": np.arange(1000, dtype=np.int32),
    "records": np.zeros(7, rank.SUBSCRIPTION),
    "none": np.empty(0, np.float64),
    "codes": np.arange(6, dtype=np.uint8),
}
VALUES = {"size": 3, "text": "ä", "list": [1, None, True]}
HEAD = struct.Struct("<14sHIQQ")


def write_sample(path: Path) -> int:
    """Write a file of a few arrays, and return its length."""
    writer = Writer()
    for name, value in VALUES.items():
        writer.within("small").value(name, value)
    for name, array in ARRAYS.items():
        writer.array(name, array)
    writer.texts("names", ["ann", "", "böb"])
    return mapped_file.write(path, mapped_file.INDEX, writer)


def read(path: Path) -> Reader:
    return mapped_file.read(path, mapped_file.INDEX)


def forge(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the header of a file, and correct its length and checksum."""
    content = path.read_bytes()
    magic, version, _, _, size = HEAD.unpack(content[: HEAD.size])
    header = json.loads(content[HEAD.size : HEAD.size + size])
    changed = change(header)
    text = changed if isinstance(changed, bytes) else json.dumps(changed or header).encode()
    arrays = content[mapped_file._aligned(HEAD.size + size) :]
    body = (
        text + bytes(mapped_file._aligned(HEAD.size + len(text)) - HEAD.size - len(text)) + arrays
    )
    head = HEAD.pack(magic, version, 0, HEAD.size + len(body), len(text))
    checksum = crc32(body, crc32(head))
    path.write_bytes(HEAD.pack(magic, version, checksum, HEAD.size + len(body), len(text)) + body)


def test_arrays_and_values_read_back(tmp_path):
    size = write_sample(tmp_path / "made")
    reader = read(tmp_path / "made")
    assert size == (tmp_path / "made").stat().st_size
    for name, array in ARRAYS.items():
        same = reader.array(name, array.dtype, len(array))
        assert same.dtype == array.dtype
        assert same.tolist() == array.tolist()
        assert same.flags.writeable
        assert same.flags.aligned
        assert same.ctypes.data % mapped_file.ALIGNMENT == 0
    assert reader.texts("names", 3).strings().to_pylist() == ["ann", "", "böb"]
    assert {name: reader.within("small").value(name) for name in VALUES} == VALUES
    assert reader.within("small").count("size") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_write_to_a_mapped_array_is_private(tmp_path):
    write_sample(tmp_path / "made")
    one, other = (read(tmp_path / "made").array("numbers", np.int32) for _ in range(2))
    one[:] = -1
    again = read(tmp_path / "made").array("numbers", np.int32)
    assert other.tolist() == again.tolist() == list(range(1000))


@pytest.mark.parametrize("offset", [0, 15, 20, 30, 60, 300, -5])
def test_a_changed_byte_is_detected(tmp_path, offset):
    path: Path = tmp_path / "made"
    write_sample(path)
    changed = bytearray(path.read_bytes())
    changed[offset] ^= 1
    path.write_bytes(changed)
    with pytest.raises(Damaged, match=r"made .*builds it again"):
        read(path)


@pytest.mark.parametrize("size", [0, 10, 35, 200, 4000])
def test_a_truncated_file_is_detected(tmp_path, size):
    path: Path = tmp_path / "made"
    write_sample(path)
    os.truncate(path, size)
    with pytest.raises(Damaged, match=r"made .*builds it again"):
        read(path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(Damaged, match="cannot be read"):
        read(tmp_path / "missing")
    with pytest.raises(Damaged, match="cannot be read"):
        read(tmp_path)


FORGERIES: dict[str, Callable[[Any], Any]] = {
    "not JSON": lambda _: b"cos\nsystem\n(S'true'\ntR.",
    "deep": lambda _: b"[" * 100_000,
    "huge number": lambda _: b"1" * 5_000,
    "not UTF-8": lambda _: b"\xff\xfe",
    "a list": lambda _: [1],
    "another kind": lambda header: header | {"kind": "people"},
    "a field more": lambda header: header | {"class": "subprocess.Popen"},
    "arrays are not a list": lambda header: header | {"arrays": {}},
    "values are not an object": lambda header: header | {"values": [1]},
    "an array is not a list": lambda header: header["arrays"].append("x"),
    "an array without a name": lambda header: header["arrays"].append([None, "|u1", [0], 0]),
    "an array twice": lambda header: header["arrays"].append(header["arrays"][0]),
    "negative size": lambda header: header["arrays"][0].__setitem__(3, -64),
    "a size that is true": lambda header: header["arrays"][-1].__setitem__(3, True),
    "huge size": lambda header: header["arrays"][0].__setitem__(3, 2**80),
    "one array less": lambda header: header["arrays"].pop(),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_header_with_a_correct_checksum_is_refused(tmp_path, forgery):
    path: Path = tmp_path / "made"
    write_sample(path)
    forge(path, FORGERIES[forgery])
    with pytest.raises(Damaged, match=r"made is damaged: .*builds it again"):
        read(path)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "another dtype": lambda array: array.__setitem__(1, "<f4"),
    "an object": lambda array: array.__setitem__(1, "|O"),
    "no dtype": lambda array: array.__setitem__(1, None),
    "two dimensions": lambda array: array.__setitem__(2, [10, 100]),
    "too many": lambda array: array.__setitem__(2, [1001]),
    "no shape": lambda array: array.__setitem__(2, "1000"),
    "another name": lambda array: array.__setitem__(0, "other"),
}


@pytest.mark.parametrize("forgery", SHAPES)
def test_an_unexpected_array_is_refused(tmp_path, forgery):
    path: Path = tmp_path / "made"
    write_sample(path)
    forge(path, lambda header: SHAPES[forgery](header["arrays"][0]))
    with pytest.raises(Damaged, match=r"made is damaged: numbers"):
        read(path).array("numbers", np.int32)


@pytest.mark.parametrize(
    ("starts", "letters"),
    [
        ([0, 2, 1], b"ab"),
        ([0, 1, 9], b"ab"),
        ([1, 1, 2], b"ab"),
        ([0, 1, 2], b"\xc3("),
        ([0, -(2**60), 2], b"ab"),
        ([], b""),
    ],
)
def test_invalid_texts_are_refused(tmp_path, starts, letters):
    writer = Writer()
    writer.array("names.starts", np.array(starts, np.int64))
    writer.array("names.letters", np.frombuffer(letters, np.uint8))
    mapped_file.write(tmp_path / "made", mapped_file.INDEX, writer)
    with pytest.raises(Damaged, match=r"made is damaged: names"):
        read(tmp_path / "made").texts("names")


@pytest.mark.parametrize("size", [-1, 2**31, True, None, "3", 1.0, 10**400])
def test_an_invalid_count_is_refused(tmp_path, size):
    writer = Writer()
    writer.value("size", size)
    mapped_file.write(tmp_path / "made", mapped_file.INDEX, writer)
    with pytest.raises(Damaged, match=r"made is damaged: size"):
        read(tmp_path / "made").count("size")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    writer = Writer()
    writer.value("function", test_a_missing_file_is_reported)
    with pytest.raises(TypeError):
        mapped_file.write(tmp_path / "made", mapped_file.INDEX, writer)
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_sample(tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_full_disk_is_reported_with_its_folder(tmp_path, monkeypatch):
    def fails(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(DiskFull, match=rf"{tmp_path} has no space left: No space left on device"):
        write_sample(tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_mapped_arrays_compile_no_further_kernels(tmp_path):
    work = workload(seed=5, events=5)
    base = build_base(bundle_subscribers(work.subscribers, work.subscriptions))
    write_mapped_files(tmp_path, new_part(1, 0), base)
    OverlayMatcher(base).match_many(work.events)
    if not hasattr(access_match.match_events, "signatures"):
        pytest.skip("kernels are not compiled")
    kernels: list[Any] = [access_match.match_events, rank.rank_events]
    compiled = [list(kernel.signatures) for kernel in kernels]
    OverlayMatcher(read_base(tmp_path, new_part(1, 0))).match_many(work.events)
    assert [list(kernel.signatures) for kernel in kernels] == compiled
