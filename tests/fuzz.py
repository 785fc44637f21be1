"""The number of cases of fuzz suites: small by default, or as set by TIDINGS_FUZZ.

TIDINGS_FUZZ_FROM is the number of the first one, so that many cases can be tried in parts.
"""

import os
from typing import Final

FIRST: Final = int(os.getenv("TIDINGS_FUZZ_FROM", "0"))


def cases(default: int) -> int:
    """Return the number of cases of one suite."""
    return int(os.getenv("TIDINGS_FUZZ", default))
