"""The command line: parse, call, print. Each command imports only what it needs."""

from tidings.app.cli import (
    demo_commands,
    init_command,
    query_commands,
    run_command,
    store_commands,
    warm_command,
)
from tidings.app.cli.app import app, main

__all__ = [
    "app",
    "demo_commands",
    "init_command",
    "main",
    "query_commands",
    "run_command",
    "store_commands",
    "warm_command",
]
