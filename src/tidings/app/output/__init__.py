"""What the commands print: tables and plain words for people; colours on a terminal only."""

from tidings.app.output.console import columns, plural, screen
from tidings.app.output.progress_board import Teller, teller
from tidings.app.output.query_output import (
    show_explanation,
    show_matches,
    show_problems,
    show_review,
)
from tidings.app.output.run_output import show_account, show_plan, show_sketch

__all__ = [
    "Teller",
    "columns",
    "plural",
    "screen",
    "show_account",
    "show_explanation",
    "show_matches",
    "show_plan",
    "show_problems",
    "show_review",
    "show_sketch",
    "teller",
]
