"""What goes on: `run`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tidings.cli.app import AsJson, app, print_json
from tidings.errors import TidingsError

OneEngine = Annotated[
    Literal["local", "spark"] | None, typer.Option(help="Instead of the config's.")
]


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", exists=True, dir_okay=False)],
    engine: OneEngine = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew: forget earlier runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a config: events from files, through subscriptions and policies, into a folder.

    On Spark a run takes the files that are new and goes on where the last one stopped; in one
    process (local) it takes all files, and replaces what was there. Windows that are open at the
    end stay open until later events close them.

    For example:

        tidings run examples/movies/pipeline.toml --engine local
    """
    from tidings.config import load_config
    from tidings.report import screen, show_account, show_batch, show_plan, waiting
    from tidings.run.account import Account
    from tidings.run.plan import make_plan

    began, console = time.perf_counter(), screen(quiet=as_json)
    config = load_config(file)
    config = replace(config, engine=engine) if engine else config
    start = _engine(config.engine)
    plan = make_plan(config, fresh=fresh)
    show_plan(console, plan)
    batches = []
    with waiting(console, plan):
        for batch in start(plan):
            show_batch(console, batch)
            batches.append(batch)
    account = Account.of(plan, batches, time.perf_counter() - began)
    if as_json:
        print_json(account.to_dict())
    show_account(console, account)


def _engine(name: str) -> Callable[[Any], Iterator[Any]]:
    """Load an engine: Spark takes seconds, and may not be installed."""
    if name == "local":
        from tidings.run.local import run_local

        return run_local
    if find_spec("pyspark") is None:
        raise TidingsError(
            "Spark is not installed: type pip install 'tidings[spark]', or choose --engine local"
        )
    from tidings.run.spark import run_spark

    return run_spark
