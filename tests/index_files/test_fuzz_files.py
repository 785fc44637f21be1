"""Damaged and forged index files: one of our errors that names the file, or an answer.

Child processes run the cases, so that a signal, a hang or a foreign error is reported with its case
and stops no other. Plain damage (flipped bits, truncation) must be detected, or change no answer. A
forged file has a correct checksum; it must raise nothing but `TidingsError`.
"""

import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import compress, crc32, decompress

import numpy as np
import pytest
from tests.damage import run_cases
from tests.fuzz import cases

from tidings import Event, Policy, Subscriber, Subscription
from tidings.index_files.base_files import current_bundles
from tidings.index_files.publisher import Publisher
from tidings.index_files.version_cache import FolderPolicies, forget, serve
from tidings.index_files.versions import IndexFolder
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed
from tidings.store import open_store

HEAD = struct.Struct("<14sHIQQ")
PLAIN, FORGED = cases(60), cases(120)
PEOPLE = 10
EVENTS = [
    Event(
        f"e{n}",
        {
            "genre": [f"g{n % 9}", f"g{n % 4}"] if n % 3 else f"g{n % 9}",
            "year": n * 9,
            "price": 7 * n % 100,
            "title": f"t{n % 9}{n % 10}",
            "good": n % 2 == 0,
        },
        published_at=n,
        probabilities={"genre": 0.5} if n % 5 == 0 else {},
    )
    for n in range(10)
]
EVENTS.append(Event("r", {"year": {"range": [3, 70]}, "genre": "g1"}, published_at=99))


def answers(path: Path) -> Any:
    """Return every answer of the newest version in a folder."""
    forget()
    folder = IndexFolder(path)
    version = folder.newest()
    matcher = serve(folder, version)
    matches = matcher.match_many(EVENTS)
    names = matcher.names.take(matches.subscribers).to_pylist()
    ids = matcher.ids.take(matches.matched).to_pylist()
    spans = np.split(np.arange(len(ids)), matches.matched_starts[1:-1])
    matched = [tuple(ids[number] for number in span) for span in spans] if names else []
    rows = zip(matches.events.tolist(), names, matches.ranks.tolist(), matched, strict=True)
    best = [matcher.top_many(EVENTS, 5, scorer) for scorer in (Exact(), Relaxed())]
    policies = FolderPolicies(folder, version)
    policy_texts = [repr(policies.policy(f"u{n}")) for n in range(PEOPLE)]
    changed = policies.changed_since(policies.version - 1)
    [part] = folder.manifest(version).parts
    sizes = [(bundle.name, len(bundle.subscriptions)) for bundle in current_bundles(path, part)]
    return repr((sorted(rows), best, policy_texts, sorted(changed or ()), sizes))


