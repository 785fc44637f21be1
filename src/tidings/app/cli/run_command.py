"""The command `run`."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import takes
from tidings.errors import TidingsError

STARTING = "Starting Spark and processing the first batch"
STOPPING = "Stopping after this batch; press Ctrl-C again to stop at once"


@dataclass(frozen=True)
class RunOptions:
    """Arguments and options of `run`."""

    file: Annotated[Path, typer.Argument(metavar="FILE.toml", exists=True, dir_okay=False)]
    engine: Annotated[
        Literal["local", "spark"] | None, typer.Option(help="Override the engine of the config.")
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: discard the output of earlier runs.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check everything, and print the plan only.")
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --dry-run: print Spark's plan as well.")
    ] = False
    packages: Annotated[
        str | None,
        typer.Option(metavar="MAVEN", help="Maven coordinates of jars, as for spark-submit."),
    ] = None
    log: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Print a line per batch on standard error, even on a terminal."),
    ] = None
    as_json: AsJson = False


@app.command()
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Run a config: events from a source, through subscriptions and policies, into a sink.

    On Spark, a run processes new events and resumes where the last run stopped. In one process
    (local), it processes all files and replaces earlier output. Windows that are open at the end
    stay open until later events close them. With a trigger in [stream], the run continues until it
    is stopped: Ctrl-C or SIGTERM ends it after the current batch, with status 0; a second one ends
    it at once, with status 130.

    For example:

        tidings run examples/movies/pipeline.toml --engine local
        tidings run examples/movies/pipeline.toml --dry-run
        tidings run examples/store/pipeline.toml --log json

    docs/pipeline.md describes every key of a config.
    """
    from tidings.app.config import load_config

    config = load_config(options.file)
    if options.engine:
        config = replace(config, engine=options.engine)
    if options.packages:
        jars = {"spark.jars.packages": options.packages}
        config = replace(config, settings={**config.settings, **jars})
    if config.engine == "spark" and find_spec("pyspark") is None:
        raise TidingsError(
            "Spark is not installed: run pip install 'tidings[spark]', or use --engine local"
        )
    (_dry_run if options.dry_run else _run)(options, config)


def _run(options: RunOptions, config: Any) -> None:
    from tidings.app.output import (
        RunView,
        batch_line,
        open_console,
        open_reporter,
        print_plan,
        print_summary,
    )
    from tidings.app.run.plan import make_plan
    from tidings.app.run.sending import sending
    from tidings.app.run.summary import RunSummary
    from tidings.app.signals import StopActions

    began, console = time.perf_counter(), open_console(quiet=options.as_json)
    plan = make_plan(config, fresh=options.fresh)
    print_plan(console, plan)
    summary = RunSummary(plan)
    progress = open_console(stderr=True, quiet=options.as_json and options.log is None)
    with open_reporter(progress, RunView(summary), options.log) as reporter:
        if progress.is_terminal and options.log is None:
            reporter.message(STARTING)
        stop = StopActions(lambda: reporter.message(STOPPING), lambda: _exit_at_once(progress))

        def warn(diagnosis: Any) -> None:
            reporter.message(f"so far: {diagnosis.with_renamed(config.renamed)}", "warning")

        try:
            with sending(config) as channels:
                for batch in _engine(config.engine)(plan, stop, warn):
                    summary.add(batch)
                    reporter.batch(batch_line(batch), batch.to_dict())
            summary.channels = channels.reports if channels else ()
        except TidingsError as error:
            if options.log != "json":
                raise
            reporter.message(str(error), "error")
            raise typer.Exit(1) from None
    summary.finish(time.perf_counter() - began)
    if options.as_json:
        print_json(summary.to_dict())
    print_summary(console, summary)


def _exit_at_once(console: Any) -> None:
    """End this process without cleanup, which could wait for Spark."""
    console.show_cursor(True)
    console.file.flush()
    os._exit(130)


def _dry_run(options: RunOptions, config: Any) -> None:
    from tidings.app.output import dry_run_rows, open_console, print_dry_run
    from tidings.app.run.plan import read_plan

    plan = read_plan(config)
    plan.folder.check(fresh=options.fresh)
    columns, spark_plan = _plan_on_spark(plan)
    if options.as_json:
        form: dict[str, Any] = {**dict(dry_run_rows(plan, ())), "columns": dict(columns)}
        print_json({**form, "plan": spark_plan} if options.verbose else form)
        return
    console = open_console()
    print_dry_run(console, plan, columns)
    if options.verbose and spark_plan:
        console.print(spark_plan, markup=False, highlight=False, soft_wrap=True)


def _plan_on_spark(plan: Any) -> tuple[tuple[tuple[str, str], ...], str]:
    if plan.config.engine == "local":
        return (), ""
    from tidings.app.run.spark import dry_run

    result = dry_run(plan)
    return result.columns, result.plan


def _engine(name: str) -> Callable[..., Iterator[Any]]:
    """Import an engine when it is used: importing Spark takes seconds."""
    if name == "local":
        from tidings.app.run.local import run_local

        return run_local
    from tidings.app.run.spark import run_spark

    return run_spark
