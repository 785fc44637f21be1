"""What goes on: `run`."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import gathered
from tidings.errors import TidingsError

STOPPING = "Stopping after this batch; once more stops at once"


@dataclass(frozen=True)
class Running:
    """What `run` is asked."""

    file: Annotated[Path, typer.Argument(metavar="FILE.toml", exists=True, dir_okay=False)]
    engine: Annotated[
        Literal["local", "spark"] | None, typer.Option(help="Instead of the config's.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew: forget earlier runs.")] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check everything, print the plan, run not.")
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --dry-run: Spark's own plan, too.")
    ] = False
    packages: Annotated[
        str | None,
        typer.Option(
            metavar="MAVEN", help="Jars for Spark, by their coordinates, as for spark-submit."
        ),
    ] = None
    log: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="A line for each batch on standard error, also on a terminal."),
    ] = None
    as_json: AsJson = False


@app.command()
@gathered(Running)
def run(asked: Running) -> None:
    """Run a config: events from a source, through subscriptions and policies, into a sink.

    On Spark a run takes what is new and goes on where the last one stopped; in one process (local)
    it takes all files, and replaces what was there. Windows that are open at the end stay open
    until later events close them. With a trigger in [stream], it runs until it is stopped: Ctrl-C
    or SIGTERM end it after the batch that it is in, with status 0; a second one at once, with 130.

    For example:

        tidings run examples/movies/pipeline.toml --engine local
        tidings run examples/movies/pipeline.toml --dry-run
        tidings run examples/store/pipeline.toml --log json

    docs/pipeline.md tells of every key of a config.
    """
    from tidings.app.config import load_config

    config = load_config(asked.file)
    if asked.engine:
        config = replace(config, engine=asked.engine)
    if asked.packages:
        jars = {"spark.jars.packages": asked.packages}
        config = replace(config, settings={**config.settings, **jars})
    if config.engine == "spark" and find_spec("pyspark") is None:
        raise TidingsError(
            "Spark is not installed: type pip install 'tidings[spark]', or choose --engine local"
        )
    (_sketch if asked.dry_run else _run)(asked, config)


def _run(asked: Running, config: Any) -> None:
    from tidings.app.output import screen, show_account, show_plan, teller
    from tidings.app.run.plan import make_plan
    from tidings.app.run.stopping import Stop
    from tidings.app.run.summary import Account

    began, console = time.perf_counter(), screen(quiet=asked.as_json)
    plan = make_plan(config, fresh=asked.fresh)
    show_plan(console, plan)
    progress = screen(stderr=True, quiet=asked.as_json and asked.log is None)
    batches = []
    with teller(progress, asked.log, "Spark is at work; its start takes a while") as telling:
        stop = Stop(lambda: telling.say(STOPPING), lambda: _end_at_once(progress))
        for batch in _engine(config.engine)(plan, stop):
            telling.batch(batch)
            batches.append(batch)
    account = Account.of(plan, batches, time.perf_counter() - began)
    if asked.as_json:
        print_json(account.to_dict())
    show_account(console, account)


def _end_at_once(console: Any) -> None:
    """End this process without any tidying up, which could wait for Spark."""
    console.show_cursor(True)
    console.file.flush()
    os._exit(130)


def _sketch(asked: Running, config: Any) -> None:
    from tidings.app.output import screen, show_sketch
    from tidings.app.output.run_output import sketch_rows
    from tidings.app.run.plan import read_plan

    plan = read_plan(config)
    plan.folder.check(fresh=asked.fresh)
    fields, logical = _seen_by_spark(plan)
    if asked.as_json:
        form: dict[str, Any] = {**dict(sketch_rows(plan, ())), "columns": dict(fields)}
        print_json({**form, "plan": logical} if asked.verbose else form)
        return
    console = screen()
    show_sketch(console, plan, fields)
    if asked.verbose and logical:
        console.print(logical, markup=False, highlight=False, soft_wrap=True)


def _seen_by_spark(plan: Any) -> tuple[tuple[tuple[str, str], ...], str]:
    if plan.config.engine == "local":
        return (), ""
    from tidings.app.run.spark import sketch

    found = sketch(plan)
    return found.columns, found.plan


def _engine(name: str) -> Callable[..., Iterator[Any]]:
    """Load an engine: Spark takes seconds."""
    if name == "local":
        from tidings.app.run.local import run_local

        return run_local
    from tidings.app.run.spark import run_spark

    return run_spark
