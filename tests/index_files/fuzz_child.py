"""Opens changed index files, each in its own process: `fuzz_child.py FOLDER CASES`.

Writes a line per case: its file, the outcome (refused, same, changed or wrong), and the reason.
"""

import os
import resource
import select
import signal
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

from tidings import Event
from tidings.errors import TidingsError
from tidings.index_files.base_files import current_bundles
from tidings.index_files.version_cache import FolderPolicies, forget, serve
from tidings.index_files.versions import IndexFolder
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

SECONDS = 5
WAITING = 120
"""The CPU seconds that a case may use, and the seconds that it may take on a busy machine."""
EVENTS = [
    Event(
        f"e{n}",
        {
            "genre": [f"g{n % 9}", f"g{n % 4}"] if n % 3 else f"g{n % 9}",
            "year": n * 3,
            "price": 7 * n % 100,
            "title": f"t{n % 9}{n % 10}",
            "good": n % 2 == 0,
        },
        published_at=n,
        probabilities={"genre": 0.5} if n % 5 == 0 else {},
    )
    for n in range(30)
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
    policy_texts = [repr(policies.policy(f"u{n}")) for n in range(60)]
    changed = policies.changed_since(policies.version - 1)
    [part] = folder.manifest(version).parts
    sizes = [(bundle.name, len(bundle.subscriptions)) for bundle in current_bundles(path, part)]
    return repr((sorted(rows), best, policy_texts, sorted(changed or ()), sizes))


def outcome(path: Path, expected: str) -> str:
    """Return the outcome of opening a folder."""
    try:
        actual = answers(path)
    except TidingsError as error:
        return f"refused {error}"[:300].replace("\n", " ")
    except BaseException as error:  # noqa: BLE001 - these are the errors that the test is for
        return f"wrong {type(error).__name__}: {error}"[:300].replace("\n", " ")
    return "same" if actual == expected else "changed"


def forked(path: Path, expected: str) -> str:
    """Return the outcome from a process that may die or hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.write(writing, outcome(path, expected).encode("utf-8", "replace"))
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], WAITING)
    if not ready:
        os.kill(child, signal.SIGKILL)
    text = os.read(reading, 4096).decode("utf-8", "replace") if ready else ""
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if text and status == 0:
        return text
    return f"wrong status {status}" + ("" if ready else f", after {WAITING} s")


def main() -> None:
    """Try all cases."""
    folder, cases = Path(sys.argv[1]), Path(sys.argv[2])
    expected = answers(folder)
    assert forked(folder, expected) == "same"
    place = Path(mkdtemp(dir=cases))
    for file in folder.iterdir():
        if file.is_file():
            os.link(file, place / file.name)
    for case in sorted(cases.glob("*~*")):
        name = case.name.partition("~")[2]
        (place / name).unlink()
        os.link(case, place / name)
        sys.stdout.write(f"{case.name} {forked(place, expected)}\n")
        (place / name).unlink()
        os.link(folder / name, place / name)
    rmtree(place)


if __name__ == "__main__":
    main()
