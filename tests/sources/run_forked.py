"""A run of the command line in a forked process; `kills.py` executes this file with GIVEN."""

import os
import sys

if __name__ == "__main__":
    given = globals()["GIVEN"]
    os.setsid()
    os.environ.clear()
    os.environ.update(given.environment)
    output = os.open(given.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = given.command

    # What goes wrong with these is written to the file.
    from threading import Event
    from typing import Any

    from tidings.app.cli import main
    from tidings.app.run.local_messages import BatchPlan, LocalProgress

    finish = LocalProgress.finish

    def finish_or_stay(progress: LocalProgress, planned: BatchPlan, state: dict[str, Any]) -> None:
        if given.stays_after is not None and planned.number > given.stays_after:
            Event().wait()  # until the kill, which the test could otherwise be too late for
        finish(progress, planned, state)

    LocalProgress.finish = finish_or_stay  # type: ignore[method-assign, assignment]
    main()
