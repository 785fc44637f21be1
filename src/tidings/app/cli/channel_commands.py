"""The commands `channel`: look at channels, pause them, send what waits or has failed."""

import time
from typing import Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.errors import TidingsError

channel_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look at the channels that deliveries are sent through, pause them, and retry.",
)
app.add_typer(channel_app, name="channel")

Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="A store, or a config with channels: FILE.toml.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the channel.")]
Owner = Annotated[
    str | None, typer.Option("--subscriber", metavar="ID", help="Whose, if several have it.")
]


@channel_app.command("list")
def list_channels(place: Place, as_json: AsJson = False) -> None:
    """List channels: how much each has sent, what waits, what was given up, and why.

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
    """List what a channel has not taken: to be tried again, or given up, with the reasons.

    For example:

        tidings channel failures pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console, plural, print_failures

    with existing_store(ChannelPlace.at(place).store) as store:
        channel = find_channel(store, id, subscriber)
        failures = store.channels.failures(channel.key, limit)
        waiting = store.channels.backlog(channel.key).waiting
    if as_json:
        for failure in failures:
            print_json(failure.to_dict())
        return
    print_failures(open_console(), failures)
    if channel.state == "failing":
        waits = f"{plural(waiting, 'message')} will follow in order"
        typer.echo(f"the channel fails ({channel.reason}); it is tried again, and {waits}")


@channel_app.command()
def pause(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Send nothing to a channel until it is resumed; what is delivered meanwhile waits.

    For example:

        tidings channel pause pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store

    with existing_store(ChannelPlace.at(place).store) as store:
        store.channels.pause(find_channel(store, id, subscriber).key, int(time.time() * 1e6))


@channel_app.command()
def resume(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Send to a channel again that was paused or disabled, or rests after failures.

    For example:

        tidings channel resume pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store

    with existing_store(ChannelPlace.at(place).store) as store:
        store.channels.resume(find_channel(store, id, subscriber).key)


@channel_app.command()
def retry(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Try everything again that a channel has not taken, also what was given up.

    For example:

        tidings channel retry pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import plural

    with existing_store(ChannelPlace.at(place).store) as store:
        count = store.channels.retry(find_channel(store, id, subscriber).key)
    typer.echo(f"{plural(count, 'message')} to be tried again")


@channel_app.command()
def skip(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Skip the message that a channel sends next, so that those behind it are sent.

    It is listed among the failures, from where `retry` sends it.

    For example:

        tidings channel skip pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store

    with existing_store(ChannelPlace.at(place).store) as store:
        skipped = store.outbox.skip(find_channel(store, id, subscriber).key)
    if skipped is None:
        raise TidingsError(f"channel {id} has nothing to send")
    typer.echo(f"given up: event {skipped.event} for {skipped.subscriber}")


@channel_app.command()
def remove(place: Place, id: Id, subscriber: Owner = None) -> None:
    """Forget a channel, with how far it has come and what it has not sent.

    For example:

        tidings channel remove films.db orders
    """
    from tidings.app.channels import ChannelPlace, find_channel
    from tidings.app.cli.store_commands import existing_store

    with existing_store(ChannelPlace.at(place).store) as store:
        store.channels.remove(find_channel(store, id, subscriber).key)


@channel_app.command()
def send(
    config: Annotated[str, typer.Argument(metavar="FILE.toml", help="The config.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until Ctrl-C or SIGTERM.")
    ] = False,
) -> None:
    """Send what waits in the outbox of a config, without running its pipeline.

    A channel that fails is tried again for some seconds; one that pauses after earlier failures
    waits until the pause is over, unless `tidings channel resume` ends it. Several processes may
    send at once.

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
        raise TidingsError(f"{config} declares no channels; write [[channels]] or [[people]]")
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
    """Send one test message through a channel, or to one of the people of the config.

    For example:

        tidings channel test pipeline.toml orders
    """
    from tidings.app.channels import ChannelPlace

    kind, target, outcome = ChannelPlace.at(config).send_test(id, subscriber)
    if outcome.reason:
        raise TidingsError(f"channel {id} ({kind}): {outcome.reason}")
    typer.echo(f"channel {id} ({kind}: {target}) has taken a test")
