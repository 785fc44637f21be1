"""The commands on files: `check`, `match` and `explain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import takes
from tidings.errors import clipped
from tidings.formats.json_text import read_json
from tidings.formats.redaction import shown_safely
from tidings.model import named_parts
from tidings.score import SCORERS


def _read_scorer(text: str) -> Any:
    try:
        form = read_json(text) if text.startswith("{") else text
        return named_parts.read(SCORERS, "scorer", form)
    except (ValueError, TypeError, RecursionError) as error:
        raise typer.BadParameter(clipped(str(error))) from None


def _existing_file(path: Path | None) -> Path | None:
    try:
        if path is None or path == Path("-") or path.is_file():
            return path
    except OSError as error:  # a name that is too long, or a closed folder
        raise typer.BadParameter(f"file {shown_safely(str(path))}: {error.strerror}") from None
    raise typer.BadParameter(f"file {shown_safely(str(path))} does not exist")


_FILE: Final = "A file; - is standard input."
Subscriptions = Annotated[
    Path, typer.Argument(help=_FILE, metavar="SUBSCRIPTIONS", callback=_existing_file)
]
Events = Annotated[
    Path | None, typer.Argument(help=_FILE, metavar="EVENTS", callback=_existing_file)
]
ScorerName = Annotated[
    Any,
    typer.Option(
        "--scorer",
        metavar="NAME",
        parser=_read_scorer,
        help=f"{', '.join(SCORERS)}, or a JSON form. Default: exact for targets; for feeds the "
        "subscriber's own, or preference.",
    ),
]
Subscribers = Annotated[
    Path | None,
    typer.Option(
        help="A file of subscribers, with their scorers and preferences.",
        exists=True,
        dir_okay=False,
    ),
]


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", exists=True)],
    as_json: AsJson = False,
) -> None:
    """Check configs, subscriptions, subscribers and events, separately and against each other.

    A config (.toml) is checked with all files that it names. The kind of any other file is detected
    from its fields.

    For example:

        tidings check examples/movies/pipeline.toml
    """
    from tidings.app.check.review import review
    from tidings.app.output import open_console, print_review

    result = review(files)
    if as_json:
        print_json(result.to_dict())
    else:
        print_review(open_console(), result)
    raise typer.Exit(1 if result.problems else 0)


@dataclass(frozen=True)
class MatchOptions:
    """Arguments and options of `match`."""

    subscriptions: Subscriptions
    events: Events = None
    event: Annotated[
        str | None,
        typer.Option("--event", metavar="JSON", help="One event, or just its attributes."),
    ] = None
    direction: Literal["feed", "target"] = "feed"
    scorer: ScorerName = None
    subscribers: Subscribers = None
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="At most k matches per event. Default: 20 for targets."),
    ] = None
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Print on standard error which index answered, and why."),
    ] = False
    as_json: AsJson = False


@app.command()
@takes(MatchOptions)
def match(options: MatchOptions) -> None:
    """Match events against subscriptions, one by one and without windows.

    Direction feed: the subscribers that want each event, with scores and matching subscriptions.
    Direction target: the k best subscriptions for each event.

    For example:

        cd examples/movies
        tidings match subscriptions.jsonl events.jsonl
        tidings match subscriptions.jsonl --event '{"genre": "horror"}'
        tidings match subscriptions.jsonl events.jsonl --direction target -k 3
    """
    from tidings.app.match_files import (
        MatchQuery,
        diagnose_matches,
        match_events,
        read_events_or_event,
        read_inputs,
    )
    from tidings.app.output import open_console, print_diagnosis, print_matches, print_problems
    from tidings.rank.matcher import MatchPlan

    if (options.events is None) == (options.event is None):
        raise typer.BadParameter("pass either a file of EVENTS or one --event")
    _only_one_stdin(options.subscriptions, options.events)
    inputs = read_inputs(options.subscriptions, options.subscribers)
    query = MatchQuery(options.direction, options.scorer, options.k)
    events = read_events_or_event(options.events, options.event)
    plans = list[MatchPlan]()
    source = options.events or Path("--event")
    rows = match_events(inputs, events, query, source, plans.append)
    if options.as_json:
        for row in rows:
            print_json(row)
    else:
        listed = list(rows)
        print_matches(open_console(), options.direction, listed)
        if not listed:
            print_diagnosis(open_console(stderr=True), diagnose_matches(inputs, query))
    for plan in plans if options.plan else ():
        typer.echo(plan, err=True)
    print_problems(open_console(stderr=True), inputs.problems)
    raise typer.Exit(1 if inputs.problems else 0)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Arguments and options of `explain`."""

    subscriptions: Subscriptions
    events: Events = None
    event: Annotated[
        str,
        typer.Option(
            "--event",
            metavar="ID|JSON",
            help="The id of one of EVENTS; without EVENTS, the event or just its attributes.",
        ),
    ]
    subscription: Annotated[
        str | None, typer.Option(metavar="ID", help="Explain its position for the event.")
    ] = None
    subscriber: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Explain why it did or did not get the event."),
    ] = None
    scorer: ScorerName = None
    subscribers: Subscribers = None
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="The size of the top-k. Default: 20.")
    ] = None
    as_json: AsJson = False


