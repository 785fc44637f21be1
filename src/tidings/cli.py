"""The command line: parses, calls, prints."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from tidings import __version__, parts
from tidings.errors import TidingsError
from tidings.score import SCORERS


class Commands(TyperGroup):
    """Commands whose refusals are a sentence on standard error, and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (TidingsError, OSError) as error:
            errors = Console(stderr=True)
            errors.print(Text("error: ", "bold red").append(str(error), "none"), soft_wrap=True)
            raise typer.Exit(1) from None


def _scorer(text: str) -> Any:
    try:
        return parts.read(SCORERS, "scorer", json.loads(text) if text.startswith("{") else text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _file(path: Path | None) -> Path | None:
    if path is None or path == Path("-") or path.is_file():
        return path
    raise typer.BadParameter(f"there is no file '{path}'")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


app: Final = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit status: 0 done, 1 failed or something is wrong, 2 wrong use.",
)
DEMO: Final = Path("tidings-demo")
_DASH: Final = "; - is standard input."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words and tables.")]
Subscriptions = Annotated[
    Path, typer.Argument(help=f"A file{_DASH}", metavar="SUBSCRIPTIONS", callback=_file)
]
Events = Annotated[
    Path | None, typer.Argument(help=f"A file{_DASH}", metavar="EVENTS", callback=_file)
]
OneEvent = Annotated[
    str | None, typer.Option("--event", metavar="JSON", help="One event, or just its attributes.")
]
AskedEvent = Annotated[
    str,
    typer.Option(
        "--event",
        metavar="ID|JSON",
        help="The id of one of EVENTS; without EVENTS the event, or just its attributes.",
    ),
]
ScorerName = Annotated[
    Any,
    typer.Option(
        "--scorer",
        metavar="NAME",
        parser=_scorer,
        help=f"{', '.join(SCORERS)}, or a form. Default: exact for targets; for feeds the "
        "subscriber's own, else preference.",
    ),
]
Subscribers = Annotated[
    Path | None,
    typer.Option(
        help="A file of subscribers: their scorers and preferences.", exists=True, dir_okay=False
    ),
]
OneEngine = Annotated[
    Literal["local", "spark"] | None, typer.Option(help="Instead of the config's.")
]
Best = Annotated[
    int | None, typer.Option("-k", min=1, help="At most so many an event. Default: 20 targets.")
]


