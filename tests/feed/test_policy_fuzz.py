"""Random policies are refused with a TidingsError, or all kinds of feeds deliver the same.

Each batch runs in a child process with limited memory and time.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.feed import policy_cases
from tests.fuzz import cases

ROOT: Final = Path(__file__).parents[2]
BATCH: Final = 2_000


def in_child(first: int, last: int) -> str:
    """Try cases in a child process; return what went wrong with the last one, or nothing."""
    script = Path(policy_cases.__file__)
    child = subprocess.run(
        [sys.executable, str(script), "0", str(first), str(last)],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode == 0:
        return ""
    case = child.stdout.split()[-1] if child.stdout else "none"
    form = policy_cases.form_of(random.Random(f"0-{case}"))
    return f"case {case}: {json.dumps(form)}: {child.returncode}: {child.stderr[-2_000:]}"


@pytest.mark.fuzz
def test_policies_are_refused_or_deliver_the_same() -> None:
    count = cases(400)
    parts = [(first, min(count, first + BATCH)) for first in range(0, count, BATCH)]
    failures = [failure for part in parts if (failure := in_child(*part))]
    assert not failures, "\n".join(failures)
