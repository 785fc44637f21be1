"""The number of cases of fuzz suites: small by default, half of that in CI, or TIDINGS_FUZZ.

TIDINGS_FUZZ_FROM is the number of the first one, so that many cases can be tried in parts.
"""

import os
from typing import Final

FIRST: Final = int(os.getenv("TIDINGS_FUZZ_FROM", "0"))


def cases(default: int) -> int:
    """Return the number of cases of one suite."""
    # CI tries the same cases every time.
    few = default // 2 if os.getenv("CI") else default
    return int(os.getenv("TIDINGS_FUZZ", few))
