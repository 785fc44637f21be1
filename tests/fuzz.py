"""The number of cases of fuzz suites: small by default, or as set by TIDINGS_FUZZ."""

import os


def cases(default: int) -> int:
    """Return the number of cases of one suite."""
    return int(os.getenv("TIDINGS_FUZZ", default))
