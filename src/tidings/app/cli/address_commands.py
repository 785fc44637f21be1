"""The commands `address`: the address book of a store, and what messages look like."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import takes
from tidings.app.cli.store_commands import StoreAddress
from tidings.errors import StoreError

if TYPE_CHECKING:
    from tidings.store import Store
    from tidings.store.channels import Channel

address_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Where people read: add, list, pause and remove addresses, and preview messages.",
)
app.add_typer(address_app, name="address")
Subscriber = Annotated[str, typer.Argument(metavar="SUBSCRIBER", help="Whose address it is.")]
Name = Annotated[str, typer.Argument(metavar="ID", help="The id of the address.")]
_MOST_BYTES: Final = 2_000_000
"""Of a mail that came back; longer ones are refused."""


@dataclass(frozen=True)
class AddressOptions:
    """Arguments and options of `address add`."""

    store: StoreAddress
    subscriber: Subscriber
    name: Name
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A mailbox, or the webhook of a chat.")
    ]
    kind: Annotated[Literal["mail", "slack", "teams"], typer.Option(help="What is there.")] = "mail"
    every: Annotated[
        Literal["delivery", "hour", "day"] | None,
        typer.Option(help="At once, hourly or daily. Default: daily for mail, else at once."),
    ] = None
    at: Annotated[
        list[str] | None, typer.Option(metavar="TIME", help="Local times of a day: 08:00.")
    ] = None
    zone: Annotated[str | None, typer.Option(help="The time zone: Europe/Athens.")] = None
    min_rank: Annotated[float | None, typer.Option(help="Only ranks of at least this.")] = None
    below_rank: Annotated[float | None, typer.Option(help="Only ranks below this.")] = None
    interest: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only of these subscriptions.")
    ] = None
    as_json: AsJson = False


@address_app.command("add")
@takes(AddressOptions)
def add_address(options: AddressOptions) -> None:
    """Add or change where a subscriber reads; you vouch for the address, so no code is sent.

    For example:

        tidings address add films.db ada mail ada@example.org --at 08:00 --zone Europe/Athens
        tidings address add films.db ada chat https://hooks.slack.com/... --kind slack
    """
    from tidings.app.output import open_console
    from tidings.channels.address_book import EntryDraft, entry_state, put_entry
    from tidings.channels.person_channel import PersonChannel
    from tidings.channels.webhook_target import TargetRules
    from tidings.store import open_store

    given: dict[str, Any] = {
        "kind": options.kind,
        "address": options.address,
        "every": options.every,
        "at": options.at or None,
        "zone": options.zone,
        "min_rank": options.min_rank,
        "below_rank": options.below_rank,
        "interests": options.interest or None,
    }
    person = PersonChannel.load(given, TargetRules.of(["*"], []))
    draft = EntryDraft(options.subscriber, options.name, person, verified=True)
    with open_store(options.store) as opened:
        channel = put_entry(opened, draft, _now_us())
        state = entry_state(opened, channel)
    if options.as_json:
        print_json(state)
    else:
        open_console().print(f"{options.subscriber} reads at {state['address']}", markup=False)


@address_app.command("list")
def list_addresses(
    store: StoreAddress,
    subscriber: Annotated[str | None, typer.Option(metavar="ID", help="Only of this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """List where people read, with how far that has come.

    For example:

        tidings address list films.db
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console, print_addresses
    from tidings.channels.address_book import entries, entry_state

    with existing_store(store) as opened:
        states = [entry_state(opened, channel) for channel in entries(opened, subscriber)]
    if as_json:
        for state in states:
            print_json(state)
    else:
        print_addresses(open_console(), states)


@address_app.command("pause")
def pause_address(
    store: StoreAddress, subscriber: Subscriber, name: Name, as_json: AsJson = False
) -> None:
    """Send nothing there until it is resumed.

    For example:

        tidings address pause films.db ada mail
    """
    from tidings.app.cli.store_commands import existing_store

    with existing_store(store) as opened:
        opened.channels.pause(_found(opened, subscriber, name).key, _now_us())
        _print_state(opened, subscriber, name, as_json)


