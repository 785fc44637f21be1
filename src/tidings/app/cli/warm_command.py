"""The command `warm`."""

from dataclasses import asdict

import typer

from tidings.app.cli.app import AsJson, app, print_json


@app.command()
def warm(as_json: AsJson = False) -> None:
    """Compile the kernels for this machine now, instead of when they are first used.

    They are kept in the user's cache folder, or in the folder that the environment variable
    NUMBA_CACHE_DIR names: for images of containers, read-only installations and workers of Spark.

    For example:

        NUMBA_CACHE_DIR=/opt/kernels tidings warm
    """
    from tidings.app.warm import WarmCache, warm_up

    for step in warm_up():
        if not as_json:
            typer.echo(str(step))
        elif isinstance(step, WarmCache):
            print_json(asdict(step) | {"folder": str(step.folder)})