@app.callback()
def tidings(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ranked publish/subscribe.

    The k best events for each subscriber, and the k best subscriptions for each event.
    """


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", exists=True)],
    as_json: AsJson = False,
) -> None:
    """Check configs, subscriptions, subscribers and events, alone and against each other.

    A config (.toml) is checked with all the files that it names. What any other file holds is seen
    from its fields.

    For example:

        tidings check examples/movies/pipeline.toml
    """
    from tidings.audit.review import review
    from tidings.report import screen, show_review

    found = review(files)
    if as_json:
        _print_json(found.to_dict())
    else:
        show_review(screen(), found)
    raise typer.Exit(1 if found.problems else 0)


@app.command()
def match(  # noqa: PLR0913, PLR0917
    subscriptions: Subscriptions,
    events: Events = None,
    event: OneEvent = None,
    direction: Literal["feed", "target"] = "feed",
    scorer: ScorerName = None,
    subscribers: Subscribers = None,
    k: Best = None,
    as_json: AsJson = False,
) -> None:
    """Match events against subscriptions, at once and without windows.

    Direction feed: who wants each event, how much, and by which subscriptions. Direction target:
    the k best subscriptions for each event.

    For example:

        cd examples/movies
        tidings match subscriptions.jsonl events.jsonl
        tidings match subscriptions.jsonl --event '{"genre": "horror"}'
        tidings match subscriptions.jsonl events.jsonl --direction target -k 3
    """
    from tidings.lookup import Question, answers, read_asked, read_wishes
    from tidings.report import screen, show_matches, show_problems

    if (events is None) == (event is None):
        raise typer.BadParameter("give either a file of EVENTS or one --event")
    _only_one_stdin(subscriptions, events)
    wishes = read_wishes(subscriptions, subscribers)
    question = Question(direction, scorer, k)
    rows = answers(wishes, read_asked(events, event), question, events or Path("--event"))
    if as_json:
        for row in rows:
            _print_json(row)
    else:
        show_matches(screen(), direction, list(rows))
    show_problems(screen(stderr=True), wishes.problems)
    raise typer.Exit(1 if wishes.problems else 0)


@app.command()
def explain(  # noqa: PLR0913
    subscriptions: Subscriptions,
    events: Events = None,
    *,
    event: AskedEvent,
    subscription: Annotated[
        str | None, typer.Option(metavar="ID", help="Where does it stand?")
    ] = None,
    subscriber: Annotated[str | None, typer.Option(metavar="ID", help="Why did it get it?")] = None,
    scorer: ScorerName = None,
    subscribers: Subscribers = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Among how many best. Default: 20.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    r"""Explain an event: where a subscription stands for it, or why a subscriber got it or not.

    With --subscription: which of its predicates hold, its score and its place, and what it lacks
    for the k best. With --subscriber: how each of its subscriptions saw the event, and whether
    it was delivered when all EVENTS were published in order of their times.

    For example:

        cd examples/movies
        tidings explain subscriptions.jsonl --event '{"genre": "horror"}' \
            --subscription bruno-horror -k 3
        tidings explain subscriptions.jsonl events.jsonl --event film-02 \
            --subscriber ada --subscribers subscribers.jsonl
    """
    from tidings.lookup import Doubt, explained, read_asked, read_wishes
    from tidings.report import screen, show_explanation, show_problems

    if (subscription is None) == (subscriber is None):
        raise typer.BadParameter("give either a --subscription or a --subscriber")
    if subscriber is not None and k is not None:
        raise typer.BadParameter("-k goes with --subscription; a subscriber's policy has its own")
    _only_one_stdin(subscriptions, events)
    wishes = read_wishes(subscriptions, subscribers)
    doubt = Doubt(event if events else None, subscription, subscriber, scorer, k)
    asked = read_asked(events, None if events else event)
    try:
        found = explained(wishes, asked, doubt, events or Path("--event"))
    finally:
        show_problems(screen(stderr=True), wishes.problems)
    if as_json:
        _print_json(found.to_dict())
    else:
        show_explanation(screen(), found)
    raise typer.Exit(1 if wishes.problems else 0)


def _only_one_stdin(*files: Path | None) -> None:
    if files.count(Path("-")) > 1:
        raise typer.BadParameter("only one file can be standard input")


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
        _print_json(account.to_dict())
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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to write to.")] = DEMO,
    movies: Annotated[
        int | None, typer.Option(min=1, help="How many of the 58,788 films. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch ranked publish/subscribe on a real movie catalogue, in about two minutes.

    The films are published one after the other through Spark, to subscribers with different tastes
    and policies.

    For example:

        tidings demo --movies 5000
    """
    from tidings.demo import run_demo

    raise typer.Exit(run_demo(out, movies, json_lines=as_json))


@app.command()
def bench(
    name: Annotated[
        str | None, typer.Argument(help="One bench only; see bench/README.md.", metavar="NAME")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, in a minute or two; writes nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the indexes beside their peers, side by side in one run.

    Prints tables, and writes them with the machine, its load and the commit to bench/results. The
    benches and their results are part of the source tree; they are not installed.

    For example:

        tidings bench interval --quick
    """
    from tidings.bench import run_bench

    flags = [flag for flag, given in {"--quick": quick, "--json": as_json}.items() if given]
    raise typer.Exit(run_bench(name, flags))


def _print_json(form: dict[str, Any]) -> None:
    typer.echo(json.dumps(form, ensure_ascii=False))


def main() -> None:
    """Run the command that is asked for."""
    app(prog_name="tidings")


if __name__ == "__main__":
    main()