@app.command()
@takes(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    r"""Explain how a subscription ranks for an event, or why a subscriber did or did not get it.

    With --subscription: the predicates that hold, the score, the position, and how much it lacks to
    be among the k best. With --subscriber: the result of each of its subscriptions, and whether the
    event was delivered when all EVENTS were published in the order of their times. With a config
    instead of SUBSCRIPTIONS, its events, subscribers and policies are used.

    For example:

        cd examples/movies
        tidings explain pipeline.toml --event film-02 --subscriber ada
        tidings explain subscriptions.jsonl --event '{"genre": "horror"}' \
            --subscription bruno-horror -k 3
        tidings explain subscriptions.jsonl events.jsonl --event film-02 \
            --subscriber ada --subscribers subscribers.jsonl
    """
    from tidings.app.match_files import (
        ExplainQuery,
        explain_event,
        read_events_or_event,
        read_inputs,
    )
    from tidings.app.output import open_console, print_explanation, print_problems

    if (options.subscription is None) == (options.subscriber is None):
        raise typer.BadParameter("pass either --subscription or --subscriber")
    if options.subscriber is not None and options.k is not None:
        raise typer.BadParameter("-k requires --subscription; a subscriber's policy has its own k")
    if options.subscriptions.suffix == ".toml":
        _explain_run(options)
        return
    _only_one_stdin(options.subscriptions, options.events)
    inputs = read_inputs(options.subscriptions, options.subscribers)
    event_id, event = (options.event, None) if options.events else (None, options.event)
    query = ExplainQuery(
        event_id, options.subscription, options.subscriber, options.scorer, options.k
    )
    events = read_events_or_event(options.events, event)
    try:
        explanation = explain_event(inputs, events, query, options.events or Path("--event"))
    finally:
        print_problems(open_console(stderr=True), inputs.problems)
    if options.as_json:
        print_json(explanation.to_dict())
    else:
        print_explanation(open_console(), explanation)
    raise typer.Exit(1 if inputs.problems else 0)


def _explain_run(options: ExplainOptions) -> None:
    from tidings.app.config import load_config
    from tidings.app.output import open_console, print_explanation
    from tidings.app.run.local import explain_run
    from tidings.app.run.plan import read_plan

    if options.subscriber is None or options.events or options.subscribers or options.scorer:
        raise typer.BadParameter("with a config, pass only --subscriber and the id of an --event")
    plan = read_plan(load_config(options.subscriptions))
    explanation = explain_run(plan, options.subscriber, options.event)
    if options.as_json:
        print_json(explanation.to_dict())
    else:
        print_explanation(open_console(), explanation)


def _only_one_stdin(*files: Path | None) -> None:
    if files.count(Path("-")) > 1:
        raise typer.BadParameter("only one file can be standard input")
