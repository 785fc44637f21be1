"""Times of calls that take turns, and of child processes, running or ended."""

import subprocess
import sys
from functools import partial

from tidings.lab.stopwatch import least_times, machine_seconds, processor_seconds


def test_calls_take_turns_after_a_first_round_that_is_not_measured() -> None:
    order: list[str] = []
    times = least_times({name: partial(order.append, name) for name in "ab"}, 3)
    assert order == [*"ab" * 4]
    assert [*times] == ["a", "b"]
    assert all(0 <= time < float("inf") for time in times.values())


BURN = """
import time, sys
while time.process_time() < 0.5: pass
print("burnt", flush=True)
sys.stdin.read()
"""


def test_children_count_while_they_run_and_afterwards() -> None:
    before, machine_before = processor_seconds(), machine_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "burnt\n"
    running = processor_seconds()
    child.communicate()
    assert running - before >= 0.45
    assert processor_seconds() - before >= 0.45
    assert machine_seconds() - machine_before >= 0.45
