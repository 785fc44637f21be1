"""The command line: parse, call, print. Each command imports only what it needs."""

from tidings.app.cli import (
    address_commands,
    channel_commands,
    lab_commands,
    plan_command,
    query_commands,
    run_command,
    service_commands,
    start_commands,
    store_commands,
)
from tidings.app.cli.app import app, main

__all__ = [
    "address_commands",
    "app",
    "channel_commands",
    "lab_commands",
    "main",
    "plan_command",
    "query_commands",
    "run_command",
    "service_commands",
    "start_commands",
    "store_commands",
]
