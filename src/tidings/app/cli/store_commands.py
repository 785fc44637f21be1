"""The commands `store`: show and change what a store holds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.errors import StoreError

if TYPE_CHECKING:
    from tidings.store import Store

store_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Read and change a store: subscribers, subscriptions and notifications.",
)
app.add_typer(store_app, name="store")

StoreAddress = Annotated[
    str,
    typer.Argument(
        metavar="STORE", help="A file, sqlite:///file, or postgresql://user@host/database."
    ),
]
SubscriberIds = Annotated[list[str], typer.Argument(metavar="SUBSCRIBER")]
Kind = Literal["subscription", "subscriber"]
Limit = Annotated[int, typer.Option(min=1, help="The maximum number to print.")]


@store_app.command("list")
def list_records(
    store: StoreAddress,
    kind: Annotated[Kind, typer.Argument(help="What to list.")] = "subscription",
    subscriber: Annotated[
        str | None, typer.Option(metavar="ID", help="Only those of this one.")
    ] = None,
    after: Annotated[str, typer.Option(metavar="ID", help="Continue after this id.")] = "",
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List subscriptions or subscribers in order of id.

    For example:

        tidings store list films.db
        tidings store list films.db subscriber
    """
    from tidings.app.output import open_console, print_records

    with existing_store(store) as opened:
        entries = opened.catalogue.page(kind, subscriber, after, limit + 1)
    records = [dict(entry.form or {}) for entry in entries[:limit]]
    if as_json:
        for record in records:
            print_json(record)
    else:
        print_records(open_console(), kind, records, more=len(entries) > limit)


