"""A query stops on a full disk, names the folder, and resumes once there is space."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.kill.process import PATIENCE_S, Pipeline, environ
from tests.kill.stream import write_stream

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
FULL = Path(__file__).with_name("full.py")
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]


def mounts(folder: Path) -> bool:
    """Return whether this system lets a process mount a private folder."""
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    return bool(shutil.which("unshare")) and not subprocess.run(command, check=False).returncode


def test_a_full_folder_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    if not mounts(tmp_path):
        pytest.skip("this system lets no process have mounts of its own")
    expected = write_stream(tmp_path, files=12)
    given = Pipeline(tmp_path, []).plan(files=6)
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, str(FULL), str(tmp_path), json.dumps(given)],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    messages = json.loads(done.stdout)
    for place in ("index", "local", "checkpoint", "parquet"):
        assert f"{tmp_path / place}" in messages[place]
        assert "has no space left" in messages[place]
        assert "free some space and run again" in messages[place]
    assert f"{tmp_path / 'store'}" in messages["store"]
    assert "disk" in messages["store"]
    with open_store(tmp_path / "s.db") as store:
        expected.check(store)
    rows = pq.read_table(tmp_path / "out" / "deliveries").to_pylist()
    keys = sorted((row["subscriber"], row["event"], row["sequence"]) for row in rows)
    assert keys == sorted((d.subscriber, d.event, d.sequence) for d in expected.deliveries)
