"""The commands `channel`: list, pause and test channels, send what is waiting, retry failures."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.store import Store
    from tidings.store.channels import Channel

channel_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Manage the channels that deliveries are sent through.",
)
app.add_typer(channel_app, name="channel")

Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="A store, or a config file with channels.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the channel.")]
Owner = Annotated[
    str | None,
    typer.Option(
        "--subscriber",
        metavar="ID",
        help="The owner, if several subscribers have a channel with this id.",
    ),
]


@channel_app.command("list")
def list_channels(place: Place, as_json: AsJson = False) -> None:
    """List channels: how much each has sent, what is waiting, and what was given up and why.

    For example:

        tidings channel list films.db
        tidings channel list pipeline.toml --json
    """
    from tidings.app.channels import ChannelPlace
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console, print_channels

    with existing_store(ChannelPlace.at(place).store) as store:
        forms = [store.channels.describe(channel) for channel in store.channels.find()]
    if as_json:
        for form in forms:
            print_json(form)
    else:
        print_channels(open_console(), forms)


@channel_app.command("failures")
def list_failures(
    place: Place, id: Id, subscriber: Owner = None, limit: int = 100, as_json: AsJson = False
) -> None:
    """List the messages that a channel will retry or has given up, with the reasons.

    For example:

        tidings channel failures pipeline.toml orders
    """
    from tidings.app.output import open_console, plural, print_failures

    with _opened(place, id, subscriber) as (store, channel):
        failures = store.channels.failures(channel.key, limit)
        waiting = store.channels.backlog(channel.key).waiting
    if as_json:
        for failure in failures:
            print_json(failure.to_dict())
        return
    print_failures(open_console(), failures)
    if channel.state == "failing":
        waits = f"{plural(waiting, 'message')} will follow in order"
        typer.echo(f"the channel is failing ({channel.reason}); it is retried, and {waits}")


@channel_app.command()
def pause(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Pause a channel: deliveries wait until it is resumed.

    For example:

        tidings channel pause pipeline.toml orders
    """
    with _opened(place, id, subscriber) as (store, channel):
        store.channels.pause(channel.key, int(time.time() * 1e6))


@channel_app.command()
def resume(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Resume a channel that was paused or disabled, or that is backing off after failures.

    For example:

        tidings channel resume pipeline.toml orders
    """
    with _opened(place, id, subscriber) as (store, channel):
        store.channels.resume(channel.key)


@channel_app.command()
def retry(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Retry all failed messages of a channel, including those that were given up.

    For example:

        tidings channel retry pipeline.toml orders
    """
    from tidings.app.output import plural

    with _opened(place, id, subscriber) as (store, channel):
        count = store.channels.retry(channel.key)
    typer.echo(f"{plural(count, 'message')} to be retried")


@channel_app.command()
def skip(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Skip the next message of a channel, so that those behind it are sent.

    The message is listed among the failures, and `retry` sends it.

    For example:

        tidings channel skip pipeline.toml orders
    """
    with _opened(place, id, subscriber) as (store, channel):
        skipped = store.outbox.skip(channel.key)
    if skipped is None:
        raise TidingsError(f"channel {id} has nothing to send")
    typer.echo(f"given up: event {skipped.event} for {skipped.subscriber}")


@channel_app.command()
def remove(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Remove a channel, together with its progress and its unsent messages.

    For example:

        tidings channel remove films.db orders
    """
    with _opened(place, id, subscriber) as (store, channel):
        store.channels.remove(channel.key)


@channel_app.command()
def send(
    config: Annotated[str, typer.Argument(metavar="FILE.toml", help="The config.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep sending until Ctrl-C or SIGTERM.")
    ] = False,
) -> None:
    """Send what is waiting in the outbox of a config, without running its pipeline.

    A failing channel is retried for a few seconds; one that is backing off after earlier failures
    waits until that is over, unless `tidings channel resume` ends it. Several processes may send
    at once.

    For example:

        tidings channel send pipeline.toml
        tidings channel send pipeline.toml --follow
    """
    from tidings.app.channels import ChannelPlace
    from tidings.app.output.console import open_console
    from tidings.app.output.run_output import print_channel
    from tidings.app.run.sending import DRAIN_S, sending
    from tidings.app.signals import StopActions, stop_on_signals
    from tidings.channels import Dispatcher
    from tidings.channels.registry import declare, openers
    from tidings.store import open_store

    place = ChannelPlace.at(config)
    if not place.declared and (place.run is None or not place.run.sends):
        raise TidingsError(f"{config} declares no channels; add [[channels]] or [[people]]")
    if place.run is not None:
        with stop_on_signals(StopActions()) as stop, sending(place.run, stop) as channels:
            if follow:
                stop.wait()
        for report in channels.reports if channels is not None else ():
            print_channel(open_console(), report)
        return
    with open_store(place.store) as store, stop_on_signals(StopActions()) as stop:
        declare(store, place.declared, int(time.time() * 1e6))
        Dispatcher(store, openers(place.declared)).run(stop, None if follow else DRAIN_S)


@channel_app.command("test")
def try_channel(
    config: Annotated[str, typer.Argument(metavar="FILE.toml", help="The config.")],
    id: Id,
    subscriber: Owner = None,
) -> None:
    """Send a test message through a channel, or to one of the people in the config.

    For example:

        tidings channel test pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace

    kind, target, outcome = ChannelPlace.at(config).send_test(id, subscriber)
    if outcome.reason:
        raise TidingsError(f"channel {id} ({kind}): {outcome.reason}")
    typer.echo(f"channel {id} ({kind}: {target}) accepted a test message")


@contextmanager
def _opened(place: str, id: str, subscriber: str | None) -> Iterator[tuple["Store", "Channel"]]:
    """Open the store of a place, and find one of its channels."""
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store

    with existing_store(ChannelPlace.at(place).store) as store:
        yield store, find_channel(store, id, subscriber)
