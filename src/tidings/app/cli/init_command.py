"""The command `init`."""

from pathlib import Path
from typing import Annotated

import typer

from tidings.app.cli.app import AsJson, app, print_json


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True)],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files that an earlier init wrote.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a file of data, and write a config and example subscriptions for it.

    FILE is CSV, JSON Lines, JSON, Parquet or Arrow, or a folder of such files; text may be
    compressed with gzip. The first 20,000 rows show which columns are the id and the time, and of
    which types the others are. Both files are written to the current folder and are yours to edit.

    For example:

        tidings init flights.csv
        tidings run flights.toml
    """
    from tidings.app.init import propose, write
    from tidings.app.output import open_console, print_proposal

    proposal = propose(file)
    written = write(proposal, Path(), force=force)
    if as_json:
        print_json({"files": [str(path) for path in written], **proposal.to_dict()})
    else:
        print_proposal(open_console(), proposal, written)
