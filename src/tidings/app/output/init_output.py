"""Output of `init`: what it found, what it proposes, and what to run next."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from rich.console import Console
from rich.text import Text

from tidings.app.init import Proposal
from tidings.app.init.columns import find_odd_time, find_time_parts, other_reading
from tidings.app.output.console import make_table, plural

_SHOWN: Final = 40
_FORMS: Final = 3
_NAMELESS: Final = re.compile(r"column_\d+")
_NO_HEADER: Final = (
    "Most columns have no name. If there are lines above the header, such as a title, remove them."
)


def print_proposal(console: Console, proposal: Proposal, written: Sequence[Path]) -> None:
    """Print what `init` found in the data, what it wrote, and the commands to run."""
    table = make_table("Column", "Type", "Used as")
    for name, kind, use in list(_column_rows(proposal))[:_SHOWN]:
        table.add_row(Text(name), kind, Text(use))
    console.print(table)
    if len(proposal.columns) > _SHOWN:
        console.print(f"and {len(proposal.columns) - _SHOWN} more columns")
    for name, kind in proposal.left_out.items():
        console.print(Text(f"{name} is left out: no attribute holds {kind}; to use it, convert it"))
    looked_at = f"Looked at {plural(proposal.events, 'event')}"
    if proposal.unreadable:
        first = proposal.unreadable[0]
        rows = plural(len(proposal.unreadable), "row")
        looked_at += f"; {rows} cannot be read, such as row {first.position}: {first.reason}"
    console.print(Text(looked_at), soft_wrap=True)
    for note in _notes(proposal):
        console.print(Text(note, "yellow"), soft_wrap=True)
    table = make_table("Example subscription", "Matches>")
    for proposed in proposal.subscriptions:
        table.add_row(Text(str(proposed.subscription.to_dict()["where"])), f"{proposed.matches:,}")
    console.print(table)
    config, subscriptions = written
    console.print(Text(f"Wrote {config} and {subscriptions}. Now run:"), soft_wrap=True)
    command = f"tidings run {quote(str(config))}"
    console.print(Text(f"  {command}", "bold"), soft_wrap=True)
    console.print(Text(f"  {command} --engine spark    # the same on Spark"), soft_wrap=True)


def _notes(proposal: Proposal) -> Iterator[str]:
    """Yield notes on what a user may want to change in the data or in the config."""
    columns, layout = proposal.columns, proposal.layout
    nameless = [column.name for column in columns if _NAMELESS.fullmatch(column.name)]
    if 2 * len(nameless) > len(columns):
        yield _NO_HEADER
    yield from map(_GENERATED.__getitem__, layout.generate)
    has_time = "published_at" not in layout.generate
    if not has_time and (odd := find_odd_time(columns)):
        forms = " and ".join(map(repr, dict.fromkeys(odd.values[:_FORMS])))
        yield (f"{odd.name} may be one, but its times have several forms ({forms}): use one")
    time = layout.source_of("published_at") if has_time else None
    if parts := find_time_parts(columns, time):
        yield (
            f"{', '.join(parts[:-1])} and {parts[-1]} are parts of one time: to publish events at "
            "their times of day, join them in one column, such as 2026-11-15T20:05"
        )
    if note := _ambiguous_time(proposal):
        yield note


def _ambiguous_time(proposal: Proposal) -> str | None:
    """Return a note on times that can also be read with day and month exchanged."""
    kind = proposal.layout.types.get("published_at", "")
    name = proposal.layout.columns.get("published_at", "published_at")
    column = next((candidate for candidate in proposal.columns if candidate.name == name), None)
    other = other_reading(column, kind) if column else None
    if column is None or other is None:
        return None
    return (
        f"{name} is read as {kind}, so {column.values[0]!r} has the day "
        f"{'first' if kind.index('%d') < kind.index('%m') else 'second'}; if that is wrong, write "
        f"{other} in the config."
    )


def _column_rows(proposal: Proposal) -> Iterator[tuple[str, str, str]]:
    layout = proposal.layout
    names = {column: name for name, column in layout.columns.items()}
    for column in proposal.columns:
        name = names.get(column.name, column.name)
        kind = layout.types.get(name, column.kind)
        use = f"{name}, the time" if name == "published_at" else name
        if name in layout.lists:
            kind = f"list, separated by {layout.lists[name]}"
        yield column.name, kind, use


_GENERATED: Final = {
    "id": "No column is a unique id, so the file and the row number are the id of an event.",
    "published_at": (
        "No column is a time, so events are published in the order of the rows, at the time when "
        "the file was last modified."
    ),
}
