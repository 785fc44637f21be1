"""Consoles, tables and plural nouns."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tidings.app.terminal import SafeConsole

_PIPE_WIDTH: Final = 1000


def open_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console as wide as the terminal; in a file or pipe, rows are never wrapped."""
    console = SafeConsole(stderr=stderr, quiet=quiet)
    if console.is_terminal:
        return console
    return SafeConsole(stderr=stderr, quiet=quiet, width=_PIPE_WIDTH)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "event"), plural(30, "delivery"), plural(1200, "match")
    ('1 event', '30 deliveries', '1,200 matches')
    """
    if number == 1:
        return f"1 {noun}"
    ending = "ies" if noun.endswith("y") else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun.removesuffix('y') if noun.endswith('y') else noun}{ending}"


def make_table(*names: str) -> Table:
    """Return an empty table; a name that ends in > is a column of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in names:
        right = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if right else "left", overflow="fold")
    return table
