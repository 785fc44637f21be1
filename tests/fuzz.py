"""How many cases fuzz suites try: few by default, as many as TIDINGS_FUZZ says otherwise."""

import os


def cases(default: int) -> int:
    """Return the number of cases of one suite."""
    return int(os.getenv("TIDINGS_FUZZ", default))
