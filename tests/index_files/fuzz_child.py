"""Tries changed index files, each in a process of its own: `fuzz_child.py FOLDER CASES`.

Writes a line for each case: its file, what came of it (refused, same, changed or wrong), and why.
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
"""Seconds of its own that a case may work, and those that it may take on a busy machine."""
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
    """Ask all that can be asked of the newest version in a folder."""
    forget()
    folder = IndexFolder(path)
    version = folder.newest()
    served = serve(folder, version)
    wanted = served.match_many(EVENTS)
    names = served.names.take(wanted.subscribers).to_pylist()
    ids = served.ids.take(wanted.matched).to_pylist()
    spans = np.split(np.arange(len(ids)), wanted.matched_starts[1:-1])
    matched = [tuple(ids[at] for at in each) for each in spans] if names else []
    events = np.repeat(np.arange(len(EVENTS)), np.diff(wanted.starts)).tolist()
    found = sorted(zip(events, names, wanted.ranks.tolist(), matched, strict=True))
    best = [served.top_many(EVENTS, 5, each) for each in (Exact(), Relaxed())]
    roster = FolderPolicies(folder, version)
    policies = [repr(roster.policy(f"u{n}")) for n in range(60)]
    changed = roster.changed_since(roster.version - 1)
    [part_manifest] = folder.manifest(version).parts
    everybody = [
        (each.name, len(each.subscriptions)) for each in current_bundles(path, part_manifest)
    ]
    return repr((found, best, policies, sorted(changed or ()), everybody))


def outcome(path: Path, expected: str) -> str:
    """Tell what comes of a folder."""
    try:
        found = answers(path)
    except TidingsError as error:
        return f"refused {error}"[:300].replace("\n", " ")
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return f"wrong {type(error).__name__}: {error}"[:300].replace("\n", " ")
    return "same" if found == expected else "changed"


def forked(path: Path, expected: str) -> str:
    """Tell the same from a process that may die or hang."""
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
    said = os.read(reading, 4096).decode("utf-8", "replace") if ready else ""
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if said and status == 0:
        return said
    return f"wrong status {status}" + ("" if ready else f", after {WAITING} s")


def main() -> None:
    """Try all cases."""
    folder, cases = Path(sys.argv[1]), Path(sys.argv[2])
    expected = answers(folder)
    assert forked(folder, expected) == "same"
    place = Path(mkdtemp(dir=cases))
    for each in folder.iterdir():
        if each.is_file():
            os.link(each, place / each.name)
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
