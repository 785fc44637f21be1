"""The commands `address`: the address book of a store, and previews of messages."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
    help="Manage the mail and chat addresses of people, and preview messages.",
)
app.add_typer(address_app, name="address")
Subscriber = Annotated[str, typer.Argument(metavar="SUBSCRIBER", help="Whose address it is.")]
Name = Annotated[str, typer.Argument(metavar="ID", help="The id of the address.")]
_MOST_BYTES: Final = 2_000_000
"""The largest bounce that is read."""


@dataclass(frozen=True)
class AddressOptions:
    """Arguments and options of `address add`."""

    store: StoreAddress
    subscriber: Subscriber
    name: Name
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A mailbox, or the webhook of a chat.")
    ]
    kind: Annotated[
        Literal["mail", "slack", "teams"], typer.Option(help="The kind of address.")
    ] = "mail"
    every: Annotated[
        Literal["delivery", "hour", "day"] | None,
        typer.Option(help="At once, hourly or daily. Default: daily for mail, otherwise at once."),
    ] = None
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="TIME", help="A local time of day, such as 08:00; may be repeated."),
    ] = None
    zone: Annotated[str | None, typer.Option(help="The time zone, such as Europe/Athens.")] = None
    min_rank: Annotated[float | None, typer.Option(help="Send only ranks of at least this.")] = None
    below_rank: Annotated[float | None, typer.Option(help="Send only ranks below this.")] = None
    interest: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Send only matches of this subscription; may be repeated."),
    ] = None
    as_json: AsJson = False


@address_app.command("add")
@takes(AddressOptions)
def add_address(options: AddressOptions) -> None:
    """Add or change an address of a subscriber; you vouch for it, so no code is sent.

    For example:

        tidings address add films.db ada mail ada@example.org --at 08:00 --zone Europe/Athens
        tidings address add films.db ada chat https://hooks.slack.com/... --kind slack
    """
    from tidings.app.output import open_console
    from tidings.channels.address_book import EntryDraft, entry_state, put_entry
    from tidings.channels.person_channel import PersonChannel
    from tidings.channels.webhook_target import TargetRules
    from tidings.store import open_store

    form: dict[str, Any] = {
        "kind": options.kind,
        "address": options.address,
        "every": options.every,
        "at": options.at or None,
        "zone": options.zone,
        "min_rank": options.min_rank,
        "below_rank": options.below_rank,
        "interests": options.interest or None,
    }
    person = PersonChannel.load(form, TargetRules.of(["*"], []))
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
    subscriber: Annotated[
        str | None, typer.Option(metavar="ID", help="List only the addresses of this subscriber.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the addresses of people, with their progress.

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
    """Send nothing to an address until it is resumed.

    For example:

        tidings address pause films.db ada mail
    """
    with _entry(store, subscriber, name) as (opened, channel):
        opened.channels.pause(channel.key, _now_us())
        _print_state(opened, subscriber, name, as_json)


@address_app.command("resume")
def resume_address(
    store: StoreAddress, subscriber: Subscriber, name: Name, as_json: AsJson = False
) -> None:
    """Send to an address again, starting with what is delivered from now on.

    For example:

        tidings address resume films.db ada mail
    """
    from tidings.channels.address_book import resume_entry

    with _entry(store, subscriber, name) as (opened, channel):
        resume_entry(opened, channel)
        _print_state(opened, subscriber, name, as_json)


@address_app.command("remove")
def remove_address(
    store: StoreAddress, subscriber: Subscriber, name: Name, as_json: AsJson = False
) -> None:
    """Remove an address, together with its unsent messages.

    For example:

        tidings address remove films.db ada mail
    """
    from tidings.app.output import open_console

    with _entry(store, subscriber, name) as (opened, channel):
        opened.channels.remove(channel.key)
    if as_json:
        print_json({"removed": name})
    else:
        open_console().print(f"address {name} removed", markup=False)


@address_app.command("bounce")
def take_bounce(store: StoreAddress, as_json: AsJson = False) -> None:
    """Read a bounced mail from standard input, and give up its deliveries.

    The mail is a delivery report (RFC 3464), which a mail server can pipe to this command.

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
            help="A TOML file with a table [template].",
            exists=True,
            dir_okay=False,
        ),
    ]
    events: Annotated[
        Path | None,
        typer.Argument(
            metavar="EVENTS",
            help="Events with `content`, as JSON Lines. Default: a built-in example.",
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
    """Show what a message looks like with a template; errors name the line.

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


@contextmanager
def _entry(address: str, subscriber: str, name: str) -> Iterator[tuple["Store", "Channel"]]:
    """Open a store that exists, and find an entry of its address book."""
    from tidings.app.cli.store_commands import existing_store

    with existing_store(address) as store:
        yield store, _found(store, subscriber, name)


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
