"""Processor time covers children, those that run and those that have ended."""

import subprocess
import sys

from tidings.lab.capacity.processor_time import processor_seconds

BURN = """
import time, sys
while time.process_time() < 0.5: pass
print("burnt", flush=True)
sys.stdin.read()
"""


def test_children_count_while_they_run_and_afterwards() -> None:
    before = processor_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "burnt\n"
    running = processor_seconds()
    child.communicate()
    assert running - before >= 0.45
    assert processor_seconds() - before >= 0.45