@store_app.command()
def add(
    store: StoreAddress,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", exists=True, dir_okay=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace records that the store already has.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add subscriptions and subscribers from files; a store that does not exist is created.

    Without --replace, a record whose id already exists with different content stops the command,
    and nothing is added. Invalid records are listed and left out.

    For example:

        cd examples/movies
        tidings store add films.db subscriptions.jsonl subscribers.jsonl
    """
    from tidings.app.check.review import read_records
    from tidings.app.output import open_console, plural, print_problems
    from tidings.store import open_store

    audit = read_records(files)
    records: list[Any] = [*audit.subscribers, *audit.subscriptions]
    with open_store(store) as opened:
        catalogue = opened.catalogue
        before = catalogue.version()
        version = catalogue.load(records) if replace else catalogue.put(*records)
    print_problems(open_console(stderr=True), audit.problems)
    if as_json:
        problems = [problem.to_dict() for problem in audit.problems]
        changed = {"changed": version - before, "version": version}
        print_json({"records": len(records), **changed, "problems": problems})
    else:
        line = f"{plural(len(records), 'record')}, {version - before:,} new or changed"
        open_console().print(f"{line}; version {version}")
    raise typer.Exit(1 if audit.problems else 0)


@store_app.command()
def remove(
    store: StoreAddress,
    kind: Annotated[Kind, typer.Argument(help="What to remove.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID")],
    as_json: AsJson = False,
) -> None:
    """Remove subscriptions, or subscribers with their subscriptions.

    For example:

        tidings store remove films.db subscription bruno-horror
    """
    from tidings.app.output import open_console, plural

    with existing_store(store) as opened:
        removed = {name: opened.catalogue.remove(kind, name) for name in ids}
    missing = [name for name, existed in removed.items() if not existed]
    if as_json:
        print_json({"removed": [name for name in ids if removed[name]], "missing": missing})
    else:
        open_console().print(f"{plural(sum(removed.values()), kind)} removed")
    if missing:
        raise StoreError(f"there is no {kind} {missing[0]!r}; `tidings store list` lists them")


@store_app.command()
def pause(store: StoreAddress, subscribers: SubscriberIds, as_json: AsJson = False) -> None:
    """Pause subscribers: their windows keep running, and what would be delivered is dropped.

    For example:

        tidings store pause films.db ada
    """
    _set_paused(store, subscribers, paused=True, as_json=as_json)


@store_app.command()
def resume(store: StoreAddress, subscribers: SubscriberIds, as_json: AsJson = False) -> None:
    """Resume paused subscribers; what was dropped in the meantime stays dropped.

    For example:

        tidings store resume films.db ada
    """
    _set_paused(store, subscribers, paused=False, as_json=as_json)


def _set_paused(store: str, subscribers: list[str], *, paused: bool, as_json: bool) -> None:
    from tidings.app.output import open_console, plural

    with existing_store(store) as opened:
        change = opened.catalogue.pause if paused else opened.catalogue.resume
        for name in subscribers:
            change(name)
    verb = "paused" if paused else "resumed"
    if as_json:
        print_json({verb: subscribers})
    else:
        open_console().print(f"{plural(len(subscribers), 'subscriber')} {verb}")


@store_app.command()
def inbox(
    store: StoreAddress,
    subscriber: Annotated[str, typer.Argument(metavar="SUBSCRIBER")],
    limit: Limit = 20,
    read: Annotated[bool, typer.Option("--read", help="Mark all as read.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the last notifications of a subscriber, newest first.

    For example:

        tidings store inbox films.db ada --read
    """
    from tidings.app.output import open_console, print_inbox

    with existing_store(store) as opened:
        notifications = opened.notifications
        state, deliveries = notifications.inbox(subscriber), notifications.newest(subscriber, limit)
        known = state.last or opened.catalogue.page("subscription", subscriber, limit=1)
        if not known and opened.catalogue.get("subscriber", subscriber) is None:
            raise StoreError(f"the store has no subscriber {subscriber!r} and nothing for it")
        if read and state.last:
            notifications.mark_read(subscriber, state.last)
    if as_json:
        for delivery in deliveries:
            print_json({**delivery.to_dict(), "read": delivery.sequence <= state.read})
    else:
        print_inbox(open_console(), deliveries, state)


@store_app.command()
def letters(
    store: StoreAddress,
    kind: Annotated[Literal["dead", "late"], typer.Argument(help="What to list.")] = "dead",
    after: Annotated[int, typer.Option(min=0, metavar="ID", help="Continue after this id.")] = 0,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List dead letters, or late events, with the reasons.

    For example:

        tidings store letters films.db late
    """
    from tidings.app.output import open_console, print_letters

    with existing_store(store) as opened:
        page = opened.letters.page(kind, after, limit)
        waiting = opened.letters.count(kind)
    if as_json:
        for letter in page:
            print_json(letter.to_dict())
    else:
        print_letters(open_console(), page, waiting)


@store_app.command()
def prune(
    store: StoreAddress,
    older_than: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Delete what was delivered longer ago: 30d, 12h."),
    ],
    keep_keys: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How much longer to remember what was delivered, so that it is not repeated. "
            "Default: forever.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete old notifications; deleted ones are still never delivered again.

    For example:

        tidings store prune films.db --older-than 30d
    """
    from tidings.app.output import open_console, plural
    from tidings.model.values import SECOND_US, parse_duration_us

    before_us = int(time.time() * SECOND_US) - parse_duration_us(older_than)
    with existing_store(store) as opened:
        deleted = opened.notifications.prune(before_us / SECOND_US, keep_keys)
    if as_json:
        print_json({"deleted": deleted})
    else:
        open_console().print(f"{plural(deleted, 'notification')} deleted")


@store_app.command()
def backup(
    store: StoreAddress,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    as_json: AsJson = False,
) -> None:
    """Copy an SQLite store to a new file while it is in use; the copy is itself a store.

    For example:

        tidings store backup films.db films-monday.db
    """
    from tidings.app.output import open_console

    with existing_store(store) as opened:
        opened.database.back_up(file)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        open_console().print(f"{file}: {size:,} bytes", soft_wrap=True)


@contextmanager
def existing_store(store: str) -> Iterator["Store"]:
    """Open a store that exists; a missing one is refused, so that a typo does not create it."""
    from tidings.store import open_store
    from tidings.store.address import read_address

    address = read_address(store)
    if address.file is not None and not address.file.exists():
        raise StoreError(f"there is no store {address.shown}; `tidings store add` creates one")
    with open_store(store) as opened:
        yield opened