def aligned(at: int) -> int:
    return -(-at // 64) * 64


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every kind of file and every ranker."""
    root = tmp_path_factory.mktemp("fuzz")
    rng = random.Random(5)
    scorers = ["preference", "exact", "relaxed", "graph", {"name": "relaxed", "aggregate": "max"}]
    people = [
        Subscriber(f"u{n}", Policy(k=1 + n % 3, scorer=scorers[n % 5])) for n in range(PEOPLE)
    ]
    wanted = [
        Subscription(f"s{n}", f"u{n % PEOPLE}", _condition(rng), prefrank=0.5, score=rng.random())
        if n % 3
        else Subscription(f"s{n}", f"u{n % PEOPLE}", any=[[_part(rng), 0.5], [_part(rng), 0.25]])
        for n in range(5 * PEOPLE)
    ]
    with (
        open_store(root / "s.db") as store,
        Publisher(root / "index", store.history) as publisher,
    ):
        store.catalogue.put(
            *people[:-4], *(each for each in wanted if int(each.subscriber[1:]) < PEOPLE - 4)
        )
        publisher.publish()
        store.catalogue.put(
            *people[-4:], *(each for each in wanted if int(each.subscriber[1:]) >= PEOPLE - 4)
        )
        publisher.publish()
    return root / "index"


def _part(rng: random.Random) -> str:
    low = rng.randrange(100)
    return rng.choice(
        [
            f"genre = 'g{rng.randrange(9)}'",
            f"year between {low} and {low + rng.randrange(1, 30)}",
            f"price > {low}",
            f"title like 't{rng.randrange(9)}%'",
            f"title like '%{rng.randrange(9)}%'",
            f"genre in ('g1', 'g{rng.randrange(2, 9)}')",
            f"genre != 'g{rng.randrange(9)}'",
            f"title < 't{rng.randrange(9)}'",
            "good = true",
        ]
    )


def _condition(rng: random.Random) -> str:
    parts = [_part(rng) for _ in range(rng.randrange(1, 4))]
    return f" {rng.choice(['and', 'or'])} ".join({part.split()[0]: part for part in parts}.values())


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Flip some bits, truncate, or append bytes."""
    changed, how = bytearray(data), rng.randrange(10)
    if how == 0:
        return data[: rng.randrange(len(data))]
    if how == 1:
        return data + rng.randbytes(rng.randrange(1, 100))
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


NUMBERS = [-1, -2, 0, 1, 2, 3, 7, 63, 64, 255, 2**15, 2**20, 2**31 - 1, -(2**31), 2**40, -(2**63)]
VALUES: list[Any] = [None, True, -1, 0, 1, 2**31, 2**70, 1.5, "", "uint16", "x", [], {}, ["graph"]]


def forged(data: bytes, rng: random.Random) -> bytes:
    """Change a field of the header or cells of an array, and correct the checksum."""
    mark, version, _, _, size = HEAD.unpack(data[: HEAD.size])
    header = json.loads(data[HEAD.size : HEAD.size + size])
    arrays, at = [], HEAD.size + size
    for name, dtype, _, length in header["arrays"]:
        at = aligned(at)
        arrays.append((name, dtype, bytearray(data[at : at + length])))
        at += length
    if rng.random() < 0.25:
        _forge_header(header, rng)
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            _forge_array(header, arrays, rng)
    text = json.dumps(header).encode()
    body = text
    for _, _, array in arrays:
        body += bytes(aligned(HEAD.size + len(body)) - HEAD.size - len(body)) + array
    length = HEAD.size + len(body)
    checksum = crc32(body, crc32(HEAD.pack(mark, version, 0, length, len(text))))
    return HEAD.pack(mark, version, checksum, length, len(text)) + body


def _forge_header(header: Any, rng: random.Random) -> None:
    if rng.random() < 0.5 and header["values"]:
        header["values"][rng.choice([*header["values"]])] = rng.choice(VALUES)
    elif rng.random() < 0.8 and header["arrays"]:
        array = rng.choice(header["arrays"])
        array[rng.choice([1, 2])] = rng.choice([*VALUES, "<i4", "<f8", [rng.randrange(99)]])
    else:
        header[rng.choice([*header, "more"])] = rng.choice(VALUES)


def _forge_array(header: Any, arrays: list[Any], rng: random.Random) -> None:
    """Change a cell, or drop or repeat some at the end, and correct the sizes."""
    number = rng.randrange(len(arrays))
    name, dtype, array = arrays[number]
    cell = np.dtype(dtype if isinstance(dtype, str) else [tuple(part) for part in dtype]).itemsize
    if name.endswith("chunks") and array:
        _forge_chunk(array, rng)
    elif rng.random() < 0.1:
        array[:] = (
            array[: -cell * rng.randrange(1, 4)] if rng.random() < 0.5 else array + array[-cell:]
        )
    elif array:
        kind = (
            rng.choice(["<i4", "<i8", "<u1", "<f8"])
            if cell > 4
            else {4: "<i4", 2: "<i2"}.get(cell, "<u1")
        )
        cells = np.frombuffer(array, kind, len(array) // np.dtype(kind).itemsize)
        position, other = rng.randrange(len(cells)), rng.randrange(len(cells))
        with np.errstate(all="ignore"):
            new = rng.choice(
                [
                    np.array(rng.choice(NUMBERS)).astype(kind),
                    cells[other],
                    cells[position] + np.array(1).astype(kind),
                    np.frombuffer(rng.randbytes(8), kind)[0],
                ]
            )
            cells[position] = new
    shape = header["arrays"][number]
    shape[2], shape[3] = [len(array) // cell], len(array)


def _forge_chunk(array: bytearray, rng: random.Random) -> None:
    """Change the JSON of bundles, or their compressed bytes; there is only one chunk."""
    try:
        text = bytearray(decompress(bytes(array)))
    except Exception:  # noqa: BLE001 - it was changed before
        return
    if rng.random() < 0.2:
        array[:] = compress(b"[" * 50_000 if rng.random() < 0.5 else bytes(text[: len(text) // 2]))
        return
    new = rng.choice([b"null", b"-1", b"9" * 5000, b'"x"', b"[]", b"{}", b"NaN", b"1e999", b"true"])
    at = rng.randrange(len(text))
    end = at + rng.randrange(1, 12)
    text[at:end] = new if rng.random() < 0.5 else rng.randbytes(end - at)
    array[:] = compress(bytes(text))


def broken(data: bytes, rng: random.Random) -> bytes:
    """Change the text of a manifest."""
    text = bytearray(data)
    at = rng.randrange(len(text))
    text[at : at + rng.randrange(1, 9)] = rng.choice(
        [b"", b"null", b"-1", b"../", b'"/"', b"[]", b"9" * 40, rng.randbytes(3)]
    )
    return bytes(text)


Change = Callable[[bytes, random.Random], bytes]


def refusals(place: Path, change: Change, count: int, pattern: str, *, detected: bool) -> int:
    """Open a folder with one changed file per case; return how many were refused.

    If damage must be `detected`, the answers of an accepted file must be the same as before.
    """
    files = {path.name: path.read_bytes() for path in sorted(place.glob(pattern))}
    others = [path for path in place.iterdir() if path.is_file()]
    expected = answers(place)

    def try_case(rng: random.Random) -> None:
        name = rng.choice(sorted(files))
        with TemporaryDirectory(dir=place.parent) as folder:
            for path in others:
                if path.name != name:
                    os.link(path, Path(folder, path.name))
            Path(folder, name).write_bytes(change(files[name], rng))
            given = answers(Path(folder))
        assert given == expected or not detected, f"{name}: another answer"

    return run_cases(change.__name__, try_case, count)


@pytest.mark.fuzz
def test_damage_is_detected(place: Path) -> None:
    assert refusals(place, flipped, PLAIN, "*.sealed", detected=True) > 0.9 * PLAIN


@pytest.mark.fuzz
def test_forged_files_are_refused_or_answer(place: Path) -> None:
    assert refusals(place, forged, FORGED, "*.sealed", detected=False) > 0.3 * FORGED


@pytest.mark.fuzz
def test_broken_manifests_are_refused_or_answer(place: Path) -> None:
    assert refusals(place, broken, PLAIN, "version-*.json", detected=False) > 0.3 * PLAIN