@address_app.command("resume")
def resume_address(
    store: StoreAddress, subscriber: Subscriber, name: Name, as_json: AsJson = False
) -> None:
    """Send there again, beginning with what is delivered from now on.

    For example:

        tidings address resume films.db ada mail
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.channels.address_book import resume_entry

    with existing_store(store) as opened:
        resume_entry(opened, _found(opened, subscriber, name))
        _print_state(opened, subscriber, name, as_json)


@address_app.command("remove")
def remove_address(
    store: StoreAddress, subscriber: Subscriber, name: Name, as_json: AsJson = False
) -> None:
    """Remove an address, with what is still to be sent.

    For example:

        tidings address remove films.db ada mail
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console

    with existing_store(store) as opened:
        opened.channels.remove(_found(opened, subscriber, name).key)
    if as_json:
        print_json({"removed": name})
    else:
        open_console().print(f"address {name} removed", markup=False)


@address_app.command("bounce")
def take_bounce(store: StoreAddress, as_json: AsJson = False) -> None:
    """Take a mail that came back from standard input; its deliveries are given up.

    It is a report of delivery (RFC 3464), to which a mail server can connect this command.

    For example:

        tidings address bounce films.db < bounce.eml
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console
    from tidings.channels.bounces import note_bounce, read_bounce

    bounce = read_bounce(sys.stdin.buffer.read(_MOST_BYTES))
    with existing_store(store) as opened:
        digest = None if bounce is None else note_bounce(opened, bounce)
    given_up = 0 if digest is None else len(digest.sequences)
    if as_json:
        print_json({"given_up": given_up})
    else:
        open_console().print(f"{given_up} deliveries given up")


@dataclass(frozen=True)
class PreviewOptions:
    """Arguments and options of `address preview`."""

    template: Annotated[
        Path,
        typer.Argument(
            metavar="TEMPLATE",
            help="A file with the table [template]: FILE.toml.",
            exists=True,
            dir_okay=False,
        ),
    ]
    events: Annotated[
        Path | None,
        typer.Argument(
            metavar="EVENTS",
            help="Events with `content`, as JSON Lines. Default: a sample.",
            exists=True,
            dir_okay=False,
        ),
    ] = None
    layout: Annotated[
        Literal["text", "html", "slack", "teams"], typer.Option("--as", help="The layout.")
    ] = "text"
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many events to show.")] = 10
    as_json: AsJson = False


@address_app.command("preview")
@takes(PreviewOptions)
def preview(options: PreviewOptions) -> None:
    """Show what a message looks like with a template; an error names its line.

    For example:

        tidings address preview service.toml events.jsonl
        tidings address preview service.toml events.jsonl --as html > mail.html
    """
    from tidings.app.config.people import load_template
    from tidings.app.terminal import printable
    from tidings.channels.layouts import Digest, all_layouts
    from tidings.channels.samples import sample_deliveries

    template = load_template(options.template)
    deliveries = sample_deliveries(options.events, options.limit)
    layouts = all_layouts(Digest.of([template.card(delivery) for delivery in deliveries]))
    shown = layouts[options.layout]
    if options.as_json:
        print_json(layouts)
    elif isinstance(shown, str):
        typer.echo(printable(shown), nl=False)
    else:
        print_json(shown)


def _found(store: "Store", subscriber: str, name: str) -> "Channel":
    from tidings.channels.address_book import find_entry

    channel = find_entry(store, subscriber, name)
    if channel is None:
        raise StoreError("there is no such address; `tidings address list` lists them")
    return channel


def _print_state(store: "Store", subscriber: str, name: str, as_json: bool) -> None:
    from tidings.app.output import open_console, print_addresses
    from tidings.channels.address_book import entry_state

    state = entry_state(store, _found(store, subscriber, name))
    if as_json:
        print_json(state)
    else:
        print_addresses(open_console(), [state])


def _now_us() -> int:
    from tidings.model.values import SECOND_US

    return int(time.time() * SECOND_US)
