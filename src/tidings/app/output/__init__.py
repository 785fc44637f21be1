"""Output of the commands: tables and sentences, with colours on a terminal only."""

from tidings.app.output.console import make_table, open_console, plural
from tidings.app.output.init_output import print_proposal
from tidings.app.output.progress import RunReporter, RunView, batch_line, open_reporter
from tidings.app.output.query_output import (
    print_diagnosis,
    print_explanation,
    print_matches,
    print_problems,
    print_review,
)
from tidings.app.output.run_output import dry_run_rows, print_dry_run, print_plan, print_summary
from tidings.app.output.store_output import (
    print_addresses,
    print_channels,
    print_failures,
    print_inbox,
    print_letters,
    print_records,
    print_tokens,
)

__all__ = [
    "RunReporter",
    "RunView",
    "batch_line",
    "dry_run_rows",
    "make_table",
    "open_console",
    "open_reporter",
    "plural",
    "print_addresses",
    "print_channels",
    "print_diagnosis",
    "print_dry_run",
    "print_explanation",
    "print_failures",
    "print_inbox",
    "print_letters",
    "print_matches",
    "print_plan",
    "print_problems",
    "print_proposal",
    "print_records",
    "print_review",
    "print_summary",
    "print_tokens",
]
