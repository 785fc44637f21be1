"""Manifests: written and read, and refused with their name if they are invalid."""

import json
from pathlib import Path

import pytest

from tidings.index_files.base_files import build_folder
from tidings.index_files.manifest import Delta, Manifest, PartManifest, RefusedRecord, read_manifest
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.version_cache import serve

VALID = {"version": 1, "source": 1, "mark": 0}
PART = {"index": "i.sealed", "people": "p.sealed", "archive": "a.sealed", "size": 1}
INVALID: list[object] = [
    [],
    None,
    1,
    {},
    {"version": 2},
    VALID | {"shelves": {}},
    VALID | {"shelves": []},
    VALID | {"shelves": [None]},
    VALID | {"shelves": [PART]},
    VALID | {"shelves": [PART | {"changes": [1]}]},
    VALID | {"shelves": [PART | {"changes": [[]]}]},
    VALID | {"shelves": [PART | {"changes": [["c.sealed", 1, False, 1, 1]]}]},
    VALID | {"shelves": [PART | {"changes": [], "class": "x"}]},
    VALID | {"shelves": [PART | {"changes": []}], "source": -1},
    VALID | {"shelves": [PART | {"changes": []}], "source": 2**64},
    VALID | {"shelves": [PART | {"changes": []}], "mark": 1.5},
    VALID | {"shelves": [PART | {"changes": []}], "mark": True},
    *(
        VALID | {"shelves": [PART | {"changes": [], "index": name}]}
        for name in ["../i.sealed", "/etc/passwd", "", "..", None, 5, "a\0b", "x" * 300, "a\\b"]
    ),
    VALID | {"shelves": [PART | {"changes": [["../c.sealed", 1, False, 1]]}]},
    VALID | {"shelves": [PART | {"changes": [], "size": 10**30}]},
    VALID | {"shelves": [PART | {"changes": [], "counting": 1}]},
    *(
        VALID | {"shelves": [PART | {"changes": []}], "refused": refused}
        for refused in [[1], [["s1"]], [["subscription", "s1", "ann", 1]], ["text"], 1]
    ),
]

TEXTS = [
    b"",
    b"{",
    b"\xff",
    b"[" * 100_000,
    b"1" * 5_000,
    *(json.dumps(form).encode() for form in INVALID),
]


def test_a_manifest_reads_back() -> None:
    part = PartManifest("i.sealed", "p.sealed", "a.sealed", 3, counts_published=True, source=5)
    with_deltas = PartManifest("j", "q", "b", deltas=(Delta("c", 2), Delta("d", 1, True, 6)))
    refused = (RefusedRecord("subscription", "s1", "ann", "no such operator"),)
    manifest = Manifest(7, 6, (part, with_deltas), 2**64 - 1, refused)
    assert read_manifest(7, json.loads(json.dumps(manifest.to_dict()))) == manifest


def test_a_manifest_lists_all_files_and_whether_a_window_counts_published_events() -> None:
    delta = Delta("c", 2, counts_published=True)
    plain, counting = PartManifest("i", "p", "a"), PartManifest("j", "q", "b", deltas=(delta,))
    assert counting.files == ["j", "q", "b", "c"]
    assert Manifest(1, 1, (plain, counting)).counts_published
    assert not Manifest(1, 1, (plain,)).counts_published


@pytest.mark.parametrize("text", TEXTS)
def test_an_invalid_manifest_is_refused_by_name(tmp_path: Path, text: bytes) -> None:
    folder = build_folder(tmp_path, [])
    (tmp_path / "version-000000000001.json").write_bytes(text)
    with pytest.raises(Damaged, match=r"version 1 in .*version-000000000001\.json.*publisher"):
        folder.manifest(1)
    with pytest.raises(Damaged):
        serve(folder, 1)
    assert folder.clean() == []  # it is unknown which files are needed
