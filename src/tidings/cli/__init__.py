"""The command line: parses, calls, prints. Each command loads only what it needs."""

from tidings.cli import asking, running, showing
from tidings.cli.app import app, main

__all__ = ["app", "asking", "main", "running", "showing"]
