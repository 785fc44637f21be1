"""A supervised process is started again when it dies, and ends with its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.app.serve.supervise import Supervised
from tidings.store import NewPublication, Store, open_store


def publish(store: Store, name: str) -> None:
    """Publish an event, and wait until the pipeline has taken it."""
    store.publications.accept([NewPublication(Event(name, {}, 0), timed=False)], 0)
    eventually(lambda: store.publications.last() == store.log.last().upto)


def test_a_pipeline_that_is_killed_is_started_again(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        store.catalogue.put({"id": "ada"}, Subscription("s1", "ada", where="true"))
        command = ["serve", address, "--only", "pipeline", "--with-parent", "--engine", "local"]
        pipeline = Supervised(command)
        try:
            publish(store, "e0")
            first = pipeline.pid
            os.kill(first, signal.SIGKILL)
            eventually(lambda: pipeline.pid != first)
            publish(store, "e1")
        finally:
            pipeline.stop()
        assert [notification.event for notification in store.notifications.after("ada")] == [
            "e0",
            "e1",
        ]
        assert store.log.checkpoint() is not None


PARENT = """
import sys, time
from tidings.app.serve.supervise import Supervised
command = ["--only", "pipeline", "--with-parent", "--engine", "local"]
child = Supervised(["serve", sys.argv[1], *command])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "t.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    eventually(lambda: not _is_running(child))


def _is_running(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


FAILING = """
from tidings.app.serve.supervise import on_end_of_parent
on_end_of_parent(lambda: None)
raise SystemExit(3)
"""


def test_a_child_that_fails_ends_as_it_says_though_its_parent_lives() -> None:
    command, pipe = [sys.executable, "-c", FAILING], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True) as child:
        assert child.stderr is not None
        assert child.stderr.read() == ""
        assert child.wait() == 3
