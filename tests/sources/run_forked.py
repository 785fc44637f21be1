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

    from tidings.app.cli import main  # what goes wrong with it is written to the file

    main()
