"""What the commands print: tables and plain words for people; colours on a terminal only."""

from tidings.report.asked import show_explanation, show_matches, show_problems, show_review
from tidings.report.live import Teller, teller
from tidings.report.ran import show_account, show_plan, show_sketch
from tidings.report.words import columns, plural, screen

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
