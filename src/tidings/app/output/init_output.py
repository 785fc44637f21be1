"""Output of `init`: what it found, what it proposes, and what to run next."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from rich.console import Console
from rich.text import Text

from tidings.app.init import Proposal
from tidings.app.init.columns import find_odd_time, other_reading
from tidings.app.output.console import make_table, plural

_SHOWN: Final = 40
_FORMS: Final = 3
_NAMELESS: Final = re.compile(r"column_\d+")
_NO_HEADER: Final = (
    "Most columns have no name. If lines stand above the header, such as a title, remove them."
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
    nameless = [each.name for each in proposal.columns if _NAMELESS.fullmatch(each.name)]
    if 2 * len(nameless) > len(proposal.columns):
        console.print(Text(_NO_HEADER, "yellow"), soft_wrap=True)
    for name in proposal.layout.generate:
        console.print(Text(_GENERATED[name], "yellow"), soft_wrap=True)
    if "published_at" in proposal.layout.generate and (odd := find_odd_time(proposal.columns)):
        forms = " and ".join(map(repr, dict.fromkeys(odd.values[:_FORMS])))
        text = (
            f"{odd.name} may be one, but its times have several forms ({forms}): write them in one"
        )
        console.print(Text(text, "yellow"), soft_wrap=True)
    if note := _ambiguous_time(proposal):
        console.print(Text(note, "yellow"), soft_wrap=True)
    table = make_table("Example subscription", "Matches>")
    for each in proposal.subscriptions:
        table.add_row(Text(str(each.subscription.to_dict()["where"])), f"{each.matches:,}")
    console.print(table)
    config, subscriptions = written
    console.print(Text(f"Wrote {config} and {subscriptions}. Now run:"), soft_wrap=True)
    command = f"tidings run {quote(str(config))}"
    console.print(Text(f"  {command}", "bold"), soft_wrap=True)
    console.print(Text(f"  {command} --engine spark    # the same on Spark"), soft_wrap=True)


def _ambiguous_time(proposal: Proposal) -> str | None:
    """Return a line on times of which day and month may be meant the other way round."""
    kind = proposal.layout.types.get("published_at", "")
    name = proposal.layout.columns.get("published_at", "published_at")
    column = next((each for each in proposal.columns if each.name == name), None)
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
