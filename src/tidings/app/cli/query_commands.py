"""What files hold: `check`, `match` and `explain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import gathered
from tidings.errors import clipped
from tidings.formats.json_text import read_json
from tidings.model import named_parts
from tidings.score import SCORERS


def _scorer(text: str) -> Any:
    try:
        return named_parts.read(
            SCORERS, "scorer", read_json(text) if text.startswith("{") else text
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise typer.BadParameter(clipped(str(error))) from None


def _file(path: Path | None) -> Path | None:
    if path is None or path == Path("-") or path.is_file():
        return path
    raise typer.BadParameter(f"there is no file '{path}'")


_DASH: Final = "; - is standard input."
Subscriptions = Annotated[
    Path, typer.Argument(help=f"A file{_DASH}", metavar="SUBSCRIPTIONS", callback=_file)
]
Events = Annotated[
    Path | None, typer.Argument(help=f"A file{_DASH}", metavar="EVENTS", callback=_file)
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
    from tidings.app.check.review import review
    from tidings.app.output import screen, show_review

    found = review(files)
    if as_json:
        print_json(found.to_dict())
    else:
        show_review(screen(), found)
    raise typer.Exit(1 if found.problems else 0)


@dataclass(frozen=True)
class Matching:
    """What `match` is asked."""

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
        int | None, typer.Option("-k", min=1, help="At most so many an event. Default: 20 targets.")
    ] = None
    as_json: AsJson = False


@app.command()
@gathered(Matching)
def match(asked: Matching) -> None:
    """Match events against subscriptions, at once and without windows.

    Direction feed: who wants each event, how much, and by which subscriptions. Direction target:
    the k best subscriptions for each event.

    For example:

        cd examples/movies
        tidings match subscriptions.jsonl events.jsonl
        tidings match subscriptions.jsonl --event '{"genre": "horror"}'
        tidings match subscriptions.jsonl events.jsonl --direction target -k 3
    """
    from tidings.app.match_files import Question, answers, read_asked, read_wishes
    from tidings.app.output import screen, show_matches, show_problems

    if (asked.events is None) == (asked.event is None):
        raise typer.BadParameter("give either a file of EVENTS or one --event")
    _only_one_stdin(asked.subscriptions, asked.events)
    wishes = read_wishes(asked.subscriptions, asked.subscribers)
    question = Question(asked.direction, asked.scorer, asked.k)
    events = read_asked(asked.events, asked.event)
    rows = answers(wishes, events, question, asked.events or Path("--event"))
    if asked.as_json:
        for row in rows:
            print_json(row)
    else:
        show_matches(screen(), asked.direction, list(rows))
    show_problems(screen(stderr=True), wishes.problems)
    raise typer.Exit(1 if wishes.problems else 0)


@dataclass(frozen=True, kw_only=True)
class Explaining:
    """What `explain` is asked."""

    subscriptions: Subscriptions
    events: Events = None
    event: Annotated[
        str,
        typer.Option(
            "--event",
            metavar="ID|JSON",
            help="The id of one of EVENTS; without EVENTS the event, or just its attributes.",
        ),
    ]
    subscription: Annotated[str | None, typer.Option(metavar="ID", help="Where does it stand?")] = (
        None
    )
    subscriber: Annotated[str | None, typer.Option(metavar="ID", help="Why did it get it?")] = None
    scorer: ScorerName = None
    subscribers: Subscribers = None
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Among how many best. Default: 20.")
    ] = None
    as_json: AsJson = False


@app.command()
@gathered(Explaining)
def explain(asked: Explaining) -> None:
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
    from tidings.app.match_files import Doubt, explained, read_asked, read_wishes
    from tidings.app.output import screen, show_explanation, show_problems

    if (asked.subscription is None) == (asked.subscriber is None):
        raise typer.BadParameter("give either a --subscription or a --subscriber")
    if asked.subscriber is not None and asked.k is not None:
        raise typer.BadParameter("-k goes with --subscription; a subscriber's policy has its own")
    _only_one_stdin(asked.subscriptions, asked.events)
    wishes = read_wishes(asked.subscriptions, asked.subscribers)
    named, given = (asked.event, None) if asked.events else (None, asked.event)
    doubt = Doubt(named, asked.subscription, asked.subscriber, asked.scorer, asked.k)
    events = read_asked(asked.events, given)
    try:
        found = explained(wishes, events, doubt, asked.events or Path("--event"))
    finally:
        show_problems(screen(stderr=True), wishes.problems)
    if asked.as_json:
        print_json(found.to_dict())
    else:
        show_explanation(screen(), found)
    raise typer.Exit(1 if wishes.problems else 0)


def _only_one_stdin(*files: Path | None) -> None:
    if files.count(Path("-")) > 1:
        raise typer.BadParameter("only one file can be standard input")
